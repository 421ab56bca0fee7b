"""The other side of the workloads: ``dataspace``'s functions, by the same names, on syndicate-py.

Run by a Python that has syndicate-py and not this project, since both packages are called ``syndicate``.
syndicate-py is GPL-3: it stays in a process of its own, and nothing of it is copied here.  ``SkelDS`` is the
dataspace: the same index, written plainly.
"""

# mypy: ignore-errors

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import tracemalloc
from pathlib import Path
from time import perf_counter

import baseline_bench as baseline
from baseline_dataspace import SkelDS

from syndicate import Record, patterns, turn
from syndicate.actor import System
from syndicate.schema import dataspace

sys.path.append(str(Path(__file__).parents[1]))
from figure import answer

LIMIT = 250.0
"""Seconds for one workload, where the baseline's own limit of 25 would end the large ones early."""


def run(boot):
    """As the baseline's, with another limit."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    system = System(loop)
    found = {}

    def over():
        system.exit_signal.put_nowait(())

    loop.call_later(LIMIT, over)
    system.run(lambda: boot(found, over), configure_logging=False)
    return found


def messages(observers, count, batched):
    """See ``dataspace.messages``."""
    return baseline.bench_a(SkelDS, observers, count, perturn=not batched)


def churn(observers, count, all_match):
    """See ``dataspace.churn``."""
    return baseline.bench_b(SkelDS, observers, count, allm=all_match)[1]


def late_observer(assertions, one):
    """See ``dataspace.late_observer``."""
    return 1e3 * baseline.bench_c(SkelDS, assertions, one=one)


def box(count):
    """See ``dataspace.box``."""
    return baseline.bench_d(SkelDS, count)


def presence(users):
    """See ``dataspace.presence``."""
    return baseline.bench_e(SkelDS, users)


def memory(kind, count):
    """See ``dataspace.memory``."""
    return baseline.bench_f(SkelDS, kind, count)


def speak(topic, text):
    """A record as the workloads send it."""
    return Record(baseline.SPEAK, (topic, text))


def interest(topic, observer):
    """Interest in one topic."""
    return dataspace.Observe(patterns.rec("speak", patterns.lit(topic), patterns.CAPTURE), observer)


def memory_together(assertions, observers):
    """See ``dataspace.memory_together``."""
    figures = {}

    def boot(ds, _, over):
        entity = baseline.Counter(-1, None)
        turn.publish(ds, interest(0, turn.ref(entity)))

        def assert_all():
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for j in range(assertions):
                turn.publish(ds, speak(j, "x"))
            turn.sync(ds, lambda: turn.sync(ds, lambda: observe_all(before)))

        def observe_all(before):
            look("bytes an assertion", before, assertions)
            before = tracemalloc.get_traced_memory()[0]
            for j in range(observers):
                turn.publish(ds, interest(-1 - j, turn.ref(entity)))
            turn.sync(ds, lambda: turn.sync(ds, lambda: end(before)))

        def end(before):
            look("bytes an observer", before, observers)
            tracemalloc.stop()
            over()

        def look(name, before, count):
            gc.collect()
            figures[name] = (tracemalloc.get_traced_memory()[0] - before) / count

        turn.sync(ds, assert_all)

    run(baseline.with_ds(SkelDS, boot))
    return figures


def parts(count, size):
    """The numbers below *count* in pieces."""
    return [range(count)[i : i + size] for i in range(0, count, size)]


def scale(assertions):
    """See ``dataspace.scale``."""
    figures = {}

    def boot(ds, _, over):
        entity = baseline.Counter(-1, None)
        handles, interests = [], []

        def add(topics):
            handles.extend([turn.publish(ds, speak(topic, "x")) for topic in topics])

        def observe(topics):
            interests.extend([turn.publish(ds, interest(topic, turn.ref(entity))) for topic in topics])

        def message(numbers):
            for number in numbers:
                turn.send(ds, speak(number * 7919 % assertions, "y"))

        def unobserve(numbers):
            for _ in numbers:
                turn.retract(interests.pop())

        def retract(numbers):
            for _ in numbers:
                turn.retract(handles.pop())

        more = range(assertions, assertions + 5_000)
        steps = [
            *[("fill: an assertion", add, part) for part in parts(assertions, 10_000)],
            *[("fill: an observer", observe, part) for part in parts(assertions // 10, 1_000)],
            ("then: assert", add, more),
            ("then: message", message, range(5_000)),
            ("then: observe", observe, more[:500]),
            ("then: unobserve", unobserve, more[:500]),
            ("then: retract", retract, more),
        ]

        def take(number):
            if number == len(steps):
                over()
                return
            name, act, part = steps[number]
            gc.collect()
            begun = perf_counter()
            act(part)

            def after():
                spent = 1e6 * (perf_counter() - begun)
                figures[name] = figures.get(name, 0.0) + spent / sum(len(p) for n, _, p in steps if n == name)
                take(number + 1)

            turn.sync(ds, after)

        take(0)

    run(baseline.with_ds(SkelDS, boot))
    return figures


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    answer(messages, churn, late_observer, box, presence, memory, memory_together, scale)

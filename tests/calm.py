"""``make calm``: random programs in Bloom, each over ten orders: nothing that is called confluent may differ.

``python -m tests.calm --programs 20000``: programs of plain rows (``test_calm``), of lattices in terms, functions and
columns, sent by timers (``test_calm_lattices``), of rows that go until they are acknowledged (``test_retry``), and of
such that the members of a group pass on (``test_retry_in_groups``), by turns.  What is reported: how many outputs have
which verdict, and the share of those that did not differ in any of the orders, which bounds false alarms from above.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections import Counter

from syndicate.bloom.insight.calm import Calm
from syndicate.errors import SyndicateError, Unstratifiable
from tests.syndicate.bloom.insight import test_calm as plain
from tests.syndicate.bloom.insight import test_calm_lattices as lattices
from tests.syndicate.bloom.insight import test_retry as retries
from tests.syndicate.bloom.insight import test_retry_in_groups as groups
from tests.syndicate.bloom.insight.outcomes import differing, outcome


def plainly(seed: int, runs: int) -> tuple[Calm | None, set[str]]:
    """A program of plain rows: its verdicts, and what of it came out differently."""
    rng = random.Random(seed)
    kind = plain.random_program(rng)
    try:
        calm = kind(address="n0").calm()
    except Unstratifiable:
        return None, set()
    facts = plain.random_facts(rng)
    try:
        return calm, differing([outcome(kind, facts, rng.randrange(2**32), plain.NAMES) for _ in range(runs)])
    except SyndicateError:
        return None, set()


KINDS = (
    (plainly, (*plain.NAMES.end, *plain.NAMES.ever)),
    (lattices.diverging, lattices.NAMES),
    (retries.tried, (*retries.NAMES.end, *retries.NAMES.ever)),
    (groups.tried, (*groups.NAMES.end, *groups.NAMES.ever)),
)


def main() -> None:
    """Compare, and tell the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--memory", type=int, default=4096, help="MiB of addresses that a program may take with ours")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (arguments.memory << 20, resource.RLIM_INFINITY))
    figures: Counter[str] = Counter()
    begun, until = time.process_time(), time.monotonic() + arguments.seconds
    seed = arguments.seed
    try:
        while figures["programs"] < arguments.programs and time.monotonic() < until:
            seed += 1
            run, names = KINDS[seed % len(KINDS)]
            calm, different = run(seed, arguments.orders)
            if calm is None:
                continue
            figures["programs"] += 1
            figures["with a retry"] += bool(calm.retries)
            for name in names:
                verdict = calm[name].verdict
                if verdict == "confluent" and name in different:
                    raise AssertionError(f"seed {seed}: {name} is called confluent, and differs\n{calm}")
                figures[f"{verdict}, {'differs' if name in different else 'alike'}"] += 1
            if sys.stderr.isatty():
                print(
                    f"\rseed {seed}: {figures['programs']} of {arguments.programs}", end="", file=sys.stderr, flush=True
                )
    except MemoryError:
        raise AssertionError(f"seed {seed} takes more than {arguments.memory} MiB") from None
    except KeyboardInterrupt:
        pass  # and tell how many there were
    finally:
        _tell(figures, arguments.orders, time.process_time() - begun)


def _tell(figures: Counter[str], orders: int, seconds: float) -> None:
    print(f"{figures['programs']} programs, {orders} orders, {seconds:.0f} s: {dict(figures)}", flush=True)


if __name__ == "__main__":
    main()

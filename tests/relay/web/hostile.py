"""A program in which everything that has a name, or a value, is hostile: it is looked at in its console."""

from __future__ import annotations

from functools import partial

from syndicate import (
    Record,
    Ref,
    after,
    assert_,
    capture,
    dataspace,
    during,
    every,
    on_asserted,
    record,
    run,
    send,
    spawn,
)
from syndicate.bloom import Bloom, bloom, scratch, table
from syndicate.hosting import host
from syndicate.values.value import Value

IMAGE = "<img src=x onerror=alert(1)>"
TURNED = "\u202egnp.exe\u2066"
LONG = "x" * 1_000_000
SCRIPT = "</script><script>document.title='taken'</script>"
LINK = "javascript:alert(1)"
CONTROL = "\x00\x1b[31m\x07\r\n\u2028"
HOSTILE = [IMAGE, TURNED, LONG, SCRIPT, LINK, CONTROL]


def deep(levels: int) -> Value:
    """Sequences in sequences."""
    value: Value = [IMAGE]
    for _ in range(levels):
        value = [value]
    return value


@record("claim")
class Claim:
    """What rules are given."""

    job: str
    worker: str


class Rules(Bloom):
    """Rules over hostile rows."""

    claim = table(["job"], ["worker"])
    busy = scratch(["worker"])

    @bloom
    def rules(self) -> None:
        """Who has something to do."""
        self.busy <= self.claim.map(lambda claim: (claim.worker,))  # noqa: B015 - a rule


def asserting(ds: Ref, text: str) -> None:
    """A value as what it holds, and as what it is called."""
    assert_(ds, Record("Hostile", [text]))
    assert_(ds, Record(text[:1000], [1]))
    assert_(ds, Claim(text[:1000], text[:1000]))
    on_asserted(ds, Record(text[:1000], [capture(), capture()]))(lambda *_: None)
    on_asserted(ds, Record("Absent", [text]))(lambda: None)
    during(ds, Record("Comes", [text[:1000], capture()]))(lambda number: assert_(ds, Record("Follows", [text, number])))
    numbers = iter(range(10**6))

    def tick() -> None:
        number = next(numbers)
        send(ds, Record("Says", [text, number]))
        after(0.2, assert_(ds, Record("Comes", [text[:1000], number])).retract)

    every(0.5, tick)


def boot() -> None:
    """All of it."""
    ds = dataspace(IMAGE)
    dataspace(TURNED)
    for text in HOSTILE:
        spawn(partial(asserting, ds, text), name=text[:1000])
    assert_(ds, Record("Deep", [deep(50)]))
    spawn(host(Rules, ds, inputs={"claim": Claim}), name=IMAGE)


if __name__ == "__main__":
    run(boot, console=True)

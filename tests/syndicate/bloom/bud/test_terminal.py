"""The terminal: lines read, written, and both (Bud's tc_terminal)."""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

import subprocess
import sys

from syndicate.bloom import Bloom, bloom, bootstrap, scratch, stdio, values
from tests.work import PATIENCE

ECHO = """
from syndicate.bloom import Bloom, bloom, stdio, table

class Echo(Bloom):
    term = stdio(read=True)
    seen = table(["line"])
    @bloom
    def rules(self):
        self.seen <= self.term
        self.term < ~self.term.map(lambda t: ("saw " + t.line,))
        self.halt <= self.term.filter(lambda t: t.line == "bye").map(lambda t: (sorted(t),))

p = Echo(write=lambda line: print(line, flush=True))
p.run_fg()
print(sorted(p.seen))
"""


def test_a_conversation() -> None:
    """Each line is answered before the next is typed; all of them were rows."""
    with subprocess.Popen(
        [sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for line in ("foo", "bar", "baz", "bye"):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"saw {line}\n"
        assert process.stdout.read() == "[(line='bar'), (line='baz'), (line='bye'), (line='foo')]\n"
        assert process.wait(PATIENCE) == 0


def test_lines_of_any_writer() -> None:
    """Lines of bootstrap and of rules go to the program's writer, in the tick that sends them."""
    written: list[str] = []

    class Hello(Bloom):
        term = stdio()
        said = scratch(["line"])

        @bootstrap
        def begin(self) -> None:
            self.term < ~values(("hello from bootstrap",))

        @bloom
        def rules(self) -> None:
            self.term < ~self.said.payloads().map(lambda r: ("nothing",))
            self.term < ~self.said

    p = Hello(write=written.append)
    assert written == []
    p.tick()
    p.said <= [("and from a rule",)]
    p.tick()
    assert sorted(written) == ["and from a rule", "hello from bootstrap", "nothing"]

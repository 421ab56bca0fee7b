"""Sessions: what Bud's tc_rebl asks of its shell."""

from __future__ import annotations

from typing import Any

from syndicate.bloom import Bloom
from syndicate.bloom.repl.session import Session
from syndicate.bloom.repl.workbench import Workbench


class Talk:
    """A session, of which each line is answered by the lines that it writes."""

    def __init__(self, **options: Any) -> None:
        self.said: list[str] = []
        self.session = Session(Workbench(Bloom, write=self.said.append, **options), self.said.append)

    def __call__(self, *lines: str) -> list[str]:
        """What is answered."""
        self.said.clear()
        for line in lines:
            assert self.session.feed(line)
        return list(self.said)


LINKS = [("a", "b", 1), ("a", "b", 4), ("b", "c", 1), ("c", "d", 1), ("d", "e", 1)]


def test_shortest_paths() -> None:
    """Rules come one by one and go; what a table has stays; one for the terminal speaks in each tick until it goes."""
    talk = Talk()
    assert talk("/help") != []
    talk('link = table(["from", "to", "cost"])', 'path = table(["from", "to", "next", "cost"])', "screen = stdio()")
    talk("k = temp()")
    assert [line.split(":")[0] for line in talk("/lscollections")] == [
        "link(from, to, cost)", "path(from, to, next, cost)", "screen(line)",
    ]  # fmt: skip
    talk(
        "path <= link.map(lambda e: (e.from_, e.to, e.to, e.cost))",
        'k <= (link * path).pairs(("to", "from"))',
        "path <= k.map(lambda l, p: (l.from_, p.to, p.from_, l.cost + p.cost))",
        'screen <~ values(("foo",))',
    )
    assert talk("/tick 3").count("foo") == 3
    talk("/rmrule 4")
    assert "foo" not in talk("/tick 3")
    assert [line.split(":")[0] for line in talk("/lsrules")] == ["1", "2", "3"]
    talk(f"/insert link {' '.join(map(repr, LINKS))}", "/tick")
    paths = {
        ("a", "b", "b", 1), ("a", "b", "b", 4), ("a", "c", "b", 2), ("a", "c", "b", 5), ("a", "d", "b", 3),
        ("a", "d", "b", 6), ("a", "e", "b", 4), ("a", "e", "b", 7), ("b", "c", "c", 1), ("b", "d", "c", 2),
        ("b", "e", "c", 3), ("c", "d", "d", 1), ("c", "e", "d", 2), ("d", "e", "e", 1),
    }  # fmt: skip

    def row(of: tuple[Any, ...]) -> str:
        return "(" + ", ".join(f"{k}={v!r}" for k, v in zip(("from", "to", "next", "cost"), of, strict=True)) + ")"

    assert talk("/dump path") == [row(path) for path in sorted(paths)]
    talk(
        'shortest = table(["from", "to"], ["next", "cost"])', 'shortest <= path.argmin(["from", "to"], "cost")', "/tick"
    )
    shortest = [row(path) for path in sorted(paths) if path[3] <= ord(path[1]) - ord(path[0])]
    assert talk("/dump shortest") == shortest
    talk("/rmrule 5", "/rmrule 3", "/rmrule 1", "/rmrule 2", "/tick")
    assert talk("/dump shortest") == shortest
    assert talk("/lsrules") == []


def test_nothing_is_left_of_a_rule() -> None:
    """A scratch is empty when the rule that filled it is gone, whatever read it."""
    talk = Talk()
    talk("clouds = scratch()", "screen = stdio()")
    talk('clouds <= [(3, "Nimbus"), (2, "Cumulus")]', "screen <~ clouds.inspected()")
    text = "\n".join(talk("/tick"))
    assert "Nimbus" in text
    assert "Cumulus" in text
    talk("/rmrule 1")
    assert "Nimbus" not in "\n".join(talk("/tick"))


def test_lattices() -> None:
    """Variables keep what they have come to when the rule that made them is gone, and grow on."""
    talk = Talk()
    talk("s1 = lset()", "m1 = lmax()", "m1 <= s1.size()", "s1 <= [1, 2, 3]", "/tick")
    assert "3" in "".join(talk("/dump m1"))
    talk("/rmrule 1", "s1 <= [4, 5, 6]", "/tick")
    assert "3" in "".join(talk("/dump m1"))
    assert all(str(n) in "".join(talk("/dump s1")) for n in range(1, 7))

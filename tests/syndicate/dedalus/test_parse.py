"""Text: what is refused, and where; comments, spellings and includes."""

from __future__ import annotations

from pathlib import Path

import pytest

from syndicate.dedalus import Program
from syndicate.dedalus.parse import load, parse
from syndicate.errors import DedalusSyntax


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("p(X", 1, 4, r"the text ends here; expected '\)' or ','"),
        ("p(1);\n  q(X) :- ,", 2, 11, "expected 'choose', 'notin', a name in lower case"),
        ('p("a);', 1, 3, "no end"),
        ("p(1) q(2);", 1, 6, "'q' does not fit here; expected ':-', ';' or '@' and a time"),
        ("p() :- q(count<X>);", 1, 15, "stands in the head of a rule"),
        ("persist[p];", 1, 10, r"columns comes last: persist\[p, 2\], or persist\[p, del_p, 2\]"),
        ("p(1); persist [ log, 2, gone", 1, 23, r"columns comes last: persist\[log, 2\]"),
        ("persist[", 1, 9, r"columns comes last: persist\[p, 2\]"),
        ("p(X) :- q(X), N = count(X);", 1, 24, "an aggregate is written count<X>, and stands in the head"),
        ("p(sum(X)) :- q(X);", 1, 6, "an aggregate is written sum<X>"),
        ("p(cont<X>) :- q(X);", 1, 7, r"cont is no aggregate \(did you mean 'count'"),
        ("p(sum<X + 1>) :- q(X);", 1, 9, "an aggregate is of variables, sum<X>: compute"),
        ("p()@soon;", 1, 4, "@next, @async, @later"),
        ("p() :- q()@next;", 1, 11, "stands in a head"),
        ("p() :- q(X)@_;", 1, 12, "says nothing"),
        ("p(1, #L);", 1, 6, "first column only"),
        ("p(min<X, Y>) :- q(X, Y);", 1, 3, "of one variable"),
        ("/* p(1);", 1, 1, "no end"),
        ("p(1); $", 1, 7, r"'\$' does not fit here"),
        ("p() :- choose((X), ());", 1, 8, "one Y at least"),
        ("p(" + "-(" * 300 + "X" + ")" * 300 + ");", 1, 3, "nested"),
        ("p(" + "9" * 5000 + ");", 1, 3, "too long"),
    ],
)
def test_refused(text: str, line: int, column: int, says: str) -> None:
    """The place is the first that does not fit, and the words say what would."""
    with pytest.raises(DedalusSyntax, match=says) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column if "nested" not in says else caught.value.column)


def test_spellings() -> None:
    """What other dialects write is understood."""
    same = 'p(X)@next :- q(X, "a"), notin r(_), X != 3, X <= -1;'
    for other in (
        "p(X)@next <- q(X, a), !r(_), X =/= 3, X<=-1.",
        "p(X)@next :- q(X, 'a'), not r(_), X != 3, X <= -1;".replace("'", '"'),
        "p(X)@next:-q(X,a),notin r(_),X≠3,X≤-1;",
        "p(X)@next:-q(X,a),notin r(_),X<>3,X<=-1;",
    ):
        assert parse(other) == parse(same)


def test_comments() -> None:
    """All kinds of comments; `%` is an operator where an operand stands before it."""
    text = """# one
    % two
    p(X % 2) :- q(X), % three
       // four "
       notin r("# % // /* no comment"), # five
       /* six
          p(1); */ X > 1; % seven
    """
    (rule,) = parse(text)
    assert str(rule) == 'p(X % 2) :- q(X), notin r("# % // /* no comment"), X > 1;'


def test_words_that_are_names_too() -> None:
    """What begins a declaration is a name where no declaration follows."""
    program = Program.parse(
        "agent(1)@1; agent one: agent, count; persist(X) :- agent(X); count(X) :- agent(X), include(X);"
    )
    assert program.check() == []


def test_includes(tmp_path: Path) -> None:
    """Files are included once, relative to where they are named; cycles do no harm."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "main.ded").write_text('include "lib/a.ded"; include "lib/b.ded"; p(1)@1;')
    (tmp_path / "lib" / "a.ded").write_text('include "b.ded"; a(1)@1;')
    (tmp_path / "lib" / "b.ded").write_text('include "../main.ded"; b(1)@1;')
    assert [str(statement) for statement in load(tmp_path / "main.ded")] == ["b(1)@1;", "a(1)@1;", "p(1)@1;"]
    (tmp_path / "bad.ded").write_text('p(1)@1;\n include "none.ded";')
    with pytest.raises(DedalusSyntax, match=r"bad\.ded:2:2: cannot read .*none\.ded"):
        load(tmp_path / "bad.ded")
    with pytest.raises(DedalusSyntax, match=r"Program\.load"):
        Program.parse('include "x.ded";')

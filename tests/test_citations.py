"""Every source that the repository cites can be opened: an entry of the bibliography, or a note and heading of ours.

A citation is what follows ``Source:`` in a docstring, a comment or a note, up to the end of the paragraph; citations
are separated by semicolons.  Each begins with a key of ``docs/bibliography.md``, or with the path of a note, which may
be followed by headings in quotes.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_architecture import LAYERS, MODULES
from tests.test_conformance import is_there

pytestmark = pytest.mark.xdist_group("texts")  # one process reads them all

ROOT = Path(__file__).parents[1]
NOTES = ROOT / "docs" / "design"
BOOKS = ROOT / "docs" / "bibliography.md"
ASIDE = {"__pycache__", "node_modules", "build", "dist"}

KEY = re.compile(r"^- \*\*(.+?)\*\*: \S", re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CITED = re.compile(r"(?:^|(?<!#)\s)Sources?:\s+(.+?)(?=\n\s*\n|\Z)", re.DOTALL)
NOTE = re.compile(r"(?<![\w./-])[\[`]*(docs/[\w./-]*\w)`*(?:\]\([^)]*\))?(?P<headings>(?:,? (?:and )?\"[^\"]+\")*)")
QUOTED = re.compile(r"\"([^\"]+)\"")
LINK = re.compile(r"\]\(([^)\s]+)\)")
WORTH_A_LOOK = re.compile(r"Sources?:|docs/| \d{4}")
OURS = re.compile(r"`((?:syndicate|relay|tests|examples|benchmarks)/[\w./-]*\w)/?`")
MENTION = re.compile(r"`([^`\n]+)`")
DOTTED = re.compile(r"[a-z_]+(?:\.\w+)+")
PATH = re.compile(r"[\w.-]+(?:/[\w.*-]+)+/?|[\w.-]+/")
OWN_PATH = re.compile(r"(?!bin/)[a-z_]+(?:/[a-z_]+)+(?:\.py)?/?")
YEAR = re.compile(r"\b[A-Z][\w-]+ (?:et al\.|and [A-Z][\w-]+),? \d{4}[a-z]?\b")

STORY = ROOT / "HOWITWORKS.md"
GUIDES = [STORY, ROOT / "CONTRIBUTING.md", ROOT / "docs" / "glossary.md"]
"""What leads a newcomer through the code: each name of code in them is resolved."""

ELSEWHERE = {
    "a folder outside": re.compile(r"(?<![\w/.-])(?:\.\./)*(?:reference|shared|seeds)/\w"),
    "a document outside": re.compile(r"\bDESIGN\b(?!\w)|\bproject's (?:design|contract)\b"),
    "an issue by number": re.compile(r"(?<!Bud's )\b[Ii]ssues? (?:#?\d|\")"),
    "a document by number": re.compile(r"\b[Ss]eed \(?00\d|\bworked case \d"),
    "a document without a name": re.compile(
        r"\b[Tt]he reference(?:, sec| on (?:re|st|pe|Sp)| notes|'s (?:exam|fig|minor|not))|\breference, section"
        r"|\b[Rr]eliability, (?:P\d|section|invariant|promise)"
        r"|[(\"][Pp]itfall \d|\binvariants? I\d|\"I\d\d?:|\bI\d\d (?:re|vo)"
        r"|\bin the seed\b|\b[Tt]he seed's (?!number\b)|\b[Tt]he seed (?:tells|writes|leaves|lacks|only)\b"
    ),
}


@functools.cache
def all_files() -> list[Path]:
    """The files of the repository; what is aside, as an environment with Spark, is not looked through."""
    results = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in ASIDE and not name.startswith(".")]
        results += [Path(folder, name) for name in names if name not in ASIDE and not name.startswith(".")]
    return sorted(path for path in results if path.is_file())


def files(*endings: str) -> list[Path]:
    """The files of the repository with one of these endings."""
    return [path for path in all_files() if path.suffix in endings]


@functools.cache
def ends() -> frozenset[str]:
    """Each part of a path of ours that begins and ends with a whole name."""
    ours = [path.relative_to(ROOT).parts for path in files(".py", ".ts", ".md", ".toml", ".properties")]
    return frozenset(
        "/".join(parts[first:last])
        for parts in ours
        for first in range(len(parts))
        for last in range(first + 1, len(parts) + 1)
    )


@functools.cache
def keys() -> frozenset[str]:
    """The keys of the bibliography."""
    return frozenset(KEY.findall(BOOKS.read_text()))


@functools.cache
def headings(path: Path) -> frozenset[str]:
    """The headings of a note, without their marks."""
    return frozenset(HEADING.findall(FENCE.sub("", path.read_text())))


def anchor(heading: str) -> str:
    """The name of a heading in a link, as forges make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a file that are for readers, each with its line: docstrings and comments, or the whole of a note."""
    text = path.read_text()
    if path.suffix == ".py" and not WORTH_A_LOOK.search(text):
        return
    if path.suffix != ".py":
        yield 1, FENCE.sub(lambda result: "\n" * result[0].count("\n"), text)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    for number, line in enumerate(text.splitlines(), 1):
        if "#" in line and (comment := re.search(r"(?:^|\s)#+ (.*)", line)):
            yield number, comment[1]


def citations(text: str) -> Iterator[str]:
    """What a text cites after ``Source:``, one by one."""
    for one in CITED.finditer(text):
        for cited in " ".join(one[1].split()).split("; "):
            yield cited.strip().removesuffix(".")


def unresolved(cited: str) -> str | None:
    """What is wrong with a citation, if anything."""
    if note := NOTE.match(cited):
        rest = cited[note.end() :]
        return lost(note) or (f"after the note stands {rest!r}" if rest and not rest.startswith(" (") else None)
    for key in sorted(keys(), key=len, reverse=True):
        if cited.startswith(key) and (len(cited) == len(key) or cited[len(key)] in ", "):
            return None
    return f"{cited!r} is no key of docs/bibliography.md, and no note"


def lost(note: re.Match[str]) -> str | None:
    """What a reference to a file below ``docs`` names in vain, if anything."""
    path = ROOT / note[1]
    if not path.exists():
        return f"there is no {note[1]}"
    missing = [each for each in QUOTED.findall(note["headings"]) if path.is_file() and each not in headings(path)]
    return f"{note[1]} has no heading {missing[0]!r}" if missing else None


def dangling(path: Path, text: str) -> Iterator[str]:
    """The links in a note that lead nowhere."""
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, part = target.partition("#")
        other = (path.parent / name) if name else path
        if not other.exists():
            yield f"{target}: there is no such file"
        elif part and part not in {anchor(each) for each in headings(other)}:
            yield f"{target}: there is no such heading"


def complaints(path: Path) -> list[str]:
    """What a reader of this file could not open."""
    results = []
    for line, text in prose(path):
        results += [f"{line}: {wrong}" for cited in citations(text) if (wrong := unresolved(cited))]
        flat = " ".join(text.split())
        results += [f"{line}: {wrong}" for note in NOTE.finditer(flat) if (wrong := lost(note))]
        strange = (each for each in YEAR.findall(flat) if each not in keys())
        results += [f"{line}: {each!r} is no key of docs/bibliography.md" for each in strange]
        if path.suffix == ".md":
            if path not in (BOOKS, ROOT / "CHANGELOG.md"):
                strange = (each for each in OURS.findall(text) if not (ROOT / each).exists())
                results += [f"{line}: there is no {each}" for each in strange]
            results += [f"{line}: {wrong}" for wrong in dangling(path, text)]
    return list(dict.fromkeys(results))


def test_what_is_cited_is_there() -> None:
    """Sources have an entry, notes and headings exist, links lead somewhere."""
    paths = files(".py", ".md")
    assert [f"{path.relative_to(ROOT)}:{wrong}" for path in paths for wrong in complaints(path)] == []


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_nothing_speaks_of_what_is_not_here(kind: str) -> None:
    """No folder outside the repository, no issue and no document by number."""
    texts = [path for path in files(".py", ".md", ".toml", ".ded", ".yml") if path != Path(__file__)]
    results = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if ELSEWHERE[kind].search(line)
    ]
    assert results == []


def test_each_entry_is_cited() -> None:
    """The bibliography lists nothing that nobody relies on, and nothing twice."""
    listed = KEY.findall(BOOKS.read_text())
    assert len(listed) == len(set(listed))
    text = "\n".join(" ".join(path.read_text().split()) for path in files(".py", ".md") if path != BOOKS)
    assert [key for key in listed if key not in text] == []


def test_each_note_is_in_the_list_of_notes() -> None:
    """``docs/design/README.md`` has a line for each note."""
    index = (NOTES / "README.md").read_text()
    notes = {path.name for path in NOTES.glob("*.md")} - {"README.md"}
    assert [name for name in sorted(notes) if f"]({name})" not in index] == []


def astray(text: str) -> list[str]:
    """The paths and dotted names between backticks that are not there; a path may have a ``*``."""
    return [
        name
        for name in dict.fromkeys(MENTION.findall(FENCE.sub("", text)))
        if (DOTTED.fullmatch(name) and not is_there(name) and not (ROOT / name).is_file())
        or (PATH.fullmatch(name) and not any(ROOT.glob(name.rstrip("/"))))
    ]


@pytest.mark.parametrize("path", GUIDES, ids=[path.name for path in GUIDES])
def test_each_name_in_a_guide_is_there(path: Path) -> None:
    """``actors.verbs.assert_`` is a function of ours, `tests/world.py` a file of ours."""
    text = path.read_text()
    assert astray(text) == []
    assert any(DOTTED.fullmatch(name) for name in MENTION.findall(text))


@pytest.mark.parametrize("path", sorted(NOTES.glob("*.md")), ids=lambda path: path.stem)
def test_each_path_in_a_note_is_there(path: Path) -> None:
    """`flow/loop.py` or `tick/sending` is the end of a path of ours."""
    paths = [name for name in MENTION.findall(FENCE.sub("", path.read_text())) if OWN_PATH.fullmatch(name)]
    assert [name for name in paths if name.rstrip("/") not in ends() and f"{name}.py" not in ends()] == []


def test_a_name_that_leads_astray_is_found() -> None:
    """A function, a module, a file and a folder that are not there; options, values and sentences are no names."""
    wrong = ["actors.verbs.nothing", "nothing.verbs", "syndicate/nothing.py", "nothing/", "tests/*/nothing.py"]
    right = ["actors.verbs.assert_", "relay.client", "pyproject.toml", "tests/relay/", "tests/*.py", "a/b c", "x=.."]
    assert astray(" ".join(f"`{name}`" for name in wrong + right)) == wrong


def test_the_story_has_every_package() -> None:
    """Each package is named in it, or a module of it is."""
    text = STORY.read_text()
    names = [name.strip("/").replace("/", ".").removeprefix("syndicate.") for name in MENTION.findall(text)]
    packages = [name.removeprefix("syndicate.") for name, path in MODULES.items() if path.name == "__init__.py"]
    missing = [one for one in packages if not any(name == one or name.startswith(f"{one}.") for name in names)]
    assert missing == [], f"say in {STORY.name} what these packages are"


def test_each_journey_has_a_diagram() -> None:
    """Four of them, each with one drawing and numbered steps."""
    parts = re.split(r"^## ", STORY.read_text(), flags=re.MULTILINE)
    journeys = [part for part in parts if "journey:" in part.partition("\n")[0]]
    assert [part.count("```mermaid\n") for part in journeys] == [1, 1, 1, 1]
    for part in journeys:
        numbers = [int(number) for number in re.findall(r"^(\d+)\. ", part.partition("\n")[2], re.MULTILINE)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) > 5


def test_the_story_has_the_layers() -> None:
    """Its table of layers is the plan that the architecture test holds, in that order."""
    table = re.search(r"^\| layer .*?\n\|-.*?\n((?:\|.*\n)+)", STORY.read_text(), re.MULTILINE)
    assert table
    assert [name for row in table[1].splitlines() for name in MENTION.findall(row.split("|")[1])] == LAYERS, (
        f"the table of layers in {STORY.name} is to have the layers of PLAN in test_architecture.py, in that order"
    )


def test_each_package_has_a_note() -> None:
    """The list of notes says for each package, and each module beside them, which note is about it."""
    listed = set(MENTION.findall((NOTES / "README.md").read_text()))
    wanted = []
    for layer in LAYERS:
        path = MODULES[layer].relative_to(ROOT)
        if len(path.parts) > 1 + (path.name == "__init__.py"):
            name = f"{path.parent}/" if path.name == "__init__.py" else str(path)
            wanted.append(name.removeprefix("syndicate/"))
    missing = [name for name in wanted if name not in listed]
    assert missing == [], "name these beside their note in docs/design/README.md"


MUTANTS = [
    ("Nobody et al. 2011, section 3", "Source: Nobody et al. 2011, section 3."),
    ("a key cut short", "Source: Garnock-Jones 20."),
    ("a note that is not there", "Source: ``docs/design/nothing.md``."),
    ("a heading that is not there", 'Source: ``docs/design/values.md``, "Nothing".'),
    ("a second heading that is not there", 'Source: ``docs/design/values.md``, "Identity" and "Nothing".'),
    ("words in place of a heading", "Source: ``docs/design/values.md``, on identity."),
    ("the second of two", "Source: Preserves, binary syntax; the reference, section 1."),
    ("in the midst of a paragraph", "A loop's time is its own.  Source: an issue."),
    ("an author and a year in the text", "It is shown by Nobody and Anybody 1999."),
    ("a note in the text", "See ``docs/design/nothing.md`` for why."),
]


@pytest.mark.parametrize("text", [text for _, text in MUTANTS], ids=[name for name, _ in MUTANTS])
def test_a_wrong_citation_is_found(text: str, tmp_path: Path) -> None:
    """The check can fail, whatever is wrong with a citation."""
    module = tmp_path / "module.py"
    module.write_text(f"'''A module.\n\n{text}\n'''\n")
    assert complaints(module)
    comment = tmp_path / "comment.py"
    comment.write_text(f"# {text}\n")
    assert complaints(comment)


@pytest.mark.parametrize(
    "text",
    [
        'Source: Garnock-Jones 2018, "Skeletons" (``project``); Preserves.',
        'Source: ``docs/design/values.md``, "Identity" and "Hashes"; PomoFlow, 2.9.3.',
        "See ``docs/design/values.md``, and more of https://example.org/docs/design/nothing.md.",
    ],
)
def test_a_right_citation_is_none_to_complain_of(text: str, tmp_path: Path) -> None:
    """Nor does the check fail where nothing is wrong."""
    module = tmp_path / "module.py"
    module.write_text(f"'''A module.\n\n{text}\n'''\n")
    assert complaints(module) == []


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        # Each is two words here, so that the tree itself cites nothing of the kind, not even as an example.
        ("a folder outside", ("refer", "ence/flow.md, section 3")),
        ("a folder outside", ("../sha", "red/page.md")),
        ("a document outside", ("Source: DESI", "GN 6.5.")),
        ("an issue by number", ("iss", "ue 5, part 7")),
        ("a document by number", ("the se", "ed (003)")),
        ("a document by number", ("(se", "ed 000, table 1)")),
        ("a document without a name", ("Source: reliability", ", section 8.")),
    ],
)
def test_a_word_of_elsewhere_is_found(kind: str, line: tuple[str, str]) -> None:
    """Each kind of what is not here is known when it is seen; the seed of a random number is not one of them."""
    assert ELSEWHERE[kind].search("".join(line))
    harmless = (
        "the seed of the run, --seed 7, seed 0, docs/refer",
        "ence/page.md, Bud's issues 179 and 192, the reference is",
    )
    assert not any(pattern.search("".join(harmless)) for pattern in ELSEWHERE.values())


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    """Of a file that is not there, and of a heading; nor is a module of ours that is named."""
    note = tmp_path / "note.md"
    note.write_text("# A note\n\n[one](other.md) [two](#a-note) [three](#nothing) [four](https://example.org/x#y)\n")
    module = tmp_path / "modules.md"
    module.write_text("See `syndicate/nothing.py` and `syndicate/errors.py`.\n")
    assert complaints(module) == ["1: there is no syndicate/nothing.py"]
    assert complaints(note) == ["1: other.md: there is no such file", "1: #nothing: there is no such heading"]

from __future__ import annotations

import copy
import enum
import gc
import itertools
import math
import pickle
import random
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import attrs
import numpy as np
import preserves
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from syndicate import Dictionary, Observe, Record, Ref, Symbol, ValueSet, capture, record
from syndicate.errors import NotAValue
from syndicate.values.pattern import match
from syndicate.values.text import unparse
from syndicate.values.value import MAX_DEPTH, MINUS_TWO, fields_of, freeze, identical, is_record, label_of, order, thaw
from tests.strategies import ATOMS, MERSENNE, PP, REFS, P, Q, values

# The library holds sets and dictionaries in Python's own, in which 1 and True collide: no look-alikes in there.
CLEAR = ("", "a", "b", b"a", 0, 1, 2, MERSENNE, Symbol("a"), Symbol("b"), (1, "a"), (1,))


def _library_compounds(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(CLEAR), inner, max_size=3),
        st.sets(st.sampled_from(CLEAR), max_size=4).map(frozenset),
        st.builds(P, inner),
        st.builds(Record, st.sampled_from(["p", "q"]), st.lists(inner, max_size=3)),
        st.builds(Record, inner, st.lists(inner, max_size=2)),
    )


both_understand = st.recursive(
    st.sampled_from(ATOMS)
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(),
    _library_compounds,
    max_leaves=6,
)


def as_preserves(value: Any) -> Any:
    """The value in the terms of the PyPI library ``preserves``, which shares no code with ours."""
    if isinstance(value, Symbol):
        return preserves.Symbol(value.name)
    if is_record(value):
        return preserves.Record(as_preserves(label_of(value)), [as_preserves(part) for part in fields_of(value)])
    if isinstance(value, (list, tuple)):
        return tuple([as_preserves(part) for part in value])
    if isinstance(value, (set, frozenset, ValueSet)):
        return frozenset([as_preserves(part) for part in value])
    if isinstance(value, (dict, Dictionary)):
        return {as_preserves(key): as_preserves(part) for key, part in value.items()}
    return value


# ----------------------------------------------------------------------------------------- identity and order


@given(both_understand, both_understand)
def test_identity_is_that_of_canonical_bytes(a: Any, b: Any) -> None:
    """Two values are identical exactly if another library encodes them to the same canonical bytes."""
    same = preserves.canonicalize(as_preserves(a)) == preserves.canonicalize(as_preserves(b))
    assert identical(a, b) == same
    assert identical(a, a)


def _has_negative_double(value: Any) -> bool:
    if is_record(value):
        return any(map(_has_negative_double, [label_of(value), *fields_of(value)]))
    if isinstance(value, (dict, Dictionary)):
        return any(map(_has_negative_double, value.values()))
    if isinstance(value, (list, tuple)):
        return any(map(_has_negative_double, value))
    return isinstance(value, float) and math.copysign(1, value) < 0


@given(both_understand, both_understand)
def test_order_is_that_of_preserves(a: Any, b: Any) -> None:
    """Our sort key orders any two values as the other library compares them."""
    # preserves 0.996.3 puts negative doubles after all others, against its own documentation.
    assume(not _has_negative_double(a) and not _has_negative_double(b))
    ours = (order(freeze(a)) > order(freeze(b))) - (order(freeze(a)) < order(freeze(b)))
    theirs = preserves.cmp(as_preserves(a), as_preserves(b))
    assert ours == (theirs > 0) - (theirs < 0)


def test_the_order_of_doubles() -> None:
    """The total order of IEEE 754: the sign first, nan outermost, and the two zeros in order."""
    doubles = [-math.nan, -math.inf, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, math.inf, math.nan]
    assert [thaw(form) for form in sorted(map(freeze, reversed(doubles)), key=order)][1:-1] == doubles[1:-1]
    assert sorted(map(freeze, reversed(doubles)), key=order) == list(map(freeze, doubles))


@given(values(wide=True), values(wide=True), values(wide=True))
def test_order_is_total(a: Any, b: Any, c: Any) -> None:
    """Of any two values one comes first, or they are identical; and the order is transitive."""
    x, y, z = order(freeze(a)), order(freeze(b)), order(freeze(c))
    assert (x < y) + (y < x) + identical(a, b) == 1
    if x <= y <= z:
        assert x <= z


@given(values(wide=True), values(wide=True))
def test_frozen_forms_are_equal_just_for_identical_values(a: Any, b: Any) -> None:
    """Python's == and hash on frozen forms are value identity, so that they can be keys."""
    if order(freeze(a)) == order(freeze(b)):
        assert freeze(a) == freeze(b)
        assert hash(freeze(a)) == hash(freeze(b))
    else:
        assert freeze(a) != freeze(b)


@given(values(wide=True))
def test_thawing_loses_nothing(value: Any) -> None:
    """What comes out of a dataspace is identical to what went in, and no deeper thaw changes that."""
    form = freeze(value)
    assert freeze(thaw(form)) == form


@given(values(refs=False))
def test_copies_and_pickles_are_the_same_value(value: Any) -> None:
    """Copying and pickling keep the identity of every value (but of references, which belong to their process)."""
    assert identical(copy.deepcopy(value), value)
    assert identical(pickle.loads(pickle.dumps(value)), value)


@given(st.lists(st.sampled_from(ATOMS), max_size=8))
def test_look_alikes_live_together_in_a_set_and_as_keys(items: list[Any]) -> None:
    """A set or dictionary keeps one of each *value*, and finds each again."""
    distinct = {preserves.canonicalize(as_preserves(item)) for item in items}
    as_set, as_dict = ValueSet(items), Dictionary([(item, item) for item in items])
    assert len(as_set) == len(as_dict) == len(distinct)
    assert len(thaw(freeze(as_set))) == len(thaw(freeze(as_dict))) == len(distinct)
    for item in items:
        assert item in as_set
        assert identical(as_dict[item], item)
        assert identical(thaw(freeze(as_dict))[item], item)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1.0, False),
        (1, True, False),
        (0, False, False),
        (1.0, True, False),
        (0.0, -0.0, False),
        (math.nan, math.nan, True),
        (math.nan, -math.nan, False),
        ("a", Symbol("a"), False),
        ("a", b"a", False),
        (MERSENNE, 2 * MERSENNE, False),
        ([1, 2], (1, 2), True),
        ([1], ValueSet([1]), False),
        ({1, 2}, frozenset([2, 1]), True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, MappingProxyType({"a": 1}), True),
        (b"ab", bytearray(b"ab"), True),
        (P(1), Record("p", [1]), True),
        (P(1), P(1.0), False),
        (PP(1, 2), P(1), False),
        (Record("p", []), Symbol("p"), False),
        (Record(1, [2]), Record(True, [2]), False),
        ([], {}, False),
        ([], set(), False),
        (REFS[0], REFS[0], True),
        (REFS[0], REFS[1], False),
        (REFS[0], Ref(REFS[0].facet, REFS[0].entity), False),
    ],
)
def test_named_pairs(a: Any, b: Any, same: bool) -> None:
    """The cases on which systems differ, one by one."""
    assert identical(a, b) is same


def test_subclasses_of_atoms_are_their_atoms() -> None:
    """A member of an IntEnum is its number, of a StrEnum its string, a named tuple a sequence."""
    color = enum.IntEnum("color", ["RED"])
    word = enum.StrEnum("word", ["GO"])
    pair = namedtuple("pair", ["x", "y"])  # noqa: PYI024  (the plain kind is what is tested)
    for value, plain in [(color.RED, 1), (word.GO, "go"), (pair(1, 2), (1, 2)), (np.float64(1.5), 1.5)]:
        assert identical(value, plain)
        assert type(thaw(freeze(value))) is type(plain)


def test_bignums_that_hash_alike_do_not_collide() -> None:
    """Multiples of 2**61 - 1, which Python hashes to 0, have hashes of their own as values."""
    forms = [freeze(n * MERSENNE) for n in range(1, 1000)]
    assert len({hash(form) for form in forms}) > 990
    assert [thaw(form) for form in forms] == [n * MERSENNE for n in range(1, 1000)]


@pytest.mark.parametrize("wrap", [list, lambda items: Record("point", items), lambda items: [items[:2], *items[2:]]])
def test_no_two_compounds_of_small_numbers_have_one_hash(wrap: Callable[[list[int]], Any]) -> None:
    """Although hash(-1) == hash(-2): points of a grid around 0 are values like others."""
    forms = [freeze(wrap(list(point))) for point in itertools.product(range(-5, 6), repeat=4)]
    assert len({*map(hash, forms)}) == len({*forms}) == len(forms)


def test_minus_two_is_an_integer_like_others() -> None:
    """It has a form of its own, and nobody sees that."""
    numbers = [-(2**80), -(2**61), -3, -2, -1, 0, 2**61, 2**80]
    assert sorted(map(freeze, random.Random(1).sample(numbers, 8)), key=order) == [*map(freeze, numbers)]
    assert [thaw(freeze(number)) for number in numbers] == numbers
    assert thaw(freeze(Record("p", [-2]))) == Record("p", [-2])
    assert identical({-2, -1}, {-1, -2})
    assert not identical(-2, -2.0)
    assert match([capture(int)], [-2]) == (-2,)
    assert match([-2], [-2]) == ()
    assert freeze([-2])[1] is freeze(-2) is MINUS_TWO  # one form, so that lists of it cost what others do
    assert unparse([-2, {-2: {-2}}]) == "[-2 {-2: #{-2}}]"


def test_a_value_is_a_snapshot() -> None:
    """A list changed after freezing changes nothing in the frozen form."""
    inner = [1]
    form = freeze({"a": inner})
    inner.append(2)
    assert thaw(form) == {"a": [1]}


# ------------------------------------------------------------------------------------------- what is no value


def _cyclic_list() -> Any:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    return cyclic


def _cyclic_dict() -> Any:
    cyclic: dict[str, Any] = {}
    cyclic["self"] = [cyclic]
    return cyclic


def _deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@attrs.frozen
class Plain:
    """An attrs class that is no record."""

    x: int = 0


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "ABSENT"),
        (print, "function"),
        (lambda: 0, "function"),
        (P, "the class P is not a value (did you mean an instance of it?)"),
        (np.array([1]), ".tolist()"),
        (Plain(), "@record"),
        (_cyclic_list(), "cyclic"),
        (_cyclic_dict(), "cyclic"),
        (_deep(MAX_DEPTH + 1), "deeper than"),
        (object(), "object is not a value"),
        (1j, "complex is not a value"),
        (Fraction(1, 2), "Fraction is not a value"),
        (range(3), "range is not a value"),
        (iter([]), "list_iterator is not a value"),
        (enum.Enum("color", ["RED"]).RED, "is not a value"),  # type: ignore[attr-defined]
        (capture(), "not a value"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], P, lambda x: {"k": x}, lambda x: Record("r", [x])])
def test_what_is_no_value(value: Any, says: str, wrap: Any) -> None:
    """Whatever is no value is refused wherever it stands, in words that name it and the remedy; it is a TypeError."""
    with pytest.raises(NotAValue) as raised:
        freeze(wrap(value))
    assert says in str(raised.value)
    assert isinstance(raised.value, TypeError)
    assert len(str(raised.value)) < 500


def test_the_deepest_value() -> None:
    """Nesting up to the limit works, and hashing it too."""
    form = freeze(_deep(MAX_DEPTH))
    assert hash(form) == hash(freeze(_deep(MAX_DEPTH)))
    assert freeze(thaw(form)) == form


# ---------------------------------------------------------------------------------------------------- records


@record("box-state")
class BoxState:
    """A record with a label of its own."""

    value: int


@record
class Person:
    """A record with all that attrs offers."""

    name: str
    age: int = 0
    tags: list[str] = attrs.Factory(list)


@record
class Checked:
    """A record with a converter and a validator."""

    n: int = attrs.field(converter=int, validator=attrs.validators.ge(0))


@record
class Keyword:
    """A record whose field must be named."""

    x: int = attrs.field(kw_only=True)


@record("person-2")
class Employee(Person):
    """A record that inherits fields."""

    boss: str = ""


def test_records_are_made_by_position_by_keyword_and_with_defaults() -> None:
    """All ways of Python to pass arguments work, and each instance gets a default list of its own."""
    assert Person("Ann") == Person(name="Ann", age=0, tags=[]) == Person("Ann", 0, [])
    assert Person("Ann").tags is not Person("Ann").tags
    assert Keyword(x=3).x == 3
    assert Checked("7").n == 7  # type: ignore[arg-type]  # the converter takes a string
    with pytest.raises(ValueError, match="-1"):
        Checked(-1)
    make: Any = Person
    wrong: tuple[Any, ...]
    for wrong in ((), ("Ann", 1, [], "more")):
        with pytest.raises(TypeError):
            make(*wrong)
    with pytest.raises(TypeError):
        Keyword(3)  # type: ignore[call-arg]


def test_records_do_not_change() -> None:
    """Fields can neither be set nor deleted nor added."""
    box = BoxState(1)
    with pytest.raises(AttributeError):
        box.value = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del box.value
    with pytest.raises(AttributeError):
        box.other = 2  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        Record("r").fields = ()
    assert not hasattr(box, "__dict__")


def test_records_print_as_they_are_written() -> None:
    """The repr of a record is an expression for it."""
    assert repr(BoxState(1)) == "BoxState(value=1)"
    assert repr(Record("r", [1, "x"])) == "Record(Symbol('r'), [1, 'x'])"
    assert repr(Person("Ann")) == "Person(name='Ann', age=0, tags=[])"


def test_records_are_equal_as_values_across_classes() -> None:
    """The label and the fields make a record what it is, not its class; and look-alike fields make it another."""

    @record("box-state")
    class Again:
        value: int

    box: Any = BoxState
    again: Any = Again(1)
    assert box(1) == again == Record("box-state", [1])
    assert len({box(1), again, Record("box-state", [1]), box(True), box(1.0)}) == 3
    assert box(1) != box(2)
    assert box([1]) == box((1,))
    assert box(1) != again.value
    assert Record("box-state", [1]) != (1,)


def test_records_thaw_to_the_newest_class() -> None:
    """A form becomes an instance of the class with its label and number of fields; the latest definition wins."""

    @record("two-classes")
    class First:
        a: int

    assert type(thaw(freeze(Record("two-classes", [1])))) is First

    @record("two-classes")
    class Second:
        b: int

    assert type(thaw(freeze(First(1)))) is Second
    assert type(thaw(freeze(Record("two-classes", [1, 2])))) is Record


def test_records_inherit() -> None:
    """A record class that extends another has its fields first, and a label of its own."""
    employee = Employee("Bob", 3, [], "Ann")
    assert fields_of(employee) == ("Bob", 3, [], "Ann")
    assert label_of(employee) is Symbol("person-2")
    assert thaw(freeze(employee)) == employee
    assert type(thaw(freeze(employee))) is Employee


def test_records_copy_and_pickle() -> None:
    """Values survive copying and pickling with their identity, symbols as the very same object."""
    for value in (
        BoxState(1),
        Person("Ann", 2, ["x"]),
        Record("r", [1, P(2)]),
        Dictionary({"a": 1}),
        ValueSet([1, True]),
    ):
        assert identical(pickle.loads(pickle.dumps(value)), value)
        assert identical(copy.deepcopy(value), value)
        assert copy.copy(value) == value
    assert pickle.loads(pickle.dumps(Symbol("a"))) is Symbol("a")
    assert copy.deepcopy(Symbol("a")) is Symbol("a")


def test_a_record_of_what_is_no_value_can_still_be_compared() -> None:
    """A record class applied to patterns compares and hashes by its fields."""
    assert P(capture()) == P(capture())
    assert P(capture()) != P(capture(int))
    assert hash(P(capture())) == hash(P(capture()))
    assert Observe({1}, REFS[0]) == Observe({1}, REFS[0])  # no pattern, but no reason to fail at ==


@given(st.lists(values(), max_size=4))
def test_hashable_collections_agree_with_identity(items: list[Any]) -> None:
    """Dictionary, ValueSet and Record are equal, and hash alike, just as their frozen forms are."""
    pairs = [(n, item) for n, item in enumerate(items)]
    for make in (ValueSet, lambda x: Record("r", x), lambda x: Dictionary(pairs)):
        a, b = make(items), make(list(reversed(list(reversed(items)))))
        assert a == b
        assert hash(a) == hash(b)


def test_default_arguments_of_records() -> None:
    """A default stands in the frozen form as any other value does."""
    assert freeze(Q()) == (Symbol("q"), 0, "", freeze(False))


# ---------------------------------------------------------------------------------------------------- symbols


def test_there_is_one_symbol_of_a_name_whoever_asks() -> None:
    """Threads that ask at once get the same one; when nobody has it any more, the next who asks gets one, too."""

    def asked(_: int) -> list[Symbol]:
        for n in range(500):
            Symbol(f"asked {n}")  # which is gone at once, unless another thread has it
        return [Symbol(f"asked {n}") for n in range(500)]

    with ThreadPoolExecutor(8) as threads:
        symbols = [*threads.map(asked, range(40))]
    assert all(len({*map(id, alike)}) == 1 for alike in zip(*symbols, strict=True))
    assert [symbol.name for symbol in symbols[0]] == [f"asked {n}" for n in range(500)]


def test_symbols_are_interned() -> None:
    """One name, one object; it is not a string, and cannot be changed."""
    a = Symbol("a")
    assert a is Symbol("a")
    assert a != Symbol("b")
    assert str(a) == "a"
    assert repr(a) == "Symbol('a')"
    with pytest.raises(AttributeError):
        a.name = "b"
    with pytest.raises(NotAValue, match="a symbol's name is a str"):
        Symbol(1)  # type: ignore[arg-type]


def test_the_end_of_a_program_forgets_symbols_in_silence() -> None:
    """Also when what its module has under names has gone before them, as it may at the end of the interpreter."""
    program = """if True:
        from syndicate.values import value
        last = [value.Symbol(str(n)) for n in range(99)]
        names = vars(value)
        names.update(dict.fromkeys([name for name in names if not name.startswith("__")]))
        del last[:]
    """
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_symbols_are_forgotten() -> None:
    """A name that nobody uses any more takes no space."""
    gc.collect()
    before = len(Symbol._known)
    survivors = [Symbol(f"ever-new-{n}") for n in range(1000)]
    assert len(Symbol._known) == before + 1000
    del survivors
    gc.collect()
    assert len(Symbol._known) == before

"""Byte code: a function of a rule is read, byte code by byte code, to see what it does with lattice values.

It is as if the function were called with what is known of its arguments in place of these (abstract values,
:mod:`~syndicate.bloom.rules.abstract_value`): both paths are followed where a test may go either way, a loop over what
may grow is gone through not at all and once, functions that are called are read too.  What is not monotone is noted as
an **offence**: of which attribute, and why.  What cannot be seen is one too, an :class:`Unseen`.

Contract: every path through the function is followed, or :class:`Unreadable` is raised.

Source: Cousot and Cousot 1977; ``docs/design/bloom.md``, "Functions that read lattices".
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dis import Instruction
from typing import Final, TypeAlias

from attrs import define, evolve

from syndicate.bloom.rules.abstract_value import (
    NOTHING,
    Abstract,
    BoundMethod,
    Calls,
    Closure,
    Items,
    KnownObject,
    LatticeContent,
    LatticeElement,
    Of,
    Outcome,
    PathCondition,
    Plain,
    Step,
    Test,
    Unreadable,
    Unseen,
    chosen,
    instructions_of,
    is_growing,
    may_show,
    of,
    of_growing,
)
from syndicate.values.value import Value

MOST_CALLS: Final = 20
"""How deep functions call each other."""

_WITH_TRUTH: Final = frozenset({bool, int, str, tuple, list, dict, bytes, float})
"""Whose truth is that of their content."""


@define(eq=False)
class ReaderState:
    """Where a reader is."""

    at: int
    stack: list[Value]
    names: dict[str, Abstract]
    path: PathCondition
    yields: tuple[Abstract, ...] = ()
    """What a generator has given."""
    loops: tuple[tuple[int, Mapping[str, Abstract]], ...] = ()
    closed: frozenset[str] = frozenset()
    """Names that inner functions use."""

    def fork(self, at: int, *steps: Step) -> ReaderState:
        """Another that goes on elsewhere."""
        return evolve(self, at=at, stack=[*self.stack], names={**self.names}, path=(*self.path, *steps))


class Reader:
    """Reads one function; *offences* say why an attribute is not read in a monotone way."""

    def __init__(self, calls: Calls, limit: int) -> None:
        """*calls* returns what attributes, calls and operators give; *limit* bounds the byte codes that are read."""
        self.offences: dict[str, str] = {}
        self.calls = calls
        self.left = limit

    def offend(self, attributes: Of, why: str) -> None:
        """Note that some attributes are not read in a monotone way; what is seen counts more than what is not."""
        for name in attributes:
            if name not in self.offences or isinstance(self.offences[name], Unseen):
                self.offences[name] = why

    def read(self, function: Closure, names: dict[str, Abstract], path: PathCondition, depth: int) -> list[Outcome]:
        """What a function gives when it is called with *names*, on each path; raises :class:`Unreadable`."""
        if depth > MOST_CALLS:
            raise Unreadable
        return Frame(self, function, depth).run(names, path)

    def truth(self, abstract: Abstract) -> bool | Test | None:
        """Whether something is true; None if that depends on plain values only."""
        match abstract:
            case Test():
                return abstract
            case LatticeContent() if may_show(abstract):
                return Test(abstract.of)
            case LatticeContent():
                self.offend(abstract.of, "reveal()")
            case Items():
                return bool(abstract.items or abstract.keys)
            case KnownObject(value) if value is None or type(value) in _WITH_TRUTH:
                return bool(value)
            case BoundMethod() if is_growing(abstract):  # an attribute of what grows
                self.offend(of_growing(abstract), Unseen(abstract.name))
        return None


class Frame:
    """A call of a function that is read."""

    def __init__(self, reader: Reader, function: Closure, depth: int) -> None:
        """Of a function; *depth* says how many call each other."""
        self.reader, self.function, self.depth = reader, function, depth
        self.code = function.code
        self.steps = instructions_of(self.code)
        self.index = {one.offset: at for at, one in enumerate(self.steps)}
        self.generates = bool(self.code.co_flags & (inspect.CO_GENERATOR))
        if self.code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            raise Unreadable
        if any(one.opname == "PUSH_EXC_INFO" for one in self.steps):  # what raises may depend on what has grown
            raise Unreadable
        self.pending: list[ReaderState] = []
        self.outcomes: list[Outcome] = []
        self.keywords: tuple[str, ...] = ()

    def run(self, names: dict[str, Abstract], path: PathCondition) -> list[Outcome]:
        """All outcomes."""
        self.pending.append(ReaderState(0, [], names, path))
        while self.pending:
            state = self.pending.pop()
            while state.at >= 0:
                self.reader.left -= 1
                if self.reader.left < 0:
                    raise Unreadable
                step = self.steps[state.at]
                state.at += 1
                handler = HANDLERS.get(step.opname)
                if handler is None:
                    raise Unreadable
                handler(self, state, step)
        return self.outcomes

    def goto(self, state: ReaderState, offset: int) -> None:
        """Go on at an offset; back only to the head of a loop over something."""
        at = self.index[offset]
        if at < state.at and self.steps[at].opname != "FOR_ITER":
            raise Unreadable
        state.at = at

    def fork(self, state: ReaderState, offset: int, abstract: Abstract, jumps: bool, *, pops: bool = False) -> None:
        """Go on where the truth of *abstract* says: at *offset* if it is *jumps*; else *pops* takes it away."""
        truth, node = self.reader.truth(abstract), object()
        for came in (True, False) if not isinstance(truth, bool) else (truth,):
            steps: tuple[Step, ...] = ((node, truth.of, came is not truth.turned),) if isinstance(truth, Test) else ()
            other = state.fork(state.at, *steps)
            if isinstance(abstract, Test) or (
                isinstance(abstract, LatticeContent) and not abstract.many
            ):  # asked again, it says so
                other.stack = [KnownObject(came) if one is abstract else one for one in other.stack]
                other.names = {name: KnownObject(came) if one is abstract else one for name, one in other.names.items()}
            if came is jumps:
                self.goto(other, offset)
            elif pops:
                other.stack.pop()
            self.pending.append(other)
        state.at = -1

    def answer(self, state: ReaderState, outcomes: list[Outcome]) -> None:
        """Go on with each outcome of a call."""
        for path, abstract in outcomes[1:]:
            other = state.fork(state.at)
            other.path = path
            other.stack.append(abstract)
            self.pending.append(other)
        if outcomes:
            state.path, abstract = outcomes[0]
            state.stack.append(abstract)
        else:  # it always raises
            state.at = -1


Handler: TypeAlias = Callable[[Frame, ReaderState, Instruction], None]
HANDLERS: Final[dict[str, Handler]] = {}


def _arg(step: Instruction) -> int:
    assert step.arg is not None  # wherever a handler reads it
    return step.arg


def _on(*names: str) -> Callable[[Handler], Handler]:
    def note(handler: Handler) -> Handler:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return note


class _Null:
    """What the interpreter puts beside a function to be called that is no method."""


NULL: Final = _Null()


@_on("RESUME", "NOP", "CACHE", "PRECALL", "COPY_FREE_VARS", "MAKE_CELL", "EXTENDED_ARG", "TO_BOOL", "NOT_TAKEN")
def _nothing(frame: Frame, state: ReaderState, step: Instruction) -> None:
    """These change nothing that a reader sees: the truth of what is on top is asked for by what follows."""


@_on("GET_ITER", "CONVERT_VALUE")
def _same(frame: Frame, state: ReaderState, step: Instruction) -> None:
    pass


@_on("PUSH_NULL")
def _null(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.stack.append(NULL)


@_on("POP_TOP", "END_FOR", "POP_ITER")
def _pop(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.stack.pop()


@_on("RETURN_GENERATOR")
def _generator(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.stack.append(Plain())


@_on("COPY")
def _copy(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.stack.append(state.stack[-_arg(step)])


@_on("SWAP")
def _swap(frame: Frame, state: ReaderState, step: Instruction) -> None:
    stack = state.stack
    stack[-1], stack[-_arg(step)] = stack[-_arg(step)], stack[-1]


@_on("KW_NAMES")
def _kw_names(frame: Frame, state: ReaderState, step: Instruction) -> None:
    frame.keywords = frame.code.co_consts[_arg(step)]


# ------------------------------------------------------------------------------------------------------------- names


@_on("LOAD_CONST", "LOAD_SMALL_INT")
def _const(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.stack.append(KnownObject(step.argval))


def _local(frame: Frame, state: ReaderState, name: str) -> Abstract:
    if name in state.names:
        return state.names[name]
    if name in frame.function.free:
        return frame.function.free[name]
    raise Unreadable


@_on("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF", "LOAD_CLOSURE")
def _load(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.stack.append(_local(frame, state, step.argval))


@_on("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW")
def _load_two(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.stack.extend(_local(frame, state, name) for name in step.argval)


@_on("LOAD_FAST_AND_CLEAR")
def _load_clear(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.stack.append(state.names.pop(step.argval, NULL))


def _keep(state: ReaderState, name: str, abstract: Value) -> None:
    if name in state.closed:  # an inner function may have been made with what it was before
        raise Unreadable
    if abstract is NULL:
        state.names.pop(name, None)
    else:
        state.names[name] = abstract


@_on("STORE_FAST", "STORE_DEREF")
def _store(frame: Frame, state: ReaderState, step: Instruction) -> None:
    if step.argval in frame.code.co_freevars:  # of the function around
        raise Unreadable
    _keep(state, step.argval, state.stack.pop())


@_on("STORE_FAST_STORE_FAST")
def _store_two(frame: Frame, state: ReaderState, step: Instruction) -> None:
    for name in step.argval:
        _keep(state, name, state.stack.pop())


@_on("STORE_FAST_LOAD_FAST")
def _store_load(frame: Frame, state: ReaderState, step: Instruction) -> None:
    stored, loaded = step.argval
    _keep(state, stored, state.stack.pop())
    state.stack.append(_local(frame, state, loaded))


@_on("DELETE_FAST")
def _delete(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.names.pop(step.argval, None)


@_on("LOAD_GLOBAL")
def _global(frame: Frame, state: ReaderState, step: Instruction) -> None:
    around = frame.function.around
    if step.argval in around:
        abstract: Abstract = KnownObject(around[step.argval])
    else:
        builtin = around.get("__builtins__", {})
        names = builtin if isinstance(builtin, dict) else vars(builtin)
        if step.argval not in names:
            raise Unreadable
        abstract = KnownObject(names[step.argval])
    if _arg(step) & 1:
        state.stack.append(NULL)
    state.stack.append(abstract)


@_on("LOAD_ATTR", "LOAD_METHOD")
def _attribute(frame: Frame, state: ReaderState, step: Instruction) -> None:
    outcomes = frame.reader.calls.attribute(state.stack.pop(), step.argval, state.path, frame.depth)
    if step.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and _arg(step) & 1):
        state.stack.append(NULL)
    frame.answer(state, outcomes)


# ------------------------------------------------------------------------------------------------------------- calls


@_on("MAKE_FUNCTION")
def _function(frame: Frame, state: ReaderState, step: Instruction) -> None:
    stack, code = state.stack, state.stack.pop().value
    free: dict[str, Abstract] = {}
    closure = Closure(code, frame.function.around, free)
    flags = _arg(step) if sys.version_info < (3, 13) else 0
    for flag in (8, 4, 2, 1):
        if flags & flag:
            closure = _with(state, closure, flag, stack.pop())
    state.stack.append(closure)


@_on("SET_FUNCTION_ATTRIBUTE")
def _function_attribute(frame: Frame, state: ReaderState, step: Instruction) -> None:
    closure = state.stack.pop()
    state.stack.append(_with(state, closure, _arg(step), state.stack.pop()))


def _with(state: ReaderState, closure: Closure, flag: int, part: Abstract) -> Closure:
    match flag, part:
        case 8, Items():
            free = dict(zip(closure.code.co_freevars, part.items, strict=True))
            state.closed |= free.keys()
            return evolve(closure, free=free)
        case 1, Items():
            return evolve(closure, defaults=part.items)
        case 1, KnownObject(value):
            return evolve(closure, defaults=tuple(map(KnownObject, value)))
        case 2, Items():
            return evolve(closure, named=_named(part))
        case 4, _:
            return closure
    raise Unreadable


def _named(items: Items) -> dict[str, Abstract]:
    """Arguments by their names, which a dictionary has."""
    names = [key.value for key in items.keys if isinstance(key, KnownObject)]
    if len(names) < len(items.keys):
        raise Unreadable
    return dict(zip(names, items.items, strict=True))


@_on("CALL", "CALL_KW")
def _call(frame: Frame, state: ReaderState, step: Instruction) -> None:
    stack = state.stack
    names: tuple[str, ...] = stack.pop().value if step.opname == "CALL_KW" else frame.keywords
    frame.keywords = ()
    args = [stack.pop() for _ in range(_arg(step))][::-1]
    second, first = stack.pop(), stack.pop()
    if first is NULL or second is NULL:
        callee = second if first is NULL else first
    else:
        callee, args = first, [second, *args]
    plain, named = (args[: -len(names)], dict(zip(names, args[-len(names) :], strict=True))) if names else (args, {})
    frame.answer(state, frame.reader.calls.call(callee, plain, named, state.path, frame.depth))


@_on("CALL_FUNCTION_EX")
def _call_spread(frame: Frame, state: ReaderState, step: Instruction) -> None:
    stack = state.stack
    named = stack.pop() if _arg(step) & 1 else Items((), dict)
    arguments = stack.pop()
    one = stack.pop()
    other: Value = stack.pop() if stack and (stack[-1] is NULL or one is NULL) else NULL
    callee: Value = other if one is NULL else one
    spread = frame.reader.calls.spread(arguments)
    if spread is None or not isinstance(named, Items):
        frame.reader.calls.unseen([callee, arguments, named], callee)
        stack.append(Plain())
        return
    frame.answer(state, frame.reader.calls.call(callee, spread, _named(named), state.path, frame.depth))


@_on("CALL_INTRINSIC_1")
def _intrinsic(frame: Frame, state: ReaderState, step: Instruction) -> None:
    if _arg(step) == 6:
        _to_tuple(frame, state, step)
    elif _arg(step) not in (3, 5):  # the end of a generator; unary plus
        raise Unreadable


@_on("RETURN_VALUE")
def _return(frame: Frame, state: ReaderState, step: Instruction) -> None:
    _end(frame, state, state.stack.pop())


@_on("RETURN_CONST")
def _return_const(frame: Frame, state: ReaderState, step: Instruction) -> None:
    _end(frame, state, KnownObject(step.argval))


def _end(frame: Frame, state: ReaderState, abstract: Abstract) -> None:
    outcome = Items(state.yields, list, loose=True) if frame.generates else abstract
    frame.outcomes.append((state.path, outcome))
    state.at = -1


@_on("RAISE_VARARGS", "RERAISE")
def _raise(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.at = -1


@_on("LOAD_ASSERTION_ERROR")
def _assertion(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.stack.append(KnownObject(AssertionError))


@_on("YIELD_VALUE")
def _yield(frame: Frame, state: ReaderState, step: Instruction) -> None:
    value = state.stack.pop()
    state.yields = (*state.yields, cleaned(value) if frame.code.co_name == "<genexpr>" else value)
    state.stack.append(NOTHING)


# ------------------------------------------------------------------------------------------------------------- paths


@_on("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(frame: Frame, state: ReaderState, step: Instruction) -> None:
    frame.goto(state, step.argval)


@_on("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_IF_FALSE")
def _if_false(frame: Frame, state: ReaderState, step: Instruction) -> None:
    frame.fork(state, step.argval, state.stack.pop(), False)


@_on("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_IF_TRUE")
def _if_true(frame: Frame, state: ReaderState, step: Instruction) -> None:
    frame.fork(state, step.argval, state.stack.pop(), True)


@_on("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP")
def _or_pop(frame: Frame, state: ReaderState, step: Instruction) -> None:
    frame.fork(state, step.argval, state.stack[-1], step.opname == "JUMP_IF_TRUE_OR_POP", pops=True)


@_on("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE", "POP_JUMP_IF_NONE")
def _if_none(frame: Frame, state: ReaderState, step: Instruction) -> None:
    frame.fork(state, step.argval, frame.reader.calls.is_none(state.stack.pop()), True)


@_on("POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE", "POP_JUMP_IF_NOT_NONE")
def _if_some(frame: Frame, state: ReaderState, step: Instruction) -> None:
    frame.fork(state, step.argval, frame.reader.calls.is_none(state.stack.pop()), False)


@_on("FOR_ITER")
def _loop(frame: Frame, state: ReaderState, step: Instruction) -> None:
    head, over = state.at - 1, state.stack[-1]
    again = next((names for at, names in state.loops if at == head), None)
    if isinstance(over, Items) and not over.loose:  # as often as there are items
        if over.items:
            state.stack[-1] = Items(over.items[1:], list)
            state.stack.append(over.items[0])
        else:
            _leave(frame, state, step)
        return
    if again is not None:
        if not _alike(again, state.names):
            raise Unreadable
        state.loops = tuple(loop for loop in state.loops if loop[0] != head)
        _leave(frame, state, step)
        return
    grows, element = frame.reader.calls.element(over)
    if grows and not _collects(frame, head, step.argval):
        raise Unreadable
    node = object()
    none = state.fork(state.at, *([(node, grows, False)] if grows else []))
    _leave(frame, none, step)
    frame.pending.append(none)
    if grows:
        state.path = (*state.path, (node, grows, True))
    state.loops = (*state.loops, (head, dict(state.names)))
    state.stack.append(element)


def _leave(frame: Frame, state: ReaderState, step: Instruction) -> None:
    """After the last element."""
    state.stack.pop()
    at = frame.index[step.argval]
    if frame.steps[at].opname == "END_FOR":  # it is skipped, and what takes the iterator away too
        at += 1 + (sys.version_info >= (3, 13))
    state.at = at


def _collects(frame: Frame, head: int, end: int) -> bool:
    """Whether a loop is a comprehension's, or gives what it makes of each element."""
    body = frame.steps[head : frame.index[end]]
    return any(
        one.opname == "YIELD_VALUE"
        or (one.opname in ("LIST_APPEND", "SET_ADD", "MAP_ADD") and one.arg is not None and one.arg > 1)
        for one in body
    )


def _alike(before: Mapping[str, Abstract], after: Mapping[str, Abstract]) -> bool:
    """Whether another round would not meet with anything else."""
    return all(
        _like(before.get(name), abstract) for name, abstract in after.items() if is_growing(abstract) or of(abstract)
    )


def _like(one: Value, other: Value) -> bool:
    if one is None:  # the loop's own, made again in each round
        return True
    if isinstance(one, Items) and isinstance(other, Items) and len(one.items) == len(other.items):
        return all(map(_like, one.items, other.items))
    return one is other or (isinstance(one, (LatticeElement, LatticeContent, Test)) and one == other)


# ------------------------------------------------------------------------------------------------------------- values


@_on("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET")
def _build(frame: Frame, state: ReaderState, step: Instruction) -> None:
    kind = {"BUILD_TUPLE": tuple, "BUILD_LIST": list, "BUILD_SET": set}[step.opname]
    items = [state.stack.pop() for _ in range(_arg(step))][::-1]
    state.stack.append(Items(tuple(items), kind))


@_on("BUILD_MAP")
def _build_map(frame: Frame, state: ReaderState, step: Instruction) -> None:
    both = [state.stack.pop() for _ in range(2 * _arg(step))][::-1]
    state.stack.append(Items(tuple(both[1::2]), dict, (), tuple(both[::2])))


@_on("BUILD_CONST_KEY_MAP")
def _build_keyed(frame: Frame, state: ReaderState, step: Instruction) -> None:
    keys = state.stack.pop().value
    items = [state.stack.pop() for _ in range(_arg(step))][::-1]
    state.stack.append(Items(tuple(items), dict, (), tuple(map(KnownObject, keys))))


@_on("BUILD_STRING", "BUILD_SLICE", "FORMAT_VALUE", "FORMAT_SIMPLE", "FORMAT_WITH_SPEC")
def _build_plain(frame: Frame, state: ReaderState, step: Instruction) -> None:
    many = {"FORMAT_SIMPLE": 1, "FORMAT_WITH_SPEC": 2}.get(step.opname, _arg(step))
    if step.opname == "FORMAT_VALUE":
        many = 2 if _arg(step) & 4 else 1
    parts = [state.stack.pop() for _ in range(many)][::-1]
    if step.opname == "BUILD_SLICE" and all(isinstance(one, KnownObject) for one in parts):
        state.stack.append(KnownObject(slice(*[one.value for one in parts])))
        return
    frame.reader.calls.unseen(parts, "a text")
    state.stack.append(Plain(chosen(parts)))


@_on("LIST_EXTEND", "SET_UPDATE")
def _extend(frame: Frame, state: ReaderState, step: Instruction) -> None:
    iterable = state.stack.pop()
    items = frame.reader.calls.spread(iterable)
    whole = state.stack[-_arg(step)]
    if items is None:
        frame.reader.calls.unseen([iterable], "*")
        items = [Plain(chosen([iterable]))]
    state.stack[-_arg(step)] = evolve(whole, items=(*whole.items, *items))


@_on("DICT_UPDATE", "DICT_MERGE")
def _update(frame: Frame, state: ReaderState, step: Instruction) -> None:
    mapping, whole = state.stack.pop(), state.stack[-_arg(step)]
    if not isinstance(mapping, Items):
        raise Unreadable
    state.stack[-_arg(step)] = evolve(whole, items=(*whole.items, *mapping.items), keys=(*whole.keys, *mapping.keys))


@_on("LIST_APPEND", "SET_ADD")
def _append(frame: Frame, state: ReaderState, step: Instruction) -> None:
    item, whole = state.stack.pop(), state.stack[-_arg(step)]
    loop = _arg(step) > 1
    new = cleaned(item) if loop else item
    state.stack[-_arg(step)] = evolve(whole, items=(*whole.items, new), loose=whole.loose or loop)


@_on("MAP_ADD")
def _add(frame: Frame, state: ReaderState, step: Instruction) -> None:
    value, key = state.stack.pop(), state.stack.pop()
    whole = state.stack[-_arg(step)]
    items, keys = (*whole.items, cleaned(value)), (*whole.keys, cleaned(key))
    state.stack[-_arg(step)] = evolve(whole, items=items, keys=keys, loose=True)


def cleaned(abstract: Abstract) -> Abstract:
    """What a comprehension has of each element: it is no longer one of them, whichever."""
    if isinstance(abstract, Plain):
        return Plain()
    return evolve(abstract, items=tuple(map(cleaned, abstract.items))) if isinstance(abstract, Items) else abstract


@_on("LIST_TO_TUPLE")
def _to_tuple(frame: Frame, state: ReaderState, step: Instruction) -> None:
    state.stack[-1] = evolve(state.stack[-1], kind=tuple)


@_on("UNPACK_SEQUENCE")
def _unpack(frame: Frame, state: ReaderState, step: Instruction) -> None:
    iterable = state.stack.pop()
    items = frame.reader.calls.spread(iterable)
    if items is None or len(items) != _arg(step):
        frame.reader.calls.unseen([iterable], "unpacking")
        items = [Plain(chosen([iterable])) for _ in range(_arg(step))]
    state.stack.extend(reversed(items))


def _operator(frame: Frame, state: ReaderState, name: str, operands: Sequence[Abstract]) -> None:
    frame.answer(state, frame.reader.calls.operator(name, operands, state.path, frame.depth))


@_on("BINARY_OP")
def _binary(frame: Frame, state: ReaderState, step: Instruction) -> None:
    right, left = state.stack.pop(), state.stack.pop()
    _operator(frame, state, step.argrepr, (left, right))


@_on("BINARY_SUBSCR")
def _subscript(frame: Frame, state: ReaderState, step: Instruction) -> None:
    right, left = state.stack.pop(), state.stack.pop()
    _operator(frame, state, "[]", (left, right))


@_on("BINARY_SLICE")
def _slice(frame: Frame, state: ReaderState, step: Instruction) -> None:
    end, start, left = state.stack.pop(), state.stack.pop(), state.stack.pop()
    constant = isinstance(start, KnownObject) and isinstance(end, KnownObject)
    part: Abstract = KnownObject(slice(start.value, end.value)) if constant else Plain(chosen([start, end]))
    _operator(frame, state, "[]", (left, part))


@_on("COMPARE_OP", "CONTAINS_OP", "IS_OP")
def _compare(frame: Frame, state: ReaderState, step: Instruction) -> None:
    right, left = state.stack.pop(), state.stack.pop()
    word = {"CONTAINS_OP": "in", "IS_OP": "is"}.get(step.opname)
    if word is None:
        _operator(frame, state, str(step.argval).removeprefix("bool(").removesuffix(")"), (left, right))
    else:
        _operator(frame, state, f"{'not ' if _arg(step) else ''}{word}", (left, right))


@_on("UNARY_NOT")
def _not(frame: Frame, state: ReaderState, step: Instruction) -> None:
    truth = frame.reader.truth(abstract := state.stack.pop())
    match truth:
        case bool():
            state.stack.append(KnownObject(not truth))
        case Test():
            state.stack.append(Test(truth.of, not truth.turned))
        case None:
            state.stack.append(Plain(chosen([abstract])))


@_on("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT")
def _unary(frame: Frame, state: ReaderState, step: Instruction) -> None:
    _operator(frame, state, step.opname, (state.stack.pop(),))

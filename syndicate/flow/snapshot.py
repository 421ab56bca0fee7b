"""Snapshots: a running circuit as bytes, from which the same circuit goes on, here or in another process.

A snapshot holds all that the nodes keep (collections, indices, traces, groups, what feedbacks will emit), and the
epoch; between two steps no other work is outstanding.  It does not hold the circuit: the program builds that, and what
it built is compared with what was saved, line by line (:mod:`syndicate.flow.structure`).

======================  =================================================================================
``PomoFlow``            eight bytes
format version, length  two and eight bytes, unsigned, big-endian
digest                  BLAKE2b, 16 bytes, of all bytes before and after it
frames                  each four bytes of length and that many of msgpack (:mod:`syndicate.flow.encoding`)
======================  =================================================================================

The first frame is the header; then come, for each thing that a node keeps, a frame that says what it is, and its
entries as columns, a few thousand to a frame, so that little is held twice.

Contract: restoring changes nothing unless all of it succeeds.  The digest finds damage; it is no signature, so who
restores bytes of an untrusted peer trusts that peer with the contents of the circuit, though not with more: no
code is run but the readers that this process registered, and no size is believed that the bytes do not bear out.

>>> from syndicate.flow import Circuit
>>> def build():
...     c = Circuit(); c.sink("seen", c.source("visits").distinct()); return c
>>> c = build(); _ = c.step({"visits": {"ann": 1}})
>>> other = build(); other.restore(c.snapshot())
>>> dict(other.step({"visits": {"ann": 1, "bob": 1}}))
{'seen': ZSet({'bob': 1})}

Source: ``docs/design/flow.md``, "Looking in, and snapshots" and "A step happens, or leaves no trace".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Final

from syndicate.errors import (
    InternalError,
    SnapshotDamaged,
    SnapshotError,
    SnapshotMismatch,
    StepFailed,
    UnhashableElement,
    UnwritableElement,
)
from syndicate.flow.contents import PAIRED, STATE_FORMATS, Content, settled_state
from syndicate.flow.element import Element, Key, Typed, all_plain, keys_of, natural, naturals
from syndicate.flow.encoding import packed, read, register, unpacked, written
from syndicate.flow.local_engine import LocalEngine
from syndicate.flow.node import Carries, Netlist
from syndicate.flow.scope import Cell
from syndicate.flow.structure import structure
from syndicate.flow.trace import NO_VALUE
from syndicate.garbage_collector import CollectorPause

if TYPE_CHECKING:
    from syndicate.flow.node import Node

__all__ = ["VERSION", "register", "restored", "snapshot"]

VERSION: Final = 1
_MAGIC: Final = b"PomoFlow"
_HEAD: Final = struct.Struct(">8sHQ")
_SIZE: Final = struct.Struct(">I")
_DIGEST: Final = 16
_CHUNK: Final = 4096


def snapshot(engine: LocalEngine) -> bytes:
    """The state of a circuit as bytes.

    Raises :class:`UnwritableElement`, which names the type and the node; :class:`StepFailed` within a step.
    """
    if engine.is_busy:
        raise StepFailed("a snapshot cannot be taken within a step")
    held = settled_state(engine)
    frames = [packed([structure(engine.circuit), engine.epoch, len(held)])]
    with CollectorPause():
        for (path, number), state in held.items():
            try:
                frames += _frames(engine.circuit.find(path), number, state)
            except UnwritableElement as error:
                raise UnwritableElement(f"{engine.circuit.find(path)}: {error}") from None
    body = b"".join(chain.from_iterable((_SIZE.pack(len(frame)), frame) for frame in frames))
    head = _HEAD.pack(_MAGIC, VERSION, len(body))
    return b"".join((head, _digest(head, body), body))


def restored(circuit: Netlist, data: bytes) -> LocalEngine:
    """An engine in the state of a snapshot; raises :class:`SnapshotDamaged` or :class:`SnapshotMismatch`."""
    frames = _opened(data)
    engine = LocalEngine(circuit)
    try:
        with CollectorPause():
            _fill(engine, frames)
    except SnapshotError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, UnhashableElement) as error:
        raise SnapshotDamaged(f"the snapshot holds what none should: {type(error).__name__}: {error}") from error
    return engine


def _fill(engine: LocalEngine, frames: Iterator[bytes]) -> None:
    circuit = engine.circuit
    (lines, epoch, count), _ = _next(frames)
    _compare(lines, structure(circuit))
    held = settled_state(engine)
    reader = _Reader()
    for _ in range(count):
        (path, number, kind, levels, note, entries, chunks), _ = _next(frames)
        state = held.pop((path, number), None)
        state_format = STATE_FORMATS.get(type(state))
        if state_format is None or state_format.kind != kind:
            where = f"node {path}" if state is None else str(circuit.find(path))
            raise SnapshotMismatch(
                f"the snapshot holds a {kind} of {where}, which keeps none here: another version of this library "
                "made it. Feed the circuit its inputs again"
            )
        state_format.put(state, reader.content(levels, entries, [_next(frames) for _ in range(chunks)]), note)
    if held or next(frames, None) is not None:
        raise SnapshotMismatch(
            "the snapshot holds less or more than this circuit keeps: another version of this library made it. Feed "
            "the circuit its inputs again"
        )
    if type(epoch) is not int or epoch < 0:
        raise SnapshotDamaged(f"the snapshot is of the epoch {epoch!r}")
    engine.epoch = epoch


# ------------------------------------------------------------------------------------------------------------- outside


def _digest(head: bytes, body: bytes | memoryview) -> bytes:
    digest = blake2b(head, digest_size=_DIGEST)
    digest.update(body)
    return digest.digest()


def _opened(data: bytes) -> Iterator[bytes]:
    """The frames, if all is well outside of them."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise SnapshotDamaged(f"a snapshot is bytes, not {type(data).__name__}")
    view = memoryview(data).cast("B")
    start = _HEAD.size + _DIGEST
    if len(view) < start or bytes(view[:8]) != _MAGIC:
        raise SnapshotDamaged(f"these {len(view)} bytes are no snapshot of a circuit")
    _, version, length = _HEAD.unpack(view[: _HEAD.size])
    if version != VERSION:
        raise SnapshotMismatch(
            f"the snapshot is of format {version}, and this library reads format {VERSION}: restore it with the "
            "version that made it"
        )
    if len(view) != start + length:
        raise SnapshotDamaged(
            f"the snapshot should be {start + length} bytes, and is {len(view)}: it was cut, or joined"
        )
    if _digest(bytes(view[: _HEAD.size]), view[start:]) != view[_HEAD.size : start]:
        raise SnapshotDamaged("the snapshot was changed since it was made: its digest is of other bytes")
    return _split(view[start:])


def _split(body: memoryview) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        (size,) = _SIZE.unpack(body[at : at + _SIZE.size])
        at += _SIZE.size
        if at + size > len(body):
            raise SnapshotDamaged("a frame of the snapshot ends beyond it")
        yield bytes(body[at : at + size])
        at += size


def _next(frames: Iterator[bytes]) -> tuple[Element, bool]:
    frame = next(frames, None)
    if frame is None:
        raise SnapshotDamaged("the snapshot ends too early")
    return unpacked(frame)


def _compare(saved: Sequence[str], here: Sequence[str]) -> None:
    """Raises :class:`SnapshotMismatch` with the first lines that differ."""
    pairs = list(zip_longest(saved, here, fillvalue="nothing"))
    different = [pair for pair in pairs if pair[0] != pair[1]]
    if different:
        first = "; ".join(f"saved was [{old}], here is [{new}]" for old, new in different[:3])
        more = f"; {len(different) - 3} more" if len(different) > 3 else ""
        raise SnapshotMismatch(f"the snapshot is of another circuit: {first}{more}. Build the circuit as it was")


# ------------------------------------------------------------------------------------------------------------- columns


def _frames(node: Node, number: int, state: Element) -> Iterator[bytes]:
    path, state_format = node.global_id, STATE_FORMATS.get(type(state))
    if state_format is None:
        raise InternalError(f"{node} keeps a {type(state).__name__}, which snapshots do not know")
    levels, entries = state_format.levels(state), state_format.entries(state)
    if type(state) in PAIRED and node.carries[0] is Carries.INDEXED:
        levels = "p" + levels[1:]
    if type(state) is Cell and len(path) > 1:
        entries = {}  # it is emptied when the next epoch begins
    chunks = -(-len(entries) // _CHUNK)
    yield packed([path, number, state_format.kind, levels, state_format.note(state), len(entries), chunks])
    if levels == "rows":
        rows = iter(entries)
        for _ in range(chunks):
            lefts, rights, weights = zip(*islice(rows, _CHUNK), strict=True)
            yield packed([_column("k", lefts), _column("k", rights), weights])
        return
    keys, values = iter(entries), iter(entries.values())
    for _ in range(chunks):
        yield packed(list(_columns(levels, list(islice(keys, _CHUNK)), list(islice(values, _CHUNK)))))


def _columns(levels: str, keys: Sequence[Element], values: Sequence[Element]) -> Iterator[Element]:
    """The keys; for each further level how many there are under each, and they; the leaves."""
    yield _column(levels[0], keys)
    for level in levels[1:-1]:
        yield list(map(len, values))
        yield _column(level, list(chain.from_iterable(values)))
        values = list(chain.from_iterable(map(dict.values, values)))
    yield _column(levels[-1], values)


def _column(level: str, items: Sequence[Element]) -> Element:
    if level in "tw":
        return items
    if level == "p" and not all_plain(items):
        items = [(natural(key), natural(value)) for key, value in items]
    kinds = set(map(type, items))
    if level == "v" and kinds == {type(NO_VALUE)}:
        return None
    return written(naturals(items) if Typed in kinds else items)


class _Reader:
    """Reads columns; equal keys become one object, as they mostly were, so that restoring does not take more memory."""

    def __init__(self) -> None:
        self.shared: dict[Key, Key] = {}
        self.typed = False

    def content(self, levels: str, size: int, chunks: Iterable[tuple[Element, bool]]) -> Content:
        """What a state keeps."""
        self.typed = False
        if levels == "rows":
            rows: list[Element] = []
            for columns, marked in chunks:
                keys, values, weights = columns
                read_columns = [self.column("k", each, marked) for each in (keys, values)]
                rows += zip(*read_columns, self.column("w", weights, marked), strict=True)
            entries: Element = rows
        else:
            entries = {}
            for columns, marked in chunks:
                entries.update(self.entries(levels, columns, marked))
        if len(entries) != size:
            raise SnapshotDamaged(f"the snapshot promises {size} entries and holds {len(entries)}")
        return Content(entries, self.typed)

    def entries(self, levels: str, columns: Sequence[Element], marked: bool) -> Iterable[tuple[Element, Element]]:
        """The entries of one frame."""
        if len(columns) != 2 * len(levels) - 2:
            raise SnapshotDamaged(f"the snapshot has a frame of {len(columns)} columns for {levels!r}")
        first, *middle, last = columns
        counts, inner = middle[::2], middle[1::2]
        keys = [self.column(levels[0], first, marked)]
        for level, column, below in zip(levels[1:-1], inner, [*counts, last][1:], strict=True):
            none = level == "v" and column is None
            keys.append([NO_VALUE] * len(below) if none else self.column(level, column, marked))
        values = self.column(levels[-1], last, marked)
        for under, numbers in zip(keys[:0:-1], reversed(counts), strict=True):
            pairs = zip(under, values, strict=True)
            values = [dict(islice(pairs, number)) for number in numbers]
            if sum(numbers) != len(under) or sum(map(len, values)) != len(under):
                raise SnapshotDamaged("the counts of the snapshot do not add up to what it holds")
        return zip(keys[0], values, strict=True)

    def column(self, level: str, content: Element, marked: bool) -> Sequence[Element]:
        """One column."""
        if type(content) is not tuple:
            raise SnapshotDamaged(f"the snapshot has a {type(content).__name__} in place of a column")
        kinds = set(map(type, content))
        if level in "tw":
            if not kinds <= ({int, tuple} if level == "t" else {int}):
                raise SnapshotDamaged(f"the snapshot has {', '.join(k.__name__ for k in kinds)} for integers")
            return content if kinds <= {int} else self.one(content)
        if marked:
            content = tuple(map(read, content))
        if level == "e":
            return self.one(content) if tuple in kinds and all_plain(content) else content
        if level == "p" and not all_plain(content):
            lefts, left = keys_of([key for key, _ in content])
            rights, right = keys_of([value for _, value in content])
            self.typed = self.typed or left or right
            return self.one(zip(lefts, rights, strict=True))
        keys, typed = keys_of(content)
        self.typed = self.typed or typed
        return self.one(keys)

    def one(self, keys: Iterable[Key]) -> list[Key]:
        """Each key as the object that was read first."""
        shared = self.shared.setdefault
        return [shared(key, key) for key in keys]

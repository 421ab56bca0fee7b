r"""SQLite's write-ahead log, looked at before SQLite does.

After a crash SQLite takes from the log what is whole, up to the first frame that is not, and forgets the rest.  For a
torn end that is right.  For a flipped bit in the middle it silently takes back whatever was committed after it.  The
two can be distinguished: commits are synced one after the other, so what a crash has torn belongs to the last one.
Where *two* commits follow the first bad frame, at least one of them was acknowledged, and the log is damaged.  So it is
where one bit of a frame's head would make the first bad frame whole: no torn write looks so, and with that head it
could no longer be decided which commit the frame belongs to.

That holds as long as no frames of an earlier run with the same salts lie behind the end; hence a journal begins each
run with an empty log.

>>> damage(b""), damage(bytes(32))
(None, None)
>>> damage(b"\x37" * 32)
'the head of its log is not what was written'

Source: SQLite, section 4; ``docs/design/storage.md``.
"""

from __future__ import annotations

import struct
from typing import Final

_MAGIC: Final = 0x377F0682
_HEAD: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")

_Sums = tuple[int, int]


def damage(log: bytes) -> str | None:
    """What is wrong with the contents of a log other than a torn end; None if nothing is.

    Costs about 25 ms for each MiB.
    """
    head = log[: _HEAD.size]
    if len(head) < _HEAD.size or not any(head):  # it was never begun
        return None
    magic, _, size, _, salt, pepper, *expected = _HEAD.unpack(head)
    order = ">" if magic & 1 else "<"
    sums = _summed(order, head[:24], (0, 0))
    if magic & ~1 != _MAGIC or sums != (*expected,):
        return "the head of its log is not what was written"
    bad: int | None = None
    commits = 0
    marked = (0, 0)
    step = _FRAME.size + size
    for number, at in enumerate(range(_HEAD.size, len(log) - step + 1, step), 1):
        page, mark, *salts, one, two = _FRAME.unpack_from(log, at)
        if bad is None:
            before = sums
            sums = _summed(order, log[at : at + 8] + log[at + _FRAME.size : at + step], before)
            if salts == [salt, pepper] and sums == (one, two) and page:
                continue
            if _one_bit_off(order, log[at : at + step], head[16:24], before):
                return f"frame {number} of its log is not what was written"
            bad = number
        if salts != [salt, pepper]:
            continue
        if mark:
            commits += marked != (number - 1, page)  # SQLite may pad a commit with copies of its last frame
            marked = (number, page)
    if commits < 2:
        return None
    return f"frame {bad} of its log is not what was written, and at least {commits - 1} later commits would be lost"


def _one_bit_off(order: str, frame: bytes, salts: bytes, sums: _Sums) -> bool:
    """Whether one other bit in what comes before the sums of a frame makes it one that follows *sums*."""
    written = _FRAME.unpack_from(frame)[4:]
    page = frame[_FRAME.size :]
    own, one, two = _summed(order, page, (0, 0)), *(_summed(order, bytes(len(page)), unit) for unit in ((1, 0), (0, 1)))
    for bit in range(128):
        head = bytearray(frame[:16])
        head[bit // 8] ^= 1 << bit % 8
        first, second = _summed(order, bytes(head[:8]), sums)  # the sums of the page are linear in these
        after = tuple([(o + first * f + second * s) & 0xFFFFFFFF for o, f, s in zip(own, one, two, strict=True)])
        if head[8:] == salts and after == written:
            return True
    return False


def _summed(order: str, data: bytes, sums: _Sums) -> _Sums:
    one, two = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two

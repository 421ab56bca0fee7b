"""Mutated frames for the decoders: whatever comes in, they give packets or a ProtocolError, soon, within memory.

``python -m tests.relay.protocol.codec.fuzz --frames 50000000 --codec all`` runs for hours, with a line of progress;
the suite
runs a million frames a codec.  A failure prints the seed, the number of the frame and the frame.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

from attrs import define

from relay.protocol.codec import Codec, Msgpack, Preserves, PreservesText
from relay.protocol.packets import A, Error, M, R, S, TurnPacket, WireRef, read, write
from syndicate import Dictionary, Record, Symbol, ValueSet
from syndicate.errors import ProtocolError
from syndicate.values.value import FALSE, Frozen, Value, freeze

CODECS: Final[dict[str, Callable[[], Codec]]] = {"msgpack": Msgpack, "preserves": Preserves, "text": PreservesText}
SLOW: Final = 0.050
"""Seconds that no frame may take, on two cores that have nothing else to do."""

_SPIN: Final = 0.0024
"""What the loop of :func:`pace` takes there."""

_PIECES: Final = {
    "msgpack": [
        *(b"\x91", b"\x92", b"\x9f", b"\x90", b"\xc0", b"\xc1", b"\xdc\xff\xff", b"\xdd\x00\x00\x80\x00", b"\x80"),
        *(b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xd9\xff", b"\xc6\x00\x10\x00\x00", b"\xdf\x00\x01\x00"),
        *(b"\xc7\x00\x04", b"\xc7\x00\x05", b"\xd5\x03\x92\x00", b"\xc7\x03\x03\x92\x00\x01", b"\xc7\x02\x02\xff\x00"),
        *(
            b"\xd4\x01\x41",
            b"\xd6\xff\x00\x00\x00\x00",
            b"\xcf" + b"\xff" * 8,
            b"\xd3" + b"\x80" * 8,
            b"\xcb" + b"\xff" * 8,
        ),
    ],
    "preserves": [
        *(b"\x80", b"\x81", b"\x84", b"\x85", b"\x86", b"\x86\x86", b"\x87\x08", b"\x87\x04", b"\xb0", b"\xb0\x00"),
        *(b"\xb4", b"\xb5", b"\xb6", b"\xb7", b"\xb6\xb5", b"\xb7\xb7", b"\xb0\x01\xff", b"\xb1\xff\xff\xff\x7f"),
        *(
            b"\xb0\x80\x01",
            b"\xb2\x80\x00",
            b"\xb3\xff\xff\xff\xff\x01",
            b"\x86\xb5\xb0\x00\xb0\x01\x05\x84",
            b"\x85\x80",
        ),
        *(
            b"\xb0\x09\xff" + b"\x00" * 8,
            b"\xb0\x08\x80" + b"\x00" * 7,
            b"\xb4\x84",
            b"\xb6\x80\x80\x84",
            b"\xb1\x01\xff",
        ),
    ],
    "text": [
        *(
            b"[",
            b"]",
            b"<",
            b">",
            b"{",
            b"}",
            b"#{",
            b"#[",
            b"#:",
            b"@",
            b":",
            b",",
            b'"',
            b"'",
            b"\\",
            b"#",
            b"# ",
            b"\n",
        ),
        *(b"#t", b"#f", b"#x", b'#x"', b'#xd"', b"#!", b"\\u", b"\\ud800", b"\\ud83d\\ude00", b"\\x", b"\xff", b"\xc3"),
        *(
            b"1" * 40,
            b"9" * 1300,
            b"-",
            b"1e999",
            b".5",
            b"-0.0",
            b"|a|",
            b";",
            b"(",
            b"=",
            b"#[AA==]",
            b'#"\\xff"',
            b"@#:[0 1]",
        ),
    ],
}


@define
class Report:
    """What came of so many frames."""

    frames: int = 0
    packets: int = 0
    refused: int = 0
    slowest: float = 0.0
    seconds: float = 0.0
    memory: int = 0
    """Growth of the process in KiB."""

    def __str__(self) -> str:
        return (
            f"{self.frames:,} frames, {self.packets:,} packets, {self.refused:,} refused, slowest "
            f"{self.slowest * 1000:.1f} ms, {self.seconds / max(self.frames, 1) * 1e6:.1f} us each, "
            f"{self.memory} KiB more"
        )


def value(rng: random.Random, depth: int = 0) -> Value:
    """A small random value of any kind."""
    kind = rng.randrange(8 if depth > 2 else 14)
    few = range(rng.randrange(4))
    match kind:
        case 0:
            return rng.randrange(-300, 300)
        case 1:
            return rng.choice((2**61 - 1, -(2**63), 2**64, -(2**200), 10**30, 2**61))
        case 2:
            return rng.choice((True, False, 1.5, -0.0, float("nan"), 1e300))
        case 3:
            return rng.choice(("", "hello", "ünï", 'quote " and \\', "line\n", "x" * 140))
        case 4:
            return rng.randbytes(rng.randrange(9))
        case 5 | 6:
            return Symbol(rng.choice(("a", "Says", "with space", "1.5", "", "'")))
        case 7:
            return "short"
        case 8 | 9:
            return [value(rng, depth + 1) for _ in few]
        case 10:
            return ValueSet([value(rng, depth + 1) for _ in few])
        case 11:
            return Dictionary([(value(rng, depth + 1), value(rng, depth + 1)) for _ in few])
    return Record(rng.choice(("Says", "Present", "p")), [value(rng, depth + 1) for _ in few])


def packet(rng: random.Random) -> Frozen:
    """A small random packet, most often a turn."""
    if not rng.randrange(12):
        return rng.choice((FALSE, write(Error("why", freeze(value(rng))))))
    ref = WireRef(rng.randrange(2), rng.randrange(9))
    attenuated = WireRef(1, 3, (freeze(value(rng)),))
    return write(
        TurnPacket(
            [
                (rng.randrange(5), event)
                for event in rng.sample(
                    [
                        (A, freeze(value(rng)), rng.randrange(200)),
                        (A, (Symbol("Observe"), freeze(value(rng)), ref), 7),
                        (A, (Symbol("p"), attenuated), 8),
                        (M, freeze(value(rng))),
                        (R, rng.randrange(200)),
                        (S, ref),
                    ],
                    rng.choice((1, 1, 1, 2)),
                )
            ]
        )
    )


def corpus(name: str, rng: random.Random, size: int = 600) -> list[bytes]:
    """Frames that are well-formed."""
    codec = CODECS[name]()
    frames = [codec.encode(packet(rng)) for _ in range(size)]
    return [frame for frame in frames if len(frame) < 120]


def mutants(name: str, seed: int) -> Iterator[bytes]:
    """Frames without end, each one or several changes away from a well-formed one."""
    rng = random.Random(seed)
    rand, pieces = rng.random, _PIECES[name]
    frames = corpus(name, rng)
    count, kinds = len(frames), len(pieces)
    while True:
        data = frames[int(rand() * count)]
        while True:
            size = len(data)
            place = int(rand() * (size + 1))
            kind = int(rand() * 16)
            if kind < 4:  # one byte is another, or has another bit
                byte = int(rand() * 256) if kind < 2 or place == size else data[place] ^ 1 << int(rand() * 8)
                data = data[:place] + bytes((byte,)) + data[place + 1 :]
            elif kind < 7:  # a head that means something stands there, or instead
                data = data[:place] + pieces[int(rand() * kinds)] + data[place + int(rand() * 3) :]
            elif kind < 9:  # cut out
                data = data[:place] + data[place + 1 + int(rand() * 8) :]
            elif kind < 10:  # cut off
                data = data[:place]
            elif kind < 12:  # spliced
                other = frames[int(rand() * count)]
                data = data[:place] + other[int(rand() * len(other)) :]
            elif kind < 13:  # a part of another inside
                other = frames[int(rand() * count)]
                begin = int(rand() * len(other))
                data = data[:place] + other[begin : begin + 1 + int(rand() * 40)] + data[place:]
            elif kind < 14:  # repeated
                begin = max(0, place - 1 - int(rand() * 12))
                times = 2 + int(rand() * 6) if rand() < 0.98 else int(rand() * 600)
                data = data[:begin] + data[begin:place] * times + data[place:]
            elif kind < 15:  # a length grows, or whatever that byte is
                data = data[:place] + b"\xff\x7f\x80\xfe"[int(rand() * 4) :][:1] + data[place + 1 :]
            else:  # a head, many times
                times = int(rand() * 8) if rand() < 0.98 else int(rand() * 400)
                data = data[:place] + pieces[int(rand() * kinds)] * times + data[place:]
            if rand() < 0.6:
                break
        yield data


def decoded(codec: Codec, chunks: list[bytes]) -> tuple[list[Frozen], str | None]:
    """The packets before the first error, and the kind of it."""
    forms: list[Frozen] = []
    try:
        for chunk in chunks:
            for form in codec.feed(chunk):
                forms.append(form)  # kept when the next one raises
                read(form)
    except ProtocolError:
        return forms, "refused"
    return forms, None


def fuzz(name: str, seed: int, frames: int, progress: Callable[[Report], None] | None = None) -> Report:
    """Decode so many mutants; raises AssertionError, or whatever a decoder lets escape."""
    make, report, clock = CODECS[name], Report(), time.perf_counter
    source = mutants(name, seed)
    began = clock()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(frames):
        data = next(source)
        start = clock()
        try:
            forms, error = decoded(make(), [data])
        except BaseException:
            print(f"{name}: seed {seed}, frame {number}: {data.hex()}", file=sys.stderr)
            raise
        taken = clock() - start
        if taken > report.slowest:
            if taken > SLOW:
                taken = min(_timed(make, data) for _ in range(3))
                assert taken < SLOW or quick(lambda data=data: decoded(make(), [data])), (  # type: ignore[misc]
                    f"{name}: seed {seed}, frame {number} takes {taken:.3f} s: {data.hex()}"
                )
            report.slowest = max(taken, report.slowest)
        report.packets += len(forms)
        report.refused += error is not None
        if not number % 16:  # and cut in two, to the same effect
            cut = number // 16 % (len(data) + 1)
            again, later = decoded(make(), [data[:cut], data[cut:]])
            # The library for msgpack may see an error in a packet that has not ended, before the measure sees its end.
            same = again == forms and (later == error or (name == "msgpack" and later is None))
            assert same, f"{name}: seed {seed}, frame {number} cut at {cut}: {data.hex()}"
        if not number % 65536 and progress is not None:
            report.frames, report.seconds = number, clock() - began
            progress(report)
    report.frames, report.seconds = frames, clock() - began
    report.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return report


def pace() -> float:
    """How many times slower than that machine this one is now, and at least 1."""
    began = time.thread_time()
    results = {}
    for number in range(20_000):
        results[number] = (number, str(number))
    return max(1.0, (time.thread_time() - began) / _SPIN)


def quick(attempt: Callable[[], object], times: int = 5) -> bool:
    """Whether *attempt* takes less than ``SLOW`` of a processor in one of some tries.

    Time in which others had the processor does not count, and how much slower it is for their sake is measured.
    """
    for _ in range(times):
        before = pace()
        began = time.thread_time()
        attempt()
        taken = time.thread_time() - began
        if taken < SLOW * min(before, pace()):
            return True
    return False


def _timed(make: Callable[[], Codec], data: bytes) -> float:
    start = time.perf_counter()
    decoded(make(), [data])
    return time.perf_counter() - start


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--frames", type=int, default=1_000_000, help="for each codec")
    parser.add_argument("--codec", choices=[*CODECS, "all"], default="all")
    parser.add_argument("--seed", type=int, default=None, help="default: of the clock, and printed")
    chosen = parser.parse_args()
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    for name in CODECS if chosen.codec == "all" else [chosen.codec]:
        print(f"{name}: seed {seed}", flush=True)
        report = fuzz(name, seed, chosen.frames, lambda report: print(f"\r{report}", end="", flush=True))
        print(f"\r{report}", flush=True)


if __name__ == "__main__":
    main()

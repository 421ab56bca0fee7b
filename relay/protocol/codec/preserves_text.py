r"""The Preserves text codec: for people with ``nc``, and for programs in languages without a Preserves library.

A packet may be written in any way that the text syntax allows, over several lines, with comments and annotations, which
are dropped.  We answer in text, each packet on a line of its own.

>>> codec = PreservesText()
>>> codec.encode((SEQ, "a", 1, TRUE, Symbol("b c")))
b'["a" 1 #t \'b c\']\n'
>>> list(codec.feed(b'["a", 1 # one\n #')), list(codec.feed(b"t 'b c'] ["))
([], [(SEQ, 'a', 1, (BOOL, 't'), Symbol('b c'))])

The reader goes over the bytes token by token, with one regular expression.  A token that the bytes may have cut is kept
until it ends, and for that only new bytes are looked at.  The people's reader (:mod:`syndicate.values.text`) is of no
use
here: it wants the whole text, and Python's stack for each level.

Contract: as in :mod:`relay.protocol.codec.preserves`; comments count as nodes too, and a packet may hold a quarter as
many.

Source: Preserves, text syntax (in which ``|`` is a letter of symbols, and ``'`` quotes them);
``docs/design/protocol.md``, "Framing and codecs".
"""

from __future__ import annotations

import base64
import functools
import json
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from attrs import evolve

from relay.protocol.codec.frozen_collection import MORE, sealed
from relay.protocol.codec.partial_packet import ANNOTATION, EMBEDDED, NODE, Assembly
from relay.protocol.codec.preserves_encoding import Encoder, in_parts
from relay.protocol.limits import DEFAULT, Limits
from syndicate.errors import NotAValue, ProtocolError
from syndicate.values.text import unparse_form
from syndicate.values.value import DICT, DOUBLE, FALSE, SEQ, SET, TRUE, Frozen, Symbol, Tag, freeze

_SPACE: Final = rb"[ \t\r\n,]"
_BARE: Final = rb"""[^\s(){}\[\]<>"';,@#:]"""
_STRING: Final = rb"""[^"\\]*+(?:\\.[^"\\]*+)*+"""
_QUOTED: Final = rb"""[^'\\]*+(?:\\.[^'\\]*+)*+"""
_PLAIN: Final = rb"""[^"]*+"""
_BASE64: Final = rb"[^\]]*+"
_COMMENT: Final = rb"[^\r\n]*+"

_TOKEN: Final = re.compile(
    rb"""(?sx) %(space)s *+ (?:
    ( [\[\]<>{}:@] | \#[{:] | \#[tf] (?= [\s(){}\[\]<>"';,@#:] ) )
    | ( %(bare)s ++ )
    | " ( %(string)s ) "?+
    | ' ( %(quoted)s ) '?+
    | \# " ( %(string)s ) "?+
    | \#x " ( %(plain)s ) "?+
    | \#xd " ( %(plain)s ) "?+
    | \# \[ ( %(base64)s ) \]?+
    | \# (?= [ \t!\r\n] ) ( %(comment)s ) [\r\n]?+
    ) | %(space)s ++"""
    % {
        b"space": _SPACE,
        b"bare": _BARE,
        b"string": _STRING,
        b"quoted": _QUOTED,
        b"plain": _PLAIN,
        b"base64": _BASE64,
        b"comment": _COMMENT,
    }
)
_MARK, _WORD, _REMARK = 1, 2, 9
"""What a token is, by its group: punctuation, a bare word, a comment; the others end with an end of their own."""

_BODIES: Final = [
    re.compile(b"(?s)" + body)
    for body in (b"", b"", _BARE + b"*+", _STRING, _QUOTED, _STRING, _PLAIN, _PLAIN, _BASE64, _COMMENT)
]
"""How a token that was cut goes on, by its group."""

_BEGUN: Final = re.compile(rb"#(x|xd|t|f)?\Z")
"""Too little of a token to say which it is to be."""

_NUMBER: Final = re.compile(rb"[-+]?+[0-9]++((\.[0-9]++)?+[eE][-+]?+[0-9]++|\.[0-9]++)?+")
_SIGNS: Final = frozenset(b"+-0123456789")
_LONGEST: Final = 1024
"""The characters of a double."""

_from_json: Final = json.JSONDecoder(strict=False).decode
_PRICE: Final = 4
"""A token of text takes four times as long as one of the other codecs."""

_COLON: Final = Tag("COLON", -1)
_ENDS: Final = frozenset({b"]", b"}", b">"})
_CLOSED: Final = {SEQ: b"]", SET: b"}", DICT: b"}"}
_OPENED: Final[dict[bytes, list[Tag]]] = {
    b"[": [SEQ],
    b"<": [],
    b"{": [DICT],
    b"#{": [SET],
    b"@": [ANNOTATION],
    b"#:": [EMBEDDED],
}
_BOOLEANS: Final = {b"#t": TRUE, b"#f": FALSE}


@functools.cache
def _for_text(limits: Limits) -> Limits:
    return evolve(limits, nodes=limits.nodes // _PRICE)


class PreservesText:
    """One direction pair of one connection: it holds what it has read of a packet that has not fully arrived."""

    name: Final = "preserves text"
    ends: Final = 1
    stretch: Final = 1 << 9
    tables: Final = None

    def __init__(self, limits: Limits = DEFAULT) -> None:
        self.limits = limits = _for_text(limits)
        self._encoder = Encoder(limits)
        self._parts = Assembly(limits)
        self._nodes = self._taken = 0
        self._cut = bytearray()
        self._kind = 0
        self._escape = b""

    @property
    def partial(self) -> int:
        """The bytes so far of a packet that has not fully arrived."""
        return self._taken + len(self._cut)

    @property
    def held(self) -> int:
        """Bytes of memory, about, that it takes."""
        return self.partial + NODE * self._nodes

    def drop(self) -> None:
        """Let go of the packet that has not fully arrived: nothing is fed any more."""
        self._parts = Assembly(self.limits)
        self._nodes = self._taken = 0
        self._cut, self._escape = bytearray(), b""

    def encode(self, form: Frozen) -> bytes:
        """The text of a packet; raises :class:`~syndicate.errors.NotAValue` if it is beyond the limits."""
        self._encoder.encode(form)  # the same limits hold for both syntaxes
        data = unparse_form(form, _reference).encode() + b"\n"
        if len(data) > self.limits.frame:
            raise NotAValue(f"a packet of {len(data)} bytes: at most {self.limits.frame} go over a connection")
        return data

    def part(self, form: Frozen) -> bytes | None:
        """None: no kernel writes text."""
        return None

    def joined(self, parts: Sequence[bytes]) -> bytes:
        """One Turn of what several say."""
        return b"[" + b" ".join([part[1:-2] for part in parts]) + b"]\n"

    def parts(self, data: bytes) -> Iterator[Frozen]:
        """The packets that *data* completes, and :data:`~relay.protocol.codec.MORE` between two parts of it."""
        return in_parts(self._fed, data, self.stretch)

    def feed(self, data: bytes) -> Iterator[Frozen]:
        """The packets that *data* completes; raises :class:`ProtocolError`, after which the codec is of no more use."""
        return (form for form in self._fed(data) if form is not MORE)

    def _fed(self, data: bytes) -> Iterator[Frozen]:
        if self._cut:
            if self._goes_on(data):
                return
            data = bytes(self._cut) + data
            self._cut.clear()
        try:
            yield from self._read(data)
        except ProtocolError:
            raise
        except ValueError as e:  # what Python says of UTF-8, of escapes, of hexadecimal digits, of base 64
            raise ProtocolError(f"not Preserves text: {e}") from None

    def _goes_on(self, data: bytes) -> bool:
        """Whether the token that was cut does not end in *data* either; no more than *data* is looked at."""
        if not data:
            return True
        if not self._kind:
            return False
        text = self._escape + data
        end = _BODIES[self._kind].match(text).end()  # type: ignore[union-attr]  # never None: it matches nothing, too
        self._escape = text[end:] if text[end:] == b"\\" else b""
        if end + len(self._escape) < len(text):
            return False
        self._keep(data)
        return True

    def _keep(self, data: bytes) -> None:
        self._cut += data
        if self._taken + len(self._cut) > self.limits.frame:
            raise self._parts.too_long()

    def _read(self, data: bytes) -> Iterator[Frozen]:
        parts, most, size = self._parts, self.limits.nodes, len(data)
        add, symbols = parts.add, parts.symbols
        nodes, first, at = self._nodes, -self._taken, 0
        for token in _TOKEN.finditer(data):
            kind, end = token.lastindex, token.end()
            if token.start() != at:
                break
            if kind is None:
                at = end
                if not parts.stack:
                    first = at  # what lies between packets is part of none
                continue
            if kind != _MARK and end == (size if kind == _WORD else token.end(kind)):
                break
            raw = token[kind]
            nodes += raw != b":"
            if nodes > most:
                raise parts.too_many()
            if kind == _WORD:
                done = add(_number(parts, raw) if raw[0] in _SIGNS else symbols.get(raw) or parts.symbol(raw))
            elif kind == _MARK:
                done = (yield from parts.close()) if self._ends(raw) else self._mark(raw)
            else:
                done = kind != _REMARK and add(_READERS[kind](parts, raw))
            at = end
            if done:
                if at - first > self.limits.frame:
                    raise parts.too_long()
                nodes, first = 0, at
                yield parts.packet()
            elif not parts.stack:
                first = at
        self._nodes, self._taken = nodes, at - first
        if at < size:
            self._begin_cut(data, at)

    def _begin_cut(self, data: bytes, at: int) -> None:
        """What begins at *at* is a token that is cut, or none."""
        token = _TOKEN.match(data, at)
        if token is None:
            if not _BEGUN.match(data, at):
                shown = data[at : at + 20].decode(errors="replace")
                raise ProtocolError(f"not Preserves text: {shown!r}")
            self._kind, self._escape = 0, b""
        else:
            self._kind, self._escape = token.lastindex or 0, data[token.end() :]
        self._keep(data[at:])

    def _mark(self, raw: bytes) -> bool:
        parts = self._parts
        items = parts.items
        if raw in _OPENED:
            parts.open([*_OPENED[raw]])
            return False
        if raw in _BOOLEANS:
            return parts.add(_BOOLEANS[raw])
        if not items or items[0] is not DICT or len(items) % 3 != 2:
            raise ProtocolError("not Preserves text: a : that does not stand between a key and a value")
        items.append(_COLON)
        return False

    def _ends(self, raw: bytes) -> bool:
        """Whether it is what the innermost compound ends with."""
        if raw not in _ENDS:
            return False
        items = self._parts.items
        head = items[0] if items else None
        if raw != (_CLOSED.get(head, b">") if type(head) is Tag else b">"):
            raise ProtocolError(f"not Preserves text: a {raw.decode()} that closes something else")
        if head is DICT:
            if len(items) % 3 != 1 or items.count(_COLON) != len(items) // 3:
                raise ProtocolError("not Preserves text: a dictionary is written {key: value}")
            del items[2::3]
        return True


def _reference(ref: Frozen) -> str:
    caveats = "".join([" " + unparse_form(caveat, _reference) for caveat in ref.caveats])
    return f"#:[{ref.whose} {ref.oid}{caveats}]"


# ---------------------------------------------------------------------------------------------------- atoms


def _number(parts: Assembly, raw: bytes) -> Frozen:
    """The number that a word is, or the symbol, if it only begins like one."""
    match = _NUMBER.fullmatch(raw)
    if match is None:
        return parts.symbols.get(raw) or parts.symbol(raw)
    if len(raw) > _LONGEST and match[1] is not None:
        raise ProtocolError(f"a double of {len(raw)} characters: at most {_LONGEST} are allowed")
    if match[1] is not None:
        return sealed((DOUBLE, struct.pack(">d", float(raw))))
    return freeze(int(raw)) if len(raw) < 18 else parts.digits(raw)


def _unescaped(raw: bytes) -> str:
    """The text between double quotes: its escapes are those of JSON, but half of a pair is no character."""
    text = raw.decode()
    if "\\" in text:
        text = _from_json(f'"{text}"')
        text.encode()
    return text


def _quoted(parts: Assembly, raw: bytes) -> Symbol:
    if b"\\" in raw:
        raw = _unescaped(raw.replace(b"\\'", b"'").replace(b'"', b'\\"')).encode()
    return parts.symbols.get(raw) or parts.symbol(raw)


def _literal(parts: Assembly, raw: bytes) -> bytes:
    if b"\\" not in raw:
        return raw.decode("ascii").encode()
    text = raw.decode("ascii").replace("\\\\", "\0\0")
    if "\\u" in text or "\0" in raw.decode():
        raise ProtocolError(r'not Preserves text: in #"bytes" there is \x and two digits, and no other number')
    return _unescaped(text.replace("\\x", "\\u00").replace("\0\0", "\\\\").encode()).encode("latin-1")


def _hexadecimal(parts: Assembly, raw: bytes) -> bytes:
    return bytes.fromhex(raw.decode())


def _double(parts: Assembly, raw: bytes) -> Frozen:
    data = bytes.fromhex(raw.decode())
    if len(data) != 8:
        raise ProtocolError(f'a double of {len(data)} bytes: #xd"" holds 8')
    return sealed((DOUBLE, data))


def _base64(parts: Assembly, raw: bytes) -> bytes:
    plain = raw.translate(_URL_SAFE, b" \t\r\n=")
    return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)


_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
_READERS: Final[dict[int, Callable[[Assembly, bytes], Frozen]]] = {
    3: lambda parts, raw: _unescaped(raw),
    4: _quoted,
    5: _literal,
    6: _hexadecimal,
    7: _double,
    8: _base64,
}

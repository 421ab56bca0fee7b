"""Space and time: the rows that passed between the programs of a network, from a tick of one to a tick of another.

>>> from syndicate.bloom import Bloom, Network, bloom, channel
>>> class Pong(Bloom):
...     ball = channel(["@to", "from", "left"])
...     @bloom
...     def back(self):
...         self.ball <~ self.ball.map(lambda b: (b.from_, b.to, b.left - 1) if b.left else None)
>>> a, b = Pong(address="a"), Pong(address="b"); net = Network(a, b, record=True)
>>> a.deliver("ball", [("a", "b", 2)]); net.run(); print(spacetime(net))
'a' in tick 0 -> 'b' in tick 1: ball('b', 'a', 1)
'b' in tick 1 -> 'a' in tick 1: ball('a', 'b', 0)

As ``dot``, each program is a line of the ticks in which it sends or receives, and each row an arrow, dashed if it was
lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from syndicate.errors import IllegalRule
from syndicate.explain.derivation import said
from syndicate.flow.graph import dot_text

if TYPE_CHECKING:
    from syndicate.bloom.network import Network


def spacetime(network: Network, form: str = "text") -> str:
    """What a network that was made with ``record=True`` has carried, as ``text`` or ``dot``."""
    draw = _DRAW.get(form)
    if draw is None:
        raise IllegalRule(f"passages are drawn as {', '.join(_DRAW)}, not as {form!r}")
    if not network.record:
        raise IllegalRule("nothing was recorded: make the network with Network(..., record=True)")
    return draw(network)


def _text(network: Network) -> str:
    return "\n".join(
        f"{one.sender!r} in tick {one.left} -> {one.receiver!r} "
        f"{'lost' if one.arrived is None else f'in tick {one.arrived}'}: {said(one.channel, one.row)}"
        for one in network.passages
    )


def _dot(network: Network) -> str:
    ticks: dict[Any, set[int]] = {address: set() for address in network.programs}
    for one in network.passages:
        ticks[one.sender].add(one.left)
        if one.arrived is not None:
            ticks[one.receiver].add(one.arrived)
    places = {address: place for place, address in enumerate(ticks)}

    def lines() -> Iterator[str]:
        yield "digraph spacetime {"
        yield '    node [shape=point, fontname="sans-serif"];'
        for address, place in places.items():
            yield f'    p{place} [label="{dot_text(repr(address))}", shape=box];'
            before = f"p{place}"
            for tick in sorted(ticks[address]):
                yield f'    p{place}_{tick} [xlabel="{tick}"];'
                yield f"    {before} -> p{place}_{tick} [arrowhead=none, weight=9];"
                before = f"p{place}_{tick}"
        for number, one in enumerate(network.passages):
            label = dot_text(said(one.channel, one.row))
            end = f"lost{number}" if one.arrived is None else f"p{places[one.receiver]}_{one.arrived}"
            style = ", style=dashed" if one.arrived is None else ""
            yield f'    p{places[one.sender]}_{one.left} -> {end} [label="{label}", constraint=false{style}];'
        yield "}"

    return "\n".join(lines())


_DRAW: Final[dict[str, Callable[[Network], str]]] = {"text": _text, "dot": _dot}

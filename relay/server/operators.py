r"""What an operator may do from afar: observe what the broker says of itself, end a session, and mint capabilities.

The broker alone asserts in its admin dataspace.  Whoever holds the admin capability gets what is before it: an
``Observe`` passes, ``<kick "127.0.0.1:5123">`` as a message ends the session of that peer, and all else is dropped, so
that nobody can forge what the broker says of itself, to whomever else observes it.  Who asserts ``<kick name o>``
learns what came of it: *o* gets ``<kicked n>``, how many sessions end, or ``<error text>`` where nobody has that name.

>>> from syndicate import Record, assert_, capture, dataspace, ref, send
>>> from syndicate.testing import settled, watch
>>> seen = []
>>> def kick(name):
...     print(name, "is to go")
...     return 1
>>> def boot():
...     admin = dataspace()
...     operators = ref(Operators(admin, kick))
...     seen.append(watch(operators, Record("peer", [capture()])))
...     assert_(admin, Record("peer", ["alice"]))
...     assert_(operators, Record("peer", ["mallory"]))
...     send(operators, Record("kick", ["alice"]))
>>> _ = settled(boot)
alice is to go
>>> seen
[[('+', 'alice')]]

Only a console that may write has what mints.  ``<names o>`` gives *o* the message ``<names [name ..]>``, and
``<mint name o>`` gives it ``<minted text>``, the capability of that name by the key that is in force, or
``<error text>``.  Each minting is logged.

>>> from syndicate import run, stop_actor
>>> from syndicate.actors.turn import Entity
>>> class Asker(Entity):
...     def message(self, value):
...         print(value.label, value.fields[0][:22])
...         stop_actor()
>>> def boot():
...     assert_(ref(Minting(lambda: {"syndicate": b""})), Record("mint", ["syndicate", ref(Asker())]))
>>> run(boot)
minted <ref {oid: "syndicate"

Source: ``docs/design/commands.md``, "A broker that can be watched"; ``docs/design/web.md``, "The console".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from relay.capabilities.caveats import attenuate
from relay.capabilities.forwarding import Passage
from relay.capabilities.sturdy import mint, show
from syndicate.actors.turn import Entity
from syndicate.actors.verbs import send
from syndicate.log import logger
from syndicate.values.text import unparse
from syndicate.values.value import Assertion, Frozen, Record, Ref, Symbol, Value

ONLY_OBSERVE: Final = "<rewrite <bind <rec Observe [<_> <_>]>> <ref 0>>"

_KICK: Final = Symbol("kick")


class Operators(Passage):
    """Stands before the dataspace *admin*; *kick* is called with the name of a peer that is to go, and returns how many
    sessions end by that.
    """

    def __init__(self, admin: Ref, kick: Callable[[str], int]) -> None:
        super().__init__(attenuate(admin, ONLY_OBSERVE))
        self._kick = kick

    def assert_(self, form: Frozen, handle: Assertion) -> None:
        """Do what an operator says, and answer; or hand on."""
        match form:
            case (label, str(name), Ref() as observer) if label is _KICK:
                count = self._kick(name)
                answer = Record("kicked", [count]) if count else Record("error", [f"nobody has the name {name}"])
                send(observer, answer)
            case _:
                super().assert_(form, handle)

    def message(self, form: Frozen) -> None:
        """Do what an operator says."""
        if type(form) is tuple and len(form) == 2 and form[0] is _KICK and isinstance(form[1], str):
            self._kick(form[1])


class Minting(Entity):
    """Mints what *keys* gives the keys of, by name."""

    def __init__(self, keys: Callable[[], Mapping[str, bytes]]) -> None:
        self._keys = keys

    def assert_(self, value: Value, handle: Assertion) -> None:
        """Answer a question, once."""
        match value:
            case Record(label=Symbol(name="names"), fields=[Ref() as observer]):
                send(observer, Record("names", [[*self._keys()]]))
            case Record(label=Symbol(name="mint"), fields=[str(name), Ref() as observer]):
                key = self._keys().get(name)
                if key is None:
                    send(observer, Record("error", [f"nothing is served as {unparse(name)}"]))
                    return
                logger(part="console").warning("minted", name=name)
                send(observer, Record("minted", [show(mint(name, key))]))

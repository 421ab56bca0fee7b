r"""An entity that mints capabilities: for the console, where the configuration lets it write.

``<names o>`` is answered ``<names [name ..]>`` at *o*, ``<mint name o>`` by ``<minted text>``: the capability of that
name by the key that is in force, or ``<error text>``.  Each is sent once, as a message, and each minting is logged.

>>> from syndicate import Record, assert_, ref, run, stop_actor
>>> from syndicate.actors.turn import Entity
>>> class Asker(Entity):
...     def message(self, value):
...         print(value.label, value.fields[0][:22])
...         stop_actor()
>>> def boot():
...     assert_(ref(Minting(lambda: {"syndicate": b""})), Record("mint", ["syndicate", ref(Asker())]))
>>> run(boot)
minted <ref {oid: "syndicate"

Source: ``docs/design/web.md``, "The console".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relay.capabilities.sturdy import mint, show
from syndicate.actors.turn import Entity
from syndicate.actors.verbs import send
from syndicate.log import logger
from syndicate.values.text import unparse
from syndicate.values.value import Assertion, Record, Ref, Symbol, Value


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

r"""What an operator may do from afar: observe what the broker says of itself, and end a session.

The broker alone asserts in its admin dataspace.  Whoever holds the admin capability gets what stands before it: an
``Observe`` passes, ``<kick "127.0.0.1:5123">`` as a message ends the session of that peer, and all else is dropped, so
that nobody can forge what the broker says of itself, to whomever else observes it.

>>> from syndicate import Record, assert_, capture, dataspace, ref, send
>>> from syndicate.testing import settled, watch
>>> seen = []
>>> def boot():
...     admin = dataspace()
...     operators = ref(Operators(admin, lambda name: print(name, "is to go")))
...     seen.append(watch(operators, Record("peer", [capture()])))
...     assert_(admin, Record("peer", ["alice"]))
...     assert_(operators, Record("peer", ["mallory"]))
...     send(operators, Record("kick", ["alice"]))
>>> _ = settled(boot)
alice is to go
>>> seen
[[('+', 'alice')]]

Source: ``docs/design/commands.md``, "A broker that can be watched".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from relay.capabilities.caveats import attenuate
from relay.capabilities.passage import Passage
from syndicate.values.value import Frozen, Ref, Symbol

ONLY_OBSERVE: Final = "<rewrite <bind <rec Observe [<_> <_>]>> <ref 0>>"

_KICK: Final = Symbol("kick")


class Operators(Passage):
    """Stands before the dataspace *admin*; *kick* is called with the name of a peer that is to go."""

    def __init__(self, admin: Ref, kick: Callable[[str], object]) -> None:
        super().__init__(attenuate(admin, ONLY_OBSERVE))
        self._kick = kick

    def message(self, form: Frozen) -> None:
        """Do what an operator says."""
        if type(form) is tuple and len(form) == 2 and form[0] is _KICK and isinstance(form[1], str):
            self._kick(form[1])

"""Sessions: a client of a replicated store that asks one replica, and never goes back behind what it has seen.

:class:`Session` is a :class:`~syndicate.bloom.library.store.Client` with quorums of one: a write is done when one
replica has it, a read when one has replied, so that both go on as long as any replica can be reached.  What such a
replica lacks of what this client has written or read is merged into the answer.  So of each key

* *read your writes*: a read has each write of the session that was given before, or what replaced it;
* *monotonic reads*: a read has all that an earlier one of the session had, or what replaced it;
* *writes follow reads* and *monotonic writes*: a write's clock is above all that the session has read and written.

The guarantees are of each key by itself, and end with the client: another one may read older versions, and of two keys
no order is promised.

>>> from syndicate.bloom import Network
>>> from syndicate.bloom.library.store import Replica
>>> class Ann(Session):
...     replicas = ("x", "y")
>>> ann, x, y = Ann(address="ann"), Replica(address="x"), Replica(address="y"); net = Network(ann, x, y, seed=1)
>>> net.part(["y"]); write = ann.put("k", "tea"); net.run(); len(ann.written), len(y.kept)
(1, 0)
>>> net.heal(); net.part(["x"]); read = ann.get("k"); net.run(); sorted(ann.values_of(read))
['tea']

Source: Terry et al. 1994 (session guarantees); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from syndicate.bloom import bloom
from syndicate.bloom.library.store import Client

# fmt: off


class Session(Client):
    """One replica is enough."""

    @classmethod
    def write_quorum(cls) -> int:
        """One."""
        return 1

    @classmethod
    def read_quorum(cls) -> int:
        """One."""
        return 1

    @bloom
    def remember(self) -> None:
        """What the session knows of a key is in each answer."""
        self.read <= (self.merged * self.known).pairs(("key", "key"), lambda m, k: (m.ident, m.key, k.version))

# fmt: on

"""Routes: to which dataspace what is for an address goes.

The last word counts, and lasts as long as the facet that said it: in ``@connect``, as long as the connection.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from syndicate.actors.verbs import on_stop
from syndicate.values.value import Ref


class Routes:
    """Dataspaces by address, and those for all other addresses; what has no route is lost, as on any network."""

    def __init__(self, ds: Ref | None = None) -> None:
        """With *ds*, all goes there until something else is said."""
        self.named: dict[Hashable, dict[object, Ref]] = {}
        self.others: dict[object, Ref] = {} if ds is None else {None: ds}

    def add(self, ds: Ref, addresses: Iterable[Hashable]) -> None:
        """Send what is for some addresses, or without any all else, to a dataspace, as long as this facet lives."""
        mark = object()
        routes = [self.named.setdefault(address, {}) for address in addresses] or [self.others]
        for route in routes:
            route[mark] = ds

        @on_stop
        def end() -> None:
            for route in routes:
                del route[mark]

    def to(self, address: Hashable) -> Ref | None:
        """Where what is for an address goes."""
        route = self.named.get(address) or self.others
        return next(reversed(route.values()), None)

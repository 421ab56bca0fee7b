"""Shoppers: who fills carts at several servers over a bad network, sending again what nobody has acknowledged.

A :class:`Shopper` sends each action to all servers, and the checkout with them.  A :class:`PatientShopper` sends the
checkout once all actions of the session are acknowledged: one round of waiting, which is what makes the receipts of
:class:`~syndicate.bloom.library.carts.DisorderlyCarts` right, and a point of order.

>>> ann = Shopper(address="ann"); ann.server <= [("shop",)]
>>> ann.act <= [(7, 1, "tea", 2)]; ann.pay <= [(7, 2, 1)]; ann.tick(); [name for _, name, _ in ann.sent]
['action', 'checkout']
>>> ann.fire("timer"); ann.tick(); len(ann.sent)
4
>>> ann.deliver("taken", [("ann", "shop", 7, 1), ("ann", "shop", 7, 2)])
>>> _ = ann.run(); ann.is_served()
True

Source: Alvaro et al. 2011a (carts, reliable delivery); ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from syndicate.bloom import Bloom, bloom, channel, interface, periodic, table

# fmt: off


class Shopper(Bloom):
    """Sends at once, and again whenever ``timer`` fires."""

    act = interface("input", ["session", "number"], ["item", "change"])
    pay = interface("input", ["session", "number"], ["first"])
    server = table(["name"], [])
    action = channel(["@server", "client", "session", "number"], ["item", "change"])
    checkout = channel(["@server", "client", "session", "number"], ["first"])
    taken = channel(["@client", "server", "session", "number"], [])
    actions = table(["server", "client", "session", "number"], ["item", "change"])
    payments = table(["server", "client", "session", "number"], ["first"])
    timer = periodic(1.0)

    @bloom
    def keep(self) -> None:
        """What is to be sent, to each server, until it is acknowledged."""
        me = self.address
        self.actions <= (self.act * self.server).pairs(
            lambda a, s: (s.name, me, a.session, a.number, a.item, a.change)
        )
        self.payments <= (self.pay * self.server).pairs(lambda p, s: (s.name, me, p.session, p.number, p.first))
        self.actions <- (self.actions * self.taken).lefts("server", "session", "number")
        self.payments <- (self.payments * self.taken).lefts("server", "session", "number")

    @bloom
    def send_actions(self) -> None:
        """Those that are new, and all when it is time."""
        self.action <~ (self.actions * self.act).lefts("session", "number")
        self.action <~ (self.actions * self.timer).lefts()

    @bloom
    def send_payments(self) -> None:
        """Likewise."""
        self.checkout <~ (self.payments * self.pay).lefts("session", "number")
        self.checkout <~ (self.payments * self.timer).lefts()

    def is_served(self) -> bool:
        """Whether all has been acknowledged."""
        return not self.actions and not self.payments


class PatientShopper(Shopper):
    """Sends a checkout when no action of the session waits any longer."""

    @bloom
    def send_payments(self) -> None:
        """When it is time, if it is."""
        self.checkout <~ (self.payments.notin(self.actions, ("session", "session")) * self.timer).lefts()

# fmt: on

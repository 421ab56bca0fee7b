"""The shopping carts of the Bloom papers, as servers: destructive, disorderly, and as a lattice.

All take numbered actions and a checkout, acknowledge each, and note in ``receipt`` their reply to a checkout; in
order, and each once, the three reply the same.

* :class:`DestructiveCarts` replaces the number of an item with each action, as on a key-value store.  The order of
  actions counts, and so does each repetition: replicas diverge.
* :class:`DisorderlyCarts` keeps all actions, and sums them up when the checkout comes.  Replicas agree on the actions;
  a receipt is wrong only if the checkout overtook an action, so it is enough to wait once in each session.
* :class:`LatticeCarts` merges actions and checkout into an ``lcart``, whose receipt is there when nothing is missing.
  Nobody has to wait for anything.

>>> [sorted({point.rule.head for point in cls().calm().points}) for cls in (DisorderlyCarts, LatticeCarts)]
[['receipt', 'there'], []]
>>> p = LatticeCarts()
>>> p.deliver("checkout", [("shop", "ann", 7, 3, 1)]); p.tick(); list(p.receipt)
[]
>>> p.deliver("action", [("shop", "ann", 7, n, "tea", 1) for n in (2, 1)]); p.tick(); list(p.receipt)
[(session=7, contents=(('tea', 2),))]

Source: Alvaro et al. 2011a; Conway et al. 2012; ``docs/design/bloom.md``, "The library".
"""

# ruff: noqa: B015  # rules are comparisons

from __future__ import annotations

from syndicate.bloom import Bloom, agg, bloom, channel, scratch, table
from syndicate.bloom.library.cart import Cart

# fmt: off


class Carts(Bloom):
    """What the three have in common."""

    action = channel(["@server", "client", "session", "number"], ["item", "change"])
    checkout = channel(["@server", "client", "session", "number"], ["first"])
    taken = channel(["@client", "server", "session", "number"], [])
    receipt = table(["session", "contents"], [])

    @bloom
    def acknowledge(self) -> None:
        """Acknowledge what comes, so that it is not sent again."""
        self.taken <~ self.action.map(lambda a: (a.client, a.server, a.session, a.number))
        self.taken <~ self.checkout.map(lambda c: (c.client, c.server, c.session, c.number))


class SummedCarts(Carts):
    """Replies with what is there when a checkout comes; what that is, subclasses say."""

    there = scratch(["session", "item"], ["number"])

    @bloom
    def answer(self) -> None:
        """All of the session, nothing for a cart that is empty."""
        held = self.there.filter(lambda t: t.number > 0).group(["session"], agg.accum_pair("item", "number"))
        self.receipt <= (self.checkout * held).outer(
            ("session", "session"), lambda c, h: (c.session, tuple(sorted(h[1] or ())))
        )


class DestructiveCarts(SummedCarts):
    """How many there are of each item is replaced."""

    cart = table(["session", "item"], ["number"])

    @bloom
    def act(self) -> None:
        """Read, add, write; nothing can be taken out that is not there."""
        changes = self.action.group(["session", "item"], agg.sum("change"))
        self.cart <+- (changes * self.cart).outer(
            ("session", "session"), ("item", "item"), lambda c, k: (c.session, c.item, max(0, c[2] + (k.number or 0)))
        )

        self.there <= self.cart


class DisorderlyCarts(SummedCarts):
    """Actions are kept."""

    log = table(["session", "number"], ["item", "change"])

    @bloom
    def act(self) -> None:
        """Keep them; their sums are what is there."""
        self.log <= self.action.map(lambda a: (a.session, a.number, a.item, a.change))

        self.there <= self.log.group(["session", "item"], agg.sum("change"))


class LatticeCarts(Carts):
    """Actions and checkouts are merged."""

    cart = table(["session"], ["held"], held=Cart)

    @bloom
    def act(self) -> None:
        """In whatever order."""
        self.cart <= self.action.map(lambda a: (a.session, Cart.act(a.number, a.item, a.change)))
        self.cart <= self.checkout.map(lambda c: (c.session, Cart.check_out(c.number, c.first)))

    @bloom
    def answer(self) -> None:
        """Of the carts that are complete."""
        self.receipt <= self.cart.flat_map(lambda c: [(c.session, receipt) for receipt in c.held.receipt().reveal()])

# fmt: on

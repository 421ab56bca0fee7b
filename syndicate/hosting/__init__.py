"""Hosting: rules as actors.  Assertions and messages in, a step at the end of the turn, conclusions out.

What a circuit, a Bloom program and a location of a Dedalus program have in common when they live in a dataspace is
here, and decided once; what each of them adds is what an element is, and what a step is.

* ``host``: the host itself, which takes a step at the end of a turn and a further one in a turn of its own; and the
  one way to start all, :func:`~syndicate.hosting.host.host`;
* ``ports``: elements from assertions and messages; ``outputs``: assertions of elements;
* ``refusals``: what untrusted peers give that the rules fail with is refused, each by itself;
* ``routes``: where what is for another address is sent.

Nothing here knows a language of rules, or circuits.  What the meaning is, and why, is in ``docs/design/hosting.md``.
"""

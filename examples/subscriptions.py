"""Subscriptions: who should get what, concluded from who is here and what they follow, and kept up to date.

A circuit says what follows from what: who is here should get each article on a topic that they follow, and is idle if
there is none.  A view keeps these conclusions in the dataspace.  Whatever changes, be it an article, an interest, or
somebody who crashes, what follows now is asserted, and what does not any more is retracted; all at once, so that
nobody is seen idle with something to read.

    $ python examples/subscriptions.py
    Alice is idle
    Bob is idle
    Alice should get "Larks return"
    Alice is no longer idle
    Alice should get "High water"
    Bob should get "High water"
    Bob is no longer idle
    Alice should not get "High water" any more
    Alice should not get "Larks return" any more
    Bob should not get "High water" any more

Alice follows birds and tides, Bob tides.  Alice leaves; what she follows stays on record, for the next time.  Bob's
conclusion goes when the program ends, as all do.
"""

from syndicate import Ref, after, assert_, capture, dataspace, during, on_stop, record, run, spawn, stop_actor
from syndicate.flow import Circuit
from syndicate.views import view


@record
class Present:
    """Asserted by each reader while they are here."""

    who: str


@record
class Follows:
    """Asserted by the desk."""

    who: str
    topic: str


@record
class Article:
    """Asserted by the press."""

    topic: str
    title: str


@record
class ShouldGet:
    """Concluded."""

    who: str
    title: str


@record
class Idle:
    """Concluded."""

    who: str


def delivery() -> Circuit:
    """What follows from what: elements are the fields of a record as a tuple, or bare if there is only one."""
    circuit = Circuit()
    present, follows, articles = (circuit.source(name) for name in ("present", "follows", "articles"))
    followed = follows.index_with(lambda f: f[0]).semijoin(present).index_with(lambda f: f[1])
    should_get = followed.join(articles.index_with(lambda a: a[0]), lambda topic, f, a: (f[0], a[1]))
    circuit.sink("should get", should_get)
    circuit.sink("idle", present.antijoin(should_get.map(lambda got: got[0])))
    return circuit


def announcer(ds: Ref) -> None:
    """Say what is concluded."""

    @during(ds, ShouldGet(capture(), capture()))
    def should_get(who: str, title: str) -> None:
        print(f'{who} should get "{title}"')
        on_stop(lambda: print(f'{who} should not get "{title}" any more'))

    @during(ds, Idle(capture()))
    def idle(who: str) -> None:
        print(who, "is idle")
        on_stop(lambda: print(who, "is no longer idle"))


def desk(ds: Ref) -> None:
    """Remember who follows what."""
    for who, topic in (("Alice", "birds"), ("Alice", "tides"), ("Bob", "tides")):
        assert_(ds, Follows(who, topic))


def press(ds: Ref) -> None:
    """Publish."""
    after(0.1, lambda: assert_(ds, Article("birds", "Larks return")))
    after(0.2, lambda: assert_(ds, Article("tides", "High water")))


def reader(ds: Ref, name: str) -> None:
    """Be here; Alice not for long."""
    assert_(ds, Present(name))
    if name == "Alice":
        after(0.3, stop_actor)


def boot() -> None:
    """Open the newsroom."""
    ds = dataspace()
    inputs = {"present": Present, "follows": Follows, "articles": Article}
    spawn(view(ds, delivery(), inputs, outputs={"should get": ShouldGet, "idle": Idle}))
    spawn(announcer, ds)
    spawn(desk, ds)
    spawn(press, ds)
    for name in ("Alice", "Bob"):
        spawn(reader, ds, name)


if __name__ == "__main__":
    run(boot)

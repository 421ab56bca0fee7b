"""Many values at once are what as many single values would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from syndicate import Record, Ref, Symbol, capture
from syndicate.index import trie
from syndicate.index.bulk import Bulk, FormsBulk
from syndicate.index.index import Index
from syndicate.index.skeleton import analyse
from syndicate.values.value import Frozen, freeze
from tests.strategies import ATOMS, examples, patterns, patterns_like, values

OBSERVERS = [Ref.unbound() for _ in range(3)]
RECORD = st.builds(Record, st.just(Symbol("p")), st.lists(st.sampled_from(ATOMS) | values(max_leaves=3), max_size=3))


class VagueBulk(FormsBulk):
    """One that knows nothing of its columns: all could match."""

    def split(self, field: int, constants: Collection[Frozen]) -> tuple[FormsBulk, FormsBulk]:
        return self, FormsBulk([], self.label)


class World:
    """An index, and what its observers know: the captures that each pattern's observers have been notified of."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, Any]] = []
        self.index = Index(lambda kind, handler, captures, values, notice: self.heard.append((kind, captures)))

    def step(self) -> Counter[tuple[int, Any]]:
        """What was heard since the last time, in any order."""
        heard, self.heard = self.heard, []
        return Counter(heard)


@pytest.mark.parametrize("hot", [1, 10**9], ids=["generated", "interpreted"])
@pytest.mark.parametrize("kind", [FormsBulk, VagueBulk])
def test_a_bulk_is_its_records(hot: int, kind: type[FormsBulk], monkeypatch: pytest.MonkeyPatch) -> None:
    """Bulks, single values, observers and messages come and go in any order: after each step the observers have heard
    the same, and in the end nothing is left.
    """
    monkeypatch.setattr(trie, "HOT", hot)

    @settings(max_examples=examples(80), deadline=None)
    @given(st.data())
    def agree(data: st.DataObject) -> None:
        pool = data.draw(st.lists(RECORD, min_size=1, max_size=5))
        some = st.lists(st.sampled_from(pool), min_size=1, max_size=6)
        asked = st.sampled_from(pool).flatmap(patterns_like) | patterns()
        bulky, single = World(), World()
        shares: dict[object, tuple[Sequence[Frozen], list[Frozen]]] = {}
        alone: list[Frozen] = []
        observing: list[tuple[Any, Any, Ref]] = []
        for _ in range(data.draw(st.integers(1, 10))):
            what = data.draw(
                st.sampled_from(["bulk", "bulk", "late", "gone", "add", "remove", "observe", "leave", "send"])
            )
            if what in ("bulk", "late"):
                forms = [freeze(value) for value in data.draw(some)]
                bulks, share = bulky.index.bulks, object()
                observers = bulks.observers - (what == "late")  # an observer has come since it was divided
                looked, waiting = bulks.divide(kind(forms)) if what == "bulk" else ((), kind(forms))
                for form in looked:
                    bulky.index.add(form)
                bulks.hold(share, forms[0][0], waiting, observers)
                for form in forms:
                    single.index.add(form)
                shares[share] = looked, forms
            elif what == "gone" and shares:
                share = data.draw(st.sampled_from(list(shares)))
                looked, forms = shares.pop(share)
                opened = bulky.index.bulks.opened(share, forms[0][0])
                singly = data.draw(st.integers(0, len(opened)))
                for form in [*looked, *opened[:singly]]:
                    bulky.index.remove(form)
                bulky.index.bulks.let_go(share, forms[0][0], singly)
                for form in forms:
                    single.index.remove(form)
            elif what == "add":
                alone.append(freeze(data.draw(st.sampled_from(pool))))
                bulky.index.add(alone[-1])
                single.index.add(alone[-1])
            elif what == "remove" and alone:
                form = alone.pop(data.draw(st.integers(0, len(alone) - 1)))
                bulky.index.remove(form)
                single.index.remove(form)
            elif what == "observe":
                observing.append((*analyse(data.draw(asked)), data.draw(st.sampled_from(OBSERVERS))))
                one, other = (
                    Counter(notice.captures for notice in world.index.observe(*observing[-1]))
                    for world in (bulky, single)
                )
                assert one == other
            elif what == "leave" and observing:
                place = data.draw(st.integers(0, len(observing) - 1))
                last = observing[place]
                if observing.count(last) > 1:
                    continue
                del observing[place]
                one, other = (
                    Counter(notice.captures for notice in world.index.unobserve(*last)) for world in (bulky, single)
                )
                assert one == other
            elif what == "send":
                form = freeze(data.draw(st.sampled_from(pool)))
                bulky.index.send(form)
                single.index.send(form)
            assert bulky.step() == single.step()
            assert bulky.index.values() >= single.index.values()
        assert Counter(bulky.index) == Counter(single.index)
        assert bulky.index.statistics().values == single.index.statistics().values

    agree()


def sizes(count: int) -> Bulk:
    """Records with a number and its half."""
    return FormsBulk([freeze(Record(Symbol("size"), [number, number // 2])) for number in range(count)])


def test_what_nobody_looks_at_stays_as_it_is() -> None:
    """A pattern with a constant opens the records with that, before and after they come, and leaves the others."""
    heard: list[Any] = []
    index = Index(lambda kind, handler, captures, values, notice: heard.append((kind, values)))

    def observe(*fields: Any) -> Sequence[Any]:
        notices = index.observe(*analyse(Record(Symbol("size"), list(fields))), OBSERVERS[0])
        return [notice.thawed() for notice in notices]

    observe(7, capture())
    looked, waiting = index.bulks.divide(sizes(1000))
    assert [form[1] for form in looked] == [7]
    assert waiting is not None
    index.bulks.hold("share", Symbol("size"), waiting, index.bulks.observers)
    assert index.bulks.waiting() == {Symbol("size"): 999}
    assert observe(8, capture()) == [(4,)]
    assert observe(capture(), 3) == [(6,)]  # 7, which was looked at, was to be added by itself
    assert index.bulks.waiting() == {Symbol("size"): 997}
    assert index.values() == 999
    assert len(observe(capture(int), capture())) == 999
    assert index.bulks.waiting() == {Symbol("size"): 0}
    assert heard == []
    index.bulks.let_go("share", Symbol("size"), 0)
    assert index.values() == 0

"""The carts: the same in order; otherwise as the analysis says, counted over 300 seeds."""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syndicate.bloom.library.cart import Cart
from syndicate.bloom.library.carts import Carts, DestructiveCarts, DisorderlyCarts, LatticeCarts
from syndicate.bloom.library.shopper import PatientShopper, Shopper
from syndicate.errors import LatticeValue
from syndicate.lattice import Bool, Set, assert_laws

SEEDS = 300
CARTS: list[type[Carts]] = [DestructiveCarts, DisorderlyCarts, LatticeCarts]


def example() -> ModuleType:
    """examples/carts.py, which counts."""
    path = Path(__file__).parents[4] / "examples" / "carts.py"
    spec = importlib.util.spec_from_file_location("example_carts", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


carts_example = example()


@pytest.mark.parametrize("cls", CARTS)
def test_in_order_all_carts_answer_the_same(cls: type[Carts]) -> None:
    """One action after the other, each once, and then the checkout: what was bought."""
    server = cls(address="shop")
    for seed in range(30):
        actions, bought = carts_example.shopping(random.Random(seed))
        for action in actions:
            server.deliver("action", [("shop", "ann", seed, *action)])
            server.run()
        server.deliver("checkout", [("shop", "ann", seed, len(actions) + 1, 1)])
        server.run()
        assert [row.contents for row in server.receipt if row.session == seed] == [bought]


def counted(cls: type[Carts], shopper: type[Shopper], seeds: int = SEEDS) -> tuple[Any, Any]:
    """What the analysis says, and how often it happened."""
    count = carts_example.measure(cls, shopper, seeds)
    print(f"{cls.__name__}, {shopper.__name__}: {count}")
    assert count.runs == seeds
    assert count.messages > seeds * 10
    return cls().calm(), count


def test_destructive_carts_diverge() -> None:
    """In most runs two servers that got the same hold different carts, as points of order on them foretell."""
    calm, count = counted(DestructiveCarts, Shopper)
    assert (calm["cart"].verdict, calm["receipt"].verdict) == ("diffluent", "diffluent")
    assert count.carts > SEEDS // 2
    assert count.receipts >= count.carts


def test_disorderly_carts_diverge_at_the_checkout_only() -> None:
    """All servers have the same log; a checkout may overtake an action."""
    calm, count = counted(DisorderlyCarts, Shopper)
    assert (calm["log"].verdict, calm["receipt"].verdict) == ("confluent", "diffluent")
    assert count.carts == 0
    assert count.receipts > SEEDS // 2


def test_one_round_of_waiting_makes_disorderly_carts_right() -> None:
    """If the shopper waits for acknowledgements, no receipt is wrong; that costs time, but no messages."""
    _, count = counted(DisorderlyCarts, PatientShopper)
    assert (count.carts, count.receipts) == (0, 0)
    hasty = carts_example.measure(DisorderlyCarts, Shopper, SEEDS)
    assert hasty.rounds < count.rounds < hasty.rounds + SEEDS * 2
    assert abs(count.messages - hasty.messages) < hasty.messages * 0.1


def test_lattice_carts_converge() -> None:
    """Nobody waits, and no receipt is wrong: there is no point of order."""
    calm, count = counted(LatticeCarts, Shopper)
    assert (calm.points, calm.confluent) == ((), True)
    assert (count.carts, count.receipts) == (0, 0)


ACTIONS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-2, 3)), max_size=5)


@given(actions=ACTIONS, data=st.data())
def test_a_cart_is_complete_in_any_order(actions: list[tuple[str, int]], data: st.DataObject) -> None:
    """Its receipt comes with the last part that is missing, whichever that is, and is the same."""
    parts = [Cart.act(number, *action) for number, action in enumerate(actions, 3)]
    parts.append(Cart.check_out(len(actions) + 3, first=3))
    sums = {item: sum(change for one, change in actions if one == item) for item in "ab"}
    final = tuple((item, number) for item, number in sums.items() if number > 0)
    shuffled = data.draw(st.permutations(parts))
    cart = Cart()
    for part in shuffled:
        assert cart.receipt() == Set()
        cart = cart.merge(part).merge(part)
    assert (cart.is_complete(), cart.receipt(), cart.is_paid()) == (Bool(True), Set([final]), Bool(True))


def test_laws_of_the_cart() -> None:
    """Of all carts that are parts of one session."""
    assert_laws(Cart)


@pytest.mark.parametrize(
    ("cart", "message"),
    [
        (Cart.act(4, "tea", 1), "action 4 is not one of those that the checkout names, 2 to 3"),
        (Cart.act(1, "tea", 1), "action 1 is not one of those that the checkout names, 2 to 3"),
        (Cart.check_out(5, first=2), r"two checkouts of one cart, \(number, first\) \(4, 2\) and \(5, 2\)"),
        (Cart.act(3, "jam", 1), r"two actions under the number 3, \('tea', 1\) and \('jam', 1\)"),
    ],
)
def test_contradictions_are_refused(cart: Cart, message: str) -> None:
    """What the checkout leaves no place for, a second checkout, one number for two actions; repeating is harmless."""
    session = Cart.check_out(4, first=2).merge(Cart.act(3, "tea", 1))
    assert session.merge(session) is session
    for one, other in ((session, cart), (cart, session)):
        with pytest.raises(LatticeValue, match=r"two|not one of those"):
            one.merge(other)
    with pytest.raises(LatticeValue, match=message):
        session.merge(cart)


def test_what_is_no_action_is_refused() -> None:
    """A number, an item and a change it must be."""
    for wrong in ((1, "tea"), ("1", "tea", 1), (1, "tea", 1, 1), (1, "tea", 0.5), "tea"):
        with pytest.raises(LatticeValue, match=r"actions \(number, item, change\)"):
            Cart(((wrong,), None))  # type: ignore[arg-type]
    with pytest.raises(LatticeValue, match="each number once"):
        Cart((((1, "tea", 1), (1, "jam", 1)), None))


def test_a_contradiction_does_not_happen() -> None:
    """A server that gets one keeps what it had, and names the rule."""
    server = LatticeCarts(address="shop")
    server.deliver("action", [("shop", "ann", 1, 2, "tea", 1)])
    server.tick()
    server.deliver("checkout", [("shop", "ann", 1, 2, 1)])
    with pytest.raises(LatticeValue, match=r"carts\.py:\d+: cart: action 2 is not one of those.* 1 to 1"):
        server.tick()
    server.discard()
    server.deliver("checkout", [("shop", "ann", 1, 3, 1)])
    server.deliver("action", [("shop", "ann", 1, 1, "tea", 1)])
    server.tick()
    assert list(server.receipt) == [(1, (("tea", 2),))]

"""A bank: balances are assertions, orders are messages, and a transfer is one step.

Whoever may see balances observes them: they are there for latecomers too, and an old one never stays beside the new.
An order is a message: it happens once.  A transfer changes two accounts in one *turn*, so that the auditor, who adds
up all balances whenever one changes, never sees money on its way.

    $ python examples/bank_account.py
    alice has 100, bob has 0: 100 in all
    alice has 60, bob has 40: 100 in all
    alice has 20, bob has 80: 100 in all
    refused: alice has less than 40
    alice has 40, bob has 80: 120 in all
    alice has 0, bob has 120: 120 in all
"""

from syndicate import (
    Field,
    Ref,
    assert_,
    capture,
    dataflow,
    dataspace,
    field,
    on_message,
    query_hash,
    query_value,
    record,
    run,
    send,
    spawn,
)


@record
class Balance:
    """Asserted by the bank, for each account."""

    owner: str
    amount: int


@record
class Deposit:
    """An order."""

    owner: str
    amount: int


@record
class Transfer:
    """An order."""

    payer: str
    payee: str
    amount: int


@record
class Refused:
    """Sent by the bank when it does not follow an order."""

    why: str


def bank(ds: Ref, opening: dict[str, int]) -> None:
    """Keep the accounts: for each a field, and an assertion of what is in it."""

    def open_account(owner: str, amount: int) -> Field[int]:
        balance = field(amount, name=owner)
        assert_(ds, lambda: Balance(owner, balance.value))  # computed again whenever the field changes
        return balance

    accounts = {owner: open_account(owner, amount) for owner, amount in opening.items()}

    @on_message(ds, Deposit(capture(), capture(int)))
    def deposit(owner: str, amount: int) -> None:
        accounts[owner].value += amount

    @on_message(ds, Transfer(capture(), capture(), capture(int)))
    def transfer(payer: str, payee: str, amount: int) -> None:
        if accounts[payer].value < amount:
            send(ds, Refused(f"{payer} has less than {amount}"))
        else:
            accounts[payer].value -= amount
            accounts[payee].value += amount


def auditor(ds: Ref) -> None:
    """Add up what all have, whenever a balance changes."""
    balances = query_hash(ds, Balance(capture(), capture()))

    @dataflow
    def show() -> None:
        if balances.value:
            each = ", ".join(f"{owner} has {amount}" for owner, amount in balances.value.items())
            print(f"{each}: {sum(balances.value.values())} in all")


def customer(ds: Ref, name: str) -> None:
    """Pay bob, again and again, as long as anything is left."""
    mine = query_value(ds, Balance(name, capture()), default=0)

    @dataflow
    def pay() -> None:
        if mine.value > 0:
            send(ds, Transfer(name, "bob", 40))

    @on_message(ds, Refused(capture()))
    def refused(why: str) -> None:
        print("refused:", why)
        send(ds, Deposit(name, 20))


def boot() -> None:
    """Open the bank."""
    ds = dataspace()
    spawn(bank, ds, {"alice": 100, "bob": 0})
    spawn(auditor, ds)
    spawn(customer, ds, "alice")


if __name__ == "__main__":
    run(boot)

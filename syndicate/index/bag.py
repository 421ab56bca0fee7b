"""A bag: how many times each frozen form is present.

Several actors may assert the same value; the dataspace shows it once, and it goes when the last of them retracts.

Contract: only the first :meth:`Bag.add` and the last :meth:`Bag.remove` of a value return True; absent values take no
room.
"""

from __future__ import annotations

from syndicate.errors import InternalError
from syndicate.values.value import Frozen


class Bag(dict[Frozen, int]):
    """A dictionary of positive counts that reports the crossings of zero.

    >>> bag = Bag(); bag.add("a"), bag.add("a"), bag.remove("a"), bag.remove("a"), bag
    (True, False, False, True, {})
    """

    __slots__ = ()

    def add(self, form: Frozen) -> bool:
        """Count one more of *form*; True if it was absent."""
        count = self.get(form, 0)
        self[form] = count + 1
        return count == 0

    def remove(self, form: Frozen) -> bool:
        """Count one less of *form*; True if it is now absent.  Raises :class:`InternalError` if it was."""
        count = self.get(form, 0)
        if count > 1:
            self[form] = count - 1
            return False
        if count == 0:
            raise InternalError(f"a bag was asked to remove what it does not hold: {form!r}")
        del self[form]
        return True

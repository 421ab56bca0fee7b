"""Interface overrides: a class that declares an interface again, and puts its rules before those of an ancestor.

An input interface is written from outside, so that a module which writes its own means another: the interface of the
same name that an ancestor declared.  Likewise an output interface that it reads is the ancestor's.

>>> from syndicate.bloom import Bloom, bloom, interface
>>> class Double(Bloom):
...     inp = interface("input", ["n"], []); out = interface("output", ["n"], [])
...     @bloom
...     def double(self): self.out <= self.inp.map(lambda r: (2 * r.n,))
>>> class OnlyEven(Double):
...     inp = interface("input", ["n"], [])
...     @bloom
...     def choose(self): self.inp <= self.inp.filter(lambda r: r.n % 2 == 0)
>>> p = OnlyEven(); p.inp <= [(1,), (2,)]; p.tick(); sorted(p.out), sorted(p.inp), sorted(p.collection("Double.inp"))
([(n=4)], [(n=1), (n=2)], [(n=2)])

An interface that is declared again without such a rule is the same one.

**How.**  The blocks are run once to find such rules.  If there are any, the ancestor gets a collection of its own,
``Ancestor.name``, and the blocks are run again; each then sees, under the name, what its class means by it.

Source: Alvaro et al. 2011a, "Modularity and Encapsulation"; ``docs/design/bloom.md``, "Modules".
"""

from __future__ import annotations

from collections.abc import Callable

from syndicate import plan
from syndicate.bloom.collection import Collection, two_in_one
from syndicate.bloom.declaration import Declaration, Kind
from syndicate.bloom.instance import Instance
from syndicate.bloom.namespace import Namespace
from syndicate.bloom.rules.head import Head, declaration_of, kind_of


class InterfaceOverride:
    """The interfaces of one program that several of its classes declare, while its blocks are run."""

    def __init__(self, program: Namespace, instance: Instance) -> None:
        """Find them."""
        self.program, self.instance = program, instance
        self.cls: type | None = None
        self.found: set[tuple[str, type]] = set()
        self.levels: dict[str, list[type]] = {}
        for name, one in instance.own.items():
            if kind_of(one) in (Kind.INPUT, Kind.OUTPUT):
                declaring = [
                    cls for cls in reversed(type(program).__mro__) if isinstance(vars(cls).get(name), Declaration)
                ]
                if len(declaring) > 1:
                    self.levels[name] = declaring
        self.collections: dict[str, list[Collection]] = {}

    def note(self, head: Head, body: plan.Expression) -> None:
        """See whether a rule that is recorded writes an input of its own, or reads an output."""
        own, prefix = self.instance.own, self.instance.prefix
        name = head.tabname[len(prefix) :]
        if own.get(name) is head and kind_of(head) is Kind.INPUT:
            self._meant(name)
        for read in plan.occurrences(body):
            name = read.name[len(prefix) :]
            one = own.get(name)
            if one is not None and one.tabname == read.name and kind_of(one) is Kind.OUTPUT:
                self._meant(name)

    def _meant(self, name: str) -> None:
        if self.cls is not None and self.cls in self.levels.get(name, ())[1:]:
            self.found.add((name, self.cls))

    def split(self) -> bool:
        """Make the ancestors' interfaces, if they are needed."""
        instance = self.instance
        for name in {name for name, _ in self.found}:
            one = instance.own[name]
            chain = [one]
            for cls, below in zip(reversed(self.levels[name]), reversed(self.levels[name][:-1]), strict=False):
                if (name, cls) in self.found:
                    own = f"{below.__name__}.{name}"
                    full = f"{instance.prefix}{own}"
                    one = instance.own[own] = Collection(full, declaration_of(one), instance.runtime)
                chain.append(one)
            self.collections[name] = chain[::-1]
        return bool(self.collections)

    def run(self, cls: type, block: Callable[[], object]) -> None:
        """Run a block of a class, which may run one of an ancestor."""
        outer, self.cls = self.cls, cls
        self._show()
        try:
            block()
        finally:
            self.cls = outer
            self._show()

    def _show(self) -> None:
        for name, chain in self.collections.items():
            self.program.__dict__[name] = chain[-1] if self.cls is None else self._view(self.cls, name, chain)

    def _view(self, cls: type, name: str, chain: list[Collection]) -> Collection:
        declaring = self.levels[name]
        at = max((at for at, one in enumerate(declaring) if issubclass(cls, one)), default=len(chain) - 1)
        if (name, cls) not in self.found:
            return chain[at]
        own, below = chain[at], chain[at - 1]
        return two_in_one(own, below) if kind_of(own) is Kind.INPUT else two_in_one(below, own)

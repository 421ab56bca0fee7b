"""Reflection: tables about a program, in the program.

They are read like any table, by rules too, so that a program can say which of its interfaces nobody serves, or a tool
written in Bloom what depends on what.  They tell of all that the program consists of but themselves.

>>> from syndicate.bloom import bloom, interface, table
>>> class Seen(Reflecting):
...     inp = interface("input", ["x"], []); seen = table(["x"], []); loops = table(["name"], [])
...     @bloom
...     def rules(self):
...         self.seen <= self.inp
...         self.loops <= self.t_cycle.map(lambda c: (c.predicate,))
>>> p = Seen(); p.tick(); [(row.head, row.op) for row in p.t_rules], sorted(p.t_provides), len(p.loops)
([('seen', '<='), ('loops', '<=')], [(interface='inp', input=True)], 0)

Source: Bud (its tables about a program); ``docs/design/bloom.md``, "Tools".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from syndicate.bloom.block import bootstrap
from syndicate.bloom.collection import const
from syndicate.bloom.declaration import Kind
from syndicate.bloom.program import Bloom
from syndicate.bloom.rules.symbols import declaration_of, key_count, kind_of
from syndicate.bloom.tick.runtime import instance_of
from syndicate.flow.element import key_of
from syndicate.graph import component_numbers
from syndicate.values.value import Value


class Reflecting(Bloom):
    """A program that can read about itself.

    * ``t_rules``: its rules, numbered from 1
    * ``t_depends``: what each rule reads, and whether that is a point of order
    * ``t_provides``: interfaces; ``t_underspecified``: those that no rule reads, or writes
    * ``t_stratum`` of collections, ``t_rule_stratum`` of rules
    * ``t_table_info``: collections and their kinds; ``t_table_schema``: their columns, from 0
    * ``t_cycle``: pairs of collections that depend on each other, the first by a rule on the second, and whether any
      such rule is not monotone, or takes effect later
    * ``t_periodics``: timers and their seconds
    """

    t_rules = const(["number"], ["head", "op", "block", "site", "text"])
    t_depends = const(["number", "body"], ["head", "op", "nonmonotone"])
    t_provides = const(["interface"], ["input"])
    t_underspecified = const(["interface"], ["why"])
    t_stratum = const(["collection"], ["stratum"])
    t_rule_stratum = const(["number"], ["stratum"])
    t_table_info = const(["name"], ["kind"])
    t_table_schema = const(["name", "place"], ["column", "key"])
    t_cycle = const(["predicate", "via"], ["negative", "temporal"])
    t_periodics = const(["name"], ["period"])

    @bootstrap
    def reflect(self) -> None:
        """Fill the tables."""
        instance = instance_of(self)
        for name, rows in reflection(self).items():
            instance.runtime.row_state(f"{instance.prefix}{name}").inserted.update(dict.fromkeys(map(key_of, rows)))


def reflection(program: Bloom) -> dict[str, list[tuple[Value, ...]]]:
    """The rows of each table of :class:`Reflecting`, for any program.

    >>> class Plain(Bloom):
    ...     t = const(["x"], [])
    >>> ("t", "const") in reflection(Plain())["t_table_info"]
    True
    """
    mine = {name for name, value in vars(Reflecting).items() if name.startswith("t_")}
    there = [one for one in program.collections() if one.tabname.rpartition(".")[2] not in mine]
    levels = {name: stratum.level for stratum in program.plan.strata() for name in stratum.relations}
    rules = program.statements
    reads = [(rule, one) for rule in rules for one in rule.reads()]
    depends: dict[tuple[int, str], tuple[Value, ...]] = {}
    for rule, one in reads:
        before = depends.get((rule.number, one.name))
        depends[rule.number, one.name] = (rule.head, rule.op, bool(one.why) or (before is not None and before[2]))
    return {
        "t_rules": [(rule.number, rule.head, rule.op, rule.block, rule.site, str(rule)) for rule in rules],
        "t_depends": [(*key, *rest) for key, rest in depends.items()],
        "t_provides": [
            (one.tabname, kind_of(one) is Kind.INPUT) for one in there if kind_of(one) in (Kind.INPUT, Kind.OUTPUT)
        ],
        "t_underspecified": program.underspecified(),
        "t_stratum": [(one.tabname, levels.get(one.tabname, 0)) for one in there],
        "t_rule_stratum": [(rule.number, levels.get(rule.target, 0)) for rule in rules],
        "t_table_info": [(one.tabname, kind_of(one).value) for one in there],
        "t_table_schema": [
            (one.tabname, at, column, at < key_count(one)) for one in there for at, column in enumerate(one.cols)
        ],
        "t_cycle": list(_cycles((head, body, *flags) for (_, body), (head, *flags) in depends.items())),
        "t_periodics": [(one.tabname, declaration_of(one).period) for one in there if kind_of(one) is Kind.PERIODIC],
    }


def _cycles(edges: Iterable[tuple[Value, ...]]) -> Iterator[tuple[Value, ...]]:
    """The edges that lie on a cycle, with what is true of any rule between the two."""
    flags_of: dict[tuple[str, str], tuple[bool, bool]] = {}
    after: dict[str, set[str]] = {}
    for head, body, op, nonmonotone in edges:
        negative, temporal = flags_of.get((head, body), (False, False))
        flags_of[head, body] = (negative or nonmonotone, temporal or op not in ("<=", "="))
        after.setdefault(head, set()).add(body)
    group = component_numbers(after, lambda name: after.get(name, ()))
    for (head, body), flags in flags_of.items():
        if group[head] == group[body]:
            yield (head, body, *flags)

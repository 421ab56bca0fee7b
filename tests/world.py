"""Random programs of a whole system, and what each observer of one must know: a bag of values, and the naive matcher.

A program is data: a list of steps, each a turn of one actor (or a cut of a connection).  It runs over *places*: a
dataspace, dataspaces nested in others, peers of any of them, and any of those on top of another.  :class:`World` knows
which values stand where, by whom, and nothing of turns, indexes, relays or packets.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, TypeAlias

from attrs import Factory, define, evolve

from relay.nested import Inbound, Outbound
from syndicate import ANY, Record, Symbol, capture
from syndicate.values.pattern import Capture, Group, Kind, match, pattern_of
from syndicate.values.value import Frozen, fields_of, freeze, is_record, label_of
from tests.strategies import PP, P

Op: TypeAlias = tuple[Any, ...]
Step: TypeAlias = tuple[Any, ...]

ATOMS = (0, 1, -2, 1.0, -0.0, 0.0, float("nan"), True, False, "", "a", b"a", Symbol("a"), 2**61 - 1, 10**40)
CODECS = ("msgpack", "preserves", "text")
INTEREST = Record(Symbol("Observe"), ["some", "body"])
"""What stands for the interests of a dataspace, which a wildcard sees and this model does not tell apart."""


@define(eq=False)
class Place:
    """Where an actor may act: the first dataspace, one nested in *of*, or a peer of *of*."""

    kind: str
    of: int
    space: int
    outer: int | None


@define(eq=False)
class Watch:
    """An observer: it writes down what it hears, or is a `during` that asserts, or a query whose size is asserted."""

    name: int
    kind: str
    place: int
    pattern: Any
    wrap: int


@define(eq=False)
class Cell:
    """A facet."""

    name: int
    actor: Player
    parent: Cell | None
    alive: bool = True
    children: list[Cell] = Factory(list)
    asserted: dict[int, tuple[int, Any]] = Factory(dict)
    shown: dict[int, tuple[int, int, int]] = Factory(dict)
    watches: dict[int, Watch] = Factory(dict)
    hooks: list[tuple[int, Any]] = Factory(list)
    links: list[Player] = Factory(list)
    asked: list[int] = Factory(list)

    def below(self) -> Iterator[Cell]:
        """It and all in it."""
        yield self
        for child in self.children:
            yield from child.below()


@define(eq=False)
class Player:
    """An actor."""

    place: int
    alive: bool = True
    top: Cell | None = None
    fields: dict[int, int] = Factory(dict)
    linked: list[Cell] = Factory(list)

    def cells(self) -> list[Cell]:
        """Its facets."""
        return [*self.top.below()] if self.alive and self.top is not None else []


def shown(number: int, wrap: int) -> Any:
    """What a computed assertion shows of a field."""
    return None if number % 3 == 0 else wrapped(PP("field", number), wrap)


def wrapped(value: Any, times: int) -> Any:
    """For so many levels further out."""
    for _ in range(times):
        value = Outbound(value)
    return value


def echo(watch: int, captures: Any, wrap: int) -> Any:
    """What a `during` asserts."""
    return wrapped(Record(Symbol("echo"), [watch, list(captures)]), wrap)


def marker(facet: int, number: int) -> Any:
    """What a facet asserts instead of the one before when it asks whether all has been handled."""
    return Record(Symbol("marker"), [facet, number])


def size(watch: int, number: int, wrap: int) -> Any:
    """What is asserted of a query."""
    return wrapped(Record(Symbol("size"), [watch, number]), wrap)


def tells_of_interest(captures: Any) -> bool:
    """Whether a wildcard has caught an `Observe`."""
    return any(core(value) == Symbol("Observe") for value in captures)


def core(value: Any) -> Any:
    """The label within all wrappers, if there is one."""
    while is_record(value) and label_of(value) in (Symbol("inbound"), Symbol("outbound")):
        value = fields_of(value)[0]
    return label_of(value) if is_record(value) else None


class World:
    """The naive world."""

    def __init__(self, places: list[Place]) -> None:
        self.places = places
        self.lost: set[int] = set()
        self.cells: dict[int, Cell] = {}
        self.players: list[Player] = []
        self.sent: list[tuple[Player, int, Any]] = []
        self.touched: set[int] = set()
        self.turns = 0
        self.ends: list[tuple[str, Any]] = []

    # ------------------------------------------------------------------------------------------------ what happens

    def begin(self, name: int, place: int) -> None:
        """An actor with nothing in it."""
        self._born(name, Player(place))

    def _born(self, name: int, player: Player) -> Cell:
        player.top = self.cells[name] = Cell(name, player, None)
        self.players.append(player)
        return player.top

    def act(self, name: int, ops: list[Op]) -> list[Op] | None:
        """A turn; the actions of it that have a meaning now, or None if there is no such facet."""
        cell = self.cells.get(name)
        if cell is None or not cell.alive:
            return None
        self.turns += 1
        self.touched.add(cell.actor.place)
        if any(op[0] == "crash" for op in ops):
            done = self._in_vain(cell.actor, ops)
            self._gone(cell.actor, in_order=False)
        else:
            done = self._perform(cell, ops)
        self._settle()
        return done

    def _in_vain(self, player: Player, ops: list[Op]) -> list[Op]:
        """What of a turn that fails can be done before that: each assertion is acted on once, and stops come last."""
        used: set[int] = set()
        done: list[Op] = []
        stops: list[Op] = []
        for op in ops:
            if op[0] == "spawn":
                handles = [name for name in op[3] if name not in used and self._plain(player, name)]
                used.update(handles)
                done.append((*op[:3], handles, *op[4:]))
            elif op[0] in ("retract", "replace"):
                if op[1] not in used and self._plain(player, op[1]):
                    used.add(op[1])
                    done.append(op)
            elif op[0] == "stop":
                stops += [op] * any(cell.name == op[1] for cell in player.cells())
            elif op[0] in ("assert", "send", "observe"):
                done.append(op)
        return [*done, *stops, ("crash",)]

    def _plain(self, player: Player, name: int) -> bool:
        owner = self._owner(player, name)
        return owner is not None and name in owner.asserted

    def _settle(self) -> None:
        while self.ends:
            what, who = self.ends.pop(0)
            self.turns += 1
            if what == "boot":
                player, name, asserted, ops = who
                cell = self._born(name, player)
                cell.asserted.update(asserted)
                if any(op[0] == "crash" for op in ops):
                    self._gone(player, in_order=False)
                else:
                    self._perform(cell, ops)
            elif what == "actor":
                self._gone(who, in_order=True)
            elif who.alive:
                self._stop(who)

    def _gone(self, player: Player, in_order: bool) -> None:
        if not player.alive:
            return
        top = player.top
        assert top is not None
        if in_order and top.alive:
            self._stop(top)
            return
        player.alive = False
        for cell in [*top.below()]:
            cell.alive = False
            self.ends += [("actor", other) for other in cell.links]
        self.ends += [("cell", cell) for cell in player.linked]

    def _stop(self, cell: Cell) -> None:
        for child in list(cell.children):
            self._stop(child)
        for name, value in cell.hooks:
            if cell.parent is not None:
                cell.parent.asserted[name] = (cell.actor.place, value)
        cell.alive = False
        self.ends += [("actor", other) for other in cell.links]
        if cell.parent is not None:
            cell.parent.children.remove(cell)
        else:
            cell.actor.alive = False
            self.ends += [("cell", other) for other in cell.actor.linked]

    def _owner(self, player: Player, name: int) -> Cell | None:
        return next((c for c in player.cells() if name in c.asserted or name in c.shown), None)

    def _perform(self, cell: Cell, ops: list[Op]) -> list[Op]:
        done: list[Op] = []
        for op in ops:
            effective = getattr(self, f"_do_{op[0]}")(cell, *op[1:])
            if effective is not False:
                done.append(op if effective is None else effective)
        return done

    def _do_assert(self, cell: Cell, name: int, value: Any) -> None:
        if cell.alive:
            cell.asserted[name] = (cell.actor.place, value)

    def _do_computed(self, cell: Cell, name: int, field: int, wrap: int) -> Any:
        if field not in cell.actor.fields:
            return False
        if cell.alive:
            cell.shown[name] = (cell.actor.place, field, wrap)
        return None

    def _do_field(self, cell: Cell, name: int, number: int) -> None:
        cell.actor.fields[name] = number

    def _do_set(self, cell: Cell, name: int, number: int) -> Any:
        if name not in cell.actor.fields:
            return False
        cell.actor.fields[name] = number
        self.touched |= {place for c in cell.actor.cells() for place, field, _ in c.shown.values() if field == name}
        return None

    def _do_retract(self, cell: Cell, name: int) -> Any:
        owner = self._owner(cell.actor, name)
        if owner is None:
            return False
        self.touched.add((owner.asserted.pop(name, None) or owner.shown.pop(name))[0])
        return None

    def _do_replace(self, cell: Cell, name: int, value: Any) -> Any:
        owner = self._owner(cell.actor, name)
        if owner is None or name not in owner.asserted:
            return False
        place = owner.asserted[name][0]
        self.touched.add(place)
        owner.asserted[name] = (place, value)
        return None

    def _do_send(self, cell: Cell, value: Any) -> None:
        self.sent.append((cell.actor, cell.actor.place, value))

    def _do_sync(self, cell: Cell, name: int) -> None:
        if cell.alive:
            cell.asked.append(name)
            cell.asserted[-cell.name] = (cell.actor.place, marker(cell.name, name))

    def _do_observe(self, cell: Cell, name: int, kind: str, pattern: Any, wrap: int) -> None:
        if cell.alive:
            cell.watches[name] = Watch(name, kind, cell.actor.place, pattern, wrap)

    def _do_on_stop(self, cell: Cell, name: int, value: Any) -> None:
        if cell.alive:
            cell.hooks.append((name, value))

    def _do_react(self, cell: Cell, name: int, ops: list[Op]) -> Any:
        if not cell.alive:
            return False
        below = self.cells[name] = Cell(name, cell.actor, cell)
        cell.children.append(below)
        return ("react", name, self._perform(below, ops))

    def _do_stop(self, cell: Cell, name: int, then: tuple[int, Any] | None) -> Any:
        target = self.cells.get(name)
        if target is None or not target.alive or target.actor is not cell.actor:
            return False
        self.touched |= {place for c in target.below() for place, *_ in (*c.asserted.values(), *c.shown.values())}
        if then is not None:
            target.hooks.append(then)
        self._stop(target)
        return None

    def _do_stop_actor(self, cell: Cell) -> Any:
        top = cell.actor.top
        assert top is not None
        return self._do_stop(cell, top.name, None) and None

    def _do_spawn(self, cell: Cell, name: int, place: int, handles: list[int], linked: bool, ops: list[Op]) -> Any:
        owners = {
            each: owner for each in handles if (owner := self._owner(cell.actor, each)) and each in owner.asserted
        }
        asserted = {each: owner.asserted.pop(each) for each, owner in owners.items()}
        self.touched |= {place} | {fact[0] for fact in asserted.values()}
        player = Player(place)
        if linked:
            player.linked.append(cell)
            cell.links.append(player)
        self.ends.append(("boot", (player, name, asserted, ops)))
        if linked and not cell.alive:
            self.ends.append(("actor", player))
        return ("spawn", name, place, list(asserted), linked, ops)

    def cut(self, place: int) -> None:
        """The connection of a peer is lost, and what is reached through it."""
        self.lost |= {n for n in range(len(self.places)) if place in self.ancestors(n)}

    def ancestors(self, place: int) -> Iterator[int]:
        """The places by which one comes to it."""
        yield place
        while place:
            place = self.places[place].of
            yield place

    # ------------------------------------------------------------------------------------------------ what is there

    def watches(self) -> dict[int, Watch]:
        """The observers that are there, by name."""
        return {
            name: watch
            for player in self.players
            for cell in player.cells()
            for name, watch in cell.watches.items()
            if watch.place not in self.lost
        }

    def known(self) -> dict[int, dict[Frozen, Any]]:
        """The captures that each observer knows, by their form."""
        watches = self.watches()
        facts = [
            each
            for player in self.players
            for cell in player.cells()
            for each in (
                *cell.asserted.values(),
                *((place, shown(player.fields[field], wrap)) for place, field, wrap in cell.shown.values()),
            )
            if each[0] not in self.lost and each[1] is not None
        ]
        spaces = self._spaces(facts, watches)
        for watch in watches.values():
            result = self._captures(watch, spaces)
            if watch.kind == "during":
                facts += [(watch.place, echo(watch.name, captures, watch.wrap)) for captures in result.values()]
            elif watch.kind == "query":
                facts.append((watch.place, size(watch.name, len(result), watch.wrap)))
        spaces = self._spaces(facts, watches)
        return {name: self._captures(watch, spaces) for name, watch in watches.items()}

    def _captures(self, watch: Watch, spaces: dict[int, dict[Frozen, Any]]) -> dict[Frozen, Any]:
        matched = (match(watch.pattern, value) for value in spaces[self.places[watch.place].space].values())
        return {
            freeze(captures): captures
            for captures in matched
            if captures is not None and not tells_of_interest(captures)
        }

    def _spaces(self, facts: list[tuple[int, Any]], watches: dict[int, Watch]) -> dict[int, dict[Frozen, Any]]:
        outer = {place.space: place.outer for place in self.places if place.kind != "peer"}
        spaces: dict[int, dict[Frozen, Any]] = {space: {freeze(INTEREST): INTEREST} for space in outer}
        interests: dict[int, list[Any]] = {space: [] for space in outer}
        for place, value in facts:
            for space, seen in self._outwards(self.places[place].space, value, outer):
                spaces[space][freeze(seen)] = seen
        far = {place.space for place in self.places if place.kind == "nested" and self.places[place.of].kind == "peer"}
        for watch in watches.values():
            here = self.places[watch.place]
            pattern = without_classes(watch.pattern) if here.kind == "peer" else watch.pattern
            interests[here.space].append(pattern)
        cut = {place.space for n, place in enumerate(self.places) if n in self.lost and place.kind == "nested"}
        for space in sorted(outer, reverse=True):  # the inner ones first, as they were made later
            around = outer[space]
            if around is not None and space not in cut:
                asked = [each for pattern in interests[space] if (each := _asked(pattern)) is not None]
                interests[around] += map(without_classes, asked) if space in far else asked
        for space in sorted(outer):
            around = outer[space]
            if around is not None and space not in cut:
                asked = [each for pattern in interests[space] if (each := _asked(pattern)) is not None]
                for value in list(spaces[around].values()):
                    if any(match(each, value) is not None for each in asked):
                        spaces[space][freeze(Inbound(value))] = Inbound(value)
        return spaces

    @staticmethod
    def _outwards(space: int, value: Any, outer: dict[int, int | None]) -> Iterator[tuple[int, Any]]:
        yield space, value
        while isinstance(value, Outbound) and (around := outer[space]) is not None:
            space, value = around, value.value
            yield space, value

    def heard(self, watch: Watch, space: int, value: Any) -> list[Any]:
        """The captures of a message, sent in a dataspace, that an observer hears."""
        outer = {place.space: place.outer for place in self.places if place.kind != "peer"}
        seen = dict(self._outwards(space, value, outer))
        own: int | None = self.places[watch.place].space
        result, times = [], 0
        while own is not None:
            if own in seen:
                events = seen[own]
                for _ in range(times):
                    events = Inbound(events)
                captures = match(watch.pattern, events)
                if captures is not None:
                    result.append(captures)
            own, times = outer[own], times + 1
        return result


def without_classes(pattern: Any) -> Any:
    """What a peer is asked for: classes of atoms have no published form, and are distinguished on arrival."""
    if isinstance(pattern, Inbound | Outbound):
        return type(pattern)(without_classes(pattern.value))
    pattern = pattern_of(pattern)
    if isinstance(pattern, Capture):
        return Capture(without_classes(pattern.pattern))
    if isinstance(pattern, Group):
        return evolve(pattern, entries=tuple([(key, without_classes(part)) for key, part in pattern.entries]))
    return ANY if isinstance(pattern, Kind) else pattern


def _asked(pattern: Any) -> Any:
    """The pattern of the outer values that an interest asks for, or None."""
    pattern = getattr(pattern, "pattern", pattern)  # captured as a whole
    return pattern.value if isinstance(pattern, Inbound) else None


# ---------------------------------------------------------------------------------------------------- random programs


class Author:
    """Writes a program, and follows it in a world of its own to know what there is to act on."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.count = 0
        self.held = False
        self.values: list[Any] = []
        self.cores: list[Any] = []
        self.places = self.some_places()
        self.world = World(self.places)
        self.starts = [(self.fresh(), self.rng.randrange(len(self.places))) for _ in range(self.rng.randrange(2, 5))]
        for name, place in self.starts:
            self.world.begin(name, place)
        self.codecs = [self.rng.choice(CODECS) for _ in self.places]
        self.slow = [self.rng.random() < 0.5 for _ in self.places]  # peers for whom state is kept, and not a queue

    def fresh(self) -> int:
        self.count += 1
        return self.count

    def some_places(self) -> list[Place]:
        places = [Place("root", 0, 0, None)]
        for _ in range(self.rng.randrange(4)):
            of = self.rng.randrange(len(places))
            if self.rng.random() < 0.5:
                further = Place("nested", of, max(place.space for place in places) + 1, places[of].space)
            else:
                further = Place("peer", of, places[of].space, places[of].outer)
            places.append(further)
        return places

    def program(self, steps: int) -> list[Step]:
        """Some steps."""
        written: list[Step] = []
        for _ in range(steps):
            step = self.step()
            if step[0] == "act":
                self.world.act(step[1], step[2])
            elif step[0] == "cut":
                self.world.cut(step[1])
            written.append(step)
        return written

    def step(self) -> Step:
        rng = self.rng
        peers = [n for n, place in enumerate(self.places) if place.kind == "peer" and n not in self.world.lost]
        chance = rng.random()
        if peers and chance < 0.02:
            return ("cut", rng.choice(peers))
        if peers and chance < 0.12:
            self.held = True
            return ("hold", rng.choice(peers), rng.choice(["left", "right"]))
        cells = [
            cell for player in self.world.players for cell in player.cells() if player.place not in self.world.lost
        ]
        if not cells:
            name, place = self.fresh(), 0
            self.world.begin(name, place)
            return ("begin", name, place)
        cell = rng.choice(cells)
        ops = [self.op(cell.actor, cell) for _ in range(rng.randrange(1, 6))]
        if rng.random() < 0.03:
            ops.append(("crash",))
        settle = rng.random() < (0.1 if self.held else 0.7)
        self.held = self.held and not settle
        return ("act", cell.name, ops, settle)

    def op(self, player: Player, cell: Cell, depth: int = 0) -> Op:
        rng = self.rng
        kinds = ["assert"] * 4 + ["send"] * 2 + ["observe"] * 3 + ["computed", "field", "on_stop", "react"]
        if not depth:
            kinds += ["retract"] * 3 + ["replace"] * 3 + ["set"] * 3 + ["stop", "stop", "sync", "spawn"]
            kinds += ["stop_actor"] * (rng.random() < 0.1)
        kind = rng.choice(kinds)
        names = [name for c in player.cells() for name in (*c.asserted, *c.shown) if name > 0] or [0]
        fields = [*player.fields] or [0]
        match kind:
            case "assert" | "on_stop":
                return (kind, self.fresh(), self.value(player.place))
            case "send":
                message = Record(Symbol("message"), [self.fresh(), rng.choice(ATOMS)])
                return (kind, wrapped(message, self.wrap(player.place)))
            case "observe":
                chosen = rng.choice(["watch", "watch", "watch", "during", "query"])
                return (kind, self.fresh(), chosen, self.pattern(player.place, chosen), self.wrap(player.place))
            case "computed":
                return (kind, self.fresh(), rng.choice(fields), self.wrap(player.place))
            case "field":
                return (kind, self.fresh(), rng.randrange(6))
            case "set":
                return (kind, rng.choice(fields), rng.randrange(6))
            case "retract":
                return (kind, rng.choice(names))
            case "replace":
                return (kind, rng.choice(names), self.value(player.place))
            case "react":
                return (kind, self.fresh(), [self.op(player, cell, depth + 1) for _ in range(rng.randrange(4))])
            case "stop":
                cells = [c.name for c in player.cells()]
                if len(cells) > 1 or rng.random() < 0.8:  # not the whole actor, mostly
                    cells = [name for name in cells if player.top is None or name != player.top.name]
                then = (self.fresh(), self.value(player.place)) if rng.random() < 0.5 else None
                return (kind, rng.choice(cells or [0]), then)
            case "spawn":
                place = player.place if rng.random() < 0.6 else self.somewhere()
                handles = [name for name in names if rng.random() < 0.3]
                born = Player(place)
                ops = [self.op(born, cell, 2) for _ in range(rng.randrange(4))] + [("crash",)] * (rng.random() < 0.1)
                return (kind, self.fresh(), place, handles, rng.random() < 0.4, ops)
            case "sync":
                return (kind, self.fresh())
            case _:
                return (kind,)

    def somewhere(self) -> int:
        return self.rng.choice([n for n in range(len(self.places)) if n not in self.world.lost])

    def wrap(self, place: int) -> int:
        depth, outer = 0, self.places[place].outer
        while outer is not None:
            depth += 1
            outer = next(p.outer for p in self.places if p.space == outer)
        return self.rng.randrange(depth + 1)

    def plain(self) -> Any:
        rng = self.rng
        x, y = rng.choice(ATOMS), rng.randrange(3)
        return rng.choice(
            [P(x), P(y), PP(y, x), PP(x, [y, y]), [y, x], [x, {"k": y}], {"k": x}, {"k": y, 1: [x]}, P({x})]
        )

    def value(self, place: int) -> Any:
        """Something to assert, often what was asserted before."""
        if not self.values or self.rng.random() < 0.5:
            self.values.append(self.plain())
        return wrapped(self.rng.choice(self.values[-6:]), self.wrap(place))

    def pattern(self, place: int, kind: str) -> Any:
        """Something to observe, often what was observed before."""
        rng = self.rng
        if not self.cores or rng.random() < 0.6:
            self.cores.append(self.core())
        core = rng.choice(self.cores[-6:])
        if kind == "watch":
            if rng.random() < 0.15:
                core = rng.choice([capture(), ANY])
            elif rng.random() < 0.3:
                label, arity = rng.choice([("message", 2), ("echo", 2), ("size", 2)])
                core = Record(Symbol(label), [capture() if rng.random() < 0.7 else ANY for _ in range(arity)])
        outward = rng.random() < 0.7
        for _ in range(self.wrap(place)):
            core = Inbound(core) if outward else Outbound(core)
        return core

    def core(self) -> Any:
        """A value with holes in it."""
        rng = self.rng

        def holed(part: Any) -> Any:
            return rng.choice(
                [part, ANY, ANY, capture(), capture(), capture(int), capture(bool), capture(float), capture(str)]
            )

        value = rng.choice(self.values[-6:]) if self.values and rng.random() < 0.7 else self.plain()
        if isinstance(value, P):
            pattern: Any = P(holed(0 if isinstance(value.x, set) else value.x))
        elif isinstance(value, PP):
            pattern = PP(holed(value.x), holed(0 if isinstance(value.y, list) else value.y))
        elif isinstance(value, list):
            pattern = [holed(value[0]), *([holed(1)] if rng.random() < 0.7 else [])]
        else:
            pattern = {"k": holed(value["k"])}
        return capture(pattern) if rng.random() < 0.2 else pattern

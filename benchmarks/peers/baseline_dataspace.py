# The baseline as it was first measured: dataspaces on syndicate-py's public API.  Kept as it was but for its layout,
# so that ratios stay comparable.  Run only through workloads.py, by a Python of its own.
# ruff: noqa: B007, C901, D101, D102, D103, D415, F401, I001, N812, N817, RUF005, RUF023, SIM110
# mypy: ignore-errors
"""Dataspace entities hosted on syndicate-py 0.19.3's public Entity/turn API.
syndicate-py itself contains NO dataspace/index (dataspace.py is only client decorators),
so three stand-ins:
  OracleDS  : lower bound - zero-cost index, forwards everything to a fixed observer ref
  LinearDS  : naive, tries every observer's pattern on every event (interpreted match)
  SkelDS    : interpreted transliteration of the paper's skeleton index (paths, tables)
"""

from syndicate import turn, Record, Symbol, Embedded
from syndicate.actor import Entity
from syndicate.schema import dataspace as D, dataspacePatterns as P

OBS = Symbol("Observe")
PT = P.Pattern


class OracleDS(Entity):
    def __init__(self):
        self.target = None
        self.hs = {}

    def on_message(self, v):
        turn.send(self.target, v.fields)

    def on_publish(self, v, h):
        if isinstance(v, Record) and v.key == OBS:
            o = D.Observe.decode(v)
            self.target = o.observer.embeddedValue if hasattr(o.observer, "embeddedValue") else o.observer
        elif self.target is not None:
            self.hs[h] = turn.publish(self.target, v.fields)

    def on_retract(self, h):
        oh = self.hs.pop(h, None)
        if oh is not None:
            turn.retract(oh)


DISC, BIND, LIT, GROUP = PT.discard.VARIANT, PT.bind.VARIANT, PT.lit.VARIANT, PT.group.VARIANT
REC = P.GroupType.rec.VARIANT


def match(p, v, caps):
    k = p.VARIANT
    if k is DISC:
        return True
    if k is BIND:
        caps.append(v)
        return match(p.pattern, v, caps)
    if k is LIT:
        return p.value.value == v
    t = p.type
    if t.VARIANT is REC:
        if not isinstance(v, Record) or v.key != t.label:
            return False
        v = v.fields
    elif not isinstance(v, tuple):
        return False
    n = len(v)
    for i, pp in p.entries.items():
        if i >= n or not match(pp, v[i], caps):
            return False
    return True


def emb(o):
    r = o.observer
    return getattr(r, "embeddedValue", r)


class Base(Entity):
    def __init__(self):
        self.byhandle = {}
        self.bag = {}
        self.obs = {}
        super().__init__()

    def on_publish(self, v, h):
        if isinstance(v, Record) and v.key == OBS:
            o = D.Observe.decode(v)
            self.obs[h] = self.add_obs(o.pattern, emb(o))
            return  # (Observe contains dicts: unhashable, not indexed itself)
        self.byhandle[h] = v
        n = self.bag.get(v, 0)
        self.bag[v] = n + 1
        if n == 0:
            self.added(v)

    def on_retract(self, h):
        o = self.obs.pop(h, None)
        if o is not None:
            self.del_obs(o)
            return
        v = self.byhandle.pop(h)
        n = self.bag[v] - 1
        if n:
            self.bag[v] = n
        else:
            del self.bag[v]
            self.removed(v)


class LinearDS(Base):
    def __init__(self):
        super().__init__()
        self.list = {}

    def add_obs(self, pat, ref):
        rec = (pat, ref, {}, {})
        self.list[id(rec)] = rec
        for v in self.bag:
            self._add1(rec, v)
        return rec

    def del_obs(self, rec):
        del self.list[id(rec)]
        for h in rec[3].values():
            turn.retract(h)

    def _add1(self, rec, v):
        caps = []
        if match(rec[0], v, caps):
            t = tuple(caps)
            n = rec[2].get(t, 0)
            rec[2][t] = n + 1
            if n == 0:
                rec[3][t] = turn.publish(rec[1], t)

    def added(self, v):
        for rec in list(self.list.values()):
            self._add1(rec, v)

    def removed(self, v):
        for rec in list(self.list.values()):
            caps = []
            if match(rec[0], v, caps):
                t = tuple(caps)
                n = rec[2][t] - 1
                if n:
                    rec[2][t] = n
                else:
                    del rec[2][t]
                    turn.retract(rec[3].pop(t))

    def on_message(self, v):
        for pat, ref, _, _ in list(self.list.values()):
            caps = []
            if match(pat, v, caps):
                turn.send(ref, tuple(caps))


NONE = object()


def project(v, path):
    for i in path:
        if isinstance(v, Record):
            v = v.fields
        elif not isinstance(v, tuple):
            return NONE
        if i >= len(v):
            return NONE
        v = v[i]
    return v


def pmany(v, paths):
    out = []
    for p in paths:
        x = project(v, p)
        if x is NONE:
            return None
        out.append(x)
    return tuple(out)


def classof(v):
    if isinstance(v, Record):
        return v.key
    if isinstance(v, tuple):
        return "#arr"
    return None


def analyse(p):
    shape, consts, checks, caps = [], [], [], []

    def walk(p, path):
        k = p.VARIANT
        if k is DISC:
            checks.append(path)
        elif k is BIND:
            caps.append(path)
            walk(p.pattern, path)
        elif k is LIT:
            consts.append((path, p.value.value))
        else:
            t = p.type
            shape.append((path, t.label if t.VARIANT is REC else "#arr"))
            for i in sorted(p.entries):
                walk(p.entries[i], path + (i,))

    walk(p, ())
    return tuple(shape), tuple(consts), tuple(checks), tuple(caps)


class Node:
    __slots__ = ("cache", "table", "moves")

    def __init__(self):
        self.cache = set()
        self.table = {}
        self.moves = {}


class SkelDS(Base):
    def __init__(self):
        super().__init__()
        self.root = Node()

    def extend(self, shape):
        n = self.root
        for path, lab in shape:
            ct = n.moves.setdefault(path, {})
            nx = ct.get(lab)
            if nx is None:
                nx = ct[lab] = Node()
                nx.cache = {v for v in n.cache if (x := project(v, path)) is not NONE and classof(x) == lab}
            n = nx
        return n

    def add_obs(self, pat, ref):
        shape, consts, checks, caps = analyse(pat)
        n = self.extend(shape)
        locs = tuple(c[0] for c in consts)
        key = tuple(c[1] for c in consts)
        ck = (locs, checks)
        t = n.table.get(ck)
        if t is None:
            t = n.table[ck] = {}
            for v in n.cache:
                if pmany(v, checks) is not None and (k := pmany(v, locs)) is not None:
                    t.setdefault(k, (set(), {}))[0].add(v)
        leaf = t.setdefault(key, (set(), {}))
        h = leaf[1].get(caps)
        if h is None:
            bag = {}
            for v in leaf[0]:
                s = pmany(v, caps)
                if s is not None:
                    bag[s] = bag.get(s, 0) + 1
            h = leaf[1][caps] = (bag, {})
        hs = {}
        h[1][id(hs)] = (ref, hs)
        for s in h[0]:
            hs[s] = turn.publish(ref, s)
        return (h, hs)

    def del_obs(self, o):
        h, hs = o
        del h[1][id(hs)]
        for x in hs.values():
            turn.retract(x)

    def modify(self, op, v):
        stack = [self.root]
        while stack:
            n = stack.pop()
            if op == 1:
                n.cache.add(v)
            elif op == -1:
                n.cache.discard(v)
            for (locs, checks), t in n.table.items():
                if checks and pmany(v, checks) is None:
                    continue
                k = pmany(v, locs)
                if k is None:
                    continue
                leaf = t.get(k)
                if leaf is None:
                    if op != 1:
                        continue
                    leaf = t[k] = (set(), {})
                if op == 1:
                    leaf[0].add(v)
                elif op == -1:
                    leaf[0].discard(v)
                for caps, (bag, obs) in leaf[1].items():
                    s = pmany(v, caps)
                    if s is None:
                        continue
                    if op == 0:
                        for ref, hs in obs.values():
                            turn.send(ref, s)
                    elif op == 1:
                        c = bag.get(s, 0)
                        bag[s] = c + 1
                        if c == 0:
                            for ref, hs in obs.values():
                                hs[s] = turn.publish(ref, s)
                    else:
                        c = bag[s] - 1
                        if c:
                            bag[s] = c
                        else:
                            del bag[s]
                            for ref, hs in obs.values():
                                turn.retract(hs.pop(s))
                if op == -1 and not leaf[0] and not leaf[1]:
                    del t[k]
            for path, ct in n.moves.items():
                x = project(v, path)
                if x is not NONE:
                    nx = ct.get(classof(x))
                    if nx is not None:
                        stack.append(nx)

    def added(self, v):
        self.modify(1, v)

    def removed(self, v):
        self.modify(-1, v)

    def on_message(self, v):
        self.modify(0, v)

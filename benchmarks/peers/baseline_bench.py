# The baseline as it was first measured: the workloads on the dataspaces of baseline_dataspace.py.  Kept as it was but
# for its layout, so that ratios stay comparable.  Run only through workloads.py, by a Python of its own.
# ruff: noqa: B905, D100, D101, D102, D103, D403, D415, E401, E402, E742, F401, F841, I001, N803, N806, N812, RUF005, UP031
# mypy: ignore-errors
import asyncio, sys, time, gc, json, tracemalloc, logging

logging.disable(logging.CRITICAL) if 0 else logging.basicConfig(level=logging.WARNING)
sys.path.insert(0, __file__.rsplit("/", 1)[0])
import syndicate
from syndicate import turn, Record, Symbol, patterns as P, dataspace
from syndicate.actor import System, Entity, Actor
from syndicate.schema import dataspace as D
from syndicate.during import Handler
from baseline_dataspace import OracleDS, LinearDS, SkelDS

now = time.perf_counter
SPEAK, PRES = Symbol("speak"), Symbol("present")


class Counter(Entity):
    def __init__(self, target, done):
        self.n = 0
        self.t = target
        self.done = done

    def on_message(self, v):
        self.n += 1
        if self.n == self.t:
            self.done()

    def on_publish(self, v, h):
        self.n += 1
        if self.n == self.t:
            self.done()

    def on_retract(self, h):
        self.n += 1
        if self.n == self.t:
            self.done()


def run(boot):
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    s = System(loop)
    res = {}

    def fin():
        s.exit_signal.put_nowait(())

    loop.call_later(25, fin)
    s.run(lambda: boot(res, fin), configure_logging=False)
    return res


def with_ds(cls, k):
    """boot DS actor, then call k(ds_ref) inside another actor"""

    def boot(res, fin):
        turn.prevent_inert_check()
        ds = turn.ref(cls())
        turn.spawn(lambda: (turn.prevent_inert_check(), k(ds, res, fin)))

    return boot


def observers(ds, ents, pats):
    for e, p in zip(ents, pats):
        turn.publish(ds, D.Observe(p, turn.ref(e)))


def bench_a(cls, N, K, perturn=False):
    def k(ds, res, fin):
        def done():
            res["t"] = now() - res["t0"]
            fin()

        cs = [Counter(K, done) for _ in range(N)]
        order = list(range(1, N)) + [0]  # matching one last (oracle targets last)
        observers(ds, [cs[i] for i in order], [P.rec("speak", P.lit(i), P.CAPTURE) for i in order])

        def sender():
            turn.prevent_inert_check()

            def start():
                gc.collect()
                res["t0"] = now()
                if not perturn:
                    for j in range(K):
                        turn.send(ds, Record(SPEAK, (0, j)))
                else:
                    me = turn.active_facet()

                    class Tick(Entity):
                        def on_message(self, j):
                            turn.send(ds, Record(SPEAK, (0, j)))
                            if j + 1 < K:
                                turn.send(ref, j + 1)

                    ref = turn.ref(Tick())
                    turn.send(ref, 0)

            turn.sync(ds, start)

        turn.sync(ds, lambda: turn.spawn(sender))

    return K / run(with_ds(cls, k))["t"]


def bench_b(cls, N, K, allm=False):
    ev = 2 * K * (N if allm else 1)

    def k(ds, res, fin):
        c = Counter(ev, lambda: (res.__setitem__("t", now() - res["t0"]), fin()))
        dummy = Counter(-1, None)
        order = list(range(1, N)) + [0]
        if allm:  # distinct observers, all matching, in one actor
            observers(ds, [c] * N, [P.rec("speak", P._, P.CAPTURE)] * N)
        else:
            observers(ds, [dummy] * (N - 1) + [c], [P.rec("speak", P.lit(i), P.CAPTURE) for i in order])

        def sender():
            turn.prevent_inert_check()

            def start():
                gc.collect()
                res["t0"] = now()
                hs = [turn.publish(ds, Record(SPEAK, (0, j))) for j in range(K)]
                turn.sync(ds, lambda: [turn.retract(h) for h in hs])

            turn.sync(ds, start)

        turn.sync(ds, lambda: turn.spawn(sender))

    t = run(with_ds(cls, k))["t"]
    return 2 * K / t, ev / t  # assertion changes/s, events/s


def bench_c(cls, M, one=False):
    def k(ds, res, fin):
        for j in range(M):
            turn.publish(ds, Record(SPEAK, (j, j)))

        def start():
            gc.collect()
            res["t0"] = now()
            c = Counter(1 if one else M, lambda: (res.__setitem__("t", now() - res["t0"]), fin()))
            observers(ds, [c], [P.rec("speak", P.lit(0) if one else P._, P.CAPTURE)])

        def second():  # warm: structure exists for a prior handler with a same skeleton, different constant
            c2 = Counter(-1, None)
            observers(ds, [c2], [P.rec("speak", P.lit(M + 5) if one else P.CAPTURE, P._ if not one else P.CAPTURE)])
            turn.sync(ds, start)

        turn.sync(ds, second)

    return run(with_ds(cls, k))["t"]


def bench_d(cls, K):
    SET, ST = Symbol("set-box"), Symbol("box-state")

    def k(ds, res, fin):
        def box():
            turn.prevent_inert_check()
            val = turn.field(0, name="v")
            turn.publish_dataflow(lambda: (ds, Record(ST, (val.value,))))

            @dataspace.on_message(ds, P.rec("set-box", P.CAPTURE))
            def on_set(v):
                val.value = v

        def client():
            turn.prevent_inert_check()

            def on_state(v):
                if v == 0:
                    res["t0"] = now()
                if v == K:
                    res["t"] = now() - res["t0"]
                    fin()
                else:
                    turn.send(ds, Record(SET, (v + 1,)))

            dataspace.observe(ds, P.rec("box-state", P.CAPTURE))(Handler(on_add=on_state))

        turn.spawn(box)
        turn.spawn(client)

    return K / run(with_ds(cls, k))["t"]


def bench_e(cls, U):
    def k(ds, res, fin):
        tot = [0]

        class O(Entity):
            def on_publish(self, v, h):
                tot[0] += 1
                if tot[0] == U * U:
                    res["t"] = now() - res["t0"]
                    fin()

        res["t0"] = now()
        for u in range(U):

            def user(u=u):
                turn.prevent_inert_check()
                turn.publish(ds, Record(PRES, ("user%d" % u,)))
                turn.publish(ds, D.Observe(P.rec("present", P.CAPTURE), turn.ref(O())))

            turn.spawn(user)

    return U * U / run(with_ds(cls, k))["t"]


def bench_f(cls, kind, N):
    def k(ds, res, fin):
        gc.collect()
        tracemalloc.start()
        b = tracemalloc.get_traced_memory()[0]
        if kind == "assertion":
            for j in range(N):
                turn.publish(ds, Record(SPEAK, (j, "x")))
        else:
            e = Counter(-1, None)
            for j in range(N):
                turn.publish(ds, D.Observe(P.rec("speak", P.lit(j), P.CAPTURE), turn.ref(e)))

        def fin2():
            gc.collect()
            res["m"] = (tracemalloc.get_traced_memory()[0] - b) / N
            tracemalloc.stop()
            fin()

        turn.sync(ds, lambda: turn.sync(ds, fin2))

    return run(with_ds(cls, k))["m"]

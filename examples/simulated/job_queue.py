"""A queue of jobs that loses one, and the same one mended.

    syndicate simulate examples/simulated/job_queue.py:hasty --seeds 200
    syndicate simulate examples/simulated/job_queue.py:steady --seeds 200

A producer asserts jobs, workers claim them, and the worker whose claim is the least does the job.  A *hasty* worker
looks once whether a job is free, a moment after it has seen it: the spare worker a second after the first.  If the
worker that has claimed the job dies, its claim goes, and nobody claims the job again.  A *steady* worker claims every
job that is not done; so the spare has its turn when the claim of the first goes.

Jobs and results are in the durable dataspace: they are there whoever dies.  Who is killed here does not come back,
if it is a worker.
"""

from functools import partial

from relay import connect, keep
from relay.capabilities.sturdy import SturdyRef
from relay.simulation import World, scenario
from syndicate import Field, Ref, after, assert_, capture, during, field, on_stop, record

JOBS = 4
EVERY = 4.0
WORK = 4.0


@record
class Job:
    """There is something to do."""

    number: int


@record
class Claim:
    """A worker would do it."""

    number: int
    worker: str


@record
class Done:
    """It was done."""

    number: int


def producer(address: str, durable: SturdyRef) -> None:
    """Asserts a job every few seconds."""

    @connect(address, durable)
    def connected(ds: Ref) -> None:
        for number in range(JOBS):
            after(EVERY * number, partial(assert_, ds, Job(number)))


def worker(name: str, wait: float, address: str, durable: SturdyRef, steady: bool) -> None:
    """Claims jobs and does them."""
    results: Field[Ref | None] = field(None)

    @connect(address, durable)
    def connected(ds: Ref) -> None:
        results.value = ds

        @on_stop
        def lost() -> None:
            results.value = None

    @connect(address)
    def present(ds: Ref) -> None:
        @during(ds, Job(capture(int)))
        def job(number: int) -> None:
            claims: Field[frozenset[str]] = field(frozenset())
            done = field(False)

            @during(ds, Claim(number, capture(str)))
            def claimed(by: str) -> None:
                claims.value |= {by}

                @on_stop
                def free() -> None:
                    claims.value -= {by}

            @during(ds, Done(number))
            def finished() -> None:
                done.value = True

            def claim() -> None:
                if claims.value and not steady:
                    return
                assert_(ds, lambda: None if done.value else Claim(number, name))
                work()

            def work() -> None:
                @after(WORK)
                def is_done() -> None:
                    if not done.value:
                        work()
                    if claims.value and min(claims.value) == name and results.value is not None:
                        keep(results.value, Done(number))

            after(wait, claim)


def queue(world: World, *, steady: bool) -> None:
    """A broker, a producer, a worker and its spare."""
    broker = world.broker("b", durable=True)
    world.process("p", producer, broker.address, broker.cap("durable"))
    for name, wait in (("w1", 0.5), ("w2", 1.5)):
        world.process(name, worker, name, wait, broker.address, broker.cap("durable"), steady, restart=None)
    done = world.observe(broker, Done(capture()))
    claims = world.observe(broker, Claim(capture(), capture()))
    world.faults(kills=1, cuts=1, until=20.0)
    world.sometimes("two claim one job", lambda: len(claims.value) > len({number for number, _ in claims.value}))
    world.eventually("all done", lambda: len(done.value) == JOBS, within=90.0)


@scenario(seeds=200, until=150.0)
def hasty(world: World) -> None:
    """With the bug."""
    queue(world, steady=False)


@scenario(seeds=200, until=150.0)
def steady(world: World) -> None:
    """Without it."""
    queue(world, steady=True)

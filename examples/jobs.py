"""Jobs that are tried again: a queue, two workers, a dead letter.

    $ python examples/jobs.py
    thumbnail of cat.png, attempt 1
    thumbnail of dog.png, attempt 1
    broken.png is given up: it is no picture
    thumbnail of dog.png, attempt 2
    made: ['cat.png: 64 x 64', 'dog.png: 64 x 64']

The queue is in a dataspace of this process here.  In several programs it is in that of a server with ``--state``:
``connect(address, durable)`` gives each of them the ``ds``, and everything else is the same.
"""

from syndicate import ANY, capture, dataspace, on_asserted, run, stop_actor
from syndicate.errors import PermanentFailure
from syndicate.work import Claim, Retry, gather, queue, submit, worker
from syndicate.work.records import Dead


@worker()
async def thumbnail(picture: str, claim: Claim) -> str:
    """Makes one, unless it is the dog's first attempt."""
    if picture == "broken.png":
        raise PermanentFailure("it is no picture")
    print(f"thumbnail of {picture}, attempt {claim.attempt}")
    if picture == "dog.png" and claim.attempt == 1:
        raise OSError("the disk was busy")
    return f"{picture}: 64 x 64"


def boot() -> None:
    """Submits three jobs, and waits for all."""
    ds = dataspace()
    jobs = queue(ds, "thumbnails", retry=Retry(times=3, first=0.1))
    thumbnail.join(jobs)

    @on_asserted(ds, Dead("thumbnails", capture(str), capture(str), ANY, ANY))
    def given_up(picture: str, why: str) -> None:
        print(f"{picture} is given up: {why}")

    def over(made: dict[str, object], dead: dict[str, str]) -> None:
        print("made:", sorted(map(str, made.values())))
        stop_actor()

    pictures = ("cat.png", "dog.png", "broken.png")
    gather(jobs, [submit(jobs, picture, id=picture) for picture in pictures], over)


if __name__ == "__main__":
    run(boot)

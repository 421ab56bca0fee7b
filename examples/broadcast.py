"""Broadcast, put to the test: which losses and crashes break it, and which the reliable one?

``broadcast.ded`` sends its news once, ``reliable_broadcast.ded`` passes it on until all have it.  The specification is
that of the library (``std/agreement``): what one has that does not crash, all have that do not crash.  ``verify`` finds
the smallest sets of faults that break it, or proves that there are none, in so many timesteps.

    $ python examples/broadcast.py
    broadcast: broken by 1 fault
        drop("a","b",1)
        drop("a","c",1)
    time  a           b           c
       1  o----------x|           |  broadcast_log("b", "news"), lost by drop("a","b",1)
       1  o---------------------->|  broadcast_log("c", "news"), arrives at 2
    reliable_broadcast: no message lost before 3, and no crash, breaks it until 6
"""

from pathlib import Path

from syndicate.dedalus import Program

HERE = Path(__file__).parent


def main() -> None:
    """Verify both."""
    for name in ("broadcast", "reliable_broadcast"):
        program = Program.load(HERE / f"{name}.ded")
        verdict = program.verify(eot=6, eff=3, crashes=1, nodes=("a", "b", "c"))
        if not verdict.violation_exists:
            print(f"{name}: no message lost before 3, and no crash, breaks it until 6")
            continue
        print(f"{name}: broken by {verdict.min_faults} fault")
        for faults in verdict.min_counterexamples:
            print("   ", *faults)
        print(verdict.model.diagram())


if __name__ == "__main__":
    main()

"""``python -m tests.relay.simulation.seeds --seeds N [--first S] [--jobs J]``: many seeds of the systems that hold.

The seeds are shared out evenly among the systems; of each system they are *first*, *first* + 1, and so on.  A line for
each system, and for each seed that is broken the command that shows it again; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import sys
from time import monotonic

from relay.simulation.campaign import Campaign, examined

SYSTEMS = [
    *(
        f"examples/simulated/{name}.py:{mended}"
        for name, mended in (
            ("cache", "observing"),
            ("counter", "adding"),
            ("exactly_once", "keyed"),
            ("job_queue", "steady"),
            ("leader_election", "leased"),
            ("rolling_restart", "waiting"),
            ("saga", "stating"),
        )
    ),
    "tests.relay.simulation.systems:stormy",
    "tests.relay.simulation.systems:moving",
    "tests.relay.simulation.test_rules:nesting",
    "tests.relay.simulation.test_rules:voting",
    "tests.relay.simulation.test_rules:storing",
    "tests.relay.simulation.test_rules:gossip",
    "tests.relay.simulation.test_spark_source:rows",
]


def main() -> None:
    """Run them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    share = -(-arguments.seeds // len(SYSTEMS))
    held, began, runs = True, monotonic(), 0
    for system in SYSTEMS:
        campaign = Campaign()
        for report in examined(system, range(arguments.first, arguments.first + share), jobs=arguments.jobs):
            campaign.add(report)
        runs += campaign.runs
        print(f"{system}: {campaign.runs} runs, {len(campaign.broken)} broken", flush=True)
        for report in [*campaign.broken, *campaign.strays]:
            held = False
            print(f"  {report.violation or report.differs}\n  syndicate simulate {system} --replay {report.seed}")
    print(f"{runs} runs in {monotonic() - began:.0f} s")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()

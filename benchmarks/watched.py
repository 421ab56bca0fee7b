"""``syndicate-server`` under cProfile: from SIGUSR1 until SIGUSR2, when the file that ``WATCHED`` names is written.

cProfile sees the thread that runs trio, which is all of the broker but its look-ups of names.
"""

from __future__ import annotations

import cProfile
import os
import signal
from pathlib import Path

from relay.cli import server_main


def main() -> None:
    """Be the command, watched."""
    profiler = cProfile.Profile()
    written = Path(os.environ["WATCHED"])

    def stop(*signalled: object) -> None:
        profiler.disable()
        partial = written.with_suffix(".partial")
        profiler.dump_stats(partial)
        partial.rename(written)

    signal.signal(signal.SIGUSR1, lambda *signalled: profiler.enable())
    signal.signal(signal.SIGUSR2, stop)
    server_main()


if __name__ == "__main__":
    main()

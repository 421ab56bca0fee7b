"""One figure, measured in this process: the far end of ``measure``.

Both sides import this file, so it needs nothing but Python, and knows no package of either.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from typing import Any


class Broken(Exception):
    """What was to be measured did not do what it is there for, so that its figure would mean nothing."""


def answer(*functions: Callable[..., Any]) -> None:
    """Run the function that the command line names, with its JSON arguments, and print its figure as JSON.

    An argument ``passes`` says how often; the figure is then the median.  For workloads that take microseconds.
    """
    by_name = {function.__name__: function for function in functions}
    arguments = json.loads(sys.argv[2])
    passes = arguments.pop("passes", 1)
    figures = [by_name[sys.argv[1]](**arguments) for _ in range(passes)]
    print(json.dumps(statistics.median(figures) if passes > 1 else figures[0]))

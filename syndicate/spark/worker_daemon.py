"""The process from which Spark forks its Python workers: it has loaded what each of them would load again.

A session of :func:`~syndicate.spark.session.open_session` runs it in place of ``pyspark.daemon``, which it is
otherwise.  A worker began with a second of processor time for pyarrow, pandas and our circuits.

Source: ``docs/design/spark.md``.
"""

from __future__ import annotations

import pandas as pd  # noqa: F401
import pyarrow as pa  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark import daemon

import syndicate.spark.engine.workers  # noqa: F401

if __name__ == "__main__":
    daemon.manager()

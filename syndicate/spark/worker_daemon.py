"""The process from which Spark forks its Python workers: it has loaded what each of them would load again.

A local session of :func:`~syndicate.spark.session.open_session` runs it in place of ``pyspark.daemon``, which it is
otherwise.  What begins threads, such as numpy, pandas and pyarrow, is not loaded: a fork would leave these behind.

Source: ``docs/design/spark.md``.
"""

from __future__ import annotations

import syndicate.spark.engine.workers  # noqa: F401

if __name__ == "__main__":
    import pyspark.worker  # noqa: F401
    from pyspark import daemon

    daemon.manager()

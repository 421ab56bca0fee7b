"""Spark sessions set up for a dataspace: in this process, quick to start, quiet.

Spark's defaults suit a cluster: 200 shuffle partitions, a web page, fourteen lines of log.  A bridge from
tables to actors runs on one machine, in steps of a second; the options here halve the time to the first
result (a script that opens a session and runs a job: 8 s instead of 17 s).
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from syndicate.errors import JavaMissing, SparkMissing
from syndicate.spark.java import Java, archive, find_java, stand_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMPILER: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""The quick compiler alone.  Java gives it 48 MB for its code, which a session with a lake fills within minutes; from
then on nothing is compiled.
"""
LOG: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""An archive of classes that does not fit, or only in part, is nothing to tell a user of."""
CHECKPOINTS: Final = "spark.sql.streaming.checkpointFileManagerClass"
BY_FILE_SYSTEM: Final = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""Renames a checkpoint's files by the call for it.  What Spark takes by itself asks ``readlink`` four times for each of
them, a process each time, which is a third of what a micro-batch costs.  The class has that name from Spark 4.1 on.
"""


def open_session(
    app: str = "syndicate", *, cores: int = 2, memory: str = "2g", **config: str | int | bool
) -> SparkSession:
    """Open a local Spark session, or return the one that this process has open, with ``config`` set in it.

    It blocks for some 4 seconds: from a trio task call it in a worker thread.  Stop it with
    ``session.stop()``.

    Args:
        app: the name of the application, in Spark's log.
        cores: how many tasks run at a time, and into how many partitions a shuffle splits the data.
        memory: the most that the JVM's heap may take, such as ``"512m"`` or ``"4g"``.  It is fixed when the
            first session of a process opens.
        config: further Spark options, which win over ours: ``**{"spark.sql.ansi.enabled": False}``.

    Raises:
        SparkMissing: the extra ``spark`` is not installed.
        JavaMissing: no Java that Spark can use was found, or it was found and did not start.

    Example::

        session = open_session("flights", cores=4)
        flights = session.read.parquet("flights/")
    """
    try:
        import pyspark
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkMissing(
            f"Spark is not installed here ({error}): run `pip install 'syndicate-dataspace[spark]'`."
        ) from error
    _forget_the_dead()
    java = find_java()
    with _environment(java, spark_home=Path(pyspark.__file__).parent):
        builder = SparkSession.builder.master(f"local[{cores}]").appName(app)
        ours = _options(cores, memory) | {"spark.driver.extraJavaOptions": java_options(java)}
        if "spark.master" not in config:  # a cluster has another file system
            if tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1):
                ours[CHECKPOINTS] = BY_FILE_SYSTEM
            if "spark.pyspark.python" not in config:
                ours["spark.python.daemon.module"] = "syndicate.spark.worker_daemon"  # another Python may not have it
        for name, value in (ours | config).items():
            builder = builder.config(name, value)
        try:
            return _quiet(builder.getOrCreate())
        except PySparkRuntimeError as error:
            if error.getCondition() != "JAVA_GATEWAY_EXITED":
                raise
            raise JavaMissing(
                f"Java {java.version} in {java.home} (origin: {java.origin}) ended while Spark was starting, "
                f"for the reason printed above: give another memory= than {memory!r}, or set JAVA_HOME to "
                "another Java 17 or 21."
            ) from error


def _forget_the_dead() -> None:
    """Let go of a session whose JVM has ended: pyspark would hand it out for ever.

    (One that was stopped in order is let go of by pyspark itself.)
    """
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = java_gateway()
    if gateway is None or java_runs():
        return
    with contextlib.suppress(Exception):  # it says that nobody answers
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def java_gateway() -> Any:
    """What pyspark speaks to the JVM through, which all sessions of this process share; ``proc`` is the JVM, if any."""
    from pyspark import SparkContext

    return SparkContext._gateway


def java_runs() -> bool:
    """Whether this process has a JVM of Spark's that has not ended, which goes on when a session has stopped."""
    gateway = java_gateway()
    process = getattr(gateway, "proc", None)
    return gateway is not None and (process is None or process.poll() is None)


def _quiet(session: SparkSession) -> SparkSession:
    """Let Spark's Python side not print what is raised: an analysis error with its stack, as JSON, and a stack of the
    server that counts for tasks, when the JVM at its other end has gone.
    """
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    server: Any = getattr(session.sparkContext, "_accumulatorServer", None)
    handler = getattr(server, "handle_error", None)
    if handler is not None and not getattr(handler, "quiet", False):

        def handle_error(request: object, address: object) -> None:
            if not isinstance(sys.exc_info()[1], (EOFError, ConnectionError)):
                handler(request, address)

        handle_error.quiet = True  # type: ignore[attr-defined]  # a mark, on a function
        server.handle_error = handle_error
    return session


def java_options(java: Java, *, archived: bool = True) -> str:
    """What the JVM of a local session is started with: among it the archive of its classes, if there is one."""
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    options = f"{COMPILER} -XX:+UseSerialGC {LOG} -Dlog4j2.configurationFile={log}"
    classes = archive(java.home) if archived else None
    if classes is not None and classes.is_file():
        options += f' "-XX:SharedArchiveFile={classes}"'
    return options


def _options(cores: int, memory: str) -> dict[str, str | int | bool]:
    return {
        "spark.ui.enabled": False,
        "spark.ui.showConsoleProgress": False,
        "spark.sql.shuffle.partitions": cores,
        "spark.default.parallelism": cores,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": memory,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": True,
    }


@contextmanager
def _environment(java: Java, spark_home: Path) -> Iterator[None]:
    """Hold the environment that Spark reads when it starts, whatever the user's says.

    Spark's workers run the ``python3`` on PATH unless configured otherwise: in a virtual environment that is
    another Python, without our packages, and a Python data source then yields no rows and no error.  A
    ``SPARK_HOME`` of another release would mix two Sparks; ``SPARK_REMOTE`` would make a Connect session,
    whose callbacks run elsewhere; the local address is given because the machine's name may not resolve.
    """
    ours = {
        "JAVA_HOME": str(stand_in(java.home)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_REMOTE": None,
        "SPARK_CONNECT_MODE_ENABLED": None,
    }
    before = {name: os.environ.get(name) for name in ours}
    _set_environment(ours)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(variables: dict[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value

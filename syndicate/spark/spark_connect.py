"""What a Spark session is: classic, with its driver in this process, or of Spark Connect, whose driver is a server.

With Connect, tables and change feeds are followed as always: a look is a query, and its rows come as Arrow.  What needs
a classic session is refused with the reason, at the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from weakref import finalize

from syndicate.errors import SourceError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
    from pyspark.sql import SparkSession


def is_connect(session: object) -> bool:
    """Whether it is a session of Spark Connect: that has no context in this process.

    >>> is_connect(object())
    False
    """
    return type(session).__module__.startswith("pyspark.sql.connect.")


def is_stopped(session: SparkSession) -> bool:
    """Whether somebody has stopped the session."""
    if is_connect(session):
        return bool(session.is_stopped)  # type: ignore[attr-defined]  # of Connect's alone
    context = java_context(session)
    return context is None or bool(context.sc().isStopped())


def java_context(session: SparkSession) -> JavaObject | None:
    """The context of a classic session in the JVM; None once it was stopped from here."""
    return session.sparkContext._jsc


def own_session(session: SparkSession) -> SparkSession:
    """A session beside *session*, with what is set there now, and options, views and open catalogs of its own.

    A catalog of Iceberg's hands out one object for a table, through which all statements of a session see each other's
    commits.  Who makes it load the table again while a statement runs leaves the session with an object that never
    hears of that statement's commit: then a program does not see its own row, and its next UPDATE is refused.  So what
    has to load tables again, or sets options for a statement, does that in a session that nobody else uses.
    """
    if is_connect(session):
        clone = getattr(session, "cloneSession", None)  # from Spark 4.1 on
        if clone is None:
            return session
        own = clone()
        finalize(own, own.client.close)  # at the end of the program Spark closes it too late, and waits for ever
        return cast("SparkSession", own)
    from pyspark import RDD
    from pyspark.sql import SparkSession

    to_frame = RDD.toDF  # of the session that was made last, which is to stay the program's
    try:
        return SparkSession(session.sparkContext, session._jsparkSession.cloneSession())
    finally:
        RDD.toDF = to_frame  # type: ignore[method-assign]  # as Spark does


def refuse_stream(session: object, name: str) -> None:
    """Raise :class:`SourceError` if a stream of *name* cannot be followed with this session."""
    if is_connect(session):
        raise SourceError(
            f"the stream of {name} needs a classic session, as open_session() gives one: Spark Connect calls back for "
            'each micro-batch in a process of the server, where this dataspace is not. Write to format("syndicate") of '
            "a broker there, follow a table (read, and not readStream), or leave session= out"
        )

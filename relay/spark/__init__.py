"""A dataspace of a broker for Spark: ``format("syndicate")``, to read and to write, at once and as a stream.

Each session has it after :func:`register`; one whose Python finds this package as it starts has it anyhow
(``pyspark_syndicate``).  Programs whose actors and whose Spark share a process have
:func:`syndicate.spark.spark_source` and :func:`syndicate.spark.spark_sink` as well.

Example::

    register(session)
    here = dict(address="tcp://127.0.0.1:8001", cap=CAPABILITY)
    boxes = session.read.format("syndicate").options(**here, pattern="<Box $name $size>").load()
    create_views(session, [Box], **here)
    session.sql("SELECT name FROM Box WHERE size > 2").show()
"""

from relay.spark.views import create_views, register

__all__ = ["create_views", "register"]

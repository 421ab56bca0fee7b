"""``format("syndicate")`` in a real session, beside a real durable broker; and the sentences of likely mistakes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import EqualTo, Filter, GreaterThan, In
from pyspark.sql.types import _parse_datatype_json_string

from relay.spark import create_views, register
from relay.spark.source import NarrowingDataSource, SyndicateDataSource
from syndicate import ANY, Record, record
from syndicate.errors import SinkError, SourceError, SyndicateError
from tests.relay.spark.brokers import VOLATILE, Broker, options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SENSORS = "<Sensor $name $value>"
COLUMNS = "name string, value double"


@record
class Sensor:
    name: str
    value: float


def source(settings: dict[str, str]) -> SyndicateDataSource:
    """The Data Source by itself: what Spark's Python processes make of the options."""
    return SyndicateDataSource(settings)


def rows(reader: Any) -> list[tuple[Any, ...]]:
    """What all partitions give."""
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    return sorted([tuple(row.values()) for batch in batches for row in batch.to_pylist()], key=repr)


# ------------------------------------------------------------------------------------------------------- with a session


def test_there_and_back(broker: Broker, spark: SparkSession) -> None:
    """A table goes into the dataspace and comes back; filters become part of the question; SQL sees record classes; and
    a stream of changes from one pattern to another follows, without a word about what came and went.
    """
    table = spark.createDataFrame([(f"s{n}", n / 2) for n in range(100)], COLUMNS)
    table.write.format("syndicate").options(**options(broker, label="Sensor")).mode("append").save()
    assert len(broker.there(Record("Sensor", [ANY, ANY]))) == 100

    read = spark.read.format("syndicate").options(**options(broker, pattern=SENSORS))
    result = read.load()  # found by its package's name, without a registration
    assert result.schema.simpleString() == "struct<name:string,value:double,weight:bigint>"
    assert sorted(result.drop("weight").collect()) == sorted(table.collect())

    register(spark)
    narrowed = read.load().where("name IN ('s1', 's3', 's5') AND value < 2")
    plan = read.load().where("name = 's1'")._jdf.queryExecution().sparkPlan().toString()
    assert "Filter (" not in plan
    assert sorted([row.name for row in narrowed.collect()]) == ["s1", "s3"]
    assert narrowed.rdd.getNumPartitions() == 3

    assert create_views(spark, [Sensor], broker.address, options(broker)["cap"]) == ["Sensor"]
    assert spark.sql("SELECT count(*), max(value) FROM Sensor WHERE name >= 's90'").collect() == [(10, 49.5)]
    broker.keep('<Sensor "s999" 999.0>')
    assert spark.sql("SELECT max(value) FROM Sensor").collect() == [(999.0,)]


def test_a_stream_through(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    """From one pattern to another, with what goes; after a restart from the checkpoint what changed meanwhile."""
    register(spark)

    def run_once() -> None:
        settings = options(broker, pattern=SENSORS, columns=COLUMNS, log=tmp_path / "log", grace=0)
        stream = spark.readStream.format("syndicate").options(**settings).load()
        doubled = stream.selectExpr("name", "value * 2 AS twice", "weight")
        written = doubled.writeStream.format("syndicate").options(**options(broker, label="Twice"))
        query = written.option("checkpointLocation", str(tmp_path / "cp")).trigger(availableNow=True).start()
        query.awaitTermination()

    broker.keep('<Sensor "a" 1.0>', '<Sensor "b" 2.0>')
    run_once()
    assert broker.there(Record("Twice", [ANY, ANY])) == [Record("Twice", ["a", 2.0]), Record("Twice", ["b", 4.0])]
    broker.keep('<Sensor "c" 3.0>')
    broker.forget('<Sensor "a" 1.0>')
    run_once()
    assert broker.there(Record("Twice", [ANY, ANY])) == [Record("Twice", ["b", 4.0]), Record("Twice", ["c", 6.0])]
    settings = options(broker, pattern=SENSORS, columns=COLUMNS)
    query = (
        spark.readStream.format("syndicate").options(**settings).load().writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "cp")).start()
    )  # fmt: skip
    with pytest.raises(PySparkException, match=r"keeps no log of what it said meanwhile.*option\(\"log\""):
        query.awaitTermination()


# ---------------------------------------------------------------------------------------------------- without a session


def test_labels_are_partitions(broker: Broker) -> None:
    """Whole values as text, a partition a label; a filter on the label leaves the others out."""
    broker.keep('<Sensor "a" 1.5>', '<Alarm "fire" [1 #t]>', '<Other "x">')
    data_source = NarrowingDataSource(options(broker, labels="Sensor, Alarm"))
    schema = data_source.schema()
    assert schema.names == ["label", "value", "weight"]
    reader = data_source.reader(schema)
    assert len(reader.partitions()) == 2
    assert rows(reader) == [("Alarm", '<Alarm "fire" [1 #t]>', 1), ("Sensor", '<Sensor "a" 1.5>', 1)]
    assert list(reader.pushFilters([EqualTo(("label",), "Alarm")])) == []
    assert rows(reader) == [("Alarm", '<Alarm "fire" [1 #t]>', 1)]


def test_what_is_pushed_down(broker: Broker) -> None:
    """Equality of what is exact in a column is a constant of the pattern; everything else is Spark's to filter."""
    broker.keep(*[f'<Sensor "s{n}" {n}>' for n in range(200)], '<Sensor "s1" 77>')
    data_source = NarrowingDataSource(options(broker, pattern=SENSORS, columns="name string, value bigint"))
    name, value = ("name",), ("value",)
    wide = In(name, tuple([f"s{n}" for n in range(150)]))
    cases: list[tuple[list[Filter], list[Filter], list[tuple[Any, ...]]]] = [
        ([EqualTo(name, "s1")], [], [("s1", 1, 1), ("s1", 77, 1)]),
        ([EqualTo(name, "s1"), EqualTo(value, 77)], [], [("s1", 77, 1)]),
        ([In(name, ("s1", "s2")), EqualTo(name, "s2")], [], [("s2", 2, 1)]),
        ([EqualTo(name, "s1"), EqualTo(name, "s2")], [], []),
        ([GreaterThan(value, 3), EqualTo(name, "s5")], [GreaterThan(value, 3)], [("s5", 5, 1)]),
    ]
    for filters, left, expected in cases:
        reader = data_source.reader(data_source.schema())
        assert list(reader.pushFilters(filters)) == left
        assert rows(reader) == expected
    reader = data_source.reader(data_source.schema())
    assert list(reader.pushFilters([wide])) == [wide]
    assert len(rows(reader)) == 201
    inexact = NarrowingDataSource(options(broker, pattern=SENSORS, columns=COLUMNS))
    one = EqualTo(value, 1.0)
    assert list(inexact.reader(inexact.schema()).pushFilters([one])) == [one]


def test_what_does_not_fit(broker: Broker) -> None:
    """Spark's three modes: an error with the value, a null, or no row."""
    broker.keep('<Sensor "a" 1>', '<Sensor "b" many>', '<Sensor "c" 3>')
    settings = options(broker, pattern=SENSORS, columns="name string, value bigint")
    for mode, expected in [
        ("PERMISSIVE", [("a", 1, 1), ("b", None, 1), ("c", 3, 1)]),
        ("dropMalformed", [("a", 1, 1), ("c", 3, 1)]),
    ]:
        data_source = source({**settings, "mode": mode})
        assert rows(data_source.reader(data_source.schema())) == expected
    data_source = source(settings)
    with pytest.raises(SourceError, match=r"'value' takes int64, not the Symbol.*many.*PERMISSIVE"):
        rows(data_source.reader(data_source.schema()))
    with pytest.raises(SourceError, match=r"the column 'value' .* no one type can be told"):
        source(options(broker, pattern=SENSORS)).schema()


def simple(text: str) -> Any:
    """A schema."""
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in (f.split() for f in text.split(","))]
    import json

    return _parse_datatype_json_string(json.dumps({"type": "struct", "fields": fields}))


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"address": None}, r"needs to know the broker: .option\(\"address\""),
        ({"address": "http://127.0.0.1:1"}, "the option address is wrong: .*http"),
        ({"cap": "69ca300c"}, "the option cap is no reference: .*as|it is what syndicate-server prints"),
        ({"capfile": "x"}, "cap and capFile both"),
        ({"pattern": None}, r"which values are meant: .option\(\"pattern\""),
        ({"pattern": "<Sensor $name"}, "is no pattern: "),
        ({"pattern": "<Sensor _ _>"}, r"captures nothing.*write \$name"),
        ({"pattern": "<Sensor $a $a>"}, "two columns called a"),
        ({"adress": "x"}, r"has no option 'adress' \(did you mean 'address'\?\)"),
        ({"path": "x"}, "reads no path"),
        ({"mode": "STRICT"}, "the option mode takes FAILFAST, PERMISSIVE, DROPMALFORMED, not 'STRICT'"),
        ({"events": "both"}, "the option events takes assertions, messages"),
        ({"grace": "soon"}, "the option grace takes a number from 0 on, not 'soon'"),
        ({"columns": "name strin, value double"}, "has the type 'strin'"),
        ({"columns": "nam string, value double"}, "has the columns nam, value, and the pattern captures name, value"),
        ({"labels": "A"}, "pattern and labels both say"),
        ({"pattern": "<Sensor $name $value>", "columns": None}, "nothing in the dataspace matches"),
        ({"events": "messages"}, "read them as a stream"),
    ],
)
def test_mistakes_of_readers(standing: Broker, settings: dict[str, str | None], error: str) -> None:
    """Each is reported with the option's name and what to do, before any row is read."""
    changed = {**options(standing, pattern=SENSORS, columns=COLUMNS), **settings}
    data_source = source({name: text for name, text in changed.items() if text is not None})
    with pytest.raises(SourceError, match=error):
        data_source.reader(data_source.schema())


def test_mistakes_about_columns(standing: Broker) -> None:
    """A schema that is given by hand has the captures; a stream's says what comes and what goes."""
    data_source = source(options(standing, pattern=SENSORS))
    with pytest.raises(SourceError, match="the schema has the columns name, and the pattern captures name, value"):
        data_source.reader(simple("name string"))
    with pytest.raises(SourceError, match="add weight bigint to the schema"):
        data_source.streamReader(simple("name string,value double"))
    with pytest.raises(SourceError, match=r"does not answer.*cap"):
        source({**options(standing, pattern=SENSORS), "cap": options(standing)["cap"].replace("79", "80", 1)}).schema()


@pytest.mark.parametrize(
    ("settings", "schema", "error"),
    [
        ({"pattern": "<Sensor $name _>"}, "name string", "leaves open what is written"),
        ({"pattern": "<Sensor $name $other>"}, "name string,value double", "the DataFrame has the columns name, value"),
        ({"label": "Sensor", "key": "nam"}, "name string,value double", "the option key names nam"),
        ({"label": "Sensor"}, "name string,weight double", "is to be 1 for what is there and -1"),
        ({"label": "Sensor", "events": "messages"}, "name string,weight long", "messages are sent"),
        ({"labels": "Sensor"}, "name string", "labels= is for reading"),
        ({"label": "Sensor", "txnversion": "3"}, "name string", "name it, with txnAppId"),
    ],
)
def test_mistakes_of_writers(standing: Broker, settings: dict[str, str], schema: str, error: str) -> None:
    """Each is reported before any row is written."""
    with pytest.raises(SyndicateError, match=error):
        source({**options(standing), **settings}).writer(simple(schema), overwrite=False)


def test_writing_once(broker: Broker) -> None:
    """With txnAppId and txnVersion a write that is made again has no effect; a weight below 0 removes; what goes with
    its connection is not written at all.
    """
    import pyarrow as pa

    schema = simple("name string,value double,weight long")

    def write(settings: dict[str, str], *written: tuple[str, float, int], overwrite: bool = False) -> None:
        writer = source(settings).writer(schema, overwrite=overwrite)
        columns = dict(zip(["name", "value", "weight"], map(list, zip(*written, strict=True)), strict=True))
        batch = pa.record_batch(columns)
        writer.commit([writer.write(iter([batch])), None])

    once = options(broker, label="Sensor", txnAppId="loader", txnVersion=1)
    write(once, ("a", 1.0, 1), ("b", 2.0, 1))
    broker.forget('<Sensor "a" 1.0>')
    write(once, ("a", 1.0, 1), ("b", 2.0, 1))
    assert broker.there(Record("Sensor", [ANY, ANY])) == [Record("Sensor", ["b", 2.0])]
    write({**once, "txnVersion": "2"}, ("b", 2.0, -1), ("c", 3.0, 1))
    assert broker.there(Record("Sensor", [ANY, ANY])) == [Record("Sensor", ["c", 3.0])]
    write(options(broker, label="Sensor"), ("x", 1.0, 1), ("c", 3.0, -1), ("x", 1.0, -1), ("c", 3.0, 1))
    assert broker.there(Record("Sensor", [ANY, ANY])) == [Record("Sensor", ["c", 3.0])]
    write(options(broker, label="Sensor", key="name"), ("c", 4.0, 1), ("d", 5.0, 1))
    assert broker.there(Record("Sensor", [ANY, ANY])) == [Record("Sensor", ["c", 4.0]), Record("Sensor", ["d", 5.0])]
    write(options(broker, label="Sensor"), ("e", 6.0, 1), overwrite=True)
    assert broker.there(Record("Sensor", [ANY, ANY])) == [Record("Sensor", ["e", 6.0])]
    with pytest.raises(SinkError, match="keeps nothing"):
        write({**once, "cap": VOLATILE, "txnVersion": "5"}, ("f", 7.0, 1))
    with pytest.raises(SinkError, match="keeps nothing"):
        write({**options(broker, label="Sensor"), "cap": VOLATILE}, ("f", 7.0, 1))


def test_partitions_of_a_stream(broker: Broker, tmp_path: Path) -> None:
    """Rows go to the executors with the partitions, so many each; a task that is made again has the same ones; a log
    that is another stream's, or another checkpoint's, is refused.
    """
    broker.keep(*[f'<Sensor "s{n}" {n}.5>' for n in range(10)])
    settings = options(broker, pattern=SENSORS, columns=COLUMNS, log=tmp_path / "log", rowsPerPartition=4)
    data_source = source(settings)
    reader: Any = data_source.streamReader(data_source.schema())
    end = reader.latestOffset()
    parts = reader.partitions(reader.initialOffset(), end)
    assert len(parts) == 3
    for _ in range(2):
        got = [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]
        assert sorted([row["name"] for row in got]) == [f"s{n}" for n in range(10)]
    reader.commit(end)
    with pytest.raises(SourceError, match="checkpoint goes on behind a run"):
        reader.partitions({**end, "run": "another"}, end)
    reader.stop()

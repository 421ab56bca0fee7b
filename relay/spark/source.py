"""``format("syndicate")``: a dataspace for Spark, as a Python Data Source; both directions, at once and as a stream.

Where what runs: Spark plans, and commits, in Python processes of its driver, and reads and writes partitions in those
of its executors.  A *batch read* is one question for each partition, asked by the executor.  A *stream* has one
connection, the driver's: what has changed goes into a log (:mod:`relay.spark.change_log`), and to the executors with
the partitions.  What is *written* comes to the driver with the commit messages, as Arrow, and takes effect in one turn
of its own (:mod:`relay.spark.exchange`).

So executors need this package, and, to read at once, a route to the broker; nothing of ours runs in the JVM.

Source: Spark, "Python Data Source API"; ``docs/design/spark.md``, "The Data Source".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Final

from attrs import frozen
from pyspark.errors import PySparkException
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    In,
    InputPartition,
    IsNotNull,
    WriterCommitMessage,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
    _parse_datatype_json_string,
)

from relay.spark.change_log import Change, FeedLog
from relay.spark.exchange import Batch, ask, commit, send
from relay.spark.following import Following
from relay.spark.options import Options
from relay.spark.question import LABEL, VALUE, Question, inferred, table_of
from syndicate.errors import SinkError, SourceError
from syndicate.spark.arrow import arrow_schema
from syndicate.spark.columns import forms
from syndicate.values.value import Frozen

if TYPE_CHECKING:
    import pyarrow as pa

WEIGHT: Final = "weight"
SQL_NAMES: Final[Mapping[str, str]] = {"bigint": "long", "int": "integer", "smallint": "short", "tinyint": "byte"}
"""Types of SQL that Spark calls otherwise."""
CONSTANTS: Final = 100
"""So many constants of a filter are asked for one by one; more are filtered by Spark."""
PARTS: Final = 32
"""So many partitions at most come of constants."""


class SyndicateDataSource(DataSource):
    """A dataspace, by the options of :class:`~relay.spark.options.Options`.

    Example::

        register(spark)
        sensors = {"address": "tcp://127.0.0.1:8001", "pattern": "<Sensor $name $value>"}
        spark.read.format("syndicate").options(**sensors).load().show()
    """

    @classmethod
    def name(cls) -> str:
        """What Spark calls it."""
        return "syndicate"

    @cached_property
    def settings(self) -> Options:
        """The options."""
        return Options.of(self.options)

    def questions(self, columns: Sequence[str] | None = None) -> list[Question]:
        """What is asked, a part each; all parts have the same columns: *columns*, where a label alone is given."""
        settings = self.settings
        if settings.labels:
            return [Question.of_label(label) for label in dict.fromkeys(settings.labels)]
        if settings.pattern is not None:
            return [Question.of(settings.pattern)]
        if settings.columns is not None:
            columns = _columns(settings.columns).names
        if settings.label is not None and columns is not None:
            return [Question.of_columns(settings.label, columns)]
        raise SourceError(
            'format("syndicate") needs to know which values are meant: .option("pattern", "<Sensor $name $value>"), '
            'or .option("labels", "Sensor,Alarm") for whole values as text'
            + (', or beside label the columns: .option("columns", "name string")' if settings.label else "")
        )

    def schema(self) -> StructType:
        """The columns: what the option says, or what is there fits; and ``weight``."""
        from pyspark.sql.pandas.types import from_arrow_schema

        settings, questions = self.settings, self.questions()
        names = questions[0].names
        if settings.labels:
            columns = StructType([StructField(LABEL, StringType()), StructField(VALUE, StringType())])
        elif settings.columns is not None:
            columns = _columns(settings.columns)
            if set(columns.names) != set(names):
                raise SourceError(_unlike("columns", columns.names, names))
        else:
            (rows,) = ask(settings.broker, [questions[0].pattern])
            columns = from_arrow_schema(inferred(names, rows, questions[0].text))
        if settings.events == "messages":
            return columns
        return StructType([*columns.fields, StructField(WEIGHT, LongType())])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read what is there."""
        return _Reader(*self.asked(schema))

    def asked(self, schema: StructType) -> tuple[Options, list[Question], StructType]:
        """What is to be read at once."""
        if self.settings.events == "messages":
            raise SourceError("messages are over when they were handled: read them as a stream, with readStream")
        return self.settings, self._fitting(schema), schema

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # Spark's name
        """Read what comes and goes."""
        questions = self._fitting(schema)
        if self.settings.events == "assertions" and WEIGHT not in schema.names:
            raise SourceError(
                f"a stream of assertions says of each row whether it came or went: add {WEIGHT} bigint to the schema "
                "(1 is come, -1 is gone)"
            )
        return _StreamReader(self.settings, questions, schema)

    def _fitting(self, schema: StructType) -> list[Question]:
        """The questions, if they have these columns."""
        columns = [name for name in schema.names if name != WEIGHT or self.settings.events == "messages"]
        questions = self.questions(columns)
        if sorted(columns) != sorted(questions[0].names):
            raise SourceError(_unlike("the schema", columns, questions[0].names))
        return questions

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Write rows once."""
        return _Writer(_Target.of(self, schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """Write batch after batch."""
        return _StreamWriter(_Target.of(self, schema, overwrite))


class NarrowingDataSource(SyndicateDataSource):
    """The same, which lets filters be part of what it asks: Spark refuses that unless it is configured to do so."""

    def reader(self, schema: StructType) -> DataSourceReader:
        """Read what is there and passes the filters."""
        return _NarrowingReader(*self.asked(schema))


def _columns(text: str) -> StructType:
    """The columns that text lists, as in CREATE TABLE; Spark's own parser is in the JVM, which is far from here."""
    fields = []
    for part in re.split(r",(?![^(<]*[)>])", text):
        name, _, kind = part.strip().partition(" ")
        fields.append(StructField(name.strip("`"), _kind(kind.strip().lower(), text)))
    return StructType(fields)


def _kind(kind: str, text: str) -> DataType:
    if kind.startswith("array<") and kind.endswith(">"):
        return ArrayType(_kind(kind[6:-1].strip(), text))
    try:
        return _parse_datatype_json_string(f'"{SQL_NAMES.get(kind, kind)}"')
    except (PySparkException, ValueError):
        raise SourceError(
            f"the option columns={text!r} has the type {kind!r}: write it as in CREATE TABLE, "
            '"name string, value double, at timestamp", or give other types by .schema(...)'
        ) from None


def _unlike(what: str, columns: Sequence[str], names: Sequence[str]) -> str:
    return (
        f"{what} has the columns {', '.join(columns) or 'none'}, and the pattern captures {', '.join(names)}: give the "
        "captures, $name, the names of the columns"
    )


# ---------------------------------------------------------------------------------------------------- read at once


@frozen
class QuestionsPartition(InputPartition):
    """A partition of a read: the questions that its executor asks."""

    questions: tuple[Question, ...]


class _Reader(DataSourceReader):
    def __init__(self, settings: Options, questions: Sequence[Question], schema: StructType) -> None:
        self.settings = settings
        self.parts = [[question] for question in questions]
        self.schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """What each executor asks."""
        return [QuestionsPartition(tuple(part)) for part in self.parts] or [QuestionsPartition(())]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Ask."""
        assert isinstance(partition, QuestionsPartition)
        answers = ask(self.settings.broker, [question.pattern for question in partition.questions])
        for question, captured in zip(partition.questions, answers, strict=True):
            changes = [(row, 1) for row in question.rows(captured)]
            yield from _batches(question, changes, self.schema, self.settings.mode)


class _NarrowingReader(_Reader):
    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:  # noqa: N802  # Spark's name
        """Let columns that are compared with constants be constants of the pattern."""
        wanted: dict[str, list[object]] = {}
        [first, *_] = [question for part in self.parts for question in part]
        free = {LABEL} if first.label is not None else {name for name in first.open() if self._exact(name)}
        later: list[Filter] = []
        for each in filters:
            if isinstance(each, (EqualTo, In)) and len(each.attribute) == 1 and each.attribute[0] in free:
                values = [each.value] if isinstance(each, EqualTo) else list(each.value)
                if len(values) <= CONSTANTS and None not in values:
                    (name,) = each.attribute
                    before = wanted.get(name, values)
                    wanted[name] = [value for value in dict.fromkeys(values) if value in before]
                    continue
            later.append(each)
        yield from (each for each in later if not (isinstance(each, IsNotNull) and each.attribute[0] in wanted))
        if first.label is not None:
            if LABEL in wanted:
                self.parts = [part for part in self.parts if part[0].label in wanted[LABEL]]
        elif wanted:
            constants = [dict(zip(wanted, values, strict=True)) for values in product(*wanted.values())]
            asked = [question.narrowed(each) for part in self.parts for question in part for each in constants]
            self.parts = [part for at in range(PARTS) if (part := asked[at::PARTS])]

    def _exact(self, name: str) -> bool:
        """Whether equal items of a column are equal values."""
        return isinstance(self.schema[name].dataType, (StringType, IntegralType, BooleanType, BinaryType))


def _batches(question: Question, changes: Sequence[Change], schema: StructType, mode: str) -> Iterator[pa.RecordBatch]:
    """Rows with weights, in the columns of *schema*."""
    import pyarrow as pa

    wanted = arrow_schema(schema)
    kinds = pa.schema([wanted.field(name) for name in question.names])
    weighted = WEIGHT in wanted.names and WEIGHT not in question.names
    rows = [(*row, weight) for row, weight in changes]
    if weighted:
        kinds = kinds.append(pa.field(WEIGHT, pa.int64()))
    else:
        rows = [row[:-1] for row in rows]
    table = table_of(kinds, rows, mode, question.text)
    yield from table.select(wanted.names).cast(wanted).to_batches()


# ---------------------------------------------------------------------------------------------------- read a stream


@frozen
class RowsPartition(InputPartition):
    """A partition of a stream: its rows, in Arrow's stream format."""

    data: bytes


class _StreamReader(DataSourceStreamReader):
    def __init__(self, settings: Options, questions: Sequence[Question], schema: StructType) -> None:
        self.settings = settings
        self.questions = questions
        self.schema = schema
        self.following: Following | None = None

    @cached_property
    def log(self) -> FeedLog:
        """Of what was given out; opened where offsets are asked for, which is one process for a query."""
        settings = self.settings
        return FeedLog(settings.log, f"{settings.events} of {' '.join(question.text for question in self.questions)}")

    def _offset(self, batch: int) -> dict[str, str | int]:
        return {"run": self.log.run, "batch": batch}

    def initialOffset(self) -> dict[str, str | int]:  # noqa: N802  # Spark's name
        """Before everything."""
        return self._offset(0)

    def latestOffset(self) -> dict[str, str | int]:  # type: ignore[override]  # noqa: N802  # without admission control
        """What is there by now goes into the log."""
        if self.following is None:
            settings, messages = self.settings, self.settings.events == "messages"
            patterns = [question.pattern for question in self.questions]
            self.following = Following(settings.broker, patterns, self.log, grace=settings.grace, messages=messages)
        return self._offset(self.following.advance())

    def partitions(self, start: dict[str, str | int], end: dict[str, str | int]) -> Sequence[InputPartition]:
        """What the log has between two offsets."""
        for offset in (start, end):
            if offset["run"] != self.log.run:
                raise SourceError(
                    "the checkpoint goes on behind a run of this stream that has ended, and "
                    + (
                        f"{self.settings.log} is not its log: put that back"
                        if self.settings.log
                        else "the broker keeps no log of what it said meanwhile: begin again without the checkpoint, "
                        'and give the stream a log from now on: .option("log", "/var/lib/spark/sensors.log")'
                    )
                )
        between = self.log.messages if self.settings.events == "messages" else self.log.between
        changes = between(int(start["batch"]), int(end["batch"]))
        parts: list[InputPartition] = []
        for place, question in enumerate(self.questions):
            of_it = [(row[1:], weight) for row, weight in changes if row[0] == place]
            rows = question.rows([row for row, _ in of_it])
            entries = list(zip(rows, [weight for _, weight in of_it], strict=True))
            for at in range(0, len(entries), self.settings.rows):
                share = entries[at : at + self.settings.rows]
                parts.append(RowsPartition(_written(list(_batches(question, share, self.schema, self.settings.mode)))))
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """What the driver has sent along."""
        assert isinstance(partition, RowsPartition)
        yield from _read(partition.data).to_batches()

    def commit(self, end: dict[str, str | int]) -> None:
        """Nobody asks for what was before."""
        self.log.forget(int(end["batch"]))

    def stop(self) -> None:
        """The query has ended."""
        if self.following is not None:
            self.following.close()
        elif "log" in self.__dict__:
            self.log.close()


def _written(batches: Sequence[pa.RecordBatch]) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    if batches:
        with pa.ipc.new_stream(sink, batches[0].schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
    return bytes(sink.getvalue())


def _read(data: bytes) -> pa.Table:
    import pyarrow as pa

    return pa.ipc.open_stream(data).read_all()


# ---------------------------------------------------------------------------------------------------- write


@frozen
class WrittenRows(WriterCommitMessage):
    """What a task has to write, and for which query."""

    data: bytes
    query: str | None


@frozen
class _Target:
    """What becomes of rows."""

    settings: Options
    question: Question
    overwrite: bool
    weighted: bool

    @classmethod
    def of(cls, source: SyndicateDataSource, schema: StructType, overwrite: bool) -> _Target:
        """Compare the rows' columns with the pattern; raises :class:`SinkError`."""
        settings = source.settings
        if settings.labels:
            raise SinkError("labels= is for reading: to write, say with pattern what a row becomes")
        columns = [name for name in schema.names if name != settings.weight]
        (question,) = source.questions(columns)
        weighted = settings.weight in schema.names and settings.weight not in question.names
        columns = [name for name in schema.names if name != settings.weight or not weighted]
        if sorted(columns) != sorted(question.names):
            raise SinkError(_unlike("the DataFrame", columns, question.names))
        if unknown := set(settings.key) - set(question.names):
            raise SinkError(f"the option key names {', '.join(sorted(unknown))}, which is no column of the DataFrame")
        if settings.events == "messages" and (weighted or overwrite or settings.key):
            raise SinkError("messages are sent: they have no weight, no key and replace nothing; leave these out")
        if weighted and not isinstance(schema[settings.weight].dataType, IntegralType):
            raise SinkError(
                f"the column {settings.weight!r} is to be 1 for what is there and -1 for what goes: cast it"
            )
        question.template()
        return cls(settings, question, overwrite, weighted)

    def taken(self, batches: Iterator[pa.RecordBatch]) -> WrittenRows:
        """In a task: what it has to write."""
        from pyspark import TaskContext

        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        return WrittenRows(_written(list(batches)), query)

    def put(self, messages: Sequence[WriterCommitMessage | None], name: str | None, number: int) -> None:
        """In the driver: let all of it take effect."""
        sums: dict[Frozen, int] = {}  # a batch has no order: what comes and goes in one is what it adds up to
        key_of: dict[Frozen, Frozen] = {}
        sent: list[Frozen] = []
        value, key = self.question.template(), self.key
        for message in messages:
            if not isinstance(message, WrittenRows) or not message.data:
                continue
            table = _read(message.data)
            rows = list(zip(*[forms(table.column(each), each) for each in self.question.names], strict=True))
            weights = table.column(self.settings.weight).to_pylist() if self.weighted else [1] * len(rows)
            if None in weights:
                raise SinkError(f"the column {self.settings.weight!r} is null in some rows")
            for row, weight in zip(rows, weights, strict=True):
                form = value(row)
                sent.append(form)
                sums[form] = sums.get(form, 0) + weight
                key_of[form] = key(row)
        if self.settings.events == "messages":
            send(self.settings.broker, sent)
            return
        keep = [form for form, weight in sums.items() if weight > 0]
        forget = [form for form, weight in sums.items() if weight < 0]
        instead = self.question.pattern if self.overwrite or self.settings.key else None
        commit(
            self.settings.broker,
            Batch(
                keep,
                forget,
                name,
                number,
                instead=instead,
                key=None if self.overwrite else key,
                keys=frozenset([key_of[form] for form in [*keep, *forget]]),
                value=value,
            ),
        )

    def key(self, row: Sequence[Frozen]) -> Frozen:
        """The items that identify a row."""
        return tuple([row[self.question.names.index(name)] for name in self.settings.key])


class _Writer(DataSourceArrowWriter):
    def __init__(self, target: _Target) -> None:
        self.target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task."""
        return self.target.taken(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """In the driver, once."""
        name, number = self.target.settings.txn or (None, 0)
        self.target.put(messages, name, number)


class _StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, target: _Target) -> None:
        if target.settings.txn is not None:
            raise SinkError("a stream counts its batches itself: leave txnVersion out")
        self.target = target

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """In a task."""
        return self.target.taken(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # Spark's name
        """In the driver, for each batch; again after a crash."""
        queries = [message.query for message in messages if isinstance(message, WrittenRows) and message.query]
        name = self.target.settings.application or next(iter(queries), None)
        if name is None and messages:
            raise SinkError(
                "Spark does not say which query this is, so that a batch could count twice: name it, with the option "
                "txnAppId"
            )
        if messages:
            self.target.put(messages, name, batchId)


__all__ = ["NarrowingDataSource", "QuestionsPartition", "RowsPartition", "SyndicateDataSource", "WrittenRows"]

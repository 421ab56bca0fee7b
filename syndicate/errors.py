"""Every exception of the project, one class for each cause.

Each class is also a subclass of the builtin that a caller would catch anyway, and each message says what is wrong,
where, and what to do about it.  Errors hold text, never live actors, so that a kept traceback keeps nothing else
alive.  What a program may want to know of an error is a field of it, too: nobody reads a message but people.  An error
can be pickled and copied with its fields.
"""

from __future__ import annotations

from collections.abc import Sequence


class SyndicateError(Exception):
    """The root of all errors of this project."""

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(cls: type[SyndicateError], args: tuple[object, ...], fields: dict[str, object]) -> SyndicateError:
    """An error that was pickled: its constructor takes what the text is made of, which is made already."""
    error = cls.__new__(cls, *args)
    Exception.__init__(error, *args)
    error.__dict__.update(fields)
    return error


class InternalError(SyndicateError, RuntimeError):
    """A broken invariant of ours, never of the caller's: please report it."""


class KernelsMissing(SyndicateError, ImportError):
    """The native kernels were required, and only Python is there."""


class NotAValue(SyndicateError, TypeError):
    """Something that cannot be asserted or sent: a function, ``None``, a cyclic list."""


class PatternError(SyndicateError, TypeError):
    """Something that cannot be part of a pattern: a set, a function, an unknown class."""


class RecordDefinition(SyndicateError, TypeError):
    """A class that cannot be a record's: mostly, as a name in it looks like a field and would not be one."""


class TextError(SyndicateError, ValueError):
    """Text that is no value or no pattern in the notation of :mod:`syndicate.values.text`."""


class NotCallable(SyndicateError, TypeError):
    """What is to be called in a turn cannot be: it is no function, it is async, or it takes other arguments."""


class ArgumentError(SyndicateError, ValueError):
    """An argument that a function has no use for: seconds that are no number, a policy that does not exist."""


class NotInTurn(SyndicateError, RuntimeError):
    """A function that acts on the current turn, *function*, was called where no turn is running."""

    def __init__(self, what: str) -> None:
        self.function = what
        super().__init__(
            f"{what}() acts on the current turn, but no turn is running here. Call it from a boot function or a "
            f"handler; from another trio task use facet.enter(lambda: {what}(...)), from another thread "
            "facet.enter_from_thread(...)."
        )


class AlreadyRunning(SyndicateError, RuntimeError):
    """A system was to be run where it cannot: inside an actor, in a trio program (``run``), where asyncio runs."""


class DataflowLoop(SyndicateError, RuntimeError):
    """Dataflow blocks that keep changing each other's fields and never settle."""


class EndlessStop(SyndicateError, RuntimeError):
    """Stop handlers that make ever new facets, so that what stops never ends."""


class ActorCrashed(SyndicateError, RuntimeError):
    """An actor ended by an error; ``__cause__`` is that error."""


class SystemStopped(SyndicateError, RuntimeError):
    """The actor system has ended, so that nothing can be run in it any more."""


class InTurn(SyndicateError, RuntimeError):
    """A call that waits for its answer was made in a turn of the same system, which would wait for itself."""


class CallTimeout(SyndicateError, TimeoutError):
    """A call had no answer in time; one that has begun goes on, one that has not never will."""


class FacetEnded(SyndicateError, RuntimeError):
    """A facet that was to be entered from outside has ended, as one of a connection that is lost."""


class TargetEnded(SyndicateError, RuntimeError):
    """What was to reply has ended: a dataspace whose facet has stopped, a peer whose connection is lost."""


class NotSent(SyndicateError, ValueError):
    """What an actor asserts beyond a connection could not go over it: it is too large, or has no encoding."""


class WrongSystem(SyndicateError, ValueError):
    """A reference belongs to another open actor system than the actor that uses it."""


class WrongActor(SyndicateError, ValueError):
    """A field, handle, facet or timer was used by another actor than the one that it belongs to."""


class ProtocolError(SyndicateError, ValueError):
    """A peer sent what the protocol does not allow."""


class CaveatError(SyndicateError, ValueError):
    """A caveat that is malformed, or one too many, and so cannot narrow a reference."""


class AddressError(SyndicateError, ValueError):
    """An address that is not of a form which we can listen on or connect to."""


class ConnectError(SyndicateError, ConnectionError):
    """A peer could not be reached, or refused us."""


class ListenError(SyndicateError, OSError):
    """A listener could not be opened: the port is in use, the path is not writable."""


class CertificateError(SyndicateError, ValueError):
    """A certificate, key or CA file that cannot be used: missing, damaged, expired, of another pair."""


class ConfigError(SyndicateError, ValueError):
    """A configuration that cannot be used; *problems* are all that was found, each with its place and remedy."""

    def __init__(self, problems: Sequence[str]) -> None:
        more = len(problems) - 1
        others = f"\n(and {more} more: see `syndicate-server config check FILE`)" if more else ""
        super().__init__(problems[0] + others)
        self.problems = tuple(problems)


class ServerMissing(SyndicateError, ImportError):
    """The ``server`` extra is not installed."""


class TracingMissing(SyndicateError, ImportError):
    """The ``trace`` extra is not installed."""


class StateError(SyndicateError, OSError):
    """A state directory that cannot be used: another server has it, it cannot be written, it is a file."""


class JournalError(SyndicateError, OSError):
    """The journal of durable assertions cannot be written, or is of a format that this version does not know."""


class JournalDamaged(JournalError):
    """The journal holds what was never written to it."""


class RecordingError(SyndicateError, ValueError):
    """A file that is no recording, or one that cannot be written."""


class OutputError(SyndicateError, OSError):
    """What is printed cannot be written: the disk is full."""


class JavaMissing(SyndicateError, RuntimeError):
    """Spark needs a Java runtime, and none that it can use was found."""


class SparkMissing(SyndicateError, ImportError):
    """The ``spark`` extra is not installed."""


class SourceError(SyndicateError, RuntimeError):
    """A Spark source whose rows do not fit its record class, or whose query ended on its own."""


class SourceJournalError(SourceError):
    """The journal of a Spark source is another source's, in use, damaged, or cannot be written."""


class SinkError(SyndicateError, RuntimeError):
    """A Spark sink whose values do not fit its columns, or whose directory is another sink's, damaged, or full."""


class EngineError(SyndicateError, RuntimeError):
    """A Spark engine that cannot go on: its session has ended, a job of Spark's failed, it is closed."""


class UnshippableFunction(SyndicateError, TypeError):
    """A function of a circuit that cannot be sent to Spark's workers: it holds a lock, an open file, a session."""


class UnhashableElement(SyndicateError, TypeError):
    """An element of a Z-set that has no identity: a list, a dictionary, a set, or something that holds one.

    Within a step of a circuit *operator* and *label* are those of the node, as in :class:`StepFailed`, and *reason* is
    the text without the node.
    """

    def __init__(self, text: str, *, operator: str = "", label: str = "", reason: str = "") -> None:
        super().__init__(text)
        self.operator, self.label, self.reason = operator, label, reason or text


class WeightError(SyndicateError, TypeError):
    """A weight of a Z-set that is no integer, or a time that is no tuple of unsigned integers."""


class CircuitError(SyndicateError, ValueError):
    """A circuit that is wired wrongly: a stream of another kind than needed, or of a loop it does not belong to."""


class CycleError(SyndicateError, ValueError):
    """Nodes of a circuit that depend on each other within one tick: no feedback node lies between them."""


class UnknownStream(SyndicateError, LookupError):
    """A delta was given for a source that the circuit does not have."""


class StepFailed(SyndicateError, RuntimeError):
    """A function of the user's raised within a step of a circuit; ``__cause__`` is what it raised.

    The circuit is as it was before the step.  *operator* and *label* are the operation of the node that failed and the
    name that it was given, *element* shows the arguments for which it failed, *reason* the class and text of the cause;
    each is empty where it is not known.
    """

    def __init__(self, text: str, *, operator: str = "", label: str = "", element: str = "", reason: str = "") -> None:
        super().__init__(text)
        self.operator, self.label, self.element, self.reason = operator, label, element, reason


class EndlessLoop(SyndicateError, RuntimeError):
    """A loop in a circuit, named *label*, that did not come to rest within its bound of *iterations*."""

    def __init__(self, text: str, *, label: str = "", iterations: int = 0) -> None:
        super().__init__(text)
        self.label, self.iterations = label, iterations


class PlanError(SyndicateError, ValueError):
    """An expression of the relational algebra, or a program of such, that makes no sense: an unknown attribute."""


class Unstratifiable(PlanError):
    """A program in which a relation depends on its own absence, or on an aggregate of itself.

    *cycle* has an entry for each step: the relation, the one that it depends on, why that is not monotone (empty if it
    is), and the rule.
    """

    def __init__(self, text: str, cycle: Sequence[tuple[str, str, str, str]] = ()) -> None:
        super().__init__(text)
        self.cycle = tuple(cycle)


class FactError(SyndicateError, ValueError):
    """A fact that does not fit its relation: of another length, or of a relation that takes none."""


class DedalusSyntax(SyndicateError, ValueError):
    """Text that is no Dedalus program; *line* and *column* count from 1."""

    def __init__(self, text: str, line: int = 0, column: int = 0) -> None:
        super().__init__(text)
        self.line, self.column = line, column


class DedalusRejected(SyndicateError, ValueError):
    """A Dedalus program that makes no sense; *diagnostics* are all that was found."""

    def __init__(self, text: str, diagnostics: Sequence[object] = ()) -> None:
        super().__init__(text)
        self.diagnostics = tuple(diagnostics)


class DedalusArithmetic(SyndicateError, ArithmeticError):
    """Arithmetic of a Dedalus program on text, by zero, or beyond what a number can be.

    *rule* is the text of the rule, *site* its file and line, *time* the timestep; each is empty or None where it is not
    known.
    """

    def __init__(self, text: str, *, rule: str = "", site: str = "", time: int | None = None) -> None:
        super().__init__(text)
        self.rule, self.site, self.time = rule, site, time


class DedalusEndless(SyndicateError, RuntimeError):
    """A timestep of a Dedalus program, at *time*, that derives ever more facts, or grows beyond its bound."""

    def __init__(self, text: str, *, time: int | None = None) -> None:
        super().__init__(text)
        self.time = time


class DedalusParadox(SyndicateError, RuntimeError):
    """Messages into the past under which a Dedalus program has no model: one prevents that it is sent itself."""


class ScheduleError(SyndicateError, ValueError):
    """A schedule of a Dedalus run that is malformed, names no send, or lets a message arrive when it cannot."""


class ExplorationTooLarge(SyndicateError, RuntimeError):
    """An exploration of a Dedalus program that has more states than its bound; *partial* is what was found."""

    def __init__(self, text: str, partial: object = None) -> None:
        super().__init__(text)
        self.partial = partial


class Unverifiable(SyndicateError, ValueError):
    """What a Dedalus program is verified against does not exist, or cannot be decided by looking back."""


class Undecided(SyndicateError, RuntimeError):
    """A verdict on a Dedalus program that was not reached within its bound; *best* is the best so far, if any."""

    def __init__(self, text: str, best: object = None) -> None:
        super().__init__(text)
        self.best = best


class Disagreement(Undecided):
    """Two engines do not agree on a verdict: a mistake of ours."""


class UnwritableElement(SyndicateError, TypeError):
    """An element that cannot be in a snapshot: nobody said how its type is written."""


class SnapshotError(SyndicateError, ValueError):
    """A snapshot that cannot be restored into this circuit, which stays as it was."""


class SnapshotDamaged(SnapshotError):
    """Bytes that are no snapshot, or not all of one, or were changed."""


class SnapshotMismatch(SnapshotError):
    """A snapshot of another circuit, of another version of the format, or with types that are unknown here."""


class LatticeDefinition(SyndicateError, TypeError):
    """A class that is no lattice: it has no ``merge``, no ``wrapper_name``, or one that another class has."""


class LatticeValue(SyndicateError, TypeError):
    """What a lattice cannot hold, or an argument that its method cannot take."""


class LatticeMismatch(SyndicateError, TypeError):
    """Values of two lattices that were to be merged or compared, or a ``merge`` that left its lattice."""


class LatticeAsKey(SyndicateError, TypeError):
    """A lattice value where a key is needed: it grows, and a key must not."""


class KeyConflict(SyndicateError, ValueError):
    """Two rows with one key that differ in a column which is no lattice and so cannot be merged."""


class LawBroken(SyndicateError, AssertionError):
    """A lattice that breaks a law; the text shows the smallest counterexample found."""


class BloomDeclaration(SyndicateError, TypeError):
    """A Bloom program whose collections, modules or blocks do not fit together."""


class IllegalRule(SyndicateError, TypeError):
    """A Bloom rule that cannot be: an operator on the wrong kind of collection, an unknown column, a mark astray."""


class UnknownColumn(IllegalRule, AttributeError):
    """A column that a collection of a Bloom program does not have."""


class RowMisfit(SyndicateError, TypeError):
    """What is no row, or a row with more columns than its collection has."""


class ProgramNotFound(SyndicateError, LookupError):
    """A class of Bloom rules that was named, and that is not there, or is not one."""


class RowAbsent(SyndicateError, LookupError):
    """A row whose reasons were asked for, and that a collection of a Bloom program does not have."""


class RuleFailed(SyndicateError, RuntimeError):
    """A function in a Bloom rule raised within a tick; ``__cause__`` is what it raised.  The tick did not happen.

    *sites* are the files and lines of the rules that it may be, mostly of one; *relations* are the collections that
    they write.
    """

    def __init__(self, text: str, *, sites: Sequence[str] = (), relations: Sequence[str] = ()) -> None:
        super().__init__(text)
        self.sites, self.relations = tuple(sites), tuple(relations)

    @property
    def site(self) -> str:
        """The file and line of the first rule that it may be; empty if it is not known."""
        return self.sites[0] if self.sites else ""


class ProgramStopped(SyndicateError, RuntimeError):
    """A Bloom program has stopped, and so does nothing any more; ``__cause__`` is the error that ended it, if any."""


class AskFailed(SyndicateError, RuntimeError):
    """A question that has no answer; its subclasses say why."""


class NobodyAnswers(AskFailed):
    """No program that is there answers such questions."""


class AnswererCrashed(AskFailed):
    """Who was at the question has ended before it answered."""


class AnswerLate(AskFailed):
    """The deadline of a question has passed."""


class Refused(AskFailed):
    """Who was asked refuses: raised by its function, and sent to who asked."""


class ServiceCycle(SyndicateError, ValueError):
    """Services that need one another in a circle."""


class QueueMisuse(SyndicateError, ValueError):
    """A queue that cannot work: in a dataspace that keeps nothing, or with a schedule that is no time."""


class JobLost(SyndicateError, RuntimeError):
    """A job that its worker may not go on with: it was cancelled, or given to somebody else."""


class PermanentFailure(SyndicateError, RuntimeError):
    """Raised by the function of a worker: the job fails, and another attempt would, too."""


class NoAnswer(SyndicateError, TimeoutError):
    """A Bloom program that runs did not reply within the given time."""


class TapeLeft(SyndicateError, LookupError):
    """A simulated run that was to be as before draws something else than before."""


class TapeFileError(SyndicateError, ValueError):
    """A file that should hold a tape of a simulated run cannot be read or written, or holds something else."""


class EndlessTurns(SyndicateError, RuntimeError):
    """Actors of a simulated process that reply to each other without an end, while no time passes."""


class Escaped(SyndicateError, RuntimeError):
    """A simulated program that reached out of its world: for the real clock, chance, a socket, a thread.

    *where* is the file and the line.
    """

    def __init__(self, text: str, *, where: str = "") -> None:
        super().__init__(text)
        self.where = where


class Stuck(SyndicateError, RuntimeError):
    """A simulated program that lets no virtual time pass: it computes, or gives way, for ever.

    *where* is the file and the line.
    """

    def __init__(self, text: str, *, where: str = "") -> None:
        super().__init__(text)
        self.where = where


class ScenarioMisuse(SyndicateError, ValueError):
    """A scenario that cannot be run as it is written: a name twice, a fault that nothing can suffer."""


def cut_traceback(error: BaseException) -> None:
    """Let the traceback of *error*, if it tells of a mistake in an argument, end in the line that made the mistake.

    How we found it is of no interest there, and long: a cyclic list is seen to be one at depth 128.
    """
    last, step = None, error.__traceback__ if isinstance(error, (NotAValue, PatternError, NotCallable)) else None
    while step is not None:
        module = step.tb_frame.f_globals.get("__name__", "syndicate")  # generated functions have none
        if module.partition(".")[0] not in ("syndicate", "relay"):
            last = step
        step = step.tb_next
    if last is not None:
        last.tb_next = None


def shown(value: object) -> str:
    """``repr(value)``; or its class, where that raises: what is said of an error must not be one.

    >>> class Shy:
    ...     def __repr__(self):
    ...         raise RuntimeError("not to be seen")
    >>> shown([1]), shown(Shy())
    ('[1]', '<Shy, whose repr() raises RuntimeError>')
    """
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose repr() raises {type(error).__name__}>"


def short(value: object) -> str:
    """A value as a message shows it: at most 80 characters."""
    text = shown(value)
    return text if len(text) <= 80 else text[:77] + "..."

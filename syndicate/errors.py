"""Every exception of the project, one class for each cause.

Each class is also a subclass of the builtin that a caller would catch anyway, and each message says what is wrong,
where, and what to do about it.  Errors hold text, never live actors, so that a kept traceback keeps nothing else
alive.
"""

from __future__ import annotations


class SyndicateError(Exception):
    """The root of all errors of this project."""


class InternalError(SyndicateError, RuntimeError):
    """A broken invariant of ours, never of the caller's: please report it."""


class NotAValue(SyndicateError, TypeError):
    """Something that cannot be asserted or sent: a function, ``None``, a cyclic list."""


class PatternError(SyndicateError, TypeError):
    """Something that cannot stand in a pattern: a set, a function, an unknown class."""


class TextError(SyndicateError, ValueError):
    """Text that is no value or no pattern in the notation of :mod:`syndicate.text`."""


class NotCallable(SyndicateError, TypeError):
    """What is to be called in a turn cannot be: it is no function, it is async, or it takes other arguments."""


class NotInTurn(SyndicateError, RuntimeError):
    """A function that acts on the current turn was called where no turn is running."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}() acts on the current turn, but no turn is running here. Call it from a boot function or a "
            f"handler; from another trio task use facet.enter(lambda: {what}(...)), from another thread "
            "facet.enter_from_thread(...)."
        )


class AlreadyRunning(SyndicateError, RuntimeError):
    """``run`` was called inside an actor, or inside a trio program."""


class DataflowLoop(SyndicateError, RuntimeError):
    """Dataflow blocks that keep changing each other's fields and never settle."""


class ActorCrashed(SyndicateError, RuntimeError):
    """An actor ended by an error; ``__cause__`` is that error."""


class SystemStopped(SyndicateError, RuntimeError):
    """The actor system has ended, so that nothing can be run in it any more."""


class ProtocolError(SyndicateError, ValueError):
    """A peer sent what the protocol does not allow."""


class AddressError(SyndicateError, ValueError):
    """An address that is not of a form which we can listen on or connect to."""


class ConnectError(SyndicateError, ConnectionError):
    """A peer could not be reached, or refused us."""


class ListenError(SyndicateError, OSError):
    """A listener could not be opened: the port is in use, the path is not writable."""


class JavaMissing(SyndicateError, RuntimeError):
    """Spark needs a Java runtime, and none that it can use was found."""


class SparkMissing(SyndicateError, ImportError):
    """The ``spark`` extra is not installed."""


class SourceError(SyndicateError, RuntimeError):
    """A Spark source whose rows do not fit its record class, or whose query ended on its own."""


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

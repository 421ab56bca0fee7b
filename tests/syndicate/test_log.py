"""The log: whatever becomes of a line, and whatever is to be written in it, what is logged goes on."""

from __future__ import annotations

import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import structlog

from syndicate import after, assert_, capture, dataspace, on_retracted, run, supervise
from syndicate.log import configure, logger
from syndicate.values.value import Ref


class Full(io.StringIO):
    """A stream that takes nothing."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def closed() -> io.StringIO:
    """A stream that was closed."""
    stream = io.StringIO()
    stream.close()
    return stream


class NoTextError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class NoReprError(Exception):
    def __repr__(self) -> str:
        raise ValueError("no repr")


class NoNotesError(Exception):
    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise ValueError("no notes")


class NoLengthError(Exception):
    def __len__(self) -> int:
        return 0


ERRORS = [NoTextError, NoReprError, NoNotesError, NoLengthError, ZeroDivisionError]


def left_after(*errors: type[Exception]) -> list[int]:
    """Which facts have gone when supervised actors, one with each fact, have crashed by these errors."""
    gone: list[int] = []

    def actor(number: int, error: type[Exception]) -> None:
        if number in again:
            return
        again.add(number)
        assert_(ds[0], ["here", number])

        def crash() -> None:
            raise error

        after(0, crash)

    again: set[int] = set()
    ds: list[Ref] = []

    def boot() -> None:
        ds.append(dataspace())
        on_retracted(ds[0], ["here", capture()])(gone.append)
        for number, error in enumerate(errors):
            supervise(actor, number, error, restart="on-error", pause=0)
        after(0.05, lambda: None)

    run(boot)
    return sorted(gone)


@pytest.mark.parametrize("stream", [Full, closed, lambda: None, io.StringIO], ids=["full", "closed", "none", "there"])
@pytest.mark.parametrize("configured", [False, True])
def test_a_crash_ends_one_actor(
    monkeypatch: pytest.MonkeyPatch, stream: Callable[[], io.StringIO | None], configured: bool
) -> None:
    """Whatever it crashes by, and wherever the log goes."""
    monkeypatch.setattr(sys, "stderr", stream())
    if configured:
        configure("json")
    try:
        assert left_after(*ERRORS) == list(range(len(ERRORS)))
    finally:
        structlog.reset_defaults()


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_a_line_says_what_can_be_said(error: type[Exception], capsys: pytest.CaptureFixture[str]) -> None:
    """Of an error that cannot be shown, its class."""
    logger(actor="box").error("an actor crashed", exc_info=error(), value=error())
    said = capsys.readouterr().err
    assert "an actor crashed" in said
    assert error.__name__ in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("buffered", [False, True])
def test_a_server_outlives_its_log(tmp_path: Path, buffered: bool) -> None:
    """Sessions end, which is logged to a disk that is full, and it serves on, and ends in order."""
    server = str(Path(sys.executable).with_name("syndicate-server"))
    door = f"unix://{tmp_path}/door"
    with (
        Path("/dev/full").open("w") as full,
        subprocess.Popen(
            [server, "--listen", door],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"},
        ) as process,
    ):
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(2):
            with socket.socket(socket.AF_UNIX) as peer:
                peer.connect(f"{tmp_path}/door")
                peer.sendall(b"\xff" * 64)  # no packet: the session ends, and is logged
                while peer.recv(4096):
                    pass
        process.terminate()
        assert process.wait(120) == 0

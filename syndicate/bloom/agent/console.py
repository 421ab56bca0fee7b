"""The console: lines of standard input and output, for programs that have a terminal.

Those that come in are read by a thread, since a terminal, a pipe and a file are read in one way by nothing else; and by
``os.read``, so that no lock of Python's is held while nobody types, and the process may end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial

import trio


async def read_lines(take: Callable[[str], object], fd: int = 0) -> bool:
    r"""Give each line, without its end, to *take*, until the input ends; answers True, as a linked task that may end.

    >>> import os, trio
    >>> out, into = os.pipe(); _ = os.write(into, "one\nzwö\nthree".encode()); os.close(into)
    >>> trio.run(read_lines, print, out)
    one
    zwö
    three
    True
    """
    rest = b""
    while True:
        read = await trio.to_thread.run_sync(partial(os.read, fd, 65536), abandon_on_cancel=True)
        *lines, rest = (rest + read).split(b"\n")
        if not read and rest:
            lines.append(rest)
        for line in lines:
            take(line.decode(errors="replace").removesuffix("\r"))
        if not read:
            return True


def write_line(text: str) -> None:
    """Print a line, whatever strangers put into it: what the output has no bytes for is escaped."""
    try:
        print(text)
    except UnicodeEncodeError:
        encoding = sys.stdout.encoding
        print(text.encode(encoding, "backslashreplace").decode(encoding))

"""The notebook of the examples, in a real kernel: used, its kernel killed and started again, and its broker as well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from syndicate import capture, record
from syndicate.thread import System
from tests.relay.commands import Server
from tests.relay.conftest import server, start  # noqa: F401  # fixtures
from tests.work import PATIENCE

NOTEBOOK = Path(__file__).parents[1] / "examples" / "web" / "presence.ipynb"
RUN = """
import asyncio, json, os, signal, sys
import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

class Ours(AsyncKernelManager):
    kernel_spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
    )

async def main():
    notebook = nbformat.read(sys.argv[1], as_version=4)
    client = NotebookClient(notebook, km=Ours(), timeout=120)
    async with client.async_setup_kernel():
        for time in range(2):
            for at, cell in enumerate(notebook.cells):
                await client.async_execute_cell(cell, at)
            outputs = [dict(o.data) for c in notebook.cells for o in c.get("outputs", ()) if "data" in o]
            print(json.dumps(outputs), flush=True)
            if not time:
                sys.stdin.readline()
                await client.km.signal_kernel(signal.SIGKILL)  # no cell of it ends in order
                print("killed", flush=True)
                sys.stdin.readline()
                await client.km.restart_kernel(now=True)
                await client.kc.wait_for_ready(timeout=120)
    print("ended", flush=True)

asyncio.run(main())
"""


@record
class Present:
    """As in the notebook."""

    name: str


def test_used_killed_and_restarted(server: Server) -> None:  # noqa: F811
    """Who is here is seen from outside; with the kernel it goes, and comes again with the next."""
    with (
        System() as outside,
        subprocess.Popen(
            [sys.executable, "-c", RUN, str(NOTEBOOK)],
            env={**os.environ, "SYNDICATE_ADDRESS": server[1], "USER_HERE": "ann"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as notebook,
    ):
        assert notebook.stdin
        assert notebook.stdout
        ds = outside.connect(server[1], timeout=PATIENCE)
        people = outside.query(ds, Present(capture(str)))
        for last in (False, True):
            shown = json.loads(notebook.stdout.readline())
            assert [one["text/plain"] for one in (shown[0], shown[2])] == ["['ann']", "(True, ['ann'])"]
            assert "<table" in shown[1]["text/html"]
            if not last:
                assert people.wait(lambda names: names == ["ann"], timeout=PATIENCE)
                print(file=notebook.stdin, flush=True)
                assert notebook.stdout.readline() == "killed\n"
                people.wait(lambda names: names == [], timeout=PATIENCE)
                print(file=notebook.stdin, flush=True)
        assert notebook.stdout.readline() == "ended\n"
        people.wait(lambda names: names == [], timeout=PATIENCE)

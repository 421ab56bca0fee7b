"""A real kernel: cells that start systems return, print where they should, and leave nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys

from syndicate import capture
from syndicate.thread import System
from tests.relay.commands import Server
from tests.relay.conftest import server, start  # noqa: F401  # fixtures
from tests.work import PATIENCE

NOTEBOOK = """
import json, sys
import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

class Ours(KernelManager):
    kernel_spec = KernelSpec(
        argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], language="python"
    )

cells = [nbformat.v4.new_code_cell(text) for text in json.loads(sys.argv[1])]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, km=Ours(), timeout=120).execute()
texts = ["".join(o.get("text", "") + o.get("data", {}).get("text/plain", "") for o in c.outputs) for c in cells]
print(json.dumps(texts))
"""
BEGIN = """
from syndicate import assert_, after, capture, prevent_inert_check
from syndicate.notebook import run
def boot():
    prevent_inert_check()
    print("begun")
    after(0.05, lambda: print("later"))
    after(1.5, lambda: print("much later"))
system = run(boot)
print("returned")
import asyncio
await asyncio.sleep(0.5)
"""
PRESENT = """
await asyncio.sleep(1.5)
ds = system.connect(ADDRESS, timeout=60)
handle = system.call(assert_, ds, ["present", "notebook"])
system.snapshot(ds, ["present", capture()])
"""


def test_a_real_kernel(server: Server) -> None:  # noqa: F811
    """Cells return, actors go on; a cell that runs again, and the end of the kernel, leave nothing."""
    present = PRESENT.replace("ADDRESS", repr(server[1]))
    cells = [BEGIN, present, "system = run(boot); system.running", present]
    with System() as outside:
        ds = outside.connect(server[1], timeout=PATIENCE)
        with outside.events(ds, ["present", capture()]) as events:
            program = [sys.executable, "-c", NOTEBOOK, json.dumps(cells)]
            done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE, check=False)
            assert done.returncode == 0, done.stderr
            first, second, third, fourth = json.loads(done.stdout.splitlines()[-1])
            assert "begun" in first
            assert "later" in first
            assert "returned" in first
            assert "much later" not in second  # it belongs to the cell that has started the actors
            assert second.endswith("['notebook']")
            assert "True" in third  # what another thread prints may come after it
            assert fourth.endswith("['notebook']")
            seen = [events.take(PATIENCE) for _ in range(4)]
            assert [event.kind for event in seen if event is not None] == ["+", "-", "+", "-"]

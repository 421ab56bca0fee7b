"""Other processes, with other hashes of strings: nothing of ours may depend on them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


def printed(hashes: int, *arguments: str, **variables: str) -> str:
    """What Python prints with these arguments, a seed of hashes, and more variables of its environment."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hashes), "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout

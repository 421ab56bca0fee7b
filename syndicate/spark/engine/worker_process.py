"""A worker of Spark's that is used for one task after another, and what each would pay again for what stays the same.

Spark's worker looks for new modules before each task (``importlib.invalidate_caches``), and for garbage after it.  The
first reads the directory of each archive on the path again, before Python 3.12; the second walks all that was imported.
That is 90 and 65 ms of the processor (measured, with ``pyspark.zip`` on the path), many times what a small micro-batch
is worth.

Source: ``docs/design/spark.md``, "State in Spark's own store".
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final
from zipimport import zipimporter

from syndicate.garbage_collector import set_aside

RE_READS: Final = sys.version_info < (3, 12)
"""Whether Python reads archives again although nothing is asked of them."""


class Archive(zipimporter):
    """An importer of an archive that reads its directory again if the file has changed, and only then."""

    def __init__(self, path: str) -> None:
        self.state = _state(path)
        super().__init__(path)

    def invalidate_caches(self) -> None:
        """Look whether it has changed."""
        state = _state(self.archive)
        if state is None or state != self.state:
            self.state = state
            super().invalidate_caches()


def _state(path: str) -> tuple[int, int, int] | None:
    """What tells a file from one that has taken its place; None for what is in an archive, or is no file."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


class WorkerProcess:
    """This process, and the tasks that it was used for."""

    def __init__(self) -> None:
        self.tasks = 0

    def begin(self) -> None:
        """A task begins.  At the first, archives get such importers; at the second, what was imported is set aside."""
        self.tasks += 1
        if self.tasks == 1 and RE_READS:
            for path, importer in list(sys.path_importer_cache.items()):
                if type(importer) is zipimporter and importer.archive == path:
                    sys.path_importer_cache[path] = Archive(path)
        elif self.tasks == 2:  # the first has imported what it uses, and Spark has collected the garbage of that
            set_aside()


worker: Final = WorkerProcess()
"""The one of this process."""

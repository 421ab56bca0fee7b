"""Builds the native kernels when the project is installed, where a Rust compiler is at hand.

Nothing here may fail an installation: without `cargo`, without the network for its crates, or with an old compiler, the
library is left out, and `syndicate --version` says so.  A library of earlier is removed then, for it might be older
than the sources.  ``SYNDICATE_PURE=1`` leaves it out on purpose; ``SYNDICATE_NATIVE=require`` makes a failure an error.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

from library import NAME, build


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg,misc]  # hatchling is there only while it builds
    """Called by hatchling for a wheel, and for an editable installation."""

    def initialize(self, version: str, build_data: dict[str, object]) -> None:
        """Build the library into the package, or see to it that there is none."""
        place = Path(self.root) / "syndicate" / NAME
        reason = build(place)
        if reason is None:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["artifacts"] = [f"syndicate/{NAME}"]
            return
        place.unlink(missing_ok=True)
        if os.environ.get("SYNDICATE_NATIVE") == "require":
            raise RuntimeError(f"SYNDICATE_NATIVE=require, but the native kernels cannot be built: {reason}")
        self.app.display_warning(f"syndicate will run as pure Python: {reason}")

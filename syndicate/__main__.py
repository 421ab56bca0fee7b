"""``python -m syndicate`` says which version this is, and whether native kernels run; the command is ``syndicate``."""

from importlib.metadata import version

from syndicate.native import DESCRIPTION

print(f"syndicate, version {version('syndicate-dataspace')}, {DESCRIPTION}")

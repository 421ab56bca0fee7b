"""How Sphinx makes the site of these pages: ``make docs``."""

from __future__ import annotations

from importlib.metadata import version as version_of

from pygments.lexers import PrologLexer
from sphinx.application import Sphinx

project = "syndicate-dataspace"
version = release = version_of(project)
project_copyright = "the authors; Apache 2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["images"]
html_theme = "furo"
html_title = f"{project} {version}"
myst_heading_anchors = 4
highlight_language = "none"
suppress_warnings = [
    "myst.xref_missing",  # files of the project that are no pages; a test follows all links
    "ref.python",  # `System` is three classes
]

autodoc_typehints = "description"
autodoc_member_order = "bysource"


def setup(app: Sphinx) -> None:
    """Leave out of the reference what is not ours, and what another page of it has."""
    pages: dict[int, str] = {}

    def elsewhere(app: Sphinx, what: str, name: str, value: object, skip: bool, options: object) -> bool | None:
        if what != "module" or name.startswith("_"):
            return None
        module = getattr(value, "__module__", None)
        if not isinstance(module, str) or module.partition(".")[0] not in ("syndicate", "relay"):
            return True if callable(value) else None
        page = app.env.docname
        return True if pages.setdefault(id(value), page) != page else None

    for language in ("ded", "dedalus"):
        app.add_lexer(language, PrologLexer)
    app.connect("autodoc-skip-member", elsewhere)

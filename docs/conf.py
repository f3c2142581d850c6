"""The documentation site: `make docs` builds it, and warnings are errors.

The source folder is the repository itself, so that links between docs/ and the files around it work as
they do in a checkout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx

import indlet

project = "indlet"
version = release = indlet.__version__
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/README.md",
]
exclude_patterns = ["docs/evidence/results/**"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # samples of damaged input are not valid in their language
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
html_theme = "furo"
html_title = "indlet"


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_endpoints)


def add_endpoints(app: Sphinx, name: str, source: list[str]) -> None:
    """Completes the page of the JSON API from the OpenAPI document."""
    if name == "docs/reference/api":
        source[0] += "\n" + "\n".join(describe_endpoints())


def describe_endpoints() -> Iterator[str]:
    """A section for each endpoint: summary, parameters."""
    from indlet.service.api.routes import openapi

    document: Any = openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"## `{method.upper()} {path}`\n\n{operation.get('summary', '')}\n"
            if text := operation.get("description"):
                yield text + "\n"
            if parameters := operation.get("parameters"):
                yield "| parameter | type | meaning |\n| --- | --- | --- |"
                for parameter in parameters:
                    kind = parameter.get("schema", {}).get("type", "string")
                    meaning = str(parameter.get("description", "")).replace("|", "\\|")
                    yield f"| `{parameter['name']}` | {kind} | {meaning} |"
                yield ""

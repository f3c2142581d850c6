"""pyoai 2.5 with today's Python and lxml, which have let go of what it uses: a module of setuptools for its
version, a function for its tokens, a method for its paths."""

from __future__ import annotations

import cgi
import sys
import types
import urllib.parse
from typing import Any

from lxml import etree

sys.modules.setdefault("pkg_resources", types.ModuleType("pkg_resources"))
cgi.parse_qs = urllib.parse.parse_qs  # type: ignore[attr-defined]

from oaipmh import client, common, metadata, server  # noqa: E402

__all__ = ["client", "common", "metadata", "server"]


class _Evaluator:
    def __init__(self, node: Any, namespaces: dict[str, str]) -> None:
        self.evaluate = etree.XPathEvaluator(node, namespaces=namespaces)


for module in (client, metadata):
    module.etree = types.SimpleNamespace(**vars(etree) | {"XPathEvaluator": _Evaluator})

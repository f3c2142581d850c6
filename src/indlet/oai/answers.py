"""What the verbs tell that are asked once: who a repository is, and which formats and sets it has."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lxml import etree

from indlet.oai.describe import reviews_deletions, stated_policy, stated_store
from indlet.oai.read import Page, local_name, text_of

_VERSION = re.compile("[^0-9.]")  # what a version is not made of


@dataclass(frozen=True, slots=True)
class Identity:
    """What Identify tells; whatever it leaves out has the value that assumes least."""

    name: str = ""
    base_url: str = ""
    earliest: str = ""
    deleted: str = "no"
    granularity: str = ""
    policy: str = ""
    version: str = ""
    store: str = ""  # names the store behind it, and its history
    reviews_deletions: bool = False  # its own guard or operator has let the deletions that it lists pass


def identity(page: Page) -> Identity:
    node = _answer(page, "Identify")
    values = {local_name(c): text_of(c) for c in node} if node is not None else {}
    policies = [p for p in node.iter() if local_name(p) == "policy"] if node is not None else []
    deleted = values.get("deletedRecord", "").lower()
    former = values.get("protocolVersion", "").startswith("1.")
    return Identity(
        values.get("repositoryName", ""),
        values.get("baseURL", ""),
        values.get("earliestDatestamp", ""),
        deleted if deleted in ("persistent", "transient") else "no",
        "YYYY-MM-DD" if former else values.get("granularity", ""),
        text_of(policies[0]) if policies else stated_policy(node),
        _VERSION.sub("", values.get("protocolVersion", ""))[:10],
        stated_store(node),
        reviews_deletions(node),
    )


def metadata_formats(page: Page) -> list[str]:
    """The prefixes that ListMetadataFormats names."""
    node = _answer(page, "ListMetadataFormats")
    if node is None:
        return []
    return [(p.text or "").strip() for p in node.iter() if local_name(p) == "metadataPrefix"]


def format_namespaces(page: Page) -> dict[str, str]:
    """Each prefix that ListMetadataFormats names, with its namespace."""
    node = _answer(page, "ListMetadataFormats")
    entries = ({local_name(c): text_of(c) for c in entry} for entry in (node if node is not None else ()))
    return {e["metadataPrefix"]: e.get("metadataNamespace", "") for e in entries if e.get("metadataPrefix")}


def index_formats(page: Page) -> dict[str, str]:
    """Each index prefix that ListIndexFormats names, with its policy as JSON."""
    node = _answer(page, "ListIndexFormats")
    found: dict[str, str] = {}
    for entry in node if node is not None else ():
        values = {local_name(c): text_of(c) for c in entry}
        if values.get("indexPrefix"):
            found[values["indexPrefix"]] = values.get("policy", "")
    return found


def set_names(page: Page) -> list[tuple[str, str]]:
    """(setSpec, name) of the sets on a page of ListSets."""
    node = _answer(page, "ListSets")
    found = []
    for entry in node if node is not None else ():
        if local_name(entry).lower() == "set":
            values = {local_name(c).lower(): text_of(c).split() for c in entry}
            if spec := "".join(values.get("setspec", ())):
                found.append((spec, " ".join(values.get("setname", ()))))
    return found


def _answer(page: Page, verb: str) -> etree._Element | None:
    if page.root is None:
        return None
    return next((c for c in page.root if local_name(c).lower() == verb.lower()), None)

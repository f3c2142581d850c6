"""The names that both ends of the protocol share."""

from __future__ import annotations

from typing import Final

OAI_NAMESPACE: Final = "http://www.openarchives.org/OAI/2.0/"
OAI_SCHEMA: Final = "http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd"
# Every element of an extended response, and the parts that only the extension has.
FT_NAMESPACE: Final = "urn:indlet:ft-oai:1.0"
TF_NAMESPACE: Final = "urn:indlet:tf:1.0"
BUNDLE_NAMESPACE: Final = "urn:indlet:bundle:1.0"
XSI_NAMESPACE: Final = "http://www.w3.org/2001/XMLSchema-instance"

# Below a node's public root.
OAI_PATH: Final = "/oai"
FT_PATH: Final = "/ft-oai"
SCHEMA_PATH: Final = "/schema"
DECISIONS_PATH: Final = "/duplicates.json"


def extended_path(path: str) -> str:
    """Where a repository of that path has its extended endpoint: /ft-oai/nasa for /oai/nasa."""
    return FT_PATH + path.removeprefix(OAI_PATH)

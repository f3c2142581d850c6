"""Where a record came from: the provenance container of OAI-PMH, and the version that its origin gave it.

Provenance (guidelines-provenance) nests: the outermost hop is where the record was harvested last, the
innermost its origin. The version says the same in the terms that decide which of two copies is newer; it
travels with deleted records too, which OAI-PMH itself allows no container.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lxml import etree

from indlet.errors import BadResponse
from indlet.model import JsonMapping
from indlet.oai.names import XSI_NAMESPACE
from indlet.oai.xml import attribute, element, text

NAMESPACE: Final = "http://www.openarchives.org/OAI/2.0/provenance"
SCHEMA: Final = "http://www.openarchives.org/OAI/2.0/provenance.xsd"
# The set of all records of one origin, beside the origin's own sets.
FROM: Final = "from"
VERSION_NAMESPACE: Final = "urn:indlet:version:1.0"
_TRANSLATION: Final = f'<translation xmlns="{VERSION_NAMESPACE}" distance="'.encode()
# How far a translation is from the form that the origin keeps: made by the origin, or by a node on the way.
BY_ORIGIN: Final = 1
ON_THE_WAY: Final = 2
_MOST_DISTANCE: Final = 99
_NUMBER = re.compile("[0-9]{1,9}")
_MOST_HOPS: Final = 50  # no honest chain is longer; a deeper one is cut


@dataclass(frozen=True, slots=True)
class Hop:
    """One harvest of a record: from where, what it was called and dated there, and when it was harvested."""

    base_url: str
    identifier: str
    datestamp: str
    namespace: str
    harvested: str
    altered: bool = False


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """Which state of its origin's record a copy is. Later ones are greater.

    `datestamp` is the origin's own. `epoch` counts how often the origin was seen to go back in time: when it
    was restored from a backup, say, what it says now is newer than what it said before. `settled` says that
    the origin was asked after the second of the datestamp was over, so that no other state can have it.
    `revision` counts changes that the origin made without a new datestamp.
    """

    epoch: int
    datestamp: str
    settled: bool = True
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Stated:
    """What a copy states of itself: its origin's base URL, its version there, its sets there."""

    origin: str
    version: Version
    sets: tuple[str, ...]


def version_of(properties: JsonMapping) -> Version:
    """The version of a stored copy; of one that was stored before there were versions, by its datestamp."""
    match properties.get("version"):
        case [int(epoch), str(datestamp), bool(settled), int(revision)]:
            return Version(epoch, datestamp, settled, revision)
    return Version(0, str(properties.get("source_datestamp", "")))


def distance_of(properties: JsonMapping) -> int:
    """How far a stored copy is from the form that its origin keeps. One that came by way of another node, and
    was stored before this was told, may be a translation: the origin's own form takes its place."""
    return int(properties.get("distance", ON_THE_WAY if "via" in properties else 0))


def state_at_origin(properties: JsonMapping) -> str:
    """Which state of its origin's record a stored copy is; empty where that is not known."""
    version = version_of(properties) if "version" in properties else None
    return f"{version.epoch} {version.datestamp} {version.revision}" if version else ""


def own_sets(specs: Iterable[str]) -> tuple[str, ...]:
    """The sets that a record has at its origin: all but the one that names the origin itself."""
    return tuple(spec for spec in specs if spec != FROM and not spec.startswith(f"{FROM}:"))


def write(hops: Sequence[Hop]) -> bytes:
    """The provenance container of a chain, its last hop first."""
    inner = ""
    for hop in reversed(hops):
        inner = (
            f'<originDescription harvestDate="{attribute(hop.harvested)}" '
            f'altered="{"true" if hop.altered else "false"}">'
            f"<baseURL>{text(hop.base_url)}</baseURL><identifier>{text(hop.identifier)}</identifier>"
            f"<datestamp>{text(hop.datestamp)}</datestamp>"
            f"<metadataNamespace>{text(hop.namespace)}</metadataNamespace>{inner}</originDescription>"
        )
    return (
        f'<provenance xmlns="{NAMESPACE}" xmlns:xsi="{XSI_NAMESPACE}" '
        f'xsi:schemaLocation="{NAMESPACE} {SCHEMA}">{inner}</provenance>'
    ).encode()


def write_version(stated: Stated) -> bytes:
    return (
        f'<version xmlns="{VERSION_NAMESPACE}" origin="{attribute(stated.origin)}" '
        f'datestamp="{attribute(stated.version.datestamp)}" epoch="{stated.version.epoch}" '
        f'settled="{"true" if stated.version.settled else "false"}" revision="{stated.version.revision}">'
        f"{''.join(f'<set>{text(spec)}</set>' for spec in stated.sets)}</version>"
    ).encode()


def write_translation(distance: int) -> bytes:
    """The container of a metadata part that is not in the form that the record's origin keeps."""
    return b'%b%d"/>' % (_TRANSLATION, min(distance, _MOST_DISTANCE))


def is_translation(container: bytes) -> bool:
    """Whether a container says how a metadata part was made, and nothing of where it came from."""
    return container.lstrip()[:200].startswith(_TRANSLATION) or (
        VERSION_NAMESPACE.encode() in container and _root(container) == f"{{{VERSION_NAMESPACE}}}translation"
    )


def distance(containers: Iterable[bytes]) -> int:
    """How far a metadata part is from the form that its origin keeps: 0 where that is the form.

    Other software marks the hops at which a record was altered.
    """
    altered = 0
    for container in containers:
        if is_translation(container):
            stated = element(container).get("distance", "").strip()
            return min(int(stated), _MOST_DISTANCE) if _NUMBER.fullmatch(stated) else ON_THE_WAY
        altered = altered or sum(hop.altered for hop in read((container,))[0])
    return min(altered * ON_THE_WAY, _MOST_DISTANCE)


def _root(container: bytes) -> str:
    try:
        return str(element(container).tag)
    except BadResponse:
        return ""


def read(containers: Iterable[bytes]) -> tuple[tuple[Hop, ...], Stated | None]:
    """The chain and the version among a record's about containers; what cannot be read counts as absent."""
    hops: tuple[Hop, ...] = ()
    stated = None
    for container in containers:
        try:
            root = element(container)
        except BadResponse:
            continue
        if root.tag == f"{{{NAMESPACE}}}provenance" and not hops:
            hops = tuple(_hops(root))
        elif root.tag == f"{{{VERSION_NAMESPACE}}}version":
            stated = _stated(root)
    if stated is None and hops:
        last = hops[-1]
        stated = Stated(last.base_url, Version(0, last.datestamp), ())
    return hops, stated


def _hops(root: etree._Element) -> list[Hop]:
    found: list[Hop] = []
    node = root.find(f"{{{NAMESPACE}}}originDescription")
    while node is not None and len(found) < _MOST_HOPS:
        said = {
            name: (node.findtext(f"{{{NAMESPACE}}}{name}") or "").strip()
            for name in ("baseURL", "identifier", "datestamp", "metadataNamespace")
        }
        if not said["baseURL"] or not said["datestamp"]:
            return []
        found.append(
            Hop(
                said["baseURL"], said["identifier"], said["datestamp"], said["metadataNamespace"],
                (node.get("harvestDate") or "").strip(), node.get("altered", "").strip() == "true",
            )
        )  # fmt: skip
        node = node.find(f"{{{NAMESPACE}}}originDescription")
    return found


def _stated(root: etree._Element) -> Stated | None:
    origin, datestamp = (root.get(name, "").strip() for name in ("origin", "datestamp"))
    epoch, revision = (root.get(name, "0").strip() for name in ("epoch", "revision"))
    if not origin or not datestamp or not _NUMBER.fullmatch(epoch) or not _NUMBER.fullmatch(revision):
        return None
    version = Version(int(epoch), datestamp, root.get("settled") != "false", int(revision))
    sets = tuple((node.text or "").strip() for node in root.iter(f"{{{VERSION_NAMESPACE}}}set"))
    return Stated(origin, version, tuple(filter(None, sets)))

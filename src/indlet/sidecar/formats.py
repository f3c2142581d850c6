"""The files that a metadata format names: a function for each format, from an element to `RecordFiles`.

A description is recognised by its root element, whatever its prefix is called at a repository.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from lxml import etree

from indlet.oai.read import local_name, parsed, text_of
from indlet.sidecar.links import (
    PDF,
    AccessRight,
    FileLink,
    RecordFiles,
    guess_type,
    is_document_type,
    is_web_address,
    strictest,
    unique,
)

# Prefixes that are asked for, best first, where a repository offers them and its records did not come so.
PREFIXES: Final = (
    "xoai", "ore", "mets", "oai_openaire", "oai_openaire_jats", "rioxx", "didl", "oai_didl", "nereus_didl",
    "jats", "nlm", "oai_ddi", "oai_datacite", "datacite", "mods", "marcxml", "marc21", "marc",
)  # fmt: skip

_XLINK: Final = "{http://www.w3.org/1999/xlink}href"
_AGGREGATES: Final = "http://www.openarchives.org/ore/terms/aggregates"
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
# AccessRight rights as COAR and info:eu-repo write them, and as oai_dc and datacite repeat them.
_ACCESS: Final = (
    (re.compile(r"c_abf2$|openaccess|open access|oa:true", re.IGNORECASE), AccessRight.OPEN),
    (re.compile(r"c_f1cf$|embargo", re.IGNORECASE), AccessRight.EMBARGOED),
    (re.compile(r"c_16ec$|c_14cb$|restricted ?access|closed ?access", re.IGNORECASE), AccessRight.RESTRICTED),
)
_EMBARGO_END = re.compile(r"info:eu-repo/date/embargoEnd/(\d{4}-\d\d-\d\d)")


def files_in(raw: bytes) -> RecordFiles | None:
    """What a record in XML says of its files; None where its format names none."""
    root = parsed(raw)
    if root is None:
        return None
    reader = READERS.get(local_name(root))
    return reader(root) if reader else None


def access_of(value: str) -> AccessRight:
    """What a statement about rights says of access."""
    return next((access for pattern, access in _ACCESS if pattern.search(value)), AccessRight.UNKNOWN)


def embargo_end(values: Iterator[str]) -> str:
    """The date at which an embargo ends, by the statements of a record."""
    return next((found[1] for value in values if (found := _EMBARGO_END.search(value))), "")


def all_named(root: etree._Element, *names: str) -> Iterator[etree._Element]:
    """The elements of these local names, whatever their namespace."""
    return (node for node in root.iter(etree.Element) if local_name(node) in names)


def read_xoai(root: etree._Element) -> RecordFiles:
    """DSpace's own format: bundles with bitstreams, each a list of fields."""
    files = []
    for bundle in _xoai_elements(root, "bundle"):
        use = _xoai_fields(bundle).get("name", "")
        if use not in ("ORIGINAL", "TEXT"):
            continue
        for bitstream in _xoai_elements(bundle, "bitstream"):
            fields = _xoai_fields(bitstream)
            access, until = _xoai_policies(bitstream)
            files.append(
                FileLink(
                    fields.get("url", ""), fields.get("format", "").lower(), fields.get("name", ""),
                    _number(fields.get("size", "")), access, until, is_copy=use == "TEXT",
                )
            )  # fmt: skip
    values = [text_of(field) for field in all_named(root, "field")]
    rights = [
        access_of(value) for value in values if value.startswith(("info:eu-repo/", "http://purl.org/coar"))
    ]
    return RecordFiles(_with_url(files), access=strictest(rights), until=embargo_end(iter(values)))


def _xoai_elements(root: etree._Element, name: str) -> Iterator[etree._Element]:
    return (node for node in all_named(root, "element") if node.get("name") == name)


def _xoai_fields(node: etree._Element) -> dict[str, str]:
    return {child.get("name", ""): text_of(child) for child in node if local_name(child) == "field"}


def _xoai_policies(bitstream: etree._Element) -> tuple[AccessRight, str]:
    """Who may read a bitstream, where resource policies are listed (DSpace 7.6 and later)."""
    policies = [_xoai_fields(node) for node in _xoai_elements(bitstream, "resourcePolicy")]
    readers = [fields for fields in policies if fields.get("action", "").lower() == "read"]
    if not policies:
        return AccessRight.UNKNOWN, ""
    public = [fields for fields in readers if fields.get("group", "").lower() == "anonymous"]
    if not public:
        return AccessRight.RESTRICTED, ""
    starts = [found[0] for fields in public if (found := _DATE.search(fields.get("start-date", "")))]
    return (AccessRight.EMBARGOED, max(starts)) if len(starts) == len(public) else (AccessRight.OPEN, "")


def read_ore(root: etree._Element) -> RecordFiles:
    """An ORE resource map in Atom; DSpace tells bundles apart by the description of each bitstream."""
    uses = {}
    for node in all_named(root, "Description"):
        about = next((value for name, value in node.attrib.items() if str(name).endswith("about")), "")
        uses[str(about)] = " ".join(text_of(child) for child in all_named(node, "description"))
    files = [
        FileLink(node.get("href", ""), (node.get("type") or "").lower(), node.get("title", ""),
                 _number(node.get("length", "")))
        for node in all_named(root, "link")
        if node.get("rel") == _AGGREGATES and uses.get(node.get("href", ""), "ORIGINAL") == "ORIGINAL"
    ]  # fmt: skip
    pages = [n.get("href", "") for n in all_named(root, "link") if n.get("rel") == "alternate"]
    return RecordFiles(_with_url(files), pages=_addresses(pages))


def read_mets(root: etree._Element) -> RecordFiles:
    files = []
    for group in all_named(root, "fileGrp"):
        use = (group.get("USE") or "ORIGINAL").upper()
        if use not in ("ORIGINAL", "CONTENT", "DEFAULT", "DOWNLOAD", "TEXT"):
            continue
        for node in all_named(group, "file"):
            for place in all_named(node, "FLocat"):
                url = str(place.get(_XLINK) or place.get("href") or "")
                media_type = (node.get("MIMETYPE") or "").lower()
                size = _number(node.get("SIZE", ""))
                files.append(FileLink(url, media_type, "", size, is_copy=use == "TEXT"))
    return RecordFiles(_with_url(files))


def read_openaire(root: etree._Element) -> RecordFiles:
    """OpenAIRE 4: `oaire:file` with media type, kind of object and access rights."""
    files = []
    for node in all_named(root, "file"):
        kind = (node.get("objectType") or "").lower()
        if kind in ("dataset", "software"):
            continue
        access = access_of(node.get("accessRightsURI") or "")
        media_type = (node.get("mimeType") or "").lower()
        files.append(FileLink(text_of(node), media_type, access=access, is_full_text=kind == "fulltext"))
    rights = [node.get("rightsURI") or text_of(node) for node in all_named(root, "rights")]
    ends = [text_of(node) for node in all_named(root, "date") if node.get("dateType") == "Available"]
    licences = [node.get("uri") or text_of(node) for node in all_named(root, "licenseCondition")]
    access = strictest([access_of(value) for value in rights])
    until = max((value[:10] for value in ends if _DATE.match(value)), default="")
    pages = [text_of(node) for node in all_named(root, "identifier")]
    return RecordFiles(
        _with_url(files), _addresses(pages), access=access,
        until=until if access is AccessRight.EMBARGOED else "", licences=unique(licences),
    )  # fmt: skip


def read_rioxx(root: etree._Element) -> RecordFiles:
    """RIOXX 2 (`dc:identifier` is the file, `dc:format` its type) and 3 (`dc:relation` with `rel="item"`)."""
    formats = [text_of(node).lower() for node in all_named(root, "format")]
    media_type = next(filter(is_document_type, formats), "")
    files = [FileLink(text_of(node), media_type) for node in all_named(root, "identifier")]
    files += [
        FileLink(text_of(node) or node.get("href", ""), (node.get("type") or "").lower())
        for node in all_named(root, "relation")
        if node.get("rel") == "item"
    ]
    licences = [text_of(node) for node in all_named(root, "license_ref")]
    free = [node.get("start_date", "") for node in all_named(root, "free_to_read")]
    until = max((value[:10] for value in free if _DATE.match(value or "")), default="")
    return RecordFiles(_with_url(files), until=until, licences=unique(licences))


def read_didl(root: etree._Element) -> RecordFiles:
    """MPEG-21 DIDL as in the Dutch and Nereus profiles: items of the type `objectFile` hold the files."""
    files, pages = list[FileLink](), list[str]()
    for node in all_named(root, "Resource"):
        url, media_type = node.get("ref", ""), (node.get("mimeType") or "").partition(";")[0].lower()
        kinds = _item_types(node)
        if any(kind.endswith("humanStartPage") for kind in kinds):
            pages.append(url)
        elif not any(kind.endswith("descriptiveMetadata") for kind in kinds):
            is_file = any(kind.endswith("objectFile") for kind in kinds)
            files.append(FileLink(url, media_type, is_full_text=is_file and media_type == PDF))
    rights = [access_of(text_of(node)) for node in all_named(root, "accessRights")]
    return RecordFiles(_with_url(files), _addresses(pages), access=strictest(rights))


def _item_types(resource: etree._Element) -> list[str]:
    """The types that the nearest item around a resource states of itself."""
    item = next((node for node in resource.iterancestors() if local_name(node) == "Item"), None)
    if item is None:
        return []
    own = [node for node in item if local_name(node) == "Descriptor"]
    found = [found for node in own for found in all_named(node, "type", "ObjectType")]
    return [str(value) for node in found for value in (text_of(node), *node.attrib.values())]


def read_jats(root: etree._Element) -> RecordFiles:
    """An article: with a body it is the full text itself; without, `self-uri` may name a file."""
    body = next(all_named(root, "body"), None)
    files = [
        FileLink(str(node.get(_XLINK) or text_of(node)), (node.get("content-type") or "").lower())
        for node in all_named(root, "self-uri")
    ]
    named = [link for link in files if is_document_type(guess_type(link)) or "/" not in link.media_type]
    whole = etree.tostring(root, encoding="utf-8") if body is not None and text_of(body) else b""
    typed = [replace_type(link) for link in named]
    licences = [str(node.get(_XLINK) or "") for node in all_named(root, "license")]
    return RecordFiles(_with_url(typed), text=whole, licences=unique(licences))


def replace_type(link: FileLink) -> FileLink:
    """A link whose type may be stated in a word, such as "pdf"."""
    return link._replace(media_type=PDF if link.media_type == "pdf" else link.media_type)


def read_datacite(root: etree._Element) -> RecordFiles:
    """DataCite names pages (its identifier, a DOI) and rights; files only in `alternateIdentifier`."""
    pages = []
    for node in all_named(root, "identifier"):
        value, kind = text_of(node), (node.get("identifierType") or "").upper()
        pages.append(value if is_web_address(value) else f"https://doi.org/{value}" if kind == "DOI" else "")
    files = [FileLink(text_of(node)) for node in all_named(root, "alternateIdentifier")]
    rights = [node.get("rightsURI") or text_of(node) for node in all_named(root, "rights")]
    access = strictest([access_of(value) for value in rights])
    ends = [text_of(node)[:10] for node in all_named(root, "date") if node.get("dateType") == "Available"]
    until = max(filter(_DATE.match, ends), default="") if access is AccessRight.EMBARGOED else ""
    documents = [link for link in files if is_document_type(guess_type(link))]
    licences = [value for value in rights if is_web_address(value)]
    return RecordFiles(_with_url(documents), _addresses(pages), b"", access, until, unique(licences))


def read_mods(root: etree._Element) -> RecordFiles:
    types = [text_of(node).lower() for node in all_named(root, "internetMediaType")]
    media_type = next(filter(is_document_type, types), "")
    files, pages = list[FileLink](), list[str]()
    for node in all_named(root, "url"):
        link = FileLink(text_of(node), name=node.get("displayLabel", "") or "")
        if node.get("access") == "raw object" or is_document_type(guess_type(link._replace(name=""))):
            files.append(link._replace(media_type=media_type, name=""))
        else:
            pages.append(link.url)
    rights = [access_of(text_of(node)) for node in all_named(root, "accessCondition")]
    return RecordFiles(_with_url(files), _addresses(pages), access=strictest(rights))


def read_marc(root: etree._Element) -> RecordFiles:
    """Field 856: the second indicator 0 is the resource, 1 a version of it, 2 something related."""
    files, pages = list[FileLink](), list[str]()
    for field in all_named(root, "datafield"):
        if field.get("tag") != "856" or field.get("ind2") == "2":
            continue
        parts: dict[str, str] = {}
        for node in all_named(field, "subfield"):
            parts.setdefault(node.get("code", ""), text_of(node))
        url, media_type = parts.get("u", ""), parts.get("q", "").lower()
        link = replace_type(
            FileLink(url, media_type, size=_number(parts.get("s", "")), name=parts.get("f", ""))
        )
        if is_document_type(guess_type(link)):
            files.append(link)
        else:
            pages.append(url)
    return RecordFiles(_with_url(files), _addresses(pages))


def read_ddi(root: etree._Element) -> RecordFiles:
    """DDI Codebook as Dataverse writes it: `otherMat` is a file, its type in a note."""
    files = []
    for node in all_named(root, "otherMat"):
        notes = {n.get("type", ""): text_of(n) for n in all_named(node, "notes")}
        label = next((text_of(n) for n in all_named(node, "labl")), "")
        media_type = notes.get("DATAVERSE:CONTENTTYPE", "").partition(";")[0].lower()
        files.append(FileLink(node.get("URI", ""), media_type, label))
    pages = [n.get("URI", "") for n in all_named(root, "holdings")]
    restricted = [access_of(text_of(node)) for node in all_named(root, "restrctn", "conditions")]
    return RecordFiles(_with_url(files), _addresses(pages), access=strictest(restricted))


def _with_url(files: list[FileLink]) -> tuple[FileLink, ...]:
    return tuple(link for link in files if is_web_address(link.url))


def _addresses(values: list[str]) -> tuple[str, ...]:
    return unique(value for value in values if is_web_address(value))


def _number(value: str) -> int:
    return int(value) if value.isdecimal() and len(value) < 16 else -1


READERS: Final[dict[str, Callable[[etree._Element], RecordFiles]]] = {
    "metadata": read_xoai,
    "entry": read_ore,
    "mets": read_mets,
    "resource": lambda root: _openaire_or_datacite(root),
    "oai_datacite": read_datacite,
    "rioxx": read_rioxx,
    "DIDL": read_didl,
    "article": read_jats,
    "mods": read_mods,
    "modsCollection": read_mods,
    "record": read_marc,
    "codeBook": read_ddi,
}


def _openaire_or_datacite(root: etree._Element) -> RecordFiles:
    if "namespace.openaire.eu" in (etree.QName(root).namespace or ""):
        return read_openaire(root)
    return read_datacite(root)


def merge(one: RecordFiles, other: RecordFiles) -> RecordFiles:
    """Two descriptions of one record together."""
    return replace(
        one,
        files=tuple(dict.fromkeys((*one.files, *other.files))),
        pages=unique((*one.pages, *other.pages)),
        text=one.text or other.text,
        access=strictest((one.access, other.access)),
        until=one.until or other.until,
        licences=unique((*one.licences, *other.licences)),
    )

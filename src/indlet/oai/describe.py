"""The containers of Identify: what a repository says about itself in schemas that others know."""

from __future__ import annotations

from collections.abc import Iterable

from lxml import etree

from indlet.oai.names import XSI_NAMESPACE
from indlet.oai.xml import attribute, text

_OAI = "http://www.openarchives.org/OAI/2.0/"


def is_email(value: str) -> bool:
    """Whether Identify's schema takes this as an adminEmail. Its pattern itself backtracks without end:
    characters other than spaces, an @, more of them, a full stop, and more."""
    at = value.find("@", 1)
    return at > 0 and "." in value[at + 2 : -1] and value.split() == [value]


def _opening(name: str, namespace: str, schema: str) -> str:
    where = attribute(f"{namespace} {schema}")
    return f'<{name} xmlns="{namespace}" xmlns:xsi="{XSI_NAMESPACE}" xsi:schemaLocation="{where}"'


def oai_identifier(repository: str, sample: str) -> bytes:
    opening = _opening("oai-identifier", f"{_OAI}oai-identifier", f"{_OAI}oai-identifier.xsd")
    return (
        f"{opening}><scheme>oai</scheme><repositoryIdentifier>{text(repository)}</repositoryIdentifier>"
        f"<delimiter>:</delimiter><sampleIdentifier>{text(sample)}</sampleIdentifier></oai-identifier>"
    ).encode()


def friends(urls: Iterable[str]) -> bytes:
    opening = _opening("friends", f"{_OAI}friends/", f"{_OAI}friends.xsd")
    told = "".join(f"<baseURL>{text(url)}</baseURL>" for url in urls)
    return f"{opening}>{told}</friends>".encode()


def rights(statement: str, inline: bytes) -> bytes:
    """A rights manifest for the metadata: by reference where it is a URL, else the inline element."""
    opening = _opening("rightsManifest", f"{_OAI}rights/", f"{_OAI}rightsManifest.xsd")
    if statement.startswith(("http://", "https://")) and not statement.split()[1:]:
        told = f'<rightsReference ref="{attribute(statement)}"/>'.encode()
    else:
        told = b"<rightsDefinition>%b</rightsDefinition>" % inline
    return b'%b appliesTo="%bentity#metadata"><rights>%b</rights></rightsManifest>' % (
        opening.encode(),
        _OAI.encode(),
        told,
    )


# The policy of the plain endpoint travels in Dublin Core: strict validators know no schema of ours.
_POLICY_URN = "urn:indlet:policy:"
_STORE_URN = "urn:indlet:store:"
_LONGEST_EPOCH = 100
_DC = "{http://purl.org/dc/elements/1.1/}"


def policy(json: str, digest: str) -> dict[str, list[str]]:
    """The Dublin Core by which Identify states the analysis policy."""
    return {
        "title": ["Analysis policy: how the terms of this repository's index parts are made"],
        "description": [json],
        "identifier": [_POLICY_URN + digest],
    }


def store(epoch: str) -> dict[str, list[str]]:
    """The Dublin Core by which Identify names the store behind a repository, and the store's history."""
    return {
        "title": ["Store: another identifier means an earlier state was restored; compare with a full list"],
        "identifier": [_STORE_URN + epoch],
    }


def stated_store(identify: etree._Element | None) -> str:
    """What an Identify answer names the store and its history by; empty if it does not."""
    for named in identify.iter(f"{_DC}identifier") if identify is not None else ():
        if (value := (named.text or "").strip()).startswith(_STORE_URN):
            return value.removeprefix(_STORE_URN)[:_LONGEST_EPOCH]
    return ""


def stated_policy(identify: etree._Element | None) -> str:
    """The policy, as JSON, that an Identify answer states; empty if it states none."""
    for named in identify.iter(f"{_DC}identifier") if identify is not None else ():
        container = named.getparent()
        if (named.text or "").strip().startswith(_POLICY_URN) and container is not None:
            return (container.findtext(f"{_DC}description") or "").strip()
    return ""


_REVIEWED_URN = "urn:indlet:deletions:reviewed"


def reviewed_deletions(share: float, records: int) -> dict[str, list[str]]:
    """The Dublin Core by which Identify states that mass deletions are reviewed before they are listed."""
    return {
        "title": ["Deletions are reviewed"],
        "description": [
            f"Deletions of more than {records} records and {share:.0%} of a collection at once are listed "
            "only after an operator has released them, or if the documents were renamed."
        ],
        "identifier": [_REVIEWED_URN],
    }


def reviews_deletions(identify: etree._Element | None) -> bool:
    """Whether an Identify answer states that its mass deletions are reviewed."""
    named = identify.iter(f"{_DC}identifier") if identify is not None else ()
    return any((node.text or "").strip() == _REVIEWED_URN for node in named)

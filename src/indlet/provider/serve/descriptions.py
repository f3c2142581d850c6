"""What a repository says about itself in Identify, beyond what the protocol asks for."""

from __future__ import annotations

from indlet.formats.metadata import oai_dc
from indlet.oai import describe
from indlet.oai.identifier import identifier, repository_identifier
from indlet.provider.serve.dissemination import Dissemination
from indlet.settings import Settings

_RIGHTS = (
    "Metadata and index parts may be harvested. The rights in the documents remain with their owners, "
    "as each record says."
)


def descriptions(settings: Settings, formats: Dissemination, epoch: str) -> list[bytes]:
    """The description containers of Identify; `epoch` is the store's."""
    node = settings.node
    repository = repository_identifier(settings)
    # Not every requester may know of a restricted hierarchy.
    known = [h.name for h in settings.hierarchy if not h.access.is_restricted]
    sample = identifier(repository, known[0] if known else "papers", "report")
    about = {
        "title": [node.name],
        "description": [node.description] if node.description else [],
        "type": ["Collection"],
        "rights": [node.rights or _RIGHTS],
    }
    found = [
        describe.oai_identifier(repository, sample),
        oai_dc.write(about),
        oai_dc.write(describe.policy(formats.policy, formats.digest)),
        oai_dc.write(describe.store(epoch)),
    ]
    crawl = settings.crawl
    if crawl.withhold_share < 1:
        found.append(oai_dc.write(describe.reviewed_deletions(crawl.withhold_share, crawl.withhold_records)))
    if node.rights:
        found.append(describe.rights(node.rights, oai_dc.write({"rights": [node.rights]})))
    if node.friends:
        found.append(describe.friends(node.friends))
    return found

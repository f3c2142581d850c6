"""A check of any OAI-PMH repository: what it says of itself, whether that holds, what a harvester will meet.

Asked with the client of the harvest, so each answer is bounded in bytes, time and reach. Nothing is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from lxml import etree

from indlet.errors import BadResponse
from indlet.formats.metadata import oai_dc
from indlet.net.client import Client, NoAnswer
from indlet.oai import answers
from indlet.oai.answers import Identity
from indlet.oai.describe import is_email
from indlet.oai.read import Item, Page, parsed, read
from indlet.wording import amount

Level = Literal["good", "note", "wrong"]
# What is wrong with the bytes of an answer by a schema; nothing if it is valid.
Validate = Callable[[bytes], list[str]]

PAGES: Final = 5  # of the list of records that are read by default
_SHOWN: Final = 3  # examples of one problem
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_SECOND: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FORMS: Final = {"YYYY-MM-DD": _DAY, "YYYY-MM-DDThh:mm:ssZ": _SECOND}
# Requests that have to be refused, and how.
_REFUSED: Final = (
    ({"verb": "Nonsense"}, "badVerb"),
    ({"verb": "ListRecords"}, "badArgument"),
    ({"verb": "ListRecords", "metadataPrefix": "no-such-format"}, "cannotDisseminateFormat"),
    ({"verb": "GetRecord", "metadataPrefix": "oai_dc", "identifier": "oai:no:such-item"}, "idDoesNotExist"),
    ({"verb": "ListRecords", "resumptionToken": "no such token"}, "badResumptionToken"),
)


class CheckFinding(NamedTuple):
    level: Level
    about: str
    text: str


class _Unusable(Exception):
    """A request brought no answer that the check can go on from."""


@dataclass
class RepositoryCheck:
    """One check; `run` fills `findings`. `pages`: how many of the list of records are read; 0: all."""

    url: str
    client: Client
    validate: Validate = lambda body: []
    pages: int = PAGES
    findings: list[CheckFinding] = field(default_factory=list)
    records: int = 0

    def run(self) -> list[CheckFinding]:
        try:
            identity = self._identify()
        except _Unusable:
            return self.findings
        for step in (self._formats, self._sets, self._records, self._errors):
            try:
                step(identity)
            except _Unusable:
                continue
        return self.findings

    @property
    def passed(self) -> bool:
        return not any(finding.level == "wrong" for finding in self.findings)

    # Questions

    def _ask(self, about: str, arguments: Mapping[str, str]) -> Page:
        """The page that answers a request, checked against the schema; what is wrong with it is told."""
        try:
            answer = self.client.ask(self.url, arguments)
            page = read(answer.body, answer.charset)
        except (NoAnswer, BadResponse) as e:
            self._tell("wrong", about, f"no usable answer: {e}")
            raise _Unusable from e
        if answer.trouble is not None and not page.errors:
            self._tell("wrong", about, f"HTTP status {answer.status}: {answer.trouble}")
            raise _Unusable
        kind = answer.content_type.partition(";")[0].strip().lower()
        if kind != "text/xml":
            self._once("note", "HTTP", f"the answers are sent as {kind or 'nothing'}; text/xml is asked for")
        for repair, times in page.repairs.items():
            self._once("wrong", about, f"had to be repaired: {repair} ({times}×)")
        if not page.repairs:
            for fault in self.validate(answer.body)[:_SHOWN]:
                self._once("wrong", about, f"not valid by the schema: {fault}")
        return page

    def _expect(self, about: str, page: Page, verb: str) -> None:
        if page.errors:
            said = "; ".join(f"{code}: {text}" for code, text in page.errors)
            self._tell("wrong", about, f"refused: {said[:300]}")
            raise _Unusable
        if page.verb != verb:
            self._tell("wrong", about, f"answers {page.verb or 'something else'} to {verb}")
            raise _Unusable

    def _tell(self, level: Level, about: str, text: str) -> None:
        self.findings.append(CheckFinding(level, about, text))

    def _once(self, level: Level, about: str, text: str) -> None:
        if CheckFinding(level, about, text) not in self.findings:
            self._tell(level, about, text)

    # What it says of itself

    def _identify(self) -> Identity:
        about = "Identify"
        page = self._ask(about, {"verb": about})
        self._expect(about, page, about)
        found = answers.identity(page)
        self._tell(
            "good", about, f"{found.name or 'a repository without a name'}, protocol {found.version or '?'}"
        )
        if found.version != "2.0":
            self._tell("wrong", about, f"protocolVersion is {found.version or 'missing'}; it has to be 2.0")
        self._base_url(found.base_url)
        emails = _texts(page, "adminEmail")
        if not emails or not all(map(is_email, emails)):
            self._tell(
                "wrong", about, f"adminEmail {emails or 'is missing'}: one address at least is asked for"
            )
        self._dates(found, next(iter(_texts(page, "deletedRecord")), ""))
        if compression := _texts(page, "compression"):
            self._tell("good", "compression", f"offered: {', '.join(compression)}")
        else:
            self._tell("note", "compression", "none offered; large harvests take several times the bytes")
        return found

    def _base_url(self, said: str) -> None:
        if said == self.url:
            self._tell("good", "base URL", "is the address that was asked")
            return
        asked, told = urlsplit(self.url), urlsplit(said)
        if not said:
            self._tell("wrong", "base URL", "is missing")
        elif (asked.hostname, asked.path.rstrip("/")) == (told.hostname, told.path.rstrip("/")):
            self._tell(
                "note", "base URL", f"is given as {said}: the same but for its scheme, port, slash or query"
            )
        else:
            self._tell(
                "wrong", "base URL", f"is given as {said}, but {self.url} answers: harvesters go astray"
            )

    def _dates(self, found: Identity, deleted: str) -> None:
        form = _FORMS.get(found.granularity)
        if form is None:
            self._tell(
                "wrong", "granularity", f"{found.granularity or 'missing'}: it is one of {', '.join(_FORMS)}"
            )
        else:
            unit = "day" if form is _DAY else "second"
            self._tell("good", "granularity", f"datestamps to the {unit}")
            if not form.fullmatch(found.earliest):
                self._tell(
                    "wrong", "earliest datestamp", f"{found.earliest or 'missing'}: not in that granularity"
                )
        deletions: dict[str, tuple[Level, str]] = {
            "persistent": ("good", "kept for good: harvesters hear of every deletion"),
            "transient": ("note", "told for a while; who comes late has to harvest everything again"),
            "no": (
                "note",
                "not told: only a full harvest, or a list of all identifiers, shows what has gone",
            ),
        }
        unknown = f"{deleted[:40]!r} is none of {', '.join(deletions)}"
        level, text = deletions.get(deleted, ("wrong", unknown))
        self._tell(level, "deleted records", text)

    def _formats(self, identity: Identity) -> None:
        about = "formats"
        page = self._ask(about, {"verb": "ListMetadataFormats"})
        self._expect(about, page, "ListMetadataFormats")
        prefixes = answers.metadata_formats(page)
        self._tell("good", about, ", ".join(prefixes) or "none")
        if "oai_dc" not in prefixes:
            self._tell("wrong", about, "oai_dc is missing, which every repository has to have")

    def _sets(self, identity: Identity) -> None:
        page = self._ask("sets", {"verb": "ListSets"})
        if any(code == "noSetHierarchy" for code, _ in page.errors):
            self._tell("note", "sets", "there are none")
            return
        self._expect("sets", page, "ListSets")
        specs = [spec for spec, _ in answers.set_names(page)]
        self._tell(
            "good", "sets", f"{len(specs)}{' or more' if page.token else ''}, such as {', '.join(specs[:3])}"
        )

    # The list of records

    def _records(self, identity: Identity) -> None:
        about, form = "list of records", _FORMS.get(identity.granularity)
        page = self._ask(about, {"verb": "ListRecords", "metadataPrefix": "oai_dc"})
        if any(code == "noRecordsMatch" for code, _ in page.errors):
            self._tell("note", about, "the repository is empty")
            return
        self._expect(about, page, "ListRecords")
        first = page
        count, seen, tokens = 0, Counter[str](), set[str]()
        wrong: Counter[str] = Counter()
        while True:
            count += 1
            for item in page.items:
                seen[item.identifier] += 1
                wrong.update(_faults(item, form, identity))
            for problem in page.problems:
                wrong[f"a record that cannot be read: {problem.reason}"] += 1
            if not page.token:
                break
            if page.token in tokens:
                self._tell("wrong", about, "a resumption token comes twice: the list has no end")
                break
            tokens.add(page.token)
            if self.pages and count >= self.pages:
                self._tell(
                    "note", about, f"read {amount(count, 'page')}; --pages 0 reads the list to its end"
                )
                break
            page = self._ask(about, {"verb": "ListRecords", "resumptionToken": page.token})
            self._expect(about, page, "ListRecords")
        self.records = len(seen)
        self._told(about, first, page, count, seen, wrong)
        if first.items:
            self._selective(first.items[0], identity)

    def _told(
        self, about: str, first: Page, last: Page, count: int, seen: Counter[str], wrong: Counter[str]
    ) -> None:
        found = (
            f"{len(seen):,} of {amount(first.size, 'record')}" if first.size else amount(len(seen), "record")
        )
        ended = not last.token
        self._tell(
            "good",
            about,
            f"{found} on {amount(count, 'page')}, {len(first.items):,} on the first",
        )
        if ended:
            self._tell(
                "good", "last page", f"the list ends in due form, with {amount(len(last.items), 'record')}"
            )
            if count > 1 and last.token is None:
                self._tell(
                    "wrong", "last page", "has no empty resumptionToken, as the end of a list in parts should"
                )
            if first.size and first.size != sum(seen.values()):
                self._tell(
                    "wrong",
                    "last page",
                    f"{first.size:,} records were announced, {sum(seen.values()):,} came",
                )
        repeated = [name for name, times in seen.items() if times > 1]
        if repeated:
            self._tell(
                "note", about, f"{len(repeated):,} records come more than once, such as {repeated[0][:100]}"
            )
        for fault, times in wrong.most_common(10):
            self._tell("wrong", "records", f"{fault} ({times:,}×)")
        if not wrong and seen:
            self._tell("good", "records", f"all {len(seen):,} can be read and mapped")

    def _selective(self, item: Item, identity: Identity) -> None:
        """Whether a record is found by its own datestamp, which incremental harvests rest upon."""
        about = "selective harvest"
        bounds = {"from": item.datestamp, "until": item.datestamp}
        page = self._ask(about, {"verb": "ListIdentifiers", "metadataPrefix": "oai_dc", **bounds})
        if page.errors:
            said = "; ".join(f"{code}: {text}" for code, text in page.errors)
            self._tell(
                "wrong", about, f"from and until {item.datestamp}, a record's own datestamp: {said[:200]}"
            )
            return
        if any(one.identifier == item.identifier for one in page.items) or page.token:
            self._tell("good", about, "a record is found by its own datestamp")
        else:
            self._tell(
                "wrong", about, f"{item.identifier[:100]} is not listed from and until its own datestamp"
            )
        strays = [one for one in page.items if not one.datestamp.startswith(item.datestamp[:10])]
        if strays:
            self._tell("wrong", about, f"lists {strays[0].datestamp} where {item.datestamp} was asked for")

    def _errors(self, identity: Identity) -> None:
        for arguments, code in _REFUSED:
            page = self._ask("errors", arguments)
            codes = [found for found, _ in page.errors]
            if code not in codes:
                asked = "&".join(f"{name}={value}" for name, value in arguments.items())
                said = ", ".join(codes) or "no error"
                self._tell("wrong", "errors", f"{asked} is answered with {said} instead of {code}")
        if not any(finding.about == "errors" for finding in self.findings):
            self._tell("good", "errors", "wrong requests are refused as the protocol says")


def _faults(item: Item, form: re.Pattern[str] | None, identity: Identity) -> list[str]:
    """What is wrong with a record of a list, in words that add up."""
    found = []
    if form is not None and not form.fullmatch(item.datestamp):
        found.append(f"a datestamp that is not in the granularity, such as {item.datestamp[:40]!r}")
    elif item.datestamp and item.datestamp < identity.earliest:
        found.append("a datestamp before the earliest one that Identify names")
    if item.deleted:
        if identity.deleted == "no":
            found.append("a deleted record, though Identify says that deletions are not told")
        if item.packed is not None:
            found.append("a deleted record with metadata")
        return found
    metadata = None if item.packed is None else parsed(item.packed.raw)
    if metadata is None:
        return [*found, "a record without metadata"]
    try:
        values = oai_dc.FORMAT.read(metadata).simple()
    except (BadResponse, ValueError) as e:
        return [*found, f"metadata that are no oai_dc: {str(e)[:80]}"]
    return found if any(values.values()) else [*found, "metadata of which nothing can be mapped"]


def _texts(page: Page, name: str) -> list[str]:
    """The texts of the elements of a name, whatever their namespace."""
    found = [] if page.root is None else page.root.iter(f"{{*}}{name}")
    return [(node.text or "").strip() for node in found]


def schema_check(schema: etree.XMLSchema, here: str, theirs: str) -> Validate:
    """Validation by a schema that was written for another namespace: `theirs` is read as `here`."""

    def validate(body: bytes) -> list[str]:
        parser = etree.XMLParser(resolve_entities=False, no_network=True)
        try:
            for quote in (b'"', b"'"):  # a namespace as a whole, not others that begin with it
                body = body.replace(quote + theirs.encode() + quote, quote + here.encode() + quote)
            root = etree.fromstring(body, parser)
        except etree.XMLSyntaxError as e:
            return [str(e)[:200]]
        try:
            schema.assertValid(root)
        except etree.DocumentInvalid as e:
            return [str(e)[:200]]
        return []

    return validate

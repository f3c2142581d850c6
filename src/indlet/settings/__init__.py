"""What can be configured, with every default: one frozen `Settings`. settings_file.py makes one of a file.

`docs/settings.md` names each setting, and a test holds the two together. How sources are harvested stands in
harvest_settings.py, which small runs load alone.
"""

from __future__ import annotations

import ipaddress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from indlet.model import JsonObject
from indlet.net.settings import MB
from indlet.net.settings import Harvest as Harvest
from indlet.net.settings import without_credentials as without_credentials

EMBEDDED: Final = "embedded"  # the engine that keeps the index in the data folder
HIERARCHY: Final = "hierarchy"  # kinds of origins: hierarchies and libraries, sources
SOURCE: Final = "source"
OriginKey = tuple[str, str]  # kind and name of an origin
FILE: Final = "indlet.toml"  # where settings are, unless somebody says otherwise


@dataclass(frozen=True, slots=True)
class Node:
    """Who this node is and where it stands."""

    name: str = "indlet"
    repository: str = ""  # the domain part of identifiers; empty: from base_url
    base_url: str = ""  # public root, below which /oai and /ft-oai lie; empty: from host and port
    host: str = "127.0.0.1"
    port: int = 8080
    admin_email: tuple[str, ...] = ("admin@localhost.localdomain",)
    description: str = ""
    rights: str = ""
    jobs: bool = True  # whether  indlet serve  also crawls, harvests and writes; false: workers do
    friends: tuple[str, ...] = ()  # base URLs of other repositories, which Identify names as friends


@dataclass(frozen=True, slots=True)
class Database:
    """Where records, states and journals are kept."""

    url: str = ""  # empty: SQLite in the data folder; sqlite:///folder or postgresql://user@host/database


@dataclass(frozen=True, slots=True)
class IndexEngine:
    """What keeps the index: the embedded engine in the data folder, or an OpenSearch cluster."""

    engine: str = EMBEDDED  # or "opensearch"
    url: tuple[str, ...] = ()  # of nodes of the cluster, with name and password where it wants them
    shards: int = 3  # parts of an index that is made anew on a cluster
    # Pruning by term: occurrences that weigh less than this share of the `prune_best`-th best of their term
    # are left out; 0: none.
    prune: float = 0.0
    prune_best: int = 10

    infer: tuple[str, ...] = ()  # of "subject" and "type": what is inferred of records that lack it
    infer_function: str = ""  # "package.module:name" of what infers; empty: a classifier that is learned

    @property
    def is_embedded(self) -> bool:
        """Whether each machine keeps the index in its data folder."""
        return self.engine == EMBEDDED

    @property
    def pruning(self) -> str:
        """What an index says of how it is pruned; empty where it is not."""
        return f"{self.prune:g} {self.prune_best}" if self.prune else ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one file may cost before it becomes a failure."""

    seconds: float = 60.0
    memory_mb: int = 1536
    file_bytes: int = 512 * MB
    inflated_bytes: int = 256 * MB
    depth: int = 5
    documents: int = 1_000_000
    ocr_pages: int = 0  # pages of a scan that are read by Tesseract, where it is installed; 0: none
    ocr_languages: str = "eng"  # as Tesseract names them, such as "eng+deu"


@dataclass(frozen=True, slots=True)
class Crawl:
    """How hierarchies are read."""

    every: str = ""  # "15m", "2h", "1d" or a cron line; empty: only when asked
    side_by_side: bool = True  # each hierarchy on another machine is read beside the others
    workers: int = 0  # 0: one for each core
    settle_seconds: float = 2.0  # a file changed less than this ago is looked at twice
    hidden: bool = False
    ignore: tuple[str, ...] = ("*~", "#*#", "*.swp", "*.tmp", "*.part", "*.crdownload", "Thumbs.db")
    order: tuple[str, ...] = (
        "sgm", "sgml", "xml", "pdf", "html", "htm", "xhtml", "epub", "docx", "odt", "pptx", "odp", "xlsx",
        "ods", "rtf", "tex", "md", "markdown", "txt", "eml", "mbox", "mrc", "marc",
    )  # fmt: skip
    withhold_share: float = 0.2  # more deletions at once than this share of a hierarchy …
    withhold_records: int = 50  # … and than so many wait for an operator
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may have what. Empty lists mean everybody."""

    networks: tuple[str, ...] = ()  # CIDR blocks that may list this hierarchy
    tokens: tuple[str, ...] = ()  # bearer tokens that may list it
    content: str = "public"  # "public": content served; "private": statistics only; "elsewhere": at base_url

    @property
    def is_restricted(self) -> bool:
        return bool(self.networks or self.tokens)

    def public(self) -> JsonObject:
        """The rules for the store, which does not hold the tokens themselves."""
        return {**asdict(self), "tokens": len(self.tokens)}


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """One storage tree: a root, its name, and where its files are on the web."""

    root: str
    name: str = ""  # empty: the last part of the root
    base_url: str = ""  # empty: this node serves the files under /content/
    title: str = ""
    rights: str = ""
    every: str = ""  # as crawl.every, which holds where this is empty
    options: JsonObject = field(default_factory=dict)  # storage options for fsspec
    access: Access = field(default_factory=Access)


@dataclass(frozen=True, slots=True)
class LibraryFolder:
    """A catalogue whose exported records are served: files of one or many records in one format."""

    name: str
    read: str  # the folder that the catalogue exports to
    format: str = "marc21"  # or another prefix of a metadata format, or "table:NAME"
    mapping: str = ""  # a table of local features on top of the standard crosswalk
    title: str = ""
    rights: str = ""
    every: str = ""  # as crawl.every, which holds where this is empty; "1h" where both are
    access: Access = field(default_factory=Access)  # networks and tokens; no files are served anyway


@dataclass(frozen=True, slots=True)
class VirtualRepository:
    """A view over some of what this node has, as an OAI-PMH repository with an Identify of its own."""

    path: str  # "/oai/nasa"; with index parts at "/ft-oai/nasa"
    name: str = ""  # empty: the node's
    from_: tuple[str, ...] = ("*",)  # hierarchies, libraries and republished sources, or "source:set"
    formats: tuple[str, ...] = ()  # metadataPrefixes on offer; empty: all
    description: str = ""
    rights: str = ""
    admin_email: tuple[str, ...] = ()  # empty: the node's
    access: Access = field(default_factory=Access)  # networks and tokens; others do not find it
    closed: bool = False  # its records are listed as deleted, for those who harvested it


@dataclass(frozen=True, slots=True)
class Write:
    """What a catalogue imports: records of other libraries, written to a folder in its own format."""

    folder: str
    format: str = "marc21"  # or another prefix of a metadata format, or "table:NAME"
    mapping: str = ""  # a table on top of the standard crosswalk
    # Tables of subjects: one from the others' scheme to ours, or two by way of a common one.
    subjects: tuple[str, ...] = ()
    # "codes"; "words": what codes stand for; "learned": from the records of our own libraries as well
    subject_method: str = "codes"
    from_: tuple[str, ...] = ("*",)  # sources, "source:set", or "*" for all that is harvested
    path: str = "{source}/{year}/{name}"  # below the folder, without ending
    required: tuple[str, ...] = ("title",)  # elements without which a written record raises an alert
    files: str = "record"  # a file for each record; "run": one for all that a run writes
    duplicates: str = "write"  # "skip": not what somebody called the same work as a record of our own
    deletions: str = "alert"  # "alert"; "file": a tombstone beside the file; "remove": the file goes
    every: str = "1h"


@dataclass(frozen=True, slots=True)
class SetRule:
    """Sets besides those of folders: `by` an element, or one set of the records `where` conditions hold."""

    by: str = ""  # "type", "language", "subject" or "year": a set for each value
    spec: str = ""  # the setSpec; by default that of `by`
    name: str = ""
    where: str = ""  # "type:thesis year:2010-2019 -language:de"


@dataclass(frozen=True, slots=True)
class Site:
    """The files of a web server, as that server gives them out; see docs/site.md."""

    root: str  # a local folder
    url: str  # what the folder is on the web
    name: str = ""  # in sets; empty: the URL's host and path
    server: str = ""  # where the server is asked, such as "http://127.0.0.1:80"; empty: at the URL
    title: str = ""
    rights: str = ""
    every: str = ""  # as crawl.every, which holds where this is empty
    config: tuple[str, ...] = ()  # the server's configuration files: their IndexIgnore, their changes
    ignore: tuple[str, ...] = (
        ".??*", "*~", "*#", "RCS", "CVS", "*,v", "*,t", "#*#", "*.swp", "*.swo", "*.tmp", "*.part", "*.bak",
        "*.orig", "*.save",
    )  # fmt: skip
    handlers: tuple[str, ...] = (
        ".php", ".phtml", ".php3", ".php4", ".php5", ".php7", ".phps", ".cgi", ".fcgi", ".pl", ".py", ".rb",
        ".shtml", ".stm", ".jsp", ".jspx", ".asp", ".aspx", ".cfm",
    )  # fmt: skip
    dynamic: bool = False  # take what handlers make, as the server gives it
    extract: bool = True  # read texts: descriptions, and statistics for search
    extract_bytes: int = 32 * MB
    by_value_bytes: int = 1 * MB  # larger files go by reference only
    authorization: str = ""  # the crawl's own, such as "Basic dXNlcjpwYXNz"; empty: as a stranger
    credentials: tuple[str, ...] = (  # header fields of trusted proxies that say who asks
        "x-ssl-client-verify", "x-ssl-client-s-dn", "x-ssl-client-cert", "x-client-cert",
    )  # fmt: skip
    remember_seconds: float = 10.0  # how long the server's word on one requester holds
    always_ask: bool = False  # ask for every record, also for those that strangers get
    connections: int = 4
    requests_per_second: float = 0.0  # of a crawl; 0: as many as the server answers, fewer if it limits them


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis policy; see docs/policy.md."""

    language: str = "auto"
    default_language: str = "en"
    stop: bool = True
    stem: bool = True
    positions: bool = False
    prune: float = 0.0  # keep this share of a document's terms; 0: keep all
    lead: float = 0.0  # keep the terms of this share of a text, from its beginning; 0: no summary


@dataclass(frozen=True, slots=True)
class Serve:
    """How records are disseminated."""

    records_per_page: int = 500
    identifiers_per_page: int = 2000
    sets_per_page: int = 1000
    token_hours: float = 24.0
    requests_at_once: int = 16  # beyond this: 503 with Retry-After
    retry_after_seconds: int = 5
    compression: tuple[str, ...] = ("zstd", "br", "gzip")
    trusted_proxies: tuple[str, ...] = ()  # whose X-Forwarded-For is believed
    allow_origins: tuple[str, ...] = ()  # whose pages may read /api; empty: all, but on loopback none
    allow_hosts: tuple[str, ...] = ()  # more names that a node on loopback answers to


@dataclass(frozen=True, slots=True)
class Networks:
    """From where the node may be used, as CIDR blocks. Empty lists mean from everywhere."""

    search: tuple[str, ...] = ()  # people who search: portal, API, feeds
    harvest: tuple[str, ...] = ()  # harvesters: /oai, /ft-oai, virtual repositories, ResourceSync
    native: tuple[str, ...] = ()  # native systems and who keeps them: the desk, its alerts, /metrics
    repository: tuple[str, ...] = ()  # users of the repository: /about, /content, its sitemap


@dataclass(frozen=True, slots=True)
class Source:
    """A provider as a service sees it."""

    url: str
    name: str = ""  # empty: from the URL
    set: str = ""
    from_: str = ""
    until: str = ""
    every: str = ""  # "15m", "2h", "1d" or a cron line; empty: the harvest section's
    reconcile: str = (
        ""  # as above: full ListIdentifiers pass for sources without deletions; "never" to forbid
    )
    metadata: str = "oai_dc"
    index: str = "auto"  # "auto", "none", or an index prefix
    fulltext: str = ""  # "fetch": find, fetch and analyse documents; "auto": if that works for a sample
    token: str = ""  # bearer token to send
    user: str = ""  # for Basic authentication; also taken from http://user:password@host
    password: str = ""
    disk_bytes: int = 0  # what its records may take in the store; 0: the harvest section's
    delay_seconds: float = -1.0  # pause between requests; negative: the harvest section's
    republish: bool = False  # serve its records again, so that others can harvest them here
    mode: str = "fresh"  # "historical": each run asks for everything, in date windows
    window: str = ""  # length of these, such as "90d"; empty: the harvest section's
    paused: bool = False
    access: Access = field(default_factory=Access)  # networks and tokens that may see its records here

    def __post_init__(self) -> None:
        """Credentials never stay in the URL, which is shown and stored."""
        url, user, password = without_credentials(self.url)
        object.__setattr__(self, "url", url)
        object.__setattr__(self, "user", self.user or user)
        object.__setattr__(self, "password", self.password or password)

    def public(self) -> JsonObject:
        """All that may be stored with the records and shown: nothing that opens a door."""
        secrets = ("token", "user", "password", "access")
        plain = {k: v for k, v in asdict(self).items() if k not in secrets}
        return {**plain, "access": self.access.public()} if self.access.is_restricted else plain


@dataclass(frozen=True, slots=True)
class Search:
    """How queries are answered."""

    model: str = "bm25"
    limit: int = 10
    languages: tuple[str, ...] = ()  # by whose rules queries are analysed; empty: those the index holds
    max_clauses: int = 1024
    accents: str = "fold"  # "fold": Müller finds Muller; "exact": accents count
    all_words: str = "first"  # of two or more: "first": records with all come first; "off": by score alone


@dataclass(frozen=True, slots=True)
class Appearance:
    """What the portal is called, how it looks, and what it offers."""

    name: str = ""  # in the head of every page; empty: node.name
    logo: str = ""  # a file (SVG, PNG, JPEG or WebP, 1 MB at most); empty: ours
    colour: str = ""  # of links and buttons, such as "#7a1f3d"; made darker or lighter where it must be read
    about: str = ""  # paragraphs with blank lines between them; they get a page of their own
    models: bool = False  # may people choose retrieval models, and compare them?
    # What types and languages of the metadata are called; an empty name hides a value.
    types: dict[str, str] = field(default_factory=dict)
    languages: dict[str, str] = field(default_factory=dict)
    alerts: bool = False  # may people have new records of a search sent by e-mail? [notify] says how


@dataclass(frozen=True, slots=True)
class Admin:
    """The operations desk. Without a password it stays shut."""

    password_hash: str = ""
    session_hours: float = 12.0
    public: bool = False  # may the desk be reached from other than loopback?
    user_header: str = (
        ""  # field by which a trusted proxy names who is signed in there, such as "Remote-User"
    )
    header_role: str = ""  # the role of those it names that have no [[user]]; empty: they stay out
    metrics_token: str = ""  # who sends it as a bearer token gets all of /metrics, hidden origins too


ROLES: Final = ("reader", "operator", "admin")  # each may do all that the ones before it may


@dataclass(frozen=True, slots=True)
class User:
    """Somebody else who may sit at the operations desk. The password of [admin] is that of "admin"."""

    name: str
    role: str = "reader"  # "reader": looks; "operator": runs harvests and checks; "admin": changes sources
    password_hash: str = ""  # made by  indlet password NAME; empty: comes by admin.user_header alone


@dataclass(frozen=True, slots=True)
class Api:
    """How often the JSON API may be asked."""

    anonymous_per_hour: int = -1  # requests without a key, by address; -1: no limit; 0: a key is needed


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A program that may ask the JSON API more often; it sends its key as X-API-Key."""

    name: str
    key: str
    per_hour: int = 1000  # requests; -1: no limit


@dataclass(frozen=True, slots=True)
class Log:
    """What a serving node writes to its standard error: requests, jobs, acts at the desk."""

    level: str = "warning"  # "debug", "info", "warning" or "error"; requests and acts are told at "info"
    format: str = "text"  # or "json": one object a line


@dataclass(frozen=True, slots=True)
class Notify:
    """Where alerts are sent, each once."""

    webhook: str = ""  # a URL that takes JSON by POST
    email: tuple[str, ...] = ()  # addresses
    email_from: str = ""  # empty: the first of them
    smtp: str = "127.0.0.1:25"  # host:port of the mail server
    smtp_security: str = ""  # "starttls", "tls", or empty for a server on this machine
    smtp_user: str = ""
    smtp_password: str = ""
    every: str = "5m"
    failed_runs: int = 0  # alert after so many failed runs of a source in a row; 1: the first; 0: none


@dataclass(frozen=True, slots=True)
class Counting:
    """What readers do, as numbers alone: searches, record pages, clicks to the owner."""

    count: bool = True
    keep_days: int = 400  # older numbers are deleted


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Records of several sources that may be of one work."""

    every: str = ""  # how often they are looked for, such as "1d"; empty: only when asked
    exchange: bool = False  # decisions, with who made them, go to and come from nodes that are republished


@dataclass(frozen=True, slots=True)
class Sidecar:
    """How the documents of sources with `fulltext` are found and fetched."""

    delay_seconds: float = 1.0  # between two requests to one host, whichever source asks
    hours: str = ""  # when documents are fetched, in UTC, such as "20:00-06:00"; empty: always
    requests_per_day: int = 50_000  # to one source; 0: no limit
    bytes_per_day: int = 20 * 1024 * MB  # of one source; 0: no limit
    at_once: int = 4  # sources that are asked at the same time
    files: int = 10  # of one record, at most
    open_only: bool = True  # skip what its metadata calls restricted or embargoed
    licences: tuple[str, ...] = ()  # read only what names one of these; empty: whatever the licence
    robots: bool = True  # obey robots.txt
    recheck: str = "180d"  # when a document is looked at again though its record has not changed
    cache_bytes: int = 0  # of fetched documents that are kept for a change of the policy; 0: none
    cache_folder: str = ""  # they are kept in document-cache in it; empty: in the data folder


@dataclass(frozen=True, slots=True)
class Settings:
    data: Path = Path("indlet-data")
    node: Node = field(default_factory=Node)
    store: Database = field(default_factory=Database)
    index: IndexEngine = field(default_factory=IndexEngine)
    crawl: Crawl = field(default_factory=Crawl)
    analysis: Analysis = field(default_factory=Analysis)
    serve: Serve = field(default_factory=Serve)
    networks: Networks = field(default_factory=Networks)
    harvest: Harvest = field(default_factory=Harvest)
    search: Search = field(default_factory=Search)
    portal: Appearance = field(default_factory=Appearance)
    admin: Admin = field(default_factory=Admin)
    notify: Notify = field(default_factory=Notify)
    duplicates: Duplicates = field(default_factory=Duplicates)
    statistics: Counting = field(default_factory=Counting)
    sidecar: Sidecar = field(default_factory=Sidecar)
    log: Log = field(default_factory=Log)
    user: tuple[User, ...] = ()
    api: Api = field(default_factory=Api)
    api_key: tuple[ApiKey, ...] = ()
    hierarchy: tuple[Hierarchy, ...] = ()
    library: tuple[LibraryFolder, ...] = ()
    set_: tuple[SetRule, ...] = ()
    write: tuple[Write, ...] = ()
    repository: tuple[VirtualRepository, ...] = ()
    site: tuple[Site, ...] = ()
    source: tuple[Source, ...] = ()

    def base_url(self) -> str:
        """The node's public root, without a trailing slash."""
        return (self.node.base_url or f"http://{_authority(self.node.host, self.node.port)}").rstrip("/")

    def mount(self) -> str:
        """The path of the public root, such as "/search"; empty for a node that has its host to itself."""
        return urlsplit(self.base_url()).path

    def crawls(self) -> bool:
        """Whether the node has collections of its own."""
        return bool(self.hierarchy or self.site or self.library)

    def provides(self) -> bool:
        """Whether the node is a repository, with OAI-PMH endpoints and a page about them."""
        return self.crawls() or any(source.republish for source in self.source)

    def has_desk(self) -> bool:
        """Whether anybody may enter the operations desk."""
        hashes = (self.admin.password_hash, *(user.password_hash for user in self.user))
        return any(hashes) or bool(self.admin.user_header)

    def on_loopback(self) -> bool:
        """Whether the node is there for its own machine alone: where it listens, and by its public root."""
        return is_loopback(self.node.host) and is_loopback(urlsplit(self.base_url()).hostname or "")

    def allowed_origins(self) -> tuple[str, ...]:
        """The origins whose pages may read the API; ("*",) for all."""
        return self.serve.allow_origins or (() if self.on_loopback() else ("*",))


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.endswith(".localhost")


def _authority(host: str, port: int) -> str:
    shown = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"[{shown}]:{port}" if ":" in shown else f"{shown}:{port}"


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds(interval: str) -> float | None:
    """An interval such as "90s", "15m", "2h", "1d" in seconds; None for anything else (a cron line)."""
    number, unit = interval[:-1].strip(), interval[-1:]
    try:
        return float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        return None

"""Four laboratories that keep each other's records, each in its own format: what changes travels round.

The nodes are processes that answer over HTTP; a round (local read, remote harvest, local write) is what
`indlet sync` does, done here for one laboratory after the other.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from indlet.demo.stage import Children, typed_command
from indlet.demo.tour import grid
from indlet.errors import IndletError
from indlet.exchange.translate import format_named, on_top
from indlet.exchange.write_out import write_out
from indlet.formats import CommonRecord
from indlet.provider.pipeline import crawl
from indlet.provider.workers import Workers
from indlet.service.pipeline import harvest_all
from indlet.settings import Settings
from indlet.settings.file import load
from indlet.store import Store, open_configured
from indlet.text import policy_of

# Name, format, and what its catalogue holds at the beginning.
LABORATORIES: Final = (
    ("larc", "marc21", ("Flutter of swept wings", "Ice on leading edges", "A wall that heats the flow")),
    (
        "lanl",
        "mods",
        ("Shock waves in a granular bed", "Transport of neutrons", "A mesh that follows the flow"),
    ),
    (
        "afrl",
        "cosati",
        ("Fatigue of bonded joints", "Plumes at high altitude", "Coatings for turbine blades"),
    ),
    ("sandia", "rfc1807", ("Arcs in old wiring", "Salt as a store of heat", "Wear of small gears")),
)
_ROUNDS: Final = 6  # after which a change has arrived, or never will
_SETTINGS: Final = """data = "{name}/data"

[node]
name = "{name}"
repository = "{name}.example"
port = {port}

[crawl]
workers = 1
settle_seconds = 0

[harvest]
retries = 0
timeout_seconds = 5
backoff_seconds = 0.05

[[library]]
name = "{name}"
read = "{name}/export"
format = "{format}"
"""
_OTHERS: Final = """
[[source]]
name = "{name}"
url = "{url}"
republish = true
"""
_WRITE: Final = """
[[write]]
folder = "{name}/import"
format = "{format}"
path = "{{source}}/{{name}}"
deletions = "remove"
"""


@dataclass
class Laboratory:
    """A catalogue with its export and import folders, and the node between them and the others."""

    name: str
    format: str
    home: Path
    port: int = 0
    url: str = ""
    server: subprocess.Popen[bytes] | None = None
    settings: Settings = field(default_factory=Settings)
    store: Store | None = None

    @property
    def imported(self) -> Path:
        return self.home / self.name / "import"

    def lay_out(self) -> None:
        for folder in ("export", "import"):
            (self.home / self.name / folder).mkdir(parents=True, exist_ok=True)
        self.configure(())

    def configure(self, others: Sequence[Laboratory]) -> None:
        """Two settings files: the whole one, and what the node needs to answer others."""
        serving = _SETTINGS.format(name=self.name, format=self.format, port=self.port)
        (self.home / f"{self.name}-serve.toml").write_text(serving, "utf-8")
        whole = serving + "".join(_OTHERS.format(name=o.name, url=o.url) for o in others)
        path = self.home / f"{self.name}.toml"
        path.write_text(whole + _WRITE.format(name=self.name, format=self.format), "utf-8")
        self.settings = load(path)

    def export(self, number: int, title: str) -> None:
        """What a catalogue does when somebody has described a report: a file in its own format."""
        form = format_named(self.format)
        metadata = {
            "title": [title], "creator": ["Wells, Ada"], "date": ["2024"], "type": ["Text"],
            "identifier": [f"{self.name.upper()}-TR-{number:04}"], "language": ["en"],
            "publisher": [self.name], "description": [f"A report on: {title.lower()}."],
        }  # fmt: skip
        record = CommonRecord.of(metadata, f"{self.name}-{number}", "2024-05-01")
        head, tail = form.around
        data = head + form.pack(on_top("", form.crosswalk(()), form).write(record)) + tail
        self._file(number).write_bytes(data)

    def remove(self, number: int) -> None:
        self._file(number).unlink()

    def _file(self, number: int) -> Path:
        suffix = format_named(self.format).suffix
        return self.home / self.name / "export" / f"{self.name}-{number}{suffix}"

    def serve(self, children: Children) -> None:
        config = self.home / f"{self.name}-serve.toml"
        with (self.home / f"{self.name}.log").open("ab") as log:
            self.server = children.start(
                "indlet", "serve", "--config", str(config), "--no-crawl", "--no-portal",
                stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip

    def await_serving(self) -> None:
        assert self.server is not None
        assert self.server.stdout is not None
        line = self.server.stdout.readline().decode()
        found = re.search(r"http://[^\s/]+:(\d+)", line)
        if not found:
            said = (self.home / f"{self.name}.log").read_text("utf-8", "replace").strip()
            raise IndletError(f"the node of {self.name} did not start: {said or line or 'no reason given'}")
        self.url, self.port = found[0], int(found[1])

    def crash(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.wait()

    def round(self, workers: Workers) -> tuple[int, int, list[str]]:
        """Local read, remote harvest, local write: requests and bytes, and whom it could not reach."""
        assert self.store is not None
        crawl(self.store, self.settings, workers=workers)
        done = harvest_all(self.store, self.settings, index=False)
        for task in write_out(self.store, self.settings):
            if task.reason:
                raise IndletError(f"{self.name}: {task.reason}")
        silent = [progress.source for progress in done if progress.outcome != "complete"]
        return sum(p.requests for p in done), sum(p.bytes for p in done), silent

    def has(self, text: str) -> bool:
        """Whether the files that this catalogue imports hold a text."""
        wanted = text.encode()
        return any(wanted in path.read_bytes() for path in self.imported.rglob("*") if path.is_file())

    def holds(self) -> int:
        """Live records, its own and those of the others."""
        assert self.store is not None
        with self.store.read() as view:
            return sum(live for live, _ in view.totals().values())


class MeshTour:
    """The steps, each with the time that it took to reach everybody."""

    def __init__(self, console: Console, home: Path, children: Children) -> None:
        self._console, self._children = console, children
        self.laboratories = [Laboratory(name, form, home) for name, form, _ in LABORATORIES]
        self._step = 0

    def run(self) -> None:
        with ExitStack() as stack:
            self._begin()
            for laboratory in self.laboratories:
                laboratory.store = stack.enter_context(open_configured(laboratory.settings))
            crawling = self.laboratories[0].settings
            workers = stack.enter_context(Workers(1, crawling.crawl.limits, policy_of(crawling.analysis)))
            larc, lanl, afrl, sandia = self.laboratories
            self._head(
                "Share", "every laboratory reads its export, harvests the others, writes for its import"
            )
            self._travel(workers, lambda lab: lab.holds() == 12 and len(_files(lab.imported)) == 9)
            self._head("Add", "LaRC describes a report in MARC 21; the others get it in their formats")
            larc.export(4, "A tunnel for quiet flow")
            self._travel(workers, lambda lab: lab is larc or lab.has("A tunnel for quiet flow"), larc)
            self._head("Update", "LANL corrects a title in MODS")
            lanl.export(1, "Shock waves in a bed of sand")
            self._travel(workers, lambda lab: lab is lanl or lab.has("Shock waves in a bed of sand"), lanl)
            self._head("Delete", "AFRL drops a report; the files that were written from it go")
            afrl.remove(2)
            self._travel(workers, lambda lab: lab is afrl or not lab.has("Plumes at high altitude"), afrl)
            self._head("Crash", "LaRC's node is killed; Sandia's addition reaches everybody but LaRC")
            larc.crash()
            sandia.export(4, "A relay that does not stick")
            arrived: Callable[[Laboratory], bool] = lambda lab: (  # noqa: E731
                lab in (sandia, larc) or lab.has("A relay that does not stick")
            )
            self._travel(workers, arrived, sandia, without=(larc,))
            self._say(f"Sandia still has {sandia.holds()} records, those of LaRC among them.")
            self._head("Return", "LaRC's node starts again, and its next round brings what it missed")
            larc.serve(self._children)
            larc.await_serving()
            self._travel(workers, lambda lab: lab is sandia or lab.has("A relay that does not stick"), sandia)
            self._agree()

    def _begin(self) -> None:
        for laboratory, (_, _, titles) in zip(self.laboratories, LABORATORIES, strict=True):
            laboratory.lay_out()
            for number, title in enumerate(titles, 1):
                laboratory.export(number, title)
            laboratory.serve(self._children)
        for laboratory in self.laboratories:
            laboratory.await_serving()
        for laboratory in self.laboratories:
            laboratory.configure([other for other in self.laboratories if other is not laboratory])
        table = grid("laboratory", "native format", ">records", "answers at")
        for laboratory, (_, _, titles) in zip(self.laboratories, LABORATORIES, strict=True):
            table.add_row(laboratory.name, laboratory.format, f"{len(titles)}", f"{laboratory.url}/oai")
        self._console.print(table)
        self._console.print()
        self._say("Each catalogue has two folders, and a node beside it. In a round a node reads the export")
        self._say("folder, harvests the three others over HTTP, and writes what is new to the import folder,")
        self._say("in the format of its own catalogue. The four take turns.")

    def _travel(
        self,
        workers: Workers,
        arrived: Callable[[Laboratory], bool],
        origin: Laboratory | None = None,
        without: tuple[Laboratory, ...] = (),
    ) -> None:
        """Rounds, until it has arrived everywhere; when it did at each laboratory but the one it is from."""
        begun = time.monotonic()
        moved = {lab.name: [0, 0, 0] for lab in self.laboratories}
        seen = dict[str, float]()
        for _ in range(_ROUNDS):
            for lab in self.laboratories:
                if lab not in without:
                    requests, size, _ = lab.round(workers)
                    moved[lab.name] = [
                        a + b for a, b in zip(moved[lab.name], (1, requests, size), strict=True)
                    ]
                if lab.name not in seen and arrived(lab):
                    seen[lab.name] = time.monotonic() - begun
            if len(seen) == len(self.laboratories):
                break
        else:
            late = [lab.name for lab in self.laboratories if lab.name not in seen]
            raise IndletError(f"after {_ROUNDS} rounds it has not arrived at {', '.join(late)}")
        table = grid("laboratory", ">arrived after", ">rounds", ">requests", ">bytes moved")
        for lab in self.laboratories:
            rounds, requests, size = moved[lab.name]
            when = "down" if lab in without else "its own" if lab is origin else f"{seen[lab.name]:.1f} s"
            table.add_row(lab.name, when, f"{rounds}", f"{requests}", f"{size:,}")
        self._console.print(table)

    def _agree(self) -> None:
        counts = {lab.holds() for lab in self.laboratories}
        if len(counts) != 1:
            raise IndletError(f"the laboratories do not agree: {sorted(counts)} records")
        self._console.print()
        self._say(f"All four hold the same {counts.pop()} records, each in its own format.")
        for lab in self.laboratories:
            path = min(_files(lab.imported))
            self._say(f"{lab.format:<8} {path.relative_to(lab.home)}")
        self._say("To keep these folders, and the settings files next to them:")
        self._say(f"{typed_command()} demo --mesh --data DIR")

    def _head(self, verb: str, text: str) -> None:
        self._step += 1
        self._console.print()
        head = Text.assemble((f" {self._step}  ", "bold cyan"), (f"{verb:<8}", "bold"), text)
        self._console.print(head, soft_wrap=True)

    def _say(self, text: str) -> None:
        self._console.print(Text(f"    {text}"), soft_wrap=True)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@contextmanager
def mesh_tour(console: Console, home: Path) -> Iterator[MeshTour]:
    """The tour, in a folder that is its own; its nodes end with it."""
    with Children() as children:
        yield MeshTour(console, home, children)

"""The law of equality as a long experiment: real processes, real files, kills. What differs is counted.

    python -m bench.equality [--providers 3] [--rounds 20] [--files 300] [--seed 1] [--json FILE]

Each provider is an `indlet serve` process over a folder of generated documents. A round changes the folders
at random (new files, edits, deletions, better and worse formats), crawls, switches index formats, and
harvests. On the way crawls, harvests and servers are killed (SIGKILL) at random moments and started again.
After each round the same folders are crawled into one central store, and the two indexes are compared: number
of records, every term's df and cf, every length, and every model's scores for random queries, bit by bit.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench.comparison import compare, total
from bench.generated import words
from bench.processes import free_port, indlet

from indlet.service.search.library import Library

FORMATS = ("auto", "tf_basic", "tf_compact")
KINDS = ("txt", "html", "md")
# The second provider is milder than the service: what it keeps is brought to the service's policy, exactly.
ANALYSES = ("", "[analysis]\nstem = false\nstop = false\n", "")


class Provider:
    """A folder of documents and the process that serves it."""

    def __init__(self, folder: Path, number: int) -> None:
        self.files = folder / f"files{number}"
        self.files.mkdir(parents=True)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.config = folder / f"provider{number}.toml"
        self.config.write_text(
            f'data = "data{number}"\n[node]\nport = {port}\nrepository = "p{number}.example.org"\n'
            f"[crawl]\nsettle_seconds = 0.0\nworkers = 1\n{ANALYSES[number % len(ANALYSES)]}"
            f'[[hierarchy]]\nroot = "files{number}"\nname = "h{number}"\n'
        )
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            indlet("serve", "--config", self.config), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/healthz", timeout=5).close()
                return
            except OSError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise
                time.sleep(0.1)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Experiment:
    def __init__(self, folder: Path, providers: int, files: int, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        vocabulary = words(4000)
        self.words = [*vocabulary[:400] * 5, *vocabulary, "the", "of", "and", "flows", "flowing", "heated"]
        self.providers = [Provider(folder, number) for number in range(providers)]
        self.kills = 0
        for provider in self.providers:
            for number in range(files):
                self.write(provider, f"d{number}")

    def write(self, provider: Provider, name: str) -> None:
        text = " ".join(self.random.choices(self.words, k=self.random.randint(5, 200)))
        kind = self.random.choice(KINDS)
        body = f"<html><title>{name}</title><body><p>{text}</p></body></html>" if kind == "html" else text
        place = provider.files / self.random.choice(("", "sub", "sub/deep"))
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{name}.{kind}").write_text(body)

    def change(self, provider: Provider, files: int) -> None:
        for _ in range(max(files // 10, 3)):
            known = sorted(path for path in provider.files.rglob("*.*") if path.is_file())
            match self.random.choice(("add", "edit", "edit", "delete", "format")):
                case "delete" if len(known) > 5:
                    self.random.choice(known).unlink()
                case "edit" if known:
                    path = self.random.choice(known)
                    path.write_text(path.read_text() + " " + self.random.choice(self.words))
                case "format" if known:
                    path = self.random.choice(known)
                    path.with_suffix(f".{self.random.choice(KINDS)}").write_text(
                        path.read_text() + " switched"
                    )
                case _:
                    self.write(provider, f"n{self.random.randrange(10**6)}")

    def run(self, command: list[str], kill: bool) -> None:
        """Runs a command to its end; with `kill` it dies first, somewhere on its way, and is run again."""
        if kill:
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                try:
                    process.wait(self.random.uniform(0.3, 2.5))
                except subprocess.TimeoutExpired:
                    process.kill()
                    self.kills += 1
        until = time.monotonic() + 60
        while True:
            done = subprocess.run(command, capture_output=True, text=True)
            # A node that has just been started crawls for itself.
            if "is busy with" not in done.stderr or time.monotonic() > until:
                break
            time.sleep(0.2)
        if done.returncode:
            print(f"{' '.join(command)}\n{done.stdout}{done.stderr}", file=sys.stderr)
            sys.exit(2)  # 1 tells of differences

    def round(self, files: int, first: bool) -> dict[str, Any]:
        for provider in self.providers:
            if not first:
                self.change(provider, files)
            self.run(indlet("crawl", "--config", provider.config), self.random.random() < 0.4)
            if self.random.random() < 0.3:
                provider.kill()
                self.kills += 1
                provider.start()
        for number, provider in enumerate(self.providers):
            path, prefix = (
                ("/oai", "auto") if self.random.random() < 0.2 else ("", self.random.choice(FORMATS))
            )
            options = (
                "--data",
                self.folder / "service",
                "--name",
                f"p{number}",
                "--index",
                prefix,
                "--quiet",
            )
            self.run(indlet("harvest", provider.url + path, *options), self.random.random() < 0.4)
        return self.compare()

    def compare(self) -> dict[str, Any]:
        """How many things differ between the harvested index and one of the union of the content."""
        central = self.folder / "central"
        shutil.rmtree(central, ignore_errors=True)
        config = self.folder / "central.toml"
        hierarchies = "".join(
            f'[[hierarchy]]\nroot = "files{number}"\nname = "h{number}"\n'
            for number in range(len(self.providers))
        )
        config.write_text(f'data = "central"\n[crawl]\nsettle_seconds = 0.0\n{hierarchies}')
        self.run(indlet("crawl", "--config", config), False)
        with Library.open(self.folder / "service") as here, Library.open(central) as there:
            differing, size = compare(here, there, self.queries, key=_key)
        # Records of one score stand in the order of their identifiers' hashes, which name the repository.
        del differing["rankings"]
        return {**size, "kills": self.kills, "differing": differing}

    def queries(self, terms: list[str]) -> list[list[str]]:
        return [self.random.sample(terms, self.random.randint(1, 6)) for _ in range(20)]


def _key(identifier: str) -> str:
    """Hierarchy and path: what an identifier has without the name of its repository."""
    return identifier.split(":", 2)[2]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--providers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    report, wrong = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        experiment = Experiment(Path(scratch), options.providers, options.files, options.seed)
        try:
            for provider in experiment.providers:
                provider.start()
            for number in range(options.rounds):
                found = experiment.round(options.files, number == 0)
                report.append(found)
                wrong += total(found["differing"])
                print(
                    f"round {number + 1:>3}: {found['documents']:,} records, {found['terms']:,} terms, "
                    f"{found['tokens']:,} tokens, {found['kills']} kills; differing: {found['differing']}",
                    flush=True,
                )
        finally:
            for provider in experiment.providers:
                provider.kill()
    print("no difference" if not wrong else f"{wrong} differences")
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

"""A running node, asked by schemathesis whatever its own OpenAPI document allows, and what it does not."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.fuzz import seeds
from bench.fuzz.results import Fuzzed
from bench.processes import Server, free_port

from indlet.service.index import follow
from indlet.store import Store
from indlet.text import Analyzer

# What must hold: no 5xx, and what is answered is what the document says. Requests that it does not allow may
# be answered all the same: unknown arguments are ignored, as everywhere on the web. Media types are not
# compared: a line of a request that is too long is refused by the HTTP server below, in plain text.
CHECKS = "not_a_server_error,status_code_conformance,response_schema_conformance,response_headers_conformance"


def fuzzed(seconds: float, folder: Path) -> Fuzzed:
    if importlib.util.find_spec("schemathesis") is None:
        return Fuzzed("api", "schemathesis", 0, ["schemathesis is not installed: make fuzz installs it"])
    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        with Store.open(data) as store:
            with store.write() as tx:
                tx.put(tx.origin("hierarchy", "files"), seeds.records(Analyzer()))
            follow.catch_up(store)
        root = f"http://127.0.0.1:{(port := free_port())}"
        config = Path(name) / "indlet.toml"
        config.write_text(f'data = "{data}"\n[node]\nport = {port}\n')
        command = [sys.executable, "-P", "-m", "indlet", "serve", "--config", config]
        with Server(command, f"{root}/healthz"):
            options = ["--checks", CHECKS, "--max-time", str(max(int(seconds), 1)), "--no-color"]
            options += ["--phases", "examples,coverage,fuzzing", "--max-response-time", "10"]
            options += ["--continue-on-failure", "--suppress-health-check", "all"]
            asked = [sys.executable, "-m", "schemathesis.cli", "run", f"{root}/api/openapi.json", *options]
            child = subprocess.run(asked, capture_output=True, check=False, cwd=name)
    told = child.stdout.decode("utf-8", "replace")
    (folder / "api.log").write_text(told + child.stderr.decode("utf-8", "replace"))
    counts = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:generated|cases|passed)", told)]
    failures = re.findall(r"❌ (.*: \d+)", told)
    if child.returncode and not failures:
        failures = [f"see {folder / 'api.log'}"]
    return Fuzzed("api", "schemathesis", max(counts, default=0), [line.strip() for line in failures[:20]])

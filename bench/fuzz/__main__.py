"""Fuzzing, for as long as is asked: make fuzz, or  python -m bench.fuzz [TARGET …] [--seconds 60].

By atheris (coverage-guided) where it is installed, otherwise by mutations of our own. Each target runs in a
process of its own with limits of memory and of time for one input. What is found is kept in `--findings`, and
`python -m bench.fuzz TARGET --input FILE` runs one input again. `api` asks a running node, by schemathesis.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from bench.fuzz.results import Fuzzed

SLOW_SECONDS = 10
MEMORY_MB = 4096
MOST_FINDINGS = 5


def by_mutation(name: str, seconds: float, folder: Path, seed: int) -> None:
    """In a child: mutate until the time is over or something is found."""
    from bench.fuzz.mutate import mutated
    from bench.fuzz.targets import TARGETS

    target = TARGETS[name]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MB << 20, MEMORY_MB << 20))
    chance, inputs = random.Random(seed), target.seeds()
    for data in inputs:
        target.run(data)  # fills memos
    pool, count, end = list(inputs), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutated(chance.choice(pool), inputs, target.words, chance)
        count += 1
        begun = time.process_time()
        try:
            target.run(data)
            assert time.process_time() - begun < SLOW_SECONDS, "one input took too long"
        except BaseException:
            (folder / f"crash-{name}-{seed}").write_bytes(data)
            traceback.print_exc()
            break
        if len(pool) < 2000 and chance.random() < 0.02:
            pool.append(data)  # changes upon changes
    print(f"#{count} DONE", file=sys.stderr)


def by_atheris(name: str, seconds: float, folder: Path, seed: int) -> None:
    """In a child: libFuzzer, which ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["indlet", "pymarc"]):
        from bench.fuzz.targets import TARGETS
    target = TARGETS[name]
    corpus = folder / f"corpus-{name}"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(data)
        target.run(data)  # fills memos
    words = folder / f"words-{name}"
    words.write_text("".join('"' + "".join(f"\\x{b:02x}" for b in word) + '"\n' for word in target.words))
    options: dict[str, object] = {
        "max_total_time": max(int(seconds), 1), "timeout": SLOW_SECONDS, "seed": seed,
        "rss_limit_mb": MEMORY_MB, "artifact_prefix": f"{folder}/{name}-", "max_len": 65536,
        "print_final_stats": 1,
    }  # fmt: skip
    if target.words:
        options["dict"] = words
    atheris.Setup(["fuzz", *(f"-{key}={value}" for key, value in options.items()), str(corpus)], target.run)
    atheris.Fuzz()


def fuzzed(name: str, seconds: float, folder: Path, engine: str) -> Fuzzed:
    """What a target comes to: its children run until the time is over, each to its first finding."""
    begun, inputs, found, seed = time.monotonic(), 0, list[str](), 1
    while (left := seconds - (time.monotonic() - begun)) > 1 and len(found) < MOST_FINDINGS:
        command = [sys.executable, "-m", "bench.fuzz", name, "--child", engine, "--seconds", str(left)]
        command += ["--findings", str(folder), "--seed", str(seed)]
        before = set(folder.glob("*"))
        child = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, check=False)
        told = child.stderr.decode("utf-8", "replace")
        counts = re.findall(r"^#(\d+)", told, re.MULTILINE) + re.findall(r"executed_units:\s*(\d+)", told)
        inputs += max(map(int, counts), default=0)
        kept = [p for p in set(folder.glob("*")) - before if p.is_file() and not p.name.startswith("words-")]
        if kept or child.returncode:
            errors = re.findall(r"^(?:\w+\.)*\w+(?:Error|Exception|Warning|ERROR)\b.*", told, re.MULTILINE)
            where = kept[0] if kept else folder / f"{name}.log"
            (folder / f"{name}-{seed}.log").write_text(told[-20_000:])
            found.append(f"{where}: {(errors or told.splitlines()[-1:] or ['?'])[-1][:200]}")
        seed += 1
    return Fuzzed(name, engine, inputs, found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", nargs="*")
    parser.add_argument("--seconds", type=float, default=60, help="for each target")
    parser.add_argument("--findings", type=Path)
    parser.add_argument("--input", type=Path, help="run this one input")
    parser.add_argument("--engine", choices=("atheris", "mutation"))
    parser.add_argument("--child", choices=("atheris", "mutation"), help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.input:
        from bench.fuzz.targets import TARGETS

        TARGETS[given.target[0]].run(given.input.read_bytes())
        return
    folder: Path = given.findings or Path(tempfile.mkdtemp(prefix="indlet-fuzz-findings-"))
    folder.mkdir(parents=True, exist_ok=True)
    if given.child:
        run = by_atheris if given.child == "atheris" else by_mutation
        run(given.target[0], given.seconds, folder, given.seed)
        return
    sys.exit(1 if _all(given.target, given.seconds, folder, given.engine) else 0)


def _all(targets: list[str], seconds: float, folder: Path, engine: str | None) -> int:
    from bench.fuzz import api
    from bench.fuzz.targets import TARGETS

    engine = engine or ("atheris" if importlib.util.find_spec("atheris") else "mutation")
    findings = 0
    for name in targets or [*TARGETS, "api"]:
        done = api.fuzzed(seconds, folder) if name == "api" else fuzzed(name, seconds, folder, engine)
        told = f"{done.target:<12} {done.engine:<12} {done.inputs:>10,} inputs  {len(done.findings)} findings"
        print(told, flush=True)
        for finding in done.findings:
            print(f"    {finding}", flush=True)
        findings += len(done.findings)
    return findings


if __name__ == "__main__":
    main()

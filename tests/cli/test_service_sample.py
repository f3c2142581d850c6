"""The Python sample of the documentation, run as it stands against a real provider."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[str]:
    """The address of an `indlet provide` that has crawled two files."""
    files = tmp_path / "reports"
    files.mkdir()
    (files / "plates.html").write_text(
        "<html><title>Flat plates</title><body>The boundary layer on a flat plate is thin.</body></html>"
    )
    (files / "wings.html").write_text(
        "<html><title>Wings</title><body>A heated wing may flutter in the tunnel.</body></html>"
    )
    command = [sys.executable, "-m", "indlet", "provide", str(files), "--port", "0", "--every", ""]
    with subprocess.Popen(
        [*command, "--data", str(tmp_path / "provider")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said, address = "", ""
        try:
            for line in process.stdout:
                said += line
                if found := re.search(r"http://[\d.]+:\d+", line):
                    address = address or found.group()
                if line.startswith("reports:"):
                    break
            else:
                pytest.fail(said)
            yield address
        finally:
            process.send_signal(signal.SIGTERM)
            process.stdout.read()


@pytest.mark.parametrize("page", ["README.md", "docs/query.md"])
def test_the_python_sample_works(page: str, provider: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text("utf-8")
    sample = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert sample is not None
    code = sample.group(1)
    assert "http://127.0.0.1:8080" in code
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code.replace("http://127.0.0.1:8080", provider)],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    score, title = line.split(" ", 1)
    assert float(score)
    assert title == "Flat plates"


def test_a_provider_imports_nothing_of_the_service() -> None:
    code = (
        "import sys, indlet, indlet.provider.serve, indlet.provider.pipeline; "
        "heavy = {'numpy', 'numba', 'httpx', 'jinja2', 'cronsim'} & set(sys.modules); "
        "assert not heavy, heavy; assert indlet.Store and indlet.Policy and not hasattr(indlet, 'nothing')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

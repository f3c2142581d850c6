"""What is compressed is unpacked within bounds of memory and work."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped,unused-ignore]
import pytest
import tests.hostile.misbehaving as m
import zstandard

from indlet.net import decompress
from indlet.net.decompress import Damaged, TooLarge, plain

PACK: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", lambda b: zlib.compress(b)[2:-4]),
    "zstd": ("zstd", lambda b: zstandard.ZstdCompressor().compress(b)),
    "zstd of unknown length": (
        "zstd", lambda b: zstandard.ZstdCompressor(write_content_size=False).compress(b)
    ),
    "brotli": ("br", brotli.compress),
}  # fmt: skip
TEXT = b"<OAI-PMH>" + bytes(range(256)) * 20_000 + b"</OAI-PMH>"


@pytest.mark.parametrize("name", PACK)
def test_what_is_packed_comes_out(name: str) -> None:
    coding, pack = PACK[name]
    for text in (TEXT, b"<a/>"):
        assert plain(pack(text), coding, 1 << 24) == (text, {})
    with pytest.raises(TooLarge):
        plain(pack(TEXT), coding, len(TEXT) - 1)
    with pytest.raises(Damaged):
        plain(pack(TEXT)[:-9], coding, 1 << 24)


def test_several_members_and_frames_are_one_body() -> None:
    frame = zstandard.ZstdCompressor().compress
    assert plain(frame(b"<a>") + frame(b"</a>"), "zstd", 1000)[0] == b"<a></a>"
    assert plain(gzip.compress(b"<a>") + gzip.compress(b"</a>"), "gzip", 1000)[0] == b"<a></a>"


def test_endless_members_and_layers_are_refused() -> None:
    for coding, nothing in (("gzip", gzip.compress(b"")), ("zstd", PACK["zstd of unknown length"][1](b""))):
        with pytest.raises(Damaged, match="more than"):
            plain(nothing * (decompress.MEMBERS + 1), coding, 1 << 24)
    with pytest.raises(Damaged, match="100 times over"):
        plain(b"<a/>", ", ".join(["gzip"] * 100), 1 << 24)


def test_a_frame_that_states_too_small_a_size_is_not_believed() -> None:
    honest = zstandard.ZstdCompressor().compress(b"\0" * 50_000_000)
    size = (50_000_000).to_bytes(4, "little")
    assert honest.count(size) == 1
    with pytest.raises((Damaged, TooLarge)):
        plain(honest.replace(size, (1000).to_bytes(4, "little")), "zstd", 1 << 20)


def test_the_limit_holds_for_all_layers_together() -> None:
    inner = gzip.compress(bytes(range(256)) * 4096)  # 1 MiB
    assert len(plain(gzip.compress(inner), "gzip", 2 << 20)[0]) == 1 << 20
    with pytest.raises(TooLarge):
        plain(gzip.compress(inner), "gzip", 1 << 20)


CHILD = """
import gc, json, sys
from indlet.net.client import Client, NoAnswer
from indlet.service.harvest.fetch_page import PageFetcher
from indlet.service.harvest.run_state import Rules
from indlet.settings import Harvest
gc.disable()  # as a harvest does
limit = 32 << 20
fetcher = PageFetcher(Client(Harvest(response_bytes=limit)), Rules())
def memory(name):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))
def ask(name, number):
    try:
        fetcher.page(sys.argv[1], {"verb": "ListRecords", "metadataPrefix": name, "set": str(number)})
    except NoAnswer as e:
        return e
told, kept = {}, [ask("no bomb", 0)]
before = memory("VmRSS")
for name in sys.argv[2:]:
    open("/proc/self/clear_refs", "w").write("5")  # forget the peak
    kept += [ask(name, number) for number in range(24)]
    told[name] = [(memory("VmHWM") - before) / limit, kept[-1].failed.trouble]
print(json.dumps(told))
"""


def _zeros(size: int) -> bytes:
    return gzip.compress(b"\0" * size, 9)


BOMBS: dict[str, tuple[bytes, str]] = {
    "gzip in gzip": (gzip.compress(_zeros(100 << 20), 9), "gzip"),
    "zstd": (zstandard.ZstdCompressor(write_content_size=False).compress(b"\0" * (100 << 20)), "zstd"),
    "brotli": (brotli.compress(b"\0" * (100 << 20), quality=1), "br"),
    "no XML": (_zeros(20 << 20), "gzip"),
}


def test_refused_answers_cost_the_memory_of_one_limit() -> None:
    """24 answers of each kind, in a process whose peak is measured."""

    def bomb(request: m.Request, reply: m.Reply) -> m.Reply:
        body, coding = BOMBS.get(request.arguments.get("metadataPrefix", ""), (b"no", ""))
        return m.Reply(body, 200, {"Content-Encoding": coding, "Content-Type": "text/xml"})

    with m.Provider(None, bomb) as provider:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, provider.url, *BOMBS], capture_output=True, timeout=300, check=True
        )
    told = json.loads(done.stdout)
    assert {name: trouble for name, (_, trouble) in told.items()} == {
        "gzip in gzip": "large", "zstd": "large", "brotli": "large", "no XML": "broken",
    }  # fmt: skip
    for name in ("gzip in gzip", "zstd", "brotli"):
        assert told[name][0] < 1.5, told  # with the windows of three decoders
    # What is taken is there several times while a reader looks at it, and the kernels are loaded by then; the
    # 24 bodies together would be 15 times the limit.
    assert told["no XML"][0] < 6, told

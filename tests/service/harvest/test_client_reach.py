"""How far a source may lead: a public one not into private networks."""

from __future__ import annotations

import httpx
import pytest

from indlet.service.harvest.client import Client, NoAnswer
from indlet.settings import Harvest


class Peer:
    """The part of a network stream that tells whom we speak to."""

    def __init__(self, address: str) -> None:
        self._address = address

    def get_extra_info(self, _: str) -> tuple[str, int]:
        return self._address, 80


def answer(request: httpx.Request) -> httpx.Response:
    headers = {"Location": "http://10.0.0.1/"} if request.url.path == "/away" else {}
    return httpx.Response(
        302 if headers else 200,
        headers=headers,
        stream=httpx.ByteStream(b"x"),
        extensions={"network_stream": Peer(request.url.host)},
    )


@pytest.mark.parametrize(
    "target", ["http://10.0.0.1/", "http://127.0.0.1:9/", "http://169.254.169.254/", "http://[::1]/"]
)
def test_a_public_source_does_not_lead_into_private_networks(target: str) -> None:
    client = Client(Harvest(), transport=httpx.MockTransport(answer))
    assert client.get("http://8.8.8.8/oai", 100).body == b"x"
    for url in (target, "http://8.8.8.8/away"):
        with pytest.raises(NoAnswer, match="private network") as refused:
            client.get(url, 100)
        assert refused.value.failed.trouble == "refused"
    assert client.get("http://9.9.9.9/document", 100).body == b"x"


def test_a_private_source_may_unless_that_is_forbidden() -> None:
    client = Client(Harvest(), transport=httpx.MockTransport(answer))
    assert client.get("http://10.0.0.2/oai", 100).body == b"x"
    assert client.get("http://10.0.0.2/away", 100).body == b"x"
    strict = Client(Harvest(allow_private=False), transport=httpx.MockTransport(answer))
    with pytest.raises(NoAnswer, match="allow_private"):
        strict.get("http://10.0.0.2/oai", 100)

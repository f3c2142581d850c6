"""How far a source may lead: a public one not into private networks."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path

import pytest
import tests.hostile.misbehaving as m

from indlet.net.client import Client, NoAnswer
from indlet.net.connection import GetRequest, NotConnected, Reply
from indlet.net.reach import KnownPublic, is_public
from indlet.node.probe import probe_in_child
from indlet.service.harvest.public_hosts import known_public, public_hosts
from indlet.settings import Harvest, Source
from indlet.site.mirror.fetch import Fetcher, NotFetched
from indlet.store import Store
from indlet.text import Policy


def answer(request: GetRequest) -> Reply:
    fields = (("Location", "http://10.0.0.1/"),) if request.target == "/away" else ()
    return Reply(302 if fields else 200, fields, iter([b"x"]))


@pytest.mark.parametrize(
    "target", ["http://10.0.0.1/", "http://127.0.0.1:9/", "http://169.254.169.254/", "http://[::1]/"]
)
def test_a_public_source_does_not_lead_into_private_networks(target: str) -> None:
    client = Client(Harvest(), transport=answer)
    assert client.get("http://8.8.8.8/oai", 100).body == b"x"
    for url in (target, "http://8.8.8.8/away"):
        with pytest.raises(NoAnswer, match="private network") as refused:
            client.get(url, 100)
        assert refused.value.failed.trouble == "refused"
    assert client.get("http://9.9.9.9/document", 100).body == b"x"


def test_a_private_source_may_unless_that_is_forbidden() -> None:
    client = Client(Harvest(), transport=answer)
    assert client.get("http://10.0.0.2/oai", 100).body == b"x"
    assert client.get("http://10.0.0.2/away", 100).body == b"x"
    strict = Client(Harvest(allow_private=False), transport=answer)
    with pytest.raises(NoAnswer, match="allow_private"):
        strict.get("http://10.0.0.2/oai", 100)


class Names:
    """A resolver that answers a name differently each time, and counts how often it is asked."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(found) for name, found in answers.items()}
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        found = self._answers.get(host) or [[host]]
        return found.pop(0) if len(found) > 1 else found[0]


def test_what_was_checked_is_what_is_connected_to() -> None:
    """A name that is public when it is checked, and private when it is looked up again."""
    names = Names(rebind_test=[["8.8.8.8"], ["127.0.0.1"]])
    seen = list[GetRequest]()

    def remember(request: GetRequest) -> Reply:
        seen.append(request)
        return answer(request)

    client = Client(Harvest(allow_private=False), transport=remember, resolve=names)
    for _ in range(3):
        assert client.get("https://rebind.test/oai", 100).url == "https://rebind.test/oai"
    assert names.asked == ["rebind.test"]
    assert {r.address for r in seen} == {"8.8.8.8"}
    assert {r.authority for r in seen} == {"rebind.test"}
    assert {r.host for r in seen} == {"rebind.test"}, "TLS goes by the name"


def refuse_private(request: GetRequest) -> Reply:
    if not is_public(request.address):
        raise NotConnected("refused")
    return Reply(302, (("Location", "http://10.0.0.1/secret"),))


def test_a_name_that_turns_public_after_a_refused_connection_is_public() -> None:
    """The private address, where nothing listens, must not earn trust for the server that comes next."""
    names = Names(rebind_test=[["10.9.9.9"], ["8.8.8.8"], ["10.9.9.9"]])
    client = Client(Harvest(), transport=refuse_private, resolve=names)
    with pytest.raises(NoAnswer, match="cannot connect"):
        client.get("http://rebind.test/oai", 100)
    with pytest.raises(NoAnswer, match=r"10\.0\.0\.1/secret leads into a private network"):
        client.get("http://rebind.test/oai", 100)
    client._reach.forget()
    with pytest.raises(NoAnswer, match=r"rebind\.test/oai leads into a private network"):
        client.get("http://rebind.test/oai", 100)


def test_a_source_that_was_public_stays_so_in_later_runs(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:

        def run(*answers: list[str]) -> Client:
            known = known_public(store)
            return Client(Harvest(), transport=answer, resolve=Names(rebind_test=answers), known_public=known)

        assert run(["8.8.8.8"]).get("http://rebind.test/oai", 100).body == b"x"
        assert public_hosts(store) == {"rebind.test"}
        with pytest.raises(NoAnswer, match="private network"):
            run(["10.0.0.2"]).get("http://REBIND.test/oai", 100)
        # Another source is judged by its own addresses, and a private one may lead to public documents.
        private = Client(Harvest(), transport=answer, known_public=KnownPublic(public_hosts(store)))
        for url in ("http://10.0.0.3/oai", "http://8.8.8.8/document", "http://10.0.0.3/oai"):
            assert private.get(url, 100).body == b"x"


@pytest.mark.parametrize(
    "answers", [["127.0.0.1"], ["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"], ["::1"]]
)
def test_nothing_is_sent_to_a_private_address_that_is_forbidden(answers: list[str]) -> None:
    with m.Provider() as provider:
        names = Names(mixed_test=[answers, ["8.8.8.8"]])
        client = Client(Harvest(allow_private=False), resolve=names)
        with pytest.raises(NoAnswer, match="private network"):
            client.get(provider.url.replace("127.0.0.1", "mixed.test"), 1000)
        client.close()
    assert provider.requests == []
    assert names.asked == ["mixed.test"]


def test_a_redirect_is_checked_before_anything_is_sent_there() -> None:
    sent = list[str]()

    def lead(request: GetRequest) -> Reply:
        sent.append(request.address)
        return Reply(302, (("Location", "http://inside.test/"),))

    names = Names(outside_test=[["8.8.8.8"]], inside_test=[["192.168.0.1"]])
    client = Client(Harvest(), transport=lead, resolve=names)
    with pytest.raises(NoAnswer, match="private network"):
        client.get("http://outside.test/", 100)
    assert sent == ["8.8.8.8"]


def test_a_redirect_to_what_is_no_url_is_refused() -> None:
    client = Client(Harvest(), transport=lambda request: Reply(302, (("Location", "http://[bad/"),)))
    with pytest.raises(NoAnswer, match="which is no URL") as refused:
        client.get("http://8.8.8.8/oai", 100)
    assert refused.value.failed.trouble == "refused"


def test_a_time_to_come_back_is_told_by_the_clock_of_the_server() -> None:
    dates = (("Date", "Mon, 01 Jan 2001 00:00:00 GMT"), ("Retry-After", "Mon, 01 Jan 2001 00:00:30 GMT"))
    found = Client(Harvest(), transport=lambda request: Reply(503, dates)).get("http://8.8.8.8/oai", 100)
    assert found.trouble is not None
    assert (found.trouble.failed.trouble, found.trouble.failed.retry_after) == ("later", 30)


def test_cookies_go_back_to_the_server_that_set_them_and_to_no_other() -> None:
    seen = list[tuple[str, str | None]]()

    def ask_for_one(request: GetRequest) -> Reply:
        seen.append((request.address, request.headers.get("Cookie")))
        if request.address == "8.8.8.8" and "Cookie" not in request.headers:
            cookies = ("a=1; Path=/", "b=two words", "c=3; Max-Age=0", 'd="4"')
            return Reply(302, (("Location", "/oai"), *(("Set-Cookie", cookie) for cookie in cookies)))
        return Reply(200, (), iter([b"x"]))

    client = Client(Harvest(), transport=ask_for_one)
    for url in ("http://8.8.8.8/oai", "http://8.8.8.8/oai", "http://9.9.9.9/oai"):
        assert client.get(url, 100).body == b"x"
    assert seen == [("8.8.8.8", None), *[("8.8.8.8", 'a=1; d="4"')] * 2, ("9.9.9.9", None)]


def test_a_name_is_asked_for_by_its_name_and_the_next_address_is_tried() -> None:
    with m.Provider() as provider:
        names = Names(repo_test=[["::1", "127.0.0.1"]])  # the provider is on the second alone
        client = Client(Harvest(timeout_seconds=2), resolve=names)
        url = provider.url.replace("127.0.0.1", "repo.test")
        found = client.ask(url, {"verb": "Identify"})
        assert b"<Identify>" in found.body
        assert found.url.startswith("http://repo.test:")
        client.close()


def test_proxies_are_those_of_the_settings_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with m.Provider() as proxy, m.Provider() as provider:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.root)
        client = Client(Harvest())
        client.ask(provider.url, {"verb": "Identify"})
        client.close()
        assert (len(proxy.requests), len(provider.requests)) == (0, 1)
        client = Client(Harvest(proxy=proxy.root), resolve=Names(far_test=[["8.8.8.8"]]))
        client.get("http://far.test/repo?verb=Identify", 10_000)
        client.close()
        assert (len(proxy.requests), len(provider.requests)) == (1, 1)


def test_credentials_go_to_the_source_alone_and_into_no_message() -> None:
    seen = list[tuple[str, str | None]]()

    def lead(request: GetRequest) -> Reply:
        seen.append((request.address, request.headers.get("Authorization")))
        if request.target == "/oai":
            location = "http://thief:secret@9.9.9.9/"
            return Reply(302, (("Location", location),))
        raise NotConnected("no")

    client = Client(Harvest(), user="me", password="pass:word", transport=lead)
    with pytest.raises(NoAnswer) as failed:
        client.get("http://me:pass%3Aword@8.8.8.8/oai", 100)
    basic = "Basic " + base64.b64encode(b"me:pass:word").decode()
    assert seen == [("8.8.8.8", basic), ("9.9.9.9", None)]
    assert "secret" not in str(failed.value) and "pass" not in str(failed.value)


class Sent:
    """Remembers where requests go; a private address is never spoken to."""

    def __init__(self) -> None:
        self.requests: list[GetRequest] = []

    def __call__(self, request: GetRequest) -> Reply:
        self.requests.append(request)
        return answer(request)


def test_files_by_reference_are_fetched_from_the_address_that_was_checked(tmp_path: Path) -> None:
    """The fetching of a mirror holds to the same rule as a harvest, by the same code."""
    names = Names(
        repo_test=[["8.8.8.8"]], files_test=[["9.9.9.9"], ["127.0.0.1"]], inside_test=[["10.0.0.1"]]
    )
    sent = Sent()
    fetcher = Fetcher("https://repo.test/oai", "Basic x", (), 100, 5.0, sent, names)
    for _ in range(3):
        assert fetcher.fetch("https://files.test/a", tmp_path / "a").size == 1
    assert names.asked == ["repo.test", "files.test"], "names are looked up once"
    assert {r.address for r in sent.requests} == {"9.9.9.9"}
    assert {r.authority for r in sent.requests} == {"files.test"}
    assert {r.host for r in sent.requests} == {"files.test"}
    assert not any("Authorization" in r.headers for r in sent.requests), "credentials are the repository's"
    sent.requests.clear()
    for url in ("https://inside.test/a", "http://127.0.0.1:9/", "http://[::1]/", "http://169.254.169.254/"):
        with pytest.raises(NotFetched, match="private network"):
            fetcher.fetch(url, tmp_path / "a")
    assert sent.requests == []
    fetcher.fetch("https://repo.test/a", tmp_path / "a")
    assert [r.headers["Authorization"] for r in sent.requests] == ["Basic x"]
    fetcher.close()


def test_a_file_is_fetched_from_the_next_address_and_by_no_proxy_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with m.Provider() as proxy, m.Provider() as provider:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.root)
        names = Names(repo_test=[["::1", "127.0.0.1"]])  # the provider is on the second alone
        root = provider.url.replace("127.0.0.1", "repo.test")
        fetcher = Fetcher(root, "", (), 1 << 20, 5.0, resolve=names)
        found = fetcher.fetch(f"{root}?verb=Identify", tmp_path / "file")
        fetcher.close()
        assert found.size == (tmp_path / "file").stat().st_size > 100
        assert proxy.requests == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True), ("2606:4700::1111", True), ("::ffff:8.8.8.8", True), ("64:ff9b::808:808", True),
        ("::ffff:127.0.0.1", False), ("::127.0.0.1", False), ("64:ff9b::7f00:1", False),
        ("64:ff9b::a9fe:a9fe", False), ("64:ff9b:1::808:808", False), ("2002:7f00:1::", False),
        ("2002:a00:1::1", False), ("fec0::1", False), ("fe80::1%eth0", False), ("0.0.0.0", False),
        ("::", False), ("100.64.0.1", False), ("224.0.0.1", False),
    ],
)  # fmt: skip
def test_an_address_that_holds_a_private_one_is_private(address: str, public: bool) -> None:
    assert is_public(address) is public


def test_a_private_address_beside_a_public_one_opens_nothing() -> None:
    sent = Sent()
    names = Names(both_test=[["8.8.8.8", "127.0.0.1"]], inside_test=[["10.0.0.1"]])
    client = Client(Harvest(), transport=sent, resolve=names)
    assert client.get("http://both.test/", 100).body == b"x"
    for url in ("http://inside.test/", "http://127.0.0.1:9/"):
        with pytest.raises(NoAnswer, match="private network"):
            client.get(url, 100)
    assert {r.address for r in sent.requests} == {"8.8.8.8"}


def test_a_repository_whose_name_is_not_resolved_at_first_opens_nothing(tmp_path: Path) -> None:
    """Or the first file that its records name would decide what they may lead to."""

    def names(host: str, port: int) -> Sequence[str]:
        if host == "repo.test":
            raise OSError("try again")
        return [host]

    sent = Sent()
    fetcher = Fetcher("https://repo.test/oai", "", (), 100, 5.0, sent, names)
    with pytest.raises(NotFetched, match="private network"):
        fetcher.fetch("http://127.0.0.1:9/", tmp_path / "a")
    assert sent.requests == []


def test_a_probe_knows_which_hosts_were_public() -> None:
    source = Source("http://localhost:9/oai")
    found = probe_in_child(source, Harvest(), Policy(), known_public=KnownPublic(["localhost"]))
    assert "leads into a private network" in found.problem
    assert "private" not in probe_in_child(source, Harvest(), Policy()).problem

"""The commands `harvest` and `sources`: what they print, and the status with which they end."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from tests.hostile import misbehaving as m

from indlet.cli.harvest import Shown, harvest, line, sources
from indlet.cli.service import search
from indlet.net.client import Client, NoAnswer, oai_url, spellings
from indlet.service.harvest.progress import Progress, RunOutcome
from indlet.settings import Harvest
from indlet.store import Store


def run(*arguments: str) -> Result:
    return CliRunner().invoke(harvest, [*arguments, "--retries", "1", "--timeout", "2"])


def test_a_good_source(tmp_path: Path) -> None:
    with m.Provider() as provider:
        result = run(provider.url, "--data", str(tmp_path), "--name", "repo", "--json")
        assert result.exit_code == 0, result.output
        (told,) = json.loads(result.output)
        assert (told["outcome"], told["records"], told["deleted"]) == ("complete", 43, 4)
        assert run(provider.url, "--data", str(tmp_path), "--name", "repo").output.startswith(
            "repo (oai_dc):"
        )
    shown = CliRunner().invoke(sources, ["--data", str(tmp_path), "--json"])
    (row,) = json.loads(shown.output)
    assert (row["source"], row["records"], row["deleted"], row["format"]) == ("repo", 43, 4, "oai_dc")
    assert row["high_water"] == {"": m.NOW}
    assert row["last"]["outcome"] == "complete"
    assert row["next"]
    plain = CliRunner().invoke(sources, ["--data", str(tmp_path)]).output.splitlines()
    assert plain[0].split("\t")[:3] == ["source", "records", "deleted"]
    assert plain[1].split("\t")[:3] == ["repo", "43", "4"]


def test_the_status_tells_what_was_not_had(tmp_path: Path) -> None:
    with m.Provider(None, m.dead(("ListRecords", "ListIdentifiers"))) as provider:
        result = run(provider.url, "--data", str(tmp_path / "a"))
        assert result.exit_code == 1
        assert "INCOMPLETE" in result.output
    with m.Provider(None, m.malformed_record("oai:x.org:0012", single=True)) as provider:
        result = run(provider.url, "--data", str(tmp_path / "b"))
        assert result.exit_code == 3
        assert "1 failed" in result.output
    with m.Provider(None, m.in_titles(b"R&D")) as provider:
        result = run(provider.url, "--data", str(tmp_path / "c"))
        assert result.exit_code == 0
        assert "bare ampersands 43" in result.output


def test_an_index_format_that_is_not_had_is_said(tmp_path: Path) -> None:
    with m.Provider() as provider:
        result = run(provider.url, "--data", str(tmp_path), "--index", "tf_basic")
        assert result.exit_code == 0
        assert "has no tf_basic: metadata alone were harvested" in result.output
        again = run(provider.url, "--data", str(tmp_path), "--index", "tf_basic", "--json", "--quiet")
        assert json.loads(again.stdout)[0]["repairs"]["tf_basic is not offered: no index taken"] == 1
        with Store.open(tmp_path) as store, store.read() as view:
            (origin,) = view.origins("source")
            assert all("not offered" in str(entry.detail["repairs"]) for entry in view.runs(origin.id))
        for index in ("auto", "none"):
            assert "has no" not in run(provider.url, "--data", str(tmp_path / index), "--index", index).output
        unknown = run(provider.url, "--data", str(tmp_path), "--index", "tf_magic")
        assert (unknown.exit_code, "choose from auto, none, " in unknown.output) == (2, True)


def test_what_a_source_says_cannot_command_a_terminal() -> None:
    """Neither by control characters, nor by what the table would take for markup."""
    said = "see [/help] \x9b31m [red]"
    done = Progress("source [/x]", trouble=said, outcome=RunOutcome.FAILED, reason=said + "\nroot")
    assert "see [/help]  31m [red] root;" in line(done)
    shown = Shown(quiet=True)
    shown.follow([done])
    terminal = Console(file=io.StringIO(), force_terminal=True, width=200)
    terminal.print(shown._render())
    assert isinstance(terminal.file, io.StringIO)
    assert "source [/x]" in terminal.file.getvalue()
    assert "see [/help]  31m [red]" in terminal.file.getvalue()


def test_a_search_of_the_data_alone_follows_the_policy_that_it_was_harvested_under(tmp_path: Path) -> None:
    data, config, other = tmp_path / "data", tmp_path / "a.toml", tmp_path / "b.toml"
    config.write_text("[analysis]\nstem = false\nstop = false\n")
    other.write_text("[analysis]\nstop = false\n")
    records = [m.Rec("oai:x.org:1", "2024-05-01T00:00:00Z", "fluttering of the wings")]
    with m.Provider(records) as provider:
        assert run(provider.url, "--data", str(data), "--config", str(config)).exit_code == 0

    def found(query: str, *options: str) -> tuple[int, list[str]]:
        shown = CliRunner().invoke(search, ["--data", str(data), "--json", *options, query])
        assert shown.exit_code == 0, shown.output
        told = json.loads(shown.output)
        return told["total"], told["notes"]

    assert found("fluttering") == (1, [])
    assert found("the") == (1, []), "no stop words there"
    assert found("title:wings") == (1, [])
    assert found("flutter") == (0, [])
    total, notes = found("fluttering", "--config", str(other))
    assert total == 0
    assert "another analysis policy" in notes[0]


def test_sources_from_a_settings_file(tmp_path: Path) -> None:
    with m.Provider() as one, m.Provider(m.collection(5)) as two:
        config = tmp_path / "indlet.toml"
        config.write_text(
            f'data = "d"\n[[source]]\nurl = "{one.url}"\nname = "one"\n'
            f'[[source]]\nurl = "{two.url}"\nname = "two"\n'
        )
        assert run("--config", str(config), "--quiet").exit_code == 0
    with Store.open(tmp_path / "d") as store, store.read() as view:
        assert {o.name: view.totals()[o.id][0] for o in view.origins("source")} == {"one": 43, "two": 5}


def test_linked_documents_are_fetched_analysed_and_dropped(tmp_path: Path) -> None:
    def documents(request: m.Request, reply: m.Reply) -> m.Reply:
        if request.path == "/a.txt":
            text = b"Hypersonic vehicles reenter the atmosphere. The hypersonic flow is hot."
            return m.Reply(text, 200, {"Content-Type": "text/plain"})
        return reply

    with m.Provider([], documents) as provider:
        for name in ("a", "b"):
            metadata = (
                '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
                'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A title</dc:title>'
                f"<dc:identifier>{provider.root}/{name}.txt</dc:identifier></oai_dc:dc>"
            )
            provider.records.append(m.Rec(f"oai:x:{name}", "2024-05-01T00:00:00Z", metadata=metadata))
        assert run(provider.url, "--data", str(tmp_path), "--fulltext").exit_code == 3
    with Store.open(tmp_path) as store, store.read() as view:
        found = {s.identifier: s for s in view.changes()}
        known = view.document_states(found["oai:x:a"].origin, list(found))
    vector = found["oai:x:a"].record.vector
    assert vector is not None
    assert vector.frequencies()["hyperson"] == 2
    assert b"reenter" not in found["oai:x:a"].raw
    assert (known["oai:x:b"].state, known["oai:x:b"].reason) == ("none", "gone")
    assert "404" in known["oai:x:b"].note


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/oai", "http://localhost:9/", "http://[::1]:9/"])
def test_private_networks_can_be_forbidden(url: str) -> None:
    client = Client(Harvest(allow_private=False))
    with pytest.raises(NoAnswer, match="private network"):
        client.get(url, 1000)
    client.close()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x.org/", "gopher://x"])
def test_only_the_web_is_harvested(url: str) -> None:
    client = Client(Harvest())
    with pytest.raises(NoAnswer, match="only http and https"):
        client.get(url, 1000)
    client.close()


def test_urls_and_tokens_are_written_as_they_must() -> None:
    assert oai_url("http://x/o", {"verb": "Identify"}) == "http://x/o?verb=Identify"
    assert oai_url("http://x/o?a=1", {"verb": "Identify"}) == "http://x/o?a=1&verb=Identify"
    assert oai_url("http://x/o?", {"set": "a b&c"}) == "http://x/o?set=a%20b%26c"
    assert spellings("plain") == ["plain"]
    assert spellings("a+b")[:2] == ["a%2Bb", "a%252Bb"]
    assert "a%2Bb" in spellings("a b")
    assert "a%2Bb" in spellings("a%2Bb")[1:]

"""Settings: defaults load, mistakes are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from indlet.errors import SettingsError
from indlet.settings import Settings, seconds
from indlet.settings.file import from_mapping, load


def test_rules_of_access_to_a_source_need_its_name_and_hold_for_its_url() -> None:
    rules = {"tokens": ["sesame"]}
    with pytest.raises(SettingsError, match="give it a name"):
        from_mapping({"source": [{"url": "http://x.org/oai", "access": rules}]})
    both = [
        {"url": "http://x.org/oai", "name": "x", "access": rules},
        {"url": "http://x.org/oai/", "name": "y"},
    ]
    with pytest.raises(SettingsError, match="different rules of access"):
        from_mapping({"source": both})
    settings = from_mapping({"source": [{"url": "http://x.org/oai", "name": "x", "access": rules}]})
    assert "sesame" not in str(settings.source[0].public())


def test_nothing_given_is_the_default() -> None:
    assert from_mapping({}) == Settings()


def test_a_file_is_relative_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "indlet.toml"
    path.write_text(
        'data = "here"\n[[hierarchy]]\nroot = "papers"\n[[hierarchy]]\nroot = "ftp://host/x"\n'
        '[[source]]\nurl = "http://a.org/oai"\nfrom = "2001-01-01"\n[crawl.limits]\nseconds = 5\n'
    )
    settings = load(path)
    assert settings.data == tmp_path / "here"
    assert [h.root for h in settings.hierarchy] == [str(tmp_path / "papers"), "ftp://host/x"]
    assert settings.source[0].from_ == "2001-01-01"
    assert settings.crawl.limits.seconds == 5.0


def test_a_home_folder_is_expanded_in_every_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / "indlet.toml"
    path.write_text(
        'data = "~/data"\n[[hierarchy]]\nroot = "~/x"\n[[site]]\nroot = "~/www"\nurl = "http://a.org"\n'
        'config = ["~/site.conf"]\n[[library]]\nname = "l"\nread = "~/out"\nmapping = "~/map.toml"\n'
        '[[write]]\nfolder = "~/in"\nsubjects = ["~/s.tsv"]\n[portal]\nlogo = "~/logo.svg"\n'
    )
    settings = load(path)
    (site,), (library,), (write,) = settings.site, settings.library, settings.write
    paths = [settings.data, settings.hierarchy[0].root, site.root, *site.config, library.read]
    paths += [library.mapping, write.folder, *write.subjects, settings.portal.logo]
    names = ["data", "x", "www", "site.conf", "out", "map.toml", "in", "s.tsv", "logo.svg"]
    assert list(map(str, paths)) == [str(tmp_path / "home" / name) for name in names]
    path.write_text('data = "~nobody-is-called-so/data"')
    with pytest.raises(SettingsError, match="write the whole path"):
        load(path)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"nod": {}}, "did you mean 'node'"),
        ({"node": {"port": "x"}}, "node: port: expected int"),
        ({"node": {"port": True}}, "expected int"),
        ({"hierarchy": [{"name": "x"}]}, "needs 'root'"),
        ({"hierarchy": {"root": "x"}}, "expected a list"),
        ({"source": [{"url": "a", "name": "n"}, {"url": "b", "name": "n"}]}, "two entries"),
        ({"serve": {"compression": [1]}}, "expected str"),
    ],
)
def test_mistakes_are_named(raw: dict[str, object], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        from_mapping(raw)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="indlet init"):
        load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[node")
    with pytest.raises(SettingsError, match="cannot be read as TOML"):
        load(tmp_path / "bad.toml")
    (tmp_path / "twice.toml").write_text("[node]\n[serve]\n[node]\n")
    with pytest.raises(SettingsError, match=r"below the .table. that is there already"):
        load(tmp_path / "twice.toml")


@pytest.mark.parametrize(("text", "value"), [("90s", 90), ("15m", 900), ("1.5h", 5400), ("1d", 86400)])
def test_intervals(text: str, value: float) -> None:
    assert seconds(text) == value


def test_a_cron_line_is_no_interval() -> None:
    assert seconds("0 3 * * *") is None
    assert seconds("") is None

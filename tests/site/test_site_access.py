"""Who sees what: the web server's own rules, for lists, counts, sets, tokens and single records."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.site.conftest import OAI, Bench, Client, Make
from tests.site.web_servers import Web, basic

from indlet.settings import Settings, Site, VirtualRepository
from indlet.site.rules import AccessRules, RulesMet
from indlet.store import withheld

OFFICE = "203.0.113.9"
PUBLIC = {"/a.html", "/b.html", "/c.html", "/open/d.html"}
VIEWS = {
    # user, address -> what is seen beside the public files
    ("", "198.51.100.7"): set(),
    ("", OFFICE): {"/office/o.html"},
    ("ann", "198.51.100.7"): {"/staff/s.html", "/staff/deep/ann.html"},
    ("bob", "198.51.100.7"): {"/staff/s.html"},
    ("bob", OFFICE): {"/staff/s.html", "/office/o.html"},
}


def guard(web: Web) -> None:
    """The same rules for either server: users, one user further down, an office's addresses."""
    for path in (*PUBLIC, "/staff/s.html", "/staff/deep/ann.html", "/office/o.html"):
        web.write(path[1:], f"<p>page {path}</p>")
    if web.kind == "nginx":
        login = f'auth_basic "staff"; auth_basic_user_file {web.passwords};'
        web.extra = (
            f"location /staff/ {{ {login} }}\n"
            f"location /staff/deep/ {{ {login.replace(str(web.passwords), str(web.run / 'ann'))} }}\n"
            f"location /office/ {{ allow {OFFICE}; deny all; }}\n"
        )
        (web.run / "ann").write_text(
            "".join(line for line in web.passwords.read_text().splitlines(True) if line.startswith("ann"))
        )
    else:
        login = f'AuthType Basic\nAuthName "staff"\nAuthUserFile {web.passwords}\n'
        web.write("staff/.htaccess", f"{login}Require valid-user\n")
        web.write("staff/deep/.htaccess", "Require user ann\n")
        web.write("office/.htaccess", f"Require ip {OFFICE}\n")


@pytest.fixture
def bench(web: Web, make: Make) -> Bench:
    guard(web)
    web.start()
    bench = make(web)
    assert bench.crawl().outcome == "complete"
    return bench


@pytest.mark.parametrize(("user", "address"), VIEWS)
def test_lists_hold_what_the_server_gives_the_requester(bench: Bench, user: str, address: str) -> None:
    client, expected = bench.serve(), PUBLIC | VIEWS[user, address]
    for verb in ("ListIdentifiers", "ListRecords"):
        for prefix in ("oai_dc", "http_header", "oai_didl"):
            assert client.harvested(verb, user, address, metadataPrefix=prefix) == expected
    assert client.harvested(user=user, address=address, set="mime:text:html") == expected
    first = next(client.pages(user=user, address=address))
    token = first.find(f".//{OAI}resumptionToken")
    assert token is not None
    # Who may see more than everybody finds a longer list than its first page promises.
    assert token.get("completeListSize") == str(len(PUBLIC))
    (last,) = list(client.pages(user=user, address=address))[-1].iter(f"{OAI}resumptionToken")
    assert last.get("completeListSize") == str(len(expected))
    folders = {path.split("/")[1] for path in expected if path.count("/") > 1}
    sets = {s.text for s in client.get(user, address, verb="ListSets").iter(f"{OAI}setSpec")}
    named = {f"site:{folder}" for folder in folders}
    assert sets - {"site:staff:deep"} == {"mime", "mime:text", "mime:text:html", "site", *named}
    assert ("site:staff:deep" in sets) == ("/staff/deep/ann.html" in expected)


@pytest.mark.parametrize(("user", "address"), VIEWS)
def test_a_single_record_shows_no_more_than_the_lists(bench: Bench, user: str, address: str) -> None:
    client = bench.serve()
    for path in PUBLIC.union(*VIEWS.values()):
        answer = client.get(
            user, address, verb="GetRecord", identifier=bench.web.url + path, metadataPrefix="oai_didl"
        )
        error = answer.find(f"{OAI}error")
        if path in PUBLIC | VIEWS[user, address]:
            assert error is None
        else:
            assert error is not None
            assert error.get("code") == "idDoesNotExist"
        formats = client.get(user, address, verb="ListMetadataFormats", identifier=bench.web.url + path)
        assert (formats.find(f"{OAI}error") is None) == (error is None)


def test_a_wrong_password_is_a_stranger(bench: Bench) -> None:
    client = bench.serve()
    answer = client.http.get(
        "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc", headers={"Authorization": "Basic eDp5"}
    )
    assert answer.text.count("<header>") == 3
    assert "/staff" not in answer.text
    assert "private" in answer.headers["cache-control"]
    assert "Authorization" in answer.headers["vary"]


def test_a_token_is_for_the_credentials_that_it_was_given_to(bench: Bench) -> None:
    client = bench.serve()
    page = next(client.pages(user="ann"))
    token = page.findtext(f".//{OAI}resumptionToken", "")
    assert client.get("ann", verb="ListIdentifiers", resumptionToken=token).find(f"{OAI}error") is None
    for user in ("", "bob"):
        error = client.get(user, verb="ListIdentifiers", resumptionToken=token).find(f"{OAI}error")
        assert error is not None
        assert error.get("code") == "badResumptionToken"


def test_an_address_counts_only_from_a_trusted_proxy(bench: Bench) -> None:
    client = bench.serve(trusted_proxies=())
    assert client.harvested(address=OFFICE) == PUBLIC


def test_what_a_stranger_sees_tells_nothing_of_the_rest(bench: Bench, web: Web, make: Make) -> None:
    """The landing page, the sitemap and the health report count public records only."""
    client = bench.serve()
    for path in ("/", "/sitemap.xml", "/healthz", "/robots.txt"):
        text = client.http.get(path).text
        assert "staff" not in text
        assert "office" not in text
    assert client.http.get("/healthz").json()["records"] == len(PUBLIC)


def test_passwords_that_change_hold_within_seconds(bench: Bench) -> None:
    bench.settings = _remember(bench, 0.0)
    client = bench.serve()
    pages = client.pages(user="ann")
    next(pages)
    bench.web.write_passwords("bob")
    if bench.web.kind == "nginx":
        (bench.web.run / "ann").write_text("")
    rest = {h.findtext(f"{OAI}identifier", "") for page in pages for h in page.iter(f"{OAI}header")}
    assert not any("/staff/" in url for url in rest)
    assert client.harvested(user="ann") == PUBLIC


def _remember(bench: Bench, seconds: float) -> Settings:
    (site,) = bench.settings.site
    return replace(bench.settings, site=(replace(site, remember_seconds=seconds),))


def test_a_rule_that_appears_holds_before_the_next_crawl(apache: Web, make: Make) -> None:
    guard(apache)
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    bench.crawl()
    client = bench.serve()
    seen = client.harvested()
    assert "/open/d.html" in seen
    apache.write("open/.htaccess", f"Require ip {OFFICE}\n", at=time.time() - 9999)
    assert client.harvested() == PUBLIC - {"/open/d.html"}
    assert client.harvested("ListRecords", metadataPrefix="oai_didl") == PUBLIC - {"/open/d.html"}
    assert client.harvested(address=OFFICE) == PUBLIC | {"/office/o.html"}


def test_a_rule_that_appears_while_a_list_is_read_holds_for_the_rest(apache: Web, make: Make) -> None:
    guard(apache)
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    bench.crawl()
    pages = bench.serve().pages("ListRecords", metadataPrefix="oai_didl")
    first = {h.findtext(f"{OAI}identifier", "") for h in next(pages).iter(f"{OAI}header")}
    (path,) = (one for one in PUBLIC if apache.url + one not in first)
    name = path.rpartition("/")[2]
    apache.write(".htaccess", f'<Files "{name}">\nRequire all denied\n</Files>\n')
    rest = {h.findtext(f"{OAI}identifier", "") for page in pages for h in page.iter(f"{OAI}header")}
    assert apache.url + path not in rest


def test_what_becomes_guarded_is_deleted_for_strangers_and_stays_for_others(apache: Web, make: Make) -> None:
    guard(apache)
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    bench.crawl()
    apache.write("open/.htaccess", f"Require ip {OFFICE}\n")
    bench.crawl()
    client = bench.serve()
    strangers = PUBLIC - {"/open/d.html"} | {"-/open/d.html"}
    assert client.harvested() == strangers
    assert client.harvested(address=OFFICE) == PUBLIC | {"/office/o.html"}
    (apache.root / "open/.htaccess").unlink()
    bench.crawl()
    assert client.harvested() == PUBLIC
    assert client.harvested(address=OFFICE) == PUBLIC | {"/office/o.html"}


def test_refusals_of_much_at_once_wait_and_hide_nonetheless(apache: Web, make: Make) -> None:
    """A server that limits bursts refuses everything for a while: nothing is deleted for that, or shown."""
    guard(apache)
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    strict = replace(bench.settings.crawl, withhold_share=0.0, withhold_records=0)
    bench.settings = replace(bench.settings, crawl=strict)
    bench.crawl()
    apache.write("open/.htaccess", f"Require ip {OFFICE}\n")
    (apache.root / "a.html").unlink()
    assert bench.crawl().withheld == 2
    client = bench.serve()
    assert client.harvested() == PUBLIC - {"/open/d.html"}
    assert client.harvested(address=OFFICE) == PUBLIC | {"/office/o.html"}
    (apache.root / "open/.htaccess").unlink()
    assert bench.crawl().withheld == 1
    assert client.harvested() == PUBLIC
    assert set(bench.listed("site (guarded)")) == {"staff/s.html", "staff/deep/ann.html", "office/o.html"}
    apache.write("open/.htaccess", f"Require ip {OFFICE}\n")
    bench.crawl()
    assert withheld.release(bench.store, "site") == 2
    assert bench.crawl().withheld == 0
    strangers = PUBLIC - {"/open/d.html", "/a.html"} | {"-/open/d.html", "-/a.html"}
    assert client.harvested() == strangers
    assert client.harvested(address=OFFICE) == PUBLIC - {"/a.html"} | {"-/a.html", "/office/o.html"}


def test_the_deletion_of_a_guarded_file_is_told_to_whom_it_was_for(apache: Web, make: Make) -> None:
    guard(apache)
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    bench.crawl()
    (apache.root / "staff/s.html").unlink()
    bench.crawl()
    client = bench.serve()
    assert client.harvested() == PUBLIC
    assert client.harvested(user="bob") == PUBLIC | {"-/staff/s.html"}
    (size,) = list(client.pages(user="bob"))[-1].iter(f"{OAI}resumptionToken")
    assert size.get("completeListSize") == str(len(PUBLIC) + 1)


def test_a_guarded_handlers_source_is_given_to_nobody(apache: Web, make: Make) -> None:
    """Whoever may fetch the page gets what its handler makes, so the file itself is not for them."""
    guard(apache)
    apache.write("staff/parsed.html", '<p><!--#echo var="DOCUMENT_NAME" --></p>')
    apache.extra = "AddOutputFilter INCLUDES .html"
    apache.start()
    bench = make(apache)
    bench.crawl()
    assert "/staff/parsed.html" not in bench.serve().harvested(user="ann")


def test_a_server_that_is_away_opens_nothing(bench: Bench) -> None:
    client = bench.serve(identifiers_per_page=50)
    bench.web.stop()
    answer = client.http.get(
        "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc", headers={"Authorization": basic("ann")}
    )
    assert answer.status_code == 503
    assert "retry-after" in answer.headers
    assert client.http.get("/oai?verb=ListIdentifiers&metadataPrefix=oai_dc").status_code == 200


def test_nothing_is_asked_where_nothing_is_guarded(apache: Web, make: Make) -> None:
    for path in PUBLIC:
        apache.write(path[1:])
    apache.start()
    bench = make(apache)
    bench.crawl()
    apache.stop()
    assert bench.serve().harvested(user="ann") == PUBLIC


def test_what_was_answered_dates_later_changes(apache: Web, make: Make) -> None:
    """A file from before an answer that did not show it gets the time at which it was seen."""
    apache.write("a.html", at=1_500_000_000)
    apache.start()
    bench = make(apache)
    bench.crawl()
    client: Client = bench.serve()
    assert client.harvested() == {"/a.html"}
    place = apache.write("b.html", at=time.time() - 3600)
    bench.crawl()
    assert bench.listed()["b.html"]["datestamp"] > time.time() - 60
    assert bench.listed()["b.html"]["modified_ns"] == place.stat().st_mtime_ns


def test_a_certificates_name_counts_only_from_a_trusted_proxy(apache: Web, make: Make) -> None:
    apache.write("a.html")
    apache.write("certified/c.html")
    apache.write("certified/.htaccess", "Require expr %{HTTP:X-SSL-Client-S-DN} == 'CN=ann'\n")
    apache.start()
    bench = make(apache)
    bench.crawl()
    url = "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc"
    headers = {"X-SSL-Client-S-DN": "CN=ann"}
    assert "certified" in bench.serve().http.get(url, headers=headers).text
    assert "certified" not in bench.serve().http.get(url, headers={"X-SSL-Client-S-DN": "CN=bob"}).text
    assert "certified" not in bench.serve(trusted_proxies=()).http.get(url, headers=headers).text


@pytest.mark.parametrize("by", ["always_ask", "config"])
def test_rules_of_the_server_itself_can_count_at_once(apache: Web, make: Make, by: str) -> None:
    for path in PUBLIC:
        apache.write(path[1:])
    apache.start()
    config = apache.run / "server.conf"
    given = {"always_ask": True} if by == "always_ask" else {"config": (str(config),)}
    bench = make(apache, remember_seconds=0.0, **given)
    bench.crawl()
    client = bench.serve()
    assert client.harvested() == PUBLIC
    apache.reload('<Location "/open">\nRequire ip 203.0.113.9\n</Location>')
    assert client.harvested() == PUBLIC - {"/open/d.html"}
    assert client.harvested(address=OFFICE) == PUBLIC
    hidden = client.get(verb="GetRecord", identifier=f"{apache.url}/open/d.html", metadataPrefix="oai_dc")
    assert hidden.find(f"{OAI}error") is not None


@pytest.mark.parametrize("by", [".htaccess", "config"])
def test_a_rule_that_takes_from_some_what_others_may_have(web: Web, make: Make, by: str) -> None:
    """The crawl is a stranger and gets the file, but not everybody does."""
    for path in PUBLIC:
        web.write(path[1:])
    rule = f"<RequireAll>\nRequire all granted\nRequire not ip {OFFICE}\n</RequireAll>\n"
    if web.kind == "nginx":
        if by == ".htaccess":
            pytest.skip("nginx has no rules in folders")
        web.extra = f"location /open/ {{ deny {OFFICE}; allow all; }}"
    elif by == "config":
        web.extra = f"<Location /open>\n{rule}</Location>"
    else:
        web.write("open/.htaccess", rule)
    web.start()
    bench = make(web, config=(str(web.run / "server.conf"),) if by == "config" else ())
    bench.crawl()
    client = bench.serve()
    hidden = PUBLIC - {"/open/d.html"}
    for verb in ("ListIdentifiers", "ListRecords"):
        assert client.harvested(verb) == PUBLIC
        assert client.harvested(verb, address=OFFICE) == hidden
    token = next(client.pages()).find(f".//{OAI}resumptionToken")
    assert token is not None and token.get("completeListSize") == "3"  # listed so far
    name = f"{web.url}/open/d.html"
    for address, found in ((OFFICE, False), ("198.51.100.7", True)):
        record = client.get(address=address, verb="GetRecord", identifier=name, metadataPrefix="oai_didl")
        assert (record.find(f"{OAI}error") is None) == found


@pytest.mark.parametrize(
    ("rule", "selective"),
    [
        ("Require valid-user", False),
        ("<Files x>\nRequire user ann\n</Files>", False),
        ("Require all denied", False),
        ("Order allow,deny\nDeny from all", False),
        ("RewriteRule ^a$ /b [R=301,L]", False),
        ("IndexIgnore deny 1.2.3.4", False),
        ("location / { deny all; }", False),
        ("# Require not ip 10", False),
        ("<RequireAll>\n  require NOT ip 10\n</RequireAll>", True),
        ("<RequireNone>\nRequire ip 10\n</RequireNone>", True),
        ("Deny from 203.0.113", True),
        ("Deny from env=bad", True),
        ("RewriteCond %{REMOTE_ADDR} ^10\\.\nRewriteRule .* - [L,F]", True),
        ("location / { allow 10.0.0.0/8; deny 10.1.0.0/16; }", True),
        ("if ($http_user_agent ~ bot) { return 403; }", True),
        ("if ($remote_addr ~ ^203) { return 302 /; }", True),
        ("RewriteCond %{REMOTE_ADDR} ^10\\.\nRewriteRule .* /elsewhere [R,L]", True),
        ("RewriteCond %{REMOTE_ADDR} ^10\\.\nRewriteRule .* - [R=404,L]", True),
        ("RewriteCond %{HTTP_HOST} !^www\nRewriteRule .* https://www.example.org/ [R=301]", False),
        ("RewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule . /index.php [L]", False),
    ],
)
def test_rules_that_tell_requesters_apart_are_known(tmp_path: Path, rule: str, selective: bool) -> None:
    (tmp_path / "rules").write_text(rule)
    site = Site(str(tmp_path), "http://h", config=(str(tmp_path / "rules"),))
    assert AccessRules(site, RulesMet(site).states).doubtful("a") == selective


@pytest.mark.parametrize("answer", ["[R=302,L]", "[R=404,L]", "[G,L]", "[F,L]"])
def test_whatever_the_server_answers_but_the_file_hides_it(apache: Web, make: Make, answer: str) -> None:
    for path in PUBLIC:
        apache.write(path[1:])
    condition = f"RewriteEngine On\nRewriteCond %{{REMOTE_ADDR}} ={OFFICE}\n"
    apache.write("open/.htaccess", f"{condition}RewriteRule .* /elsewhere {answer}\n")
    apache.start()
    bench = make(apache)
    bench.crawl()
    client = bench.serve()
    assert client.harvested() == PUBLIC
    assert client.harvested(address=OFFICE) == PUBLIC - {"/open/d.html"}


def test_a_rule_above_the_folder_of_a_site_counts(apache: Web, make: Make) -> None:
    for path in PUBLIC:
        apache.write(path[1:])
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    inner = Site(str(apache.root / "open"), f"{apache.url}/open", name="site", remember_seconds=0.0)
    bench.settings = replace(bench.settings, site=(inner,))
    bench.crawl()
    client = bench.serve()
    assert client.harvested() == {"/open/d.html"}
    apache.write(".htaccess", f"Require ip {OFFICE}\n")
    assert client.harvested() == set()
    assert client.harvested(address=OFFICE) == {"/open/d.html"}


def test_a_folder_that_is_moved_into_place_brings_its_old_rules(apache: Web, make: Make) -> None:
    guard(apache)
    old = apache.root.parent / "old" / "deep"
    old.mkdir(parents=True)
    (old / ".htaccess").write_text("Require all denied\n")
    apache.write("open/deep/d.html")
    (old / "d.html").write_bytes((apache.root / "open/deep/d.html").read_bytes())
    apache.start()
    bench = make(apache, remember_seconds=0.0)
    bench.crawl()
    client = bench.serve()
    assert client.harvested() == PUBLIC | {"/open/deep/d.html"}
    (apache.root / "open/deep").rename(apache.root.parent / "away")
    old.rename(apache.root / "open/deep")
    assert client.harvested() == PUBLIC


def test_a_virtual_repository_shows_guarded_records_of_its_own_sites_only(apache: Web, make: Make) -> None:
    guard(apache)
    apache.start()
    bench = make(apache)
    bench.crawl()
    virtual = (
        VirtualRepository("/oai/other", from_=("other",)),
        VirtualRepository("/oai/mine", from_=("site",)),
    )
    bench.settings = replace(bench.settings, repository=virtual)
    client = bench.serve(identifiers_per_page=50)
    asked = {"verb": "ListIdentifiers", "metadataPrefix": "oai_dc", "user": "ann"}
    assert client.get(path="/oai/other", **asked).find(f"{OAI}error") is not None
    assert len(list(client.get(path="/oai/mine", **asked).iter(f"{OAI}header"))) == len(PUBLIC) + 2

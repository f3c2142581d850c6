"""Which files of a web server become records, and what the records say."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.site.conftest import Make
from tests.site.web_servers import MODULES, Web, available, web_server

from indlet.site.ignore import IndexIgnore

OLD = 1_500_000_000
PAGE = "<html><head><title>Wings</title></head><body><p>A wing in the air.</p></body></html>"


def test_rules_of_a_folder_are_bounded_and_hide_no_less_than_they_say(tmp_path: Path) -> None:
    for count, all_hidden in ((900, False), (100_000, True)):
        many = " ".join(f"a{n}*" for n in range(count))
        (tmp_path / ".htaccess").write_text(f"IndexIgnore b*\nIndexIgnore {many}")
        ignored = IndexIgnore(tmp_path, (), ())
        assert ignored.refuses("b1") and ignored.refuses(f"a{count - 1}")
        assert ignored.refuses("c") is all_hidden


def test_what_the_server_gives_becomes_records(web: Web, make: Make) -> None:
    web.write("index.html", PAGE, at=OLD)
    web.write("a/b/picture.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>", at=OLD + 1)
    web.write("a/ü 100%?.txt", "a text of wings", at=OLD - 5)
    web.write("a/data.bin", b"\0\1\2" * 1000, at=OLD + 2)
    web.start()
    bench = make(web)
    summary = bench.crawl()
    assert (summary.outcome, summary.failures) == ("complete", 0)
    found = bench.listed()
    assert list(found) == ["a/%C3%BC%20100%25%3F.txt", "index.html", "a/b/picture.svg", "a/data.bin"]
    page = found["index.html"]
    assert page["datestamp"] == OLD
    assert page["sets"] == ["mime:text:html", "site"]
    assert page["metadata"]["title"] == ["Wings"]
    assert page["metadata"]["format"] == ["text/html", f"{len(PAGE)} bytes"]
    assert page["vector"] == b"1 air\n2 wing"
    headers = {name.lower(): value for name, value in page["headers"]}
    assert headers["content-length"] == str(len(PAGE))
    assert headers["last-modified"] == "Fri, 14 Jul 2017 02:40:00 GMT"
    assert "date" not in headers
    assert found["a/b/picture.svg"]["sets"] == ["mime:image:svg!2Bxml", "site:a:b"]
    assert found["a/data.bin"]["vector"] is None
    assert bench.crawl().idle


def test_what_is_not_served_is_left_out_and_said(apache: Web, make: Make, tmp_path: Path) -> None:
    web = apache
    web.write("page.html", PAGE)
    odd = ".secret .git/config old.html~ draft.html# x.bak CVS/Root code.php run.cgi page.shtml evil.php.txt"
    for name in (*odd.split(), "listed/skipme.log", "listed/kept.html"):
        web.write(name, "x")
    web.write("listed/.htaccess", "IndexIgnore *.log")
    web.write("locked.html", PAGE).chmod(0)
    web.write("elsewhere.html", PAGE)
    web.write("gone.html", PAGE)
    (tmp_path / "outside.txt").write_text("outside")
    (web.root / "link.txt").symlink_to(tmp_path / "outside.txt")
    web.extra = "Redirect /elsewhere.html http://127.0.0.1/\nRedirectMatch 404 ^/gone"
    web.start()
    bench = make(web)
    summary = bench.crawl()
    assert set(bench.listed()) == {"page.html", "listed/kept.html"}
    reasons = dict(summary.named)
    assert reasons[".secret"] == "hidden"
    assert "IndexIgnore" in reasons["old.html~"]
    assert "IndexIgnore" in reasons["listed/skipme.log"]
    assert "handler's source" in reasons["code.php"]
    assert "handler's source" in reasons["evil.php.txt"]
    assert "unreadable" in reasons["locked.html"]
    assert "302" in reasons["elsewhere.html"]
    assert "404" in reasons["gone.html"]
    assert "leads out" in reasons["link.txt"]
    assert set(reasons) >= {"draft.html#", "x.bak", "CVS/Root", "run.cgi", "page.shtml", ".git"}


def test_what_a_handler_makes_is_never_taken_for_its_source(apache: Web, make: Make) -> None:
    """By the server's word, whatever the file is called."""
    web = apache
    web.write("parsed.html", '<p><!--#echo var="DOCUMENT_NAME" --></p>')
    web.write("plain.html", PAGE)
    web.extra = "AddOutputFilter INCLUDES .html"
    web.start()
    bench = make(web)
    summary = bench.crawl()
    assert set(bench.listed()) == {"plain.html"}
    assert (
        "other bytes" in dict(summary.named)["parsed.html"] or "bytes" in dict(summary.named)["parsed.html"]
    )


def test_what_handlers_make_is_taken_where_that_is_asked_for(make: Make) -> None:
    if not available("apache") or not list(MODULES.glob("libphp*.so")):
        pytest.skip("no PHP for Apache here: apt-get install libapache2-mod-php")
    with web_server("apache-prefork") as web:
        web.php = True
        web.write("hello.php", "<?php $secret = 'hunter2'; readfile('../run/said');", at=OLD)
        (web.run / "said").write_text("<p>rendered wing</p>")
        web.write("plain.html", PAGE, at=OLD + 10)
        web.start()
        bench = make(web, dynamic=True)
        bench.crawl()
        found = bench.listed()
        assert set(found) == {"hello.php", "plain.html"}
        assert found["hello.php"]["size"] == len("<p>rendered wing</p>")
        assert found["hello.php"]["rendered"] is True
        assert b"render" in found["hello.php"]["vector"]
        assert b"hunter" not in found["hello.php"]["vector"]
        assert bench.crawl().idle
        # Other output under the old time of its source: dated when it was seen.
        (web.run / "said").write_text("<p>another wing</p>")
        bench.crawl()
        assert bench.listed()["hello.php"]["datestamp"] > time.time() - 60


def test_a_changed_header_is_a_changed_record(apache: Web, make: Make) -> None:
    web = apache
    web.write("a.dat", "x")
    web.write("b.html", PAGE)
    web.start()
    bench = make(web)
    bench.crawl()
    before = bench.listed()
    web.reload("AddType application/x-special .dat")
    assert bench.crawl().records == 1
    after = bench.listed()
    assert after["a.dat"]["sets"][0] == "mime:application:x-special"
    assert after["b.html"] == before["b.html"]


def test_a_server_that_is_away_deletes_nothing(apache: Web, make: Make) -> None:
    web = apache
    web.write("b.html", PAGE)
    web.start()
    bench = make(web)
    bench.crawl()
    web.stop()
    summary = bench.crawl()
    assert summary.outcome == "unreachable"
    assert "cannot be reached" in summary.reason
    assert set(bench.listed()) == {"b.html"}
    web.extra = "RedirectMatch 503 .*"
    web.start()
    assert bench.crawl().deleted == 0
    web.reload("")
    (web.root / "b.html").unlink()
    assert bench.crawl().deleted == 1


def test_datestamps_follow_the_files_until_something_later_was_given_out(apache: Web, make: Make) -> None:
    web = apache
    for number, at in enumerate((OLD, OLD + 100, OLD + 50)):
        web.write(f"{number}.html", PAGE, at=at)
    web.start()
    bench = make(web)
    bench.crawl()
    assert [r["datestamp"] for r in bench.listed().values()] == [OLD, OLD + 50, OLD + 100]
    web.write("new.html", PAGE, at=OLD + 200)
    web.write("restored.html", PAGE, at=OLD + 60)
    bench.crawl()
    stamps = {name: record["datestamp"] for name, record in bench.listed().items()}
    assert stamps["new.html"] == OLD + 200
    assert stamps["restored.html"] > time.time() - 60
    assert list(stamps.values()) == sorted(stamps.values())


def test_index_ignore_of_configuration_files_holds_where_they_say(tmp_path: Path) -> None:
    config = tmp_path / "apache.conf"
    config.write_text(
        f'IndexIgnore *.log "two words"\n<Directory "{tmp_path}/a">\n  IndexIgnore *.tmp\n</Directory>\n'
    )
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / ".htaccess").write_text("IndexIgnore\tsecret* \\\n  other?\n# IndexIgnore kept\n")
    rules = IndexIgnore(tmp_path, ("*~",), [config])
    refused = [
        "x~",
        "a/x.log",
        "two words",
        "a/x.tmp",
        "a/b/x.tmp",
        "a/b/secret1",
        "a/b/other2",
        "a/b/secret/x",
    ]
    assert [path for path in refused if not rules.refuses(path)] == []
    assert not any(map(rules.refuses, ["x.tmp", "secret1", "a/secret1", "a/b/kept", "x.logs", "a/b"]))

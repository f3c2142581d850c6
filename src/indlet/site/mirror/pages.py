"""The pages of an OAI-PMH list to its end, with patience for a source that is busy or breaks off."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from indlet.errors import BadResponse, RemoteError
from indlet.net.client import Client, HttpAnswer, NoAnswer
from indlet.net.settings import Harvest
from indlet.oai.answers import metadata_formats
from indlet.oai.read import Item, Problem, local_name, parsed, read
from indlet.site import http_header, oai_didl
from indlet.site.mirror.page_scan import ListedRecord, scanned
from indlet.site.oai_didl import Component

Read = TypeVar("Read")
_PASSING = ("later", "silent", "interrupted", "broken")


class ListPage(NamedTuple):
    """A page of records, whichever way it was read."""

    response_date: str
    token: str
    records: Iterable[ListedRecord]
    errors: Sequence[tuple[str, str]] = ()
    problems: Sequence[Problem] = ()


class ListReader:
    def __init__(
        self, client: Client, url: str, harvest: Harvest, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client, self._url, self._harvest, self._sleep = client, url, harvest, sleep

    def ask(self, arguments: Mapping[str, str]) -> ListPage:
        """One page of records. RemoteError if it cannot be had."""
        return self._asked(arguments, _list_page)

    def _asked(self, arguments: Mapping[str, str], reader: Callable[[HttpAnswer], Read]) -> Read:
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = self._client.ask(self._url, arguments)
                if answer.trouble is not None:
                    raise answer.trouble
                return reader(answer)
            except NoAnswer as e:
                if e.failed.trouble not in _PASSING or attempt > self._harvest.retries:
                    raise RemoteError(f"{self._url}: {e}") from e
                wait = e.failed.retry_after or self._harvest.backoff_seconds * 2**attempt
                self._sleep(min(wait, self._harvest.retry_after_limit_seconds))
            except BadResponse as e:
                if attempt > self._harvest.retries:
                    raise RemoteError(f"{self._url}: {e}") from e
                self._sleep(self._harvest.backoff_seconds * attempt)

    def prefixes(self) -> list[str]:
        """The metadata formats that the repository offers."""
        return self._asked(
            {"verb": "ListMetadataFormats"},
            lambda answer: metadata_formats(read(answer.body, answer.charset)),
        )

    def pages(self, verb: str, arguments: Mapping[str, str], token: str = "") -> Iterator[ListPage]:
        """The pages of a list, from a token on if there is one; an empty list has none.

        A token that the repository does not take any more begins the list anew. While a page is worked on the
        next one comes.
        """
        given = {"verb": verb, "resumptionToken": token} if token else {"verb": verb, **arguments}
        seen: set[str] = set()
        with ThreadPoolExecutor(1) as ahead:
            coming = ahead.submit(self.ask, given)
            while True:
                page = coming.result()
                codes = {code for code, _ in page.errors}
                if "badResumptionToken" in codes and "resumptionToken" in given and not seen:
                    given = {"verb": verb, **arguments}
                    coming = ahead.submit(self.ask, given)
                    continue
                if "noRecordsMatch" in codes:
                    return
                if codes:
                    told = "; ".join(f"{code}: {reason}" for code, reason in page.errors)
                    raise RemoteError(f"{self._url}: {told}")
                if page.token:
                    given = {"verb": verb, "resumptionToken": page.token}
                    coming = ahead.submit(self.ask, given)
                yield page
                if not page.token:
                    return
                if page.token in seen or len(seen) > self._harvest.pages:
                    raise RemoteError(f"{self._url}: the list goes in circles")
                seen.add(page.token)


def _list_page(answer: HttpAnswer) -> ListPage:
    if (fast := scanned(answer.body)) is not None:
        return ListPage(fast.response_date, fast.token, fast.records)
    return parsed_page(answer)


def parsed_page(answer: HttpAnswer) -> ListPage:
    """A page as the tolerant reader finds it, whoever wrote it."""
    body, contents = oai_didl.without_content(answer.body)
    page = read(body, answer.charset)
    records = (_listed(item, contents) for item in page.items)  # one after the other: they hold files
    return ListPage(page.response_date, page.token or "", records, page.errors, page.problems)


def _listed(item: Item, contents: Sequence[memoryview]) -> ListedRecord:
    files: list[Component] | None = None
    metadata = None if item.packed is None else parsed(item.packed.raw)
    if metadata is not None and local_name(metadata) == "headers":
        fields, digest = http_header.read(metadata)
        files = [Component(headers=fields, sha256=digest)]
    elif metadata is not None:
        files = oai_didl.read(metadata, contents)
    return ListedRecord(item.identifier, item.deleted, None if item.deleted else files)

"""The pages of an OAI-PMH list to its end, with patience for a source that is busy or breaks off."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from indlet.errors import BadResponse, RemoteError
from indlet.formats.metadata.oai_didl import without_content
from indlet.oai.answers import metadata_formats
from indlet.oai.read import Page, read
from indlet.service.harvest.client import Client, NoAnswer
from indlet.settings import Harvest

_PASSING = ("later", "silent", "interrupted", "broken")


class ListPage(NamedTuple):
    """An answer, and the files that stood in it in base64."""

    page: Page
    contents: Sequence[memoryview] = ()


class ListReader:
    def __init__(
        self, client: Client, url: str, harvest: Harvest, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._client, self._url, self._harvest, self._sleep = client, url, harvest, sleep

    def ask(self, arguments: Mapping[str, str]) -> ListPage:
        """One answer. RemoteError if it cannot be had."""
        attempt = 0
        while True:
            attempt += 1
            try:
                answer = self._client.ask(self._url, arguments)
                if answer.trouble is not None:
                    raise answer.trouble
                body, contents = without_content(answer.body)
                return ListPage(read(body, answer.charset), contents)
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
        return metadata_formats(self.ask({"verb": "ListMetadataFormats"}).page)

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
                found = coming.result()
                page = found.page
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
                yield found
                if not page.token:
                    return
                if page.token in seen or len(seen) > self._harvest.pages:
                    raise RemoteError(f"{self._url}: the list goes in circles")
                seen.add(page.token)

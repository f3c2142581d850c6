"""Files of local hierarchies whose content is public: what the crawler knows, and nothing beside it."""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from indlet.provider.hierarchy import TreeRules, content_root, shown
from indlet.provider.open_below import open_below
from indlet.provider.serve.access import AccessGate, Permit
from indlet.provider.serve.http import RequestSlots, unchanged
from indlet.provider.serve.responses import ForeignBytes, ForeignResponse, locked_file, with_policy
from indlet.settings import FILE, Settings
from indlet.store import Store

# Types that a page of ours could be made to load as its own: shown as what they are, text.
_LOADABLE = re.compile(r"javascript|ecmascript|jscript|livescript|css|json|wasm|mpegurl")
# Few enough that the answer cannot outgrow the file by much.
_RANGES = re.compile(
    r"bytes=\s*(?:\d{1,18}-\d{0,18}|-\d{1,18})(?:\s*,\s*(?:\d{1,18}-\d{0,18}|-\d{1,18})){0,15}"
)


@dataclass(frozen=True, slots=True)
class _Found:
    file: FileIO  # open: its name may come to mean another
    media_type: str
    status: os.stat_result


class _OpenFileResponse(FileResponse):
    """An open file, whole or in part; closed in any case."""

    def __init__(self, found: _Found, headers: Mapping[str, str], policy: str) -> None:
        path = f"/dev/fd/{found.file.fileno()}"
        super().__init__(path, 200, headers, found.media_type, stat_result=found.status)
        self._file, self._policy = found.file, policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, with_policy(self._policy, send))


def _sensible(ranges: str) -> bool:
    """Whether a Range header can be understood; one that ends before it starts cannot."""
    if not _RANGES.fullmatch(ranges.strip()):
        return False
    parts = [part.strip().partition("-") for part in ranges.partition("=")[2].split(",")]
    return all(not first or not last or int(first) <= int(last) for first, _, last in parts)


class Content:
    """The files below /content/. A hierarchy that is remote or inside an archive is not served from here."""

    def __init__(self, store: Store, settings: Settings, gate: AccessGate, desk: RequestSlots) -> None:
        self._store = store
        self._gate = gate
        self._desk = desk
        self._hierarchies = {h.name: h for h in settings.hierarchy}
        self._rules = TreeRules(settings.crawl.hidden, settings.crawl.ignore)

    async def respond(self, request: Request) -> Response:
        # The path as it was sent: a name may hold %2F, and bytes that are not UTF-8.
        raw = request.scope.get("raw_path") or request.scope["path"].encode()
        named = raw.partition(b"?")[0].partition(b"/content/")[2].decode("ascii", "replace")
        hierarchy, _, path = named.partition("/")
        permit = self._gate.permit(request)
        found = await self._desk.serve(
            lambda: self._find(
                unquote(hierarchy, errors="surrogateescape"), unquote(path, errors="surrogateescape"), permit
            ),
            self._gate.client(request),
        )
        if isinstance(found, Response):
            return found
        headers = {"Cache-Control": "no-cache"}
        if self._gate.restricted:
            headers |= {"Cache-Control": "private, no-cache", "Vary": "Authorization"}
        kind = "text/plain" if _LOADABLE.search(found.media_type.lower()) else found.media_type
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        # As it is, without the charset that would be claimed for any text: nobody checked it.
        headers["Content-Type"] = kind
        status = found.status
        etag = f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
        headers["ETag"] = f'"{etag}"'
        if unchanged(request, etag, status.st_mtime_ns // 10**9):
            found.file.close()
            return ForeignResponse(ForeignBytes(b""), 304, headers, policy=locked_file(kind))
        asked = request.headers.get("range")
        if asked is not None and not _sensible(asked):
            # A range that is not understood counts as none (RFC 9110, section 14.2).
            request.scope["headers"] = [h for h in request.scope["headers"] if h[0] != b"range"]
        return _OpenFileResponse(found, headers, locked_file(kind))

    def _find(self, name: str, path: str, permit: Permit) -> _Found | Response:
        missing = PlainTextResponse("There is no such file here.\n", 404)
        hierarchy = self._hierarchies.get(name)
        if hierarchy is None or not permit.allows(name):
            return missing
        root = content_root(hierarchy.root)
        with self._store.read() as view:
            origin = view.origin("hierarchy", name)
            known = view.file(origin.id, shown(path)) if origin else None
        if known is None or known.state == "failed":
            return missing
        if hierarchy.access.content != "public" or hierarchy.base_url:
            return PlainTextResponse("The content of this file is not given out here.\n", 403)
        if root is None:
            return missing
        # Links may lead about inside the root; what leads out of it is not there.
        opened = open_below(str(root), path)
        if opened is None:
            return missing
        file, place, real = FileIO(opened.descriptor), Path(opened.path), Path(opened.root)
        if (place != real / path or place.name == FILE) and self._left_alone(place, real):
            file.close()
            return missing
        kind = known.media_type or mimetypes.guess_type(place.name)[0] or "application/octet-stream"
        return _Found(file, kind, opened.status)

    def _left_alone(self, place: Path, root: Path) -> bool:
        """Whether a crawl would not follow a link to that: a file that it knows may have become one since."""
        return place.is_relative_to(self._store.local_folder.resolve()) or any(
            self._rules.refuse(part, "") for part in place.relative_to(root).parts
        )

"""Files of local hierarchies whose content is public: what the crawler knows, and nothing beside it."""

from __future__ import annotations

import mimetypes
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from indlet.provider.hierarchy import TreeRules, content_root, shown
from indlet.provider.serve.access import AccessGate, Permit
from indlet.provider.serve.http import RequestSlots, unchanged
from indlet.settings import FILE, Settings
from indlet.store import Store

# Types that a browser would run: shown in a sandbox without scripts, forms or an origin.
_ACTIVE = re.compile(r"^text/|html|xml|svg|flash")
# Types that a page of ours could be made to load as its own: shown as what they are, text.
_LOADABLE = re.compile(r"javascript|ecmascript|jscript|livescript|css|json|wasm|mpegurl")
# Few enough that the answer cannot outgrow the file by much.
_RANGES = re.compile(
    r"bytes=\s*(?:\d{1,18}-\d{0,18}|-\d{1,18})(?:\s*,\s*(?:\d{1,18}-\d{0,18}|-\d{1,18})){0,15}"
)
_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True, slots=True)
class _Found:
    path: Path
    media_type: str
    size: int
    modified: int  # nanoseconds
    inode: int


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
            )
        )
        if isinstance(found, Response):
            return found
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
        if self._gate.restricted:
            headers |= {"Cache-Control": "private, no-cache", "Vary": "Authorization"}
        kind = "text/plain" if _LOADABLE.search(found.media_type.lower()) else found.media_type
        if _ACTIVE.search(kind):
            headers["Content-Security-Policy"] = _SANDBOX
        headers["Cross-Origin-Resource-Policy"] = "same-origin"
        # As it is, without the charset that would be claimed for any text: nobody checked it.
        headers["Content-Type"] = kind
        etag = f"{found.inode:x}-{found.size:x}-{found.modified:x}"
        headers["ETag"] = f'"{etag}"'
        if unchanged(request, etag, found.modified // 10**9):
            return Response(None, 304, headers)
        asked = request.headers.get("range")
        if asked is not None and not _sensible(asked):
            # A range that is not understood counts as none (RFC 9110, section 14.2).
            request.scope["headers"] = [h for h in request.scope["headers"] if h[0] != b"range"]
        return FileResponse(found.path, headers=headers)

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
        try:
            # Links may lead about inside the root; what leads out of it is not there.
            place = (root / path).resolve(strict=True)
            status = place.stat()
        except (OSError, ValueError):
            return missing
        real = root.resolve()
        if not place.is_relative_to(real) or not stat.S_ISREG(status.st_mode):
            return missing
        if (place != real / path or place.name == FILE) and self._left_alone(place, real):
            return missing
        if not os.access(place, os.R_OK):
            return missing
        kind = known.media_type or mimetypes.guess_type(place.name)[0] or "application/octet-stream"
        return _Found(place, kind, status.st_size, status.st_mtime_ns, status.st_ino)

    def _left_alone(self, place: Path, root: Path) -> bool:
        """Whether a crawl would not follow a link to that: a file that it knows may have become one since."""
        return place.is_relative_to(self._store.local_folder.resolve()) or any(
            self._rules.refuse(part, "") for part in place.relative_to(root).parts
        )

"""Sign-ins that wait for their turn: slow for whoever guesses, never refused to a browser that is known."""

from __future__ import annotations

from typing import Final

import anyio
import anyio.to_thread

from indlet.web.auth import Gate, Guesser

STRANGERS: Final = 50  # sign-ins of browsers that never signed in before, waiting at most
EACH: Final = 10  # of one browser that did, or of one address


class SignIns:
    """A hash takes 32 MB, so few are computed at a time; known browsers have a slot of their own."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._waiting: dict[Guesser, tuple[anyio.Lock, int]] = {}
        self._hashing, self._hashing_known = anyio.CapacityLimiter(2), anyio.CapacityLimiter(1)

    def has_room(self, guesser: Guesser) -> bool:
        """Whether one more sign-in may wait: of this guesser, and, unless it is known, of all strangers."""
        if self._waiting.get(guesser, (None, 0))[1] >= EACH:
            return False
        strangers = sum(count for one, (_, count) in self._waiting.items() if not one.is_known)
        return guesser.is_known or strangers < STRANGERS

    async def password_fits(self, guesser: Guesser, password: str, user: str) -> bool:
        """Checks one password at a time for each guesser, after the pause that it has earned."""
        lock, count = self._waiting.get(guesser, (anyio.Lock(), 0))
        self._waiting[guesser] = (lock, count + 1)
        limiter = self._hashing_known if guesser.is_known else self._hashing
        try:
            async with lock:
                await anyio.sleep(self._gate.pause(guesser))
                return await anyio.to_thread.run_sync(
                    self._gate.sign_in, guesser, password, user, limiter=limiter
                )
        finally:
            lock, count = self._waiting.pop(guesser)
            if count > 1:
                self._waiting[guesser] = (lock, count - 1)

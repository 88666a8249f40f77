"""How often the shipped code calls each primitive, told by the interpreter and not by the code itself.

Counting is slow, so runs that are timed are not counted. Nothing is replaced: what is counted is what ships.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import CodeType, FrameType

from nacl.bindings import crypto_scalarmult, crypto_scalarmult_base

from linnet.groups import primitives
from linnet.groups.agreement import Draft
from linnet.identity import keys
from linnet.lab.studies.groups.circle import Circle, Party, Sent

KEY_GENERATIONS = "key generations"
AGREEMENTS = "key agreements"
SIGNATURES = "signatures"
CHECKS = "signature checks"
EXPANSIONS = "HKDF expansions"
SEALED = "sealed"
OPENED = "opened"
PUBLIC_KEY = (KEY_GENERATIONS, AGREEMENTS, SIGNATURES, CHECKS)
OPERATIONS = (*PUBLIC_KEY, EXPANSIONS, SEALED, OPENED)

_WATCHED: dict[CodeType, str] = {
    crypto_scalarmult_base.__code__: KEY_GENERATIONS,
    crypto_scalarmult.__code__: AGREEMENTS,
    keys.SigningKey.sign.__code__: SIGNATURES,
    keys.verify.__code__: CHECKS,
    primitives.expand.__code__: EXPANSIONS,
    primitives.seal.__code__: SEALED,
    primitives.open_sealed.__code__: OPENED,
}


@contextmanager
def tallied(counts: Counter[str]) -> Generator[None]:
    """Count into this what is called meanwhile in this thread."""
    watched = _WATCHED

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in watched:
            counts[watched[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)


class TalliedCircle(Circle):
    """A circle that counts what some of its devices call; slow, and of no use to measure time."""

    def __init__(self, devices: int, seed: int, watched: Iterable[int]) -> None:
        self.tallies: dict[int, Counter[str]] = {place: Counter() for place in watched}
        super().__init__(devices, seed)

    def reset(self) -> None:
        """What was counted so far is forgotten."""
        super().reset()
        for tally in self.tallies.values():
            tally.clear()

    def say(self, by: int, text: bytes) -> Sent:
        """A message, counted."""
        with self._tallied(by):
            return super().say(by, text)

    def hear(self, place: int, sent: Sent) -> None:
        """An event comes to a device, counted."""
        with self._tallied(place):
            super().hear(place, sent)

    def _made(self, party: Party, drafting: Callable[[], Draft | None]) -> Sent:
        with self._tallied(party.place):
            return super()._made(party, drafting)

    def _tallied(self, place: int) -> AbstractContextManager[None]:
        return tallied(self.tallies[place]) if place in self.tallies else nullcontext()

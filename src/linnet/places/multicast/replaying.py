"""Answers to whoever asks for a fragment again (Toth 2013, section 3.8).

Every answer has its own membership test, without the memory that relaying has. A test that cannot be decided
here is our fault, not the asker's: it is told to ask another, never that it may not.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from linnet.core.errors import StoreError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.places.messages import Code, Replay, Replayed
from linnet.places.multicast.head import Head
from linnet.places.multicast.relaying import MembershipTest, Verdict, is_farewell
from linnet.trace.records import Kind, Record

ASKERS = 4096
"""Members whose rate is remembered; the one unheard of for longest is forgotten."""
BURST_SECONDS = 0.5
"""So many seconds of the rate may be asked at once."""


class Found(NamedTuple):
    """A fragment as it came, with what was read of it."""

    unit: Unverified
    head: Head
    card: Card | None


class Fragments(Protocol):
    """What is held of a place."""

    def get(self, fragment: int) -> Found | None:
        """By its number."""

    def get_at(self, message: int, offset: int) -> Found | None:
        """By its message, and the bytes of it that come before."""


class _Rate:
    __slots__ = ("at", "left", "told")

    def __init__(self, left: float, at: float) -> None:
        self.left = left
        self.at = at
        self.told = False


class Replaying:
    """Answers from what is held, each member at a bounded rate."""

    def __init__(
        self,
        place: TopicId,
        fragments: Fragments,
        membership: MembershipTest,
        out: Outbox,
        rate: float = 2000.0,
    ) -> None:
        self._place = place
        self._fragments = fragments
        self._membership = membership
        self._out = out
        self._rate = rate
        self._most = max(1.0, rate * BURST_SECONDS)
        self._askers: dict[AuthorId, _Rate] = {}

    def answer_replay(self, peer: PeerId, nym: AuthorId | None, question: Replay, now: float) -> int:
        """Send the fragment, or why not; without a nym to a keeper, for which there is no test.

        The flags of the question, for whoever answers above us.
        """
        self._out.committed.send(peer, self._answer(peer, nym, question, now))
        return question.flags

    def _answer(self, peer: PeerId, nym: AuthorId | None, question: Replay, now: float) -> Replayed:
        asker = self._asker(AuthorId(peer) if nym is None else nym, now)
        if asker.left < 1.0:
            if not asker.told:
                self._record(peer, Reason.FLOODING, "replays past the rate")
            asker.told = True
            self._out.blame(peer, Reason.FLOODING)
            return self._code(question, Code.INTERNAL_ERROR)
        asker.left -= 1.0
        asker.told = False
        try:
            found = self._find(question)
            return self._checked(peer, nym, question, found)
        except StoreError as error:
            self._record(peer, Reason.NO_STORAGE, str(error)[:100])
            return self._code(question, Code.INTERNAL_ERROR)

    def _find(self, question: Replay) -> Found | None:
        if question.fragment is not None:
            return self._fragments.get(question.fragment)
        return self._fragments.get_at(question.message, question.offset)

    def _checked(self, peer: PeerId, nym: AuthorId | None, question: Replay, found: Found | None) -> Replayed:
        if found is None:
            return self._code(question, Code.NOT_FOUND)
        head = found.head
        yes = Verdict.YES.name
        verdict = yes if nym is None else self._membership.test(nym, head.message, head.generation).name
        if verdict == yes or (nym is not None and is_farewell(head, nym)):
            return Replayed(self._place, question.request, Code.OK, found.unit, found.card)
        if verdict == Verdict.NO.name:
            self._record(peer, Reason.NOT_A_MEMBER, f"replay of fragment {head.fragment}")
            return self._code(question, Code.ACCESS_DENIED)
        self._record(peer, Reason.MISSING_DEPENDENCY, f"generation {head.generation} is not known")
        return self._code(question, Code.INTERNAL_ERROR)

    def _asker(self, nym: AuthorId, now: float) -> _Rate:
        asker = self._askers.pop(nym, None)
        if asker is None:
            if len(self._askers) >= ASKERS:
                del self._askers[next(iter(self._askers))]
            asker = _Rate(self._most, now)
        self._askers[nym] = asker
        asker.left = min(self._most, asker.left + max(0.0, now - asker.at) * self._rate)
        asker.at = now  # also where the clock was put back
        return asker

    def _code(self, question: Replay, code: Code) -> Replayed:
        return Replayed(self._place, question.request, code, None, None)

    def _record(self, peer: PeerId, reason: Reason, note: str) -> None:
        self._out.record(Record(Kind.REJECTED, self._place, peer=peer, reason=reason, note=note))

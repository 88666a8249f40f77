"""The guest list: newcomers ask their upstreams for the roll, and check it against the voice's hash.

Every change of membership carries the hash of the roll (docs/adr/0018-places.md). So a newcomer checks one
signature, however many guests there are, and nobody can leave out or add a guest.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified, Verified
from linnet.event.signing import recall_unit
from linnet.identity.cards import Card
from linnet.places.channel.membership import read_lines
from linnet.places.messages import ROLL_PAGE_BYTES, AskRoll, RollIs
from linnet.places.multicast.fragment_repair import Question
from linnet.places.multicast.fragmentation import Head, head_of
from linnet.places.multicast.terms import Where
from linnet.places.place_setup import Parts, PlaceTimer
from linnet.trace.records import Kind

_SHELF = 4
"""The rolls that are kept for peers that are still asking for pieces of them."""


class RollDue(PlaceTimer, frozen=True, gc=False):
    """A timer: an answer about the guests of a place is overdue."""


class _Told(Struct, frozen=True, gc=False):
    """A roll that can be sent."""

    change: Unverified
    card: Card | None
    lines: bytes


class GuestList:
    """The questions and answers of one node about the guests of one place."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._shelf: dict[int, _Told] = {}
        self._undone = 0
        """How often membership had been undone when the shelf was filled."""
        self._request = 0
        self._asked: PeerId | None = None
        self._next_at = 0.0
        """When to ask again, if nobody answered or could."""
        self._message = 0
        """The change whose roll is being received."""
        self._lines = bytearray()

    # At the peer that answers.

    def answer_question(self, peer: PeerId, ask: AskRoll) -> None:
        """Send a guest a piece of the roll, or the reason why not."""
        place, membership = self._parts.id, self._parts.membership
        if membership.undone != self._undone:
            self._shelf.clear()
            self._undone = membership.undone
        message = ask.message if ask.message in self._shelf else membership.newest
        told = self._shelf.get(message) or self._tellable(message)
        if told is None:
            no = RollIs(place, ask.request, None, None, 0, 0, b"", Reason.MISSING_DEPENDENCY)
            self._parts.out.committed.send(peer, no)
            return
        self._shelf[message] = told
        if len(self._shelf) > _SHELF:
            del self._shelf[next(iter(self._shelf))]
        offset = ask.offset if ask.message == message else 0
        piece = told.lines[offset : offset + ROLL_PAGE_BYTES]
        page = RollIs(place, ask.request, told.change, told.card, offset, len(told.lines), piece, None)
        self._parts.out.committed.send(peer, page)

    def _tellable(self, message: int) -> _Told | None:
        """Return the roll as of this change, if ours has the hash that the voice signed with it."""
        membership = self._parts.membership
        unit = self._parts.first_of(message) if membership.is_whole else None
        if unit is None:
            return None
        change = head_of(recall_unit(unit).events[0]).change
        if change is None or change.roll != membership.digest():
            return None  # something is missing here that will come
        card = self._parts.context.cards.find(unit.author, unit.device)
        return _Told(unit, card, membership.lines())

    # At the node that asks.

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        self._next_at -= seconds

    def take_due(self, now: float) -> list[Question]:
        """Return the question to an upstream, each in turn, while the roll is not known."""
        upstreams = self._parts.tree.upstreams
        if self._parts.membership.is_whole or not upstreams or now < self._next_at:
            return []
        if self._asked is not None:
            self._parts.record(Kind.DROPPED, self._asked, Reason.TIMEOUT, "no answer about the roll")
            self._begin_anew()
        self._asked = upstreams[self._request % len(upstreams)]
        return [Question(self._asked, self._next_question(now))]

    def handle_roll(self, peer: PeerId, page: RollIs, now: float) -> Reason | None:
        """Take a piece of the roll, and ask for the next; return the fault to blame the peer for."""
        if peer != self._asked or page.request != self._request:
            self._parts.record(Kind.REJECTED, peer, Reason.SURPLUS, "a roll that nobody asked for")
            return None
        if page.change is None:
            self._asked = None
            reason = page.reason or Reason.MISSING_DEPENDENCY
            self._parts.record(Kind.DROPPED, peer, reason, "it cannot tell the roll")
            return None
        try:
            self._take(peer, page, page.change, now)
        except RemoteError as error:
            self._begin_anew()
            self._parts.record(Kind.REJECTED, peer, error.reason, f"roll: {error.detail}")
            # The next one is asked when the time for this answer is over: a lying peer must not set the pace.
            if error.reason is not Reason.STALE:
                self._parts.out.blame(peer, error.reason)
                return error.reason
        return None

    def handle_link_down(self, peer: PeerId) -> None:
        """Stop waiting for the answer of a peer whose link is down."""
        if peer == self._asked:
            self._begin_anew()
            self._next_at = 0.0

    def _take(self, peer: PeerId, page: RollIs, change: Unverified, now: float) -> None:
        verified, head = self._checked(change, page.card)
        if head.message != self._message or page.offset != len(self._lines):
            self._message = head.message
            self._lines.clear()
        if page.offset != len(self._lines) or (not page.lines and page.size):
            raise RemoteError(Reason.MALFORMED, f"a piece at {page.offset}")
        self._lines += page.lines
        if len(self._lines) < page.size:
            self._parts.out.send(peer, self._next_question(now))
            return
        told = read_lines(bytes(self._lines))
        if head.change is None or told.digest() != head.change.roll:
            raise RemoteError(Reason.STATE_MISMATCH, "not the roll that the voice signed")
        # Behind a part a new generation begins.
        self._parts.membership.learn(told, head.message, head.generation + (not head.change.joins))
        self._parts.keep_told(verified, head, now)
        self._begin_anew()

    def _checked(self, unit: Unverified, card: Card | None) -> tuple[Verified, Head]:
        """Check the change that a roll is of: signed by the voice of its term, not older than our entry."""
        parts = self._parts
        if unit.topic != parts.id or not parts.deed.knew(unit.author):
            raise InvalidEvent(Reason.NOT_A_PUBLISHER, "a change by somebody who may not speak here")
        verified, _ = parts.context.check(unit, card, None)
        head = head_of(verified.events[0])
        if (
            parts.terms.where(head, unit.device, unit.seq) is not Where.IN_LINE
            or head.message < parts.membership.since
        ):
            raise RemoteError(Reason.STALE, f"the roll of message {head.message}")
        return verified, head

    def _next_question(self, now: float) -> AskRoll:
        self._request += 1
        self._next_at = now + self._parts.config.replay_timeout
        self._parts.out.set_timer(self._parts.config.replay_timeout, RollDue(self._parts.id))
        return AskRoll(self._parts.id, self._request, self._message, len(self._lines))

    def _begin_anew(self) -> None:
        self._asked = None
        self._message = 0
        self._lines.clear()

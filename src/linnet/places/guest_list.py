"""Who is in: asked by newcomers of those above them, told by whoever knows, checked by the voice's hash.

Every change of membership carries the hash of the roll with it (docs/adr/0018-places.md). So a newcomer
checks one signature, however many guests there are, and nobody can leave out or put in somebody.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.event.event import Unverified, Verified
from linnet.event.signing import recall_unit
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.places.channel.roll import read_lines
from linnet.places.messages import ROLL_PAGE_BYTES, AskRoll, RollIs
from linnet.places.multicast.fragment_repair import Question
from linnet.places.multicast.fragmentation import Head, head_of
from linnet.places.multicast.terms import Where
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind, Record

_SHELF = 4
"""Rolls that are kept for those who are still asking for pieces of them."""


class RollDue(Timer, frozen=True, gc=False):
    """The time for an answer about the guests of a place is over."""

    place: TopicId


class _Told(Struct, frozen=True, gc=False):
    """A roll that can be told."""

    change: Unverified
    card: Card | None
    lines: bytes


class GuestList:
    """Questions and answers of one node about the guests of one place."""

    def __init__(self, parts: Parts, out: Outbox) -> None:
        self._parts = parts
        self._out = out
        self._shelf: dict[int, _Told] = {}
        self._undone = 0
        """How much had been undone when the shelf was filled."""
        self._request = 0
        self._asked: PeerId | None = None
        self._next_at = 0.0
        """When to ask again: nobody answered, or could."""
        self._message = 0
        """The change whose roll is on its way."""
        self._lines = bytearray()

    # Who tells.

    def answer_question(self, peer: PeerId, ask: AskRoll) -> None:
        """Tell a guest a piece of the roll, or why not."""
        place, membership = self._parts.id, self._parts.membership
        if membership.undone != self._undone:
            self._shelf.clear()
            self._undone = membership.undone
        message = ask.message if ask.message in self._shelf else membership.newest
        told = self._shelf.get(message) or self._tellable(message)
        if told is None:
            no = RollIs(place, ask.request, None, None, 0, 0, b"", Reason.MISSING_DEPENDENCY)
            self._out.committed.send(peer, no)
            return
        self._shelf[message] = told
        if len(self._shelf) > _SHELF:
            del self._shelf[next(iter(self._shelf))]
        offset = ask.offset if ask.message == message else 0
        piece = told.lines[offset : offset + ROLL_PAGE_BYTES]
        page = RollIs(place, ask.request, told.change, told.card, offset, len(told.lines), piece, None)
        self._out.committed.send(peer, page)

    def _tellable(self, message: int) -> _Told | None:
        """The roll as of the last change, if what we know has the hash that the voice signed with it."""
        membership = self._parts.membership
        unit = self._parts.first_of(message) if membership.is_whole else None
        if unit is None:
            return None
        change = head_of(recall_unit(unit).events[0]).change
        if change is None or change.roll != membership.digest():
            return None  # something is missing here that will come
        card = self._parts.context.cards.find(unit.author, unit.device)
        return _Told(unit, card, membership.lines())

    # Who asks.

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        self._next_at -= seconds

    def take_due(self, now: float) -> list[Question]:
        """Take the question to one of those above us, each in turn, while the roll is not known."""
        upstreams = self._parts.tree.upstreams
        if self._parts.membership.is_whole or not upstreams or now < self._next_at:
            return []
        if self._asked is not None:
            note = "no answer about the roll"
            self._record(Kind.DROPPED, self._asked, Reason.TIMEOUT, note)
            self._begin_anew()
        self._asked = upstreams[self._request % len(upstreams)]
        return [Question(self._asked, self._next_question(now))]

    def handle_roll(self, peer: PeerId, page: RollIs, now: float) -> Reason | None:
        """Take a piece of the roll, and ask for the next; what the peer is to be blamed for."""
        if peer != self._asked or page.request != self._request:
            self._record(Kind.REJECTED, peer, Reason.SURPLUS, "a roll that nobody asked for")
            return None
        if page.change is None:
            self._asked = None
            reason = page.reason or Reason.MISSING_DEPENDENCY
            self._record(Kind.DROPPED, peer, reason, "it cannot tell the roll")
            return None
        try:
            self._take(peer, page, page.change, now)
        except RemoteError as error:
            self._begin_anew()
            self._record(Kind.REJECTED, peer, error.reason, f"roll: {error.detail}"[:200])
            # The next one is asked when the time for this answer is over: who lies sets no pace.
            if error.reason is not Reason.STALE:
                self._out.blame(peer, error.reason)
                return error.reason
        return None

    def handle_link_down(self, peer: PeerId) -> None:
        """Wait for no answer of a peer whose link is down."""
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
            self._out.send(peer, self._next_question(now))
            return
        told = read_lines(bytes(self._lines))
        if head.change is None or told.digest() != head.change.roll:
            raise RemoteError(Reason.STATE_MISMATCH, "not the roll that the voice signed")
        # Behind a part a new generation begins.
        self._parts.membership.learn(told, head.message, head.generation + (not head.change.joins))
        self._parts.keep_told(verified, head, now)
        self._begin_anew()

    def _checked(self, unit: Unverified, card: Card | None) -> tuple[Verified, Head]:
        """The change that a roll is of: signed by the voice of its term, and not older than our entry."""
        parts = self._parts
        if unit.topic != parts.id or not parts.deed.knew(unit.author):
            raise InvalidEvent(Reason.NOT_A_PUBLISHER, "a change by somebody who may not speak here")
        if card is not None:
            parts.context.cards.learn(card)
        verified = parts.context.verify(unit, parts.context.cards.card_for(unit.author, unit.device, None))
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
        self._out.set_timer(self._parts.config.replay_timeout, RollDue(self._parts.id))
        return AskRoll(self._parts.id, self._request, self._message, len(self._lines))

    def _record(self, kind: Kind, peer: PeerId, reason: Reason, note: str) -> None:
        self._out.record(Record(kind, self._parts.id, peer=peer, reason=reason, note=note))

    def _begin_anew(self) -> None:
        self._asked = None
        self._message = 0
        self._lines.clear()

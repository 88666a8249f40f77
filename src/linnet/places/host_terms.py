"""Terms of hosts: asks for the voice, hands it over, opens terms, and tells other nodes about terms.

A co-host that has something to say asks the voice to hand over, and goes on where it stopped. A device that
handed over says nothing more in its term, even after a crash. If the voice is out of reach, or does not
answer in time, the co-host opens the next term after what it holds. A refusal binds those who rank below the
voice (decision 0018).

Fragments flow from the voice, and their numbers show what is missing. A term that others opened while we were
away begins below the numbers that we have, so nothing would seem missing: it has to be asked for. The
question names the openings of our last terms, the answer brings the openings after the last one that both
know. Openings are signed, and each node decides for itself which of them count, so it does not matter which
peer brings them.

A message cannot outlive its term. What its application sends after that is refused, so that it knows to say
the message again; and no other message that stays open gets its number, or the rest of one message would end
up in the other, since numbers are reused after a cut (decision 0018).
"""

from __future__ import annotations

from enum import Enum

from msgspec import msgpack

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.event.event import Unverified
from linnet.identity.cards import Card, CardCheck, check_card, check_dates
from linnet.identity.keys import SigningKey, verify
from linnet.places.deed import Deed
from linnet.places.entry import EntrySearch
from linnet.places.ingest import Ingest
from linnet.places.messages import TERMS, AskTerms, DeedIs, TermsAre, Yield, Yielded
from linnet.places.multicast.fragmentation import FIRST_TERM
from linnet.places.place_setup import Parts, PlaceTimer
from linnet.trace.records import Kind

_TAG = b"linnet/place/yield/1"
_encode = msgpack.Encoder().encode
_CELLS = "place unfinished"
KEPT = 256
"""The most messages that are remembered; past this the oldest one is forgotten."""
PAUSE = 1.0
"""Seconds between two questions to the same peer."""
ANSWER_BYTES = 256 * 1024
"""The most bytes of one answer; openings are small, unless they are made large on purpose."""
ASKED = 256
"""The most peers that are remembered as asked."""


def sign_yield(key: SigningKey, card: Card, place: TopicId, term: int) -> Yield:
    """Return a signed request for the voice after this term."""
    fields = (place, term, card)
    return Yield(*fields, key.sign(_TAG + _encode(fields)))


def check_yield(asked: Yield, deed: Deed, link: PeerId, now: float, check: CardCheck = check_card) -> None:
    """Raise `RemoteError` unless the deed lets the asking person speak, and their device is on this link.

    It counts on this link only, so that nobody can replay it from elsewhere.
    """
    card = asked.card
    if asked.place != deed.place:
        raise RemoteError(Reason.UNKNOWN, "another place")
    if card.device_key != link:
        raise RemoteError(Reason.REPLAYING, "the card is of another device than the one on this link")
    if deed.rank(card.person) is None:
        raise RemoteError(Reason.NOT_A_PUBLISHER, "the deed does not let this person speak")
    check_dates(card, now)
    check(card)
    verify(card.device_key, _TAG + _encode((asked.place, asked.term, card)), asked.sig)


class OpenMessages:
    """The messages of one place that this device has not ended yet, also across restarts."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._place = place
        self._cells = cells
        found = [(key[len(place) :], term) for key, term in cells.scan(_CELLS) if key.startswith(place)]
        self._terms = {int.from_bytes(key, "big"): int.from_bytes(term, "big") for key, term in found}

    def began(self, message: int, term: int) -> None:
        """Remember a message that stays open."""
        self._terms.pop(message, None)
        self._terms[message] = term
        self._cells.put(_CELLS, self._key(message), term.to_bytes(8, "big"))
        if len(self._terms) > KEPT:
            self.ended(next(iter(self._terms)))

    def ended(self, message: int) -> None:
        """Forget a message that has ended."""
        if self._terms.pop(message, None) is not None:
            self._cells.delete(_CELLS, self._key(message))

    def check(self, message: int, term: int) -> None:
        """Raise `Refused` if the term of a message is over."""
        if self._terms.get(message, term) != term:
            detail = f"message {message} was not ended when its term was: say it again"
            raise Refused(Reason.STALE, detail)

    def is_taken(self, message: int, term: int) -> bool:
        """Return whether an application may still use this number for a message of an older term."""
        return self._terms.get(message, term) != term

    def _key(self, message: int) -> bytes:
        return self._place + message.to_bytes(8, "big")


class TurnDue(PlaceTimer, frozen=True, gc=False):
    """A timer: the voice's time to hand over has passed, or a long repetition goes on."""


class Turn(Enum):
    """Whether and how we may speak."""

    OURS = "ours"
    OPEN = "open"
    """We may speak, by opening the next term."""
    WAIT = "wait"


class TermTakeover:
    """Gets the voice of one place, and hands it over."""

    def __init__(self, parts: Parts, entry_search: EntrySearch) -> None:
        self._parts = parts
        self._entry_search = entry_search
        self._purpose = f"voice {parts.id.hex()[:16]}"
        self._deadline: float | None = None
        """When we open the next term without an answer; None: we do not want to speak."""
        self._upto = 0
        """The first fragment that we lacked when the deadline was set."""
        self._asked: tuple[int, PeerId] | None = None
        self._granted: Yielded | None = None
        self._overrule = False
        self._held: PeerId | None = None
        self._unsure: float | None = None
        """The time until which we wait to hear whether a co-host spoke while we were away."""

    def note_restart(self, now: float) -> None:
        """Wait after a restart, in case a co-host spoke meanwhile, until a peer tells of the line."""
        self._unsure = now + self._parts.config.entry_timeout

    def note_news(self) -> None:
        """End the wait after a restart: a peer has told the state of the line."""
        self._unsure = None

    @property
    def is_wanted(self) -> bool:
        """Whether we wait for our turn."""
        return self._deadline is not None

    def turn(self, now: float) -> Turn:
        """Return whether we may speak now."""
        parts = self._parts
        if parts.terms.voice is None:
            return Turn.OPEN
        if self._unsure is not None and now < self._unsure:
            return Turn.WAIT
        if parts.is_voice and parts.holds_line:
            return Turn.OURS
        is_named = parts.deed.rank(parts.terms.voice.person) is not None
        if (self._overrule or not is_named) and parts.is_whole:
            return Turn.OPEN
        granted, head = self._granted, parts.fragments.standing.head
        if granted is not None and (granted.term, granted.head) == (parts.term, head) and parts.is_whole:
            return Turn.OPEN
        return Turn.OPEN if self._is_late(now) else Turn.WAIT

    def want_turn(self, now: float) -> None:
        """Ask for our turn: we have something to say."""
        if self._deadline is None:
            self._set_deadline(now)
        self.ask_voice(now)

    def set_timer(self, delay: float) -> None:
        """Check in a while whether it is our turn."""
        self._parts.out.set_timer(delay, TurnDue(self._parts.id))

    def ask_voice(self, now: float) -> None:
        """Ask the voice to hand over, once we hold everything it said; dial it if needed."""
        parts = self._parts
        until = max(self._deadline or now, self._unsure or now)
        again = max(0.05, until - now)
        voice, to_ask = parts.voice, (parts.term, parts.voice)
        if voice is None or voice == parts.context.peer or self._asked == to_ask or not parts.is_whole:
            self.set_timer(again)
            return
        if voice not in parts.context.links:
            if self._held != voice:
                self._release()
                self._held = voice
                self._parts.out.hold(voice, self._entry_search.contact(voice).hints, self._purpose)
            self.set_timer(again)
            return
        self._asked = (parts.term, voice)
        self._set_deadline(now)
        self._parts.out.send(voice, sign_yield(parts.context.key, parts.context.card, parts.id, parts.term))
        self.set_timer(parts.config.yield_timeout)

    def end_wish(self) -> None:
        """Stop asking: we have the voice, or no longer want it."""
        self._deadline = self._asked = self._granted = None
        self._overrule = False
        self._release()

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        self._deadline = None if self._deadline is None else self._deadline - seconds
        self._unsure = None if self._unsure is None else self._unsure - seconds

    # At the voice.

    def handle_yield(self, peer: PeerId, asked: Yield, under_way: bool, now: float) -> None:
        """Hand over to a peer that asks for the voice, and say nothing more in this term."""
        parts = self._parts
        try:
            check_yield(asked, parts.deed, peer, now, parts.context.card_check)
        except RemoteError as error:
            self._parts.record(Kind.REJECTED, peer, error.reason, f"hand-over: {error.detail}")
            self._answer(peer, asked.term, error.reason)
            return
        opening = parts.opened_by
        if asked.term != parts.term or opening is None or not (parts.is_voice or parts.yielded == opening):
            self._answer(peer, asked.term, Reason.STALE)
        elif under_way:
            self._answer(peer, asked.term, Reason.IN_USE)
        else:
            parts.keep_yielded(opening)
            note = f"handed over behind fragment {parts.fragments.standing.fragment} of term {asked.term}"
            self._parts.record(Kind.CONTROL, peer, None, note)
            self._answer(peer, asked.term, None)

    # At the peer that asked.

    def handle_yielded(self, peer: PeerId, answer: Yielded, now: float) -> Reason | None:
        """Take the voice's answer; return the reason why we may not speak, if it binds us."""
        parts = self._parts
        if self._asked != (answer.term, peer):
            note = "an answer to a hand-over that nobody asked for"
            self._parts.record(Kind.REJECTED, peer, Reason.SURPLUS, note)
            return None
        if answer.reason is None:
            self._granted = answer
            if answer.fragment > parts.fragments.standing.fragment:
                # On its way, or lost: nothing else comes behind it that would show the gap.
                parts.fragment_repair.note_unverified(answer.fragment, now)
                self.set_timer(parts.config.yield_timeout)
            return None
        self._parts.record(Kind.CONTROL, peer, answer.reason, f"hand-over of term {answer.term}")
        if answer.reason is Reason.STALE:
            return None  # it is not the voice any more: we shall hear who is
        voice = parts.terms.voice
        ours = parts.deed.rank(parts.context.author)
        theirs = None if voice is None else parts.deed.rank(voice.person)
        if ours is not None and (theirs is None or ours < theirs):
            self._overrule = True
            return None
        self.end_wish()
        return answer.reason

    # Inside.

    def _is_late(self, now: float) -> bool:
        """Return whether the voice did not answer in time. The deadline moves while we catch up."""
        if self._deadline is None or now + 1e-6 < self._deadline:
            return False
        if self._parts.is_whole or self._parts.fragments.upto <= self._upto:
            return True
        self._set_deadline(now)
        return False

    def _set_deadline(self, now: float) -> None:
        self._deadline = now + self._parts.config.yield_timeout
        self._upto = self._parts.fragments.upto

    def _answer(self, peer: PeerId, term: int, reason: Reason | None) -> None:
        standing = self._parts.fragments.standing
        told = (standing.fragment, standing.message, standing.head) if reason is None else (0, 0, None)
        self._parts.out.committed.send(peer, Yielded(self._parts.id, term, *told, reason))

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._parts.out.release(held, self._purpose)


class TermExchange:
    """The questions and answers about the terms of one place."""

    def __init__(self, parts: Parts, ingest: Ingest) -> None:
        self._parts = parts
        self._ingest = ingest
        self._asked: dict[PeerId, float] = {}
        """Peers that we asked, with the time from which on we may ask them again."""

    def ask_terms(self, peer: PeerId, now: float) -> None:
        """Ask a peer that seems to know more terms, unless it was asked just now."""
        if self._asked.get(peer, 0.0) > now or peer not in self._parts.context.links:
            return
        self._asked.pop(peer, None)
        self._asked[peer] = now + PAUSE
        if len(self._asked) > ASKED:
            del self._asked[next(iter(self._asked))]
        self._parts.out.send(peer, self._question())

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        for peer in self._asked:
            self._asked[peer] -= seconds

    def answer_question(self, peer: PeerId, ask: AskTerms, now: float) -> None:
        """Send a peer the terms that it does not know; ask it in turn if it knows one that we do not."""
        parts = self._parts
        after = self._common(ask)
        unknown = [each.opening for each in parts.terms.line if each.opening.term > after]
        units: list[Unverified] = []
        cards: dict[bytes, Card] = {}
        size = 0
        for opening in unknown[:TERMS]:
            unit = parts.unit_of(opening.event)
            size += 0 if unit is None else len(unit.tails[0])
            if unit is None or (units and size > ANSWER_BYTES):
                break
            units.append(unit)
            card = parts.context.cards.find(unit.author, unit.device)
            if card is not None:
                cards[unit.author + unit.device] = card
        told = TermsAre(parts.id, tuple(units), tuple(cards.values()), len(units) == len(unknown))
        if ask.known < parts.deed.version:
            self._parts.out.committed.send(peer, DeedIs(parts.deed))
        self._parts.out.committed.send(peer, told)
        if ask.line and not parts.terms.knows(ask.term, ask.line[0]):
            self.ask_terms(peer, now)

    def handle_terms(self, peer: PeerId, terms: TermsAre, now: float) -> bool:
        """Take in terms from a peer; return whether the line has changed."""
        parts = self._parts
        before = parts.opened_by
        try:
            for card in terms.cards:
                parts.context.cards.learn(card)
        except RemoteError as error:
            parts.record(Kind.REJECTED, peer, error.reason, f"decision: {error.detail}")
            return False
        for unit in terms.units:
            self._ingest.take(unit, None, peer, 1, 0, now)
        if not terms.done and parts.opened_by != before:
            self._asked.pop(peer, None)
            self.ask_terms(peer, now)
        return parts.opened_by != before

    def _question(self) -> AskTerms:
        parts = self._parts
        line = [each.opening.event for each in parts.terms.line[-TERMS:]]
        base = parts.terms.base
        first = FIRST_TERM if base is None else base.term
        return AskTerms(parts.id, parts.deed.version, first, parts.term, tuple(reversed(line)))

    def _common(self, ask: AskTerms) -> int:
        """Return the last term whose opening both know; else the one before the first of use to the peer."""
        theirs = dict.fromkeys(ask.line)
        common = [each.opening.term for each in self._parts.terms.line if each.opening.event in theirs]
        return max(common, default=ask.first - 1)

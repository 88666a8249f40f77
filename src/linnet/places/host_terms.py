"""Terms of hosts: asking for the voice, handing it over, opening a term, and telling others of terms.

A co-host that has something to say asks the device that speaks to hand over, and goes on where that one
stopped. Whoever handed over says nothing more in its term, also after a crash. If the voice is not within
reach, or does not answer in time, the next term is opened behind what is held here. A refusal binds those who
rank below the voice (decision 0018).

Fragments flow from the voice, and their numbers tell what is missing. A term that others opened while we
were away begins below the numbers that we have, so nothing would be missing: it has to be asked for. Whoever
asks names the openings of its last terms, whoever answers tells those after the last that both know. Openings
are signed, and each decides for itself which of them count, so it does not matter who tells them.

A message cannot outlive its term. What its application sends after that is refused, so that it knows to say
the message again; and nothing else that stays open gets its number, or the rest of the one would end up in
the other, since numbers are given anew behind a cut (decision 0018).
"""

from __future__ import annotations

from enum import Enum

from msgspec import msgpack

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.event.event import Unverified
from linnet.identity.cards import Card, CardCheck, check_card, check_dates
from linnet.identity.keys import SigningKey, verify
from linnet.machine.outbox import Outbox
from linnet.places.deed import Deed
from linnet.places.entry import EntrySearch, refused_record
from linnet.places.ingest import Ingest
from linnet.places.messages import TERMS, AskTerms, DeedIs, TermsAre, Yield, Yielded
from linnet.places.multicast.fragmentation import FIRST_TERM
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind, Record

_TAG = b"linnet/place/yield/1"
_encode = msgpack.Encoder().encode
_CELLS = "place unfinished"
KEPT = 256
"""Messages that are remembered; past this the oldest one is forgotten."""
PAUSE = 1.0
"""Seconds between two questions to the same peer."""
ANSWER_BYTES = 256 * 1024
"""Most bytes of one answer; openings are small, unless somebody wants them not to be."""
ASKED = 256
"""Peers that are remembered as asked."""


def sign_yield(key: SigningKey, card: Card, place: TopicId, term: int) -> Yield:
    """Ask for the voice after this term."""
    fields = (place, term, card)
    return Yield(*fields, key.sign(_TAG + _encode(fields)))


def check_yield(asked: Yield, deed: Deed, link: PeerId, now: float, check: CardCheck = check_card) -> None:
    """Raise `RemoteError` unless the deed lets whoever asks speak, and it is the device on this link.

    Only there, so that nobody can play it again from elsewhere.
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
    """What this device has not ended yet in one place, also across restarts."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._place = place
        self._cells = cells
        found = [(key[len(place) :], term) for key, term in cells.scan(_CELLS) if key.startswith(place)]
        self._terms = {int.from_bytes(key, "big"): int.from_bytes(term, "big") for key, term in found}

    def began(self, message: int, term: int) -> None:
        """A message stays open."""
        self._terms.pop(message, None)
        self._terms[message] = term
        self._cells.put(_CELLS, self._key(message), term.to_bytes(8, "big"))
        if len(self._terms) > KEPT:
            self.ended(next(iter(self._terms)))

    def ended(self, message: int) -> None:
        """Nothing more comes of it."""
        if self._terms.pop(message, None) is not None:
            self._cells.delete(_CELLS, self._key(message))

    def check(self, message: int, term: int) -> None:
        """Raise `Refused` if the term of a message is over."""
        if self._terms.get(message, term) != term:
            detail = f"message {message} was not ended when its term was: say it again"
            raise Refused(Reason.STALE, detail)

    def is_taken(self, message: int, term: int) -> bool:
        """Whether an application may still take this number for that of a message of an older term."""
        return self._terms.get(message, term) != term

    def _key(self, message: int) -> bytes:
        return self._place + message.to_bytes(8, "big")


class TurnDue(Timer, frozen=True, gc=False):
    """The time for the voice of a place to hand over is over, or what is to be said goes on now."""

    place: TopicId


class Turn(Enum):
    """Whether we may speak."""

    OURS = "ours"
    OPEN = "open"
    """By opening the next term."""
    WAIT = "wait"


class TermTakeover:
    """The way to the voice of one place, and away from it."""

    def __init__(self, parts: Parts, entry_search: EntrySearch, out: Outbox) -> None:
        self._parts = parts
        self._entry_search = entry_search
        self._out = out
        self._purpose = f"voice {parts.id.hex()[:16]}"
        self._deadline: float | None = None
        """When the next term is opened without an answer; None: we do not want to speak."""
        self._upto = 0
        """How far we were when the deadline was set."""
        self._asked: tuple[int, PeerId] | None = None
        self._granted: Yielded | None = None
        self._overrule = False
        self._held: PeerId | None = None
        self._unsure: float | None = None
        """Until when others may still tell us that somebody spoke while we were away."""

    def note_restart(self, now: float) -> None:
        """Somebody else may have spoken meanwhile: speak when somebody has said that nobody did."""
        self._unsure = now + self._parts.config.entry_timeout

    def note_news(self) -> None:
        """Somebody told how the line is."""
        self._unsure = None

    @property
    def is_wanted(self) -> bool:
        """Whether we wait for our turn."""
        return self._deadline is not None

    def turn(self, now: float) -> Turn:
        """Whether we may speak now."""
        parts = self._parts
        if parts.terms.voice is None:
            return Turn.OPEN
        if self._unsure is not None and now < self._unsure:
            return Turn.WAIT
        if parts.is_voice:
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
        """Look again in a while whether it is our turn."""
        self._out.set_timer(delay, TurnDue(self._parts.id))

    def ask_voice(self, now: float) -> None:
        """Ask the voice, once we know all that it said; dial it if we have to."""
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
                self._out.hold(voice, self._entry_search.contact(voice).hints, self._purpose)
            self.set_timer(again)
            return
        self._asked = (parts.term, voice)
        self._set_deadline(now)
        self._out.send(voice, sign_yield(parts.context.key, parts.context.card, parts.id, parts.term))
        self.set_timer(parts.config.yield_timeout)

    def end_wish(self) -> None:
        """Ask no more: we have the voice, or want it no longer."""
        self._deadline = self._asked = self._granted = None
        self._overrule = False
        self._release()

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        self._deadline = None if self._deadline is None else self._deadline - seconds
        self._unsure = None if self._unsure is None else self._unsure - seconds

    # At the voice.

    def handle_yield(self, peer: PeerId, asked: Yield, under_way: bool, now: float) -> None:
        """Let a peer speak that wants to, and say nothing more in this term."""
        parts = self._parts
        try:
            check_yield(asked, parts.deed, peer, now, parts.context.card_check)
        except RemoteError as error:
            self._record(Kind.REJECTED, peer, error.reason, f"hand-over: {error.detail}"[:200])
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
            self._record(Kind.CONTROL, peer, None, note)
            self._answer(peer, asked.term, None)

    # At who asked.

    def handle_yielded(self, peer: PeerId, answer: Yielded) -> Reason | None:
        """Take the voice's answer; why we may not speak, if it binds us."""
        parts = self._parts
        if self._asked != (answer.term, peer):
            note = "an answer to a hand-over that nobody asked for"
            self._record(Kind.REJECTED, peer, Reason.SURPLUS, note)
            return None
        if answer.reason is None:
            self._granted = answer
            if answer.fragment > parts.fragments.standing.fragment:
                self.set_timer(parts.config.yield_timeout)
            return None
        self._record(Kind.CONTROL, peer, answer.reason, f"hand-over of term {answer.term}")
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
        """Whether nobody answered in time. As long as we catch up there is time."""
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
        self._out.committed.send(peer, Yielded(self._parts.id, term, *told, reason))

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._out.release(held, self._purpose)

    def _record(self, kind: Kind, peer: PeerId, reason: Reason | None, note: str) -> None:
        self._out.record(Record(kind, self._parts.id, peer=peer, reason=reason, note=note))


class TermExchange:
    """Questions and answers about the terms of one place."""

    def __init__(self, parts: Parts, ingest: Ingest, out: Outbox) -> None:
        self._parts = parts
        self._ingest = ingest
        self._out = out
        self._asked: dict[PeerId, float] = {}
        """Whom we asked, and from when on we may again."""

    def ask_terms(self, peer: PeerId, now: float) -> None:
        """Ask somebody who seems to know more, unless it was asked just now."""
        if self._asked.get(peer, 0.0) > now or peer not in self._parts.context.links:
            return
        self._asked.pop(peer, None)
        self._asked[peer] = now + PAUSE
        if len(self._asked) > ASKED:
            del self._asked[next(iter(self._asked))]
        self._out.send(peer, self._question())

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        for peer in self._asked:
            self._asked[peer] -= seconds

    def answer_question(self, peer: PeerId, ask: AskTerms, now: float) -> None:
        """Tell a peer the terms that it does not know; ask in turn if it knows of one that we do not."""
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
            self._out.committed.send(peer, DeedIs(parts.deed))
        self._out.committed.send(peer, told)
        if ask.line and not parts.terms.knows(ask.term, ask.line[0]):
            self.ask_terms(peer, now)

    def handle_terms(self, peer: PeerId, terms: TermsAre, now: float) -> bool:
        """Take in terms that a peer tells; whether the line is another now."""
        parts = self._parts
        before = parts.opened_by
        try:
            for card in terms.cards:
                parts.context.cards.learn(card)
        except RemoteError as error:
            self._out.record(refused_record(parts, peer, error))
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
        """The last term that both have the same opening of; else the last one that is of no use to it."""
        theirs = dict.fromkeys(ask.line)
        common = [each.opening.term for each in self._parts.terms.line if each.opening.event in theirs]
        return max(common, default=ask.first - 1)

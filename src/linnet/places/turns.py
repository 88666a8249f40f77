"""Whose turn it is to speak: asking for the voice, handing it over, and opening a term when nobody does.

A co-host that has something to say asks the device that speaks to hand over, and goes on where that one
stopped. Whoever handed over says nothing more in its term, also after a crash. If the voice is not within
reach, or does not answer in time, the next term is opened behind what is held here. A refusal binds those who
rank below the voice (decision 0018).
"""

from __future__ import annotations

from enum import Enum

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.places.messages import Yield, Yielded
from linnet.places.multicast.yielding import check_yield, sign_yield
from linnet.places.parts import Parts
from linnet.places.visiting import Visiting
from linnet.trace.records import Kind, Record


class TurnDue(Timer, frozen=True, gc=False):
    """The time for the voice of a place to hand over is over, or what is to be said goes on now."""

    place: TopicId


class Turn(Enum):
    """Whether we may speak."""

    OURS = "ours"
    OPEN = "open"
    """By opening the next term."""
    WAIT = "wait"


class Turns:
    """The way to the voice of one place, and away from it."""

    def __init__(self, parts: Parts, visiting: Visiting, out: Outbox) -> None:
        self._parts = parts
        self._visiting = visiting
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
                self._out.hold(voice, self._visiting.contact(voice).hints, self._purpose)
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

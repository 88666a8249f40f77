"""Whose turn it is to speak: asking for the voice, handing it over, and opening a term when nobody does.

A co-host that has something to say asks the device that speaks to hand over, and goes on where that one
stopped. Whoever handed over says nothing more in its term, also after a crash. If the voice is not within
reach, or does not answer in time, the next term is opened behind what is held here. A refusal binds those who
rank below the voice (decision 0018).
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from linnet.core.effects import AfterCommit, Hold, Release, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.places.effects import PlacePromise
from linnet.places.messages import Yield, Yielded
from linnet.places.multicast.yielding import check_yield, sign_yield
from linnet.places.parts import Parts
from linnet.places.visiting import Visiting
from linnet.trace.records import Kind, Record

OWNER = "place.turn"

TurnEffect: TypeAlias = Send[Yield] | AfterCommit[PlacePromise] | Hold | Release | SetTimer[Tick] | Record


class Turn(Enum):
    """Whether we may speak."""

    OURS = "ours"
    OPEN = "open"
    """By opening the next term."""
    WAIT = "wait"


class Turns:
    """The way to the voice of one place, and away from it."""

    def __init__(self, parts: Parts, visiting: Visiting) -> None:
        self._parts = parts
        self._visiting = visiting
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
        self.tick = Tick(OWNER, "turn", parts.id)

    def restarted(self, now: float) -> None:
        """Somebody else may have spoken meanwhile: speak when somebody has said that nobody did."""
        self._unsure = now + self._parts.config.entry_timeout

    def sure(self) -> None:
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

    def want(self, now: float) -> list[TurnEffect]:
        """We have something to say."""
        if self._deadline is None:
            self._set_deadline(now)
        return self.ask(now)

    def ask(self, now: float) -> list[TurnEffect]:
        """Ask the voice, once we know all that it said; dial it if we have to."""
        parts = self._parts
        until = max(self._deadline or now, self._unsure or now)
        again = SetTimer(max(0.05, until - now), self.tick)
        voice, to_ask = parts.voice, (parts.term, parts.voice)
        if voice is None or voice == parts.context.peer or self._asked == to_ask or not parts.is_whole:
            return [again]
        if voice not in parts.context.links:
            if self._held == voice:
                return [again]
            released = self._released()
            self._held = voice
            return [*released, Hold(voice, self._visiting.contact(voice).hints, self._purpose), again]
        self._asked = (parts.term, voice)
        self._set_deadline(now)
        asked = sign_yield(parts.context.key, parts.context.card, parts.id, parts.term)
        return [Send(voice, asked), SetTimer(parts.config.yield_timeout, self.tick)]

    def done(self) -> list[TurnEffect]:
        """We have the voice, or want it no longer."""
        self._deadline = self._asked = self._granted = None
        self._overrule = False
        return self._released()

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        self._deadline = None if self._deadline is None else self._deadline - seconds
        self._unsure = None if self._unsure is None else self._unsure - seconds

    # At the voice.

    def asked(self, peer: PeerId, asked: Yield, under_way: bool, now: float) -> list[TurnEffect]:
        """Somebody wants to speak: let it, and say nothing more in this term."""
        parts = self._parts
        try:
            check_yield(asked, parts.deed, peer, now, parts.context.card_check)
        except RemoteError as error:
            note = f"hand-over: {error.detail}"[:200]
            record = Record(Kind.REJECTED, parts.id, peer=peer, reason=error.reason, note=note)
            return [record, self._answer(peer, asked.term, error.reason)]
        opening = parts.opened_by
        if asked.term != parts.term or opening is None or not (parts.is_voice or parts.yielded == opening):
            return [self._answer(peer, asked.term, Reason.STALE)]
        if under_way:
            return [self._answer(peer, asked.term, Reason.IN_USE)]
        parts.keep_yielded(opening)
        note = f"handed over behind fragment {parts.fragments.standing.fragment} of term {asked.term}"
        return [Record(Kind.CONTROL, parts.id, peer=peer, note=note), self._answer(peer, asked.term, None)]

    # At who asked.

    def answered(self, peer: PeerId, answer: Yielded) -> tuple[Reason | None, list[TurnEffect]]:
        """The voice's answer; why we may not speak, if it binds us."""
        parts = self._parts
        if self._asked != (answer.term, peer):
            note = "an answer to a hand-over that nobody asked for"
            record = Record(Kind.REJECTED, parts.id, peer=peer, reason=Reason.SURPLUS, note=note)
            return None, [record]
        if answer.reason is None:
            self._granted = answer
            if answer.fragment <= parts.fragments.standing.fragment:
                return None, []
            return None, [SetTimer(parts.config.yield_timeout, self.tick)]
        note = f"hand-over of term {answer.term}"
        record = Record(Kind.CONTROL, parts.id, peer=peer, reason=answer.reason, note=note)
        if answer.reason is Reason.STALE:
            return None, [record]  # it is not the voice any more: we shall hear who is
        voice = parts.terms.voice
        ours = parts.deed.rank(parts.context.author)
        theirs = None if voice is None else parts.deed.rank(voice.person)
        if ours is not None and (theirs is None or ours < theirs):
            self._overrule = True
            return None, [record]
        return answer.reason, [record, *self.done()]

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

    def _answer(self, peer: PeerId, term: int, reason: Reason | None) -> AfterCommit[PlacePromise]:
        standing = self._parts.fragments.standing
        told = (standing.fragment, standing.message, standing.head) if reason is None else (0, 0, None)
        return AfterCommit((Send(peer, Yielded(self._parts.id, term, *told, reason)),))

    def _released(self) -> list[TurnEffect]:
        held, self._held = self._held, None
        return [] if held is None else [Release(held, self._purpose)]

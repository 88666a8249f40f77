"""Which revocations of devices stand, and what they silence (docs/adr/0025).

A revocation silences whatever its device says that is not in the revocation's own past: along control heads,
whatever times are written. Times are the author's word, and the author is a thief.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.rooms.access.chains import Chains
from linnet.rooms.access.facts import Fact, StateKey
from linnet.rooms.content import Member, Revoked

Voice: TypeAlias = tuple[AuthorId, DeviceId]
"""A device of a person."""


class _Word(Struct, frozen=True, gc=False):
    """One revocation."""

    event: EventId
    by: Voice
    of: Voice
    place: StateKey


class Revocations:
    """The revocations of one room, and all that the devices said that they name."""

    def __init__(self, past: Chains) -> None:
        self._past = past
        self._words: list[_Word] = []
        self._said: dict[Voice, int] = {}
        """What each device said, as a mask of the past."""

    def add(self, fact: Fact) -> None:
        """An event of the control DAG, which has its place in the past already."""
        content = fact.content
        voices = {(fact.sender, fact.device): None}
        if isinstance(content, Member) and content.ticket is not None:
            # A ticket is the word of the device that signed it: it has no place in the DAG but its join's.
            voices[content.ticket.inviter, content.ticket.card.device] = None
        for voice in voices:
            self._said[voice] = self._said.get(voice, 0) | self._past.bit(fact.id)
        if isinstance(content, Revoked):
            of = (fact.sender, content.revocation.device)
            self._words.append(_Word(fact.id, (fact.sender, fact.device), of, fact.place))

    def silenced(self, within: int) -> int:
        """Of a set of events, those that a revocation in the same set silences. Masks of the past."""
        mask, standing = 0, 0
        for word in self._standing(within):
            mask |= self._against(word)
            standing |= self._past.bit(word.event)
        return mask & within & ~standing

    def places(self, within: int) -> dict[StateKey, EventId]:
        """Where the revocations of a set belong in its state; of several for one place the smallest id."""
        found: dict[StateKey, EventId] = {}
        for word in self._words:
            if self._past.bit(word.event) & within:
                found[word.place] = min(word.event, found.get(word.place, word.event))
        return found

    def of(self, person: AuthorId, device: DeviceId) -> list[EventId]:
        """All revocations of a device, whether they stand or not."""
        return [word.event for word in self._words if word.of == (person, device)]

    def _against(self, word: _Word) -> int:
        """What a revocation silences if it stands."""
        return self._said.get(word.of, 0) & ~self._past.mask(word.event)

    def _standing(self, within: int) -> list[_Word]:
        """Revocations that no other which stands silences; where they silence each other, the elder's.

        Step by step: who is silenced by nobody stands, and what these silence is out. What is left then
        contests itself in a circle. There the words of the eldest devices stand.
        """
        past = self._past
        left = {word.event: word for word in self._words if past.bit(word.event) & within}
        if len(left) < 2:
            return list(left.values())
        against = {event: self._against(word) for event, word in left.items()}
        standing: list[_Word] = []
        while left:
            free = self._unopposed(left, against) or self._eldest(left, within)
            standing += free
            gone = 0
            for word in free:
                gone |= against[word.event] | past.bit(word.event)
            left = {event: word for event, word in left.items() if not past.bit(event) & gone}
        return standing

    def _unopposed(self, left: dict[EventId, _Word], against: dict[EventId, int]) -> list[_Word]:
        threatened = 0
        for event in left:
            threatened |= against[event]
        return [word for event, word in left.items() if not self._past.bit(event) & threatened]

    def _eldest(self, left: dict[EventId, _Word], within: int) -> list[_Word]:
        """The words of devices to which none of the others is elder; all, if they are so in a circle."""
        voices = list(dict.fromkeys(word.by for word in left.values()))
        eldest = {
            one: None
            for one in voices
            if not any(self._is_elder(other, one, within) for other in voices if other != one)
        }
        return [word for word in left.values() if word.by in eldest] or list(left.values())

    def _is_elder(self, one: Voice, other: Voice, within: int) -> bool:
        """Whether the other spoke first when it knew of this one already, and not the reverse.

        A device can add first words of its own on old heads, but none to those of the other.
        """
        if one[0] != other[0]:
            return False
        mine, theirs = self._first(one, within), self._first(other, within)
        return self._knew(theirs, one, within) and not self._knew(mine, other, within)

    def _first(self, voice: Voice, within: int) -> list[EventId]:
        """What a device said without having said anything before."""
        own = self._said.get(voice, 0) & within
        return [
            event for event in self._past.events(own) if self._past.mask(event) & own == self._past.bit(event)
        ]

    def _knew(self, events: Iterable[EventId], voice: Voice, within: int) -> bool:
        return bool(self._past.union(events) & self._said.get(voice, 0) & within)

"""Questions that wait for an answer: each on a link, which is dialled and held while it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId
from linnet.core.timers import Tick
from linnet.overlay.kademlia.messages import KademliaQuestion

OWNER = "kademlia"
ASKED = "asked"
PURPOSE = "kademlia"
_NUMBER_BYTES = 8

QuestionsEffect: TypeAlias = Send[KademliaQuestion] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick]
Phrase: TypeAlias = Callable[[int], KademliaQuestion]
"""A question, given its number."""


class About(NamedTuple):
    """What a question is for."""

    what: str
    number: int


class _Question(NamedTuple):
    peer: PeerId
    about: About
    message: KademliaQuestion
    sent: bool


class Lost(NamedTuple):
    """A question that nobody will answer."""

    peer: PeerId
    about: About


class Questions:
    """All that we have asked and not heard of yet. Whoever asks bounds how many."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._number = 0
        self._open: dict[int, _Question] = {}
        self._by_peer: dict[PeerId, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def ask(self, contact: Contact, about: About, phrase: Phrase, is_linked: bool) -> list[QuestionsEffect]:
        """Ask on the link that there is, or on one that is dialled."""
        self._number += 1
        number, peer = self._number, contact.peer
        message = phrase(number)
        self._open[number] = _Question(peer, about, message, is_linked)
        theirs = self._by_peer.setdefault(peer, {})
        effects: list[QuestionsEffect] = [] if theirs else [Hold(peer, contact.hints, PURPOSE)]
        theirs[number] = None
        if is_linked:
            effects.append(Send(peer, message))
        return [*effects, SetTimer(self._patience, _tick(number))]

    def link_up(self, peer: PeerId) -> list[QuestionsEffect]:
        """What waited for this link can be asked."""
        effects: list[QuestionsEffect] = []
        for number in self._by_peer.get(peer, {}):
            question = self._open[number]
            if not question.sent:
                self._open[number] = question._replace(sent=True)
                effects.append(Send(peer, question.message))
        return effects

    def answered(self, peer: PeerId, number: int) -> tuple[About | None, list[QuestionsEffect]]:
        """What an answer is about; None if this peer was not asked that."""
        question = self._open.get(number)
        if question is None or question.peer != peer or not question.sent:
            return None, []
        return question.about, [CancelTimer(_tick(number)), *self._close(number)]

    def lost(self, peer: PeerId) -> tuple[list[Lost], list[QuestionsEffect]]:
        """A link is gone or never came: nothing that it was to carry is answered."""
        gone, effects = [], list[QuestionsEffect]()
        for number in list(self._by_peer.get(peer, {})):
            gone.append(Lost(peer, self._open[number].about))
            effects += (CancelTimer(_tick(number)), *self._close(number))
        return gone, effects

    def fired(self, tick: Tick) -> tuple[Lost | None, list[QuestionsEffect]]:
        """A question was not answered in time."""
        number = int.from_bytes(tick.key, "big")
        question = self._open.get(number)
        if question is None:
            return None, []
        return Lost(question.peer, question.about), self._close(number)

    def _close(self, number: int) -> list[QuestionsEffect]:
        peer = self._open.pop(number).peer
        theirs = self._by_peer[peer]
        del theirs[number]
        if theirs:
            return []
        del self._by_peer[peer]
        return [Release(peer, PURPOSE)]


def _tick(number: int) -> Tick:
    return Tick(OWNER, ASKED, number.to_bytes(_NUMBER_BYTES, "big"))

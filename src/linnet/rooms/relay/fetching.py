"""Getting control events that a relay lacks: from who named them, from other relays, from members.

The first question is always "what lies beyond my heads", since what is missing seldom comes alone; if
that did not bring it, it is asked for by its id. Who is no member as far as we know is not told our heads:
it is asked by id, for what it has named itself. Who does not answer in time lets the next have its turn.
After a bounded number of turns an event is given up, so that nobody waits long for an answer. Whatever names
it again soon after is told so without another question: answers name what they build on, and would lead to
questions without end where an event cannot be had, or is not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from linnet.core.effects import CancelTimer, Send, SetTimer
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.timers import Tick
from linnet.delivery.causal_messages import IDS_PER_MESSAGE, Given, Want
from linnet.identity.cards import Card
from linnet.rooms.config import RelayConfig
from linnet.rooms.messages import AskControl, ControlPage

OWNER = "relay.fetching"
_PAGES = 1000
"""Pages that one question may take: more than the largest control DAG has."""
_PATIENCE = 5
"""While pages of an answer come, an event is waited for so many times longer than if none did."""

_REST_MOST = 60.0
"""Seconds for which an event that was given up is not asked for, at most: doubling up to this."""
_RESTING = 1024
"""Events that were given up and are remembered; beyond this the oldest are forgotten."""

_STRANGER_PAGES = 64
"""Answers that are taken in a row of who is no member as far as we know: its join builds on a few events."""

FetchEffect = Send[AskControl | Want] | SetTimer[Tick] | CancelTimer[Tick]


class _Sought:
    """A control event that something waits for."""

    __slots__ = ("asked", "due", "is_resting", "last", "turns")

    def __init__(self, due: float, last: float) -> None:
        self.turns = 1
        self.due = due
        """When the next is asked."""
        self.last = last
        """How long it is waited for while pages come."""
        self.asked: dict[PeerId, None] = {}
        self.is_resting = False
        """Whether nobody is asked for it: it was given up a short while ago."""


class _Question:
    """What one peer was asked and has not wholly answered."""

    __slots__ = ("by_id", "due", "named", "number", "pages")

    def __init__(self, number: int, due: float) -> None:
        self.number = number
        self.due = due
        self.pages = 0
        self.by_id = False
        self.named: dict[EventId, None] | None = None
        """Of who is no member: what it was asked for, of all that it has named."""


class Fetching:
    """The questions of one room."""

    def __init__(
        self, room: TopicId, config: RelayConfig, card: Card, heads: Callable[[], tuple[EventId, ...]]
    ) -> None:
        self._room = room
        self._config = config
        self._card = card
        self._heads = heads
        self._sought: dict[EventId, _Sought] = {}
        self._questions: dict[PeerId, _Question] = {}
        self._resting: dict[EventId, tuple[float, float]] = {}
        """What was given up: for how long it rests, and since when."""
        self._number = 0
        self._armed: float | None = None
        """When the timer fires."""

    @property
    def sought(self) -> tuple[EventId, ...]:
        """What is missing."""
        return tuple(self._sought)

    def seek(
        self, ids: Iterable[EventId], source: PeerId | None, now: float, member: bool = True
    ) -> list[FetchEffect]:
        """Something waits for these; ask first who named them, a member or not, if it can be asked."""
        new = [each for each in ids if each not in self._sought]
        if not new:
            return []
        config = self._config
        last = now + _PATIENCE * config.fetch_tries * config.fetch_timeout
        for each in new:
            sought = self._sought[each] = _Sought(now + config.fetch_timeout, last)
            if self._rests(each, now):
                sought.is_resting, sought.turns = True, config.fetch_tries
            if source is not None:
                sought.asked[source] = None
        asked: list[FetchEffect] = []
        if source is not None and not all(self._sought[each].is_resting for each in new):
            asked = self.compare(source, now) if member else self.ask_stranger(source, new, now)
        return [*asked, *self._arm(now)]

    def compare(self, peer: PeerId, now: float) -> list[FetchEffect]:
        """Ask a peer for all that it knows beyond our heads, unless it is being asked."""
        if peer in self._questions:
            return []
        self._number += 1
        self._questions[peer] = _Question(self._number, now + self._config.fetch_timeout)
        return [self._ask(peer, self._number), *self._arm(now)]

    def ask_stranger(self, peer: PeerId, named: Iterable[EventId], now: float) -> list[FetchEffect]:
        """Ask a peer that may be a member for what it has named, unless it is being asked."""
        if peer in self._questions:
            return []
        self._number += 1
        question = self._questions[peer] = _Question(self._number, now + self._config.fetch_timeout)
        question.by_id = True
        question.named = dict.fromkeys(tuple(named)[:IDS_PER_MESSAGE])
        return [Send(peer, Want(self._room, self._number, tuple(question.named))), *self._arm(now)]

    def found(self, event: EventId) -> None:
        """A control event is known now."""
        self._sought.pop(event, None)
        self._resting.pop(event, None)

    def expects(self, peer: PeerId, request: int) -> bool:
        """Whether an answer is one to a question of ours."""
        question = self._questions.get(peer)
        return question is not None and question.number == request

    def is_asking(self, peer: PeerId) -> bool:
        """Whether a peer owes us an answer."""
        return peer in self._questions

    def page(self, peer: PeerId, page: ControlPage, news: bool, now: float) -> tuple[list[FetchEffect], bool]:
        """A page was taken in; what to ask next, and whether this peer has told all that it has."""
        question = self._questions[peer]
        question.pages += 1
        if question.named is not None:
            return self._answered(peer, now), True
        if page.more and news and question.pages < _PAGES:
            self._again(question, now)
            return [self._ask(peer, question.number)], False
        missing = tuple(id for id, sought in self._sought.items() if not sought.is_resting)[:IDS_PER_MESSAGE]
        if missing and page.reason is None:
            self._again(question, now)
            question.by_id = True
            return [Send(peer, Want(self._room, question.number, missing))], False
        return self._answered(peer, now), True

    def given(self, peer: PeerId, given: Given, now: float) -> list[FetchEffect]:
        """What was asked for by id was taken in."""
        question = self._questions[peer]
        if not question.by_id:
            return []
        question.pages += 1
        if question.named is not None and question.pages < _STRANGER_PAGES:
            named = question.named
            fresh = [id for id, sought in self._sought.items() if peer in sought.asked and id not in named]
            if fresh:
                named.update(dict.fromkeys(fresh[:IDS_PER_MESSAGE]))
                self._again(question, now)
                return [Send(peer, Want(self._room, question.number, tuple(fresh[:IDS_PER_MESSAGE])))]
        return self._answered(peer, now)

    def down(self, peer: PeerId) -> None:
        """The link to a peer is gone, and its answer with it."""
        self._questions.pop(peer, None)

    def fired(self, candidates: Iterable[PeerId], now: float) -> tuple[list[FetchEffect], list[EventId]]:
        """It is time for the next turns; the second are the events that are given up."""
        self._armed = None
        for peer in [peer for peer, question in self._questions.items() if question.due <= now]:
            del self._questions[peer]
        effects, lost = self._turns(list(candidates), now)
        for each in lost:
            if not self._sought.pop(each).is_resting:
                self._rest(each, now)
        return [*effects, *self._arm(now)], lost

    def stop(self) -> list[FetchEffect]:
        """Nobody waits any more."""
        self._sought.clear()
        self._questions.clear()
        self._resting.clear()
        armed, self._armed = self._armed, None
        return [] if armed is None else [CancelTimer(self._tick)]

    def _rests(self, event: EventId, now: float) -> bool:
        """Whether an event was given up a short while ago. A clock that was put back ends that."""
        rest, since = self._resting.get(event, (0.0, now))
        return 0.0 <= now - since < rest

    def _rest(self, event: EventId, now: float) -> None:
        rest, _ = self._resting.pop(event, (self._config.fetch_timeout, 0.0))
        self._resting[event] = (min(2 * rest, _REST_MOST), now)
        while len(self._resting) > _RESTING:
            del self._resting[next(iter(self._resting))]

    def _turns(self, candidates: list[PeerId], now: float) -> tuple[list[FetchEffect], list[EventId]]:
        effects: list[FetchEffect] = []
        lost: list[EventId] = []
        for event, sought in self._sought.items():
            if sought.due > now:
                continue
            if sought.turns >= self._config.fetch_tries:
                lost.append(event)
                continue
            sought.turns += 1
            sought.due = now + self._config.fetch_timeout
            fresh = [peer for peer in candidates if peer not in sought.asked] or candidates
            if fresh:
                sought.asked[fresh[0]] = None
                effects += self.compare(fresh[0], now)
        return effects, lost

    def _answered(self, peer: PeerId, now: float) -> list[FetchEffect]:
        """This peer has no more to say: what it was asked for and did not have is the next one's."""
        del self._questions[peer]
        for sought in self._sought.values():
            if peer in sought.asked and sought.due > now:
                sought.due = now
        return self._arm(now)

    def _again(self, question: _Question, now: float) -> None:
        question.due = now + self._config.fetch_timeout
        for sought in self._sought.values():
            sought.due = min(max(sought.due, question.due), sought.last)

    def _ask(self, peer: PeerId, number: int) -> Send[AskControl]:
        return Send(peer, AskControl(self._room, number, self._heads(), None, self._card))

    def _arm(self, now: float) -> list[FetchEffect]:
        due = [each.due for each in self._sought.values()]
        due += [each.due for each in self._questions.values()]
        if not due or (self._armed is not None and self._armed <= min(due)):
            return []
        self._armed = min(due)
        return [SetTimer(max(0.0, self._armed - now), self._tick)]

    @property
    def _tick(self) -> Tick:
        return Tick(OWNER, "ask", self._room)

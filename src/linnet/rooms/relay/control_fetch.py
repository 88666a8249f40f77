"""Fetches control events that a relay lacks: from peers that named them, other relays, and members.

The first request is always for the events beyond our heads, since a missing event seldom comes alone; if
that did not bring it, it is requested by its id. A peer that is no member as far as we know is not told our
heads: it is asked by id, for events that it has named itself. If a peer does not answer in time, the next has
its turn.

After a bounded number of turns an event is given up, so that nobody waits long for an answer. An event that
names it again soon after is refused without another request: answers name the events they build on, and would
lead to requests without end for an event that cannot be had, or is not accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.delivery.messages import IDS_PER_MESSAGE, Want
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.rooms.config import RelayConfig
from linnet.rooms.messages import AskControl, ControlPage, RoomTimer

_PAGES = 1000
"""The most pages in answer to one request: more than the largest control DAG has."""
_PATIENCE = 5
"""How many times longer an event is waited for while pages of an answer come than if none did."""

_REST_MOST = 60.0
"""The most seconds for which an event that was given up is not requested: they double up to this."""
_RESTING = 1024
"""The most given up events that are remembered; beyond this the oldest are forgotten."""

_STRANGER_PAGES = 64
"""The most answers in a row from a peer that is no known member: its join builds on few events."""


class FetchDue(RoomTimer, frozen=True, gc=False):
    """Timer: the time to answer requests for missing control events of a room has run out."""


class _Sought(Struct):
    """A missing control event that is sought."""

    due: float
    """The time at which the next peer is asked."""
    last: float
    """The time until which it is waited for while pages come."""
    turns: int = 1
    asked: dict[PeerId, None] = {}
    is_resting: bool = False
    """Whether no peer is asked for it, since it was given up a short while ago."""


class _Question(Struct):
    """An open request to one peer."""

    number: int
    due: float
    pages: int = 0
    by_id: bool = False
    named: dict[EventId, None] | None = None
    """For a peer that is no member: the events it was asked for, out of those it has named."""


class ControlFetch:
    """Fetches missing control events of one room from its peers, in turns."""

    def __init__(
        self,
        room: TopicId,
        config: RelayConfig,
        card: Card,
        heads: Callable[[], tuple[EventId, ...]],
        out: Outbox,
    ) -> None:
        self._room = room
        self._out = out
        self._config = config
        self._card = card
        self._heads = heads
        self._sought: dict[EventId, _Sought] = {}
        self._questions: dict[PeerId, _Question] = {}
        self._resting: dict[EventId, tuple[float, float]] = {}
        """The events that were given up, with the seconds of their rest and the time it began."""
        self._number = 0
        self._armed: float | None = None
        """The time at which the timer fires; None if it is not set."""

    @property
    def sought(self) -> tuple[EventId, ...]:
        """The control events that are sought."""
        return tuple(self._sought)

    def seek_events(
        self, ids: Iterable[EventId], source: PeerId | None, now: float, member: bool = True
    ) -> None:
        """Seek control events that others wait for; ask their source, which named them, first."""
        new = [each for each in ids if each not in self._sought]
        if not new:
            return
        config = self._config
        last = now + _PATIENCE * config.fetch_tries * config.fetch_timeout
        for each in new:
            sought = self._sought[each] = _Sought(now + config.fetch_timeout, last)
            if self._rests(each, now):
                sought.is_resting, sought.turns = True, config.fetch_tries
            if source is not None:
                sought.asked[source] = None
        if source is not None and not all(self._sought[each].is_resting for each in new):
            if member:
                self.ask_beyond_heads(source, now)
            else:
                self.ask_stranger(source, new, now)
        self._arm_timer(now)

    def ask_beyond_heads(self, peer: PeerId, now: float) -> None:
        """Ask a peer for all control events beyond our heads, unless a request to it is open."""
        if peer in self._questions:
            return
        self._number += 1
        self._questions[peer] = _Question(self._number, now + self._config.fetch_timeout)
        self._ask_control(peer, self._number)
        self._arm_timer(now)

    def ask_stranger(self, peer: PeerId, named: Iterable[EventId], now: float) -> None:
        """Ask a peer that may be a member for the events it has named, unless a request to it is open."""
        if peer in self._questions:
            return
        self._number += 1
        question = self._questions[peer] = _Question(self._number, now + self._config.fetch_timeout)
        question.by_id = True
        question.named = dict.fromkeys(tuple(named)[:IDS_PER_MESSAGE])
        self._out.send(peer, Want(self._room, self._number, tuple(question.named)))
        self._arm_timer(now)

    def note_found(self, event: EventId) -> None:
        """Stop seeking a control event that is known now."""
        self._sought.pop(event, None)
        self._resting.pop(event, None)

    def expects_answer(self, peer: PeerId, request: int) -> bool:
        """Return whether an answer belongs to our open request to this peer."""
        question = self._questions.get(peer)
        return question is not None and question.number == request

    def is_asking(self, peer: PeerId) -> bool:
        """Return whether a peer owes us an answer."""
        return peer in self._questions

    def handle_page(self, peer: PeerId, page: ControlPage, news: bool, now: float) -> bool:
        """Ask for more after a page that was taken in; return whether this peer has sent all that it has."""
        question = self._questions[peer]
        question.pages += 1
        if question.named is not None:
            self._end_question(peer, now)
            return True
        if page.more and news and question.pages < _PAGES:
            self._again(question, now)
            self._ask_control(peer, question.number)
            return False
        missing = tuple(id for id, sought in self._sought.items() if not sought.is_resting)[:IDS_PER_MESSAGE]
        if missing and page.reason is None:
            self._again(question, now)
            question.by_id = True
            self._out.send(peer, Want(self._room, question.number, missing))
            return False
        self._end_question(peer, now)
        return True

    def handle_given(self, peer: PeerId, now: float) -> None:
        """Ask for more after events that were requested by id and were taken in."""
        question = self._questions[peer]
        if not question.by_id:
            return
        question.pages += 1
        if question.named is not None and question.pages < _STRANGER_PAGES:
            named = question.named
            fresh = [id for id, sought in self._sought.items() if peer in sought.asked and id not in named]
            if fresh:
                named.update(dict.fromkeys(fresh[:IDS_PER_MESSAGE]))
                self._again(question, now)
                self._out.send(peer, Want(self._room, question.number, tuple(fresh[:IDS_PER_MESSAGE])))
                return
        self._end_question(peer, now)

    def handle_link_down(self, peer: PeerId) -> None:
        """Stop waiting for the answer of a peer whose link is gone."""
        self._questions.pop(peer, None)

    def ask_next(self, candidates: Iterable[PeerId], now: float) -> list[EventId]:
        """Ask the next candidates for the events that are due; return the events that are given up."""
        self._armed = None
        for peer in [peer for peer, question in self._questions.items() if question.due <= now]:
            del self._questions[peer]
        lost = self._take_turns(list(candidates), now)
        for each in lost:
            if not self._sought.pop(each).is_resting:
                self._rest(each, now)
        self._arm_timer(now)
        return lost

    def stop(self) -> None:
        """Stop seeking any events."""
        self._sought.clear()
        self._questions.clear()
        self._resting.clear()
        if self._armed is not None:
            self._armed = None
            self._out.cancel_timer(FetchDue(self._room))

    def _rests(self, event: EventId, now: float) -> bool:
        """Return whether an event was given up a short while ago. A clock that is set back ends its rest."""
        rest, since = self._resting.get(event, (0.0, now))
        return 0.0 <= now - since < rest

    def _rest(self, event: EventId, now: float) -> None:
        rest, _ = self._resting.pop(event, (self._config.fetch_timeout, 0.0))
        self._resting[event] = (min(2 * rest, _REST_MOST), now)
        while len(self._resting) > _RESTING:
            del self._resting[next(iter(self._resting))]

    def _take_turns(self, candidates: list[PeerId], now: float) -> list[EventId]:
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
                self.ask_beyond_heads(fresh[0], now)
        return lost

    def _end_question(self, peer: PeerId, now: float) -> None:
        """Close the request to a peer that has nothing more to send, and let others have their turn."""
        del self._questions[peer]
        for sought in self._sought.values():
            if peer in sought.asked and sought.due > now:
                sought.due = now
        self._arm_timer(now)

    def _again(self, question: _Question, now: float) -> None:
        question.due = now + self._config.fetch_timeout
        for sought in self._sought.values():
            sought.due = min(max(sought.due, question.due), sought.last)

    def _ask_control(self, peer: PeerId, number: int) -> None:
        self._out.send(peer, AskControl(self._room, number, self._heads(), None, self._card))

    def _arm_timer(self, now: float) -> None:
        due = [each.due for each in self._sought.values()]
        due += [each.due for each in self._questions.values()]
        if not due or (self._armed is not None and self._armed <= min(due)):
            return
        self._armed = min(due)
        self._out.set_timer(max(0.0, self._armed - now), FetchDue(self._room))

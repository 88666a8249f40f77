"""What a member shows of a room to those who may see it: pages of events, bounded in number and bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.cards import CardBook
from linnet.delivery.causal_messages import Beyond, Further, Given, Want
from linnet.delivery.dag import Dag
from linnet.delivery.walk import Walks
from linnet.event.event import Unverified
from linnet.identity.cards import Card
from linnet.rooms.access.control_dag import ControlDag
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import AskControl, ControlPage
from linnet.rooms.room_store import RoomMemory

HEADS = 256
"""Heads in one message."""


class Page(NamedTuple):
    """Events as they travel, with the cards that they need, and what had no place."""

    units: tuple[Unverified, ...]
    cards: tuple[Card, ...]
    unknown: tuple[EventId, ...]
    rest: int


class Serving:
    """Answers about one room."""

    def __init__(
        self,
        room: TopicId,
        memory: RoomMemory,
        cards: CardBook,
        control: ControlDag,
        dag: Dag,
        config: RoomsConfig,
    ) -> None:
        self._room = room
        self._memory = memory
        self._cards = cards
        self._control = control
        self._dag = dag
        self._walks = Walks(dag)
        self._config = config

    def want(self, want: Want, control_only: bool) -> Given:
        """Events by id; to a relay only control events."""
        ids = [each for each in want.ids if not control_only or self._control.knows(each)]
        page = self._page(ids)
        unknown = (*page.unknown, *(each for each in want.ids if each not in ids))
        held_by_others = tuple(each for each in unknown if control_only or not self._dag.is_settled(each))
        reason = Reason.TOO_LARGE if page.rest else (Reason.NOT_HELD if unknown else None)
        if reason is Reason.NOT_HELD and not held_by_others:
            reason = Reason.RETENTION  # Refused or expired: whoever waits for these waits in vain.
        else:
            unknown = held_by_others  # Of the others another question is answered.
        return Given(self._room, want.request, page.units, page.cards, unknown, reason)

    def down(self, peer: PeerId) -> None:
        """Nobody walks on over a link that is gone."""
        self._walks.forget(peer)

    def beyond(self, peer: PeerId, asked: Beyond) -> Further:
        """What we know that lies beyond these heads."""
        ids, more, unknown = self._walks.page(peer, asked.heads, self._config.page_events)
        page = self._page(ids)
        return Further(
            self._room, asked.request, page.units, page.cards, more or page.rest > 0, unknown[:HEADS]
        )

    def control(
        self, asked: AskControl, relays: tuple[Contact, ...], upto: EventId | None = None
    ) -> ControlPage:
        """Control events beyond these heads; with `upto`, only this one and what it builds on."""
        control = self._control
        ids = control.between(tuple(each for each in asked.heads if control.knows(each)))
        if upto is not None:
            ids = [each for each in ids if each == upto or control.is_before(each, upto)]
        page = self._page(ids)
        heads = control.heads[:HEADS] if upto is None else (upto,)
        return ControlPage(
            self._room, asked.request, page.units, page.cards, page.rest > 0, heads, relays[:64], None
        )

    def refuse(self, asked: AskControl, reason: Reason) -> ControlPage:
        """Nothing of it."""
        return ControlPage(self._room, asked.request, (), (), False, (), (), reason)

    def _page(self, ids: Iterable[EventId]) -> Page:
        units: list[Unverified] = []
        cards: dict[bytes, Card] = {}
        unknown: list[EventId] = []
        size, rest = 0, 0
        for each in ids:
            if rest or len(units) >= self._config.page_events:
                rest += 1
                continue
            unit = self._memory.get(each)
            if unit is None:
                unknown.append(each)
                continue
            size += sum(map(len, unit.tails)) + 200
            if units and size > self._config.page_bytes:
                rest += 1
                continue
            units.append(unit)
            card = self._cards.find(unit.author, unit.device)
            if card is not None:
                cards[unit.author + unit.device] = card
        return Page(tuple(units), tuple(cards.values()), tuple(unknown), rest)

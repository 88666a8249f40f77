"""What a join waits for: the room's control DAG, page by page, and somebody's word that our join is in it."""

from __future__ import annotations

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.event.event import Verified
from linnet.rooms.desk import Desk
from linnet.rooms.effects import RoomEffect
from linnet.rooms.joining import Joining
from linnet.rooms.messages import ControlPage, Greet, RelayTaken, RoomMessage
from linnet.rooms.messages import Refused as RefusedMessage
from linnet.rooms.registry import Registry
from linnet.trace.records import Kind, Record


class Entering:
    """Takes the answers to all joins of a node that are under way."""

    def __init__(self, registry: Registry, desk: Desk) -> None:
        self._registry = registry
        self._desk = desk
        self._context = registry.setting.context

    def heard(
        self, joining: Joining, peer: PeerId, message: RoomMessage, now: float
    ) -> list[RoomEffect] | None:
        """What a join waits for; None if this is something else."""
        match message:
            case ControlPage() if joining.joined is None:
                return self._on_first_page(joining, peer, message, now)
            case ControlPage() if joining.is_taken(message):
                return self._desk.ended(joining, None, now)
            case RefusedMessage(_, event, reason, detail) if joining.joined is not None:
                if event == joining.joined:
                    return self._desk.ended(joining, Declined(reason, detail), now)
            case Greet() if joining.joined is not None and peer in joining.contacts:
                room = self._registry.get(joining.room)
                greeted = [] if room is None else room.settle(room.on_greet(peer, message, now), now)
                return [*greeted, *self._desk.ended(joining, None, now)]
            case RelayTaken(_, _, outcomes) if joining.joined is not None:
                taken = [each for each in outcomes if each.event == joining.joined]
                refused = [each.reason for each in taken if each.cursor is None and not each.missing]
                room = self._registry.get(joining.room)
                effects = [] if room is None else room.settle(room.relays.answered(peer, message, now), now)
                if taken and taken[0].cursor is not None:
                    return [*effects, *self._desk.ended(joining, None, now)]
                if refused and peer == joining.answering:
                    declined = Declined(refused[0] or Reason.UNKNOWN, "the relay does not take our join")
                    return [*effects, *self._desk.ended(joining, declined, now)]
                return effects
            case _:
                pass
        return None

    def _on_first_page(
        self, joining: Joining, peer: PeerId, page: ControlPage, now: float
    ) -> list[RoomEffect]:
        if not joining.wants(peer, page):
            reason = page.reason
            return [Record(Kind.REJECTED, joining.room, peer=peer, reason=reason, note="page")]
        effects: list[RoomEffect] = []
        room = self._registry.get(joining.room)
        units = page.units
        if room is None:
            try:
                room, effects = self._registry.open(self._first(joining, page), newcomer=True, now=now)
                joining.opened = True
            except RemoteError as error:
                joining.answering = None
                joining.last_reason = error.reason
                note = error.detail[:100]
                return [Record(Kind.REJECTED, joining.room, peer=peer, reason=error.reason, note=note)]
            units = units[1:]
        room.taking.asked[peer] = None
        effects += room.settle(room.taking.take(units, page.cards, peer, now), now)
        if page.more and page.units:
            return [*effects, *joining.more(peer, room.catching_up.shown(peer, page, room.control.heads))]
        room.catching_up.down(peer)
        return [*effects, *self._desk.shown(joining, room, now)]

    def _first(self, joining: Joining, page: ControlPage) -> Verified:
        """The create event, which the room's id names; `RemoteError` if the page does not begin with it."""
        for given in page.cards:
            self._context.cards.learn(given)
        if not page.units:
            raise InvalidEvent(Reason.MALFORMED, "a page without events")
        unit = page.units[0]
        card = self._context.cards.find(unit.author, unit.device)
        if card is None:
            raise InvalidEvent(Reason.UNKNOWN_DEVICE, "no card came with the create event")
        verified = self._context.verify(unit, card)
        if bytes(verified.head) != joining.room:
            raise InvalidEvent(Reason.MALFORMED, "the first event of a room is the one its id names")
        return verified

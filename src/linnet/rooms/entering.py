"""What a join waits for: the room's control DAG, page by page, and somebody's word that our join is in it."""

from __future__ import annotations

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.event.event import Verified
from linnet.rooms.joining import Joining
from linnet.rooms.messages import ControlPage, Greet, RelayTaken, RoomMessage
from linnet.rooms.messages import Refused as RefusedMessage
from linnet.rooms.registry import Registry
from linnet.rooms.room_commands import Desk
from linnet.trace.records import Kind, Record


class Entering:
    """Takes the answers to all joins of a node that are under way."""

    def __init__(self, registry: Registry, desk: Desk) -> None:
        self._registry = registry
        self._desk = desk
        self._context = registry.setting.context
        self._out = registry.setting.out

    def handle(self, joining: Joining, peer: PeerId, message: RoomMessage, now: float) -> bool:
        """Take what a join waits for; False if this is something else."""
        match message:
            case ControlPage() if joining.joined is None:
                self._take_page(joining, peer, message, now)
            case ControlPage() if joining.is_taken(message):
                self._desk.end_join(joining, None, now)
            case RefusedMessage(_, event, reason, detail) if event is not None and event == joining.joined:
                self._desk.end_join(joining, Declined(reason, detail), now)
            case Greet() if joining.joined is not None and peer in joining.contacts:
                room = self._registry.get(joining.room)
                if room is not None:
                    room.handle_greet(peer, message, now)
                    room.settle(now)
                self._desk.end_join(joining, None, now)
            case RelayTaken() if joining.joined is not None:
                self._take_outcome(joining, peer, message, now)
            case _:
                return False
        return True

    def _take_outcome(self, joining: Joining, peer: PeerId, message: RelayTaken, now: float) -> None:
        """Look whether a relay keeps our join."""
        taken = [each for each in message.outcomes if each.event == joining.joined]
        refused = [each.reason for each in taken if each.cursor is None and not each.missing]
        room = self._registry.get(joining.room)
        if room is not None:
            room.relays.handle_taken(peer, message, now)
            room.settle(now)
        if taken and taken[0].cursor is not None:
            self._desk.end_join(joining, None, now)
        elif refused and peer == joining.answering:
            declined = Declined(refused[0] or Reason.UNKNOWN, "the relay does not take our join")
            self._desk.end_join(joining, declined, now)

    def _take_page(self, joining: Joining, peer: PeerId, page: ControlPage, now: float) -> None:
        if not joining.wants(peer, page):
            reason = page.reason
            self._out.record(Record(Kind.REJECTED, joining.room, peer=peer, reason=reason, note="page"))
            return
        room = self._registry.get(joining.room)
        units = page.units
        if room is None:
            try:
                room = self._registry.open(self._first(joining, page), newcomer=True, now=now)
                joining.opened = True
            except RemoteError as error:
                joining.answering = None
                joining.last_reason = error.reason
                note = error.detail[:100]
                self._out.record(
                    Record(Kind.REJECTED, joining.room, peer=peer, reason=error.reason, note=note)
                )
                return
            units = units[1:]
        room.taking.asked[peer] = None
        room.taking.take(units, page.cards, peer, now)
        room.settle(now)
        if page.more and page.units:
            joining.ask_page(peer, room.catching_up.next_heads(peer, page, room.control.heads))
            return
        room.catching_up.forget_pages(peer)
        self._desk.say_join(joining, room, now)

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

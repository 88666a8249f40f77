"""One answer to each request that brought events, once it is known what became of all of them."""

from __future__ import annotations

from linnet.core.ids import PeerId, TopicId
from linnet.rooms.messages import RelayOutcome, RelayTaken
from linnet.rooms.relay.access_control import Caller
from linnet.rooms.relay.parking import Origin


class _Open:
    __slots__ = ("outcomes", "waiting")

    def __init__(self, waiting: int) -> None:
        self.waiting = waiting
        self.outcomes: list[RelayOutcome] = []


class Answers:
    """The requests of one room that are not answered yet. Each has an event that waits: they are bounded."""

    def __init__(self, room: TopicId) -> None:
        self._room = room
        self._open: dict[tuple[Caller, int], _Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, caller: Caller, request: int, events: int) -> RelayTaken | None:
        """A request brings so many events; nothing to wait for is answered at once."""
        if not events:
            return RelayTaken(self._room, request, (), None)
        self._open[caller, request] = _Open(events)
        return None

    def settle(self, origin: Origin, outcome: RelayOutcome) -> RelayTaken | None:
        """It is known what became of one event; the answer, if it was the last."""
        if origin.request is None:
            return None
        key = (origin.caller, origin.request)
        found = self._open.get(key)
        if found is None:
            return None
        found.outcomes.append(outcome)
        found.waiting -= 1
        if found.waiting:
            return None
        del self._open[key]
        return RelayTaken(self._room, origin.request, tuple(found.outcomes), None)

    def down(self, peer: PeerId) -> None:
        """The link to a peer is gone: it will send again what it has no answer for."""
        for key in [key for key in self._open if key[0].peer == peer]:
            del self._open[key]

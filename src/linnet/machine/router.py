"""The router: finds the part of a node that handles an input, by its type, topic or subscription."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

from linnet.core.ids import PeerId, TopicId
from linnet.core.messages import Message, TopicMessage
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.commands import Declined, SubscriptionCommand, carry_out
from linnet.machine.outbox import InPlaceNotice, Notice, Outbox, TopicNotice
from linnet.machine.part import InputSort, Part

Handler: TypeAlias = Callable[..., None]
_OWNED = (TopicMessage, TopicNotice, SubscriptionCommand)
"""Types that several parts may mark: each input goes to the part that owns its topic or subscription, or to
the first of the parts if none does."""


class Route(NamedTuple):
    """The handlers of one type of input."""

    place: int
    """The index of the part among those of the node."""
    handle: Handler
    others: list[tuple[int, Handler]]
    """The handlers of other parts, which take inputs about their own topics or subscriptions."""


class Table:
    """The handlers of a tuple of classes. All nodes with the same parts share one table."""

    def __init__(self, parts: tuple[type[Part], ...]) -> None:
        self.messages: dict[type, Route] = {}
        self.timers: dict[type, Route] = {}
        self.commands: dict[type, Route] = {}
        self.notices: dict[type, Route] = {}
        self.inputs: dict[type, list[tuple[int, Handler]]] = {}
        single = {
            InputSort.MESSAGE: self.messages,
            InputSort.TIMER: self.timers,
            InputSort.COMMAND: self.commands,
            InputSort.NOTICE: self.notices,
        }
        for place, part in enumerate(parts):
            for mark, handle in part.marks:
                if mark.sort is InputSort.INPUT:
                    self.inputs.setdefault(mark.kind, []).append((place, handle))
                    continue
                route = single[mark.sort].setdefault(mark.kind, Route(place, handle, []))
                if route.handle is handle:
                    continue
                if not issubclass(mark.kind, _OWNED) or place in (route.place, *dict(route.others)):
                    raise TypeError(f"two handlers of the {mark.sort} {mark.kind.__name__}")
                route.others.append((place, handle))


@cache
def table_of(parts: tuple[type[Part], ...]) -> Table:
    """Return the table of these classes, made once."""
    return Table(parts)


class Router:
    """Passes each input of a node to the part whose handler is marked for it."""

    __slots__ = ("out", "parts", "table")

    def __init__(self, out: Outbox, parts: tuple[Part, ...]) -> None:
        self.out = out
        self.parts = parts
        self.table = table_of(tuple(map(type, parts)))

    def message(self, peer: PeerId, message: Message, now: float) -> None:
        """Pass a peer's message to its handler."""
        if isinstance(message, TopicMessage):
            self.topic_message(peer, message, message.topic, now)
            return
        route = self.table.messages[type(message)]
        route.handle(self.parts[route.place], peer, message, now)
        if self.out.notices:
            self.pass_on_notices(now)

    def topic_message(self, peer: PeerId, message: Message, topic: TopicId, now: float) -> None:
        """Pass a peer's message about a topic to the part that holds the topic."""
        route = self.table.messages[type(message)]
        place, handle, others = route  # A named tuple's attributes are slow, and each event comes by here.
        part = self.parts[place]
        if others and topic not in part.own_topics:
            part, handle = self._holder(route, topic)
        handle(part, peer, message, now)
        if self.out.notices:
            self.pass_on_notices(now)

    def timer(self, timer: Timer, now: float) -> None:
        """Pass a timer that has run out to its handler."""
        route = self.table.timers[type(timer)]
        route.handle(self.parts[route.place], timer, now)
        self.pass_on_notices(now)

    def command(self, request: int, command: object, now: float) -> None:
        """Pass a command to its handler; a refused one is declined and has no effect."""
        route = self.table.commands.get(type(command))
        if route is None:
            detail = f"no part of this node carries out {type(command).__name__}"
            self.out.reply(request, Declined(Reason.UNSUPPORTED, detail))
            return
        part, handle = self.parts[route.place], route.handle
        if route.others and isinstance(command, SubscriptionCommand):
            part, handle = self._reader(route, command.subscription)
        carry_out(self.out, request, lambda: handle(part, request, command, now))
        self.pass_on_notices(now)

    def input(self, event: object, now: float) -> None:
        """Pass an input to all handlers that mark it, in the order of the parts."""
        for place, handle in self.table.inputs.get(type(event), ()):
            handle(self.parts[place], event, now)
        self.pass_on_notices(now)

    def pass_on_notices(self, now: float) -> None:
        """Pass notices to their handlers, also those that these give, until none is left."""
        out = self.out
        while out.notices:
            later: list[Notice] = []
            for said in out.take_said():
                if isinstance(said, InPlaceNotice):
                    self._notify(said, now)  # What it asks for stands here.
                elif isinstance(said, Notice):
                    later.append(said)
                else:
                    out.add(said)
            for notice in later:
                self._notify(notice, now)

    def _notify(self, notice: Notice, now: float) -> None:
        route = self.table.notices[type(notice)]
        part, handle = self.parts[route.place], route.handle
        if route.others and isinstance(notice, TopicNotice):
            part, handle = self._holder(route, notice.topic)
        handle(part, notice, now)

    def _holder(self, route: Route, topic: TopicId) -> tuple[Part, Handler]:
        """Return the part that owns a topic; the first that marks the type if none does."""
        first = self.parts[route.place]
        if topic not in first.own_topics:
            for place, handle in route.others:
                if topic in (part := self.parts[place]).own_topics:
                    return part, handle
        return first, route.handle

    def _reader(self, route: Route, subscription: int) -> tuple[Part, Handler]:
        """Return the part that owns a subscription; the first that marks the type if none does."""
        for place, handle in route.others:
            if subscription in (part := self.parts[place]).own_subscriptions:
                return part, handle
        return self.parts[route.place], route.handle

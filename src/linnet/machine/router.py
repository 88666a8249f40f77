"""Which part of a node hears an input: by its type, and by whose topic or subscription it is about."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

from linnet.core.ids import PeerId, TopicId
from linnet.core.messages import Message, TopicMessage
from linnet.core.timers import Timer
from linnet.machine.commands import SubscriptionCommand, carry_out
from linnet.machine.outbox import InPlaceNotice, Notice, Outbox, TopicNotice
from linnet.machine.part import InputSort, Part

Handler: TypeAlias = Callable[..., None]
_OWNED = (TopicMessage, TopicNotice, SubscriptionCommand)
"""Types that several parts may mark: each goes to the part whose topic or subscription it is about, or to
the first of them if that is nobody's."""


class Route(NamedTuple):
    """Who hears one type of input."""

    place: int
    """The place of a part among those of a node."""
    handle: Handler
    others: list[tuple[int, Handler]]
    """Those who hear it instead if it is about a topic or a subscription of theirs."""


class Table:
    """The handlers of a set of classes. All nodes with the same parts share one."""

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
        self.closers = [place for place, part in enumerate(parts) if part.close_input is not Part.close_input]
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
    """The table of these classes, made once."""
    return Table(parts)


class Router:
    """Hands each input of a node to the part whose handler is marked for it."""

    __slots__ = ("out", "parts", "table")

    def __init__(self, out: Outbox, parts: tuple[Part, ...]) -> None:
        self.out = out
        self.parts = parts
        self.table = table_of(tuple(map(type, parts)))

    def message(self, peer: PeerId, message: Message, now: float) -> None:
        """A peer says something."""
        route = self.table.messages[type(message)]
        part, handle = self.parts[route.place], route.handle
        if route.others and isinstance(message, TopicMessage):
            part, handle = self._holder(route, message.topic)
        handle(part, peer, message, now)
        self.pass_on_notices(now)

    def timer(self, timer: Timer, now: float) -> None:
        """A timer has run out."""
        route = self.table.timers[type(timer)]
        route.handle(self.parts[route.place], timer, now)
        self.pass_on_notices(now)

    def command(self, request: int, command: object, now: float) -> None:
        """The application asks for something; what is refused is declined, and nothing of it was done."""
        route = self.table.commands[type(command)]
        part, handle = self.parts[route.place], route.handle
        if route.others and isinstance(command, SubscriptionCommand):
            part, handle = self._reader(route, command.subscription)
        carry_out(self.out, request, lambda: handle(part, request, command, now))
        self.pass_on_notices(now)

    def input(self, event: object, now: float) -> None:
        """Something happened: all who mark it hear it, in the order of the parts."""
        for place, handle in self.table.inputs.get(type(event), ()):
            handle(self.parts[place], event, now)
        self.pass_on_notices(now)

    def close_input(self, now: float) -> None:
        """Let the parts add what follows from an input once it was handled."""
        for place in self.table.closers:
            self.parts[place].close_input(now)

    def pass_on_notices(self, now: float) -> None:
        """Tell parts what others have to tell them, and what comes of that, until all is told."""
        out = self.out
        while out.has_notices:
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
        """Whose topic it is; the first that marks the type if it is nobody's."""
        for place, handle in route.others:
            if (part := self.parts[place]).holds(topic):
                return part, handle
        return self.parts[route.place], route.handle

    def _reader(self, route: Route, subscription: int) -> tuple[Part, Handler]:
        """Whose subscription it is; the first that marks the type if it is nobody's."""
        for place, handle in route.others:
            if (part := self.parts[place]).reads(subscription):
                return part, handle
        return self.parts[route.place], route.handle

"""Which part of a node hears an input: by its type, and by whose topic or subscription it is about."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple, TypeAlias

from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.messages import Message, TopicMessage
from linnet.core.timers import Timer
from linnet.machine.commands import SubscriptionCommand, carry_out
from linnet.machine.outbox import InPlaceNotice, Notice, Outbox, TopicNotice
from linnet.machine.part import InputSort, Part

Handler: TypeAlias = Callable[..., None]
_OWNED = (TopicMessage, TopicNotice, SubscriptionCommand)
"""Types that several parts may mark: each is heard by the part whose topic or subscription it is about."""


class Route(NamedTuple):
    """Who hears one type of input."""

    place: int
    """The place of a part among those of a node."""
    handle: Handler
    owners: dict[type, Handler]
    """The handlers of those who hear it about what is theirs, by class; empty if there is but one hearer."""


class Table:
    """The handlers of a set of classes. All nodes with the same parts share one."""

    def __init__(self, parts: tuple[type[Part], ...]) -> None:
        self.messages: dict[type, Route] = {}
        self.timers: dict[type, Route] = {}
        self.commands: dict[type, Route] = {}
        self.notices: dict[type, Route] = {}
        self.links: dict[type, list[Route]] = {LinkUp: [], LinkDown: [], DialFailed: []}
        single = {
            InputSort.MESSAGE: self.messages,
            InputSort.TIMER: self.timers,
            InputSort.COMMAND: self.commands,
            InputSort.NOTICE: self.notices,
        }
        for place, part in enumerate(parts):
            for mark, handle in part.marks:
                if mark.sort is InputSort.LINK:
                    self.links[mark.kind].append(Route(place, handle, {}))
                    continue
                # What nobody owns goes to the first part that marks it.
                route = single[mark.sort].setdefault(mark.kind, Route(place, handle, {}))
                if issubclass(mark.kind, _OWNED) and part not in route.owners:
                    route.owners[part] = handle
                elif route.handle is not handle:
                    raise TypeError(f"two handlers of the {mark.sort} {mark.kind.__name__}")


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
        owner = self.out.topics.get(message.topic) if isinstance(message, TopicMessage) else None
        part, handle = self._hearer(route, owner)
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
        subscription = command.subscription if isinstance(command, SubscriptionCommand) else None
        owner = None if subscription is None else self.out.subscriptions.get(subscription)
        part, handle = self._hearer(route, owner)
        carry_out(self.out, request, lambda: handle(part, request, command, now))
        self.pass_on_notices(now)

    def link(self, event: LinkUp | LinkDown | DialFailed, now: float) -> None:
        """Something became of a link: all who mark it hear it, in the order of the parts."""
        for place, handle, _ in self.table.links[type(event)]:
            handle(self.parts[place], event, now)
        self.pass_on_notices(now)

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
        owner = self.out.topics.get(notice.topic) if isinstance(notice, TopicNotice) else None
        part, handle = self._hearer(self.table.notices[type(notice)], owner)
        handle(part, notice, now)

    def _hearer(self, route: Route, owner: object) -> tuple[object, Handler]:
        """Whoever owns what an input is about, if it marks the type; otherwise the first who does."""
        handle = route.owners.get(type(owner))
        return (self.parts[route.place], route.handle) if handle is None else (owner, handle)

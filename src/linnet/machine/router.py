"""Which part of a node hears an input: by its type."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.messages import Message
from linnet.core.timers import Timer
from linnet.machine.commands import declined
from linnet.machine.outbox import InPlaceNotice, Notice, Outbox
from linnet.machine.part import InputSort, Part

Route: TypeAlias = tuple[int, Callable[..., None]]
"""The place of a part among those of a node, and its handler."""


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
        for index, part in enumerate(parts):
            for mark, handle in part.marks:
                if mark.sort is InputSort.LINK:
                    self.links[mark.kind].append((index, handle))
                    continue
                if mark.kind in single[mark.sort]:
                    raise TypeError(f"two handlers of the {mark.sort} {mark.kind.__name__}")
                single[mark.sort][mark.kind] = (index, handle)


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
        index, handle = self.table.messages[type(message)]
        handle(self.parts[index], peer, message, now)
        self.pass_on_notices(now)

    def timer(self, timer: Timer, now: float) -> None:
        """A timer has run out."""
        index, handle = self.table.timers[type(timer)]
        handle(self.parts[index], timer, now)
        self.pass_on_notices(now)

    def command(self, request: int, command: object, now: float) -> None:
        """The application asks for something; what is refused is declined, and nothing of it was done."""
        index, handle = self.table.commands[type(command)]
        before = self.out.mark()
        try:
            handle(self.parts[index], request, command, now)
        except (BadText, Refused, RemoteError) as error:
            self.out.forget_since(before)
            self.out.reply(request, declined(error))
        self.pass_on_notices(now)

    def link(self, event: LinkUp | LinkDown | DialFailed, now: float) -> None:
        """Something became of a link: all who mark it hear it, in the order of the parts."""
        for index, handle in self.table.links[type(event)]:
            handle(self.parts[index], event, now)
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
        index, handle = self.table.notices[type(notice)]
        handle(self.parts[index], notice, now)

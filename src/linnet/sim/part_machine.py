"""Parts of an overlay by themselves, driven by inputs: what they ask for and what they tell, in one order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Probed, Received, TimerFired
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_notice
from linnet.machine.router import Router
from linnet.overlay.member import Member
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp, OverlayNotice, StorageKnown
from linnet.overlay.trackerless.trackerless import Trackerless


class _Above(Part):
    """Stands for the topics above: what they are told stays where it was told, for the driver to see."""

    def __init__(self, out: Outbox) -> None:
        self._out = out

    @on_notice(NeighborUp)
    def show_neighbor(self, notice: NeighborUp, now: float) -> None:
        """A topic has a new neighbour."""
        self._show(notice)

    @on_notice(NeighborDown)
    def show_loss(self, notice: NeighborDown, now: float) -> None:
        """A topic has lost a neighbour."""
        self._show(notice)

    @on_notice(StorageKnown)
    def show_storage(self, notice: StorageKnown, now: float) -> None:
        """A topic has other storage nodes."""
        self._show(notice)

    @on_notice(JoinRefused)
    def show_refusal(self, notice: JoinRefused, now: float) -> None:
        """A topic is taken by no tracker."""
        self._show(notice)

    def _show(self, notice: OverlayNotice) -> None:
        self._out.extend((notice,))


class PartMachine:
    """Takes inputs, and returns what comes of them. Messages that no part marks are ignored."""

    def __init__(self, out: Outbox, *parts: Part) -> None:
        self._out = out
        self._router = Router(out, (*parts, _Above(out)))
        self._finders = [part for part in parts if isinstance(part, Member | Trackerless)]

    def handle(self, event: Any, now: float) -> list[Any]:  # noqa: ANN401 - messages of any overlay
        """Apply one input; the caller performs what is returned, in order."""
        match event:
            case Received(peer, message):
                if type(message) in self._router.table.messages:
                    self._router.message(peer, message, now)
            case TimerFired(timer):
                self._router.timer(timer, now)
            case LinkUp() | LinkDown() | DialFailed() | Probed():
                self._router.input(event, now)
            case _:
                raise TypeError(f"no input of an overlay: {type(event).__name__}")
        return self._out.take()

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """The neighbours of a topic whose links are open."""
        return tuple(peer for part in self._finders for peer in part.neighbors(topic))

    def perform(self, act: Callable[[], None], now: float) -> list[Any]:
        """What comes of something that the application wants."""
        act()
        self._router.pass_on_notices(now)
        return self._out.take()

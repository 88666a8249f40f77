"""One protocol of a node, and which of its methods hear what.

A handler is marked where it is written: ``@on_message(Ping)``. The marks of a class are read once; a node
keeps no table of its own, only its parts.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, TypeVar

from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import (
    Asked,
    Congested,
    DialFailed,
    Drained,
    Heard,
    LinkDown,
    LinkUp,
    Met,
    NetworkIs,
    NotMet,
    Probed,
)
from linnet.core.messages import Message
from linnet.core.timers import Timer
from linnet.machine.outbox import Notice

P = TypeVar("P", bound="Part")
M = TypeVar("M", bound=Message)
T = TypeVar("T", bound=Timer)
N = TypeVar("N", bound=Notice)
C = TypeVar("C")
G = TypeVar(
    "G", LinkUp, LinkDown, DialFailed, Probed, Congested, Drained, NetworkIs, Heard, Met, NotMet, Asked[Any]
)
F = TypeVar("F", bound=Callable[..., None])


class InputSort(StrEnum):
    """What a handler hears."""

    MESSAGE = "message"
    TIMER = "timer"
    COMMAND = "command"
    NOTICE = "notice"
    INPUT = "input"


class Mark(NamedTuple):
    """One sort of input, and its type."""

    sort: InputSort
    kind: type


class Part:
    """One protocol of a node. Its handlers are those of its methods that are marked."""

    marks: ClassVar[tuple[tuple[Mark, Callable[..., None]], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        found = [each for each in vars(cls).values() if hasattr(each, "mark")]
        cls.marks = (*cls.marks, *((each.mark, each) for each in found))

    def holds(self, topic: TopicId) -> bool:
        """Whether messages and notices about this topic are for this part, of those that mark them."""
        return False

    def reads(self, subscription: int) -> bool:
        """Whether what is asked of this subscription is for this part, of those that mark it."""
        return False

    def start(self, now: float) -> None:
        """The node is up."""

    def stop(self, now: float) -> None:
        """The node goes down in good order."""

    def close_input(self, now: float) -> None:
        """An input was handled, and what came of it is taken: last words."""


def on_message(
    kind: type[M],
) -> Callable[[Callable[[P, PeerId, M, float], None]], Callable[[P, PeerId, M, float], None]]:
    """Messages of this type come here, and nowhere else."""
    return lambda handle: _marked(handle, Mark(InputSort.MESSAGE, kind))


def on_timer(kind: type[T]) -> Callable[[Callable[[P, T, float], None]], Callable[[P, T, float], None]]:
    """Timers of this type come here, and nowhere else."""
    return lambda handle: _marked(handle, Mark(InputSort.TIMER, kind))


def on_command(
    kind: type[C],
) -> Callable[[Callable[[P, int, C, float], None]], Callable[[P, int, C, float], None]]:
    """Commands of this type come here, with the number to reply to, and nowhere else."""
    return lambda handle: _marked(handle, Mark(InputSort.COMMAND, kind))


def on_notice(kind: type[N]) -> Callable[[Callable[[P, N, float], None]], Callable[[P, N, float], None]]:
    """Notices of this type come here, and nowhere else."""
    return lambda handle: _marked(handle, Mark(InputSort.NOTICE, kind))


def on_input(kind: type[G]) -> Callable[[Callable[[P, G, float], None]], Callable[[P, G, float], None]]:
    """What the driver tells of links, of local networks and of commands that come; every part that marks it
    hears it, in the order of the parts."""
    return lambda handle: _marked(handle, Mark(InputSort.INPUT, kind))


def _marked(handle: F, mark: Mark) -> F:
    marked: Any = handle
    marked.mark = mark
    return handle

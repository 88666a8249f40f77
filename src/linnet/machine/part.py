"""One part of a node, for one protocol, and the marks of its handlers.

A handler is marked where it is written: ``@on_message(Ping)``. The marks of a class are read once; a node
keeps no table of its own, only its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Container
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
    """The sorts of inputs that handlers take."""

    MESSAGE = "message"
    TIMER = "timer"
    COMMAND = "command"
    NOTICE = "notice"
    INPUT = "input"


class Mark(NamedTuple):
    """A sort of input, and the type that a handler takes."""

    sort: InputSort
    kind: type


class Part:
    """One part of a node, for one protocol. Its handlers are its marked methods."""

    marks: ClassVar[tuple[tuple[Mark, Callable[..., None]], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        found = [each for each in vars(cls).values() if hasattr(each, "mark")]
        cls.marks = (*cls.marks, *((each.mark, each) for each in found))

    own_topics: Container[TopicId] = ()
    """The topics of this part: where several parts mark a type, their messages and notices go to this one."""
    own_subscriptions: Container[int] = ()
    """The subscriptions of this part: where several parts mark a type, their commands go to this one."""

    def start(self, now: float) -> None:
        """Start the part, when the node starts."""

    def stop(self, now: float) -> None:
        """Stop the part, when the node stops in good order."""


def on_message(
    kind: type[M],
) -> Callable[[Callable[[P, PeerId, M, float], None]], Callable[[P, PeerId, M, float], None]]:
    """Mark the only handler of messages of this type."""
    return lambda handle: _marked(handle, Mark(InputSort.MESSAGE, kind))


def on_timer(kind: type[T]) -> Callable[[Callable[[P, T, float], None]], Callable[[P, T, float], None]]:
    """Mark the only handler of timers of this type."""
    return lambda handle: _marked(handle, Mark(InputSort.TIMER, kind))


def on_command(
    kind: type[C],
) -> Callable[[Callable[[P, int, C, float], None]], Callable[[P, int, C, float], None]]:
    """Mark the only handler of commands of this type; it is given the number to reply to."""
    return lambda handle: _marked(handle, Mark(InputSort.COMMAND, kind))


def on_notice(kind: type[N]) -> Callable[[Callable[[P, N, float], None]], Callable[[P, N, float], None]]:
    """Mark the only handler of notices of this type."""
    return lambda handle: _marked(handle, Mark(InputSort.NOTICE, kind))


def on_input(kind: type[G]) -> Callable[[Callable[[P, G, float], None]], Callable[[P, G, float], None]]:
    """Mark a handler of inputs from the driver: links, local networks, and the arrival of commands.

    Every part that marks the type receives it, in the order of the parts.
    """
    return lambda handle: _marked(handle, Mark(InputSort.INPUT, kind))


def _marked(handle: F, mark: Mark) -> F:
    marked: Any = handle
    marked.mark = mark
    return handle

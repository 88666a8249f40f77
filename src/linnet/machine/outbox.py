"""Where the machines of a node put their effects.

Methods return what their caller has to know; effects go here. The node takes them at the end of each input,
so that an input whose handler raised an error has no effect at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeAlias

from msgspec import Struct

from linnet.core.effects import (
    AfterCommit,
    Announce,
    Blame,
    CancelTimer,
    Deliver,
    Dial,
    HangUp,
    Hold,
    Meet,
    Probe,
    Release,
    Reply,
    Send,
    SetTimer,
)
from linnet.core.ids import PeerId, TopicId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.trace.records import Record

Promise: TypeAlias = Send[Message] | Dial | Deliver[Any] | Reply[Any] | Record
"""What may wait for a commit."""
Effect: TypeAlias = (
    Send[Message]
    | Hold
    | Release
    | Blame
    | Dial
    | HangUp
    | Probe
    | Announce
    | Meet
    | SetTimer[Timer]
    | CancelTimer[Timer]
    | Deliver[Any]
    | Reply[Any]
    | Record
    | AfterCommit[Promise]
)
"""All that machines may ask of the node and of its driver. Items and results are as each part says."""


class Notice(Struct, frozen=True, gc=False):
    """Base of what one part of a node tells another. It goes to the one part that marks it."""


class InPlaceNotice(Notice, frozen=True, gc=False):
    """Base of a notice of which what comes stands where it was told, among what its handler asks for.

    Those of one input are heard in their order, and before other notices.
    """


class TopicNotice(InPlaceNotice, frozen=True, gc=False):
    """Base of what an overlay, or whoever stands for one at the edge, tells of a topic.

    A new neighbour is sent what it lacks before the tracker hears of it, and whoever comes and goes within
    one input is gone.
    """

    topic: TopicId


class Outbox:
    """Effects of one node, in the order in which its machines asked for them."""

    __slots__ = ("_effects", "_notices", "committed")

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._notices: list[tuple[int, Notice]] = []
        """Each with how many effects were asked for before it."""
        self.committed = Committed(self)
        """The same, once all that was written to the store so far is durable."""

    def send(self, peer: PeerId, message: Message) -> None:
        """Say something on an open link; without a link it is traced as dropped."""
        self._effects.append(Send(peer, message))

    def hold(self, peer: PeerId, hints: tuple[str, ...], purpose: str) -> None:
        """Keep a link to this peer open for a purpose."""
        self._effects.append(Hold(peer, hints, purpose))

    def release(self, peer: PeerId, purpose: str) -> None:
        """This purpose needs the link no longer."""
        self._effects.append(Release(peer, purpose))

    def blame(self, peer: PeerId, reason: Reason) -> None:
        """This peer sent what it must not."""
        self._effects.append(Blame(peer, reason))

    def dial(self, peer: PeerId, hints: tuple[str, ...]) -> None:
        """Open a link to this key."""
        self._effects.append(Dial(peer, hints))

    def hang_up(self, peer: PeerId, reason: Reason) -> None:
        """Close the link to this peer after what was sent before."""
        self._effects.append(HangUp(peer, reason))

    def set_timer(self, delay: float, timer: Timer) -> None:
        """Give this timer back after a delay in seconds; an equal one is replaced."""
        self._effects.append(SetTimer(delay, timer))

    def cancel_timer(self, timer: Timer) -> None:
        """Forget the equal timer, if it is set."""
        self._effects.append(CancelTimer(timer))

    def deliver(self, subscription: int, items: tuple[Any, ...]) -> None:
        """Hand items to a subscription of the local application."""
        self._effects.append(Deliver(subscription, items))

    def reply(self, request: int, result: object) -> None:
        """Answer the command of this number, once."""
        self._effects.append(Reply(request, result))

    def record(self, record: Record) -> None:
        """Write a record to the trace."""
        self._effects.append(record)

    def notify(self, notice: Notice) -> None:
        """Tell another part of this node, after the handler that is running now."""
        self._notices.append((len(self._effects), notice))

    def add(self, effect: Effect) -> None:
        """Ask for something that has no verb of its own here: a probe, an announcement, a meeting."""
        self._effects.append(effect)

    def extend(self, effects: Iterable[Any]) -> None:
        """Take over what a machine returned that is not given an outbox yet."""
        self._effects.extend(effects)

    def collect(self, act: Callable[[], None], told: Collection[type[Notice]] = ()) -> list[Any]:
        """What a machine with this outbox asks for, for a caller that still returns effects.

        Notices of these types are among it, in their places; of others the node is told as ever.
        """
        before, self._effects, self._notices = (self._effects, self._notices), [], []
        try:
            act()
            if told:
                said = self.take_said()
                collected = [each for each in said if not isinstance(each, Notice) or type(each) in told]
                rest = [each for each in said if isinstance(each, Notice) and type(each) not in told]
            else:
                collected, rest = [*self.take()], self.take_notices()
        finally:
            self._effects, self._notices = before
        for notice in rest:
            self.notify(notice)
        return collected

    def take(self) -> list[Effect]:
        """Everything so far, in order, but for the notices; no effects are left then."""
        effects, self._effects = self._effects, []
        return effects

    def take_said(self, since: tuple[int, int] = (0, 0)) -> list[Effect | Notice]:
        """Everything since a mark with the notices in their places; it is out of the outbox then."""
        done, told = since
        said: list[Effect | Notice] = []
        for before, notice in self._notices[told:]:
            said += self._effects[done:before]
            said.append(notice)
            done = max(done, before)
        said += self._effects[done:]
        self.forget_since(since)
        return said

    def mark(self) -> tuple[int, int]:
        """How much there is now, for `forget_since` and `take_said`."""
        return len(self._effects), len(self._notices)

    def has_told_since(self, mark: tuple[int, int]) -> bool:
        """Whether there is a notice that was not there at a mark."""
        return len(self._notices) > mark[1]

    def forget_since(self, mark: tuple[int, int]) -> None:
        """Forget what was asked for since then: who asked for it could not go through with it."""
        effects, notices = mark
        del self._effects[effects:]
        del self._notices[notices:]

    @property
    def has_notices(self) -> bool:
        """Whether there is something to be told."""
        return bool(self._notices)

    def take_notices(self) -> list[Notice]:
        """The notices so far, in order; there are none then."""
        notices, self._notices = self._notices, []
        return [notice for _, notice in notices]

    def clear(self) -> None:
        """Forget everything: the input that asked for it has failed."""
        self._effects, self._notices = [], []


class Committed:
    """Promises: what may be said only of what a crash cannot take back."""

    __slots__ = ("_out",)

    def __init__(self, out: Outbox) -> None:
        self._out = out

    def send(self, peer: PeerId, message: Message) -> None:
        """See `Outbox.send`."""
        self._out.add(AfterCommit((Send(peer, message),)))

    def dial(self, peer: PeerId, hints: tuple[str, ...]) -> None:
        """See `Outbox.dial`."""
        self._out.add(AfterCommit((Dial(peer, hints),)))

    def deliver(self, subscription: int, items: tuple[Any, ...]) -> None:
        """See `Outbox.deliver`."""
        self._out.add(AfterCommit((Deliver(subscription, items),)))

    def reply(self, request: int, result: object) -> None:
        """See `Outbox.reply`."""
        self._out.add(AfterCommit((Reply(request, result),)))

    def record(self, record: Record) -> None:
        """See `Outbox.record`."""
        self._out.add(AfterCommit((record,)))

    def extend(self, promises: Iterable[Promise]) -> None:
        """Make several promises as one."""
        self._out.add(AfterCommit(tuple(promises)))


class Promises:
    """Promises that are gathered while something is written, and made as one when all of it is."""

    __slots__ = ("_gathered",)

    def __init__(self) -> None:
        self._gathered: list[Promise] = []

    def __bool__(self) -> bool:
        return bool(self._gathered)

    def __iter__(self) -> Iterator[Promise]:
        return iter(self._gathered)

    def reply(self, request: int, result: object) -> None:
        """See `Outbox.reply`."""
        self._gathered.append(Reply(request, result))

    def record(self, record: Record) -> None:
        """See `Outbox.record`."""
        self._gathered.append(record)

    def extend(self, promises: Iterable[Promise]) -> None:
        """Gather what a machine returned that is not given an outbox yet."""
        self._gathered.extend(promises)

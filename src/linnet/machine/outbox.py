"""The outbox, which collects the effects of a node's machines.

Methods of machines return what their caller needs; effects go here. The node takes them at the end of each
input, so that an input whose handler raised an error has no effect at all.
"""

from __future__ import annotations

from collections.abc import Iterable
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
"""The effects that may wait for a commit."""
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
"""Everything that machines may ask of the node and of its driver. Each part has its own items and results."""


class Notice(Struct, frozen=True, gc=False):
    """The base of notices between parts of a node. A notice goes to the one part that marks it."""


class InPlaceNotice(Notice, frozen=True, gc=False):
    """The base of notices whose effects go into the outbox at the place where the notice was given.

    The ones of one input are handled in their order, and before other notices.
    """


class TopicNotice(InPlaceNotice, frozen=True, gc=False):
    """The base of notices about a topic from an overlay, or from the part that replaces one on the edge.

    Handled in place: a new neighbour is sent what it lacks before the tracker hears of it, and a neighbour
    that comes and goes within one input is gone.
    """

    topic: TopicId


class Outbox:
    """The effects of one node, in the order in which its machines asked for them."""

    __slots__ = ("_effects", "committed", "notices")

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self.notices: list[tuple[int, Notice]] = []
        """Each notice, with the number of effects that were asked for before it."""
        self.committed = Committed(self)
        """Takes effects for after the commit of all that was written to the store so far."""

    def send(self, peer: PeerId, message: Message) -> None:
        """Send a message on an open link; without a link, the message is traced as dropped."""
        self._effects.append(Send(peer, message))

    def hold(self, peer: PeerId, hints: tuple[str, ...], purpose: str) -> None:
        """Keep a link to this peer open for a purpose."""
        self._effects.append(Hold(peer, hints, purpose))

    def release(self, peer: PeerId, purpose: str) -> None:
        """Release the link to this peer for a purpose."""
        self._effects.append(Release(peer, purpose))

    def blame(self, peer: PeerId, reason: Reason) -> None:
        """Report that this peer broke a rule of the protocol."""
        self._effects.append(Blame(peer, reason))

    def dial(self, peer: PeerId, hints: tuple[str, ...], is_ours: bool = False) -> None:
        """Open a link to this key."""
        self._effects.append(Dial(peer, hints, is_ours))

    def hang_up(self, peer: PeerId, reason: Reason) -> None:
        """Close the link to this peer, after the earlier messages."""
        self._effects.append(HangUp(peer, reason))

    def set_timer(self, delay: float, timer: Timer) -> None:
        """Have this timer given back after a delay in seconds; it replaces an equal one."""
        self._effects.append(SetTimer(delay, timer))

    def cancel_timer(self, timer: Timer) -> None:
        """Cancel the equal timer, if it is set."""
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
        """Give a notice to another part of this node, after the handler that is running now."""
        self.notices.append((len(self._effects), notice))

    def add(self, effect: Effect) -> None:
        """Add an effect that has no method of its own here: a probe, an announcement, a meeting."""
        self._effects.append(effect)

    def extend(self, effects: Iterable[Promise]) -> None:
        """Add several effects: whoever makes many at once saves a call for each."""
        self._effects.extend(effects)

    def take(self) -> list[Effect]:
        """Take all effects so far, in order, without the notices."""
        effects, self._effects = self._effects, []
        return effects

    def take_said(self, since: tuple[int, int] = (0, 0)) -> list[Effect | Notice]:
        """Take all effects since a mark, with the notices in their places."""
        done, told = since
        said: list[Effect | Notice] = []
        for before, notice in self.notices[told:]:
            said += self._effects[done:before]
            said.append(notice)
            done = max(done, before)
        said += self._effects[done:]
        self.forget_since(since)
        return said

    def mark(self) -> tuple[int, int]:
        """Return the present size of the outbox, for `forget_since` and `take_said`."""
        return len(self._effects), len(self.notices)

    def has_told_since(self, mark: tuple[int, int]) -> bool:
        """Return whether a notice was added since a mark."""
        return len(self.notices) > mark[1]

    def forget_since(self, mark: tuple[int, int]) -> None:
        """Drop all that was added since a mark, since its handler could not finish."""
        effects, notices = mark
        del self._effects[effects:]
        del self.notices[notices:]

    def take_notices(self) -> list[Notice]:
        """Take all notices, in order."""
        notices, self.notices = self.notices, []
        return [notice for _, notice in notices]

    def clear(self) -> None:
        """Drop everything: the input has failed."""
        self._effects, self.notices = [], []


class Committed:
    """Promises: effects that wait for a commit, since a crash must not take back what they tell others."""

    __slots__ = ("_out",)

    def __init__(self, out: Outbox) -> None:
        self._out = out

    def send(self, peer: PeerId, message: Message) -> None:
        """See `Outbox.send`."""
        self._out.add(AfterCommit((Send(peer, message),)))

    def dial(self, peer: PeerId, hints: tuple[str, ...], is_ours: bool = False) -> None:
        """See `Outbox.dial`."""
        self._out.add(AfterCommit((Dial(peer, hints, is_ours),)))

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
        """Add several promises as one."""
        self._out.add(AfterCommit(tuple(promises)))


class Promises(list[Promise]):
    """Promises that are collected while something is written, and added as one when all of it is."""

    __slots__ = ()

    def send(self, peer: PeerId, message: Message) -> None:
        """See `Outbox.send`."""
        self.append(Send(peer, message))

    def deliver(self, subscription: int, items: tuple[Any, ...]) -> None:
        """See `Outbox.deliver`."""
        self.append(Deliver(subscription, items))

    def reply(self, request: int, result: object) -> None:
        """See `Outbox.reply`."""
        self.append(Reply(request, result))

    def record(self, record: Record) -> None:
        """See `Outbox.record`."""
        self.append(record)


Sink: TypeAlias = Outbox | Committed | Promises
"""Where a machine puts effects that its caller wants at once, or only after a commit."""

"""What an application asks of counters, and what it is answered."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.delivery.receipts import ReceiverFate
from linnet.machine.commands import Command, Done

LARGEST_AMOUNT = 2**31
"""Most that one addition adds: a device needs many of them to reach what 64 bits hold."""
CounterName = Annotated[str, Meta(min_length=1, max_length=200)]


class OpenCounter(Command["CounterIs"], frozen=True, gc=False):
    """Share a counter from now on, over restarts too, until it is closed."""

    counter: CounterName
    """The name by which all who share it know it."""


class CloseCounter(Command[Done], frozen=True, gc=False):
    """Share a counter no longer. What was counted stays on disk."""

    counter: CounterName
    """The name by which all who share it know it."""


class AddToCounter(Command["Added"], frozen=True, gc=False):
    """Add to a counter; answered when the addition is durable here."""

    counter: CounterName
    """The name by which all who share it know it."""
    amount: Annotated[int, Meta(ge=1, le=LARGEST_AMOUNT)] = 1
    """How much is added."""


class ExamineCounter(Command["CounterIs"], frozen=True, gc=False):
    """Say how a counter stands, and who added how much."""

    counter: CounterName
    """The name by which all who share it know it."""


class ExamineFates(Command["FatesAre"], frozen=True, gc=False):
    """Say at which devices an addition of ours has arrived, by their receipts."""

    counter: CounterName
    """The name by which all who share it know it."""
    number: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    """Which of our additions, from 0; None: the newest."""


class ReadCounter(Command["Opened"], frozen=True, gc=False):
    """Be handed every addition as an event, those that are here first."""

    subscription: int
    counter: CounterName
    """The name by which all who share it know it."""
    name: CounterName | None = None
    """Makes it durable: it resumes after the last addition that was handled."""


class Added(Struct, frozen=True, gc=False):
    """An addition of ours, which is durable."""

    event: EventId
    number: int
    value: int
    """The value of the counter with it."""


class Share(Struct, frozen=True, gc=False):
    """How much one device has added."""

    person: AuthorId
    device: DeviceId
    additions: int
    total: int


class CounterIs(Struct, frozen=True, gc=False):
    """How a counter stands at this node."""

    topic: TopicId
    value: int
    shares: tuple[Share, ...]
    """By device, in the order of their ids."""


class FatesAre(Struct, frozen=True, gc=False):
    """What is known of one addition at all other devices that share the counter."""

    number: int
    fates: tuple[ReceiverFate, ...]


class Opened(Struct, frozen=True, gc=False):
    """A subscription is open."""

    resumed: bool

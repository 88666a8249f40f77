"""How simulated nodes behave that do not do all that is expected of them: by intent, or by misfortune.

Each runs the shipped machine. Only what leaves the machine differs, or when: an attacker keeps events to
itself, a slow node sends late, a sleepy one stands still for a while, a lossy one loses what it sends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable
from enum import StrEnum
from random import Random

from msgspec.structs import replace

from linnet.core.effects import AfterCommit, Send, SetTimer
from linnet.core.hello import Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import TimerFired
from linnet.core.messages import Message
from linnet.core.timers import Timer
from linnet.delivery.messages import Data, Further, Given, Heads, HistoryPage, Resent
from linnet.overlay.messages import Status
from linnet.peer.interface import Effect, Input, NodeMachine, Promise
from linnet.peer.messages import STANDARD

CARRYING = (Data, Resent, HistoryPage, Given, Further)
"""The messages that bring events to others."""

SLOW = (1.0, 5.0)
"""The seconds by which a slow node sends later."""
WITHHELD = 40.0
"""The seconds for which a late attacker holds events back."""
FORWARDED = 3
"""Each so-manieth event is forwarded by partial attackers."""
NAP = (10.0, 60.0)
"""The seconds for which a sleepy node stands still."""
AWAKE = 45.0
"""The mean seconds between these naps."""
LOST = (0.05, 0.2)
"""The share of all messages that a lossy node loses; each draws its own."""


class Conduct(StrEnum):
    """How the nodes of one scenario behave that are not like the others."""

    SILENT = "silent"
    """They announce what they have, and never send an event."""
    MUTE = "mute"
    """They send no event either, and announce that there is none."""
    SLEEPER = "sleeper"
    """They forward events at first, and fall silent later."""
    SELECTIVE = "selective"
    """They forward events to some nodes only."""
    PARTIAL = "partial"
    """They forward every third event, all of them the same ones."""
    LATE = "late"
    """They forward every event, after most are of no use."""
    SLOW = "slow"
    """They are honest, and send late."""
    SLEEPY = "sleepy"
    """They are honest, and stand still at times."""
    LOSSY = "lossy"
    """They are honest, and a part of what they send is lost."""

    @property
    def is_hostile(self) -> bool:
        """Whether nodes do so by intent."""
        return self not in (Conduct.SLOW, Conduct.SLEEPY, Conduct.LOSSY)


class SendingNode:
    """A node whose messages are counted. Subclasses choose what is sent."""

    def __init__(self, machine: NodeMachine) -> None:
        self._machine = machine
        self.bytes = 0
        """The bytes of all messages that it sent."""
        self.inputs = 0
        """The inputs that it handled: the work that others make it do."""

    @property
    def hello(self) -> Hello:
        """See `NodeMachine.hello`."""
        return self._machine.hello

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        self.inputs += 1
        return self._sent(self._machine.handle(event, now), now)

    def choose_message(self, peer: PeerId, message: Message, now: float) -> Message | None:
        """Return the message that is sent instead of this one; None: none is."""
        return message

    def _sent(self, effects: Iterable[Effect], now: float) -> list[Effect]:
        sent: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Send):
                sent += self._send(effect, now)
            elif isinstance(effect, AfterCommit):
                promises: list[Promise] = []
                for each in effect.effects:
                    promises += self._send(each, now) if isinstance(each, Send) else (each,)
                sent.append(AfterCommit(tuple(promises)))
            else:
                sent.append(effect)
        return sent

    def _send(self, send: Send[Message], now: float) -> tuple[Send[Message], ...]:
        message = self.choose_message(send.peer, send.message, now)
        if message is None:
            return ()
        self.bytes += len(STANDARD.encode(message))
        return (send if message is send.message else Send(send.peer, message),)


class WithholdingNode(SendingNode):
    """An attacker that takes part in everything and keeps events to itself."""

    def __init__(
        self,
        machine: NodeMachine,
        serves: Callable[[PeerId, float], bool],
        is_mute: bool,
        fellows: Container[PeerId],
    ) -> None:
        """`serves` tells whether it sends events to a peer at this time.

        It tells the tracker that its links to `fellows` have failed.
        """
        super().__init__(machine)
        self._serves = serves
        self._is_mute = is_mute
        self._fellows = fellows

    def choose_message(self, peer: PeerId, message: Message, now: float) -> Message | None:
        """See `SendingNode.choose_message`."""
        if isinstance(message, Status):
            status = message.status
            shown = tuple(each for each in status.neighbors if each.peer not in self._fellows)
            return replace(message, status=replace(status, neighbors=shown))
        if self._serves(peer, now):
            return message
        if isinstance(message, CARRYING):
            return None
        if self._is_mute and isinstance(message, Heads):
            return replace(message, chains=(), due=None if message.due is None else ())
        return message


class PartialNode(SendingNode):
    """An attacker that forwards some events, so that it looks as if it were of use."""

    def __init__(self, machine: NodeMachine, favoured: Container[PeerId]) -> None:
        super().__init__(machine)
        self._favoured = favoured

    def choose_message(self, peer: PeerId, message: Message, now: float) -> Message | None:
        """See `SendingNode.choose_message`."""
        if peer in self._favoured:
            return message
        if isinstance(message, Data):
            return message if (message.unit.seq or 0) % FORWARDED == 0 else None
        return None if isinstance(message, CARRYING) else message


class WithheldDue(Timer, frozen=True):
    """Fires when a late attacker forwards what it has withheld."""


class LateNode(SendingNode):
    """An attacker that forwards every event, later than anybody waits for it."""

    def __init__(self, machine: NodeMachine, favoured: Container[PeerId]) -> None:
        super().__init__(machine)
        self._favoured = favoured
        self._withheld: deque[tuple[float, Send[Message]]] = deque()

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        leaving: list[Effect] = []
        if isinstance(event, TimerFired) and isinstance(event.timer, WithheldDue):
            while self._withheld and self._withheld[0][0] <= now:
                leaving.append(self._withheld.popleft()[1])
        else:
            leaving += super().handle(event, now)
        if self._withheld:
            leaving.append(SetTimer(max(0.0, self._withheld[0][0] - now), WithheldDue()))
        return leaving

    def _send(self, send: Send[Message], now: float) -> tuple[Send[Message], ...]:
        sent = super()._send(send, now)
        if send.peer in self._favoured or not isinstance(send.message, CARRYING):
            return sent
        self._withheld += [(now + WITHHELD, each) for each in sent]
        return ()


def withhold(
    conduct: Conduct,
    machine: NodeMachine,
    favoured: Container[PeerId],
    until: float,
    fellows: Container[PeerId],
) -> SendingNode:
    """Make an attacker of a machine.

    `favoured` are the nodes that selective, partial and late attackers serve; until this time, sleepers serve
    all. Links to
    `fellows` are reported as failed.
    """
    if conduct is Conduct.PARTIAL:
        return PartialNode(machine, favoured)
    if conduct is Conduct.LATE:
        return LateNode(machine, favoured)
    serves: Callable[[PeerId, float], bool] = {
        Conduct.SELECTIVE: lambda peer, now: peer in favoured,
        Conduct.SLEEPER: lambda peer, now: now < until,
    }.get(conduct, lambda peer, now: False)
    return WithholdingNode(machine, serves, conduct is Conduct.MUTE, fellows)


class LossyNode(SendingNode):
    """An honest node of whose messages a part is lost on the way."""

    def __init__(self, machine: NodeMachine, luck: Random) -> None:
        super().__init__(machine)
        self._luck = luck
        self._share = luck.uniform(*LOST)

    def choose_message(self, peer: PeerId, message: Message, now: float) -> Message | None:
        """See `SendingNode.choose_message`."""
        return None if self._luck.random() < self._share else message


class LateDue(Timer, frozen=True):
    """Fires when a slow node sends what it has held back."""


class SlowNode(SendingNode):
    """An honest node whose messages leave late, in their order."""

    def __init__(self, machine: NodeMachine, luck: Random) -> None:
        super().__init__(machine)
        self._luck = luck
        self._held: deque[tuple[float, Send[Message]]] = deque()

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        leaving: list[Effect] = []
        if isinstance(event, TimerFired) and isinstance(event.timer, LateDue):
            while self._held and self._held[0][0] <= now:
                leaving.append(self._held.popleft()[1])
        else:
            leaving += super().handle(event, now)
        if self._held:
            leaving.append(SetTimer(max(0.0, self._held[0][0] - now), LateDue()))
        return leaving

    def _send(self, send: Send[Message], now: float) -> tuple[Send[Message], ...]:
        # The next one waits for this one, whatever its own delay: so they leave in their order.
        self._held += [(now + self._luck.uniform(*SLOW), each) for each in super()._send(send, now)]
        return ()


class NapDue(Timer, frozen=True):
    """Fires when a sleepy node falls asleep, and when it wakes up."""


class SleepyNode(SendingNode):
    """An honest node that stands still at times, and handles afterwards what has come meanwhile."""

    def __init__(self, machine: NodeMachine, luck: Random) -> None:
        super().__init__(machine)
        self._luck = luck
        self._began = False
        self._waiting: list[Input] | None = None
        """The inputs that came while it sleeps; None: it is awake."""

    def handle(self, event: Input, now: float) -> list[Effect]:
        """See `NodeMachine.handle`."""
        if isinstance(event, TimerFired) and isinstance(event.timer, NapDue):
            return self._fall_asleep() if self._waiting is None else self._wake_up(now)
        if self._waiting is not None:
            self._waiting.append(event)
            return []
        effects = super().handle(event, now)
        if not self._began:
            self._began = True
            effects.append(SetTimer(self._luck.expovariate(1.0 / AWAKE), NapDue()))
        return effects

    def _fall_asleep(self) -> list[Effect]:
        self._waiting = []
        return [SetTimer(self._luck.uniform(*NAP), NapDue())]

    def _wake_up(self, now: float) -> list[Effect]:
        waiting, self._waiting = self._waiting or [], None
        effects = [effect for event in waiting for effect in super(SleepyNode, self).handle(event, now)]
        return [*effects, SetTimer(self._luck.expovariate(1.0 / AWAKE), NapDue())]


def trouble(conduct: Conduct, machine: NodeMachine, luck: Random) -> SendingNode:
    """Make a troubled node of a machine."""
    kinds = {Conduct.SLOW: SlowNode, Conduct.SLEEPY: SleepyNode, Conduct.LOSSY: LossyNode}
    return kinds[conduct](machine, luck)

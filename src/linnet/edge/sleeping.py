"""When a node on the edge sleeps: because it was told to, or by turns to spare its battery."""

from __future__ import annotations

from linnet.core.timers import Timer
from linnet.edge.proxy_config import EdgeConfig
from linnet.machine.outbox import Outbox


class SleepDue(Timer, frozen=True):
    """In battery mode the node was awake for long enough."""


class WakeDue(Timer, frozen=True):
    """In battery mode the node slept for long enough."""


class Sleeping:
    """Whether the node is asleep. Who calls lets links go and opens them again."""

    def __init__(self, config: EdgeConfig, out: Outbox) -> None:
        self._config = config
        self._out = out
        self.asleep = False
        self._told = False
        """Whether it sleeps because it was told to: then nothing but the word wakes it."""

    def start(self) -> None:
        """The node is up, and awake."""
        if self._config.battery:
            self._out.set_timer(self._config.awake, SleepDue())

    def fall_asleep(self, told: bool) -> None:
        """Sleep until the word or, in battery mode, for a while."""
        self.asleep, self._told = True, told or self._told
        if self._told:
            self._out.cancel_timer(SleepDue())
            self._out.cancel_timer(WakeDue())
        else:
            self._out.set_timer(self._config.asleep, WakeDue())

    def wake_up(self) -> None:
        """Sleep no longer."""
        self.asleep = self._told = False
        self._out.cancel_timer(WakeDue())
        self.start()

    @property
    def is_interruptible(self) -> bool:
        """Whether the node is asleep, and would wake up for something that the application sends."""
        return self.asleep and not self._told

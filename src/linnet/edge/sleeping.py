"""When a node on the edge sleeps: because it was told to, or by turns to spare its battery."""

from __future__ import annotations

from linnet.core.effects import CancelTimer, SetTimer
from linnet.core.timers import Tick
from linnet.edge.proxy_config import EdgeConfig

OWNER = "sleeping"
_SLEEP = Tick(OWNER, "sleep")
_WAKE = Tick(OWNER, "wake")

SleepingEffect = SetTimer[Tick] | CancelTimer[Tick]


class Sleeping:
    """Whether the node is asleep. Who calls lets links go and opens them again."""

    def __init__(self, config: EdgeConfig) -> None:
        self._config = config
        self.asleep = False
        self._told = False
        """Whether it sleeps because it was told to: then nothing but the word wakes it."""

    def start(self) -> list[SleepingEffect]:
        """The node is up, and awake."""
        return [SetTimer(self._config.awake, _SLEEP)] if self._config.battery else []

    def sleep(self, told: bool) -> list[SleepingEffect]:
        """Fall asleep, until the word or, in battery mode, for a while."""
        self.asleep, self._told = True, told or self._told
        if self._told:
            return [CancelTimer(_SLEEP), CancelTimer(_WAKE)]
        return [SetTimer(self._config.asleep, _WAKE)]

    def wake(self) -> list[SleepingEffect]:
        """Wake up."""
        self.asleep = self._told = False
        return [CancelTimer(_WAKE), *self.start()]

    def stir(self) -> bool:
        """The application has something to send: whether that is a reason to wake up."""
        return self.asleep and not self._told

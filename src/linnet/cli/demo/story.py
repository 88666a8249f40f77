"""What happens in the demo, and when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from msgspec import Struct

from linnet.cli.demo.messages import Begin
from linnet.cli.demo.network import Network
from linnet.cli.demo.process import Process
from linnet.cli.exits import Failure
from linnet.cli.moments import wall_clock

PUBLISHERS = 2
MIN_PEERS = PUBLISHERS + 1

KILL_PEER = 0.25
RETURN_PEER = 0.45
KILL_TRACKER = 0.55
"""Shares of the messages that are published when it happens."""

_PACE = 125.0
"""Messages a second in all."""

_LONGEST = 18.0
_SLACK = 60.0
_DRAIN = 20.0
"""Seconds after the last message in which everything has to be everywhere."""

Tell = Callable[[str], None]
Progress = Callable[[int, int], None]


class Plan(Struct, frozen=True):
    """What is asked of the demo."""

    peers: int
    messages: int
    seed: int

    @property
    def seconds(self) -> float:
        """How long publishing takes."""
        return min(_LONGEST, max(4.0, self.messages / _PACE))


class Facts(Struct, frozen=True):
    """What happened, as the demo did or saw it."""

    names: tuple[str, ...]
    homes: tuple[Path, ...]
    """Of the peers."""
    publishers: tuple[str, ...]
    killed: str
    seconds_away: float
    resumed: bool
    """Whether the killed peer found its durable subscription again."""
    takeover_seconds: float
    """From the death of the tracker until every peer follows the standby."""
    wall_seconds: float


class Story:
    """Runs the demo over a network that is about to start."""

    def __init__(self, plan: Plan, network: Network, tell: Tell, progress: Progress) -> None:
        self._plan = plan
        self._network = network
        self._tell = tell
        self._progress = progress

    async def run(self) -> Facts:
        """Everything from the start of the processes to their end."""
        plan, network, began = self._plan, self._network, wall_clock()
        self._tell(f"starting a tracker, its standby, a storage node and {plan.peers} peers")
        await network.start()
        chosen = Random(plan.seed).sample(network.peers, MIN_PEERS)  # noqa: S311 - a choice, no secret
        *publishers, victim = chosen
        names = " and ".join(peer.name for peer in publishers)
        self._tell(f"everyone is linked; {names} publish {plan.messages:,} messages in {plan.seconds:.0f} s")
        for number, publisher in enumerate(publishers):
            share = (plan.messages + number) // PUBLISHERS
            publisher.begin(Begin(share, plan.seconds))
        seconds_away = await self._kill_and_return(publishers, victim)
        takeover = await self._kill_tracker(publishers)
        await self._published(publishers, 1.0)
        self._tell("all is published; waiting until it is everywhere")
        await self._drained()
        await network.stop()
        return Facts(
            tuple(peer.name for peer in network.peers),
            tuple(peer.home for peer in network.peers),
            tuple(peer.name for peer in publishers),
            victim.name,
            seconds_away,
            victim.resumed is True,
            takeover,
            wall_clock() - began,
        )

    async def _kill_and_return(self, publishers: list[Process], victim: Process) -> float:
        await self._published(publishers, KILL_PEER)
        await victim.kill()
        killed_at = wall_clock()
        self._tell(f"{victim.name} is killed (SIGKILL)")
        await self._published(publishers, RETURN_PEER)
        await self._network.restart(victim)
        await self._network.until(
            lambda: victim.resumed is not None and victim.state is not None and victim.state.neighbors > 0,
            _SLACK,
            f"{victim.name} did not return",
        )
        seconds = wall_clock() - killed_at
        self._tell(f"{victim.name} is back after {seconds:.1f} s and resumes where it was")
        return seconds

    async def _kill_tracker(self, publishers: list[Process]) -> float:
        await self._published(publishers, KILL_TRACKER)
        network = self._network
        await network.tracker.kill()
        killed_at = wall_clock()
        self._tell("the tracker is killed (SIGKILL), for good")
        standby = network.standby.ready
        if standby is None:
            raise Failure("the standby is not ready")
        await network.until(
            lambda: all(
                peer.state is not None and peer.state.tracker == standby.device for peer in network.peers
            ),
            _SLACK,
            "the standby did not take over",
        )
        seconds = wall_clock() - killed_at
        self._tell(f"the standby has taken over after {seconds:.1f} s")
        return seconds

    async def _published(self, publishers: list[Process], share: float) -> None:
        """Wait until so much is published."""
        wanted = share * self._plan.messages
        await self._network.until(
            lambda: self._shown() >= wanted, self._plan.seconds + _SLACK, "the publishers did not get on"
        )

    async def _drained(self) -> None:
        """Wait until every peer has as many as were published, or nothing comes any more."""
        peers, wanted = self._network.peers, self._plan.messages

        def everywhere() -> bool:
            self._shown()
            return min(map(_received, peers)) >= wanted

        # What is missing by then is counted by name, from the files.
        await self._network.holds(everywhere, _DRAIN)

    def _shown(self) -> int:
        peers = self._network.peers
        published = sum(0 if peer.state is None else peer.state.published for peer in peers)
        self._progress(published, sum(map(_received, peers)))
        return published


def _received(process: Process) -> int:
    return 0 if process.state is None else process.state.received

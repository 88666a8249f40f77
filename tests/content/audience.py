"""A publisher with one group and those who join it, in a simulated network."""

from __future__ import annotations

from msgspec.structs import replace

from linnet.content.commands import GroupAt
from linnet.content.config import FastConfig
from linnet.content.fast.commands import (
    ExamineGroups,
    GroupOutcome,
    GroupsJoined,
    GroupsStatus,
    GroupStatus,
    JoinGroups,
    LeaveGroups,
    OpenGroup,
    PublishToGroup,
)
from linnet.core.ids import Contact, PeerId
from linnet.peer.config import PeerConfig
from linnet.peer.interface import AnyCommand
from linnet.sim.content.world import HINTS, ContentWorld
from linnet.sim.links import LinkModel
from linnet.trace.records import TraceSink


class Audience(ContentWorld):
    """The first node has a group; the others may join it."""

    def __init__(
        self,
        nodes: int,
        group: str = "stock",
        *,
        config: FastConfig | None = None,
        listed: bool = False,
        links: LinkModel | None = None,
        trace: TraceSink | None = None,
        unreachable: tuple[str, ...] = (),
        seed: int = 1,
    ) -> None:
        self._fast = config or FastConfig(capacity=1000)
        self._unreachable = unreachable
        super().__init__(nodes, seed, None, links, trace)
        self.group = group
        self.publisher = self.names[0]
        self.peers: dict[str, PeerId] = {name: each.peer for name, each in self.identities.items()}
        self.run(0.1)
        self.asked(self.publisher, OpenGroup(group, listed))

    def _config_of(self, name: str) -> PeerConfig:
        hints = () if name in self._unreachable else HINTS
        return replace(super()._config_of(name), listens=hints, fast=self._fast)

    def asked(self, name: str, command: AnyCommand, seconds: float = 1.0) -> object | None:
        """Give a command, let time pass, and see what was answered."""
        request = self.network.ask(self.peers[name], command)
        self.run(seconds)
        return self.network.answers.get(request)

    def join(
        self, name: str, predicate: str | None = None, *, region: str = "here", capacity: int | None = 0
    ) -> int:
        """Let a node join the group; the number of its subscription."""
        self._subscriptions += 1
        via = GroupAt(Contact(self.peers[self.publisher], HINTS), self.group)
        command = JoinGroups(self._subscriptions, predicate or self.group, via, region, capacity)
        answer = self.asked(name, command)
        if not isinstance(answer, GroupsJoined) or answer.refused:
            raise AssertionError(f"{name} did not join: {answer}")
        return self._subscriptions

    def leave(self, name: str, subscription: int) -> None:
        """Let a node end a subscription."""
        self.asked(name, LeaveGroups(subscription))

    def say(self, body: bytes, attributes: str | None = None, seconds: float = 2.0) -> GroupOutcome:
        """Let the publisher say something; what became of it."""
        command = PublishToGroup(self.group, attributes or self.group, body)
        answer = self.asked(self.publisher, command, seconds)
        if not isinstance(answer, GroupOutcome):
            raise AssertionError(f"not known after {seconds} s: {answer}")
        return answer

    def status(self, name: str | None = None) -> GroupsStatus:
        """How groups stand at a node."""
        answer = self.asked(name or self.publisher, ExamineGroups())
        if not isinstance(answer, GroupsStatus):
            raise AssertionError(answer)
        return answer

    @property
    def standing(self) -> GroupStatus:
        """How the group stands."""
        return self.status().groups[0]

    def deputies(self) -> dict[str, int]:
        """Who serves others, and how many."""
        return {self.node_of[peer]: served for peer, served, _ in self.standing.deputies}

    def hops(self, name: str) -> list[int]:
        """Over how many links a node was handed each event."""
        return [match.hops for match, _ in self.matches.get(name, ())]

"""The same nodes and topics with a tracker's graph in place of rings: for comparison, on the same driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from linnet.core.ids import Contact, TopicId
from linnet.machine.outbox import Outbox
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.config import DEFAULT_DEGREE, MemberConfig, TrackerConfig
from linnet.overlay.member import Member
from linnet.overlay.tracker import Tracker
from linnet.sim.clock import START
from linnet.sim.gossip_peer import OverlayMachine
from linnet.sim.gossip_world import Weigh
from linnet.sim.identities import seeded_identity
from linnet.sim.interests import Interests
from linnet.sim.luck import named_luck
from linnet.sim.overlay_report import OverlayScenario
from linnet.sim.part_machine import PartMachine
from linnet.sim.topic_world import SimulatedNode, TopicWorld


class TrackedWorld(TopicWorld):
    """Nodes that follow one tracker in all topics, and flood."""

    def __init__(
        self,
        scenario: OverlayScenario,
        interests: Interests,
        starts: Mapping[int, float] | None = None,
        weigh: Weigh | None = None,
    ) -> None:
        self._following: dict[int, tuple[Member, PartMachine]] = {}
        super().__init__(scenario, interests, starts, weigh)
        self.tracker = seeded_identity(scenario.seed, "tracker", START).peer
        out = Outbox()
        tracker = Tracker(TrackerConfig(), named_luck(scenario.seed, "tracker"), out)
        self.world.add(self.tracker, PartMachine(out, tracker))

    def _machine(self, node: SimulatedNode) -> OverlayMachine:
        out = Outbox()
        member = Member(MemberConfig(), out, Adjacency(out), (f"sim:{node.number}",))
        machine = PartMachine(out, member)
        self._following[node.number] = member, machine
        return machine

    def routing(self, node: SimulatedNode, topic: TopicId) -> None:
        """To all neighbours."""
        return

    def _begun(self, node: SimulatedNode, now: float) -> list[Any]:
        member, machine = self._following[node.number]
        contact = Contact(self.tracker, ("sim:tracker",))

        def join() -> None:
            for topic in node.topics:
                member.join(self.topic_ids[topic], (contact,), DEFAULT_DEGREE, False, False, now)

        return machine.perform(join, now)

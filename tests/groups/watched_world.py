"""A group's small world in which states can be stolen, and in which it is known who had done what by then."""

from __future__ import annotations

from tests.groups.group_world import GROUP, GroupWorld, Packet, Peer

from linnet.core.ids import EventId
from linnet.groups import agreement
from linnet.groups.agreement import Draft
from linnet.groups.state import GroupConfig, Hardening, encode_state
from linnet.sim.attacks.group_attacker import attack
from linnet.sim.groups.ledger import Ledger
from linnet.sim.groups.safety import Judge
from linnet.sim.groups.world import Overheard, Theft


class WatchedWorld(GroupWorld):
    """The same, with a log of each device."""

    def __init__(
        self,
        names: str,
        seed: int = 0,
        config: GroupConfig | None = None,
        hardening: Hardening | None = None,
    ) -> None:
        self.logs: dict[str, list[EventId]] = {name: [] for name in names}
        super().__init__(names, seed, config, hardening)

    def clone(self) -> WatchedWorld:
        """Another world that goes on from here."""
        other = super().clone()
        assert isinstance(other, WatchedWorld)
        other.logs = {name: [*log] for name, log in self.logs.items()}
        return other

    def say(self, name: str, text: str) -> Packet:
        """A message."""
        packet = super().say(name, text)
        self.logs[name].append(packet.id)
        return packet

    def send(self, name: str, draft: Draft, quiet: bool = False) -> Packet:
        """A draft becomes an event."""
        packet = super().send(name, draft, quiet)
        self.logs[name].append(packet.id)
        return packet

    def _give(self, peer: Peer, packet: Packet) -> bool:
        done = super()._give(peer, packet)
        if done:
            self.logs[peer.name].append(packet.id)
        return done

    def pass_days(self, days: float) -> None:
        """Time goes by, and every device forgets what has outlived its time."""
        self.now += days * 86_400
        for peer in self.peers.values():
            peer.state = agreement.tend(peer.state, self.now)

    def settle_operations(self) -> None:
        """Deliver and acknowledge all operations; messages stay under way."""
        moved = True
        while moved:
            moved = False
            for (sender, to), queue in self.links.items():
                held = [*queue]
                queue.clear()
                for packet in held:
                    if not packet.clear:
                        queue.append(packet)
                        self.deliver(sender, to)
                        self.acks(to)
                        moved = True
                queue.extend(packet for packet in held if packet.clear)

    # Thefts.

    def steal(self, name: str) -> Theft:
        """All that a device has now."""
        return Theft(encode_state(self.peers[name].state), tuple(self.logs[name]))

    def heard(self) -> list[Overheard]:
        """What all carriers have seen by now."""
        return [
            Overheard(each.id, each.device, each.body, each.clear, b"bound" if each.clear else b"")
            for each in self.transcript
        ]

    def read(self, *thefts: Theft) -> set[str]:
        """The texts that a thief of these reads, by now."""
        texts = {each.id: each.text for each in self.transcript}
        found = attack(GROUP, self.heard(), [theft.state for theft in thefts])
        for id, text in found.items():
            if texts[id].encode() != text:
                raise AssertionError("what was read is not what was said")
        return {texts[id] for id in found}

    def safe(self, *thefts: Theft) -> set[str]:
        """The texts that such a thief must not read."""
        safe = Judge(Ledger(GROUP, self.heard()), thefts).safe()
        return {each.text for each in self.transcript if each.id in safe}

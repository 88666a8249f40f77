"""Local networks in simulation: which nodes receive whose announcements, and which meet."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from linnet.core.effects import Announce, Meet
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.inputs import Heard, LocalNetwork, Met, NetworkIs, NotMet
from linnet.core.reasons import Reason
from linnet.edge.announcement import day_of, network_id, read_announcement
from linnet.peer.interface import Input
from linnet.sim.clock import Clock
from linnet.sim.links import LinkModel
from linnet.sim.wires import Host, Wires

_LATENCY = 0.002
"""Seconds that a datagram takes on a local network."""
_FIRST_PORT = 20_000


class _Lan:
    """One local network."""

    __slots__ = ("loss", "members", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: dict[PeerId, None] = {}
        self.loss = 0.0


class Lans:
    """All local networks of a simulation. A node may be on several."""

    def __init__(self, clock: Clock, model: LinkModel, hosts: dict[PeerId, Host], wires: Wires) -> None:
        self._clock = clock
        self._model = model
        self._hosts = hosts
        self._wires = wires
        self._lans: dict[bytes, _Lan] = {}
        self._holders: dict[tuple[bytes, bytes], PeerId] = {}
        """The node that announced a key first on a network: only it can prove the key."""
        self._ports = _FIRST_PORT
        wires.share_lan = self.share

    def set(self, name: str, peers: Iterable[PeerId], loss: float) -> bytes:
        """Let exactly these nodes be on a network; nodes whose networks changed are told."""
        network = network_id((name.encode(),))
        lan = self._lans.setdefault(network, _Lan(name))
        before, lan.members, lan.loss = lan.members, dict.fromkeys(peers), loss
        changed = [peer for peer in (before | lan.members) if (peer in before) != (peer in lan.members)]
        if any(peer in before for peer in changed):
            self._wires.cut(silent=True)
        for peer in changed:
            self._clock.push(self._clock.now, self._tell_networks, (peer,))
        return network

    def share(self, one: PeerId, other: PeerId) -> bool:
        """Return whether two nodes are on one network."""
        return any(one in lan.members and other in lan.members for lan in self._lans.values())

    def shout(self, name: str, source: str, datagram: bytes) -> None:
        """Send a datagram with this source address to all nodes on a network."""
        network = network_id((name.encode(),))
        for peer in self._lans[network].members:
            self._tell(peer, Heard(network, source, datagram), _LATENCY)

    def perform(self, host: Host, effect: Announce | Meet) -> None:
        """Perform an effect of a node on its local networks."""
        if isinstance(effect, Announce):
            self._announce(host, effect.network, effect.datagram)
        else:
            self._meet(host, effect)

    def _announce(self, host: Host, network: bytes, datagram: bytes) -> None:
        """Send a node's announcement to all nodes on a network, itself included."""
        lan = self._lans.get(network)
        if lan is None or host.peer not in lan.members:
            return
        with suppress(RemoteError):
            self._holders.setdefault((network, read_announcement(datagram).lan), host.peer)
        source = self._address(host.peer)
        for peer in lan.members:
            if not lan.loss or host.luck.random() >= lan.loss:
                self._tell(peer, Heard(network, source, datagram), _LATENCY)

    def _meet(self, host: Host, meet: Meet) -> None:
        """Let a node meet the one that announced a key; both learn the identity of the other."""
        target = self._holders.get((meet.network, meet.lan))
        if target is None:
            late = NotMet(meet.network, meet.lan, Reason.WRONG_KEY)
            self._tell(host.peer, late, self._model.dial_time(_LATENCY, _LATENCY))
            return
        arrival = self._clock.now + self._model.dial_time(_LATENCY, _LATENCY)
        self._clock.push(arrival, self._met, (host, target, meet))

    def _met(self, host: Host, target: PeerId, meet: Meet) -> None:
        lan = self._lans[meet.network]
        if host.peer not in lan.members or target not in lan.members or not self._hosts[target].alive:
            late = NotMet(meet.network, meet.lan, Reason.DIAL_TIMEOUT)
            self._tell(host.peer, late, self._model.dial_timeout)
            return
        self._tell(target, Met(meet.network, meet.own, host.peer), 0.0)
        self._tell(host.peer, Met(meet.network, meet.lan, target), _LATENCY)
        if host.alive:
            self._clock.push(self._clock.now, self._wires.link_locally, (host, target))

    def _tell(self, peer: PeerId, event: Input, delay: float) -> None:
        self._clock.push(self._clock.now + delay, self._told, (peer, event))

    def _told(self, peer: PeerId, event: Input) -> None:
        host = self._hosts.get(peer)
        if host is not None and host.alive:
            self._wires.inbox.append((host, event))

    def _tell_networks(self, peer: PeerId) -> None:
        here = [(network, lan) for network, lan in self._lans.items() if peer in lan.members]
        self._ports += 1
        day = day_of(self._clock.now)
        networks = tuple(LocalNetwork(network, day, self._ports, lan.name) for network, lan in here)
        self._told(peer, NetworkIs(networks))

    def _address(self, peer: PeerId) -> str:
        place = list(self._hosts).index(peer) + 1
        return f"10.{place >> 16 & 255}.{place >> 8 & 255}.{place & 255}"

"""A small world of group members: links that keep the order of each sender, and any interleaving else.

Deterministic for its seed; nothing is chosen by random ids. `clone` makes another world that goes on from
here, so that all ways on can be tried. Everything that was ever sent is in `transcript`.
"""

from __future__ import annotations

import copy
import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from random import Random

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement, message_crypto
from linnet.groups.agreement import Draft, Step
from linnet.groups.labels import Device, MemberId
from linnet.groups.notes import Joined, Note, Waits
from linnet.groups.prekeys import Bundle, bundle_of
from linnet.groups.state import GroupConfig, GroupState, Hardening, decode_state, encode_state
from linnet.sim.seeded_random import SeededEntropy

GROUP = bytes(range(32))
START = 1_800_000_000.0
RETRY = frozenset({Reason.KEY_MISSING, Reason.UNKNOWN_MEMBER})


class Packet(Struct, frozen=True):
    """An operation, or a message if it has clear bytes."""

    id: EventId
    sender: str
    device: Device
    body: bytes
    clear: bytes = b""
    text: str = ""
    """What a message says: for whoever checks, not for those who receive it."""


class Peer:
    """One device, and what became of all that it received."""

    def __init__(self, name: str, state: GroupState, entropy: SeededEntropy) -> None:
        self.name = name
        self.device = state.ours
        self.state = state
        self.entropy = entropy
        self.seen: list[Packet] = []
        self.waiting: list[Packet] = []
        self.read: dict[EventId, str] = {}
        """The texts of messages that were opened."""
        self.unread: dict[EventId, Reason] = {}
        self.notes: list[Note] = []
        self.faults: list[tuple[EventId, Reason]] = []

    @property
    def id(self) -> MemberId:
        """Its id in the group."""
        assert self.state.me is not None
        return self.state.me

    def clone(self) -> Peer:
        """Another one like it."""
        other = Peer(self.name, self.state, copy.copy(self.entropy))
        other.seen, other.waiting, other.notes = [*self.seen], [*self.waiting], [*self.notes]
        other.read, other.unread, other.faults = {**self.read}, {**self.unread}, [*self.faults]
        return other


class GroupWorld:
    """Devices by name, each of which may be in the group or not; all hear all."""

    renews = True
    """Whether devices publish prekeys after every seed, as in rooms; else when the test says so."""

    def __init__(
        self,
        names: Iterable[str],
        seed: int = 0,
        config: GroupConfig | None = None,
        hardening: Hardening | None = None,
    ) -> None:
        self.now = START
        self.restores = False  # Whether each state goes through its bytes after every step.
        self.peers: dict[str, Peer] = {}
        self.bundles: dict[Device, tuple[EventId, Bundle]] = {}
        self.links: dict[tuple[str, str], deque[Packet]] = {}
        self.transcript: list[Packet] = []
        self.may_hold: Callable[[Device], bool] = lambda device: True
        settings = config or GroupConfig(one_time=8), hardening or Hardening()
        for name in names:
            device = Device(AuthorId(_hash("author", name)), DeviceId(_hash("device", name)[:8]))
            entropy = self._entropy(seed, name)
            state = agreement.begin(GROUP, device, entropy, self.now, *settings)
            self.peers[name] = Peer(name, state, entropy)
        self.links = {(one, two): deque() for one in self.peers for two in self.peers if one != two}
        for name in self.peers:
            self.publish_keys(name)

    def _entropy(self, seed: int, name: str) -> SeededEntropy:
        return SeededEntropy(seed, name)

    def clone(self) -> GroupWorld:
        """Another world that goes on from here."""
        other = copy.copy(self)
        other.peers = {name: peer.clone() for name, peer in self.peers.items()}
        other.bundles, other.transcript = {**self.bundles}, [*self.transcript]
        other.links = {ends: deque(queue) for ends, queue in self.links.items()}
        return other

    def directory(self, device: Device) -> Bundle | None:
        """The newest bundle of a device."""
        return self.bundles[device][1] if device in self.bundles else None

    # What devices do.

    def publish_keys(self, name: str) -> None:
        """Publish prekeys, if there are any to publish; everybody knows them at once."""
        peer = self.peers[name]
        draft = agreement.draft_keys(peer.state, peer.entropy, self.now)
        if draft is not None:
            packet = self.send(name, draft, quiet=True)
            self.bundles[peer.device] = packet.id, bundle_of(peer.state.prekeys)

    def create(self, name: str, others: Iterable[str]) -> Packet:
        """A group of these."""
        peer, devices = self.peers[name], [self.peers[other].device for other in others]
        return self._seed(name, agreement.draft_create(peer.state, devices, self.means(peer)))

    def add(self, name: str, who: str) -> Packet:
        """Add a device."""
        peer, device = self.peers[name], self.peers[who].device
        keys = self.bundles[device][0]
        return self.send(name, agreement.draft_add(peer.state, device, keys, self.means(peer)))

    def remove(self, name: str, *whom: str) -> Packet:
        """Remove devices, whatever their ids are now."""
        peer, devices = self.peers[name], {self.peers[who].device for who in whom}
        ids = [member for member, device in agreement.members(peer.state).items() if device in devices]
        return self._seed(name, agreement.draft_remove(peer.state, ids, self.means(peer)))

    def update(self, name: str) -> Packet:
        """A new seed."""
        peer = self.peers[name]
        return self._seed(name, agreement.draft_update(peer.state, self.means(peer)))

    def acks(self, name: str) -> Packet | None:
        """Send what acknowledgements are owed, if any are."""
        peer = self.peers[name]
        draft = agreement.draft_acks(peer.state, self.means(peer))
        return None if draft is None else self.send(name, draft)

    def say(self, name: str, text: str) -> Packet:
        """A message."""
        peer = self.peers[name]
        state, envelope = message_crypto.envelope(peer.state, peer.entropy)
        sealed = envelope.seal(text.encode(), b"bound")
        self._keep(peer, Step(state))
        id = EventId(_hash(name, envelope.clear.hex()))
        return self._broadcast(Packet(id, name, peer.device, sealed, envelope.clear, text))

    def send(self, name: str, draft: Draft, quiet: bool = False) -> Packet:
        """A draft becomes an event."""
        peer = self.peers[name]
        op = EventId(
            hashlib.sha256(peer.device.author + len(self.transcript).to_bytes(4) + draft.body).digest()
        )
        self._keep(peer, agreement.sent(draft, op))
        packet = Packet(op, name, peer.device, draft.body)
        if quiet:
            self.transcript.append(packet)
            return packet
        return self._broadcast(packet)

    def _seed(self, name: str, draft: Draft) -> Packet:
        packet = self.send(name, draft)
        if self.renews and self.peers[name].state.hardening.renews:
            self.publish_keys(name)
        return packet

    def means(self, peer: Peer) -> agreement.Means:
        """What a device makes an operation with."""
        return agreement.Means(self.directory, self.may_hold, peer.entropy, self.now)

    # What arrives.

    def deliver(self, sender: str, to: str) -> Packet | None:
        """The next packet of a link; None if there is none."""
        queue, peer = self.links[sender, to], self.peers[to]
        if not queue:
            return None
        packet = queue.popleft()
        peer.seen.append(packet)
        self._give(peer, packet)
        self._retry(peer)
        return packet

    def settle(self, rng: Random | None = None, ack: bool = True) -> None:
        """Deliver all there is, acknowledging at once, until nothing is under way; in this luck's order."""
        while ready := [ends for ends, queue in self.links.items() if queue]:
            sender, to = ready[0] if rng is None else rng.choice(ready)
            self.deliver(sender, to)
            if ack:
                self.acks(to)

    def _give(self, peer: Peer, packet: Packet) -> bool:
        """Whether a packet changed anything; what waits is kept."""
        if packet.clear:
            return self._open(peer, packet)
        try:
            step = agreement.receive(peer.state, packet.device, packet.id, packet.body, self.now)
        except RemoteError as error:
            peer.faults.append((packet.id, error.reason))
            return False
        self._keep(peer, step)
        if any(isinstance(note, Waits) for note in step.notes):
            peer.waiting.append(packet)
            return False
        if any(isinstance(note, Joined) for note in step.notes):
            peer.waiting = [each for each in peer.seen if not each.clear or each.id in peer.unread]
        return True

    def _open(self, peer: Peer, packet: Packet) -> bool:
        try:
            state, opened = message_crypto.open_message(
                peer.state, packet.device, packet.clear, b"bound", packet.body
            )
        except RemoteError as error:
            peer.unread[packet.id] = error.reason
            if error.reason in RETRY:
                peer.waiting.append(packet)
            return False
        peer.unread.pop(packet.id, None)
        peer.read[packet.id] = opened.plaintext.decode()
        self._keep(peer, Step(state))
        return True

    def _retry(self, peer: Peer) -> None:
        """Give again what waits, until nothing of it moves."""
        moved = 1
        while moved:
            waiting, peer.waiting = peer.waiting, []
            moved = sum(self._give(peer, packet) for packet in waiting)

    def _keep(self, peer: Peer, step: Step) -> None:
        peer.state = decode_state(encode_state(step.state)) if self.restores else step.state
        peer.notes += (note for note in step.notes if not isinstance(note, Waits))

    def _broadcast(self, packet: Packet) -> Packet:
        self.transcript.append(packet)
        self.peers[packet.sender].seen.append(packet)
        for (sender, _), queue in self.links.items():
            if sender == packet.sender:
                queue.append(packet)
        return packet


def start(
    founders: str,
    others: str = "",
    seed: int = 0,
    config: GroupConfig | None = None,
    hardening: Hardening | None = None,
) -> GroupWorld:
    """A group of these, to whom nothing is under way; others are there to be added."""
    world = GroupWorld(founders + others, seed, config, hardening)
    world.create(founders[0], founders[1:])
    world.settle()
    return world


def act(world: GroupWorld, deeds: str) -> None:
    """What devices do, in this order: ``A!`` updates, ``A+C`` adds, ``A-C`` removes.

    With ``A>C`` C hears the next of A, with ``C.`` it acknowledges what it heard, with ``*`` all is settled.
    """
    for deed in deeds.split():
        match [*deed]:
            case [who, "!"]:
                world.update(who)
            case [who, "+", whom]:
                world.add(who, whom)
            case [who, "-", whom]:
                world.remove(who, whom)
            case [who, ">", whom]:
                world.deliver(who, whom)
            case [who, "."]:
                world.acks(who)
            case ["*"]:
                world.settle()
            case _:
                raise ValueError(deed)


def _hash(*parts: str) -> bytes:
    return hashlib.sha256("/".join(parts).encode()).digest()

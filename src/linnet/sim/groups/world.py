"""Devices of one encrypted group over links that keep the order of each sender, and can be cut.

The shipped key agreement runs on each device; this module only carries its messages and keeps track of which
device has received, queued and opened which. Deterministic for its seed: nothing is chosen by ids, nothing is
iterated out of a set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement, message_crypto
from linnet.groups.agreement import Draft, Step
from linnet.groups.bodies import Acks, Keys, Update, decode_body, encode_item
from linnet.groups.labels import Device, MemberId
from linnet.groups.notes import Desynced, Equivocation, Joined, Lost, RemovedSelf, Waits, WeakFs
from linnet.groups.prekeys import Bundle
from linnet.groups.state import GroupConfig, GroupState, Hardening, encode_state
from linnet.sim.seeded_random import SeededEntropy


class Overheard(Struct, frozen=True):
    """One event of a group: an operation, or a message if it has clear bytes. Events are in an order of
    causes."""

    id: EventId
    device: Device
    body: bytes
    clear: bytes = b""
    bound: bytes = b""
    """Further data that a message is bound to; public, too."""


class Theft(Struct, frozen=True):
    """A device's whole state, and its history by then: for the judge, not for the thief."""

    state: bytes
    log: tuple[EventId, ...]
    """Operations and messages that it had sent, taken in or opened, in its order."""

    def __repr__(self) -> str:
        return f"Theft(after {len(self.log)})"


GROUP = hashlib.sha256(b"linnet/sim/groups").digest()
START = 1_800_000_000.0
BOUND = b"linnet/sim/groups"
_RETRY = (Reason.KEY_MISSING, Reason.UNKNOWN_MEMBER)
_TROUBLE = (Desynced, Lost, Equivocation)


class Said(Struct, frozen=True):
    """A message, with its intended readers."""

    id: EventId
    text: str
    at: int
    """Its place among all overheard events."""
    by: MemberId
    readers: tuple[MemberId, ...]
    needed_heal: bool
    """Whether it was sent although removed members might read it."""


class Machine:
    """One device, with everything it received and what it made of that."""

    def __init__(self, name: str, state: GroupState, entropy: SeededEntropy) -> None:
        self.name = name
        self.state = state
        self.entropy = entropy
        self.heard: list[int] = []
        self.waiting: list[int] = []
        self.log: list[EventId] = []
        self.opened: dict[tuple[MemberId, EventId], str] = {}
        """Texts, by the member that the device was then."""
        self.troubles: list[str] = []
        self.weak = 0
        """First messages without a one-time prekey."""
        self.bundles: dict[Device, tuple[int, Bundle]] = {}
        """The newest known prekeys of each device, with their place among all events."""
        self.kept: list[GroupState] = []
        """Its states, as far as the run keeps them for thieves: all, or those after operations."""


class GroupNet:
    """All devices, all messages, and how far each device has received from each other."""

    def __init__(
        self,
        devices: int,
        seed: int,
        hardening: Hardening | None = None,
        keep_all: bool = False,
    ) -> None:
        self.now = START
        self.keep_all = keep_all
        self.overheard: list[Overheard] = []
        self.said: dict[EventId, Said] = {}
        self.machines: list[Machine] = []
        self.sides: list[int] = [0] * devices
        """The side of a partition that each device is on."""
        self.bundles: dict[Device, tuple[EventId, Bundle]] = {}
        self._sent: list[list[int]] = [[] for _ in range(devices)]
        self._cursors = [[0] * devices for _ in range(devices)]
        self._trace = hashlib.sha256()
        for place in range(devices):
            name = f"device-{place}"
            device = Device(
                AuthorId(_digest(seed, "author", name)), DeviceId(_digest(seed, "device", name)[:8])
            )
            entropy = SeededEntropy(seed, name)
            state = agreement.begin(GROUP, device, entropy, self.now, GroupConfig(), hardening or Hardening())
            self.machines.append(Machine(name, state, entropy))
        for place in range(devices):
            self.publish_keys(place)

    @property
    def trace_sha256(self) -> str:
        """The hash of everything that was sent, and how it arrived."""
        return self._trace.hexdigest()

    def members(self) -> list[int]:
        """Return the devices that are in the group, as far as they know."""
        return [place for place, machine in enumerate(self.machines) if machine.state.me is not None]

    def directory(self, device: Device) -> Bundle | None:
        """Return the newest prekeys of a device, even if no other device has received them yet."""
        known = self.bundles.get(device)
        return None if known is None else known[1]

    def directory_at(self, place: int) -> agreement.Directory:
        """Return the newest prekeys that one device has received."""
        known = self.machines[place].bundles
        return lambda device: known[device][1] if device in known else None

    def _means(self, place: int) -> agreement.Means:
        return agreement.Means(self.directory_at(place), _anybody, self.machines[place].entropy, self.now)

    # What devices do.

    def publish_keys(self, place: int, travels: bool = False) -> None:
        """Publish new prekeys, if there are any: all devices can look them up at once.

        With `travels` they are sent like any event of the device, as are those that go with a seed.
        """
        machine = self.machines[place]
        draft = agreement.draft_keys(machine.state, machine.entropy, self.now)
        if draft is None or not isinstance(draft.content, Keys):
            return
        bundle = draft.content.bundle
        op = self._send(place, draft, tell=travels)
        self.bundles[machine.state.ours] = (op, bundle)
        for each in (machine,) if travels else self.machines:
            each.bundles[machine.state.ours] = (len(self.overheard) - 1, bundle)

    def _seed(self, place: int, draft: Draft) -> EventId:
        """Send an operation with a seed, and the prekeys that go with it."""
        op = self._send(place, draft)
        if self.machines[place].state.hardening.renews:
            self.publish_keys(place, travels=True)
        return op

    def create(self, place: int, others: Iterable[int]) -> EventId:
        """Create a group of these devices."""
        machine, devices = self.machines[place], [self.machines[other].state.ours for other in others]
        return self._seed(place, agreement.draft_create(machine.state, devices, self._means(place)))

    def add(self, place: int, other: int) -> EventId:
        """Add a device."""
        machine, device = self.machines[place], self.machines[other].state.ours
        keys = self.bundles[device][0]
        return self._send(place, agreement.draft_add(machine.state, device, keys, self._means(place)))

    def remove(self, place: int, members: Iterable[MemberId]) -> EventId:
        """Remove members."""
        machine = self.machines[place]
        return self._seed(place, agreement.draft_remove(machine.state, members, self._means(place)))

    def update(self, place: int) -> EventId:
        """Send a new seed."""
        machine = self.machines[place]
        return self._seed(place, agreement.draft_update(machine.state, self._means(place)))

    def leave(self, place: int) -> EventId:
        """Ask to be removed."""
        return self._send(place, agreement.draft_leave(self.machines[place].state, self.now))

    def acks(self, place: int) -> None:
        """Send all acknowledgements that a device owes."""
        machine = self.machines[place]
        while True:
            draft = agreement.draft_acks(machine.state, self._means(place))
            if draft is None:
                return
            self._send(place, draft)

    def say(self, place: int, text: str) -> EventId:
        """Send a message."""
        machine = self.machines[place]
        needed = agreement.needs_heal(machine.state)
        state, envelope = message_crypto.envelope(machine.state, machine.entropy)
        sealed = envelope.seal(text.encode(), BOUND)
        me = message_crypto.read_clear(envelope.clear)[0]
        id = EventId(hashlib.sha256(envelope.clear + sealed).digest())
        readers = tuple(member for member in agreement.members(state) if member != me)
        self.said[id] = Said(id, text, len(self.overheard), me, readers, needed)
        self._keep(machine, state, id)
        self._tell(place, Overheard(id, state.ours, sealed, envelope.clear, BOUND))
        return id

    def _send(self, place: int, draft: Draft, tell: bool = True) -> EventId:
        machine = self.machines[place]
        count = len(self.overheard).to_bytes(4, "big")
        op = EventId(hashlib.sha256(machine.state.ours.author + count + draft.body).digest())
        step = agreement.sent(draft, op)
        self._note(machine, step)
        self._keep(machine, step.state, op, whole=True)
        heard = Overheard(op, machine.state.ours, draft.body)
        if tell:
            self._tell(place, heard)
        else:
            self.overheard.append(heard)
        return op

    def _tell(self, place: int, heard: Overheard) -> None:
        self._trace.update(heard.id + heard.clear + heard.body)
        self._sent[place].append(len(self.overheard))
        self.machines[place].heard.append(len(self.overheard))  # For a later stay it is as any other's.
        self.overheard.append(heard)

    # What arrives.

    def reachable(self, to: int) -> list[int]:
        """Return the devices with messages under way to a device that can arrive."""
        side, cursors = self.sides[to], self._cursors[to]
        return [
            place
            for place, sent in enumerate(self._sent)
            if cursors[place] < len(sent) and place != to and self.sides[place] == side
        ]

    def deliver(self, sender: int, to: int) -> None:
        """Deliver the next message of one device to another."""
        number = self._sent[sender][self._cursors[to][sender]]
        self._cursors[to][sender] += 1
        self.hear(number, to)

    def hear(self, number: int, to: int) -> None:
        """Let a device receive any overheard event, in any order, any number of times."""
        machine = self.machines[to]
        machine.heard.append(number)
        if self._give(machine, number) and machine.waiting:
            self._retry(machine)
        self._trace.update(bytes((to,)) + number.to_bytes(4, "big"))

    def _retry(self, machine: Machine) -> None:
        moved = True
        while moved and machine.state.me is not None:
            moved = False
            waiting, machine.waiting = machine.waiting, []
            for number in waiting:
                moved = self._give(machine, number) or moved

    def _give(self, machine: Machine, number: int) -> bool:
        """Let a device handle an event; return whether that changed its state."""
        heard = self.overheard[number]
        if heard.clear:
            return self._open(machine, number, heard)
        content = decode_body(heard.body)
        if isinstance(content, Keys):
            if number > machine.bundles[heard.device][0]:
                machine.bundles[heard.device] = (number, content.bundle)
            return False
        try:
            step = agreement.receive(machine.state, heard.device, heard.id, heard.body, self.now)
        except RemoteError as error:
            if error.reason is not Reason.KEY_SPENT or machine.state.me is not None:
                machine.troubles.append(f"{machine.name}: an operation is refused: {error.reason}")
            return False
        self._note(machine, step)
        if any(isinstance(note, Waits) for note in step.notes):
            machine.state = step.state
            if machine.state.me is not None:
                machine.waiting.append(number)
            return False
        self._keep(machine, step.state, heard.id, whole=not isinstance(content, Acks))
        if any(isinstance(note, Joined) for note in step.notes):
            machine.waiting = [each for each in machine.heard if each != number]
        elif any(isinstance(note, RemovedSelf) for note in step.notes):
            machine.waiting = []
        return True

    def _open(self, machine: Machine, number: int, heard: Overheard) -> bool:
        me = machine.state.me
        if me is None:
            return False
        try:
            state, opened = message_crypto.open_message(
                machine.state, heard.device, heard.clear, heard.bound, heard.body
            )
        except RemoteError as error:
            if error.reason in _RETRY:
                machine.waiting.append(number)
            return False
        machine.opened[me, heard.id] = opened.plaintext.decode()
        self._keep(machine, state, heard.id)
        return True

    def _note(self, machine: Machine, step: Step) -> None:
        for note in step.notes:
            if isinstance(note, _TROUBLE):
                machine.troubles.append(f"{machine.name}: {type(note).__name__}")
            machine.weak += isinstance(note, WeakFs)

    def _keep(self, machine: Machine, state: GroupState, event: EventId, whole: bool = False) -> None:
        machine.state = state
        machine.log.append(event)
        if self.keep_all or whole:
            machine.kept.append(state)

    # Time and thefts.

    def pass_days(self, days: float) -> None:
        """Let time pass, and let every device drop state that has expired."""
        self.now += days * 86_400
        for machine in self.machines:
            machine.state = agreement.tend(machine.state, self.now)

    def steal(self, place: int) -> Theft:
        """Steal all that a device has now."""
        machine = self.machines[place]
        return Theft(encode_state(machine.state), tuple(machine.log))

    def update_bytes(self) -> list[int]:
        """Return for each update the bytes of its body, of its prekeys, and of its acknowledgements.

        The heads of acknowledgements are shared among their items.
        """
        sizes: dict[EventId, float] = {}
        last: dict[Device, EventId] = {}
        for heard in self.overheard:
            content = None if heard.clear else decode_body(heard.body)
            if isinstance(content, Update):
                sizes[heard.id] = len(heard.body)
            elif isinstance(content, Keys) and last.get(heard.device) in sizes:
                sizes[last[heard.device]] += len(heard.body)
            elif isinstance(content, Acks):
                items = [encode_item(item) for item in content.items]
                head = (len(heard.body) - sum(map(len, items))) / len(items)
                for item, data in zip(content.items, items, strict=True):
                    if item.op in sizes:
                        sizes[item.op] += head + len(data)
            last[heard.device] = heard.id
        return [round(size) for size in sizes.values()]


def _anybody(_: Device) -> bool:
    return True


def _digest(seed: int, purpose: str, name: str) -> bytes:
    return hashlib.sha256(f"linnet/sim/groups/{purpose}/{seed}/{name}".encode()).digest()

"""Devices of one encrypted group over links that keep the order of each sender, and can be cut.

The shipped key agreement runs on each device; here is only what carries it: who has heard what, what waits,
what was opened. Deterministic for its seed: nothing is chosen by ids, nothing is iterated out of a set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.reasons import Reason
from linnet.groups import agreement, sealing
from linnet.groups.agreement import Draft, Step
from linnet.groups.bodies import Acks, Keys, Update, decode_body, encode_item
from linnet.groups.ids import Device, MemberId
from linnet.groups.notes import Desynced, Equivocation, Joined, Lost, RemovedSelf, Waits, WeakFs
from linnet.groups.prekeys import Bundle
from linnet.groups.state import GroupConfig, GroupState, Hardening, encode_state
from linnet.sim.luck import SeededEntropy
from linnet.sim.overheard import Overheard, Theft

GROUP = hashlib.sha256(b"linnet/sim/groups").digest()
START = 1_800_000_000.0
BOUND = b"linnet/sim/groups"
_RETRY = (Reason.KEY_MISSING, Reason.UNKNOWN_MEMBER)
_TROUBLE = (Desynced, Lost, Equivocation)


class Said(Struct, frozen=True):
    """A message, and who should read it."""

    id: EventId
    text: str
    at: int
    """Its place among all that was overheard."""
    by: MemberId
    readers: tuple[MemberId, ...]
    needed_heal: bool
    """Whether it was sent although removed members might read it."""


class Machine:
    """One device, and what became of all that it heard."""

    def __init__(self, name: str, state: GroupState, entropy: SeededEntropy) -> None:
        self.name = name
        self.state = state
        self.entropy = entropy
        self.heard: list[int] = []
        self.waiting: list[int] = []
        self.log: list[EventId] = []
        self.opened: dict[tuple[MemberId, EventId], str] = {}
        """Texts, by who the device was then."""
        self.troubles: list[str] = []
        self.weak = 0
        """First messages without a one-time prekey."""
        self.bundles: dict[Device, tuple[int, Bundle]] = {}
        """The newest prekeys of each device that it has heard of, with their place among all."""
        self.kept: list[GroupState] = []
        """Its states, as far as the run keeps them for thieves: all, or those after operations."""


class GroupNet:
    """All devices, all that was sent, and how far each has heard each other."""

    def __init__(
        self,
        devices: int,
        seed: int,
        config: GroupConfig | None = None,
        hardening: Hardening | None = None,
        keep_all: bool = False,
    ) -> None:
        self.now = START
        self.keep_all = keep_all
        self.overheard: list[Overheard] = []
        self.said: dict[EventId, Said] = {}
        self.machines: list[Machine] = []
        self.sides: list[int] = [0] * devices
        """Who is on which side of a partition."""
        self.bundles: dict[Device, tuple[EventId, Bundle]] = {}
        self._keys: dict[EventId, Bundle] = {}
        self._places: dict[Device, int] = {}
        self._sent: list[list[int]] = [[] for _ in range(devices)]
        self._cursors = [[0] * devices for _ in range(devices)]
        self._trace = hashlib.sha256()
        for place in range(devices):
            name = f"device-{place}"
            device = Device(
                AuthorId(_digest(seed, "author", name)), DeviceId(_digest(seed, "device", name)[:8])
            )
            entropy = SeededEntropy(seed, name)
            state = agreement.begin(
                GROUP, device, entropy, self.now, config or GroupConfig(), hardening or Hardening()
            )
            self.machines.append(Machine(name, state, entropy))
            self._places[device] = place
        for place in range(devices):
            self.publish_keys(place)

    @property
    def trace_sha256(self) -> str:
        """Of all that was sent and how it arrived."""
        return self._trace.hexdigest()

    def members(self) -> list[int]:
        """The devices that are in the group, as far as they know."""
        return [place for place, machine in enumerate(self.machines) if machine.state.me is not None]

    def place_of(self, device: Device) -> int:
        """Where a device is among all."""
        return self._places[device]

    def directory(self, device: Device) -> Bundle | None:
        """The newest prekeys of a device, also if nobody has heard of them yet."""
        known = self.bundles.get(device)
        return None if known is None else known[1]

    def directory_at(self, place: int) -> agreement.Directory:
        """The newest prekeys that one device has heard of."""
        known = self.machines[place].bundles
        return lambda device: known[device][1] if device in known else None

    # What devices do.

    def publish_keys(self, place: int, travels: bool = False) -> None:
        """Prekeys, if there are any to publish: everybody can look them up at once.

        Unless they travel as all that a device sends: so do those that go with a seed.
        """
        machine = self.machines[place]
        draft = agreement.draft_keys(machine.state, machine.entropy, self.now)
        if draft is None or not isinstance(draft.content, Keys):
            return
        bundle = draft.content.bundle
        op = self._send(place, draft, tell=travels)
        self.bundles[machine.state.ours] = (op, bundle)
        self._keys[op] = bundle
        for each in (machine,) if travels else self.machines:
            each.bundles[machine.state.ours] = (len(self.overheard) - 1, bundle)

    def _seed(self, place: int, draft: Draft) -> EventId:
        """An operation with a seed, and the prekeys that go with it."""
        op = self._send(place, draft)
        if self.machines[place].state.hardening.renews:
            self.publish_keys(place, travels=True)
        return op

    def create(self, place: int, others: Iterable[int]) -> EventId:
        """A group of these devices."""
        machine, devices = self.machines[place], [self.machines[other].state.ours for other in others]
        return self._seed(
            place,
            agreement.draft_create(
                machine.state, devices, self.directory_at(place), _anybody, machine.entropy, self.now
            ),
        )

    def add(self, place: int, other: int) -> EventId:
        """A device more."""
        machine, device = self.machines[place], self.machines[other].state.ours
        keys = self.bundles[device][0]
        return self._send(
            place,
            agreement.draft_add(
                machine.state, device, keys, self.directory_at(place), _anybody, machine.entropy, self.now
            ),
        )

    def remove(self, place: int, members: Iterable[MemberId]) -> EventId:
        """Members fewer."""
        machine = self.machines[place]
        return self._seed(
            place,
            agreement.draft_remove(
                machine.state, members, self.directory_at(place), _anybody, machine.entropy, self.now
            ),
        )

    def update(self, place: int) -> EventId:
        """A new seed."""
        machine = self.machines[place]
        directory = self.directory_at(place)
        return self._seed(
            place, agreement.draft_update(machine.state, directory, _anybody, machine.entropy, self.now)
        )

    def leave(self, place: int) -> EventId:
        """A device asks to be removed."""
        return self._send(place, agreement.draft_leave(self.machines[place].state, self.now))

    def acks(self, place: int) -> None:
        """All acknowledgements that a device owes."""
        machine, directory = self.machines[place], self.directory_at(place)
        while True:
            draft = agreement.draft_acks(machine.state, directory, _anybody, machine.entropy, self.now)
            if draft is None:
                return
            self._send(place, draft)

    def say(self, place: int, text: str) -> EventId:
        """A message."""
        machine = self.machines[place]
        needed = agreement.needs_heal(machine.state)
        state, envelope = sealing.envelope(machine.state, machine.entropy)
        sealed = envelope.seal(text.encode(), BOUND)
        me = sealing.read_clear(envelope.clear)[0]
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
        """Whoever has something under way to a device that can arrive."""
        side, cursors = self.sides[to], self._cursors[to]
        return [
            place
            for place, sent in enumerate(self._sent)
            if cursors[place] < len(sent) and place != to and self.sides[place] == side
        ]

    def deliver(self, sender: int, to: int) -> None:
        """The next of what one sent, to another."""
        number = self._sent[sender][self._cursors[to][sender]]
        self._cursors[to][sender] += 1
        self.hear(number, to)

    def hear(self, number: int, to: int) -> None:
        """One of all that was overheard, in whatever order, for whatever time."""
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
        """Whether something changed by it."""
        heard = self.overheard[number]
        if heard.clear:
            return self._open(machine, number, heard)
        if heard.id in self._keys:
            if number > machine.bundles[heard.device][0]:
                machine.bundles[heard.device] = (number, self._keys[heard.id])
            return False
        try:
            step = agreement.receive(
                machine.state, heard.device, heard.id, heard.body, self.directory, self.now
            )
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
        self._keep(machine, step.state, heard.id, whole=not isinstance(decode_body(heard.body), Acks))
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
            state, opened = sealing.open_message(
                machine.state, heard.device, heard.clear, heard.bound, heard.body, self.now
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
        """Time goes by, and every device forgets what has outlived its time."""
        self.now += days * 86_400
        for machine in self.machines:
            machine.state = agreement.tend(machine.state, self.now)

    def steal(self, place: int) -> Theft:
        """All that a device has now."""
        machine = self.machines[place]
        return Theft(encode_state(machine.state), tuple(machine.log))

    def update_bytes(self) -> list[int]:
        """For each update the bytes of its body, of the prekeys that go with it, and of its acknowledgements.

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

"""All devices of one group in one process: real signed events, passed as bytes, with a clock over each step.

The shipped agreement runs on every device; here is only what a room does around it: an event with its
place in its author's chain, signed, and checked by whoever gets it. What a device did is added up by part:
`make` (draft, and the step once it is out), `sign`, `check` (decode, hash, signature), `take` (an operation
or a message) and `follow` (an acknowledgement).
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.ids import EventId, TopicId
from linnet.core.limits import DEPENDENCIES
from linnet.event.event import MESSAGE, Event, Spot, Tail, bound, bound_of
from linnet.event.signing import decode_unit, encode_unit, sign_unit, verify_unit
from linnet.groups import agreement, message_crypto
from linnet.groups.agreement import Draft, Step
from linnet.groups.bodies import Acks, Keys, decode_body
from linnet.groups.labels import Device, MemberId
from linnet.groups.notes import Desynced, Equivocation, Ignored, Lost, Waits, WeakFs
from linnet.groups.prekeys import Bundle
from linnet.lab.errors import CheckFailed
from linnet.rooms.event_types import GROUP
from linnet.sim.seeded_random import SeededEntropy, seeded_identity

START = 1_800_000_000.0
PARTS = ("make", "sign", "check", "take", "follow")
_TROUBLE = (Desynced, Equivocation, Ignored, Lost, Waits)

Clock = Callable[[], int]


class Sent(Struct, frozen=True):
    """An event as it travels."""

    by: int
    raw: bytes
    """The whole unit: header, body, signature."""
    body: int
    """Bytes of its body, with the few bytes beside it that are clear."""
    is_ack: bool = False


class Party:
    """One device."""

    def __init__(self, place: int, seed: int, topic: TopicId) -> None:
        name = f"device-{place}"
        identity = seeded_identity(seed, name, START)
        self.place = place
        self.key, self.card = identity.device, identity.card
        self.device = Device(self.card.person, self.card.device)
        self.entropy = SeededEntropy(seed, f"groups/{name}")
        self.state = agreement.begin(topic, self.device, self.entropy, START)
        self.seq = 0
        self.prev: EventId | None = None
        self.spent: Counter[str] = Counter()
        """Nanoseconds by part."""
        self.events: Counter[str] = Counter()
        """Events that went through each part."""
        self.weak = 0
        """First messages of its channels that found no one-time prekey."""


class Circle:
    """A group, its members in the order in which they are numbered, and devices that are not in it yet."""

    def __init__(self, devices: int, seed: int, clock: Clock = time.process_time_ns) -> None:
        self.clock = clock
        self.now = START
        self.topic = TopicId(hashlib.sha256(f"linnet/lab/groups/{seed}".encode()).digest())
        self._control = EventId(hashlib.sha256(self.topic).digest())
        self.bundles: dict[Device, tuple[EventId, Bundle]] = {}
        self.parties = [Party(place, seed, self.topic) for place in range(devices)]
        self.bundle_bytes = 0
        for party in self.parties:
            self._publish_keys(party)

    def directory(self, device: Device) -> Bundle | None:
        """The newest prekeys of a device."""
        return self.bundles[device][1] if device in self.bundles else None

    def reset(self) -> None:
        """What was measured so far is forgotten."""
        for party in self.parties:
            party.spent.clear()
            party.events.clear()
            party.weak = 0

    # What devices do.

    def create(self, by: int, others: Iterable[int]) -> Sent:
        """A group of these."""
        party, devices = self.parties[by], [self.parties[place].device for place in others]
        return self._made(
            party,
            lambda: agreement.draft_create(party.state, devices, self._means(party)),
        )

    def add(self, by: int, place: int) -> Sent:
        """A device more."""
        party, device = self.parties[by], self.parties[place].device
        keys = self.bundles[device][0]
        return self._made(
            party,
            lambda: agreement.draft_add(party.state, device, keys, self._means(party)),
        )

    def remove(self, by: int, place: int) -> Sent:
        """A member fewer."""
        party, targets = self.parties[by], [self.member(place)]
        return self._made(
            party,
            lambda: agreement.draft_remove(party.state, targets, self._means(party)),
        )

    def update(self, by: int) -> Sent:
        """A new seed."""
        party = self.parties[by]
        return self._made(
            party,
            lambda: agreement.draft_update(party.state, self._means(party)),
        )

    def keys(self, by: int) -> Sent:
        """The prekeys that go with a seed of this device, after it."""
        party = self.parties[by]
        return self._made(party, lambda: agreement.draft_keys(party.state, party.entropy, self.now))

    def acks(self, by: int) -> list[Sent]:
        """All acknowledgements that a device owes, in one event."""
        party = self.parties[by]
        if not agreement.owes_acks(party.state):
            return []
        sent = self._made(
            party,
            lambda: agreement.draft_acks(party.state, self._means(party)),
        )
        return [sent, *self.acks(by)]

    def say(self, by: int, text: bytes) -> Sent:
        """A message."""
        party = self.parties[by]
        began = self.clock()
        state, envelope = message_crypto.envelope(party.state, party.entropy)
        tail = self._tail(party, MESSAGE, (), b"", envelope.clear)
        where = (self.topic, party.device.author, party.device.device, party.seq, party.prev)
        tail = replace(tail, body=envelope.seal(text, bound(Spot(*where), tail)))
        made = self.clock()
        raw, event = self._signed(party, tail)
        signed = self.clock()
        party.state = state
        self._count(party, "make", made - began)
        self._count(party, "sign", signed - made)
        return Sent(by, raw, len(event.body) + len(envelope.clear))

    # What devices get.

    def hear(self, place: int, sent: Sent) -> None:
        """An event comes to a device, which checks and takes it."""
        party, sender = self.parties[place], self.parties[sent.by]
        began = self.clock()
        verified = verify_unit(decode_unit(sent.raw), sender.card)
        checked = self.clock()
        event = verified.events[0]
        if event.kind == MESSAGE:
            party.state, _ = message_crypto.open_message(
                party.state, sender.device, event.tail.clear or b"", bound_of(event), event.body
            )
        else:
            step = agreement.receive(party.state, sender.device, event.id, event.body, self.now)
            self._keep(party, step)
        taken = self.clock()
        self._count(party, "check", checked - began)
        self._count(party, "follow" if sent.is_ack else "take", taken - checked)

    def member(self, place: int) -> MemberId:
        """The id of a device that is in the group."""
        me = self.parties[place].state.me
        if me is None:
            raise CheckFailed(f"device {place} is not in the group")
        return me

    # Inside.

    def _means(self, party: Party) -> agreement.Means:
        return agreement.Means(self.directory, anybody, party.entropy, self.now)

    def _publish_keys(self, party: Party) -> None:
        draft = agreement.draft_keys(party.state, party.entropy, self.now)
        content = None if draft is None else decode_body(draft.body)
        if draft is None or not isinstance(content, Keys):
            raise CheckFailed("a new device has prekeys to publish")
        _, event = self._signed(party, self._tail(party, GROUP, draft.deps, draft.body))
        self._keep(party, agreement.sent(draft, event.id))
        self.bundles[party.device] = (event.id, content.bundle)
        self.bundle_bytes = len(draft.body)

    def _made(self, party: Party, drafting: Callable[[], Draft | None]) -> Sent:
        began = self.clock()
        draft = drafting()
        made = self.clock()
        if draft is None:
            raise CheckFailed("there is nothing to draft")
        raw, event = self._signed(party, self._tail(party, GROUP, draft.deps, draft.body))
        signed = self.clock()
        self._keep(party, agreement.sent(draft, event.id))
        if isinstance(draft.content, Keys):
            self.bundles[party.device] = (event.id, draft.content.bundle)
        after = self.clock()
        self._count(party, "make", made - began + after - signed)
        self._count(party, "sign", signed - made)
        return Sent(party.place, raw, len(draft.body), isinstance(draft.content, Acks))

    def _tail(
        self, party: Party, kind: str, after: tuple[EventId, ...], body: bytes, clear: bytes | None = None
    ) -> Tail:
        """Where a room would put the event: after what it depends on, and else after its author's last."""
        control = (self._control,)
        deps = after[:DEPENDENCIES] or ((party.prev,) if party.prev is not None else control)
        concurrent = after[DEPENDENCIES : 2 * DEPENDENCIES] or None
        return Tail(deps, concurrent, party.seq + 1, control, kind, None, int(self.now * 1000), clear, body)

    def _signed(self, party: Party, tail: Tail) -> tuple[bytes, Event]:
        author, device = party.device
        verified = sign_unit(party.key, Spot(self.topic, author, device, party.seq, party.prev), (tail,))
        party.seq, party.prev = party.seq + 1, verified.head
        return encode_unit(verified.unit), verified.events[0]

    def _keep(self, party: Party, step: Step) -> None:
        for note in step.notes:
            if isinstance(note, _TROUBLE):
                raise CheckFailed(f"device {party.place} met {note!r}")
            party.weak += isinstance(note, WeakFs)
        party.state = step.state

    def _count(self, party: Party, part: str, nanoseconds: int) -> None:
        party.spent[part] += nanoseconds
        party.events[part] += 1


def anybody(_: Device) -> bool:
    """Whether a device may be told keys: all may."""
    return True

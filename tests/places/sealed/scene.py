"""A voice and guests of a sealed place as bare parts: fragments go from hand to hand."""

from __future__ import annotations

from random import Random

from linnet.core.ids import EventId, TopicId
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.context import Context
from linnet.event.event import Spot, Tail, Verified
from linnet.event.signing import sign_unit, verify_unit
from linnet.groups.labels import Device
from linnet.places.channel.fragment_store import Fragments, New, Row
from linnet.places.multicast.fragmentation import FRAGMENT, Cut, Flag, Head, encode_head
from linnet.places.sealed.epoch_keys import Ring
from linnet.places.sealed.guest_keys import GuestKeys
from linnet.places.sealed.host_keys import HostKeys
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity

NOW = 1_800_000_000.0
PLACE = TopicId(b"p" * 32)
Said = tuple[Verified, Head]


class Node:
    """What one device keeps of the place; another one over the same store is the device after a restart."""

    def __init__(self, name: str, store: MemoryStore | None = None, life: int = 0) -> None:
        identity = known_identity(name)
        self.store = store or MemoryStore()
        self.context = Context(
            identity.device,
            identity.card,
            self.store,
            DeliveryConfig(),
            Random(f"{name}/{life}"),
            verify_unit,
        )
        self.device = Device(identity.author, identity.card.device)
        self.fragments = Fragments(PLACE, self.store.log, self.store.cells)
        self.ring = Ring(PLACE, self.store.cells)
        self.sealing = HostKeys(self.context, self.fragments, self.ring)
        self.opening = GuestKeys(self.context, self.fragments, self.ring, self.sealing.readers)

    def store_fragment(self, said: Said) -> Row:
        stored = self.fragments.store(*said, NOW)
        assert isinstance(stored, New), stored
        return stored.row

    def take(self, said: Said, learns: bool = False) -> bytes | list[int] | None:
        """What a fragment says here; of one with keys, the messages that may go on."""
        row = self.store_fragment(said)
        if row.flags & Flag.KEYS:
            return self.opening.stored(row, learns, NOW)
        return self.opening.opened(said[0].events[0], row)

    def read(self, message: int) -> bytes | None:
        """What a message of one piece says, from the store."""
        row = self.fragments.get_at(message, 0)
        assert row is not None
        verified = self.fragments.verified(row)
        assert verified is not None
        return self.opening.opened(verified.events[0], row)


class Voice(Node):
    """Says things, and keeps them."""

    def __init__(self, name: str = "host", store: MemoryStore | None = None, life: int = 0) -> None:
        super().__init__(name, store, life)
        self.term, self.generation = max(1, self.fragments.standing.term), 0
        self.cut: Cut | None = None
        heads = [each for each in self.store.log.heads(PLACE) if each.device == self.device.device]
        self._chain: tuple[int, EventId | None] = (heads[0].last + 1, heads[0].head) if heads else (0, None)

    @property
    def next(self) -> int:
        return self.fragments.standing.message + 1

    def turn(self) -> Said | None:
        """A new epoch, told to all."""
        self.sealing.begin(self.term, self.generation, self.next)
        return self.keys(self.sealing.for_all(self.term, self.next, lambda nym: True, NOW))

    def welcome(self, guest: Node, since: int | None = None) -> Said | None:
        """Tell a newcomer the keys, behind a step."""
        self.sealing.learn(guest.device, guest.opening.prekeys(NOW))
        self.sealing.step()
        opens = self.next if since is None else since
        return self.keys(self.sealing.for_one(self.term, self.next, guest.device, opens, NOW))

    def keys(self, body: bytes | None) -> Said | None:
        return None if body is None else self._sign(body, Flag.KEYS)

    def say(self, body: bytes) -> Said:
        return self._sign(body, Flag.SEALED)

    def _sign(self, body: bytes, flags: Flag) -> Said:
        number = self.fragments.standing.fragment + 1
        opens = Flag.OPENING if number == 0 or self.cut is not None else Flag(0)
        whole = Flag.FIRST | Flag.LAST | flags | opens
        head = Head(self.term, number, self.next, 0, self.generation, int(whole), None, self.cut)
        self.cut = None
        tail = Tail(None, None, None, None, FRAGMENT, None, 0, encode_head(head), body)
        seq, prev = self._chain
        if flags & Flag.SEALED:
            tail = self.sealing.seal(tail, seq, prev)
        verified = sign_unit(self.context.key, Spot(PLACE, *self.device, seq, prev), (tail,))
        self._chain = seq + 1, verified.head
        self.store_fragment((verified, head))
        return verified, head

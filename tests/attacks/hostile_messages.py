"""Messages as an attacker makes them: of every kind, valid on the wire, rightly signed with keys of its own.

The generator knows no protocol. It reads the declared types of messages, signs what carries a signature, and
fills fields with what fields of the same name held in the messages that the victim sent: topics, numbers of
requests, attributes. So its messages get past the first checks, and a new kind of message needs no line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import inspect, structs

from linnet.content.application import TOPIC
from linnet.content.fast import signed_records
from linnet.content.fast.messages import Enrolment, Posting
from linnet.content.passing import KIND
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.messages import Message
from linnet.delivery import receipts as stream_receipts
from linnet.delivery.messages import Receipt
from linnet.event.event import Event, Spot, Tail, Unverified
from linnet.event.signing import message_tail, sign_unit
from linnet.identity.cards import Card, Revocation, revoke
from linnet.names.derivation import derive
from linnet.names.records import Block, Statement, make_place, seal_block
from linnet.overlay.gossip.descriptor import sign_descriptor
from linnet.overlay.gossip.messages import Descriptor
from linnet.overlay.kademlia.value_records import Stored, sign_record
from linnet.peer import whereabouts
from linnet.peer.config import Identity
from linnet.peer.messages import STANDARD
from linnet.peer.whereabouts import Whereabouts
from linnet.places import host_terms
from linnet.places import receipts as place_receipts
from linnet.places.deed import Deed, sign_deed
from linnet.places.door import make_enter
from linnet.places.messages import Enter, GuestReceipt, Heard, Talk, Yield
from linnet.places.multicast import sealed_requests
from linnet.rooms.invitations import Ticket, issue_ticket
from linnet.rooms.messages import RoomReceipt
from linnet.rooms.receipts import sign_room_receipt

KINDS: tuple[type[Message], ...] = tuple(STANDARD.protocol_of)
POOL = 64
"""Values that are remembered for a field of one name."""
_TEXTS = ("tea", "milk/price[1,9]", "a", "b=3", "stock/apple=1", "tls://10.0.0.9:1", "x" * 40)


class Pools:
    """What the victim and others have said, by the names of fields and by type."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._named: dict[str, list[Any]] = {}
        self._typed: dict[type, list[Any]] = {}

    def learn(self, value: object, name: str = "") -> None:
        """Remember a value and all in it."""
        if isinstance(value, msgspec.Struct):
            self._put(self._typed.setdefault(type(value), []), value)
            for field in structs.fields(type(value)):
                self.learn(getattr(value, field.name), field.name)
        elif isinstance(value, tuple):
            for each in value[:8]:
                self.learn(each, name)
        elif name and isinstance(value, bytes | str | int) and not isinstance(value, bool):
            self._put(self._named.setdefault(name, []), value)

    def named(self, name: str, kind: type) -> Any:  # noqa: ANN401 - whatever such a field held
        """Return a value of a field of this name; None if there is none of this type."""
        known = [each for each in self._named.get(name, ()) if type(each) is kind]
        return self._rng.choice(known) if known else None

    def typed(self, kind: type) -> Any:  # noqa: ANN401 - whatever was said of this type
        """Return a value of this type; None if there is none."""
        known = self._typed.get(kind)
        return self._rng.choice(known) if known else None

    def _put(self, into: list[Any], value: object) -> None:
        if value in into:
            return
        if len(into) < POOL:
            into.append(value)
        else:
            into[self._rng.randrange(POOL)] = value


class Chain(NamedTuple):
    """The end of an attacker's chain in a topic."""

    seq: int
    head: EventId | None


class Attacker:
    """One key of the attacker, with a card and chains of its own."""

    def __init__(self, identity: Identity, rng: Random, pools: Pools) -> None:
        self.identity = identity
        self._rng = rng
        self._pools = pools
        self._chains: dict[TopicId, Chain] = {}
        self._contents = 0
        self._now = 0.0

    @property
    def peer(self) -> PeerId:
        """Its key."""
        return self.identity.peer

    def make(self, kind: type[Message], now: float) -> Message:
        """Make one message of a kind that every decoder lets in."""
        self._now = now
        said = self._pools.typed(kind)
        if said is not None and self._rng.random() < 0.3:
            return cast("Message", self._altered(said))
        message = cast("Message", self._value(inspect.type_info(kind), ""))
        if {"attribute", "unit"} <= {*kind.__struct_fields__} and self._rng.random() < 0.9:
            name = self._pools.named("attribute", str) if self._rng.random() < 0.5 else None
            name = name or f"t{self._rng.randrange(10**9)}"
            return structs.replace(message, attribute=name, unit=self._content(name), card=self.identity.card)
        return message

    def _content(self, attribute: str) -> Unverified:
        """An event of content with this attribute."""
        self._contents += 1
        text = attribute if self._rng.random() < 0.5 else f"{attribute}/z=1"
        time = int(self._now * 1000) + self._contents
        tail = Tail(None, None, None, None, KIND, None, time, text.encode(), b"x")
        spot = Spot(TOPIC, self.identity.author, self.identity.card.device, None, None)
        return sign_unit(self.identity.device, spot, (tail,)).unit

    def _altered(self, said: msgspec.Struct) -> msgspec.Struct:
        """What somebody said, with one field changed and signed anew."""
        about = inspect.type_info(type(said))
        assert isinstance(about, inspect.StructType)
        if not about.fields:
            return said
        field = self._rng.choice(about.fields)
        value = structs.replace(said, **{field.name: self._value(field.type, field.name)})
        sign = _SIGN.get(type(said))
        return value if sign is None else sign(self, value)

    def _value(self, info: inspect.Type, name: str) -> Any:  # noqa: ANN401 - any type of a message
        rng = self._rng
        match info:
            case inspect.StructType():
                return self._struct(info)
            case inspect.UnionType():
                return self._value(rng.choice(info.types), name)
            case inspect.EnumType():
                return rng.choice(list(info.cls))
            case inspect.VarTupleType():
                least, most = info.min_length or 0, 64 if info.max_length is None else info.max_length
                count = rng.choice((1, 1, 2, 3, 8, 64))
                return tuple(self._value(info.item_type, name) for _ in range(min(max(count, least), most)))
            case inspect.TupleType():
                return tuple(self._value(each, name) for each in info.item_types)
            case inspect.DictType():
                count = rng.choice((0, 1, 3))
                return {
                    self._value(info.key_type, name): self._value(info.value_type, name) for _ in range(count)
                }
            case _:
                return self._scalar(info, name)

    def _struct(self, info: inspect.StructType) -> Any:  # noqa: ANN401 - of the class of the type
        if info.cls is Card and self._rng.random() < 0.9:
            return self.identity.card
        if info.cls is Unverified:
            return self._unit()
        known = self._pools.typed(info.cls)
        if known is not None and self._rng.random() < 0.3:
            return known
        value = info.cls(*(self._value(field.type, field.name) for field in info.fields))
        sign = _SIGN.get(info.cls)
        return value if sign is None else sign(self, value)

    def _scalar(self, info: inspect.Type, name: str) -> Any:  # noqa: ANN401 - any scalar of a message
        rng = self._rng
        match info:
            case inspect.IntType():
                return self._number(info, name)
            case inspect.BytesType():
                return self._bytes(info, name)
            case inspect.StrType():
                known = self._pools.named(name, str) if rng.random() < 0.7 else None
                text = known or rng.choice((*_TEXTS, f"t{rng.randrange(10**6)}/x[1,{rng.randrange(2, 99)}]"))
                least, most = info.min_length or 0, info.max_length or len(text)
                return text[:most].ljust(least, "x")
            case inspect.BoolType():
                return rng.random() < 0.5
            case inspect.NoneType():
                return None
            case _:
                raise TypeError(f"no message has had a {info!r} so far")

    def _number(self, info: inspect.IntType, name: str) -> int:
        rng = self._rng
        low = 0 if info.ge is None else info.ge
        high = LARGEST_COUNT if info.le is None else info.le
        known = self._pools.named(name, int) if rng.random() < 0.6 else None
        choices = (0, 1, 2, rng.randrange(64), rng.randrange(10**6), int(self._now), int(self._now * 1000))
        return max(low, min(high, known if known is not None else rng.choice((*choices, LARGEST_COUNT))))

    def _bytes(self, info: inspect.BytesType, name: str) -> bytes:
        rng = self._rng
        least, most = info.min_length or 0, 64 if info.max_length is None else info.max_length
        known = self._pools.named(name, bytes) if rng.random() < 0.7 else None
        if name in ("peer", "device_key") and rng.random() < 0.5:
            known = self.peer
        elif name in ("author", "person") and rng.random() < 0.5:
            known = self.identity.author
        if known is not None and least <= len(known) <= most:
            return bytes(known)
        return rng.randbytes(min(max(rng.choice((0, 1, 32, 200)), least), most))

    def _unit(self) -> Unverified:
        """An event of this key in a topic of the victim's: the next of its chain, or after a gap."""
        rng, card = self._rng, self.identity.card
        topic = TopicId(self._pools.named("topic", bytes) or rng.randbytes(32))
        end = self._chains.get(topic, Chain(0, None))
        seq = end.seq + rng.choice((0, 0, 0, 1, 2, rng.randrange(9999)))
        prev = end.head if seq == end.seq else EventId(rng.randbytes(32))
        spot = Spot(topic, card.person, card.device, seq, None if seq == 0 else prev or EventId(bytes(32)))
        tail = self._pools.typed(Tail)
        body = rng.randbytes(rng.choice((1, 30, 300)))
        if tail is None or rng.random() < 0.5:
            tail = message_tail(body, int(self._now * 1000))
        elif rng.random() < 0.5:
            tail = structs.replace(tail, body=body)
        unit = sign_unit(self.identity.device, spot, [tail]).unit
        self._chains[topic] = Chain(seq + 1, sign_unit(self.identity.device, spot, [tail]).head)
        return unit

    def entropy(self, size: int) -> bytes:
        """Seeded, so that a run can be repeated."""
        return self._rng.randbytes(size)


def learn_events(pools: Pools, events: tuple[Event, ...]) -> None:
    """Remember events of the victim's, so that others are made like them."""
    for event in events:
        pools.learn(event.tail)
        pools.learn(event.topic, "topic")


def _descriptor(who: Attacker, it: Descriptor) -> Descriptor:
    until = int(who._now) + 3600
    fields = (int(who._now * 1000), it.epoch, it.filter, it.epsilon_milli, it.hashes, ("tls://10.0.0.9:1",))
    return sign_descriptor(who.identity.device, *fields, until)


def _receipt(who: Attacker, it: Receipt) -> Receipt:
    return stream_receipts.sign_receipt(who.identity.device, it.topic, it.storage, who._now, it.chains)


def _revocation(who: Attacker, it: Revocation) -> Revocation:
    return revoke(who.identity.device, it.device, it.at)


def _ticket(who: Attacker, it: Ticket) -> Ticket:
    until = int(who._now * 1000) + 10**6
    return issue_ticket(who.identity.device, who.identity.card, it.room, it.person, until, it.nonce)


def _room_receipt(who: Attacker, it: RoomReceipt) -> RoomReceipt:
    at = int(who._now * 1000)
    return sign_room_receipt(who.identity.device, who.identity.card, it.room, at, it.heads, it.off)


def _enter(who: Attacker, it: Enter) -> Enter:
    at = int(who._now * 1000) + who._rng.randrange(1000)
    return make_enter(
        who.identity.device, who.identity.card, it.place, at, known=it.known, upto=it.upto, state=it.state,
        text=it.text, prekeys=it.prekeys, term=it.term, opening=it.opening, stranded=it.stranded,
    )  # fmt: skip


def _deed(who: Attacker, it: Deed) -> Deed:
    return sign_deed(who.identity.device, max(1, it.version), it.policy, who.identity.author)


def _talk(who: Attacker, it: Talk) -> Talk:
    said = structs.replace(it, card=who.identity.card)
    try:
        return sealed_requests.seal_piece(who.identity.device, said, b"hello", who.entropy)
    except Exception:  # a key that nothing can be sealed to
        return said


def _heard(who: Attacker, it: Heard) -> Heard:
    return sealed_requests.sign_heard(who.identity.device, it.place, it.device, it.request, it.reason)


def _guest_receipt(who: Attacker, it: GuestReceipt) -> GuestReceipt:
    place = who._pools.named("place", bytes) or bytes(32)
    at = int(who._now * 1000)
    return place_receipts.sign_receipt(who.identity.device, who.identity.card, place, it.term, it.upto, at)


def _yield(who: Attacker, it: Yield) -> Yield:
    return host_terms.sign_yield(who.identity.device, who.identity.card, it.place, it.term)


def _block(who: Attacker, it: Block) -> Block:
    label = f"label{who._rng.randrange(10**6)}"
    place = make_place(TopicId(bytes(32)), (Contact(who.peer, ("tls://10.0.0.9:1",)),))
    said = Statement(label, int(who._now * 1000), int(who._now) + 10**5, (place,))
    keys = derive(who.identity.author, label)
    return seal_block(keys, who.identity.device, who.identity.card, said, who.entropy)


def _stored(who: Attacker, it: Stored) -> Stored:
    return sign_record(who.identity.device, it.key, int(who._now * 1000), int(who._now) + 10**5, it.body)


def _posting(who: Attacker, it: Posting) -> Posting:
    now = who._now
    bare = Posting(
        structs.replace(it.publisher, peer=who.peer), who.identity.card, it.predicate, it.open,
        int(now * 1000), int(now) + 600, bytes(64),
    )  # fmt: skip
    signed = signed_records._signed(signed_records._POSTING_TAG, bare)
    return structs.replace(bare, sig=who.identity.device.sign(signed))


def _enrolment(who: Attacker, it: Enrolment) -> Enrolment:
    hints, until = it.member.hints, int(who._now) + 600
    return signed_records.make_enrolment(
        who.identity.device, it.group, hints, it.predicates, it.region, it.capacity, until
    )


def _whereabouts(who: Attacker, it: Whereabouts) -> Whereabouts:
    return whereabouts.sign(who.identity.device, it.addresses, it.number, int(who._now * 1000))


_SIGN: Mapping[type, Callable[[Attacker, Any], Any]] = {
    Block: _block,
    Deed: _deed,
    Descriptor: _descriptor,
    Enrolment: _enrolment,
    Enter: _enter,
    GuestReceipt: _guest_receipt,
    Heard: _heard,
    Posting: _posting,
    Receipt: _receipt,
    Revocation: _revocation,
    RoomReceipt: _room_receipt,
    Stored: _stored,
    Talk: _talk,
    Ticket: _ticket,
    Whereabouts: _whereabouts,
    Yield: _yield,
}
"""How each kind of signed statement is signed with the attacker's key."""

"""The names of a node: its zone, its petnames, what it keeps for others, and what it looks up.

The node machine gives it links, messages, timers and commands, and gets effects back; everything that it
promises is written down first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, assert_never

from linnet.core.effects import AfterCommit, Blame, CancelTimer, Hold, Reply, Send, SetTimer
from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.ids import PeerId
from linnet.core.inputs import LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.names.address import Address, read_address
from linnet.names.asking import ASK, OWNER, Asking, AskingEffect, Gathered, RecordSource
from linnet.names.block import Block
from linnet.names.commands import (
    ExportNames,
    Fault,
    ListNames,
    ListPetnames,
    NamesAre,
    NamesCommand,
    NamesFile,
    NamesResult,
    NameStatus,
    NotResolved,
    PetnamesAre,
    Published,
    PublishName,
    RemoveName,
    RemovePetname,
    ResolveName,
    SetPetname,
    Step,
    TakeInNames,
    TakenIn,
    Via,
)
from linnet.names.config import NamesConfig
from linnet.names.messages import AskRecord, NameMessage, PutAnswer, PutRecord, RecordIs
from linnet.names.network_records import (
    NetworkWish,
    PlaceInNetwork,
    SeekRecords,
    from_network,
    network_key,
    to_network,
)
from linnet.names.petnames import Petnames
from linnet.names.placing import PUT, Placing
from linnet.names.records import DelegationRecord, PlaceRecord, Records, RecordSet, ZoneRecord, place_of
from linnet.names.remembered import Remembered
from linnet.names.resolver import Answer, Secret, Walk
from linnet.names.serving import Serving
from linnet.names.store import Shelf, records_file
from linnet.names.zone import OwnName, Zone
from linnet.overlay.kademlia.records import Stored
from linnet.trace.records import Kind, Record

PROTOCOL = "names"
PURPOSE = "names"
REPUBLISH = "republish"
FILE_BYTES = 2 * 1024 * 1024
"""Bytes of a file that is taken in at once: each of its records costs two signature checks."""

NamesEffect: TypeAlias = (
    Send[NameMessage]
    | Hold
    | Blame
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Record
    | Reply[NamesResult]
    | Reply[Declined]
    | AfterCommit[Reply[NamesResult]]
    | AfterCommit[Send[PutAnswer]]
    | NetworkWish
)


class _Pending:
    """A walk that waits for a record: at peers, and in the network if this node takes part in one."""

    def __init__(self, request: int, walk: Walk, waits: int) -> None:
        self.request = request
        self.walk = walk
        self.waits = waits
        self.blocks: dict[Block, None] = {}
        self.answered = 0


class Names:
    """Everything about names at one node."""

    def __init__(
        self,
        context: Context,
        config: NamesConfig,
        source: RecordSource | None = None,
        in_network: bool = False,
    ) -> None:
        """With `in_network` records are also wished into a hash table over the network, and sought there."""
        self._in_network = in_network
        cells = context.store.cells
        self._context = context
        self._config = config
        self.zone = Zone(context.key, context.card, cells, context.entropy, config.own)
        self.petnames = Petnames(cells, config.petnames)
        self.shelf = Shelf(cells, config)
        self._remembered = Remembered(cells, config.remembered)
        self._serving = Serving(self.shelf, config)
        self._source: RecordSource = source or Asking(config)
        self._placing = Placing(config.patience)
        self._stores = {contact.peer: contact for contact in config.stores}
        self._peers: dict[PeerId, bool] = {}
        """Peers with a link that speak of names, and whether each is a relay."""
        self._walks: dict[int, _Pending] = {}
        """By the number of the question that they wait for."""

    def start(self, now: float) -> list[NamesEffect]:
        """The node is up: keep links to our stores, and hand out our records from time to time."""
        holds = [Hold(contact.peer, contact.hints, PURPOSE) for contact in self._stores.values()]
        return [*holds, *self._republish(now)]

    def ask(self, request: int, command: NamesCommand, now: float) -> list[NamesEffect]:
        """A command of the user; answered by one reply, of a resolution later."""
        try:
            match command:
                case PublishName():
                    return self._publish(request, command, now)
                case RemoveName(label, stretched):
                    return self._say(request, self.zone.remove(label, now, stretched), now)
                case ResolveName():
                    return self._resolve(request, command, now)
                case ListNames():
                    return [Reply(request, self._status())]
                case SetPetname(name, zone):
                    self.petnames.set(name, zone)
                    return [AfterCommit((Reply(request, PetnamesAre(self.petnames.known())),))]
                case RemovePetname(name):
                    self.petnames.remove(name)
                    return [AfterCommit((Reply(request, PetnamesAre(self.petnames.known())),))]
                case ListPetnames():
                    return [Reply(request, PetnamesAre(self.petnames.known()))]
                case ExportNames():
                    return [Reply(request, self._file(now))]
                case TakeInNames(data):
                    return self._take_in(request, data, now)
                case _:
                    assert_never(command)
        except BadText as error:
            return [Reply(request, Declined(Reason.MALFORMED, str(error)))]
        except (Refused, RemoteError) as error:
            return [Reply(request, Declined(error.reason, error.detail))]

    def on_message(self, peer: PeerId, message: NameMessage, now: float) -> list[NamesEffect]:
        """A peer asks, gives or answers."""
        match message:
            case PutRecord():
                return [*self._serving.on_put(peer, message, now)]
            case AskRecord():
                return [*self._serving.on_ask(peer, message, now)]
            case PutAnswer():
                return [*self._placing.on_answer(peer, message)]
            case RecordIs():
                return self._heed(self._source.on_answer(peer, message), now)
            case _:
                assert_never(message)

    def fired(self, tick: Tick, now: float) -> list[NamesEffect]:
        """A timer of ours has run out."""
        if tick.what == ASK:
            return self._heed(self._source.fired(tick), now)
        if tick.what == PUT:
            return [*self._placing.fired(tick)]
        return self._republish(now)

    def link_up(self, event: LinkUp, now: float) -> list[NamesEffect]:
        """A peer is there; if it is to keep our records, it is given them."""
        if PROTOCOL not in event.hello.protocols or event.peer == self._context.peer:
            return []
        self._peers[event.peer] = "relay" in event.hello.roles
        if event.peer not in self._stores:
            return []
        current = [each for each in self.zone.names() if each.block.expires > now]
        return [effect for each in current for effect in self._placing.hand(each.block, (event.peer,))]

    def link_down(self, event: LinkDown, now: float) -> list[NamesEffect]:
        """A peer is gone."""
        self._peers.pop(event.peer, None)
        lost = self._heed(self._source.link_down(event.peer), now)
        return [*self._placing.link_down(event.peer, event.reason), *lost]

    # Publishing.

    def _publish(self, request: int, command: PublishName, now: float) -> list[NamesEffect]:
        lifetime = self._config.lifetime if command.lifetime is None else command.lifetime
        records = _records(command)
        if not records and lifetime > 0:
            raise Refused(Reason.NOT_ALLOWED, "a label leads to a place or to a zone: name one")
        own = self.zone.publish(command.label, records, lifetime, now, command.renew, command.stretched)
        return self._say(request, own, now)

    def _say(self, request: int, own: OwnName, now: float) -> list[NamesEffect]:
        handed = self._nearest(self._config.copies)
        block = own.block
        told = Published(own.label, block.version, block.expires, own.is_removed, handed)
        return [*self._hand(own, now), AfterCommit((Reply(request, told),))]

    def _hand(self, own: OwnName, now: float) -> list[NamesEffect]:
        """Keep our own block as others do, and give it to peers."""
        refusal = self.shelf.put(own.block, None, now)
        effects: list[NamesEffect] = []
        if refusal is not None:
            effects.append(Record(Kind.REJECTED, reason=refusal, note="a record of ours, at ourselves"))
        if self._in_network:
            effects.append(PlaceInNetwork(to_network(own.block, self._context.key)))
        return [*effects, *self._placing.hand(own.block, self._nearest(self._config.copies))]

    def _republish(self, now: float) -> list[NamesEffect]:
        """Sign again what is to go on, forget what is over, and hand out the rest."""
        effects: list[NamesEffect] = [SetTimer(self._config.republish, Tick(OWNER, REPUBLISH))]
        self.zone.renewals(now)
        for gone in self.zone.forget(now):
            self._placing.forget(gone.block.lookup)
            effects.append(Record(Kind.EXPIRED, reason=Reason.RETENTION, note="a label of our zone"))
        if swept := self.shelf.sweep(now):
            effects.append(
                Record(Kind.EXPIRED, events=swept, reason=Reason.RETENTION, note="records of others")
            )
        for own in self.zone.names():
            if own.block.expires > now:
                effects += self._hand(own, now)
        return effects

    def _file(self, now: float) -> NamesFile:
        good = [each.block for each in self.zone.names() if each.block.expires > now]
        return NamesFile(len(good), records_file(good, now))

    def _take_in(self, request: int, data: bytes, now: float) -> list[NamesEffect]:
        if len(data) > FILE_BYTES:
            raise Refused(Reason.TOO_LARGE, f"{len(data)} bytes, at most {FILE_BYTES} are taken in at once")
        outcomes = self.shelf.take_in(data, now)
        refused = tuple(reason for reason in outcomes if reason is not None)
        taken = TakenIn(len(outcomes) - len(refused), refused)
        records = [Record(Kind.REJECTED, reason=reason, note="a record of a file") for reason in refused]
        return [*records, AfterCommit((Reply(request, taken),))]

    def _status(self) -> NamesAre:
        return NamesAre(self.zone.key, tuple(map(self._name_status, self.zone.names())))

    def _name_status(self, own: OwnName) -> NameStatus:
        place = next((each for each in own.records if isinstance(each, PlaceRecord)), None)
        zone = next((each.zone for each in own.records if isinstance(each, DelegationRecord)), None)
        return NameStatus(
            own.label,
            own.protected,
            None if place is None else place.place,
            () if place is None else place.contacts,
            zone,
            own.block.version,
            own.block.expires,
            own.renew,
            own.is_removed,
            self._placing.told(own.block),
        )

    # Resolving.

    def _resolve(self, request: int, command: ResolveName, now: float) -> list[NamesEffect]:
        if len(self._walks) >= self._config.resolving:
            raise Refused(
                Reason.QUEUE_FULL, f"{self._config.resolving} addresses are being looked up already"
            )
        address = read_address(command.address)
        start = self._start_of(address, command.protected)
        if start is None:
            detail = f"you know nobody by the name {address.name!r}: give it to somebody's key first"
            missing = NotResolved(str(address), Fault.UNKNOWN, address.name or "", None, (), detail)
            return [Reply(request, missing)]
        secret = Secret(command.protected, command.stretched)
        walk = Walk(address, start, self._config.depth, secret, self._context.card_check, self._is_revoked)
        return self._go_on(request, walk, now)

    def _start_of(self, address: Address, protected: bool) -> Step | None:
        """Whom the user means; what is no petname may be a label of our own zone."""
        if address.key is not None:
            return Step(Via.KEY, "", None, address.key, None)
        name = address.name or ""
        zone = self.petnames.find(name)
        if zone is not None:
            return Step(Via.PETNAME, name, None, zone, None)
        is_own = self.zone.says(name) or (protected and not address.labels and self.zone.says(name, True))
        return Step(Via.OWN, "", None, self.zone.key, None) if is_own else None

    def _go_on(self, request: int, walk: Walk, now: float) -> list[NamesEffect]:
        """Look for the record that a walk wants, or tell how it ended."""
        if walk.outcome is not None:
            return [AfterCommit((Reply(request, walk.outcome),))]
        number, effects = self._source.gather(walk.wanted, self._nearest(self._config.asks))
        self._walks[number] = _Pending(request, walk, 1 + self._in_network)
        seek = [SeekRecords(number, network_key(walk.wanted))] if self._in_network else []
        return [*seek, *self._heed(effects, now)]

    def _heed(self, effects: Iterable[AskingEffect], now: float) -> list[NamesEffect]:
        """Pass on what is asked of others; what was gathered goes to the walk that waits for it."""
        out: list[NamesEffect] = []
        for effect in effects:
            if isinstance(effect, Gathered):
                out += self._gathered(effect, now)
            else:
                out.append(effect)
        return out

    def on_network(
        self, number: int, records: Iterable[Stored], answered: int, now: float
    ) -> list[NamesEffect]:
        """What the network keeps under the key that a walk wants."""
        blocks, others = from_network(records, self._walks[number].walk.wanted)
        effects = self._gathered(Gathered(number, blocks, answered), now)
        if others:
            note = "records of the network that are none of names"
            effects.append(Record(Kind.REJECTED, events=others, reason=Reason.MALFORMED, note=note))
        return effects

    def _gathered(self, gathered: Gathered, now: float) -> list[NamesEffect]:
        pending = self._walks[gathered.number]
        pending.waits -= 1
        pending.blocks |= dict.fromkeys(gathered.blocks)
        pending.answered += gathered.answered
        if pending.waits:
            return []
        del self._walks[gathered.number]
        request, walk = pending.request, pending.walk
        here = self.shelf.find(walk.wanted)
        remembered = self._remembered.find(walk.wanted)
        walk.answer(Answer((*here, *pending.blocks), remembered, pending.answered > 0), now)
        effects: list[NamesEffect] = []
        if walk.forged:
            note = "records under a name that its zone did not sign"
            effects.append(
                Record(Kind.REJECTED, events=len(walk.forged), reason=Reason.BAD_SIGNATURE, note=note)
            )
        if walk.older:
            note = "records of a zone that are older than what it said before"
            effects.append(Record(Kind.REJECTED, events=len(walk.older), reason=Reason.STALE, note=note))
        if walk.learned is not None and (evicted := self._remembered.learn(walk.learned)):
            effects.append(Record(Kind.EVICTED, events=evicted, reason=Reason.QUOTA, note="resolved records"))
        return [*effects, *self._go_on(request, walk, now)]

    def _is_revoked(self, said: RecordSet) -> bool:
        return self._context.cards.revocation_of(said.zone, said.device) is not None

    def _nearest(self, most: int) -> tuple[PeerId, ...]:
        """Peers that can be told something now: first our stores, then relays, which are there for long."""
        stores = [peer for peer in self._stores if peer in self._peers]
        others = [peer for peer in self._peers if peer not in self._stores]
        others.sort(key=lambda peer: not self._peers[peer])
        return tuple((*stores, *others)[:most])


def _records(command: PublishName) -> Records:
    records: list[ZoneRecord] = []
    if command.place is not None:
        records.append(place_of(command.place, command.contacts))
    if command.zone is not None:
        records.append(DelegationRecord(command.zone))
    return tuple(records)

"""All places of a node: the application's commands, the peers' messages, the links and timers."""

from __future__ import annotations

from typing import assert_never, cast

import msgspec

from linnet.core.effects import AfterCommit, Blame, Reply, Send, SetTimer
from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Consumed, Declined, Done, Unsubscribe
from linnet.delivery.context import Context
from linnet.delivery.messages import Data
from linnet.identity.keys import SigningKey
from linnet.places import catching_up, place, receipts, roll_call, talks, turns, visiting, voicing
from linnet.places.channel.roll import Known
from linnet.places.commands import (
    Admit,
    Announce,
    AnnounceMore,
    Eject,
    Entered,
    EnterPlace,
    GuestIs,
    GuestsAre,
    HostPlace,
    LeavePlace,
    ListGuests,
    ListPlaces,
    ListReceipts,
    Look,
    ObjectsAre,
    PlaceCommand,
    PlacesAre,
    Reject,
    TalkTo,
    Watching,
    WatchPlace,
)
from linnet.places.config import KeeperConfig, PlacesConfig
from linnet.places.deed import Deed, Policy, sign_deed
from linnet.places.dispatch import at_the_door, inside
from linnet.places.effects import PlaceEffect
from linnet.places.keeping import Keeping
from linnet.places.messages import (
    Away,
    Decision,
    DeedIs,
    Enter,
    Keep,
    PlaceMessage,
)
from linnet.places.parts import DEEDS, Parts, kept_deed
from linnet.places.place import Place
from linnet.trace.records import Kind, Record

PATIENCE = "place.patience"
OWNERS = (
    voicing.OWNER,
    turns.OWNER,
    visiting.OWNER,
    catching_up.OWNER,
    talks.OWNER,
    roll_call.OWNER,
    receipts.OWNER,
    PATIENCE,
)
"""Owners of timers that come back here."""
_KEYS = "place key"
_VISITED = "place visited"
LEAVE_PATIENCE = 20.0
"""Seconds that the host has to let somebody go."""
STEP = 1.0
"""Seconds that a clock may go back unnoticed."""
MOST = 1024
"""Places of one node."""
_NOBODY = AuthorId(bytes(32))
_encode = msgspec.msgpack.Encoder().encode
_decode_contacts = msgspec.msgpack.Decoder(tuple[Contact, ...]).decode


class Places:
    """Every place that this node hosts or visits."""

    def __init__(
        self,
        context: Context,
        config: PlacesConfig,
        listens: tuple[str, ...],
        keeper: KeeperConfig | None = None,
    ) -> None:
        self._context = context
        self._config = config
        self._keeping = Keeping(context, keeper)
        self._listens = listens
        self._places: dict[TopicId, Place] = {}
        self._contacts: dict[PeerId, Contact] = {}
        self._watched: dict[int, Place] = {}
        self._now = 0.0
        """The clock when we were last called."""

    def _look_at_clock(self, now: float) -> None:
        """If the clock was put back, nobody waits longer for that: it had been wrong, or is now."""
        before, self._now = self._now, now
        if before - now > STEP:
            for each in self._places.values():
                each.put_back(before - now)

    def holds(self, topic: TopicId) -> bool:
        """Whether this topic is a place of ours."""
        return topic in self._places

    def reads(self, subscription: int) -> bool:
        """Whether this subscription is one of a place."""
        return subscription in self._watched

    def company(self) -> list[tuple[TopicId, tuple[PeerId, ...], tuple[PeerId, ...]]]:
        """Of each place, the devices beside us, and those that are known to be in it."""
        return [
            (topic, (*tree.upstreams, *tree.downstreams), known)
            for topic, tree, known in (
                (topic, each.parts.tree, tuple(contact.peer for contact in each.visiting.contacts))
                for topic, each in self._places.items()
                if not each.parts.is_out
            )
        ]

    def start(self, now: float) -> list[PlaceEffect]:
        """Open what the store knows, and go back to where we were."""
        self._look_at_clock(now)
        effects: list[PlaceEffect] = []
        for _, raw in self._context.store.cells.scan(DEEDS):
            opened = self._open(kept_deed(raw))
            effects += opened.start(now)
            visited = self._context.store.cells.get(_VISITED, opened.parts.id)
            if visited is not None and not opened.parts.is_out:
                contacts = _decode_contacts(visited)
                effects += opened.visiting.enter(contacts, (), b"", now)
        return effects

    def stop(self, now: float) -> list[PlaceEffect]:
        """Go, and say so."""
        return [effect for each in self._places.values() for effect in each.leave(now)]

    # Commands.

    def ask(self, request: int, command: PlaceCommand, now: float) -> list[PlaceEffect]:
        """What the application wants; answered by one reply."""
        self._look_at_clock(now)
        try:
            return self._ask(request, command, now)
        except (Refused, RemoteError) as error:
            return [Reply(request, Declined(error.reason, error.detail))]

    def _ask(self, request: int, command: PlaceCommand, now: float) -> list[PlaceEffect]:
        match command:
            case HostPlace():
                return self._host(request, command, now)
            case EnterPlace():
                return self._enter(request, command, now)
            case ListPlaces():
                return [Reply(request, PlacesAre(tuple(each.status() for each in self._places.values())))]
            case _:
                return self._ask_place(request, self._get(command.place), command, now)

    def _ask_place(
        self,
        request: int,
        where: Place,
        command: LeavePlace
        | Admit
        | Reject
        | Eject
        | Announce
        | AnnounceMore
        | TalkTo
        | Look
        | WatchPlace
        | ListGuests
        | ListReceipts,
        now: float,
    ) -> list[PlaceEffect]:
        match command:
            case Announce() | AnnounceMore() | Admit() | Eject():
                return where.voicing.ask(request, command, now)
            case Reject(_, nym, method, modifiers, text):
                waiting = where.door.take_waiting(nym)
                return [where.door.reject(waiting, method, modifiers, text), Reply(request, Done())]
            case Look(_, name, at):
                return [Reply(request, _objects(where, name, at))]
            case ListGuests():
                return [Reply(request, _guests(where))]
            case ListReceipts(_, message):
                return [Reply(request, where.receipts.of(message))]
            case WatchPlace():
                return self._watch(request, where, command, now)
            case LeavePlace(_, for_good):
                return self._leave(request, where, for_good, now)
            case TalkTo():
                if where.parts.is_voice:
                    raise Refused(Reason.NOT_ALLOWED, "this node is the voice of the place: announce instead")
                words = (command.method, command.modifiers, command.body, command.patience)
                return [*where.talks.say(request, *words, now)]
            case _:
                assert_never(command)

    def unsubscribe(self, request: int, command: Unsubscribe) -> list[PlaceEffect]:
        """Watch no more."""
        watched = self._watched.pop(command.subscription)
        return [*watched.watching.remove(command.subscription), AfterCommit((Reply(request, Done()),))]

    def consumed(self, request: int, command: Consumed) -> list[PlaceEffect]:
        """A watcher is done with so many items."""
        watched = self._watched[command.subscription]
        effects = watched.watching.consumed(command.subscription, command.items)
        return [AfterCommit((*effects, Reply(request, Done())))]

    def _host(self, request: int, command: HostPlace, now: float) -> list[PlaceEffect]:
        cells = self._context.store.cells
        if command.place is None:
            key = SigningKey.generate(self._context.entropy)
            deed = sign_deed(
                key,
                1,
                command.policy or Policy.PUBLIC,
                self._context.author,
                command.cohosts or (),
                command.keepers or (),
            )
            if len(self._places) >= MOST:
                raise Refused(Reason.TOO_MANY, f"{MOST} places are open at this node")
            cells.put(_KEYS, deed.place, key.seed)
            opened = self._open(deed)
            opened.parts.keep_deed(deed)
            return [AfterCommit((Reply(request, opened.status()),))]
        opened = self._get(command.place)
        seed = cells.get(_KEYS, command.place)
        if seed is None:
            raise Refused(Reason.NOT_ALLOWED, "the key of this place is not on this device")
        deed = _changed(SigningKey(seed), opened.parts, command)
        opened.parts.renew(deed)
        effects = [*opened.renewed(now), *opened.voicing.take_over(now)]
        return [*effects, AfterCommit((Reply(request, opened.status()),)), *opened.keepers.look(now)]

    def _enter(self, request: int, command: EnterPlace, now: float) -> list[PlaceEffect]:
        opened = self._places.get(command.place)
        if opened is None:
            if len(self._places) >= MOST:
                raise Refused(Reason.TOO_MANY, f"{MOST} places are open at this node")
            if not command.contacts:
                raise Refused(Reason.NO_ADDRESS, "nobody to ask: give an address of the host or of a relay")
            # Until the door opens nothing is known of it but its key: the deed comes with the answer.
            opened = self._open(Deed(command.place, 0, Policy.PRIVATE, _NOBODY, (), (), bytes(64)))
        if opened.parts.keeps:
            raise Refused(Reason.IN_USE, "this node keeps the place for others: enter it with another node")
        if opened.parts.is_voice and not opened.parts.deed.cohosts:
            raise Refused(Reason.NOT_ALLOWED, "this node hosts the place, and nobody else may speak in it")
        if opened.visiting.wants and opened.parts.tree.upstreams:
            return [Reply(request, Entered(command.place, opened.parts.since))]  # we are in already
        contacts = command.contacts or opened.visiting.contacts
        self._context.store.cells.put(_VISITED, command.place, _encode(contacts))
        words = (command.modifiers, command.text, command.waits)
        effects = opened.admission.enter(request, contacts, *words, now)
        key = command.place + request.to_bytes(8, "big")
        return [*effects, SetTimer(command.patience, Tick(PATIENCE, "enter", key))]

    def _watch(self, request: int, where: Place, command: WatchPlace, now: float) -> list[PlaceEffect]:
        if where.parts.keeps:
            raise Refused(Reason.NOT_ALLOWED, "this node keeps the place for others and reads nothing of it")
        if command.subscription in self._watched:
            raise Refused(Reason.IN_USE, f"there is a subscription {command.subscription} already")
        since, resumed = where.watching.add(command)
        self._watched[command.subscription] = where
        reply = Reply(request, Watching(where.parts.id, since, resumed))
        return [AfterCommit((reply, *where.watching.pump())), *where.catching_up.due(now)]

    def _leave(self, request: int, where: Place, for_good: bool, now: float) -> list[PlaceEffect]:
        if for_good and where.role == "outside" and where.parts.membership.changes(self._context.author):
            raise Refused(Reason.NOT_A_MEMBER, "you left this place or were put out of it: you are no guest")
        if for_good:
            return [*where.talks.say(request, place.REQUEST_LEAVE, (), b"", LEAVE_PATIENCE, now)]
        self._context.store.cells.delete(_VISITED, where.parts.id)
        return [*where.leave(now), AfterCommit((Reply(request, Done()),))]

    # Messages, links, timers.

    def on_data(self, peer: PeerId, data: Data, now: float) -> list[PlaceEffect]:
        """A fragment."""
        self._look_at_clock(now)
        where = self._places[data.unit.topic]
        effects = where.on_data(peer, data, now)
        return [*effects, *self._keeping.trim(where.parts, now)] if where.parts.keeps else effects

    def on_message(self, peer: PeerId, message: PlaceMessage, now: float) -> list[PlaceEffect]:
        """What a peer says about a place."""
        self._look_at_clock(now)
        if isinstance(message, Keep):
            known = self._places.get(message.deed.place)
            kept = None if known is None else known.parts
            return [*self._keeping.asked(peer, message, kept, lambda deed: self._open(deed).parts, now)]
        topic = message.deed.place if isinstance(message, DeedIs) else getattr(message, "place", None)
        where = None if topic is None else self._places.get(cast("TopicId", topic))
        if where is None:
            note = type(message).__name__
            record = Record(Kind.REJECTED, topic, peer=peer, reason=Reason.NOT_JOINED, note=note)
            if isinstance(message, Enter):
                no = Decision(message.place, False, Reason.UNKNOWN, None, (), b"", 0, 0, (), ())
                return [record, Send(peer, no)]
            return [record, Blame(peer, Reason.NOT_JOINED)]
        if isinstance(message, Enter | Decision | Away | DeedIs):
            effects = at_the_door(where, peer, message, now)
            if where.admission.is_rejected:
                where.admission.is_rejected = False
                return [*effects, *self._withdraw(where, now)]
            if not self._keeping.is_over(where.parts):
                return effects
            del self._places[where.parts.id]
            gone = self._keeping.drop(where.parts, Reason.NOT_ALLOWED)
            return [*effects, *where.leave(now), *gone]
        return inside(where, peer, message, now)

    def link_up(self, event: LinkUp, now: float) -> list[PlaceEffect]:
        """A link is open."""
        self._look_at_clock(now)
        self._contacts[event.peer] = Contact(event.peer, event.hello.listens)
        return [effect for each in self._places.values() for effect in each.link_up(event.peer, now)]

    def link_gone(self, event: LinkDown | DialFailed, now: float) -> list[PlaceEffect]:
        """A link is down, or could not be opened."""
        self._look_at_clock(now)
        self._contacts.pop(event.peer, None)
        return [effect for each in self._places.values() for effect in each.link_gone(event.peer, now)]

    def fired(self, tick: Tick, now: float) -> list[PlaceEffect]:
        """A timer of ours has run out."""
        self._look_at_clock(now)
        where = self._places.get(TopicId(tick.key[:32]))
        if where is None:
            return []
        if tick.owner == PATIENCE:
            is_over, effects = where.admission.give_up(int.from_bytes(tick.key[32:], "big"))
            return [*effects, *(self._withdraw(where, now) if is_over else [])]
        return where.fired(tick, now)

    def _withdraw(self, where: Place, now: float) -> list[PlaceEffect]:
        """Nobody means to be in this place any more; one of which nothing is known is forgotten."""
        self._context.store.cells.delete(_VISITED, where.parts.id)
        effects = where.leave(now)
        if not where.parts.deed.version and where not in self._watched.values():
            del self._places[where.parts.id]
        return effects

    def _open(self, deed: Deed) -> Place:
        keeps = self._keeping.keeps(deed.place)
        opened = Place(deed, self._context, self._config, self._contacts, keeps)
        self._places[deed.place] = opened
        return opened

    def _get(self, topic: TopicId) -> Place:
        where = self._places.get(topic)
        if where is None:
            raise Refused(Reason.NOT_JOINED, "this node is not in that place: enter it first")
        return where


def _objects(where: Place, name: str, best: bool) -> ObjectsAre:
    objects, state = where.watching.objects, where.parts.order.applied
    if best:
        found = objects.look_at(name)
        return ObjectsAre(where.parts.id, () if found is None else (found,), state)
    return ObjectsAre(where.parts.id, tuple(sorted(objects.look(name).items())), state)


def _guests(where: Place) -> GuestsAre:
    membership = where.parts.membership
    guests = tuple(
        GuestIs(nym, _last_join(membership.changes(nym)), where.receipts.upto(nym))
        for nym in sorted(membership.present())
    )
    waiting = where.door.waiting
    said = tuple(each.packet.body for each in waiting.values())
    return GuestsAre(where.parts.id, guests, tuple(waiting), said)


def _last_join(changes: list[Known]) -> int:
    return max((each.effective_since for each in changes if each.joins), default=0)


def _changed(key: SigningKey, parts: Parts, command: HostPlace) -> Deed:
    deed = parts.deed
    cohosts = deed.cohosts if command.cohosts is None else command.cohosts
    past = parts.past_terms((deed.host, *cohosts))
    return sign_deed(
        key,
        deed.version + 1,
        deed.policy if command.policy is None else command.policy,
        deed.host,
        cohosts,
        deed.keepers if command.keepers is None else command.keepers,
        past,
    )

"""All places of a node: the application's commands, the peers' messages, the links and timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.commands import Consumed, Unsubscribe
from linnet.delivery.context import Context
from linnet.delivery.messages import Data
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Done
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_input, on_message, on_timer
from linnet.places.catch_up import QuestionsDue
from linnet.places.channel.membership import Known
from linnet.places.commands import (
    Admit,
    Announce,
    AnnounceMore,
    ChangePlace,
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
    PlaceObject,
    PlacesAre,
    Reject,
    TalkTo,
    Watching,
    WatchPlace,
)
from linnet.places.config import KeeperConfig, PlacesConfig
from linnet.places.deed import Deed, Policy, sign_deed
from linnet.places.entry import TURNED, LookAroundDue
from linnet.places.guest_list import RollDue
from linnet.places.guest_requests import TalkDue
from linnet.places.host import KeepAliveDue, VoiceCommand
from linnet.places.host_terms import TurnDue
from linnet.places.keepers import KeptPlaces
from linnet.places.messages import (
    AskRoll,
    AskState,
    AskTerms,
    Away,
    Decision,
    DeedIs,
    Enter,
    Heard,
    Keep,
    Kept,
    MessageAtPlace,
    Receipts,
    Replay,
    Replayed,
    RollIs,
    StateIs,
    Talk,
    TermsAre,
    Unheard,
    Yield,
    Yielded,
)
from linnet.places.place import REQUEST_LEAVE, Place
from linnet.places.place_setup import DEEDS, Parts, PlaceTimer, decode_deed
from linnet.places.receipts import ReceiptsDue
from linnet.trace.records import Kind, Record

_KEYS = "place key"
_VISITED = "place visited"
LEAVE_PATIENCE = 20.0
"""Seconds that the host has to let a guest go."""
STEP = 1.0
"""Seconds by which a clock may go back unnoticed."""
MOST = 1024
"""The most places of one node."""
_NOBODY = AuthorId(bytes(32))
_encode = msgspec.msgpack.Encoder().encode
_decode_contacts = msgspec.msgpack.Decoder(tuple[Contact, ...]).decode


class EntryDue(Timer, frozen=True, gc=False):
    """A timer: the patience of a command to enter a place is over."""

    place: TopicId
    request: int


M = TypeVar("M", bound=MessageAtPlace)
T = TypeVar("T", bound=PlaceTimer)


def _at_place(
    kind: type[M], handle: Callable[[Place, PeerId, M, float], None]
) -> Callable[[Places, PeerId, M, float], None]:
    """Make a handler of messages about a place of ours. Peers that send messages about others are blamed."""

    @on_message(kind)
    def hand_over(self: Places, peer: PeerId, message: M, now: float) -> None:
        if (place := self._known(peer, message, message.place, now)) is not None:
            handle(place, peer, message, now)
            self._end_if_over(place, now)

    return hand_over


def _when_due(kind: type[T], handle: Callable[[Place, float], None]) -> Callable[[Places, T, float], None]:
    """Make a handler of the timers of a place, for as long as the place is there."""

    @on_timer(kind)
    def hand_over(self: Places, timer: T, now: float) -> None:
        if (place := self._timed(timer.place, now)) is not None:
            handle(place, now)

    return hand_over


class Places(Part):
    """Every place that this node hosts or visits."""

    def __init__(
        self,
        context: Context,
        config: PlacesConfig,
        out: Outbox,
        keeper: KeeperConfig | None = None,
    ) -> None:
        self._context = context
        self._config = config
        self._out = out
        self._kept_places = KeptPlaces(context, keeper, out)
        self._places: dict[TopicId, Place] = {}
        self._contacts: dict[PeerId, Contact] = {}
        self._watched: dict[int, Place] = {}
        self.own_topics, self.own_subscriptions = self._places, self._watched
        self._now = 0.0
        """The clock at the last call."""

    def _look_at_clock(self, now: float) -> None:
        """If the clock was put back, shift all stored times, so that nothing waits longer for that."""
        before, self._now = self._now, now
        if before - now > STEP:
            for each in self._places.values():
                each.put_back(before - now)

    def company(self) -> list[tuple[TopicId, tuple[PeerId, ...], tuple[PeerId, ...]]]:
        """Return for each place the connected devices, and those that are known to be in it."""
        return [
            (topic, (*tree.upstreams, *tree.downstreams), known)
            for topic, tree, known in (
                (topic, each.parts.tree, tuple(contact.peer for contact in each.entry_search.contacts))
                for topic, each in self._places.items()
                if not each.parts.is_out
            )
        ]

    def start(self, now: float) -> None:
        """Open the places in the store, and reconnect to those that we were in."""
        self._look_at_clock(now)
        for _, raw in self._context.store.cells.scan(DEEDS):
            opened = self._open(decode_deed(raw))
            opened.start(now)
            visited = self._context.store.cells.get(_VISITED, opened.parts.id)
            if visited is not None and not opened.parts.is_out:
                contacts = _decode_contacts(visited)
                opened.entry_search.enter(contacts, (), b"", now)
        self._return_to_doors(now)

    def _return_to_doors(self, now: float) -> None:
        """Wait again at the doors that have not opened yet, and restore the places that turned us away."""
        cells = self._context.store.cells
        for key, raw in list(cells.scan(_VISITED)):
            if key not in self._places:
                opened = self._open(_unknown_deed(TopicId(key)))
                opened.entry_search.enter(_decode_contacts(raw), (), b"", now)
        for key, _ in list(cells.scan(TURNED)):
            if key not in self._places:
                self._open(_unknown_deed(TopicId(key)))

    def stop(self, now: float) -> None:
        """Leave all places, and tell the neighbours."""
        for each in self._places.values():
            each.leave()

    # Commands.

    @on_command(HostPlace)
    def host_place(self, request: int, command: HostPlace, now: float) -> None:
        """Found a place."""
        self._look_at_clock(now)
        key = SigningKey.generate(self._context.entropy)
        deed = sign_deed(key, 1, command.policy, self._context.author, command.cohosts, command.keepers)
        if len(self._places) >= MOST:
            raise Refused(Reason.TOO_MANY, f"{MOST} places are open at this node")
        self._context.store.cells.put(_KEYS, deed.place, key.seed)
        opened = self._open(deed)
        opened.parts.keep_deed(deed)
        self._out.committed.reply(request, opened.status())

    @on_command(ChangePlace)
    def change_place(self, request: int, command: ChangePlace, now: float) -> None:
        """Change the deed of a place of ours."""
        opened = self._find(command.place, now)
        seed = self._context.store.cells.get(_KEYS, command.place)
        if seed is None:
            raise Refused(Reason.NOT_ALLOWED, "the key of this place is not on this device")
        opened.parts.renew(_changed(SigningKey(seed), opened.parts, command))
        if command.cohosts is not None:
            opened.parts.host_keys.end_epoch()  # new co-hosts learn with the next epoch how to seal to us
        opened.pass_on_deed(now)
        opened.host.take_over(now)
        self._out.committed.reply(request, opened.status())
        opened.keepers.hold_keepers(now)

    @on_command(EnterPlace)
    def enter_place(self, request: int, command: EnterPlace, now: float) -> None:
        """Ask to be let into a place; answered when a door opens, or we are turned away."""
        self._look_at_clock(now)
        opened = self._places.get(command.place)
        if opened is None:
            if len(self._places) >= MOST:
                raise Refused(Reason.TOO_MANY, f"{MOST} places are open at this node")
            if not command.contacts:
                raise Refused(Reason.NO_ADDRESS, "nobody to ask: give an address of the host or of a relay")
            opened = self._open(_unknown_deed(command.place))
        if opened.parts.keeps:
            raise Refused(Reason.IN_USE, "this node keeps the place for others: enter it with another node")
        if opened.parts.is_voice and not opened.parts.deed.cohosts:
            raise Refused(Reason.NOT_ALLOWED, "this node hosts the place, and nobody else may speak in it")
        if opened.entry_search.wants and opened.parts.tree.upstreams:
            self._out.reply(request, Entered(command.place, opened.parts.since))  # we are in already
            return
        contacts = command.contacts or opened.entry_search.contacts
        self._context.store.cells.put(_VISITED, command.place, _encode(contacts))
        words = (command.modifiers, command.text, command.waits)
        opened.admission.enter(request, contacts, *words, now)
        self._out.set_timer(command.patience, EntryDue(command.place, request))

    @on_command(LeavePlace)
    def leave_place(self, request: int, command: LeavePlace, now: float) -> None:
        """End our membership of a place, or only the connection."""
        place = self._find(command.place, now)
        is_out = place.role == "outside" and place.parts.membership.changes(self._context.author)
        if command.for_good and is_out:
            raise Refused(Reason.NOT_A_MEMBER, "you left this place or were put out of it: you are no guest")
        if command.for_good:
            place.guest_requests.say(request, REQUEST_LEAVE, (), b"", LEAVE_PATIENCE, now)
            return
        self._context.store.cells.delete(_VISITED, place.parts.id)
        place.leave()
        self._out.committed.reply(request, Done())

    @on_command(ListPlaces)
    def list_places(self, request: int, command: ListPlaces, now: float) -> None:
        """List the status of each place."""
        self._look_at_clock(now)
        self._out.reply(request, PlacesAre(tuple(each.status() for each in self._places.values())))

    @on_command(Announce)
    def announce(self, request: int, command: Announce, now: float) -> None:
        """Announce something to all guests, now or when it is our turn."""
        self._speak(request, command.plain, now)

    @on_command(AnnounceMore)
    def announce_more(self, request: int, command: AnnounceMore, now: float) -> None:
        """Add to the body of a message that is open."""
        self._speak(request, command, now)

    @on_command(Admit)
    def admit(self, request: int, command: Admit, now: float) -> None:
        """Let a person in who waits at the door."""
        self._speak(request, command, now)

    @on_command(Eject)
    def eject(self, request: int, command: Eject, now: float) -> None:
        """Put a guest out."""
        self._speak(request, command, now)

    def _speak(self, request: int, command: VoiceCommand, now: float) -> None:
        self._find(command.place, now).host.handle_command(request, command, now)

    @on_command(Reject)
    def reject(self, request: int, command: Reject, now: float) -> None:
        """Turn a person away who waits at the door."""
        door, told = self._find(command.place, now).door, command.plain
        door.reject(door.take_waiting(told.nym), told.method, told.modifiers, told.body)
        self._out.reply(request, Done())

    @on_command(TalkTo)
    def talk_to(self, request: int, command: TalkTo, now: float) -> None:
        """Send a request to the host; answered when its device has it."""
        place = self._find(command.place, now)
        if place.parts.is_voice:
            raise Refused(Reason.NOT_ALLOWED, "this node is the voice of the place: announce instead")
        told = command.plain
        words = (told.method, told.modifiers, told.body, told.patience)
        place.guest_requests.say(request, *words, now)

    @on_command(Look)
    def look(self, request: int, command: Look, now: float) -> None:
        """List the objects of a place."""
        place = self._find(command.place, now)
        self._out.reply(request, _objects(place, command.name, command.at))

    @on_command(ListGuests)
    def list_guests(self, request: int, command: ListGuests, now: float) -> None:
        """List the guests of a place, and the people who wait at its door."""
        self._out.reply(request, _guests(self._find(command.place, now)))

    @on_command(ListReceipts)
    def list_receipts(self, request: int, command: ListReceipts, now: float) -> None:
        """List which guests have a message."""
        self._out.reply(request, self._find(command.place, now).receipts.of(command.message))

    # Watching.

    @on_command(WatchPlace)
    def watch_place(self, request: int, command: WatchPlace, now: float) -> None:
        """Subscribe to a place: to messages from now on, or to messages of the past."""
        place = self._find(command.place, now)
        if place.parts.keeps:
            raise Refused(Reason.NOT_ALLOWED, "this node keeps the place for others and reads nothing of it")
        if command.subscription in self._watched:
            raise Refused(Reason.IN_USE, f"there is a subscription {command.subscription} already")
        since, resumed = place.subscribers.add(command)
        self._watched[command.subscription] = place
        self._out.committed.reply(request, Watching(place.parts.id, since, resumed))
        place.subscribers.pump()
        place.catch_up.ask_due(now)

    @on_command(Unsubscribe)
    def handle_unsubscribe(self, request: int, command: Unsubscribe, now: float) -> None:
        """End a subscription."""
        watched = self._watched.pop(command.subscription)
        watched.subscribers.remove(command.subscription)
        self._out.committed.reply(request, Done())

    @on_command(Consumed)
    def handle_consumed(self, request: int, command: Consumed, now: float) -> None:
        """Go on with a subscription whose application has handled so many items."""
        watched = self._watched[command.subscription]
        watched.subscribers.handle_consumed(command.subscription, command.items)
        self._out.committed.reply(request, Done())

    # Messages.

    @on_message(Data)
    def handle_data(self, peer: PeerId, data: Data, now: float) -> None:
        """Take a fragment of a place of ours."""
        self._look_at_clock(now)
        place = self._places[data.unit.topic]
        place.handle_data(peer, data, now)
        if place.parts.keeps:
            self._kept_places.trim_place(place.parts, now)

    @on_message(Enter)
    def handle_enter(self, peer: PeerId, message: Enter, now: float) -> None:
        """Answer a peer at our door."""
        self._look_at_clock(now)
        place = self._places.get(message.place)
        if place is None:
            self._reject_message(peer, message, message.place)
            no = Decision(message.place, False, Reason.UNKNOWN, None, (), b"", 0, 0, (), ())
            self._out.send(peer, no)
            return
        place.handle_enter(peer, message, now)
        self._end_if_over(place, now)

    handle_decision = _at_place(Decision, Place.handle_decision)
    handle_away = _at_place(Away, Place.handle_away)
    handle_replay = _at_place(Replay, Place.handle_replay)
    handle_replayed = _at_place(Replayed, Place.handle_replayed)
    handle_ask_state = _at_place(AskState, Place.handle_ask_state)
    handle_state = _at_place(StateIs, Place.handle_state)
    handle_ask_roll = _at_place(AskRoll, Place.handle_ask_roll)
    handle_roll = _at_place(RollIs, Place.handle_roll)
    handle_ask_terms = _at_place(AskTerms, Place.handle_ask_terms)
    handle_terms = _at_place(TermsAre, Place.handle_terms)
    handle_talk = _at_place(Talk, Place.handle_talk)
    handle_heard = _at_place(Heard, lambda at, peer, heard, now: at.guest_requests.handle_heard(peer, heard))
    handle_unheard = _at_place(
        Unheard, lambda at, peer, unheard, now: at.guest_requests.handle_unheard(peer, unheard)
    )
    handle_receipts = _at_place(
        Receipts, lambda at, peer, told, now: at.receipts.handle_receipts(peer, told, now)
    )
    handle_kept = _at_place(Kept, lambda at, peer, kept, now: at.keepers.handle_answer(peer, kept, now))
    handle_yield = _at_place(Yield, lambda at, peer, asked, now: at.host.handle_yield(peer, asked, now))
    handle_yielded = _at_place(Yielded, Place.handle_yielded)

    @on_message(DeedIs)
    def handle_deed(self, peer: PeerId, message: DeedIs, now: float) -> None:
        """Take a newer deed."""
        if (place := self._known(peer, message, message.deed.place, now)) is not None:
            place.handle_deed(peer, message, now)
            self._end_if_over(place, now)

    @on_message(Keep)
    def handle_keep(self, peer: PeerId, message: Keep, now: float) -> None:
        """Keep a place for a peer that asks us to, or say why not."""
        self._look_at_clock(now)
        known = self._places.get(message.deed.place)
        kept = None if known is None else known.parts
        self._kept_places.handle_keep(peer, message, kept, lambda deed: self._open(deed).parts, now)

    # Links and timers.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Send over a link what waited for it."""
        self._look_at_clock(now)
        self._contacts[event.peer] = Contact(event.peer, event.hello.listens)
        for each in self._places.values():
            each.handle_link_up(event.peer, now)

    @on_input(LinkDown)
    def handle_link_down(self, event: LinkDown, now: float) -> None:
        """Drop a peer whose link is down."""
        self._drop_peer(event.peer, now)

    @on_input(DialFailed)
    def handle_dial_failed(self, event: DialFailed, now: float) -> None:
        """Drop a peer that could not be dialled."""
        self._drop_peer(event.peer, now)

    def _drop_peer(self, peer: PeerId, now: float) -> None:
        self._look_at_clock(now)
        self._contacts.pop(peer, None)
        for each in self._places.values():
            each.handle_link_down(peer, now)

    @on_timer(EntryDue)
    def give_up_entry(self, timer: EntryDue, now: float) -> None:
        """Answer a command to enter that nobody answered in time."""
        if (place := self._timed(timer.place, now)) is not None and place.admission.give_up(timer.request):
            self._withdraw(place)

    look_around = _when_due(LookAroundDue, Place.look_around)
    ask_questions = _when_due(QuestionsDue, Place.follow_up)
    ask_roll = _when_due(RollDue, Place.follow_up)
    take_turn = _when_due(TurnDue, Place.follow_up)
    break_silence = _when_due(KeepAliveDue, lambda place, now: place.host.break_silence(now))
    talk_again = _when_due(TalkDue, lambda place, now: place.guest_requests.say_again(now))
    send_receipts = _when_due(ReceiptsDue, lambda place, now: place.receipts.send_receipts(now))

    # Inside.

    def _known(self, peer: PeerId, message: Message, topic: TopicId, now: float) -> Place | None:
        """Return the place of a message; None, and blame the peer, if we are not in it."""
        self._look_at_clock(now)
        place = self._places.get(topic)
        if place is None:
            self._reject_message(peer, message, topic)
            self._out.blame(peer, Reason.NOT_JOINED)
        return place

    def _reject_message(self, peer: PeerId, message: Message, topic: TopicId) -> None:
        note = type(message).__name__
        self._out.record(Record(Kind.REJECTED, topic, peer=peer, reason=Reason.NOT_JOINED, note=note))

    def _timed(self, topic: TopicId, now: float) -> Place | None:
        """Return the place of a timer; None if the place is gone."""
        self._look_at_clock(now)
        return self._places.get(topic)

    def _find(self, topic: TopicId, now: float) -> Place:
        """Return the place of a command; `Refused` if we are not in it."""
        self._look_at_clock(now)
        place = self._places.get(topic)
        if place is None:
            raise Refused(Reason.NOT_JOINED, "this node is not in that place: enter it first")
        return place

    def _end_if_over(self, place: Place, now: float) -> None:
        """Forget a place that turned us away, or that we are to keep no longer."""
        if place.admission.is_rejected:
            place.admission.is_rejected = False
            self._withdraw(place)
        elif self._kept_places.is_over(place.parts):
            del self._places[place.parts.id]
            place.leave()
            self._kept_places.drop_place(place.parts, Reason.NOT_ALLOWED)

    def _withdraw(self, place: Place) -> None:
        """Leave a place that nobody wants to be in any more, and forget it if nothing is known of it."""
        self._context.store.cells.delete(_VISITED, place.parts.id)
        place.leave()
        is_told = place.admission.turned is not None
        if not place.parts.deed.version and not is_told and place not in self._watched.values():
            del self._places[place.parts.id]

    def _open(self, deed: Deed) -> Place:
        keeps = self._kept_places.keeps(deed.place)
        opened = Place(deed, self._context, self._config, self._contacts, self._out, keeps)
        self._places[deed.place] = opened
        return opened


def _unknown_deed(place: TopicId) -> Deed:
    """Make a stand-in for a deed: only a place's key is known until the deed comes with the first answer."""
    return Deed(place, 0, Policy.PRIVATE, _NOBODY, (), (), bytes(64))


def _objects(where: Place, name: str, best: bool) -> ObjectsAre:
    order = where.parts.order
    if best:
        found = order.state.get(name)
        return ObjectsAre(where.parts.id, () if found is None else (PlaceObject(*found),), order.applied)
    found_below = tuple(PlaceObject(*each) for each in sorted(order.state.get_all(name).items()))
    return ObjectsAre(where.parts.id, found_below, order.applied)


def _guests(where: Place) -> GuestsAre:
    membership = where.parts.membership
    guests = tuple(
        GuestIs(nym, _last_join(membership.changes(nym)), where.receipts.upto(nym))
        for nym in sorted(membership.present())
    )
    waiting = where.door.waiting
    said = tuple(each.packet.body.decode("utf-8", "replace") for each in waiting.values())
    return GuestsAre(where.parts.id, guests, tuple(waiting), said)


def _last_join(changes: list[Known]) -> int:
    return max((each.effective_since for each in changes if each.joins), default=0)


def _changed(key: SigningKey, parts: Parts, command: ChangePlace) -> Deed:
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

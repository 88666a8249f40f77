"""All places of a node: the application's commands, the peers' messages, the links and timers."""

from __future__ import annotations

import msgspec

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.commands import Consumed, Done, Unsubscribe
from linnet.delivery.context import Context
from linnet.delivery.messages import Data
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_command, on_input, on_message, on_timer
from linnet.places.catch_up import QuestionsDue
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
    PlacesAre,
    Reject,
    TalkTo,
    Watching,
    WatchPlace,
)
from linnet.places.config import KeeperConfig, PlacesConfig
from linnet.places.deed import Deed, Policy, sign_deed
from linnet.places.entry import LookAroundDue
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
from linnet.places.place_setup import DEEDS, Parts, kept_deed
from linnet.places.receipts import ReceiptsDue
from linnet.trace.records import Kind, Record

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


class EntryDue(Timer, frozen=True, gc=False):
    """The patience of a command to enter a place is over."""

    place: TopicId
    request: int


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
                (topic, each.parts.tree, tuple(contact.peer for contact in each.entry_search.contacts))
                for topic, each in self._places.items()
                if not each.parts.is_out
            )
        ]

    def start(self, now: float) -> None:
        """Open what the store knows, and go back to where we were."""
        self._look_at_clock(now)
        for _, raw in self._context.store.cells.scan(DEEDS):
            opened = self._open(kept_deed(raw))
            opened.start(now)
            visited = self._context.store.cells.get(_VISITED, opened.parts.id)
            if visited is not None and not opened.parts.is_out:
                contacts = _decode_contacts(visited)
                opened.entry_search.enter(contacts, (), b"", now)

    def stop(self, now: float) -> None:
        """Go, and say so."""
        for each in self._places.values():
            each.leave()

    # Commands.

    @on_command(HostPlace)
    def host_place(self, request: int, command: HostPlace, now: float) -> None:
        """Found a place, or change the deed of one of ours."""
        self._look_at_clock(now)
        if command.place is None:
            self._found(request, command)
            return
        opened = self._get(command.place)
        seed = self._context.store.cells.get(_KEYS, command.place)
        if seed is None:
            raise Refused(Reason.NOT_ALLOWED, "the key of this place is not on this device")
        opened.parts.renew(_changed(SigningKey(seed), opened.parts, command))
        if command.cohosts is not None:
            opened.parts.host_keys.end_epoch()  # who is new among them learns with the next how to seal to us
        opened.pass_on_deed(now)
        opened.host.take_over(now)
        self._out.committed.reply(request, opened.status())
        opened.keepers.hold_keepers(now)

    def _found(self, request: int, command: HostPlace) -> None:
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
        self._context.store.cells.put(_KEYS, deed.place, key.seed)
        opened = self._open(deed)
        opened.parts.keep_deed(deed)
        self._out.committed.reply(request, opened.status())

    @on_command(EnterPlace)
    def enter_place(self, request: int, command: EnterPlace, now: float) -> None:
        """Ask to be let into a place; answered when a door opens, or does not."""
        self._look_at_clock(now)
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
        """Be a guest no longer, or just not connected now."""
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
        """Tell how each place stands."""
        self._look_at_clock(now)
        self._out.reply(request, PlacesAre(tuple(each.status() for each in self._places.values())))

    @on_command(Announce)
    def announce(self, request: int, command: Announce, now: float) -> None:
        """Say something to all, now or when it is our turn."""
        self._speak(request, command, now)

    @on_command(AnnounceMore)
    def announce_more(self, request: int, command: AnnounceMore, now: float) -> None:
        """Say more of a message that is open."""
        self._speak(request, command, now)

    @on_command(Admit)
    def admit(self, request: int, command: Admit, now: float) -> None:
        """Let somebody in who waits at the door."""
        self._speak(request, command, now)

    @on_command(Eject)
    def eject(self, request: int, command: Eject, now: float) -> None:
        """Put a guest out."""
        self._speak(request, command, now)

    def _speak(self, request: int, command: VoiceCommand, now: float) -> None:
        self._find(command.place, now).host.handle_command(request, command, now)

    @on_command(Reject)
    def reject(self, request: int, command: Reject, now: float) -> None:
        """Turn somebody away who waits at the door."""
        door = self._find(command.place, now).door
        door.reject(door.take_waiting(command.nym), command.method, command.modifiers, command.text)
        self._out.reply(request, Done())

    @on_command(TalkTo)
    def talk_to(self, request: int, command: TalkTo, now: float) -> None:
        """Say something to the host; answered when its device has it."""
        place = self._find(command.place, now)
        if place.parts.is_voice:
            raise Refused(Reason.NOT_ALLOWED, "this node is the voice of the place: announce instead")
        words = (command.method, command.modifiers, command.body, command.patience)
        place.guest_requests.say(request, *words, now)

    @on_command(Look)
    def look(self, request: int, command: Look, now: float) -> None:
        """Tell the objects of a place."""
        place = self._find(command.place, now)
        self._out.reply(request, _objects(place, command.name, command.at))

    @on_command(ListGuests)
    def list_guests(self, request: int, command: ListGuests, now: float) -> None:
        """Tell who is in a place, and who waits at its door."""
        self._out.reply(request, _guests(self._find(command.place, now)))

    @on_command(ListReceipts)
    def list_receipts(self, request: int, command: ListReceipts, now: float) -> None:
        """Tell which guests have a message."""
        self._out.reply(request, self._find(command.place, now).receipts.of(command.message))

    # Watching.

    @on_command(WatchPlace)
    def watch_place(self, request: int, command: WatchPlace, now: float) -> None:
        """Hand over what is said in a place from now on, or what was said before."""
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
        """Hand over nothing more to a subscription."""
        watched = self._watched.pop(command.subscription)
        watched.subscribers.remove(command.subscription)
        self._out.committed.reply(request, Done())

    @on_command(Consumed)
    def handle_consumed(self, request: int, command: Consumed, now: float) -> None:
        """Go on with a subscription that is done with so many items."""
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

    @on_message(Decision)
    def handle_decision(self, peer: PeerId, message: Decision, now: float) -> None:
        """Follow the answer at a peer's door."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_decision(peer, message, now)
            self._end_if_over(place, now)

    @on_message(Away)
    def handle_away(self, peer: PeerId, message: Away, now: float) -> None:
        """Drop a neighbour that goes."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_away(peer, message, now)
            self._end_if_over(place, now)

    @on_message(DeedIs)
    def handle_deed(self, peer: PeerId, message: DeedIs, now: float) -> None:
        """Take a newer deed."""
        if (place := self._known(peer, message, message.deed.place, now)) is not None:
            place.handle_deed(peer, message, now)
            self._end_if_over(place, now)

    @on_message(Replay)
    def handle_replay(self, peer: PeerId, message: Replay, now: float) -> None:
        """Give a peer a fragment that it lacks."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_replay(peer, message, now)

    @on_message(Replayed)
    def handle_replayed(self, peer: PeerId, message: Replayed, now: float) -> None:
        """Take a fragment that we lacked, or why it is not given."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_replayed(peer, message, now)

    @on_message(AskState)
    def handle_ask_state(self, peer: PeerId, message: AskState, now: float) -> None:
        """Tell a peer the state."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_ask_state(peer, message)

    @on_message(StateIs)
    def handle_state(self, peer: PeerId, message: StateIs, now: float) -> None:
        """Take the state that a peer tells."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_state(peer, message, now)

    @on_message(AskRoll)
    def handle_ask_roll(self, peer: PeerId, message: AskRoll, now: float) -> None:
        """Tell a peer who is in."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_ask_roll(peer, message)

    @on_message(RollIs)
    def handle_roll(self, peer: PeerId, message: RollIs, now: float) -> None:
        """Take what a peer tells of who is in."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_roll(peer, message, now)

    @on_message(Receipts)
    def handle_receipts(self, peer: PeerId, message: Receipts, now: float) -> None:
        """Keep receipts of guests, or pass them on."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.receipts.handle_receipts(peer, message, now)

    @on_message(Keep)
    def handle_keep(self, peer: PeerId, message: Keep, now: float) -> None:
        """Keep a place for a peer that asks us to, or say why not."""
        self._look_at_clock(now)
        known = self._places.get(message.deed.place)
        kept = None if known is None else known.parts
        self._kept_places.handle_keep(peer, message, kept, lambda deed: self._open(deed).parts, now)

    @on_message(Kept)
    def handle_kept(self, peer: PeerId, message: Kept, now: float) -> None:
        """Note whether a keeper keeps a place of ours."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.keepers.handle_answer(peer, message, now)

    @on_message(Talk)
    def handle_talk(self, peer: PeerId, message: Talk, now: float) -> None:
        """Take a guest's request, or pass it on."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_talk(peer, message, now)

    @on_message(Heard)
    def handle_heard(self, peer: PeerId, message: Heard, now: float) -> None:
        """Take the receipt of a request, or pass it back."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.guest_requests.handle_heard(peer, message)

    @on_message(Unheard)
    def handle_unheard(self, peer: PeerId, message: Unheard, now: float) -> None:
        """Note that the host is away, or pass it back."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.guest_requests.handle_unheard(peer, message)

    @on_message(AskTerms)
    def handle_ask_terms(self, peer: PeerId, message: AskTerms, now: float) -> None:
        """Tell a peer the terms that it lacks."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_ask_terms(peer, message, now)

    @on_message(TermsAre)
    def handle_terms(self, peer: PeerId, message: TermsAre, now: float) -> None:
        """Take terms that a peer tells."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.handle_terms(peer, message, now)

    @on_message(Yield)
    def handle_yield(self, peer: PeerId, message: Yield, now: float) -> None:
        """Hand the voice over to a peer."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.host.handle_yield(peer, message, now)

    @on_message(Yielded)
    def handle_yielded(self, peer: PeerId, message: Yielded, now: float) -> None:
        """Speak, if the voice was handed over to us."""
        if (place := self._known(peer, message, message.place, now)) is not None:
            place.host.handle_yielded(peer, message, now)

    # Links and timers.

    @on_input(LinkUp)
    def handle_link_up(self, event: LinkUp, now: float) -> None:
        """Say over a link what waited for it."""
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

    @on_timer(LookAroundDue)
    def look_around(self, timer: LookAroundDue, now: float) -> None:
        """Look for those who may let us in, or tell us more."""
        if (place := self._timed(timer.place, now)) is not None:
            place.look_around(now)

    @on_timer(QuestionsDue)
    def ask_questions(self, timer: QuestionsDue, now: float) -> None:
        """Ask for what is missing."""
        if (place := self._timed(timer.place, now)) is not None:
            place.follow_up(now)

    @on_timer(RollDue)
    def ask_roll(self, timer: RollDue, now: float) -> None:
        """Ask once more who is in."""
        if (place := self._timed(timer.place, now)) is not None:
            place.follow_up(now)

    @on_timer(TurnDue)
    def take_turn(self, timer: TurnDue, now: float) -> None:
        """Speak, if it is our turn now."""
        if (place := self._timed(timer.place, now)) is not None:
            place.follow_up(now)

    @on_timer(KeepAliveDue)
    def break_silence(self, timer: KeepAliveDue, now: float) -> None:
        """Give a sign of life."""
        if (place := self._timed(timer.place, now)) is not None:
            place.host.break_silence(now)

    @on_timer(TalkDue)
    def talk_again(self, timer: TalkDue, now: float) -> None:
        """Say again what the host did not answer."""
        if (place := self._timed(timer.place, now)) is not None:
            place.guest_requests.say_again(now)

    @on_timer(ReceiptsDue)
    def send_receipts(self, timer: ReceiptsDue, now: float) -> None:
        """Send the receipts that wait towards the voice."""
        if (place := self._timed(timer.place, now)) is not None:
            place.receipts.send_receipts(now)

    # Inside.

    def _known(self, peer: PeerId, message: Message, topic: TopicId, now: float) -> Place | None:
        """The place that a message is about; None, and the peer is blamed, if we are not in it."""
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
        """The place that a timer is of; None if it is gone."""
        self._look_at_clock(now)
        return self._places.get(topic)

    def _find(self, topic: TopicId, now: float) -> Place:
        """The place that a command is about; `Refused` if we are not in it."""
        self._look_at_clock(now)
        return self._get(topic)

    def _get(self, topic: TopicId) -> Place:
        place = self._places.get(topic)
        if place is None:
            raise Refused(Reason.NOT_JOINED, "this node is not in that place: enter it first")
        return place

    def _end_if_over(self, place: Place, now: float) -> None:
        """Forget a place that we were turned away from, or that we are to keep no more."""
        if place.admission.is_rejected:
            place.admission.is_rejected = False
            self._withdraw(place)
        elif self._kept_places.is_over(place.parts):
            del self._places[place.parts.id]
            place.leave()
            self._kept_places.drop_place(place.parts, Reason.NOT_ALLOWED)

    def _withdraw(self, place: Place) -> None:
        """Nobody means to be in this place any more; one of which nothing is known is forgotten."""
        self._context.store.cells.delete(_VISITED, place.parts.id)
        place.leave()
        if not place.parts.deed.version and place not in self._watched.values():
            del self._places[place.parts.id]

    def _open(self, deed: Deed) -> Place:
        keeps = self._kept_places.keeps(deed.place)
        opened = Place(deed, self._context, self._config, self._contacts, self._out, keeps)
        self._places[deed.place] = opened
        return opened


def _objects(where: Place, name: str, best: bool) -> ObjectsAre:
    objects, state = where.subscribers.objects, where.parts.order.applied
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

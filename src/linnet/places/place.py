"""One place at one node: host, guest or both, where its parts meet."""

from __future__ import annotations

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.messages import Data
from linnet.machine.outbox import Outbox
from linnet.places.catch_up import CatchUp, tell_state
from linnet.places.commands import NAME, PlaceIs
from linnet.places.config import PlacesConfig
from linnet.places.deed import Deed
from linnet.places.door import Ahead, Door, ToAdmit, ToLetIn, Undecided, Waiting
from linnet.places.entry import Admission, EntrySearch
from linnet.places.guest_list import GuestList
from linnet.places.guest_requests import Asked, GuestRequests
from linnet.places.host import SILENCE, Host
from linnet.places.host_terms import TermExchange
from linnet.places.ingest import DURABLE, Ingest
from linnet.places.items import Knocked
from linnet.places.keepers import Keepers
from linnet.places.key_distribution import REQUEST_KEYS, KeyDistribution
from linnet.places.messages import (
    AskRoll,
    AskState,
    AskTerms,
    Away,
    Decision,
    DeedIs,
    Enter,
    Replay,
    Replayed,
    RollIs,
    StateIs,
    Talk,
    TermsAre,
    Yielded,
)
from linnet.places.place_setup import Parts
from linnet.places.receipts import GuestReceipts
from linnet.places.subscriber import Subscribers
from linnet.trace.records import Kind

REQUEST_LEAVE = "_request_place_leave"


class Place:
    """Everything that a node does in one place."""

    def __init__(
        self,
        deed: Deed,
        context: Context,
        config: PlacesConfig,
        contacts: dict[PeerId, Contact],
        out: Outbox,
        keeps: bool = False,
    ) -> None:
        self.parts = parts = Parts(deed, context, config, out, keeps)
        self.subscribers = Subscribers(parts, context.config)
        self.ingest = Ingest(parts, self.subscribers)
        self.entry_search = EntrySearch(parts)
        self.door = Door(parts, contacts, self.entry_search.contact)
        self.admission = Admission(parts, self.entry_search)
        self.catch_up = CatchUp(parts)
        self.guest_list = GuestList(parts)
        self.guest_requests = GuestRequests(parts)
        self.key_distribution = KeyDistribution(parts, self.guest_requests)
        self.keepers = Keepers(parts)
        self.receipts = GuestReceipts(parts)
        said = (self.ingest, self.subscribers, self.door, self.entry_search)
        self.host = Host(parts, *said, self.key_distribution, self.keepers)
        self.term_exchange = TermExchange(parts, self.ingest)
        self._contacts = contacts
        self._last_heard = self._last_probe = 0.0
        self._parting: dict[PeerId, None] = {}
        """Upstreams that say that we are no longer a guest."""

    def start(self, now: float) -> None:
        """Go on after a restart: speak if it is our turn, and find out whether others spoke meanwhile."""
        self.host.start(now)
        for number in self.parts.terms.sought:  # what a term is opened behind may have been damaged
            self.parts.fragment_repair.seek(number)
        if self.parts.terms.is_adrift:
            self.ingest.start_over(now)
        if not self._is_shared:
            return
        if self.entry_search.contacts:
            self.host.takeover.note_restart(now)
        self.entry_search.stay_connected(now)
        self.host.say_waiting(now)

    def look_around(self, now: float) -> None:
        """Look for peers that may let us in or know more, and ask for the keys that we lack."""
        self._check_upstreams(now)
        self._probe(now)
        self.entry_search.look_around(now)
        self.key_distribution.ask_for_keys(now)

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        self._last_heard -= seconds
        self._last_probe -= seconds
        self.parts.fragment_repair.put_back(seconds)
        self.parts.tree.put_back(seconds)
        for each in (self.entry_search, self.host, self.catch_up, self.guest_list, self.guest_requests):
            each.put_back(seconds)
        for one in (self.key_distribution, self.keepers, self.term_exchange, self.receipts):
            one.put_back(seconds)

    # Messages of peers.

    def handle_data(self, peer: PeerId, data: Data, now: float) -> None:
        """Take a fragment that a neighbour passed on to us."""
        is_up = peer in self.parts.tree.upstreams
        if not is_up and peer not in self.parts.tree.downstreams and peer not in self._parting:
            self.parts.record(Kind.REJECTED, peer, Reason.SURPLUS, "a fragment from nobody who sends to us")
            return
        before = self.parts.fragments.standing.fragment
        fault = self.ingest.take(data.unit, data.card, peer, data.hops, data.age_us, now)
        if fault is not None:
            self.entry_search.shun_liar(peer, fault, now)
            self.follow_up(now)
            return
        new = self.parts.fragments.standing.fragment > before
        if new:
            self._last_heard = now
        silent = self.parts.tree.count_fragment(peer, data.hops, new) if is_up else []
        for each in silent:
            self.entry_search.shun(each, Reason.SLOW_PEER, now)
        self.follow_up(now)
        if self.parts.is_out:
            self.leave()

    def handle_enter(self, peer: PeerId, enter: Enter, now: float) -> None:
        """Let a peer in that is at our door, or start the decision about it."""
        todo = self.door.handle_enter(peer, enter, now)
        match todo:
            case ToAdmit(waiting):
                self.host.admit(waiting, None, now)
            case ToLetIn(waiting):
                self._let_in(waiting, now)
            case Ahead(contact):
                self.entry_search.seek(contact, now)
            case Knocked():
                self.subscribers.tell_knock(todo)
            case Undecided():
                self.host.say_waiting(now)
            case None:
                pass
        if peer in self._contacts and self.parts.is_guest(enter.card.person):
            self.entry_search.learn(self._contacts[peer], enter.card.person)
        if self.parts.fragment_repair.is_wishing:
            self.catch_up.ask_due(now)

    def _let_in(self, waiting: Waiting, now: float) -> None:
        """Connect a returning guest; give its device the keys, or learn how to seal keys to it."""
        parts, peer, enter = self.parts, waiting.peer, waiting.enter
        if enter.stranded:
            self.door.make_room(peer, now)
        answer = self.door.connect(waiting, now)
        if parts.may_speak and parts.deed.policy.seals:
            if parts.is_voice:
                self.host.greet_device(waiting, now)
            else:
                self.key_distribution.learn_device(waiting)
        self.door.answer_guest(peer, answer)
        if enter.opening is None or parts.terms.knows(enter.term, enter.opening):
            return
        if parts.keeps:
            # It can have missing fragments from those who come, also while nobody speaks.
            parts.fragment_repair.connect(peer, now)
        self.term_exchange.ask_terms(peer, now)

    def handle_decision(self, peer: PeerId, decision: Decision, now: float) -> None:
        """Follow an answer at a peer's door."""
        was_probe = self.entry_search.take_probe(peer)
        connected = self.admission.handle_decision(peer, decision, now)
        self.ingest.follow_shift(now)
        if decision.admitted and decision.opening is not None:
            if decision.opening == self.parts.opened_by:
                self.host.takeover.note_news()
                if was_probe:
                    self.ingest.drop_neighbor(peer)
                    self.parts.out.send(peer, Away(self.parts.id, Reason.NOT_NEEDED))
                    self.entry_search.drop_peer(peer, now)
                    self.follow_up(now)
                    return
            else:
                self.term_exchange.ask_terms(peer, now)
        if connected:
            self._last_heard = now
            self.catch_up.ask_state(now)
        self.follow_up(now)

    def handle_ask_terms(self, peer: PeerId, ask: AskTerms, now: float) -> None:
        """Send a peer the terms that it lacks."""
        nym = self._neighbour(peer)
        is_guest = nym is not None and self.parts.is_guest(nym)
        if not is_guest and not self.parts.is_keeper(peer):
            note = "a question about terms of nobody who is connected"
            self.parts.record(Kind.REJECTED, peer, Reason.NOT_A_MEMBER, note)
            return
        self.term_exchange.answer_question(peer, ask, now)

    def handle_terms(self, peer: PeerId, terms: TermsAre, now: float) -> None:
        """Take in terms of a peer; if they change the line, that peer has the rest of it."""
        is_other = self.term_exchange.handle_terms(peer, terms, now)
        self.host.takeover.note_news()
        if self.parts.terms.awaited and self._neighbour(peer) is not None:
            # A peer that brings terms has the fragments that they are built on, also if it is below us.
            self.parts.fragment_repair.connect(peer, now)
        entry = self.parts.entry
        if terms.done and entry is not None and entry.term > self.parts.term and not self.ingest.started_over:
            # Where our first entry stands and there is another, we were put out in between: terms of that
            # time begin and end where we cannot see.
            self.parts.begin_at(entry)
            self.ingest.follow_shift(now)
        if is_other and not self.parts.is_voice:
            self.entry_search.seek(self._contacts.get(peer, Contact(peer)), now)
        self.follow_up(now)

    def handle_replay(self, peer: PeerId, replay: Replay, now: float) -> None:
        """Answer a peer that lacks a fragment."""
        is_keeper = self.parts.is_keeper(peer)
        nym = None if is_keeper else self._neighbour(peer)
        if nym is None and not is_keeper:
            self.parts.record(
                Kind.REJECTED, peer, Reason.NOT_A_MEMBER, "a question of nobody who is connected"
            )
            self.parts.out.blame(peer, Reason.NOT_A_MEMBER)
            return
        self.parts.replay_server.answer_replay(peer, nym, replay, now)

    def handle_replayed(self, peer: PeerId, answer: Replayed, now: float) -> None:
        """Take a fragment that we asked for, or the reason why it did not come."""
        if answer.unit is None:
            self.catch_up.handle_refusal(peer, answer, now)
        else:
            fault = self.ingest.take(answer.unit, answer.card, peer, 1, 0, now)
            if fault is not None:
                self.catch_up.handle_refusal(peer, answer, now)
                self.entry_search.shun_liar(peer, fault, now)
        self.follow_up(now)

    def handle_ask_state(self, peer: PeerId, ask: AskState, now: float) -> None:
        """Send a peer the state."""
        for page in tell_state(self.parts, peer, ask):
            self.parts.out.committed.send(peer, page)

    def handle_ask_roll(self, peer: PeerId, ask: AskRoll, now: float) -> None:
        """Send a guest a piece of the guest list."""
        nym = self.parts.tree.downstreams.get(peer)
        if nym is None or not self.parts.is_guest(nym):
            note = "a question about the guests by nobody who is one"
            self.parts.record(Kind.REJECTED, peer, Reason.NOT_A_MEMBER, note)
            return
        self.guest_list.answer_question(peer, ask)

    def handle_state(self, peer: PeerId, page: StateIs, now: float) -> None:
        """Take a page of the state from a peer."""
        outcomes, fault = self.catch_up.handle_state(peer, page, now)
        self.ingest.tell_state(outcomes)
        self.entry_search.shun_liar(peer, fault, now)
        self.parts.out.add(DURABLE)
        self.follow_up(now)

    def handle_roll(self, peer: PeerId, page: RollIs, now: float) -> None:
        """Take a piece of the guest list from a peer."""
        fault = self.guest_list.handle_roll(peer, page, now)
        self.entry_search.shun_liar(peer, fault, now)
        self.follow_up(now)

    def handle_yielded(self, peer: PeerId, answer: Yielded, now: float) -> None:
        """Speak if the voice lets us, or ask for what it said last if that has not come."""
        self.host.handle_yielded(peer, answer, now)
        self.follow_up(now)

    def handle_talk(self, peer: PeerId, talk: Talk, now: float) -> None:
        """Take a guest's request, for us or to be passed on."""
        is_guest = self.parts.is_guest(talk.card.person)
        asked = self.guest_requests.handle_talk(peer, talk, is_guest, now)
        if asked is not None:
            self._handle_request(asked, now)

    def handle_away(self, peer: PeerId, away: Away, now: float) -> None:
        """Drop a peer that wants nothing more from us, or sends us nothing more."""
        note = "away" if away.reason is None else f"away: {away.reason}"
        self.parts.record(Kind.CONTROL, peer, away.reason, note)
        put_out = away.reason is Reason.NOT_A_MEMBER and peer in self.parts.tree.upstreams
        if put_out:
            # The notice that says so may come behind this word: other lanes of a link have other speeds.
            self._parting[peer] = None
        self.ingest.drop_neighbor(peer)
        self.entry_search.drop_peer(peer, now, at_once=not put_out)

    def handle_deed(self, peer: PeerId, message: DeedIs, now: float) -> None:
        """Take a newer deed that a peer has."""
        before, spoke = self.parts.deed.version, self.parts.may_speak
        try:
            self.parts.renew(message.deed)
        except RemoteError as error:
            self.parts.record(Kind.REJECTED, peer, error.reason, f"decision: {error.detail}")
            self.parts.out.blame(peer, error.reason)
            return
        if self.parts.deed.version == before:
            return
        if self.parts.may_speak and not spoke and self.parts.deed.policy.seals:
            self.parts.learn_readers(now)
        self.pass_on_deed(now, peer)

    def pass_on_deed(self, now: float, source: PeerId | None = None) -> None:
        """Send a newer deed to neighbours and keepers, and find out who speaks: others may now."""
        parts = self.parts
        peers = dict.fromkeys((*parts.tree.downstreams, *parts.tree.upstreams, *parts.relay_filter.keepers))
        for peer in peers:
            if peer != source:
                self.parts.out.committed.send(peer, DeedIs(parts.deed))
        self.parts.out.add(DURABLE)
        self.ingest.follow_shift(now)
        if self._is_shared:
            self.entry_search.stay_connected(now)
        self.follow_up(now)

    # Links.

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Send over a link what waited for it."""
        self.entry_search.handle_link_up(peer, now)
        self.keepers.handle_link_up(peer, now)
        self.key_distribution.handle_link_up(peer, now)
        self.host.say_waiting(now)

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Drop a peer whose link is down, or could not be opened."""
        self._parting.pop(peer, None)
        self.door.handle_link_down(peer)
        self.keepers.handle_link_down(peer)
        self.guest_list.handle_link_down(peer)
        self.guest_requests.handle_link_down(peer)
        self.entry_search.drop_peer(peer, now)
        self.ingest.drop_neighbor(peer)

    def leave(self) -> None:
        """Disconnect from all neighbours."""
        peers = (*self.parts.tree.upstreams, *self.parts.tree.downstreams)
        for peer in peers:
            self.parts.out.send(peer, Away(self.parts.id, None))
        self.entry_search.leave()
        for peer in peers:
            self.ingest.drop_neighbor(peer)

    # The application.

    def status(self) -> PlaceIs:
        """Return the status of the place."""
        parts = self.parts
        standing = parts.fragments.standing
        found = parts.order.state.get(NAME)
        return PlaceIs(
            parts.id,
            None if found is None else found[1].decode("utf-8", "replace"),
            parts.deed,
            self.role,
            parts.voice,
            standing.term,
            standing.fragment,
            standing.message,
            standing.generation,
            parts.fragment_repair.count,
            parts.membership.guests,
            parts.tree.upstreams,
            tuple(parts.tree.downstreams),
            len(parts.order.state),
            parts.order.applied,
            parts.order.state.digest(),
            len(parts.guest_keys.locked),
            self.entry_search.contacts,
            self.entry_search.speakers,
            self.admission.turned,
        )

    @property
    def role(self) -> str:
        """Our role: keeper, host, cohost, guest or outside."""
        if self.parts.keeps:
            return "keeper"
        rank = self.parts.deed.rank(self.parts.context.author)
        if rank is not None:
            return "cohost" if rank else "host"
        return "guest" if self.parts.is_in else "outside"

    # Inside.

    @property
    def _is_shared(self) -> bool:
        """Whether others may speak besides us: then they have to be found."""
        return self.parts.may_speak and len(self.parts.deed.voices) > 1

    def _neighbour(self, peer: PeerId) -> AuthorId | None:
        """Return the person behind a neighbour; None if it is no known neighbour."""
        parts = self.parts
        below = parts.tree.downstreams.get(peer) or self.door.visitors.get(peer)
        return below or parts.relay_filter_up.nym(peer)

    def _probe(self, now: float) -> None:
        """As the voice, ask known peers now and then whether a later term was opened out of our reach."""
        if not (self._is_shared and self.parts.is_voice):
            return
        if now - self._last_probe >= self.parts.config.keepalive:
            self._last_probe = now
            self.entry_search.probe_next(now)

    def _check_upstreams(self, now: float) -> None:
        """Leave upstreams through which not even keep-alives come any more: they are cut off."""
        if now - self._last_heard < SILENCE * self.parts.config.keepalive or self.parts.is_voice:
            return
        self._last_heard = now
        for peer in self.parts.tree.upstreams:
            self.parts.record(Kind.DROPPED, peer, Reason.SLOW_PEER, "nothing came through it for long")
            self.parts.out.send(peer, Away(self.parts.id, Reason.SLOW_PEER))
            self.entry_search.drop_peer(peer, now)

    def _handle_request(self, asked: Asked, now: float) -> None:
        """Let a guest leave or give it keys, if that is its request; else hand the request to subscribers."""
        nym, number, packet = asked.request.nym, asked.request.request, asked.packet
        if packet.method == REQUEST_LEAVE:
            try:
                _, spoken = self.host.draft_parting(nym, now)
            except Refused as refused:
                self.guest_requests.answer_request(asked, refused.reason)
                return
            self.guest_requests.answer_request(asked, None)
            self.host.say_parting(nym, spoken, now)
        elif packet.method == REQUEST_KEYS:
            device = self.key_distribution.take_request(asked, now)
            if isinstance(device, Reason):
                self.guest_requests.answer_request(asked, device)
                return
            self.guest_requests.answer_request(asked, self.host.tell_keys_in_turn(device, now))
        elif not self.subscribers.hears(packet.method):
            self.guest_requests.answer_request(asked, Reason.NOT_HELD)
        else:
            try:
                self.subscribers.tell_request(nym, number, packet)
            except Refused as refused:
                self.guest_requests.answer_request(asked, refused.reason)
                return
            self.guest_requests.answer_request(asked, None)

    def follow_up(self, now: float) -> None:
        """Send the questions and items that have become due, after any input."""
        outcomes, _ = self.catch_up.settle_state(now)
        if outcomes:
            self.ingest.tell_state(outcomes)
        if self.ingest.lost_state:
            self.ingest.lost_state = False
            self.catch_up.ask_state(now)
        questions = [*self.catch_up.take_due(now), *self.guest_list.take_due(now)]
        self.receipts.schedule_receipt(now)
        self.subscribers.pump()
        self._follow_line(now)
        for question in questions:  # behind what is said of the line: it may concern the same peers
            self.parts.out.send(question.peer, question.message)
        self.admission.tell_entered()

    def _follow_line(self, now: float) -> None:
        """React to a line that has changed, or of which too little is known."""
        ingest = self.ingest
        puzzled, ingest.puzzled = ingest.puzzled, {}
        for peer in puzzled:
            self.term_exchange.ask_terms(peer, now)
        if ingest.started_over:
            ingest.started_over = False
            self.entry_search.is_admitted = False
            for peer in self.parts.tree.upstreams:
                self.parts.out.send(peer, Away(self.parts.id, None))
                self.entry_search.drop_peer(peer, now)
                ingest.drop_neighbor(peer)
        self.host.say_waiting(now)

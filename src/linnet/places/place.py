"""One place at one node: host, guest or both, where its parts meet."""

from __future__ import annotations

from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.context import Context
from linnet.delivery.messages import Data
from linnet.places import talks
from linnet.places.admission import Admission
from linnet.places.catching_up import CatchingUp
from linnet.places.commands import PlaceIs
from linnet.places.config import PlacesConfig
from linnet.places.deed import Deed
from linnet.places.door import Ahead, Door, ToAdmit, ToKey
from linnet.places.effects import PlaceEffect
from linnet.places.items import Knocked
from linnet.places.keepers import Keepers
from linnet.places.keying import REQUEST_KEYS, Keying
from linnet.places.lineage import Lineage
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
)
from linnet.places.parts import Parts
from linnet.places.receipts import GuestReceipts
from linnet.places.roll_call import RollCall
from linnet.places.state_telling import tell_state
from linnet.places.taking import Taking
from linnet.places.talks import Asked, Talks
from linnet.places.visiting import Visiting, refused_record
from linnet.places.voicing import SILENCE, Voicing
from linnet.places.watching import Watching
from linnet.trace.records import Kind, Record

REQUEST_LEAVE = "_request_place_leave"


class Place:
    """All that a node does in one place."""

    def __init__(
        self,
        deed: Deed,
        context: Context,
        config: PlacesConfig,
        contacts: dict[PeerId, Contact],
        keeps: bool = False,
    ) -> None:
        self.parts = Parts(deed, context, config, keeps)
        self.watching = Watching(self.parts, context.config)
        self.taking = Taking(self.parts, self.watching)
        self.visiting = Visiting(self.parts)
        self.door = Door(self.parts, contacts, self.visiting.contact)
        self.admission = Admission(self.parts, self.visiting)
        self.catching_up = CatchingUp(self.parts)
        self.roll_call = RollCall(self.parts)
        self.talks = Talks(self.parts)
        self.keying = Keying(self.parts, self.talks)
        self.keepers = Keepers(self.parts)
        self.receipts = GuestReceipts(self.parts)
        self.voicing = Voicing(self.parts, self.taking, self.door, self.visiting, self.keying, self.keepers)
        self.lineage = Lineage(self.parts, self.taking)
        self._contacts = contacts
        self._last_heard = self._last_probe = 0.0
        self._parting: dict[PeerId, None] = {}
        """Upstreams that say that we are a guest no longer."""

    def start(self, now: float) -> list[PlaceEffect]:
        """Go on where we were: speak if it is our turn, and find out whether others did meanwhile."""
        effects = self.voicing.start(now)
        for number in self.parts.terms.sought:  # what a term is opened behind may have been damaged
            self.parts.missing.seek(number)
        if self.parts.terms.is_adrift:
            effects += self.taking.start_over(now)
        if not self._is_shared:
            return effects
        if self.visiting.contacts:
            self.voicing.turns.restarted(now)
        return [*effects, *self.visiting.stay(now), *self.voicing.go_on(now)]

    def fired(self, tick: Tick, now: float) -> list[PlaceEffect]:
        """A timer of ours has run out."""
        if tick == self.visiting.tick:
            looked = [*self._check_upstreams(now), *self._probe(now), *self.visiting.fired(now)]
            return [*looked, *self.keying.ask(now)]
        if tick.owner == talks.OWNER:
            return [*self.talks.fired(now)]
        if tick == self.receipts.tick:
            return [*self.receipts.fired(now)]
        return self.voicing.silence(now) if tick == self.voicing.alive else self.caught(now)

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        self._last_heard -= seconds
        self._last_probe -= seconds
        self.parts.missing.put_back(seconds)
        self.parts.tree.put_back(seconds)
        for each in (self.visiting, self.voicing, self.catching_up, self.roll_call, self.talks):
            each.put_back(seconds)
        for one in (self.keying, self.keepers, self.lineage, self.receipts):
            one.put_back(seconds)

    # What others say.

    def on_data(self, peer: PeerId, data: Data, now: float) -> list[PlaceEffect]:
        """A fragment that was passed on to us."""
        is_up = peer in self.parts.tree.upstreams
        if not is_up and peer not in self.parts.tree.downstreams and peer not in self._parting:
            note = "a fragment from nobody who sends to us"
            return [Record(Kind.REJECTED, self.parts.id, peer=peer, reason=Reason.SURPLUS, note=note)]
        before = self.parts.fragments.standing.fragment
        good, effects = self.taking.take(data.unit, data.card, peer, data.hops, data.age_us, now)
        if not good:
            return [*effects, *self.visiting.shunned(effects, now), *self.caught(now)]
        new = self.parts.fragments.standing.fragment > before
        if new:
            self._last_heard = now
        silent = self.parts.tree.delivered(peer, data.hops, new) if is_up else []
        out: list[PlaceEffect] = [*effects, *(each.record for each in silent)]
        for each in silent:
            out += self.visiting.shun(each.peer, Reason.SLOW_PEER, now)
        return [*out, *self.caught(now), *(self.leave(now) if self.parts.is_out else [])]

    def on_enter(self, peer: PeerId, enter: Enter, now: float) -> list[PlaceEffect]:
        """Somebody at our door."""
        out: list[PlaceEffect] = []
        for effect in self.door.knock(peer, enter, now):
            match effect:
                case ToAdmit(waiting):
                    out += self.voicing.admit(waiting, None, now)[2]
                case ToKey(waiting) if self.parts.is_voice:
                    out += self.voicing.greet(waiting, now)
                case ToKey(waiting):
                    self.keying.learned(waiting)
                case Ahead() if self.parts.keeps:
                    # What it lacks it can have from those who come, also while nobody speaks.
                    self.parts.missing.connect(peer, now)
                    out += self.lineage.ask(peer, now)
                case Ahead(contact, later):
                    out += self.visiting.seek(contact, now) if later else self.lineage.ask(peer, now)
                case Knocked():
                    out += self.watching.heard([effect])
                case _:
                    out.append(effect)
        if peer in self._contacts and self.door.is_guest(enter.card.person):
            self.visiting.learn(self._contacts[peer], enter.card.person)
        return [*out, *(self.catching_up.due(now) if self.parts.missing.is_wishing else [])]

    def on_decision(self, peer: PeerId, decision: Decision, now: float) -> list[PlaceEffect]:
        """An answer at somebody's door."""
        was_probe = self.visiting.take_probe(peer)
        connected, effects = self.admission.decided(peer, decision, now)
        out: list[PlaceEffect] = [*effects, *self.taking.renewed(now)]
        if decision.admitted and decision.opening is not None:
            if decision.opening == self.parts.opened_by:
                self.voicing.turns.sure()
                if was_probe:
                    self.taking.dropped(peer)
                    away = Away(self.parts.id, Reason.NOT_NEEDED)
                    return [*out, Send(peer, away), *self.visiting.gone(peer, now), *self.caught(now)]
            else:
                out += self.lineage.ask(peer, now)
        if connected:
            self._last_heard = now
            out += self.catching_up.ask_state(now)
        return [*out, *self.caught(now)]

    def on_ask_terms(self, peer: PeerId, ask: AskTerms, now: float) -> list[PlaceEffect]:
        """Somebody lacks terms."""
        nym = self._neighbour(peer)
        is_guest = nym is not None and self.door.is_guest(nym)
        if not is_guest and not self.parts.is_keeper(peer):
            note = "a question about terms of nobody who is connected"
            return [Record(Kind.REJECTED, self.parts.id, peer=peer, reason=Reason.NOT_A_MEMBER, note=note)]
        return [*self.lineage.answer(peer, ask, now)]

    def on_terms(self, peer: PeerId, terms: TermsAre, now: float) -> list[PlaceEffect]:
        """Terms that others know: if the line is another now, those who told it have the rest of it."""
        is_other, effects = self.lineage.told(peer, terms, now)
        self.voicing.turns.sure()
        out: list[PlaceEffect] = [*effects]
        if self.parts.terms.awaited and self._neighbour(peer) is not None:
            # Whoever tells of terms has what they are built on, also if it is below us.
            self.parts.missing.connect(peer, now)
        entry = self.parts.entry
        if terms.done and entry is not None and entry.term > self.parts.term and not self.taking.started_over:
            # Where our first entry stands and there is another, we were put out in between: terms of that
            # time begin and end where we cannot see.
            self.parts.begin_at(entry)
            out += self.taking.renewed(now)
        if is_other and not self.parts.is_voice:
            out += self.visiting.seek(self._contacts.get(peer, Contact(peer)), now)
        return [*out, *self.caught(now)]

    def on_replay(self, peer: PeerId, replay: Replay, now: float) -> list[PlaceEffect]:
        """Somebody lacks a fragment."""
        is_keeper = self.parts.is_keeper(peer)
        nym = None if is_keeper else self._neighbour(peer)
        if nym is None and not is_keeper:
            note, why = "a question of nobody who is connected", Reason.NOT_A_MEMBER
            return [Record(Kind.REJECTED, self.parts.id, peer=peer, reason=why, note=note), Blame(peer, why)]
        answer = self.parts.replaying.answer(peer, nym, replay, now)
        noted = [each for each in (answer.record, answer.blame) if each is not None]
        return [*noted, AfterCommit((Send(peer, answer.message),))]

    def on_replayed(self, peer: PeerId, answer: Replayed, now: float) -> list[PlaceEffect]:
        """A fragment that we asked for, or why not."""
        if answer.unit is None:
            return [*self.catching_up.replayed(peer, answer, now), *self.caught(now)]
        good, effects = self.taking.take(answer.unit, answer.card, peer, 1, 0, now)
        if good:
            return [*effects, *self.caught(now)]
        refused = self.catching_up.replayed(peer, answer, now)
        return [*effects, *refused, *self.visiting.shunned(effects, now), *self.caught(now)]

    def on_ask_state(self, peer: PeerId, ask: AskState) -> list[PlaceEffect]:
        """Somebody wants to know the state."""
        pages = tell_state(self.parts, peer, ask)
        return [AfterCommit(tuple(Send(peer, page) for page in pages))]

    def on_ask_roll(self, peer: PeerId, ask: AskRoll) -> list[PlaceEffect]:
        """Somebody wants to know who is in."""
        nym = self.parts.tree.downstreams.get(peer)
        if nym is None or not self.door.is_guest(nym):
            note = "a question about the guests by nobody who is one"
            return [Record(Kind.REJECTED, self.parts.id, peer=peer, reason=Reason.NOT_A_MEMBER, note=note)]
        return [*self.roll_call.answer(peer, ask)]

    def on_state(self, peer: PeerId, page: StateIs, now: float) -> list[PlaceEffect]:
        """Somebody's word about the state."""
        outcomes, effects = self.catching_up.told_state(peer, page, now)
        promises, records = self.taking.heed(outcomes)
        shunned = self.visiting.shunned(effects, now)
        return [*records, *effects, *shunned, AfterCommit(tuple(promises)), *self.caught(now)]

    def on_roll(self, peer: PeerId, page: RollIs, now: float) -> list[PlaceEffect]:
        """Somebody's word about who is in."""
        effects = self.roll_call.told(peer, page, now)
        return [*effects, *self.visiting.shunned(effects, now), *self.caught(now)]

    def on_talk(self, peer: PeerId, talk: Talk, now: float) -> list[PlaceEffect]:
        """A request of a guest, to us or on its way."""
        is_guest = self.door.is_guest(talk.card.person)
        asked, effects = self.talks.on_talk(peer, talk, is_guest, now)
        return [*effects] if asked is None else [*effects, *self._asked(asked, now)]

    def on_away(self, peer: PeerId, away: Away, now: float) -> list[PlaceEffect]:
        """A peer wants nothing more from us, or sends us nothing more."""
        note = "away" if away.reason is None else f"away: {away.reason}"
        record = Record(Kind.CONTROL, self.parts.id, peer=peer, reason=away.reason, note=note)
        put_out = away.reason is Reason.NOT_A_MEMBER and peer in self.parts.tree.upstreams
        if put_out:
            # The notice that says so may come behind this word: other lanes of a link have other speeds.
            self._parting[peer] = None
        self.taking.dropped(peer)
        return [record, *self.visiting.gone(peer, now, at_once=not put_out)]

    def on_deed(self, peer: PeerId, message: DeedIs, now: float) -> list[PlaceEffect]:
        """Somebody has a newer deed."""
        before, spoke = self.parts.deed.version, self.parts.may_speak
        try:
            self.parts.renew(message.deed)
        except RemoteError as error:
            return [refused_record(self.parts, peer, error), Blame(peer, error.reason)]
        if self.parts.deed.version == before:
            return []
        if self.parts.may_speak and not spoke and self.parts.deed.policy.seals:
            self.parts.learn_readers(now)
        return [*self.renewed(now, peer)]

    def renewed(self, now: float, source: PeerId | None = None) -> list[PlaceEffect]:
        """A newer deed: all around are told, and others may speak now."""
        parts = self.parts
        peers = dict.fromkeys((*parts.tree.downstreams, *parts.tree.upstreams, *parts.relaying.keepers))
        told = tuple(Send(peer, DeedIs(parts.deed)) for peer in peers if peer != source)
        effects: list[PlaceEffect] = [AfterCommit(told), *self.taking.renewed(now)]
        return [*effects, *(self.visiting.stay(now) if self._is_shared else []), *self.caught(now)]

    # Links.

    def link_up(self, peer: PeerId, now: float) -> list[PlaceEffect]:
        """A link is open."""
        effects = [*self.visiting.link_up(peer, now), *self.keepers.link_up(peer, now)]
        return [*effects, *self.voicing.go_on(now)]

    def link_gone(self, peer: PeerId, now: float) -> list[PlaceEffect]:
        """A link is down, or could not be opened."""
        self._parting.pop(peer, None)
        self.door.gone(peer)
        self.keepers.gone(peer)
        self.roll_call.gone(peer)
        self.talks.gone(peer)
        effects = self.visiting.gone(peer, now)
        self.taking.dropped(peer)
        return [*effects]

    def leave(self, now: float) -> list[PlaceEffect]:
        """Be connected no more."""
        peers = (*self.parts.tree.upstreams, *self.parts.tree.downstreams)
        sends = [Send(peer, Away(self.parts.id, None)) for peer in peers]
        effects = self.visiting.leave()
        for peer in peers:
            self.taking.dropped(peer)
        return [*sends, *effects]

    # The application.

    def status(self) -> PlaceIs:
        """How it stands."""
        parts = self.parts
        standing = parts.fragments.standing
        return PlaceIs(
            parts.deed,
            self.role,
            parts.voice,
            standing.term,
            standing.fragment,
            standing.message,
            standing.generation,
            parts.missing.count,
            parts.membership.guests,
            parts.tree.upstreams,
            tuple(parts.tree.downstreams),
            len(parts.order.state),
            parts.order.applied,
            parts.order.state.digest(),
            len(parts.opening.locked),
            self.visiting.contacts,
        )

    @property
    def role(self) -> str:
        """What we are here."""
        if self.parts.keeps:
            return "keeper"
        rank = self.parts.deed.rank(self.parts.context.author)
        if rank is not None:
            return "cohost" if rank else "host"
        return "guest" if self.parts.is_in else "outside"

    # Inside.

    @property
    def _is_shared(self) -> bool:
        """Whether we may speak, and others too: then they have to be found."""
        return self.parts.may_speak and len(self.parts.deed.voices) > 1

    def _neighbour(self, peer: PeerId) -> AuthorId | None:
        """Who is connected there."""
        parts = self.parts
        return parts.tree.downstreams.get(peer) or self.door.visitors.get(peer) or parts.relaying_up.nym(peer)

    def _probe(self, now: float) -> list[PlaceEffect]:
        """The voice asks around now and then whether a later term was opened where it does not reach."""
        if not (self._is_shared and self.parts.is_voice):
            return []
        if now - self._last_probe < self.parts.config.keepalive:
            return []
        self._last_probe = now
        return [*self.visiting.probe(now)]

    def _check_upstreams(self, now: float) -> list[PlaceEffect]:
        """Where even keep-alives do not come any more, those above us are cut off: go elsewhere."""
        if now - self._last_heard < SILENCE * self.parts.config.keepalive or self.parts.is_voice:
            return []
        self._last_heard = now
        effects: list[PlaceEffect] = []
        for peer in self.parts.tree.upstreams:
            note = "nothing came through it for long"
            effects.append(Record(Kind.DROPPED, self.parts.id, peer=peer, reason=Reason.SLOW_PEER, note=note))
            effects += [Send(peer, Away(self.parts.id, Reason.SLOW_PEER)), *self.visiting.gone(peer, now)]
        return effects

    def _asked(self, asked: Asked, now: float) -> list[PlaceEffect]:
        """A guest wants to go, or has something to say to whoever watches here."""
        nym, number, packet = asked.request.nym, asked.request.request, asked.packet
        if packet.method == REQUEST_LEAVE:
            try:
                effects = self.voicing.part(nym, now)[2]
            except Refused as refused:
                return [*self.talks.answer(asked, refused.reason)]
            return [*self.talks.answer(asked, None), *effects]
        if packet.method == REQUEST_KEYS:
            device = self.keying.asked(asked, now) if self.parts.is_voice else Reason.STALE
            if isinstance(device, Reason):
                return [*self.talks.answer(asked, device)]
            return [*self.voicing.tell_keys(device, now), *self.talks.answer(asked, None)]
        if not self.watching.hears(packet.method):
            return [*self.talks.answer(asked, Reason.NOT_HELD)]
        try:
            told = self.watching.asked(nym, number, packet)
        except Refused as refused:
            return [*self.talks.answer(asked, refused.reason)]
        return [AfterCommit((*told,)), *self.talks.answer(asked, None)]

    def caught(self, now: float) -> list[PlaceEffect]:
        """What there is to ask and to say, now that something came."""
        outcomes, effects = self.catching_up.settle(now)
        promises, records = self.taking.heed(outcomes) if outcomes else ([], [])
        if self.taking.lost_state:
            self.taking.lost_state = False
            effects = [*effects, *self.catching_up.ask_state(now)]
        asked = [*self.catching_up.due(now), *self.roll_call.due(now), *self.receipts.look(now)]
        promises += self.watching.pump()
        told = [AfterCommit(tuple(promises))] if promises else []
        return [*records, *told, *effects, *self._followed(now), *asked, *self.admission.entered()]

    def _followed(self, now: float) -> list[PlaceEffect]:
        """What follows from a line that is another now, or that we know too little of."""
        taking, effects = self.taking, list[PlaceEffect]()
        puzzled, taking.puzzled = taking.puzzled, {}
        for peer in puzzled:
            effects += self.lineage.ask(peer, now)
        if taking.started_over:
            taking.started_over = False
            self.visiting.is_admitted = False
            for peer in self.parts.tree.upstreams:
                effects += [Send(peer, Away(self.parts.id, None)), *self.visiting.gone(peer, now)]
                taking.dropped(peer)
        return [*effects, *self.voicing.go_on(now)]

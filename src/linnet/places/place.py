"""One place at one node: host, guest or both, where its parts meet."""

from __future__ import annotations

from collections.abc import Sequence

from linnet.core.effects import AfterCommit, Blame, Reply, Send, SetTimer
from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.context import Context
from linnet.delivery.messages import Data
from linnet.groups.ids import Device
from linnet.places import talks
from linnet.places.admission import Admission
from linnet.places.catching_up import CatchingUp
from linnet.places.commands import Announced, PlaceIs
from linnet.places.config import PlacesConfig
from linnet.places.deed import Deed
from linnet.places.door import Door, ToAdmit, ToKey, Waiting
from linnet.places.effects import PlaceEffect
from linnet.places.items import Body, Knocked, Said
from linnet.places.keepers import Keepers
from linnet.places.keying import REQUEST_KEYS, Keying
from linnet.places.messages import (
    AskRoll,
    AskState,
    Away,
    Decision,
    DeedIs,
    Enter,
    Replay,
    Replayed,
    StateIs,
    Talk,
)
from linnet.places.parts import Parts
from linnet.places.roll_call import RollCall
from linnet.places.speaking import Speaking, Spoken
from linnet.places.state_telling import tell_state
from linnet.places.taking import Taking
from linnet.places.talks import Asked, Talks
from linnet.places.visiting import Visiting, refused_record
from linnet.places.watching import Watching
from linnet.trace.records import Kind, Record

OWNER = "place"
SILENCE = 2.5
"""Keep-alives that may be missing before others are looked for."""
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
        self.door = Door(self.parts, contacts)
        self.visiting = Visiting(self.parts)
        self.admission = Admission(self.parts, self.visiting)
        self.catching_up = CatchingUp(self.parts)
        self.roll_call = RollCall(self.parts)
        self.talks = Talks(self.parts)
        self.keying = Keying(self.parts, self.talks)
        self.keepers = Keepers(self.parts)
        self._speaking: Speaking | None = None
        self._last_said = self._last_heard = 0.0
        self._alive = Tick(OWNER, "alive", self.parts.id)

    # The voice.

    def speaking(self) -> Speaking:
        """The voice, if we are it or nobody else is; `Refused` if we may not speak."""
        parts = self.parts
        if not parts.may_speak:
            raise Refused(Reason.NOT_A_PUBLISHER, "this place is not ours to speak in: talk to the host")
        if self._speaking is None or not parts.is_voice:
            self._speaking = Speaking(parts)
            if not parts.is_voice:
                self._speaking.open_term()
        return self._speaking

    def start(self, now: float) -> list[PlaceEffect]:
        """The voice goes on to give signs of life, also if it has nothing to say after a restart."""
        if not self.parts.is_voice:
            return []
        return [SetTimer(self.parts.config.keepalive, self._alive), *self.keepers.look(now)]

    def say(self, spoken: Sequence[Spoken], now: float) -> list[PlaceEffect]:
        """Fragments of ours go out, and are taken in here as well."""
        self._last_said = now
        noted, self.parts.sealing.noted = self.parts.sealing.noted, []
        effects = [*noted, *self.taking.own(spoken, now), *self.keepers.look(now)]
        return [*effects, SetTimer(self.parts.config.keepalive, self._alive)]

    def announced(
        self, request: int, message: int, spoken: Sequence[Spoken]
    ) -> AfterCommit[Reply[Announced]]:
        """The answer to whoever announced something."""
        last = spoken[-1] if spoken else None
        fragment, event = (-1, None) if last is None else (last[1].fragment, last[0].head)
        return AfterCommit((Reply(request, Announced(self.parts.id, message, fragment, event)),))

    def admit(
        self, waiting: Waiting, since: int | None, now: float
    ) -> tuple[int, list[Spoken], list[PlaceEffect]]:
        """Let somebody in who asked: the notice first, then the answer."""
        parts, nym = self.parts, waiting.enter.card.person
        policy = parts.deed.policy
        opens = since if since is not None else (None if policy.restricts else 0)
        message, spoken = self.speaking().joined(nym, opens, now, self.keying.learned(waiting))
        effects = self.say(spoken, now)
        return message, spoken, [*effects, *self.door.let_in(waiting)]

    def tell_keys(self, device: Device, now: float) -> list[PlaceEffect]:
        """Tell a guest's device the keys of what is open to it."""
        return self.say(self.speaking().tell_keys(device, self.parts.since_of(device.author), now), now)

    def part(self, nym: AuthorId, now: float) -> tuple[int, list[Spoken], list[PlaceEffect]]:
        """Tell all that a guest is none any more."""
        if not self.door.is_guest(nym) or self.parts.deed.rank(nym) is not None:
            raise Refused(Reason.NOT_A_MEMBER, "no guest of this name is here")
        message, spoken = self.speaking().parted(nym, now)
        effects = self.say(spoken, now)
        for peer, guest in self.parts.tree.downstreams.items():
            if guest == nym:
                # Behind the notice itself, which waits for its commit.
                effects += [AfterCommit((Send(peer, Away(self.parts.id, Reason.NOT_A_MEMBER)),))]
                self._drop(peer)
        return message, spoken, effects

    def fired(self, tick: Tick, now: float) -> list[PlaceEffect]:
        """A timer of ours has run out."""
        if tick == self.visiting.tick:
            return [*self._check_upstreams(now), *self.visiting.fired(now), *self.keying.ask(now)]
        if tick.owner == talks.OWNER:
            return [*self.talks.fired(now)]
        if tick != self._alive:
            return self.caught(now)
        if not self.parts.is_voice:
            return []
        silent = now - self._last_said
        if silent + 1e-6 < self.parts.config.keepalive:
            return [SetTimer(self.parts.config.keepalive - silent, self._alive)]
        return self.say(self.speaking().keep_alive(now), now)

    # What others say.

    def on_data(self, peer: PeerId, data: Data, now: float) -> list[PlaceEffect]:
        """A fragment that was passed on to us."""
        if peer not in self.parts.tree.upstreams:
            note = "a fragment from nobody who sends to us"
            return [Record(Kind.REJECTED, self.parts.id, peer=peer, reason=Reason.SURPLUS, note=note)]
        before = self.parts.fragments.standing.fragment
        _, effects = self.taking.take(data.unit, data.card, peer, data.hops, data.age_us, now)
        new = self.parts.fragments.standing.fragment > before
        if new:
            self._last_heard = now
        silent = self.parts.tree.delivered(peer, data.hops, new)
        out: list[PlaceEffect] = [*effects, *(each.record for each in silent)]
        for each in silent:
            out += [
                Send(each.peer, Away(self.parts.id, Reason.SLOW_PEER)),
                *self.visiting.gone(each.peer, now),
            ]
        return [*out, *self.caught(now), *(self.leave(now) if self.parts.is_out else [])]

    def on_enter(self, peer: PeerId, enter: Enter, now: float) -> list[PlaceEffect]:
        """Somebody at our door."""
        out: list[PlaceEffect] = []
        for effect in self.door.knock(peer, enter, now):
            match effect:
                case ToAdmit(waiting):
                    out += self.admit(waiting, None, now)[2]
                case ToKey(waiting):
                    device = self.keying.learned(waiting) if self.keying.is_news(waiting) else None
                    out += [] if device is None else self.tell_keys(device, now)
                case Knocked():
                    out += self.watching.heard([effect])
                case _:
                    out.append(effect)
        return out

    def on_decision(self, peer: PeerId, decision: Decision, now: float) -> list[PlaceEffect]:
        """An answer at somebody's door."""
        connected, effects = self.admission.decided(peer, decision, now)
        if not connected:
            return [*effects]
        self._last_heard = now
        return [*effects, *self.catching_up.ask_state(now), *self.caught(now)]

    def on_replay(self, peer: PeerId, replay: Replay, now: float) -> list[PlaceEffect]:
        """Somebody lacks a fragment."""
        nym = self.parts.tree.downstreams.get(peer) or self.door.visitors.get(peer)
        if nym is None and not self.parts.relaying.keeps(peer):
            note = "a question of nobody who is connected"
            return [Record(Kind.REJECTED, self.parts.id, peer=peer, reason=Reason.NOT_A_MEMBER, note=note)]
        answer = self.parts.replaying.answer(peer, nym, replay, now)
        record = [] if answer.record is None else [answer.record]
        return [*record, AfterCommit((Send(peer, answer.message),))]

    def on_replayed(self, peer: PeerId, answer: Replayed, now: float) -> list[PlaceEffect]:
        """A fragment that we asked for, or why not."""
        if answer.unit is None:
            return [*self.catching_up.replayed(peer, answer, now), *self.caught(now)]
        good, effects = self.taking.take(answer.unit, answer.card, peer, 1, 0, now)
        refused = [] if good else self.catching_up.replayed(peer, answer, now)
        return [*effects, *refused, *self.caught(now)]

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
        return [*records, *effects, AfterCommit(tuple(promises)), *self.caught(now)]

    def on_talk(self, peer: PeerId, talk: Talk, now: float) -> list[PlaceEffect]:
        """A request of a guest, to us or on its way."""
        is_guest = self.door.is_guest(talk.card.person)
        asked, effects = self.talks.on_talk(peer, talk, is_guest, now)
        return [*effects] if asked is None else [*effects, *self._asked(asked, now)]

    def on_away(self, peer: PeerId, away: Away, now: float) -> list[PlaceEffect]:
        """A peer wants nothing more from us, or sends us nothing more."""
        note = "away" if away.reason is None else f"away: {away.reason}"
        record = Record(Kind.CONTROL, self.parts.id, peer=peer, reason=away.reason, note=note)
        return [record, *self._drop(peer), *self.visiting.gone(peer, now)]

    def on_deed(self, peer: PeerId, message: DeedIs) -> list[PlaceEffect]:
        """Somebody has a newer deed."""
        before = self.parts.deed.version
        try:
            self.parts.renew(message.deed)
        except RemoteError as error:
            return [refused_record(self.parts, peer, error), Blame(peer, error.reason)]
        if self.parts.deed.version == before:
            return []
        return [
            AfterCommit(tuple(Send(down, message) for down in self.parts.tree.downstreams if down != peer))
        ]

    # Links.

    def link_up(self, peer: PeerId, now: float) -> list[PlaceEffect]:
        """A link is open."""
        return [*self.visiting.link_up(peer, now), *self.keepers.link_up(peer, now)]

    def link_gone(self, peer: PeerId, now: float) -> list[PlaceEffect]:
        """A link is down, or could not be opened."""
        self.door.gone(peer)
        self.keepers.gone(peer)
        self.roll_call.gone(peer)
        self.talks.gone(peer)
        return [*self._drop(peer), *self.visiting.gone(peer, now)]

    def leave(self, now: float) -> list[PlaceEffect]:
        """Be connected no more."""
        peers = (*self.parts.tree.upstreams, *self.parts.tree.downstreams)
        sends = [Send(peer, Away(self.parts.id, None)) for peer in peers]
        for peer in list(self.parts.tree.downstreams):
            self._drop(peer)
        return [*sends, *self.visiting.leave()]

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
        )

    @property
    def role(self) -> str:
        """What we are here."""
        if self.parts.keeps:
            return "keeper"
        rank = self.parts.deed.rank(self.parts.context.author)
        if rank is not None:
            return "cohost" if rank else "host"
        return "guest" if self.door.is_guest(self.parts.context.author) else "outside"

    # Inside.

    def caught(self, now: float) -> list[PlaceEffect]:
        """What there is to ask, now that something came."""
        outcomes, effects = self.catching_up.settle(None, now)
        promises, records = self.taking.heed(outcomes) if outcomes else ([], [])
        if self.taking.lost_state:
            self.taking.lost_state = False
            effects = [*effects, *self.catching_up.ask_state(now)]
        told = [AfterCommit(tuple(promises))] if promises else []
        return [*records, *told, *effects, *self.catching_up.due(now), *self.roll_call.due(now)]

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
                effects = self.part(nym, now)[2]
            except Refused as refused:
                return [*self.talks.answer(asked, refused.reason)]
            return [*self.talks.answer(asked, None), *effects]
        if packet.method == REQUEST_KEYS:
            device = self.keying.asked(asked, now)
            if isinstance(device, Reason):
                return [*self.talks.answer(asked, device)]
            return [*self.tell_keys(device, now), *self.talks.answer(asked, None)]
        if not len(self.watching):
            return [*self.talks.answer(asked, Reason.NOT_HELD)]
        said = Said(self.parts.id, number, nym, nym, packet.method, packet.modifiers, False)
        body = Body(self.parts.id, number, nym, 0, packet.body, True)
        told = self.watching.heard([said, body])
        return [AfterCommit((*told,)), *self.talks.answer(asked, None)]

    def _drop(self, peer: PeerId) -> list[PlaceEffect]:
        self.parts.relaying.leave(peer)
        self.parts.tree.disconnect(peer)
        self.parts.missing.disconnect(peer)
        self.taking.gone(peer)
        return []

"""Entering a place: relays first, the host if none answers, and on to those whom they name.

Toth 2013, sections 3.3 and 4.4. A guest keeps several upstreams, and finds another when one is gone. It
follows the answers at doors: it is let in, sent on or turned away, and the application is told.

With its admission a newcomer is told the notice that it came in, and so where the line begins for it; who
else is in it asks those who send to it (docs/adr/0018-places.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.commands import Declined
from linnet.event.event import Unverified, Verified
from linnet.machine.outbox import Outbox
from linnet.places.channel.packet import Modifier, parse, render
from linnet.places.commands import AtDoor, Entered, Turned
from linnet.places.messages import Away, Decision, Enter
from linnet.places.multicast.entry_check import make_enter
from linnet.places.multicast.fragmentation import Flag, Head, head_of
from linnet.places.multicast.terms import opening_of
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind, Record

_CONTACTS = "place contacts"
_encode = msgspec.msgpack.Encoder().encode
_decode_contacts = msgspec.msgpack.Decoder(tuple[Contact, ...]).decode
KNOWN_CONTACTS = 64
SOURCE_SECONDS = 30.0
"""Seconds that somebody who sent us on is kept to be asked, at least."""
SHUNNED_SECONDS = 600.0
MADE_UP = (Reason.BAD_SIGNATURE, Reason.STATE_MISMATCH, Reason.MALFORMED)
"""Faults that cannot have come from above: everybody checks before passing on."""
EXTRA = 2
"""Upstreams past those that we want while something is missing that these do not have."""
SOON = 0.5
"""Seconds until others are asked who may not have heard yet that we are a guest."""
FIRST_PAUSE, LONGEST_PAUSE = 3.0, 20.0
"""Seconds until somebody who is not there is asked again: twice as long each time, up to this."""
STANDING = 10.0
"""Seconds until whoever waits at a door knocks again: the host, or its answer, may have been lost."""
LASTING = 30.0
"""Seconds after which a connection was a good one: who was lost then is asked again at once."""
AT_THE_DOOR = (
    "the host decides who comes in, and has not decided yet; "
    "this node goes on to wait at the door, and comes in when it is let in"
)

UNDECIDED = (Reason.NOT_A_MEMBER, Reason.STALE, Reason.MISSING_DEPENDENCY)
"""What is answered by who cannot decide, or does not know enough yet: the host may still let us in."""


class LookAroundDue(Timer, frozen=True, gc=False):
    """It is time to look around for those who may let us into a place."""

    place: TopicId


class EntrySearch:
    """One node's ways into one place."""

    def __init__(self, parts: Parts, out: Outbox) -> None:
        self._parts = parts
        self._out = out
        self._links = parts.context.links
        self._purpose = f"place {parts.id.hex()[:16]}"
        kept = parts.context.store.cells.get(_CONTACTS, parts.id)
        contacts = () if kept is None else _decode_contacts(kept)
        self._known: dict[PeerId, Contact] = {each.peer: each for each in contacts}
        """Whom we know to be in, those asked last at the end."""
        self._voices: dict[PeerId, None] = {}
        """Devices of people whom the deed lets speak."""
        self._probing: dict[PeerId, None] = {}
        """Who is asked only whether it knows a later term."""
        self._trying: deque[Contact] = deque()
        self._asked: dict[PeerId, float] = {}
        """Peers that were asked and have not answered, with the time until which they may."""
        self._held: dict[PeerId, None] = {}
        self._sources: dict[PeerId, float] = {}
        """Who sent us on to others, and may be asked for a while for what those do not have."""
        self._shunned: dict[PeerId, float] = {}
        """Who sent what was provably false, with the time until which it is not asked again."""
        self._pauses: dict[PeerId, float] = {}
        """How long each was left alone last who could not be reached, or did not let us in."""
        self._resting: dict[PeerId, float] = {}
        """Until when each of these is left alone."""
        self._standing: dict[PeerId, None] = {}
        """At whose doors we wait to be let in."""
        self._since: dict[PeerId, float] = {}
        """When each upstream connected."""
        self._referred: dict[PeerId, None] = {}
        """To whom we were referred since we asked to come in."""
        self._text = b""
        self.wants = False
        """Whether we mean to be connected."""
        self.is_admitted = False
        """Whether somebody who knows has said that we are a guest."""

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """Whom we know to be in."""
        return tuple(self._known.values())

    def enter(
        self, contacts: Iterable[Contact], modifiers: tuple[Modifier, ...], text: bytes, now: float
    ) -> None:
        """Ask to come in."""
        self.wants = True
        self._referred.clear()
        self._text = render(modifiers, "_request_place_enter") + text
        self._pauses.clear()
        self._resting.clear()
        for contact in contacts:
            self.learn(contact)
            self._trying.append(contact)
        for peer in self._standing:
            if peer in self._links:
                # Who waits at a door already says there what is new to say.
                self._out.send(peer, self._request(now))
        self.find_upstreams(now)

    def learn(self, contact: Contact, nym: AuthorId | None = None) -> None:
        """Somebody is in this place, and may be dialled there."""
        if contact.peer == self._parts.context.peer:
            return
        if nym is not None and self._parts.deed.rank(nym) is not None:
            self._voices[contact.peer] = None
        known = self._known.pop(contact.peer, None)
        self._known[contact.peer] = contact if contact.hints or known is None else known
        if len(self._known) > KNOWN_CONTACTS:
            del self._known[self._dispensable()]
        if self._known[contact.peer] != known and contact.hints:
            # After a restart somebody has to be found, also by the host, who never was anybody's guest.
            dialled = tuple(each for each in self._known.values() if each.hints)
            self._parts.context.store.cells.put(_CONTACTS, self._parts.id, _encode(dialled))

    def _dispensable(self) -> PeerId:
        """Who is forgotten first: nobody whom the deed lets speak, as long as there is somebody else."""
        return next((peer for peer in self._known if peer not in self._voices), next(iter(self._known)))

    def contact(self, peer: PeerId) -> Contact:
        """Where this one may be dialled, as far as we know."""
        return self._known.get(peer, Contact(peer))

    def stay_connected(self, now: float) -> None:
        """Be connected, and find out who speaks: others may here."""
        if not self.wants:
            self.wants = True
            self.find_upstreams(now)

    def seek(self, contact: Contact, now: float) -> None:
        """Ask a peer to let us in that knows the line better than we do."""
        self.learn(contact)
        if self._parts.keeps:
            return  # a keeper is nobody's guest: it is sent what is said, and asks for what it lacks
        if contact.peer in self._asked or contact.peer in self._parts.tree.upstreams:
            return
        self._awaken(now)
        if contact.peer in self._resting and contact.peer not in self._links:
            return
        self.wants = True
        self._ask(self._known[contact.peer], now)
        self.set_timer(now)

    def probe_next(self, now: float) -> None:
        """Ask the next one whom we know, and are not connected with, which term it knows."""
        self._awaken(now)
        idle = [each for each in self._known.values() if self._is_idle(each.peer)]
        if idle:
            self._probing[idle[0].peer] = None
            self._ask(idle[0], now)

    def take_probe(self, peer: PeerId) -> bool:
        """Whether this one was asked for its term only; it is not any more."""
        return self._probing.pop(peer, 0) is None

    def look_around(self, now: float) -> None:
        """Look for upstreams, and now and then for what ours do not have."""
        self._awaken(now)
        if self.wants:
            self._ask_elsewhere(now)
            self.find_upstreams(now)

    def find_upstreams(self, now: float) -> None:
        """Ask as many as there are upstreams lacking."""
        if not self.wants:
            return
        for keeper in self._parts.deed.keepers:
            if keeper.peer not in self._known:
                self.learn(keeper)
        self._awaken(now)
        late = [peer for peer, until in self._asked.items() if until <= now]
        for peer in late:
            del self._asked[peer]
            self._standing.pop(peer, None)
            self._probing.pop(peer, None)
            self._rest(peer, now, SOON if peer in self._links else FIRST_PAUSE)
            self._let_go(peer)
        lacking = self._parts.tree.lacks - len(self._asked)
        willing = self._is_idle
        if lacking > 0 and not self._trying:
            idle = [each for each in self._known.values() if self._is_idle(each.peer)]
            if not idle and not self._parts.tree.upstreams:  # better those than nobody
                willing = self._is_free
                idle = [each for each in self._known.values() if willing(each.peer)]
            self._trying.extend(idle[:lacking])
        while lacking > 0 and self._trying:
            contact = self._trying.popleft()
            if willing(contact.peer):
                self._ask(contact, now)
                lacking -= 1
        self.set_timer(now)

    def set_timer(self, now: float) -> None:
        """Look around again when somebody may be asked again, or in a while."""
        rests = [until - now for until in self._resting.values()]
        delay = min([self._parts.config.entry_timeout, *rests])
        self._out.set_timer(delay, LookAroundDue(self._parts.id))

    def _awaken(self, now: float) -> None:
        """Those may be asked again whose time of rest is over."""
        for left_alone in (self._shunned, self._resting):
            for peer in [peer for peer, until in left_alone.items() if until <= now]:
                del left_alone[peer]

    def _rest(self, peer: PeerId, now: float, first: float = FIRST_PAUSE) -> None:
        """This one is not there, or does not let us in now: leave it alone for a while, and longer each time.
        Not all at the same moment, so that whoever comes back is not met by everybody at once."""
        pause = min(max(2 * self._pauses.pop(peer, 0.0), first), LONGEST_PAUSE)
        self._pauses[peer] = pause
        self._resting[peer] = now + pause * (0.75 + 0.5 * self._parts.context.rng.random())
        if len(self._pauses) > KNOWN_CONTACTS:
            oldest = next(iter(self._pauses))
            del self._pauses[oldest]
            self._resting.pop(oldest, None)

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Knock at a peer whose link we may have waited for."""
        if peer in self._asked:
            self._asked[peer] = now + self._parts.config.entry_timeout
            self._out.send(peer, self._request(now))

    def drop_peer(self, peer: PeerId, now: float, at_once: bool = True) -> None:
        """Drop a peer whose link is down or did not come; another one is tried, now or in a while."""
        was_asked = self._asked.pop(peer, None) is not None
        self._standing.pop(peer, None)
        self._sources.pop(peer, None)
        self._probing.pop(peer, None)
        was_up = peer in self._parts.tree.upstreams
        was_brief = was_up and now - self._since.pop(peer, now) < LASTING
        if was_asked or was_brief:
            self._rest(peer, now)
        elif was_up:
            self._pauses.pop(peer, None)
        self._parts.tree.disconnect(peer)
        self._parts.fragment_repair.disconnect(peer)
        if not (was_asked or was_up):
            return
        if not at_once:
            self.set_timer(now)
            return
        self._let_go(peer)
        self.find_upstreams(now)

    def shun(self, peer: PeerId, reason: Reason, now: float) -> None:
        """Leave an upstream that lies or keeps things back, and do not ask it for long. Not the only one:
        what it does bring is better than nothing, and others are being looked for."""
        upstreams = self._parts.tree.upstreams
        if peer not in upstreams:
            return
        if len(upstreams) < 2:
            self._strand(peer, now)
            return
        self.distrust(peer, now)
        note = "left, and not asked again for long"
        self._out.record(Record(Kind.DROPPED, self._parts.id, peer=peer, reason=reason, note=note))
        self._out.send(peer, Away(self._parts.id, reason))
        self.drop_peer(peer, now)

    def distrust(self, peer: PeerId, now: float) -> None:
        """Do not ask a peer for long that lies."""
        self._shunned.pop(peer, None)
        self._shunned[peer] = now + SHUNNED_SECONDS
        if len(self._shunned) > KNOWN_CONTACTS:
            del self._shunned[next(iter(self._shunned))]

    @property
    def is_stranded(self) -> bool:
        """Whether somebody lied to us, and nobody else sends to us."""
        return bool(self._shunned) and all(peer in self._shunned for peer in self._parts.tree.upstreams)

    def _strand(self, peer: PeerId, now: float) -> None:
        """Our only way lies: ask the voice at once, then others, who take us in though they are full."""
        if peer in self._shunned:
            return
        self.distrust(peer, now)
        voice = self._parts.voice
        if voice is not None:
            self._trying.appendleft(self.contact(voice))
        self.find_upstreams(now)

    def shun_liar(self, peer: PeerId, fault: Reason | None, now: float) -> None:
        """Leave a peer that is blamed for what it made up itself, and not only passed on."""
        if fault is not None and fault in MADE_UP:
            self.shun(peer, fault, now)

    def handle_refusal(self, peer: PeerId, now: float) -> None:
        """Leave a peer that does not let us in. If we are a guest it will hear so: it is asked again soon."""
        self._asked.pop(peer, None)
        self._standing.pop(peer, None)
        self._rest(peer, now, SOON)
        self._let_go(peer)
        if self.is_admitted:
            self.set_timer(now)
        elif self._trying:
            self.find_upstreams(now)

    def wait_at_door(self, peer: PeerId, now: float) -> None:
        """Stay where a peer sees us that decides about us later, and knock again now and then."""
        self._asked[peer] = now + STANDING
        self._standing[peer] = None
        self._pauses.pop(peer, None)
        self.set_timer(now)

    def follow_referral(self, relays: Iterable[Contact]) -> None:
        """Ask those next who can let us in, as who turned us away says; each once each time we enter."""
        for contact in relays:
            if contact.peer not in self._referred:
                self._referred[contact.peer] = None
                self.learn(contact)
                self._trying.append(contact)

    def go_on_to(self, peer: PeerId, relays: Iterable[Contact], now: float) -> None:
        """Go where a peer sends us: we are a guest, and others have room for us. Those first who were named
        first."""
        self._asked.pop(peer, None)
        self._standing.clear()
        self.is_admitted = True
        fresh = [each for each in relays if each.peer != self._parts.context.peer]
        for contact in fresh:
            self.learn(contact)
        if self._parts.tree.lacks:
            self._trying.extendleft(reversed(fresh))
        self._sources[peer] = now + SOURCE_SECONDS
        self._parts.fragment_repair.connect(peer, now)
        self.find_upstreams(now)

    def connect(self, peer: PeerId, nym: AuthorId | None, now: float) -> None:
        """Take a peer for an upstream: it sends to us from now on."""
        self._asked.pop(peer, None)
        self._standing.clear()
        self.is_admitted = True
        self._since[peer] = now
        self._parts.tree.connect_up(peer)
        self._parts.fragment_repair.connect(peer, now)
        self.learn(Contact(peer), nym)
        if nym is not None:
            self._parts.relay_filter_up.join(peer, nym)
        self.find_upstreams(now)

    def leave(self) -> None:
        """Be connected no more; membership is another matter."""
        self.wants = False
        self._asked.clear()
        self._standing.clear()
        self._sources.clear()
        self._trying.clear()
        for peer in self._parts.tree.upstreams:
            self._parts.tree.disconnect(peer)
            self._parts.fragment_repair.disconnect(peer)
        for peer in list(self._held):
            self._let_go(peer)

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        for times in (self._asked, self._sources, self._shunned, self._resting, self._since):
            for peer in times:
                times[peer] -= seconds

    def is_awaited(self, peer: PeerId) -> bool:
        """Whether this peer owes us an answer at its door."""
        return peer in self._asked

    def _ask_elsewhere(self, now: float) -> None:
        """Our upstreams may have come later than we did: the voice, or others, have what they may not see."""
        missing = self._parts.fragment_repair
        for peer in [peer for peer, until in self._sources.items() if until <= now and not missing.count]:
            del self._sources[peer]
            if peer not in self._parts.tree.upstreams:
                missing.disconnect(peer)
                self._let_go(peer)
        tree = self._parts.tree
        if not missing.count:
            for peer in tree.surplus:  # asked in need, and not needed any more
                tree.disconnect(peer)
                missing.disconnect(peer)
                self._out.send(peer, Away(self._parts.id, None))
                self._let_go(peer)
        if not missing.is_stuck or tree.lacks or len(tree.surplus) >= EXTRA:
            return
        voice = self._parts.voice
        others = [each for each in self._known.values() if self._is_idle(each.peer)]
        others.sort(key=lambda each: each.peer != voice)
        for contact in others[:1]:
            self._ask(contact, now)

    def _is_idle(self, peer: PeerId) -> bool:
        """Whether it makes sense to ask this one. Who sent us on may have room in the reserve in our need."""
        sent_us_on = peer in self._sources and not self.is_stranded
        return self._is_free(peer) and not sent_us_on and peer not in self._shunned

    def _is_free(self, peer: PeerId) -> bool:
        tree = self._parts.tree
        ours = peer == self._parts.context.peer or peer in self._asked or peer in self._resting
        return not (ours or peer in tree.upstreams or peer in tree.downstreams)

    def _ask(self, contact: Contact, now: float) -> None:
        peer = contact.peer
        if peer in self._known:
            self._known[peer] = self._known.pop(peer)
        self._asked[peer] = now + self._parts.config.entry_timeout
        self._held[peer] = None
        self._out.hold(peer, contact.hints, self._purpose)
        if peer in self._links:
            self._out.send(peer, self._request(now))

    def _let_go(self, peer: PeerId) -> None:
        if self._held.pop(peer, 0) is None:
            self._out.release(peer, self._purpose)

    def _request(self, now: float) -> Enter:
        context, parts = self._parts.context, self._parts
        return make_enter(
            context.key,
            context.card,
            parts.id,
            int(now * 1000),
            known=parts.deed.version if parts.fragments.standing.fragment >= 0 else 0,
            upto=parts.fragments.upto,
            state=parts.order.applied,
            text=self._text,
            prekeys=parts.guest_keys.prekeys(now) if parts.deed.policy.seals else None,
            term=parts.term,
            opening=parts.opened_by,
            stranded=self.is_stranded,
        )


def told_membership(parts: Parts, decision: Decision) -> list[tuple[Verified, Head]]:
    """The fragments of membership that came with an admission, checked; `RemoteError` if one is false."""
    for card in decision.cards:
        parts.context.cards.learn(card)
    checked = [_checked(parts, unit) for unit in decision.membership]
    return [(verified, head_of(verified.events[0])) for verified in checked]


def _checked(parts: Parts, unit: Unverified) -> Verified:
    if unit.topic != parts.id or not parts.deed.knew(unit.author):
        raise InvalidEvent(Reason.NOT_A_PUBLISHER, "a fragment of somebody who may not speak here")
    return parts.context.verify(unit, parts.context.cards.card_for(unit.author, unit.device, None))


def refused_record(parts: Parts, peer: PeerId, error: RemoteError) -> Record:
    """What is written down of an answer at the door that cannot be used."""
    note = f"decision: {error.detail}"[:200]
    return Record(Kind.REJECTED, parts.id, peer=peer, reason=error.reason, note=note)


def own_notice(told: Iterable[tuple[Verified, Head]], nym: AuthorId) -> Head | None:
    """The last notice among these that we came in."""
    mine = [
        head for _, head in told if head.change is not None and head.change.nym == nym and head.change.joins
    ]
    return max(mine, key=lambda head: head.message, default=None)


class Admission:
    """The doors of one place, from outside."""

    def __init__(self, parts: Parts, entry_search: EntrySearch, out: Outbox) -> None:
        self._parts = parts
        self._entry_search = entry_search
        self._out = out
        self._asked: list[int] = []
        """Requests of the application that wait for the door to open, and for the state behind it."""
        self._hurried: dict[int, None] = {}
        """Those of them that want to know at once that the host decides."""
        self._doors: dict[PeerId, None] = {}
        """Where the host was told of us, and decides. What is said at other doors does not change that."""
        self.is_rejected = False
        """Whether the host said no to us: nobody knocks again unasked."""
        self._is_first = True
        """Whether nobody meant to be in before the first of these."""

    def enter(
        self,
        request: int,
        contacts: Iterable[Contact],
        modifiers: tuple[Modifier, ...],
        text: bytes,
        waits: bool,
        now: float,
    ) -> None:
        """Ask to come in; answered when the door opens, or does not."""
        if not self._asked:
            self._is_first = not self._entry_search.wants
            if self._is_first:
                self._doors = {}
        self._asked.append(request)
        if not waits:
            self._hurried[request] = None
        self._entry_search.enter(contacts, modifiers, text, now)

    def give_up(self, request: int) -> bool:
        """Tell a request that nobody answered in time; whether nobody here means to be in any more."""
        if request not in self._asked:
            return False
        self._asked.remove(request)
        self._hurried.pop(request, None)
        if self._doors:
            self._out.reply(request, Declined(Reason.WAITING, AT_THE_DOOR))
            return False
        is_in = bool(self._parts.tree.upstreams) or self._entry_search.is_admitted
        detail = "nobody who lets guests in answered in time; the host of this place may be away"
        if is_in:
            detail = "let in, but the state of the place did not come in time"
        self._out.reply(request, Declined(Reason.TIMEOUT, detail))
        return self._is_first and not self._asked and not is_in

    def handle_decision(self, peer: PeerId, decision: Decision, now: float) -> bool:
        """Follow the answer at a peer's door; whether that peer sends to us from now on."""
        parts, entry_search, out = self._parts, self._entry_search, self._out
        if not entry_search.is_awaited(peer):
            note = "a decision that nobody waits for"
            out.record(Record(Kind.REJECTED, parts.id, peer=peer, reason=Reason.SURPLUS, note=note))
            return False
        before = out.mark()
        try:
            if decision.deed is not None:
                parts.renew(decision.deed)
            if decision.reason is Reason.WAITING and not decision.admitted:
                self._doors[peer] = None
                self._wait_at_door(peer, now)
                return False
            self._doors = {} if decision.admitted else {key: None for key in self._doors if key != peer}
            if not decision.admitted:
                self._handle_refusal(peer, decision, now)
                return False
            self._let_in(told_membership(parts, decision), now)
            if all(each.peer != peer for each in decision.relays):
                entry_search.go_on_to(peer, decision.relays, now)
                return False
            nym = self._person(peer, decision)
        except RemoteError as error:
            out.forget_since(before)
            if error.reason in MADE_UP:
                entry_search.distrust(peer, now)
            out.record(refused_record(parts, peer, error))
            out.blame(peer, error.reason)
            entry_search.handle_refusal(peer, now)
            return False
        for contact in decision.relays:
            entry_search.learn(contact)
        entry_search.connect(peer, nym, now)
        if decision.next:
            parts.told = max(parts.told, (decision.term, decision.next - 1))
            parts.fragment_repair.note_unverified(decision.next - 1, now)
        return True

    def tell_entered(self) -> None:
        """Tell the application that it is in: as soon as it can look at the state as of its entry."""
        parts = self._parts
        if self._asked and parts.tree.upstreams and self._has_state:
            self._answer(Entered(parts.id, parts.since))

    @property
    def _has_state(self) -> bool:
        parts = self._parts
        changes = parts.membership.changes(parts.context.author)
        if changes and changes[-1].joins:
            return parts.order.applied >= changes[-1].announced_at  # the notice carries the hash of the state
        return parts.is_whole and not parts.fragment_repair.count

    def _person(self, peer: PeerId, decision: Decision) -> AuthorId | None:
        """Who has let us in, if the answer proves it."""
        card = decision.card
        if card is None or card.device_key != peer:
            return None
        self._parts.context.cards.learn(card)
        return card.person

    def _let_in(self, told: list[tuple[Verified, Head]], now: float) -> None:
        """Where the line begins for us, and since when we are a guest; the rest of the roll is asked for."""
        parts = self._parts
        notice = own_notice(told, parts.context.author)
        is_new = parts.fragments.standing.fragment < 0 and not parts.terms.line
        if notice is not None and parts.deed.policy.restricts:
            if is_new or (parts.is_out and notice.message > parts.fragments.standing.message):
                parts.begin_at(notice)
            parts.entry = notice
        for verified, head in told:
            parts.keep_told(verified, head, now)
            if head.flags & Flag.OPENING:
                unit = verified.unit
                parts.told_opening(opening_of(head, unit.author, unit.device, verified.head, unit.seq))
        if notice is not None and notice.change is not None and notice.message > parts.membership.since:
            parts.membership.enter(notice.change, notice.message, notice.generation)

    def _wait_at_door(self, peer: PeerId, now: float) -> None:
        """Stand at the door of the host, which decides who comes in."""
        hurried, self._hurried = self._hurried, {}
        self._asked = [each for each in self._asked if each not in hurried]
        self._entry_search.wait_at_door(peer, now)
        for request in hurried:
            self._out.committed.reply(request, AtDoor(self._parts.id))

    def _handle_refusal(self, peer: PeerId, decision: Decision, now: float) -> None:
        self._entry_search.follow_referral(decision.relays)
        self._entry_search.handle_refusal(peer, now)
        reason = decision.reason or Reason.NOT_ALLOWED
        if decision.text:
            packet = parse(decision.text)
            turned = Turned(self._parts.id, reason, packet.method, packet.modifiers, packet.body)
            self.is_rejected = not self._parts.is_in
            self._answer(turned)
            return
        waits = any(self._entry_search.is_awaited(each.peer) for each in self._entry_search.contacts)
        if waits or self._doors or self._entry_search.is_admitted:
            return
        if reason in UNDECIDED and self._asked:
            self._entry_search.set_timer(now)
            return
        requests, self._asked, self._hurried = self._asked, [], {}
        for request in requests:
            self._out.reply(request, Declined(reason, "turned away at the door"))

    def _answer(self, result: Entered | Turned) -> None:
        requests, self._asked, self._hurried = self._asked, [], {}
        for request in requests:
            self._out.committed.reply(request, result)

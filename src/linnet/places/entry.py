"""Entering a place: relays first, the host if none answers, then the peers that they name.

Toth 2013, sections 3.3 and 4.4. A guest keeps several upstreams, and finds another when one is gone. It
follows the answers at doors, which let it in, send it on or turn it away, and tells the application.

With its admission a newcomer gets the notice that it came in, which says where the line begins for it; it
asks its upstreams for the other guests (docs/adr/0018-places.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import msgspec

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified, Verified
from linnet.machine.commands import Declined
from linnet.places.channel.packet import Modifier, parse, render
from linnet.places.commands import AtDoor, Entered, Turned
from linnet.places.door import make_enter
from linnet.places.messages import Away, Decision, Enter
from linnet.places.multicast.fragmentation import Flag, Head, head_of
from linnet.places.multicast.terms import opening_of
from linnet.places.place_setup import Parts, PlaceTimer
from linnet.trace.records import Kind, Record

_CONTACTS = "place contacts"
TURNED = "place turned"
"""Cells that keep the host's words when it turned us away."""
_encode = msgspec.msgpack.Encoder().encode
_decode_contacts = msgspec.msgpack.Decoder(tuple[Contact, ...]).decode
_decode_turned = msgspec.msgpack.Decoder(Turned).decode
KNOWN_CONTACTS = 64
SOURCE_SECONDS = 30.0
"""Seconds, at least, for which a peer that sent us on may still be asked for fragments."""
SHUNNED_SECONDS = 600.0
MADE_UP = (Reason.BAD_SIGNATURE, Reason.STATE_MISMATCH, Reason.MALFORMED)
"""Faults that a peer cannot have received from above: everybody checks before passing on."""
EXTRA = 2
"""Upstreams beyond the wanted number, while something is missing that the others do not have."""
SOON = 0.5
"""Seconds until a peer is asked again that may not have heard yet that we are a guest."""
FIRST_PAUSE, LONGEST_PAUSE = 3.0, 20.0
"""Seconds until an unreachable peer is asked again: twice as long each time, up to the second number."""
LONGEST_AT_DOOR = 80.0
"""The longest pause for peers that do not let us in, while we wait at the door of one that decides."""
STANDING = 10.0
"""Seconds until we knock again while we wait at a door: the host, or its answer, may have been lost."""
LASTING = 30.0
"""Seconds after which a connection was a good one: a peer lost after that is asked again at once."""
AT_THE_DOOR = (
    "the host decides who comes in, and has not decided yet; "
    "this node goes on to wait at the door, and comes in when it is let in"
)

UNDECIDED = (Reason.NOT_A_MEMBER, Reason.STALE, Reason.MISSING_DEPENDENCY)
"""Reasons of peers that cannot decide, or do not know enough yet: the host may still let us in."""


class LookAroundDue(PlaceTimer, frozen=True, gc=False):
    """A timer: look around for peers that may let us into a place."""


class EntrySearch:
    """Finds and keeps one node's upstreams in one place."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._links = parts.context.links
        self._purpose = f"place {parts.id.hex()[:16]}"
        kept = parts.context.store.cells.get(_CONTACTS, parts.id)
        contacts = () if kept is None else _decode_contacts(kept)
        self._known: dict[PeerId, Contact] = {each.peer: each for each in contacts}
        """Peers that we know to be in, the last asked at the end."""
        self._voices: dict[PeerId, None] = {}
        """Devices of people who may speak by the deed."""
        self._probing: dict[PeerId, None] = {}
        """Peers that are asked only whether they know a later term."""
        self._trying: deque[Contact] = deque()
        self._asked: dict[PeerId, float] = {}
        """Peers that were asked and have not answered, with the time until which they may."""
        self._held: dict[PeerId, None] = {}
        self._sources: dict[PeerId, float] = {}
        """Peers that sent us on, with the time until which they may be asked for what the others lack."""
        self._shunned: dict[PeerId, float] = {}
        """Peers that lied or held fragments back, with the time until which they are not asked again."""
        self._pauses: dict[PeerId, float] = {}
        """The last pause, in seconds, for each peer that could not be reached or did not let us in."""
        self._resting: dict[PeerId, float] = {}
        """The time until which each of these peers is left alone."""
        self._standing: dict[PeerId, None] = {}
        """Peers at whose doors we wait to be let in."""
        self._since: dict[PeerId, float] = {}
        """When each upstream connected."""
        self._referred: dict[PeerId, None] = {}
        """Peers that we were referred to since we asked to come in."""
        self._text = b""
        self.wants = False
        """Whether we want to be connected."""
        self.is_admitted = False
        """Whether a peer that knows has said that we are a guest."""

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """The peers that we know to be in."""
        return tuple(self._known.values())

    def enter(
        self, contacts: Iterable[Contact], modifiers: tuple[Modifier, ...], text: bytes, now: float
    ) -> None:
        """Ask to come in at these contacts, and at the doors where we wait already."""
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
                # We wait at this door already, and say there what is new to say.
                self._parts.out.send(peer, self._request(now))
        self.find_upstreams(now)

    def learn(self, contact: Contact, nym: AuthorId | None = None) -> None:
        """Remember a peer that is in this place, and where it may be dialled."""
        if contact.peer == self._parts.context.peer:
            return
        if nym is not None and self._parts.deed.rank(nym) is not None:
            self._voices[contact.peer] = None
        known = self._known.pop(contact.peer, None)
        self._known[contact.peer] = contact if contact.hints or known is None else known
        if len(self._known) > KNOWN_CONTACTS:
            del self._known[self._dispensable()]
        if self._known[contact.peer] != known and contact.hints:
            # After a restart we have to find peers, also as the host, who never was a guest of anybody.
            dialled = tuple(each for each in self._known.values() if each.hints)
            self._parts.context.store.cells.put(_CONTACTS, self._parts.id, _encode(dialled))

    @property
    def speakers(self) -> tuple[PeerId, ...]:
        """The known devices of people who may speak, except our own."""
        voice = self._parts.voice
        own = self._parts.context.peer
        known = dict.fromkeys((*self._voices, *(() if voice is None else (voice,))))
        return tuple(peer for peer in known if peer != own)

    def _dispensable(self) -> PeerId:
        """Return the contact to forget first: the oldest that may not speak by the deed, else the oldest."""
        return next((peer for peer in self._known if peer not in self._voices), next(iter(self._known)))

    def contact(self, peer: PeerId) -> Contact:
        """Return where a peer may be dialled, as far as we know."""
        return self._known.get(peer, Contact(peer))

    def stay_connected(self, now: float) -> None:
        """Connect to the place, to find out who speaks in it: others may, too."""
        if not self.wants:
            self.wants = True
            self.find_upstreams(now)

    def seek(self, contact: Contact, now: float) -> None:
        """Ask a peer to let us in, since it knows the line better than we do."""
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
        """Ask the next known peer that we are not connected to which term it knows."""
        self._awaken(now)
        idle = [each for each in self._known.values() if self._is_idle(each.peer)]
        if idle:
            self._probing[idle[0].peer] = None
            self._ask(idle[0], now)

    def take_probe(self, peer: PeerId) -> bool:
        """Return whether a peer was asked for its term only, and note that it no longer is."""
        return self._probing.pop(peer, 0) is None

    def look_around(self, now: float) -> None:
        """Look for upstreams, and now and then for fragments that ours do not have."""
        self._awaken(now)
        if self.wants:
            self._ask_elsewhere(now)
            self.find_upstreams(now)

    def find_upstreams(self, now: float) -> None:
        """Ask as many peers to let us in as upstreams are lacking."""
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
        """Set the timer to look around when a peer may be asked again, or after a while."""
        rests = [until - now for until in self._resting.values()]
        delay = min([self._parts.config.entry_timeout, *rests])
        self._parts.out.set_timer(delay, LookAroundDue(self._parts.id))

    def _awaken(self, now: float) -> None:
        """Allow peers to be asked again whose pause is over."""
        for left_alone in (self._shunned, self._resting):
            for peer in [peer for peer, until in left_alone.items() if until <= now]:
                del left_alone[peer]

    def _rest(
        self, peer: PeerId, now: float, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE
    ) -> None:
        """Leave a peer alone for a while that is unreachable or does not let us in, longer each time. The
        pauses are random, so that a returning peer is not met by everybody at once."""
        pause = min(max(2 * self._pauses.pop(peer, 0.0), first), longest)
        self._pauses[peer] = pause
        self._resting[peer] = now + pause * (0.75 + 0.5 * self._parts.context.rng.random())
        if len(self._pauses) > KNOWN_CONTACTS:
            oldest = next(iter(self._pauses))
            del self._pauses[oldest]
            self._resting.pop(oldest, None)

    def _shorten_rests(self, now: float) -> None:
        """Shorten the pauses when the deciding peer is gone, as if we had not waited at its door."""
        for peer, until in self._resting.items():
            self._resting[peer] = min(until, now + LONGEST_PAUSE)

    def handle_link_up(self, peer: PeerId, now: float) -> None:
        """Knock at a peer if we waited for its link."""
        if peer in self._asked:
            self._asked[peer] = now + self._parts.config.entry_timeout
            self._parts.out.send(peer, self._request(now))

    def drop_peer(self, peer: PeerId, now: float, at_once: bool = True) -> None:
        """Drop a peer whose link is down or never came; look for another now, or after a while."""
        was_asked = self._asked.pop(peer, None) is not None
        if peer in self._standing:
            del self._standing[peer]
            self._shorten_rests(now)
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
        """Leave an upstream that lies or holds fragments back, and do not ask it for long. A sole upstream
        stays while others are looked for: what it does bring is better than nothing."""
        upstreams = self._parts.tree.upstreams
        if peer not in upstreams:
            return
        if len(upstreams) < 2:
            self._strand(peer, now)
            return
        self.distrust(peer, now)
        self._parts.record(Kind.DROPPED, peer, reason, "left, and not asked again for long")
        self._parts.out.send(peer, Away(self._parts.id, reason))
        self.drop_peer(peer, now)

    def distrust(self, peer: PeerId, now: float) -> None:
        """Do not ask a peer that lies or holds fragments back for a long time."""
        self._shunned.pop(peer, None)
        self._shunned[peer] = now + SHUNNED_SECONDS
        if len(self._shunned) > KNOWN_CONTACTS:
            del self._shunned[next(iter(self._shunned))]

    @property
    def is_stranded(self) -> bool:
        """Whether a peer lied or held fragments back, and all our upstreams, if any, are such peers."""
        return bool(self._shunned) and all(peer in self._shunned for peer in self._parts.tree.upstreams)

    def _strand(self, peer: PeerId, now: float) -> None:
        """Ask the voice, then others, since our only upstream cannot be trusted; they take us though full."""
        if peer in self._shunned:
            return
        self.distrust(peer, now)
        voice = self._parts.voice
        if voice is not None:
            self._trying.appendleft(self.contact(voice))
        self.find_upstreams(now)

    def shun_liar(self, peer: PeerId, fault: Reason | None, now: float) -> None:
        """Leave a peer if the fault is one that it made up itself, and not only passed on."""
        if fault is not None and fault in MADE_UP:
            self.shun(peer, fault, now)

    def handle_refusal(self, peer: PeerId, now: float) -> None:
        """Leave a peer that does not let us in, and ask it again soon: it may hear that we are a guest."""
        self._asked.pop(peer, None)
        self._standing.pop(peer, None)
        self._rest(peer, now, SOON, LONGEST_AT_DOOR if self._standing else LONGEST_PAUSE)
        self._let_go(peer)
        if self.is_admitted:
            self.set_timer(now)
        elif self._trying:
            self.find_upstreams(now)

    def wait_at_door(self, peer: PeerId, now: float) -> None:
        """Wait at the door of a peer that decides about us later, and knock again now and then."""
        self._asked[peer] = now + STANDING
        self._standing[peer] = None
        self._pauses.pop(peer, None)
        self.set_timer(now)

    def follow_referral(self, relays: Iterable[Contact]) -> None:
        """Ask the peers next that a refusal refers us to, each once per entry."""
        for contact in relays:
            if contact.peer not in self._referred:
                self._referred[contact.peer] = None
                self.learn(contact)
                self._trying.append(contact)

    def go_on_to(self, peer: PeerId, relays: Iterable[Contact], now: float) -> None:
        """Ask the peers, in order, that a full peer redirects us to: we are a guest, and they have room."""
        self._asked.pop(peer, None)
        self._standing.clear()
        self.is_admitted = True
        fresh = [each for each in relays if each.peer != self._parts.context.peer]
        for contact in fresh:
            self.learn(contact)
        if self._parts.tree.lacks:
            self._trying.extendleft(reversed(fresh))
        if not any(self._is_free(each.peer) for each in fresh):
            # All of them are below us, or were asked: it would send us to them again.
            self._rest(peer, now)
        self._sources[peer] = now + SOURCE_SECONDS
        self._parts.fragment_repair.connect(peer, now)
        self.find_upstreams(now)

    def connect(self, peer: PeerId, nym: AuthorId | None, now: float) -> None:
        """Make a peer an upstream: it sends to us from now on."""
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
        """Disconnect from all upstreams; this does not end the membership."""
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
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        for times in (self._asked, self._sources, self._shunned, self._resting, self._since):
            for peer in times:
                times[peer] -= seconds

    def is_awaited(self, peer: PeerId) -> bool:
        """Return whether this peer owes us an answer at its door."""
        return peer in self._asked

    def _ask_elsewhere(self, now: float) -> None:
        """Ask other peers for missing fragments: our upstreams may have come later than we did, and may not
        see them. Drop sources and surplus upstreams that are no longer needed."""
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
                self._parts.out.send(peer, Away(self._parts.id, None))
                self._let_go(peer)
        if not missing.is_stuck or tree.lacks or len(tree.surplus) >= EXTRA:
            return
        voice = self._parts.voice
        others = [each for each in self._known.values() if self._is_idle(each.peer)]
        others.sort(key=lambda each: each.peer != voice)
        for contact in others[:1]:
            self._ask(contact, now)

    def _is_idle(self, peer: PeerId) -> bool:
        """Return whether a peer may be asked now. One that sent us on counts only while we are stranded,
        since it may have room in its reserve."""
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
        self._parts.out.hold(peer, contact.hints, self._purpose)
        if peer in self._links:
            self._parts.out.send(peer, self._request(now))

    def _let_go(self, peer: PeerId) -> None:
        if self._held.pop(peer, 0) is None:
            self._parts.out.release(peer, self._purpose)

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
    """Return the checked fragments of membership from an admission; `RemoteError` if one is false."""
    for card in decision.cards:
        parts.context.cards.learn(card)
    checked = [_checked(parts, unit) for unit in decision.membership]
    return [(verified, head_of(verified.events[0])) for verified in checked]


def _checked(parts: Parts, unit: Unverified) -> Verified:
    if unit.topic != parts.id or not parts.deed.knew(unit.author):
        raise InvalidEvent(Reason.NOT_A_PUBLISHER, "a fragment of somebody who may not speak here")
    return parts.context.check(unit, None, None)[0]


def own_notice(told: Iterable[tuple[Verified, Head]], nym: AuthorId) -> Head | None:
    """Return the latest of these notices that says that we came in."""
    mine = [
        head for _, head in told if head.change is not None and head.change.nym == nym and head.change.joins
    ]
    return max(mine, key=lambda head: head.message, default=None)


class Admission:
    """Follows the answers at the doors of one place, and tells the application."""

    def __init__(self, parts: Parts, entry_search: EntrySearch) -> None:
        self._parts = parts
        self._entry_search = entry_search
        self._asked: list[int] = []
        """Requests of the application that wait to be let in, and for the state after that."""
        self._hurried: dict[int, None] = {}
        """Those requests that want to know at once that the host decides."""
        self._doors: dict[PeerId, None] = {}
        """The doors where the host heard of us and decides. Answers at other doors do not change that."""
        self.is_rejected = False
        """Whether the host turned us away: then we do not knock again unasked."""
        kept = parts.context.store.cells.get(TURNED, parts.id)
        self.turned: Turned | None = None if kept is None else _decode_turned(kept)
        """The host's words of refusal, kept since the application may have ceased to wait for them."""
        self._is_first = True
        """Whether we did not want to be in before the first of these requests."""

    def enter(
        self,
        request: int,
        contacts: Iterable[Contact],
        modifiers: tuple[Modifier, ...],
        text: bytes,
        waits: bool,
        now: float,
    ) -> None:
        """Ask to come in; the request is answered when the door opens or we are turned away."""
        if self.turned is not None:
            self.turned = None
            self._parts.context.store.cells.delete(TURNED, self._parts.id)
        if not self._asked:
            self._is_first = not self._entry_search.wants
            if self._is_first:
                self._doors = {}
        self._asked.append(request)
        if not waits:
            self._hurried[request] = None
        self._entry_search.enter(contacts, modifiers, text, now)

    def give_up(self, request: int) -> bool:
        """Answer a request that timed out; return whether nobody wants us to be in any more."""
        if request not in self._asked:
            return False
        self._asked.remove(request)
        self._hurried.pop(request, None)
        if self._doors:
            self._parts.out.reply(request, Declined(Reason.WAITING, AT_THE_DOOR))
            return False
        is_in = bool(self._parts.tree.upstreams) or self._entry_search.is_admitted
        detail = "nobody who lets guests in answered in time; the host of this place may be away"
        if self._is_first and not self._asked and not is_in:
            detail += "; this node does not go on asking: enter again later"
        if is_in:
            detail = "let in, but the state of the place did not come in time"
        self._parts.out.reply(request, Declined(Reason.TIMEOUT, detail))
        return self._is_first and not self._asked and not is_in

    def handle_decision(self, peer: PeerId, decision: Decision, now: float) -> bool:
        """Follow the answer at a peer's door; return whether that peer sends to us from now on."""
        parts, entry_search, out = self._parts, self._entry_search, self._parts.out
        if not entry_search.is_awaited(peer):
            note = "a decision that nobody waits for"
            parts.record(Kind.REJECTED, peer, Reason.SURPLUS, note)
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
            parts.record(Kind.REJECTED, peer, error.reason, f"decision: {error.detail}")
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
        """Tell the application that it is in, as soon as the state as of its entry is here."""
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
        """Return the person who let us in, if the answer proves it."""
        card = decision.card
        if card is None or card.device_key != peer:
            return None
        self._parts.context.cards.learn(card)
        return card.person

    def _let_in(self, told: list[tuple[Verified, Head]], now: float) -> None:
        """Learn where the line begins for us, and since when we are a guest; the roll is asked for later."""
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
        """Wait at the door of the host, which decides who comes in."""
        hurried, self._hurried = self._hurried, {}
        self._asked = [each for each in self._asked if each not in hurried]
        self._entry_search.wait_at_door(peer, now)
        for request in hurried:
            self._parts.out.committed.reply(request, AtDoor(self._parts.id))

    def _handle_refusal(self, peer: PeerId, decision: Decision, now: float) -> None:
        self._entry_search.follow_referral(decision.relays)
        self._entry_search.handle_refusal(peer, now)
        reason = decision.reason or Reason.NOT_ALLOWED
        if decision.text:
            packet = parse(decision.text)
            turned = Turned(self._parts.id, reason, packet.method, packet.modifiers, packet.body)
            self.is_rejected = not self._parts.is_in
            self.turned = turned
            self._parts.context.store.cells.put(TURNED, self._parts.id, _encode(turned))
            note = "turned away by the host"
            self._parts.out.committed.record(
                Record(Kind.CONTROL, self._parts.id, peer=peer, reason=reason, note=note)
            )
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
            self._parts.out.reply(request, Declined(reason, "turned away at the door"))

    def _answer(self, result: Entered | Turned) -> None:
        requests, self._asked, self._hurried = self._asked, [], {}
        for request in requests:
            self._parts.out.committed.reply(request, result)

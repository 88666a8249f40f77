"""The neighbours of one node in the tree of a place: its upstreams, its downstreams, and the filter to them.

A node has several upstreams, so that a bad one cannot cut it off, and at most `fanout` downstreams. Newcomers
that it has no room for are redirected to its downstreams in turn, so that the tree fills level by level.
Loops do no harm: a fragment that was seen is not passed on again. Hops are not signed: they are a hint for
the way up.

Before every relay there is the membership test (Toth 2013, section 3.7). As long as the generation stays the
same nobody has left, so a member that passed the test needs no second one. Toth remembers only the
generation; a join shows in no generation, though, and a fragment that comes late may be older than the join.
So the message is remembered, too: an older one is tested again. This holds for live fragments; a replay is
tested each time.
"""

from __future__ import annotations

from typing import Protocol

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.places.channel.membership import Verdict
from linnet.places.config import PlacesConfig
from linnet.places.messages import RELAYS
from linnet.places.multicast.fragmentation import Head
from linnet.trace.records import Kind, Record

SILENT = 64
"""New fragments after which an upstream that brought less than half of them is reported."""
RESERVE = 2
"""Downstreams past the fan-out, for stranded guests: all their other upstreams lie."""
LEASE = 60.0
"""Seconds that a stranded guest stays at least; then another may have its place."""
FAR = 1 << 16
"""The hops of an upstream that has brought nothing yet."""


class Upstream:
    """A peer that sends us fragments."""

    __slots__ = ("brought", "expected", "hops")

    def __init__(self) -> None:
        self.hops = FAR
        self.expected = 0
        self.brought = 0


class _Downstream:
    __slots__ = ("contact", "nym", "sent_there", "until")

    def __init__(self, contact: Contact, nym: AuthorId, sent_there: int, until: float | None) -> None:
        self.contact = contact
        self.nym = nym
        self.sent_there = sent_there
        """The newcomers that were redirected to it first."""
        self.until = until
        """When its place past the fan-out may be given to another; None: it has a regular place."""


class Tree:
    """The upstreams and downstreams of one node in one place."""

    def __init__(self, place: TopicId, own: PeerId, config: PlacesConfig, out: Outbox) -> None:
        self._place = place
        self._out = out
        self._own = own
        self._config = config
        self._up: dict[PeerId, Upstream] = {}
        self._down: dict[PeerId, _Downstream] = {}

    @property
    def upstreams(self) -> tuple[PeerId, ...]:
        """The peers that send to us."""
        return tuple(self._up)

    @property
    def downstreams(self) -> dict[PeerId, AuthorId]:
        """The peers that we send to, with their people."""
        return {peer: each.nym for peer, each in self._down.items()}

    @property
    def lacks(self) -> int:
        """The number of upstreams still to be found."""
        return max(0, self._config.upstreams - len(self._up))

    @property
    def surplus(self) -> tuple[PeerId, ...]:
        """Upstreams past those that we want, the farthest from the voice first."""
        farthest = sorted(self._up, key=lambda peer: -self._up[peer].hops)
        return tuple(farthest[: max(0, len(self._up) - self._config.upstreams)])

    @property
    def is_full(self) -> bool:
        """Whether newcomers are redirected."""
        return len(self._down) >= self._config.fanout

    def connect_up(self, peer: PeerId) -> None:
        """Add an upstream."""
        if peer == self._own:
            raise Refused(Reason.NOT_ALLOWED, "nobody is its own relay")
        self._up.setdefault(peer, Upstream())

    def connect_down(self, contact: Contact, nym: AuthorId, stranded_at: float | None = None) -> bool:
        """Add a downstream; False: we are full, or it is above us, and it is to be redirected.

        A peer that is stranded at this time is taken past the fan-out, if there is room in the reserve.
        """
        if contact.peer in self._down:
            self._down[contact.peer].contact = contact
            return True
        most = self._config.fanout + (0 if stranded_at is None else RESERVE)
        if len(self._down) >= most or contact.peer in self._up or contact.peer == self._own:
            return False
        least = min((each.sent_there for each in self._down.values()), default=0)
        until = stranded_at + LEASE if stranded_at is not None and self.is_full else None
        self._down[contact.peer] = _Downstream(contact, nym, least, until)
        return True

    def outstayed(self, newcomer: PeerId, now: float) -> PeerId | None:
        """Return a downstream whose time in the reserve is over, if this stranded peer needs its place."""
        if newcomer in self._down or len(self._down) < self._config.fanout + RESERVE:
            return None
        over = (peer for peer, each in self._down.items() if each.until is not None and each.until <= now)
        return next(over, None)

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        for each in self._down.values():
            each.until = None if each.until is None else each.until - seconds

    def disconnect(self, peer: PeerId) -> None:
        """Remove a neighbour, in both directions."""
        self._up.pop(peer, None)
        self._down.pop(peer, None)

    def redirect(self, newcomer: PeerId) -> tuple[Contact, ...]:
        """Return peers that a newcomer should ask instead, those with the fewest redirects so far first.

        Only peers that can be dialled are named. Empty: there are none, and the newcomer has to be told so.
        """
        able = [each for peer, each in self._down.items() if peer != newcomer and each.contact.hints]
        able.sort(key=lambda each: each.sent_there)
        chosen = able[: min(RELAYS, 2 * self._config.upstreams)]
        for each in chosen[: self._config.upstreams]:
            each.sent_there += 1
        return tuple(each.contact for each in chosen)

    def way_up(self) -> PeerId | None:
        """Return the upstream nearest to the voice; None if there is none."""
        return min(self._up, key=lambda peer: self._up[peer].hops, default=None)

    def count_fragment(self, peer: PeerId, hops: int, new: bool) -> list[PeerId]:
        """Count a live fragment of an upstream, new or not; return the upstreams that bring too few.

        These hold fragments back, or get nothing themselves: go elsewhere.
        """
        mine = self._up.get(peer)
        if mine is not None:
            mine.hops = hops
            mine.brought += 1
        return self._count() if new else []

    def _count(self) -> list[PeerId]:
        silent: list[PeerId] = []
        for peer, each in self._up.items():
            each.expected += 1
            if each.expected < SILENT:
                continue
            if 2 * each.brought < each.expected and len(self._up) > 1:
                note = f"brought {each.brought} of {each.expected} fragments"
                reason = Reason.SLOW_PEER
                self._out.record(Record(Kind.DROPPED, self._place, peer=peer, reason=reason, note=note))
                silent.append(peer)
            each.expected = each.brought = 0
        return silent


class MembershipTest(Protocol):
    """The test whether a person may see a message that was sent in a generation."""

    def test(self, nym: AuthorId, message: int, generation: int) -> Verdict:
        """Return yes, no, or not known."""


class _Below:
    __slots__ = ("generation", "message", "nym", "told")

    def __init__(self, nym: AuthorId) -> None:
        self.nym = nym
        self.generation = -1
        """The generation of the last positive test; -1: none is valid."""
        self.message = 0
        """The oldest message that was tested in that generation."""
        self.told: tuple[int, Reason] | None = None
        """The generation and reason of the last record that a fragment was withheld."""


def is_farewell(head: Head, nym: AuthorId) -> bool:
    """Return whether this is the notice that the person left: they may still see that notice alone."""
    return head.change is not None and not head.change.joins and head.change.nym == nym


class RelayFilter:
    """The peers that this node passes fragments on to, each with its membership test."""

    def __init__(self, place: TopicId, membership: MembershipTest, out: Outbox) -> None:
        self._place = place
        self._out = out
        self._membership = membership
        self._below: dict[PeerId, _Below] = {}
        self._keepers: dict[PeerId, None] = {}
        """Relays that keep everything and are no guests: there is no test for them."""

    @property
    def keepers(self) -> tuple[PeerId, ...]:
        """The relays that are sent everything."""
        return tuple(self._keepers)

    def nym(self, peer: PeerId) -> AuthorId | None:
        """Return the person behind a peer; None if it gets no fragments as a guest."""
        below = self._below.get(peer)
        return None if below is None else below.nym

    def join(self, peer: PeerId, nym: AuthorId) -> None:
        """Pass fragments on to this peer from now on, as far as that person may see them."""
        self._below[peer] = _Below(nym)

    def leave(self, peer: PeerId) -> None:
        """Pass nothing more on to this peer."""
        self._below.pop(peer, None)

    def keep(self, peer: PeerId) -> None:
        """Pass every fragment on to this peer from now on: the deed names it as a keeper."""
        self._keepers[peer] = None

    def keeps(self, peer: PeerId) -> bool:
        """Return whether every fragment goes to this peer."""
        return peer in self._keepers

    def let_go(self, peer: PeerId) -> None:
        """Stop sending to a keeper that keeps no more, or is away."""
        self._keepers.pop(peer, None)

    def forget(self) -> None:
        """Test every member again: the line of terms changed, and with it the basis of membership."""
        for below in self._below.values():
            below.generation = -1

    def find_targets(self, head: Head, source: PeerId | None) -> list[PeerId]:
        """Return the peers to pass this live fragment on to, not `source`; record those denied it."""
        found: list[PeerId] = []
        for peer, below in self._below.items():
            if peer == source:
                continue
            reason = self._withheld(head, below)
            if reason is None:
                found.append(peer)
            elif below.told != (head.generation, reason):
                below.told = (head.generation, reason)
                self._record(head, peer, reason)
        found.extend(peer for peer in self._keepers if peer != source and peer not in self._below)
        return found

    def _withheld(self, head: Head, below: _Below) -> Reason | None:
        """Return why a peer does not get the fragment; None if it does."""
        if head.generation == below.generation and head.message >= below.message:
            return None
        verdict = self._membership.test(below.nym, head.message, head.generation)
        if verdict is Verdict.YES:
            if head.generation > below.generation:
                below.generation, below.message = head.generation, head.message
            elif head.generation == below.generation:
                below.message = head.message
            return None
        if is_farewell(head, below.nym):
            return None
        if head.generation > below.generation:
            below.generation = -1
        return Reason.NOT_A_MEMBER if verdict is Verdict.NO else Reason.MISSING_DEPENDENCY

    def _record(self, head: Head, peer: PeerId, reason: Reason) -> None:
        note = f"withheld from generation {head.generation} on, fragment {head.fragment}"
        self._out.committed.record(Record(Kind.DROPPED, self._place, peer=peer, reason=reason, note=note))

"""Lazy peers: members of a stream, beside the neighbours, with whom a node compares what there is.

Neighbours are whom the tracker names, and whoever runs enough nodes of a stream is most of them. If they pass
nothing on, whoever has no others is cut off and does not know it. So each node also compares heads with a few
members drawn at random, and with those that drew it, and it draws anew from time to time. What is new is
announced to them by heads, not sent. Whoever lacks it asks for it. A member that had to provide what no
neighbour did becomes a neighbour in all but name: it sends every unit from then on (the lazy push and the
grafting of Plumtree, Leitão et al. 2007). A publisher sends its own units to its lazy peers at once.

While all is well a node draws one member each half minute. It draws two every two seconds while it lacks what
others claim to have, and two every four seconds for a minute while it cannot know: after it has joined, if
nothing comes; when it begins to publish; and when a lively stream falls quiet.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from linnet.core.fair_shares import FairShares
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.context import Context
from linnet.delivery.flood import Flood, Neighbor
from linnet.delivery.forks import RecentUnits
from linnet.delivery.messages import ChainPlace
from linnet.machine.outbox import Outbox
from linnet.overlay.notices import MembersWanted
from linnet.streams.messages import Follow, Wish
from linnet.trace.records import Kind, Record

FIRST_LOOK = 1.0
"""Seconds after joining until members are drawn: the tracker names neighbours first."""
CALM = 10.0
"""Seconds between looks while all is well; at each third one a member is drawn."""
_LOOKS_PER_DRAW = 3
UNSURE = 4.0
"""Seconds between draws while a node cannot know whether something is missing."""
DOUBT = 60.0
"""Seconds for which it is unsure."""
HURRIED = 2.0
"""Seconds between draws while something is missing."""
HURRY = 30.0
"""Seconds for which a node hurries after it last had a reason."""
_BREAK = 600.0
"""Seconds without a publish after which a node begins to publish anew."""
_PUBLISHING = 30.0
"""Seconds for which a node counts as publishing after a publish: it draws more often."""
_QUIET = 5.0
"""A stream has fallen quiet after so many seconds, and so many times the usual pause, without a unit."""
_DIAL_PATIENCE = 10.0
"""Seconds until a member to which no link came up is let go."""
FOLLOWERS = 16
"""Members that may follow this node in one stream; when there are more, shares are fair."""
GRAFTS = 4
"""Lazy peers that may send every unit at a time."""
_DRAWS_AT_ONCE = 2
_STORAGE_REST = 12.0
"""The fewest seconds between two draws of a storage node."""
_MOST_IN_VAIN = 6
_GRAFT_LASTS = 120.0
"""Seconds for which a lazy peer sends every unit after it was last the first to send one."""
_DIALS_PER_SECOND = 1.0
_DIALS_AT_ONCE = 32
"""Links to lazy peers that a node opens in all streams together."""


class LookDue(TopicTimer, frozen=True, gc=False):
    """Time to draw other lazy peers in a stream."""


class NewsDue(TopicTimer, frozen=True, gc=False):
    """Time to tell the lazy peers of a stream what is new."""


class LazyLinks:
    """The links of one node to lazy peers, in all its streams."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._streams: dict[PeerId, int] = {}
        self._dials = (float(_DIALS_AT_ONCE), 0.0)
        """How many may be opened now, and when that was so: it fills up again with time."""

    def take(self, peer: PeerId, is_linked: bool, now: float) -> bool:
        """Count one more stream with this lazy peer, unless that takes a link too many."""
        is_another = peer not in self._streams and not is_linked
        if is_another and (len(self._streams) >= self._most or not self._may_dial(now)):
            return False
        self._streams[peer] = self._streams.get(peer, 0) + 1
        return True

    def give_back(self, peer: PeerId) -> None:
        """Count one stream less with this lazy peer."""
        count = self._streams.pop(peer) - 1
        if count:
            self._streams[peer] = count

    def _may_dial(self, now: float) -> bool:
        left, at = self._dials
        left = min(float(_DIALS_AT_ONCE), left + max(0.0, now - at) * _DIALS_PER_SECOND)
        may = left >= 1.0
        self._dials = (left - may, now)
        return may


class _Lazy(Struct, eq=False):
    """A lazy peer that this node has drawn."""

    since: float
    is_up: bool = False
    helped_at: float | None = None
    """When it was last the first to send a unit, since it sends every unit; None: it only tells heads."""


class LazyPeers:
    """The lazy peers of this node in one stream."""

    def __init__(
        self,
        topic: TopicId,
        context: Context,
        flood: Flood,
        recent: RecentUnits,
        links: LazyLinks,
        out: Outbox,
    ) -> None:
        self._topic = topic
        self._context = context
        self._flood = flood
        self._recent = recent
        self._links = links
        self._out = out
        self._drawn: dict[PeerId, _Lazy] = {}
        """Those that this node drew, in the order in which it did."""
        self._followers: dict[PeerId, Wish] = {}
        """Those that drew this node, and what they want."""
        self._shares = FairShares(FOLLOWERS, context.origins)
        self._storage: tuple[Contact, ...] = ()
        self._storage_offered_at: float | None = None
        self._spare: list[Contact] = []
        """Members that the tracker named and that were not drawn yet."""
        self._is_begun = False
        self._has_news = False
        self._hurries_until = 0.0
        self._unsure_until = 0.0
        self._published_at: float | None = None
        self._unit_at: float | None = None
        """When the last unit came."""
        self._pause = 0.0
        """The usual seconds between two units."""
        self._is_short = False
        """Whether the last member could not be drawn, as there are too many links."""
        self._looks = 0
        self._ask_at = 0
        """The look at which the tracker may be asked for members again."""
        self._in_vain = 0
        """How often in succession the tracker named nobody new."""

    @property
    def linked(self) -> tuple[PeerId, ...]:
        """Those that this node drew and has a link to."""
        return tuple(peer for peer, lazy in self._drawn.items() if lazy.is_up)

    @property
    def everyone(self) -> tuple[PeerId, ...]:
        """Those that this node drew and has a link to, and those that drew it."""
        return tuple(dict.fromkeys((*self.linked, *self._followers)))

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._drawn or peer in self._followers

    def begin(self) -> None:
        """Draw lazy peers soon, and other ones from time to time."""
        if not self._is_begun and self._context.config.lazy_peers:
            self._is_begun = True
            self._out.set_timer(FIRST_LOOK, LookDue(self._topic))

    def stop(self) -> None:
        """Let all lazy peers go."""
        for peer in list(self._drawn):
            self._let_go(peer)
        for peer in list(self._followers):
            self._turn_away(peer)  # Or else it goes on sending us every unit.
        self._out.cancel_timer(LookDue(self._topic))
        self._out.cancel_timer(NewsDue(self._topic))
        self._is_begun = self._has_news = False

    # Drawing.

    def hurry(self, now: float) -> None:
        """Draw often for a while: something is missing that others claim to have."""
        was_calm = not 0.0 < self._hurries_until - now <= HURRY
        self._hurries_until = now + HURRY
        if was_calm and self._is_begun:
            self._in_vain, self._ask_at = 0, self._looks
            self._out.set_timer(HURRIED, LookDue(self._topic))

    def look(self, now: float) -> None:
        """Let the lazy peers go that have been it for longest, and draw others."""
        for peer, lazy in list(self._drawn.items()):
            if not lazy.is_up and not 0.0 <= now - lazy.since < _DIAL_PATIENCE:
                self._let_go(peer)
            elif lazy.helped_at is not None and not 0.0 <= now - lazy.helped_at < _GRAFT_LASTS:
                self._prune(peer, lazy)
        if not self._looks:
            self._unsure_until = now + DOUBT
        pause, draws = self._pace(now)
        self._looks += 1
        if pause < CALM:
            self._offer_storage(now)
        lacking = self._lacking
        for _ in range(draws - max(0, lacking)):
            if self._spare:
                self._let_oldest_go()
        self._draw(now)
        if self._is_begun:
            if draws and len(self._spare) < _DRAWS_AT_ONCE and self._looks >= self._ask_at:
                self._ask()
            self._out.set_timer(pause, LookDue(self._topic))

    @property
    def _grafts(self) -> int:
        return sum(each.helped_at is not None for each in self._drawn.values())

    @property
    def _lacking(self) -> int:
        """How many are to be drawn: those that send every unit are beside them, and stay for long."""
        return self._context.config.lazy_peers - len(self._drawn) + self._grafts

    def _pace(self, now: float) -> tuple[float, int]:
        """Return the seconds until the next look, and how many members to draw at this one."""
        if 0.0 < self._hurries_until - now <= HURRY:
            return HURRIED, _DRAWS_AT_ONCE
        if 0.0 < self._unsure_until - now <= DOUBT or self._has_fallen_quiet(now):
            return UNSURE, _DRAWS_AT_ONCE
        publishes = self._published_at is not None and 0.0 <= now - self._published_at < _PUBLISHING
        return CALM, _DRAWS_AT_ONCE if publishes else int(self._looks % _LOOKS_PER_DRAW == 0)

    def _has_fallen_quiet(self, now: float) -> bool:
        if self._unit_at is None:
            return False
        silence = now - self._unit_at - _QUIET * (1.0 + self._pause)
        return 0.0 < silence < DOUBT

    def note_published(self, now: float) -> None:
        """Note that this node publishes: it must not be surrounded by those who pass nothing on."""
        before, self._published_at = self._published_at, now
        if before is None or not 0.0 <= now - before < _BREAK:
            self._unsure_until = now + DOUBT
            if self._is_begun:
                self._out.set_timer(UNSURE, LookDue(self._topic))

    def set_storage(self, nodes: Iterable[Contact]) -> None:
        """Replace the known storage nodes of the stream, one of which is drawn in doubt."""
        self._storage = tuple(nodes)

    def _offer_storage(self, now: float) -> None:
        """Let a storage node be drawn next: it may be the only one that no false tracker chose.

        All who are in doubt do so, and it has room for a few: it is not drawn again at once.
        """
        since = self._storage_offered_at
        if since is not None and 0.0 <= now - since < _STORAGE_REST:
            return
        self._storage_offered_at = now
        if not any(each.peer in self for each in self._storage):
            near = self._flood.neighbors
            others = [each for each in self._storage if each.peer not in near]
            if others:
                self._spare.append(self._context.rng.choice(others))

    def _ask(self) -> None:
        """Ask for members; the more seldom, the longer there was nobody new."""
        self._in_vain = min(self._in_vain + 1, _MOST_IN_VAIN)
        self._ask_at = self._looks + 2 ** (self._in_vain - 1)
        self._out.notify(MembersWanted(self._topic))

    def note_members(self, contacts: Iterable[Contact], now: float) -> None:
        """Take in members that the tracker named."""
        known = (self._context.peer, *self._drawn, *self._flood.neighbors)
        self._spare = [each for each in contacts if each.peer not in known]
        if self._spare:
            self._in_vain = 0
        if self._is_begun:
            self._draw(now)

    def _draw(self, now: float) -> None:
        """Draw as many lazy peers as are lacking."""
        while self._spare and self._lacking > 0:
            contact = self._spare.pop()
            peer = contact.peer
            if peer in self._drawn or peer in self._flood.neighbors:
                continue
            is_linked = peer in self._context.links
            if not self._links.take(peer, is_linked, now):
                self._note_short(peer)
                return
            self._is_short = False
            self._drawn[peer] = _Lazy(now)
            self._out.hold(peer, contact.hints, self._purpose)
            if is_linked:
                self.handle_link_up(peer)

    def _note_short(self, peer: PeerId) -> None:
        """Record once that this node has, or has just opened, as many links to lazy peers as it may."""
        if not self._is_short:
            self._is_short = True
            note = "no lazy peer: this node has or has just opened enough links to such"
            reason = Reason.TOO_MANY_LINKS
            self._out.record(Record(Kind.OVERLAY, self._topic, peer=peer, reason=reason, note=note))

    def _let_oldest_go(self) -> None:
        oldest = next((peer for peer, lazy in self._drawn.items() if lazy.helped_at is None), None)
        if oldest is not None:
            self._let_go(oldest)

    def _let_go(self, peer: PeerId, is_neighbor: bool = False) -> None:
        lazy = self._drawn.pop(peer)
        if lazy.is_up and not is_neighbor:
            self._out.send(peer, Follow(self._topic, Wish.NOTHING))
        self._settle(peer, is_neighbor)
        self._links.give_back(peer)
        self._out.release(peer, self._purpose)

    # Links and wishes.

    def handle_link_up(self, peer: PeerId) -> bool:
        """Follow a drawn member whose link is open; return whether it is one: then it is told heads."""
        lazy = self._drawn.get(peer)
        if lazy is None or lazy.is_up:
            return False
        lazy.is_up = True
        self._settle(peer)
        self._out.send(peer, Follow(self._topic, Wish.HEADS))
        return True

    def handle_link_down(self, peer: PeerId) -> None:
        """Let a peer go whose link is down: others are drawn."""
        if peer in self._drawn:
            self._drawn[peer].is_up = False
            self._let_go(peer)
        if peer in self._followers:
            self._drop_follower(peer)

    def handle_neighbor_up(self, peer: PeerId) -> None:
        """Let a lazy peer go that has become a neighbour: it is told and sent everything."""
        if peer in self._drawn:
            self._let_go(peer, is_neighbor=True)
        if peer in self._followers:
            self._drop_follower(peer, is_neighbor=True)

    def handle_follow(self, peer: PeerId, wish: Wish) -> bool:
        """Note what a member wants of us; return whether it is to be told heads now."""
        before = self._followers.get(peer)
        if wish is Wish.NOTHING:
            if before is not None:
                self._drop_follower(peer)  # It may still be told by us what is new to us.
            elif peer in self._drawn:
                self._let_go(peer)  # It has no room for us.
            return False
        if not self._is_begun:
            self._out.send(peer, Follow(self._topic, Wish.NOTHING))
            return False
        if before is None:
            if peer in self._flood.neighbors and peer not in self._drawn:
                return False  # It is a neighbour, and is told everything.
            self._make_room(peer)
            self._shares.add(peer)
        self._followers[peer] = wish
        self._settle(peer)
        return before is None

    def _make_room(self, peer: PeerId) -> None:
        if not self._shares.is_full():
            return
        greedier = self._shares.find_greedier(peer)
        if greedier is None:
            # It takes as much as any other. So that nobody keeps newcomers out, one of its own network gives
            # way, or any one.
            origin_of = self._context.origins.of
            alike = [other for other in self._followers if origin_of(other) == origin_of(peer)]
            greedier = self._context.rng.choice(alike or list(self._followers))
        self._turn_away(greedier)
        note = "follows this stream no longer: made room for another"
        self._out.record(Record(Kind.OVERLAY, self._topic, peer=greedier, reason=Reason.SURPLUS, note=note))

    def _turn_away(self, peer: PeerId) -> None:
        """Let a follower go and tell it so; to one that we follow as well, that takes two words."""
        if peer in self._drawn:
            self._let_go(peer)
        self._drop_follower(peer)
        self._out.send(peer, Follow(self._topic, Wish.NOTHING))

    def _drop_follower(self, peer: PeerId, is_neighbor: bool = False) -> None:
        del self._followers[peer]
        self._shares.remove(peer)
        self._settle(peer, is_neighbor)

    # Units.

    def note_provided(self, peer: PeerId, now: float) -> None:
        """Note that a peer had to provide what no neighbour did: from now on it sends us every unit."""
        self.hurry(now)
        lazy = self._drawn.get(peer)
        if self._grafts >= GRAFTS or (lazy is not None and lazy.helped_at is not None):
            return
        if lazy is None:
            if peer not in self._followers or not self._links.take(peer, True, now):
                return
            if len(self._drawn) >= self._context.config.lazy_peers + GRAFTS:
                self._let_oldest_go()
            lazy = self._drawn[peer] = _Lazy(now, is_up=True)
            self._out.hold(peer, (), self._purpose)
        lazy.helped_at = now
        self._settle(peer)
        self._out.send(peer, Follow(self._topic, Wish.UNITS))
        note = "provides what no neighbour did: sends every unit from now on"
        self._out.record(Record(Kind.OVERLAY, self._topic, peer=peer, note=note))

    def note_first(self, peer: PeerId, now: float) -> None:
        """Note that a peer was the first to send a unit."""
        if self._unit_at is not None:
            self._pause += 0.2 * (max(0.0, now - self._unit_at) - self._pause)
        else:
            self._unsure_until = 0.0
        self._unit_at = now
        lazy = self._drawn.get(peer)
        if lazy is not None and lazy.helped_at is not None:
            lazy.helped_at = now

    def _prune(self, peer: PeerId, lazy: _Lazy) -> None:
        lazy.helped_at = None
        self._settle(peer)
        self._out.send(peer, Follow(self._topic, Wish.HEADS))

    def _settle(self, peer: PeerId, is_neighbor: bool = False) -> None:
        """Let the flood reach a peer as it is wanted: with all units, with our own, or not at all."""
        if is_neighbor:
            self._flood.also.pop(peer, None)
            return
        lazy, wish = self._drawn.get(peer), self._followers.get(peer)
        is_eager = wish is Wish.UNITS or (lazy is not None and lazy.helped_at is not None)
        self._flood.graft(peer, is_eager)
        if lazy is not None and lazy.is_up and not is_eager:
            self._flood.also.setdefault(peer, Neighbor(-self._flood.distinct))
        else:
            self._flood.also.pop(peer, None)

    # Heads.

    def note_news(self) -> None:
        """Tell the lazy peers soon that there is something new."""
        if not self._has_news and (self._drawn or self._followers):
            self._has_news = True
            self._out.set_timer(self._context.config.heads_period, NewsDue(self._topic))

    def take_news(self) -> list[PeerId]:
        """Return the peers to tell what is new: those that are not sent every unit."""
        self._has_news = False
        return [peer for peer in self.everyone if peer not in self._flood.neighbors]

    def places(self, chains: dict[ChainKey, Chain]) -> list[ChainPlace]:
        """Return the ends of the chains that have had news lately: what this node can resend of them."""
        return [
            ChainPlace(chain.author, chain.device, first, last, True)
            for key, (first, last) in self._recent.tails().items()
            if (chain := chains.get(key)) is not None
        ]

    @property
    def _purpose(self) -> str:
        return f"lazy {self._topic.hex()[:16]}"

"""What this node and its lazy peers tell each other in one stream, and what they make up for.

`linnet.streams.lazy_peers` says who they are. They are told heads. Whoever lacks something asks for it, and
has it from the log or from the units that came last. What a lazy peer provides, neighbours should have sent.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from linnet.core.ids import Contact, PeerId
from linnet.delivery.chain import Chain
from linnet.delivery.context import Context
from linnet.delivery.flood import Flood, Suppression
from linnet.delivery.forks import RecentUnits
from linnet.delivery.messages import Heads, Resend, Resent
from linnet.event.event import Verified
from linnet.streams.announcements import Announcements
from linnet.streams.ingest import Ingest
from linnet.streams.inspection import Inspection
from linnet.streams.lazy_peers import LazyPeers
from linnet.streams.messages import Follow

LATELY = 60.0
"""Seconds after its publication for which an event that neighbours did not send counts against them."""
FRESH = 8.0
"""Seconds after its publication for which such an event is passed on: to neighbours that have just come, an
older one would look as if it were said in their time."""
_FEWEST_HOPS = 3
"""Links that an event has crossed at least when we send it on that a lazy peer has resent."""


class LazyPush:
    """The exchange with the lazy peers of one stream."""

    def __init__(
        self,
        context: Context,
        peers: LazyPeers,
        inspection: Inspection,
        flood: Flood,
        suppression: Suppression,
        recent: RecentUnits,
        ingest: Ingest,
        announcements: Announcements,
        stores: Callable[[], bool],
    ) -> None:
        """`stores` says whether this node keeps the stream for others."""
        self._context = context
        self._peers = peers
        self._inspection = inspection
        self._flood = flood
        self._suppression = suppression
        self._recent = recent
        self._ingest = ingest
        self._announcements = announcements
        self._stores = stores
        self._told_whole: dict[PeerId, None] = {}
        """Lazy peers that were told all that this storage node keeps."""
        self._met_at: float | None = None
        """Since when there have been neighbours without a break."""

    def note_neighbors(self, now: float) -> None:
        """Note whether there are neighbours that an overlay named."""
        if len(self._flood.neighbors) == len(self._flood.grafted):
            self._met_at = None
        elif self._met_at is None:
            self._met_at = now

    # Peers.

    def handle_link_up(self, peer: PeerId, keeps: bool, now: float) -> None:
        """Follow a member that was drawn, now that its link is open."""
        if self._peers.handle_link_up(peer):
            self._greet(peer, keeps, now)

    def handle_follow(self, peer: PeerId, follow: Follow, keeps: bool, now: float) -> None:
        """Note what a member that is no neighbour wants of us, and tell a new one how far the chains go."""
        if self._peers.handle_follow(peer, follow.wish):
            self._greet(peer, keeps, now)

    def note_members(self, contacts: tuple[Contact, ...], keeps: bool, now: float) -> None:
        """Draw lazy peers among members that the tracker named."""
        before = self._peers.linked
        self._peers.note_members(contacts, now)
        self._greet_others(before, keeps, now)

    def look_around(self, keeps: bool, now: float) -> None:
        """Draw other lazy peers."""
        before = self._peers.linked
        self._peers.look(now)
        self._greet_others(before, keeps, now)

    def _greet_others(self, before: tuple[PeerId, ...], keeps: bool, now: float) -> None:
        for peer in self._peers.linked:
            if peer not in before:
                self._greet(peer, keeps, now)

    # Heads.

    def tell_news(self, keeps: bool, now: float) -> None:
        """Tell the lazy peers what is new."""
        for peer in self._peers.take_news():
            self._tell(peer, keeps, now)

    def answer_heads(self, peer: PeerId, heads: Heads, keeps: bool, now: float) -> None:
        """Tell a peer what there is that tells us, since it asks, or has nobody who would."""
        is_lazy = peer in self._peers and peer not in self._flood.neighbors
        if not is_lazy or (self._stores() and heads.waited_ms):
            self._announcements.send_heads(peer, keeps, now)
        elif heads.waited_ms:
            self._tell(peer, keeps, now)

    def _greet(self, peer: PeerId, keeps: bool, now: float) -> None:
        """Tell a new lazy peer how far the chains go, the policy first: neighbours may withhold that, too."""
        self._told_whole.pop(peer, None)
        self._announcements.send_policy((peer,))
        self._announcements.send_revocations(peer, self._recent.tails())
        self._tell(peer, keeps, now)

    def _tell(self, peer: PeerId, keeps: bool, now: float) -> None:
        """Tell a lazy peer how far the chains with news go; as a storage node, first how far all go."""
        if self._stores() and peer not in self._told_whole:
            # What a storage node says is taken for all that there is.
            self._told_whole = {each: None for each in (*self._told_whole, peer) if each in self._peers}
            self._announcements.send_heads(peer, keeps, now)
            return
        places = self._peers.places(self._ingest.chains)
        if self._stores():
            # What a storage node does not name counts as removed.
            keys = dict.fromkeys(place.author + place.device for place in places)
            places = self._announcements.places(-1, True, keys)
        self._announcements.send_places(peer, places, now)

    # Units.

    def note_resent(self, peer: PeerId, verified: Verified, said_at: float, now: float) -> None:
        """Note an event that a peer has resent; pass it on as neighbours would that should have sent it."""
        if peer not in self._peers or not self._is_late(said_at, now):
            return
        self._peers.note_provided(peer, now)
        self._inspection.suspect(now)
        unit, age = verified.unit, now - said_at
        card = self._context.cards.current_card(unit.author, unit.device)
        if card is not None and age < FRESH:
            self._suppression.spread(verified, card, (peer,), _FEWEST_HOPS, int(age * 1_000_000), now)

    def _is_late(self, said_at: float, now: float) -> bool:
        """Return whether the neighbours should have sent an event: they were here when it was published."""
        if self._met_at is None:
            return False
        self._met_at = min(self._met_at, now)  # Our clock may have been set back.
        return self._met_at < said_at and now - said_at < LATELY

    def read_recent(self, message: Resend, resent: Resent, now: float) -> Resent:
        """Add to an answer what the log lacks and the units that came last have.

        Who keeps the stream has evicted or refused what its log lacks, and hands it to nobody.
        """
        if resent.units or resent.reason is None or self._stores():
            return resent
        found = self._recent.read_range(message.author, message.device, message.first, message.last)
        chain = self._ingest.chains.get(message.author + message.device)
        if not found or chain is None:
            return resent
        card = self._context.cards.current_card(message.author, message.device)
        begins = found[0].unit.seq or 0
        ends = (found[-1].unit.seq or 0) + len(found[-1].unit.tails)
        is_all = begins <= message.first and ends > message.last
        return replace(
            resent,
            units=tuple(each.unit for each in found),
            cards=() if card is None else (card,),
            reason=None if is_all else resent.reason,
            ages_ms=tuple(_age_ms(chain, each, now) for each in found),
        )


def _age_ms(chain: Chain, verified: Verified, now: float) -> int:
    said_at = chain.moments.at(verified.unit.seq or 0)
    return 0 if said_at is None else max(0, int((now - said_at) * 1000))

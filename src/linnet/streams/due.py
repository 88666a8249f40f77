"""From where on chains are due to whoever reads here: what others are asked, and what they answer.

Who subscribes may find others only later. It tells them for how long it has read, and they tell from where on
each chain was said in that time (docs/adr/0027-made-at.md). While an answer is on its way, new chains are
held: what came behind something that is due as well must not be handed over first.
"""

from __future__ import annotations

from linnet.core.ids import PeerId
from linnet.delivery.chain import Chain, ChainKey
from linnet.delivery.event_archive import Archive
from linnet.delivery.messages import ChainPlace, Heads
from linnet.delivery.moments import SLACK
from linnet.delivery.ranges import Range
from linnet.streams.announcements import Announcements
from linnet.streams.ingest import Ingest
from linnet.streams.subscribe import Readers


class Due:
    """What is due of one stream, by the word of neighbours and storage nodes."""

    def __init__(
        self, ingest: Ingest, archive: Archive, readers: Readers, announcements: Announcements
    ) -> None:
        self._ingest = ingest
        self._archive = archive
        self._readers = readers
        self._announcements = announcements

    def handle_question(self, peer: PeerId, heads: Heads, keeps: bool, now: float) -> None:
        """Note what a peer asks; if it is about to answer us, let new chains wait for that."""
        if heads.waited_ms is None:
            return
        if heads.waited_ms:
            self._announcements.note_question(peer, heads.waited_ms, now)
        if self.is_final(heads):
            return
        waits = not self._ingest.asked
        self._ingest.asked[peer] = None
        if not heads.waited_ms and not self._announcements.has_asked(peer):
            self._announcements.send_heads(peer, keeps, now)
        if waits:
            self._announcements.wait_for_answers()

    def is_final(self, heads: Heads) -> bool:
        """Whether these heads are a peer's last word: it has answered, or it cannot, or nobody asks."""
        return heads.due is not None or heads.waited_ms is None or not self._announcements.asks

    def is_answered(self, peer: PeerId) -> bool:
        """A peer has said what is due; whether nobody else is asked, so that what was held gets its turn."""
        if peer not in self._ingest.asked:
            return False
        del self._ingest.asked[peer]
        return not self._ingest.asked

    def settle(self, place: ChainPlace, first: int) -> tuple[Chain | None, list[Range]]:
        """Somebody says that a chain was said in our time from this number on, and not before.

        Gives the chain if it begins earlier by that, and what of it has lost its turn, since something
        behind it was handed over.
        """
        chain = self._ingest.chains.get(place.author + place.device)
        if chain is None or self._ingest.wants_all or self._ingest.is_own(chain):
            return None, []
        base = chain.base
        if chain.promised < 0 and first > base and not len(chain.seen):
            # Whoever spoke before knew less of the chain: of what it did not know, this one says it is old.
            chain.rebase(first)
        if first > place.last:
            return None, []  # Nothing in our time, as far as this one knows.
        if chain.due_from(first):
            if chain.base == base:
                return None, []
            chain.announced = max(chain.announced, place.last)
            return chain, []
        chain.base = max(first, chain.told)
        return chain, chain.seen.missing(chain.base, base - 1)

    def remember(self, place: ChainPlace) -> None:
        """A durable subscription that comes back must know from where on this chain is due to it."""
        chain = self._ingest.chains.get(place.author + place.device)
        if chain is None or len(chain.seen) or self._ingest.wants_all or not self._readers.durable:
            return
        self._archive.due_from(chain.author, chain.device, chain.base)

    def answered(self, peer: PeerId, place: ChainPlace, first: int | None) -> None:
        """What most say was said in our time is not made old by who sends it again."""
        since, chain = self._readers.since, self._ingest.chains.get(place.author + place.device)
        if first is not None and since is not None and chain is not None:
            chain.moments.answered(peer, place.first, first, place.last, since)

    def look_back(self, key: ChainKey, now: float) -> None:
        """What follows the last that the log held was said after it, whatever is said of that."""
        chain = self._ingest.chains.get(key)
        if chain is None or chain.restored < 0:
            return
        said_at = self._archive.said_at(chain.author, chain.device, chain.restored)
        if said_at is not None:
            chain.moments.not_before(chain.restored + 1, min(said_at, now))

    def note_late(self, chain: Chain, keeps: bool, now: float) -> None:
        """Who asks us after a restart must not take for new what we had late."""
        said_at = chain.moments.at(chain.next - 1) if keeps else None
        if said_at is not None and said_at < now - SLACK:
            self._archive.came_late(chain.author, chain.device, chain.next - 1, said_at)

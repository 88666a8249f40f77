"""Holds storage nodes of one stream to what they have signed, and says what came of it.

A publisher keeps the latest statement of each storage node about its own chain, also over restarts. Now and
then, and whenever it is asked to, it picks two events that are stated: the last, and one by chance. The
storage node shows them, or signs why it does not. Two statements that contradict each other are a proof: it
is kept, passed on once, and the node counts no more (docs/adr/0038-what-storage-nodes-sign.md).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.delivery.context import Context
from linnet.delivery.flood import Flood
from linnet.delivery.messages import AskNumber, ChainPlace, Contradiction, Kept, Shown
from linnet.delivery.storage_statements import (
    EXCUSES,
    check_contradiction,
    check_shown,
    contradicting_chain,
    place_of,
)
from linnet.machine.outbox import Outbox
from linnet.streams.commands import StorageCheck, StorageChecked, StorageOutcome
from linnet.streams.publisher import Publisher
from linnet.trace.records import Kind, Record

CHECK_PERIOD = 6 * 3600.0
"""Seconds between checks that nobody asked for, also over restarts."""
CHECK_PAUSE = 30.0
"""Seconds until a check that is overdue: shorter than a node stays in a stream that it only published to."""
CHECK_TIMEOUT = 8.0
"""Seconds in which a storage node must answer; they include making the link."""
WRITE_PERIOD = 60.0
"""Seconds between writes of the latest statement: receipts come several times a second."""
MOST_EARLY = 8
"""Proofs that wait until their storage node is known: a neighbour may be faster than the tracker."""
MOST_WRONG = 1024
MOST_KEPT = 16
"""Storage nodes of a stream whose statements are kept."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Kept).decode
_decode_time = msgspec.msgpack.Decoder(float).decode
_CHECKED = "kept checked"


class CheckDue(TopicTimer, frozen=True, gc=False):
    """Time for the next check that nobody asked for."""


class CheckOver(TopicTimer, frozen=True, gc=False):
    """The time is up in which storage nodes could answer a check."""


class _Stated(Struct, eq=False):
    """The latest statement of a storage node about our chain."""

    kept: Kept
    place: ChainPlace
    written_at: float
    is_written: bool


class StorageChecks:
    """The statements of the storage nodes of one stream about our chain, and the checks of them."""

    def __init__(
        self, topic: TopicId, context: Context, publisher: Publisher, flood: Flood, out: Outbox
    ) -> None:
        self._topic = topic
        self._context = context
        self._publisher = publisher
        self._flood = flood
        self._out = out
        self._chain = context.author + context.device
        self._space = f"kept {topic.hex()}"
        self._storage: dict[PeerId, Contact] = {}
        self._stated: dict[PeerId, _Stated] = {}
        self.outcomes: dict[PeerId, StorageCheck] = {}
        """The latest outcome for each storage node."""
        self._early: dict[PeerId, tuple[PeerId, Contradiction]] = {}
        """Proofs against nodes that are not known to keep the stream, and who sent them; not checked yet."""
        self._wrong: dict[PeerId, None] = {}
        """Storage nodes that contradict what we know ourselves: a proof only for those who believe us."""
        self._asked: dict[PeerId, dict[int, int]] = {}
        """For each storage node that is being checked, the requests by number."""
        self._held: dict[PeerId, None] = {}
        self._found: dict[PeerId, StorageCheck] = {}
        self._requests: list[int] = []
        self._is_waiting = False
        """Whether a check waits until the storage nodes are known."""
        self._request = 0
        self._armed = False
        for key, raw in context.store.cells.scan(self._space):
            kept = _decode(raw)
            found = place_of(kept, self._chain)
            if found is not None and len(self._stated) < MOST_KEPT:
                self._stated[PeerId(key)] = _Stated(kept, found[0], 0.0, is_written=True)

    def is_wrong(self, peer: PeerId) -> bool:
        """Return whether a storage node has signed what is not true."""
        return peer in self._context.contradictions or peer in self._wrong

    def set_storage(self, nodes: Iterable[Contact], now: float) -> None:
        """Replace the storage nodes of the stream; proofs that came earlier may be against some of them."""
        self._storage = {node.peer: node for node in nodes if not self.is_wrong(node.peer)}
        self.resume(now)
        if self._storage and self._is_waiting:
            self._begin(now)
        early = [self._early.pop(peer) for peer in list(self._early) if peer in self._storage]
        for peer, proof in early:
            self.handle_contradiction(peer, proof, now)

    def resume(self, now: float) -> None:
        """Have the next check that nobody asks for come, once there is something to check."""
        if not self._armed and any(peer in self._storage for peer in self._stated):
            self._armed = True
            kept = self._context.store.cells.get(_CHECKED, self._topic)
            since = CHECK_PERIOD if kept is None else now - _decode_time(kept)
            pause = min(max(CHECK_PERIOD - since, CHECK_PAUSE), CHECK_PERIOD)
            self._out.set_timer(pause, CheckDue(self._topic))

    def reject(self, keeper: PeerId) -> None:
        """Record that the word of a storage node does not count."""
        self._record(keeper, "a storage node that is proved wrong")

    # Statements.

    def note_statement(self, kept: Kept, now: float) -> bool:
        """Compare a checked statement with what is known; return whether its storage node may count."""
        keeper = kept.keeper
        if self.is_wrong(keeper):
            self.reject(keeper)
            return False
        if keeper not in self._storage:
            return True  # It does not count in any case, and keys are free.
        known = self._stated.get(keeper)
        if known is not None and contradicting_chain(known.kept, kept) is not None:
            self._prove(Contradiction(known.kept, kept), now)
            return False
        found = place_of(kept, self._chain)
        if found is None:
            return True
        place, head = found
        ours = self._publisher.id_at(place.last) if place.last < self._publisher.next else None
        if ours is not None and ours != head:
            self._note_wrong(keeper, place.last, now)
            return False
        if known is None or kept.position >= known.kept.position:
            self._remember(keeper, known, kept, place, now)
        return True

    def _remember(
        self, keeper: PeerId, known: _Stated | None, kept: Kept, place: ChainPlace, now: float
    ) -> None:
        if known is None:
            if len(self._stated) >= MOST_KEPT:
                self._forget_one()
            known = self._stated[keeper] = _Stated(kept, place, 0.0, is_written=False)
        known.kept, known.place, known.is_written = kept, place, False
        if abs(now - known.written_at) >= WRITE_PERIOD:
            self._write(keeper, known, now)
        self.resume(now)

    def _forget_one(self) -> None:
        """Make room: forget a node that keeps the stream no more, or else the oldest."""
        gone = next((peer for peer in self._stated if peer not in self._storage), next(iter(self._stated)))
        del self._stated[gone]
        self._context.store.cells.delete(self._space, gone)

    def _write(self, keeper: PeerId, stated: _Stated, now: float) -> None:
        stated.written_at, stated.is_written = now, True
        self._context.store.cells.put(self._space, keeper, _encode(stated.kept))

    def _write_all(self, now: float) -> None:
        for keeper, stated in self._stated.items():
            if not stated.is_written:
                self._write(keeper, stated, now)

    # Proofs.

    def handle_contradiction(self, peer: PeerId, proof: Contradiction, now: float) -> bool:
        """Take in a proof against a storage node of this stream; return whether it is news.

        Anybody can make proofs against keys of their own, so those against others are only remembered for a
        while: they may turn out to be storage nodes.
        """
        keeper = proof.kept.keeper
        if self.is_wrong(keeper):
            return False
        if keeper not in self._storage:
            self._early[keeper] = peer, proof
            if len(self._early) > MOST_EARLY:
                dropped = next(iter(self._early))
                del self._early[dropped]
                note = "a proof against who keeps nothing here"
                reason = Reason.TOO_MANY
                self._out.record(Record(Kind.DROPPED, self._topic, peer=dropped, reason=reason, note=note))
            return False
        try:
            check_contradiction(proof)
        except RemoteError as error:
            note = "a false proof against a storage node"
            self._out.record(Record(Kind.REJECTED, self._topic, peer=peer, reason=error.reason, note=note))
            self._out.blame(peer, error.reason)
            return False
        self._prove(proof, now, peer)
        return True

    def greet_neighbor(self, peer: PeerId) -> None:
        """Show a new neighbour the proofs from this stream."""
        if peer in self._context.keeping:
            for proof in self._context.contradictions.of_topic(self._topic):
                self._out.send(peer, proof)

    def _prove(self, proof: Contradiction, now: float, source: PeerId | None = None) -> None:
        """Keep a checked proof, and pass it on once."""
        keeper = proof.kept.keeper
        place = contradicting_chain(proof.kept, proof.other)
        number = None if place is None else place.last
        self._context.contradictions.keep(proof)
        self._record(keeper, "a storage node contradicts what it signed")
        self._conclude(StorageCheck(keeper, StorageOutcome.WRONG, now, number, Reason.EQUIVOCATION))
        for peer in self._flood.neighbors:
            if peer not in (source, keeper) and peer in self._context.keeping:
                self._out.committed.send(peer, proof)

    def _note_wrong(self, keeper: PeerId, number: int, now: float) -> None:
        self._wrong[keeper] = None
        if len(self._wrong) > MOST_WRONG:
            del self._wrong[next(iter(self._wrong))]
        self._record(keeper, "signed another id than that of our event, unless this device is an older copy")
        self._conclude(StorageCheck(keeper, StorageOutcome.WRONG, now, number, Reason.FORKED_CHAIN))

    def _record(self, keeper: PeerId, note: str) -> None:
        self._out.committed.record(
            Record(Kind.REJECTED, self._topic, peer=keeper, reason=Reason.EQUIVOCATION, note=note)
        )

    # Checks.

    def check(self, request: int | None, now: float) -> None:
        """Ask all storage nodes to show what they have stated; answer a request when they did."""
        self._write_all(now)
        if request is not None:
            self._requests.append(request)
        if self._asked or self._is_waiting:
            return  # One is under way: its outcome answers this request, too.
        if self._storage:
            self._begin(now)
        else:  # The stream may just have been joined.
            self._is_waiting = True
            self._found = {}
            self._out.set_timer(CHECK_TIMEOUT, CheckOver(self._topic))

    def _begin(self, now: float) -> None:
        self._is_waiting, self._found = False, {}
        self._context.store.cells.put(_CHECKED, self._topic, _encode(now))
        for peer, node in self._storage.items():
            stated = self._stated.get(peer)
            if stated is None:
                # It has confirmed nothing, or its version signs receipts that say too little.
                is_known = self._publisher.ledger.find_last(peer, self._chain) >= 0
                why = Reason.UNSUPPORTED if is_known else Reason.NOT_HELD
                self._conclude(StorageCheck(peer, StorageOutcome.UNCHECKED, now, None, why))
                continue
            place = stated.place
            # Of a chain that was evicted whole, nothing but its end is stated.
            luck = self._context.rng.randint(min(place.first, place.last), place.last)
            numbers = dict.fromkeys((place.last, luck))
            self._asked[peer] = {self._next_request(): number for number in numbers}
            self._held[peer] = None
            self._out.hold(peer, node.hints, self._purpose)
            self._ask(peer)
        if self._asked:
            self._out.set_timer(CHECK_TIMEOUT, CheckOver(self._topic))
        else:
            self._end_if_done()

    def check_by_itself(self, now: float) -> None:
        """Make the check that nobody asked for, and set the next one."""
        self._armed = False
        self.check(None, now)
        self.resume(now)

    def handle_link_up(self, peer: PeerId) -> None:
        """Ask a storage node that is being checked, now that its link is open."""
        self._ask(peer)

    def handle_shown(self, peer: PeerId, shown: Shown, now: float) -> bool:
        """Judge an answer; return whether the storage node is proved wrong by it."""
        waiting = self._asked.get(peer)
        number = None if waiting is None else waiting.get(shown.request)
        stated = self._stated.get(peer)
        is_ours = shown.author + shown.device == self._chain and shown.number == number
        if waiting is None or stated is None or not is_ours or shown.keeper != peer:
            self._out.record(Record(Kind.REJECTED, self._topic, peer=peer, reason=Reason.STALE, note="shown"))
            return False
        try:
            check_shown(shown)
        except RemoteError as error:
            self._out.record(Record(Kind.REJECTED, self._topic, peer=peer, reason=error.reason, note="shown"))
            self._out.blame(peer, error.reason)
            return False
        del waiting[shown.request]
        if contradicting_chain(stated.kept, shown) is not None:
            del self._asked[peer]
            self._prove(Contradiction(stated.kept, shown), now)
        else:
            self._note_shown(peer, stated, shown, now)
            if not waiting:
                del self._asked[peer]
        self._end_if_done()
        return self.is_wrong(peer)

    def _note_shown(self, peer: PeerId, stated: _Stated, shown: Shown, now: float) -> None:
        ours = self._publisher.id_at(shown.number)
        if shown.store != stated.kept.store:
            check = StorageCheck(peer, StorageOutcome.GONE, now, shown.number, Reason.LOST)
        elif shown.id is None:
            # Without an excuse it is at an earlier position: its store was put back from a copy.
            why = shown.reason if shown.reason in EXCUSES else Reason.LOST
            check = StorageCheck(peer, StorageOutcome.GONE, now, shown.number, why)
        elif ours is not None and shown.id != ours:
            self._note_wrong(peer, shown.number, now)
            return
        elif not self._is_whole(shown):
            check = StorageCheck(peer, StorageOutcome.SILENT, now, shown.number, Reason.MALFORMED)
        else:
            check = StorageCheck(peer, StorageOutcome.KEPT, now, stated.place.last)
        before = self._found.get(peer)
        if before is None or before.outcome is StorageOutcome.KEPT:
            self._conclude(check)

    def _is_whole(self, shown: Shown) -> bool:
        """Return whether the event is shown whose id was signed."""
        if shown.unit is None:
            return False
        try:
            verified, _ = self._context.check(shown.unit, shown.card, None)
        except RemoteError:
            return False
        return any(event.seq == shown.number and event.id == shown.id for event in verified.events)

    def end(self, now: float) -> None:
        """End the check: who has not answered by now does not."""
        self._is_waiting = False
        for peer, waiting in list(self._asked.items()):
            number = max(waiting.values())
            self._conclude(StorageCheck(peer, StorageOutcome.SILENT, now, number, Reason.TIMEOUT))
            del self._asked[peer]
        self._release()
        self._answer()

    def stop(self, now: float) -> None:
        """Stop checking: the stream is left."""
        self._write_all(now)
        self._out.cancel_timer(CheckDue(self._topic))
        self._armed = False
        if self._asked or self._is_waiting:
            self._out.cancel_timer(CheckOver(self._topic))
        self.end(now)

    def _ask(self, peer: PeerId) -> None:
        if peer not in self._context.keeping:
            return
        for request, number in self._asked.get(peer, {}).items():
            author, device = self._context.author, self._context.device
            self._out.send(peer, AskNumber(self._topic, request, author, device, number))

    def _conclude(self, check: StorageCheck) -> None:
        self._found[check.node] = self.outcomes[check.node] = check
        for outcomes in (self._found, self.outcomes):
            if len(outcomes) > MOST_KEPT:
                del outcomes[next(iter(outcomes))]
        if check.outcome is not StorageOutcome.KEPT:
            note = f"storage check: {check.outcome}"
            self._out.record(
                Record(
                    Kind.CONTROL,
                    self._topic,
                    seq=check.number,
                    peer=check.node,
                    reason=check.reason,
                    note=note,
                )
            )

    def _end_if_done(self) -> None:
        self._release()
        if not self._asked:
            self._out.cancel_timer(CheckOver(self._topic))
            self._answer()

    def _release(self) -> None:
        """Release the links of those that were checked."""
        for peer in [peer for peer in self._held if peer not in self._asked]:
            del self._held[peer]
            self._out.release(peer, self._purpose)

    def _answer(self) -> None:
        requests, self._requests = self._requests, []
        for request in requests:
            self._out.committed.reply(request, StorageChecked(self._topic, tuple(self._found.values())))

    def _next_request(self) -> int:
        self._request += 1
        return self._request

    @property
    def _purpose(self) -> str:
        return f"check {self._topic.hex()[:16]}"

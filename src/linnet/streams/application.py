"""Carries out the application's commands in a stream: publish, declare, subscribe, and manage readers.

Events are written first; they are sent, delivered and confirmed once they are durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from linnet.core.errors import InvalidEvent, Refused, RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.flood import unit_record
from linnet.delivery.receipts import ReceiverFate
from linnet.delivery.subscriptions import Cursor
from linnet.event.event import MESSAGE, Tail, Verified
from linnet.event.signing import message_tail
from linnet.groups.labels import Device
from linnet.identity.cards import check_dates
from linnet.machine.commands import Declined
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.commands import (
    AllowReader,
    AskToRead,
    Declare,
    DisallowReader,
    ListReaders,
    Publish,
    Published,
    ReaderIs,
    ReadersAre,
    RequestIs,
    Subscribe,
    Subscribed,
)
from linnet.streams.sealed.access_request import parse_request
from linnet.streams.sealed.owner import KIND as ANNOUNCEMENT
from linnet.streams.sealed.owner import Admitted, device_of
from linnet.streams.stream import Stream
from linnet.streams.subscribe import DURABLE, SUBSCRIBED, shown
from linnet.trace.records import Kind, Record

NAME_CHARS = 128
"""The most characters in the name of a durable subscription."""


class Application:
    """Carries out the application's commands for an open stream."""

    def __init__(self, context: Context, out: Outbox) -> None:
        self._context = context
        self._out = out

    # Publishing.

    def publish(
        self, stream: Stream, request: int, command: Publish, now: float, unsent: Reason | None = None
    ) -> None:
        """Publish events; `unsent` is why the stream has no neighbours.

        Raises `RemoteError` if our own card or the stream's owner forbids it.
        """
        tails = [message_tail(body, int(now * 1000)) for body in command.bodies]
        if not tails:
            self._out.reply(request, Declined(Reason.MALFORMED, "nothing to publish"))
            return
        objection = stream.sealed.objection(tails)
        if objection is not None:
            self._out.reply(request, objection)
            return
        outcome, promises = self._say(stream, tails, now)
        outcome = replace(outcome, unsent=unsent)
        answer = stream.publisher.await_storage(request, outcome, command.confirm, now)
        if answer is not None:
            promises.reply(request, answer)
        self._out.committed.extend(promises)

    def declare(self, stream: Stream, request: int, command: Declare, now: float) -> None:
        """Set the policy of our stream. A sealed stream stays sealed: its readers must never find it open."""
        objection = self._why_not_declared(stream, command)
        policy = command.policy
        if objection is None and command.sealed:
            self._permit(stream, now)
            stream.sealed.start(now)
            policy = replace(policy, publishers=(), sealer=self._context.device)
        tail = stream.governance.tail(policy, stream.governance.next_time(now))
        objection = objection or stream.sealed.objection([tail])
        if objection is not None:
            self._out.reply(request, objection)
            return
        outcome, promises = self._say(stream, [tail], now)
        promises.reply(request, stream.publisher.await_storage(request, outcome, 0.0, now))
        self._out.committed.extend(promises)

    def _why_not_declared(self, stream: Stream, command: Declare) -> Declined | None:
        context = self._context
        if stream.governance.owner != context.author:
            detail = "only the owner of a stream sets its policy: its name begins with the owner's person id"
            return Declined(Reason.NOT_A_PUBLISHER, detail)
        sealer = stream.governance.policy.sealer
        taken_over = sealer is not None and context.cards.revocation_of(context.author, sealer) is not None
        if sealer not in (None, context.device) and not taken_over:
            detail = "another device of yours seals this stream: decide about it there, or revoke that device"
            return Declined(Reason.NOT_ALLOWED, detail)
        if (stream.sealed.is_ours or sealer is not None) and not command.sealed:
            detail = "this stream is sealed and stays so: declare it sealed again, or another one open"
            return Declined(Reason.NOT_ALLOWED, detail)
        if command.sealed and command.policy.publishers:
            detail = "in a sealed stream nobody can publish but the device that seals it: name no others"
            return Declined(Reason.UNSUPPORTED, detail)
        return None

    def _say(self, stream: Stream, tails: Sequence[Tail], now: float) -> tuple[Published, Promises]:
        """Write our events, after a key announcement if one is due; the promises go out after the commit."""
        self._permit(stream, now)
        promises = Promises()
        ids: list[EventId] = []
        if tails[0].kind == MESSAGE and stream.sealed.is_due(now):
            self._announce(stream, stream.sealed.turn(stream.publisher.next, now), promises, now)
        first = stream.publisher.next
        for verified in stream.publisher.sign(stream.sealed.seal(tails, first, stream.publisher.prev)):
            ids += [event.id for event in verified.events]
            self._add_own(stream, verified, promises, now)
        # If this node keeps the stream for others, the events are kept by the time of the answer.
        kept = (ReceiverFate(self._context.peer, True, now),) if stream.stores else ()
        return Published(stream.topic, first, tuple(ids), len(stream.flood.neighbors), kept), promises

    def _announce(self, stream: Stream, body: bytes, promises: Promises, now: float) -> None:
        """Announce a key to readers: an event of our chain in its own unit, to be requested alone."""
        tail = Tail(None, None, None, None, ANNOUNCEMENT, None, int(now * 1000), None, body)
        for verified in stream.publisher.sign([tail]):
            self._add_own(stream, verified, promises, now)

    def _add_own(self, stream: Stream, verified: Verified, promises: Promises, now: float) -> None:
        """Write a unit of ours, which is sent and delivered once it is durable."""
        chain, due, _ = stream.ingest.accept(verified, now)
        if not due:
            raise InvalidEvent(Reason.FORKED_CHAIN, "our own chain does not go on where it ended")
        stream.flood.distinct += 1
        stream.forks.recent.add(verified)
        position = stream.archive.keep(verified, now)
        record = unit_record(Kind.PUBLISHED, verified)
        # Events for nodes are handed to no application: a search for their deliveries must know that.
        kind = verified.events[0].kind
        promises.record(record if shown(verified, stream.governance.owner) else replace(record, note=kind))
        if stream.flood.neighbors:
            stream.flood.spread(verified, self._context.card, (), 1, 0, now, promises)
        else:
            stream.publisher.hold_back(verified, promises)
        stream.readers.hand_own(verified, position, promises)
        stream.governance.read(verified)
        stream.keeper.note_written(chain)
        stream.keeper.evict_later()
        stream.announcements.note_news(chain)
        stream.lazy.note_news()
        stream.lazy.note_published(now)

    def _permit(self, stream: Stream, now: float) -> None:
        """Raise `RemoteError` unless we may publish here."""
        context = self._context
        if stream.governance.owner != context.author:
            stream.governance.admit(context.author)
        check_dates(context.card, now)
        if context.cards.revocation_of(context.author, context.device) is not None:
            raise RemoteError(Reason.CARD_REVOKED, "this device was revoked by its person")

    # Subscribing.

    def subscribe(self, stream: Stream, request: int, command: Subscribe, now: float) -> None:
        """Begin a subscription; its first items follow the answer."""
        objection = _objection(stream, command)
        if objection is not None:
            self._out.reply(request, objection)
            return
        if command.name is None:
            reader = stream.readers.add(command, None, now if command.live else None)
            self._out.reply(request, Subscribed(stream.topic, False))
            self._out.record(Record(Kind.CONTROL, stream.topic, note=SUBSCRIBED))
            stream.readers.begin(reader)
        else:
            self._begin_durable(stream, request, command, command.name, now)
        stream.ask_anchor(now)
        stream.ask_neighbors(now)

    def _begin_durable(self, stream: Stream, request: int, command: Subscribe, name: str, now: float) -> None:
        cursor = Cursor(stream.topic, name, self._context.store.cells)
        stream.take_again(is_needed=True)  # Else what is written from now on would follow a hole.
        kept = stream.keeps
        made_at: float | None = None
        if cursor.resumed:
            made_at = cursor.unsettled_since(now)
            stream.ingest.wants_all |= made_at is None
            stream.ingest.resumes |= made_at is not None
        elif command.since is None:
            made_at = now
            cursor.begin(self._context.store.log.end(), now)
            for chain in stream.ingest.chains.values():
                if chain.next:
                    stream.archive.pass_over(chain.author, chain.device, chain.next - 1)
        else:
            cursor.begin(0)
            stream.ingest.wants_all = True
        # From now on everything is written; continue from what the log holds.
        goes_back = not kept and (cursor.resumed or stream.ingest.wants_all)
        if goes_back:
            stream.readers.go_back(stream.ingest.restore(cursor.resumed))
        reader = stream.readers.add(command, cursor, made_at)
        if stream.ingest.anchored:
            cursor.settle()
        promises = Promises()
        promises.reply(request, Subscribed(stream.topic, cursor.resumed))
        promises.record(Record(Kind.CONTROL, stream.topic, note=DURABLE))
        self._out.committed.extend(promises)
        stream.readers.begin(reader)
        if goes_back:
            for chain in stream.ingest.chains.values():
                stream.gaps.review_chain(chain)

    # Readers of a sealed stream.

    def ask_to_read(self, stream: Stream, request: int, command: AskToRead, now: float) -> None:
        """Make a request to read a sealed stream; raises `Refused` if it cannot be made."""
        if stream.governance.owner is None:
            raise Refused(Reason.UNSUPPORTED, "a stream without an owner is open: everyone reads it")
        if stream.sealed.is_ours:
            raise Refused(Reason.NOT_ALLOWED, "this device seals the stream and reads it anyway")
        line = stream.sealed.following.ask(now)
        self._out.committed.reply(request, RequestIs(stream.topic, line))

    def allow_reader(self, stream: Stream, request: int, command: AllowReader, now: float) -> None:
        """Let a device read a stream that this device seals.

        Raises `BadText` if the request is unreadable, `Refused` or `RemoteError` if it cannot be granted.
        """
        asked = parse_request(command.request, now, self._context.card_check)
        self._permit(stream, now)
        # If an epoch is due, as it is old or a reader was revoked, the new reader must not share the old one.
        from_now = command.from_now or stream.sealed.is_due(now)
        body = stream.sealed.allow(asked, stream.publisher.next, from_now, now)
        admitted = stream.sealed.owned.readers[asked.reader.author + asked.reader.device]
        self._tell_readers(stream, request, body, (admitted,), now)

    def disallow_reader(self, stream: Stream, request: int, command: DisallowReader, now: float) -> None:
        """Remove readers from a stream that this device seals; raises `Refused` or `RemoteError`."""

        def is_out(device: Device) -> bool:
            meant = (command.person, device.author), (command.device, device.device)
            return any(wanted is not None for wanted, _ in meant) and all(
                wanted is None or wanted == found for wanted, found in meant
            )

        self._permit(stream, now)
        body, gone = stream.sealed.disallow(is_out, stream.publisher.next, now)
        self._tell_readers(stream, request, body, gone, now)

    def list_readers(self, stream: Stream, request: int, command: ListReaders, now: float) -> None:
        """List the readers of a stream that this device seals; raises `Refused` if it does not."""
        self._out.reply(request, _readers_of(stream, ()))

    def _tell_readers(
        self, stream: Stream, request: int, body: bytes, changed: Iterable[Admitted], now: float
    ) -> None:
        promises = Promises()
        self._announce(stream, body, promises, now)
        promises.reply(request, _readers_of(stream, changed))
        self._out.committed.extend(promises)


def _readers_of(stream: Stream, changed: Iterable[Admitted]) -> ReadersAre:
    """Return the readers of a stream that this device seals; raises `Refused` if it does not."""
    owned = stream.sealed.owned
    present = owned.present
    readers = tuple(_reader(owned.readers[key]) for key in sorted(owned.readers))
    since = None if present is None else present.came
    return ReadersAre(stream.topic, owned.epoch, since, readers, tuple(map(_reader, changed)))


def _reader(reader: Admitted) -> ReaderIs:
    card = reader.card
    return ReaderIs(*device_of(reader), card.device_key, card.label, reader.since, reader.at)


def _objection(stream: Stream, command: Subscribe) -> Declined | None:
    if command.subscription in stream.readers:
        return Declined(Reason.IN_USE, f"there is a subscription {command.subscription} already")
    if command.name is None:
        return None
    if not 0 < len(command.name) <= NAME_CHARS or not command.name.isprintable():
        return Declined(Reason.MALFORMED, f"a subscription's name has 1 to {NAME_CHARS} printable characters")
    if stream.readers.is_named(command.name):
        return Declined(Reason.IN_USE, f"the durable subscription {command.name!r} is on already")
    if command.since:
        detail = (
            "a durable subscription begins now or at the beginning; leave out its name to begin at a time"
        )
        return Declined(Reason.UNSUPPORTED, detail)
    if not command.live:
        return Declined(Reason.UNSUPPORTED, "a durable subscription is live; leave out its name for history")
    return None

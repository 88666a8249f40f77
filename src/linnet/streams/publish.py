"""Publishing: sign, write, and once that is durable send, deliver here and answer."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.delivery.flood import unit_record
from linnet.event.event import MESSAGE, Tail, Verified
from linnet.identity.cards import check_dates
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.commands import Fate, Policy, Published
from linnet.streams.reader import shown
from linnet.streams.sealed.announcement import KIND as ANNOUNCEMENT
from linnet.streams.stream import Stream
from linnet.trace.records import Kind


def publish(
    stream: Stream,
    context: Context,
    out: Outbox,
    request: int,
    tails: Sequence[Tail],
    confirm: float,
    now: float,
    unsent: Reason | None = None,
) -> None:
    """Say these in a stream; `unsent` is why it has no neighbours.

    Raises `RemoteError` if our own card or the stream's owner forbids it.
    """
    if not tails:
        out.reply(request, Declined(Reason.MALFORMED, "nothing to publish"))
        return
    objection = stream.sealed.objection(tails)
    if objection is not None:
        out.reply(request, objection)
        return
    permit(stream, context, now)
    promises = Promises()
    ids: list[EventId] = []
    if tails[0].kind == MESSAGE and stream.sealed.is_due(now):
        announce(stream, context, stream.sealed.turn(stream.publishing.next, now), promises, now)
    first = stream.publishing.next
    for verified in stream.publishing.sign(stream.sealed.seal(tails, first, stream.publishing.prev)):
        ids += [event.id for event in verified.events]
        _add_own(stream, context, verified, promises, now)
    # The answer goes out after the commit: what this node keeps for others is kept by then.
    kept = (Fate(context.peer, True, now),) if stream.stores else ()
    outcome = Published(stream.topic, first, tuple(ids), len(stream.flood.neighbors), kept, unsent)
    answer = stream.publishing.await_storage(request, outcome, confirm, now)
    if answer is not None:
        promises.reply(request, answer)
    out.committed.extend(promises)


def declare(
    stream: Stream,
    context: Context,
    out: Outbox,
    request: int,
    policy: Policy,
    now: float,
    sealed: bool = False,
) -> None:
    """Set the policy of a stream that is ours. What is sealed stays so: nobody shall find it open one day."""
    if stream.governance.owner != context.author:
        detail = "only the owner of a stream sets its policy: its name begins with the owner's person id"
        out.reply(request, Declined(Reason.NOT_A_PUBLISHER, detail))
        return
    sealer = stream.governance.policy.sealer
    taken_over = sealer is not None and context.cards.revocation_of(context.author, sealer) is not None
    if sealer not in (None, context.device) and not taken_over:
        detail = "another device of yours seals this stream: decide about it there, or revoke that device"
        out.reply(request, Declined(Reason.NOT_ALLOWED, detail))
        return
    if (stream.sealed.is_ours or sealer is not None) and not sealed:
        detail = "this stream is sealed and stays so: declare it sealed again, or another one open"
        out.reply(request, Declined(Reason.NOT_ALLOWED, detail))
        return
    if sealed:
        if policy.publishers:
            detail = "in a sealed stream nobody can publish but the device that seals it: name no others"
            out.reply(request, Declined(Reason.UNSUPPORTED, detail))
            return
        permit(stream, context, now)
        stream.sealed.start(now)
        policy = replace(policy, publishers=(), sealer=context.device)
    tail = stream.governance.tail(policy, int(now * 1000))
    publish(stream, context, out, request, [tail], 0.0, now)


def announce(stream: Stream, context: Context, body: bytes, promises: Promises, now: float) -> None:
    """Tell readers a key: an event of our chain, in a unit of its own, so that it can be had by itself."""
    tail = Tail(None, None, None, None, ANNOUNCEMENT, None, int(now * 1000), None, body)
    for verified in stream.publishing.sign([tail]):
        _add_own(stream, context, verified, promises, now)


def _add_own(stream: Stream, context: Context, verified: Verified, promises: Promises, now: float) -> None:
    """Write a unit of ours; it is sent and delivered when that is durable."""
    chain, due, _ = stream.ingest.accept(verified, now)
    if not due:
        raise InvalidEvent(Reason.FORKED_CHAIN, "our own chain does not go on where it ended")
    stream.flood.distinct += 1
    position = stream.archive.keep(verified, now)
    record = unit_record(Kind.PUBLISHED, verified)
    # No application is handed what only nodes need: whoever asks where it was delivered must know.
    kind = verified.events[0].kind
    promises.record(record if shown(verified, stream.governance.owner) else replace(record, note=kind))
    if stream.flood.neighbors:
        promises.extend(stream.flood.spread(verified, context.card, (), 1, 0, now))
    else:
        stream.publishing.hold_back(verified, promises)
    stream.readers.hand_own(verified, position, promises)
    stream.governance.read(verified)
    stream.keeper.note_written(chain)
    stream.keeper.evict_later()
    stream.announcements.note_news(chain)


def permit(stream: Stream, context: Context, now: float) -> None:
    """Raise `RemoteError` unless we may publish here."""
    if stream.governance.owner != context.author:
        stream.governance.admit(context.author)
    check_dates(context.card, now)
    if context.cards.revocation_of(context.author, context.device) is not None:
        raise RemoteError(Reason.CARD_REVOKED, "this device was revoked by its person")

"""Publishing: sign, write, and once that is durable send, deliver here and answer."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from linnet.core.effects import AfterCommit, Reply
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.delivery.flood import unit_record
from linnet.event.event import MESSAGE, Tail, Verified
from linnet.identity.cards import check_dates
from linnet.streams.commands import Fate, Policy, Published
from linnet.streams.effects import StreamEffect, StreamPromise
from linnet.streams.reader import shown
from linnet.streams.sealed.announcement import KIND as ANNOUNCEMENT
from linnet.streams.stream import Stream
from linnet.trace.records import Kind


def publish(
    stream: Stream,
    context: Context,
    request: int,
    tails: Sequence[Tail],
    confirm: float,
    now: float,
    unsent: Reason | None = None,
) -> list[StreamEffect]:
    """Say these in a stream; `unsent` is why it has no neighbours.

    Raises `RemoteError` if our own card or the stream's owner forbids it.
    """
    if not tails:
        return [Reply(request, Declined(Reason.MALFORMED, "nothing to publish"))]
    objection = stream.sealed.objection(tails)
    if objection is not None:
        return [Reply(request, objection)]
    permit(stream, context, now)
    promises: list[StreamPromise] = []
    effects: list[StreamEffect] = []
    ids: list[EventId] = []
    if tails[0].kind == MESSAGE and stream.sealed.is_due(now):
        effects += announce(stream, context, stream.sealed.turn(stream.publishing.next, now), promises, now)
    first = stream.publishing.next
    for verified in stream.publishing.sign(stream.sealed.seal(tails, first, stream.publishing.prev)):
        ids += [event.id for event in verified.events]
        effects += _own(stream, context, verified, promises, now)
    # The answer goes out after the commit: what this node keeps for others is kept by then.
    kept = (Fate(context.peer, True, now),) if stream.stores else ()
    outcome = Published(stream.topic, first, tuple(ids), len(stream.flood.neighbors), kept, unsent)
    for effect in stream.publishing.published(request, outcome, confirm, now):
        if isinstance(effect, Reply):
            promises.append(effect)
        else:
            effects.append(effect)
    return [*effects, AfterCommit(tuple(promises))]


def declare(
    stream: Stream, context: Context, request: int, policy: Policy, now: float, sealed: bool = False
) -> list[StreamEffect]:
    """Set the policy of a stream that is ours. What is sealed stays so: nobody shall find it open one day."""
    if stream.governance.owner != context.author:
        detail = "only the owner of a stream sets its policy: its name begins with the owner's person id"
        return [Reply(request, Declined(Reason.NOT_A_PUBLISHER, detail))]
    sealer = stream.governance.policy.sealer
    taken_over = sealer is not None and context.cards.revocation_of(context.author, sealer) is not None
    if sealer not in (None, context.device) and not taken_over:
        detail = "another device of yours seals this stream: decide about it there, or revoke that device"
        return [Reply(request, Declined(Reason.NOT_ALLOWED, detail))]
    if (stream.sealed.is_ours or sealer is not None) and not sealed:
        detail = "this stream is sealed and stays so: declare it sealed again, or another one open"
        return [Reply(request, Declined(Reason.NOT_ALLOWED, detail))]
    if sealed:
        if policy.publishers:
            detail = "in a sealed stream nobody can publish but the device that seals it: name no others"
            return [Reply(request, Declined(Reason.UNSUPPORTED, detail))]
        permit(stream, context, now)
        stream.sealed.start(now)
        policy = replace(policy, publishers=(), sealer=context.device)
    tail = stream.governance.tail(policy, int(now * 1000))
    return publish(stream, context, request, [tail], 0.0, now)


def announce(
    stream: Stream, context: Context, body: bytes, promises: list[StreamPromise], now: float
) -> list[StreamEffect]:
    """Tell readers a key: an event of our chain, in a unit of its own, so that it can be had by itself."""
    tail = Tail(None, None, None, None, ANNOUNCEMENT, None, int(now * 1000), None, body)
    effects: list[StreamEffect] = []
    for verified in stream.publishing.sign([tail]):
        effects += _own(stream, context, verified, promises, now)
    return effects


def _own(
    stream: Stream, context: Context, verified: Verified, promises: list[StreamPromise], now: float
) -> list[StreamEffect]:
    """What one unit of ours brings about: written now, sent and delivered when that is durable."""
    chain, due, _ = stream.intake.accept(verified, now)
    if not due:
        raise InvalidEvent(Reason.FORKED_CHAIN, "our own chain does not go on where it ended")
    stream.flood.distinct += 1
    position = stream.archive.keep(verified, now)
    record = unit_record(Kind.PUBLISHED, verified)
    # No application is handed what only nodes need: whoever asks where it was delivered must know.
    kind = verified.events[0].kind
    promises.append(record if shown(verified, stream.governance.owner) else replace(record, note=kind))
    if stream.flood.neighbors:
        promises += stream.flood.spread(verified, context.card, (), 1, 0, now)
    else:
        promises += stream.publishing.alone(verified)
    promises += stream.readers.here(verified, position)
    stream.governance.read(verified)
    return [*stream.keeper.advanced(chain), *stream.keeper.wrote(), *stream.announcing.news(chain)]


def permit(stream: Stream, context: Context, now: float) -> None:
    """Raise `RemoteError` unless we may publish here."""
    if stream.governance.owner != context.author:
        stream.governance.admit(context.author)
    check_dates(context.card, now)
    if context.cards.revocation_of(context.author, context.device) is not None:
        raise RemoteError(Reason.CARD_REVOKED, "this device was revoked by its person")

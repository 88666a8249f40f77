"""Beginning a subscription: live, with history, or durable."""

from __future__ import annotations

from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.delivery.subscription import Cursor
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.commands import Subscribe, Subscribed
from linnet.streams.stream import Stream
from linnet.trace.records import Kind, Record

NAME_CHARS = 128

SUBSCRIBED = "subscribed"
DURABLE = "subscribed, durable"
UNSUBSCRIBED = "unsubscribed"
"""Notes of the records by which a trace tells who took part in a stream, and from when to when."""


def subscribe(
    stream: Stream, context: Context, out: Outbox, request: int, command: Subscribe, now: float
) -> None:
    """Begin a subscription; what it is handed first follows the answer."""
    objection = _objection(stream, command)
    if objection is not None:
        out.reply(request, objection)
        return
    if command.name is None:
        reader = stream.readers.add(command, None, now if command.live else None)
        out.reply(request, Subscribed(stream.topic, False))
        out.record(Record(Kind.CONTROL, stream.topic, note=SUBSCRIBED))
        stream.readers.begin(reader)
    else:
        _begin_durable(stream, context, out, request, command, command.name, now)
    stream.ask_anchor(now)
    stream.ask_neighbors(now)


def _begin_durable(
    stream: Stream, context: Context, out: Outbox, request: int, command: Subscribe, name: str, now: float
) -> None:
    cursor = Cursor(stream.topic, name, context.store.cells)
    kept = stream.keeps
    made_at: float | None = None
    if cursor.resumed:
        made_at = cursor.unsettled_since(now)
        stream.ingest.wants_all |= made_at is None
        stream.ingest.resumes |= made_at is not None
    elif command.since is None:
        made_at = now
        cursor.begin(context.store.log.end(), now)
        for chain in stream.ingest.chains.values():
            if chain.next:
                stream.archive.pass_over(chain.author, chain.device, chain.next - 1)
    else:
        cursor.begin(0)
        stream.ingest.wants_all = True
    # From now on everything is written; go on from what the log holds.
    goes_back = not kept and (cursor.resumed or stream.ingest.wants_all)
    if goes_back:
        stream.readers.go_back(stream.ingest.restore(cursor.resumed))
    reader = stream.readers.add(command, cursor, made_at)
    if stream.ingest.anchored:
        cursor.settle()
    promises = Promises()
    promises.reply(request, Subscribed(stream.topic, cursor.resumed))
    promises.record(Record(Kind.CONTROL, stream.topic, note=DURABLE))
    out.committed.extend(promises)
    stream.readers.begin(reader)
    if goes_back:
        for chain in stream.ingest.chains.values():
            stream.gaps.review_chain(chain)


def _objection(stream: Stream, command: Subscribe) -> Declined | None:
    if command.subscription in stream.readers:
        return Declined(Reason.IN_USE, f"there is a subscription {command.subscription} already")
    if command.name is None:
        return None
    if not 0 < len(command.name) <= NAME_CHARS or not command.name.isprintable():
        return Declined(Reason.MALFORMED, f"a subscription's name has 1 to {NAME_CHARS} printable characters")
    if stream.readers.named(command.name):
        return Declined(Reason.IN_USE, f"the durable subscription {command.name!r} is on already")
    if command.since:
        detail = (
            "a durable subscription begins now or at the beginning; leave out its name to begin at a time"
        )
        return Declined(Reason.UNSUPPORTED, detail)
    if not command.live:
        return Declined(Reason.UNSUPPORTED, "a durable subscription is live; leave out its name for history")
    return None

"""What the application asks about who may read a sealed stream: as a reader, and as the owner's device."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.effects import AfterCommit, Reply
from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.delivery.context import Context
from linnet.groups.ids import Device
from linnet.streams.commands import (
    AllowReader,
    AskToRead,
    DisallowReader,
    ListReaders,
    ReaderIs,
    ReadersAre,
    RequestIs,
    SealedCommand,
)
from linnet.streams.effects import StreamEffect, StreamPromise
from linnet.streams.publish import announce, permit
from linnet.streams.sealed.owning import Admitted, device_of
from linnet.streams.sealed.request import parse_request
from linnet.streams.stream import Stream


def ask_sealed(
    stream: Stream, context: Context, request: int, command: SealedCommand, now: float
) -> list[StreamEffect]:
    """Answer a command about a stream's readers. `BadText` if a request cannot be read."""
    try:
        match command:
            case AskToRead():
                return _ask_to_read(stream, request, now)
            case AllowReader():
                return _allow(stream, context, request, command, now)
            case DisallowReader():
                return _disallow(stream, context, request, command, now)
            case ListReaders():
                return [Reply(request, readers_of(stream, ()))]
    except Refused as error:
        return [Reply(request, Declined(error.reason, error.detail))]


def readers_of(stream: Stream, changed: Iterable[Admitted]) -> ReadersAre:
    """Who may read a stream that this device seals; `Refused` if it does not."""
    owned = stream.sealed.owned
    present = owned.present
    readers = tuple(_reader(owned.readers[key]) for key in sorted(owned.readers))
    since = None if present is None else present.came
    return ReadersAre(stream.topic, owned.epoch, since, readers, tuple(map(_reader, changed)))


def _ask_to_read(stream: Stream, request: int, now: float) -> list[StreamEffect]:
    if stream.governance.owner is None:
        raise Refused(Reason.UNSUPPORTED, "a stream without an owner is open: everyone reads it")
    if stream.sealed.is_ours:
        raise Refused(Reason.NOT_ALLOWED, "this device seals the stream and reads it anyway")
    line = stream.sealed.following.ask(now)
    return [AfterCommit((Reply(request, RequestIs(stream.topic, line)),))]


def _allow(
    stream: Stream, context: Context, request: int, command: AllowReader, now: float
) -> list[StreamEffect]:
    asked = parse_request(command.request, now, context.card_check)
    permit(stream, context, now)
    # Who is out by now must not share an epoch with whoever comes in.
    from_now = command.from_now or stream.sealed.is_due(now)
    body = stream.sealed.allow(asked, stream.publishing.next, from_now, now)
    promises: list[StreamPromise] = []
    effects = announce(stream, context, body, promises, now)
    admitted = stream.sealed.owned.readers[asked.reader.author + asked.reader.device]
    answer = Reply(request, readers_of(stream, (admitted,)))
    return [*effects, AfterCommit((*promises, answer))]


def _disallow(
    stream: Stream, context: Context, request: int, command: DisallowReader, now: float
) -> list[StreamEffect]:
    def is_out(device: Device) -> bool:
        meant = (command.person, device.author), (command.device, device.device)
        return any(wanted is not None for wanted, _ in meant) and all(
            wanted is None or wanted == found for wanted, found in meant
        )

    permit(stream, context, now)
    body, out = stream.sealed.disallow(is_out, stream.publishing.next, now)
    promises: list[StreamPromise] = []
    effects = announce(stream, context, body, promises, now)
    return [*effects, AfterCommit((*promises, Reply(request, readers_of(stream, out))))]


def _reader(reader: Admitted) -> ReaderIs:
    card = reader.card
    return ReaderIs(*device_of(reader), card.device_key, card.label, reader.since, reader.at)

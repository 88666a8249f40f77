"""What the application asks about who may read a sealed stream: as a reader, and as the owner's device."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.groups.ids import Device
from linnet.machine.outbox import Outbox, Promises
from linnet.streams.commands import (
    AllowReader,
    DisallowReader,
    ReaderIs,
    ReadersAre,
    RequestIs,
)
from linnet.streams.publisher import announce, permit
from linnet.streams.sealed.access_request import parse_request
from linnet.streams.sealed.owner import Admitted, device_of
from linnet.streams.stream import Stream


def readers_of(stream: Stream, changed: Iterable[Admitted]) -> ReadersAre:
    """Who may read a stream that this device seals; `Refused` if it does not."""
    owned = stream.sealed.owned
    present = owned.present
    readers = tuple(_reader(owned.readers[key]) for key in sorted(owned.readers))
    since = None if present is None else present.came
    return ReadersAre(stream.topic, owned.epoch, since, readers, tuple(map(_reader, changed)))


def ask_to_read(stream: Stream, out: Outbox, request: int, now: float) -> None:
    """Make a request to read a sealed stream; `Refused` says why not."""
    if stream.governance.owner is None:
        raise Refused(Reason.UNSUPPORTED, "a stream without an owner is open: everyone reads it")
    if stream.sealed.is_ours:
        raise Refused(Reason.NOT_ALLOWED, "this device seals the stream and reads it anyway")
    line = stream.sealed.following.ask(now)
    out.committed.reply(request, RequestIs(stream.topic, line))


def allow_reader(
    stream: Stream, context: Context, out: Outbox, request: int, command: AllowReader, now: float
) -> None:
    """Let a device read a stream that this device seals.

    `BadText` if its request cannot be read, `Refused` or `RemoteError` if it cannot be granted.
    """
    asked = parse_request(command.request, now, context.card_check)
    permit(stream, context, now)
    # Who is out by now must not share an epoch with whoever comes in.
    from_now = command.from_now or stream.sealed.is_due(now)
    body = stream.sealed.allow(asked, stream.publisher.next, from_now, now)
    promises = Promises()
    announce(stream, context, body, promises, now)
    admitted = stream.sealed.owned.readers[asked.reader.author + asked.reader.device]
    promises.reply(request, readers_of(stream, (admitted,)))
    out.committed.extend(promises)


def disallow_reader(
    stream: Stream, context: Context, out: Outbox, request: int, command: DisallowReader, now: float
) -> None:
    """Put readers out of a stream that this device seals. `Refused` or `RemoteError` says why not."""

    def is_out(device: Device) -> bool:
        meant = (command.person, device.author), (command.device, device.device)
        return any(wanted is not None for wanted, _ in meant) and all(
            wanted is None or wanted == found for wanted, found in meant
        )

    permit(stream, context, now)
    body, gone = stream.sealed.disallow(is_out, stream.publisher.next, now)
    promises = Promises()
    announce(stream, context, body, promises, now)
    promises.reply(request, readers_of(stream, gone))
    out.committed.extend(promises)


def _reader(reader: Admitted) -> ReaderIs:
    card = reader.card
    return ReaderIs(*device_of(reader), card.device_key, card.label, reader.since, reader.at)

"""What guests say to the host: over a link, or up the tree and sealed against who passes it on.

Toth 2013, section 3.9, weighs three ways; this is its second, with the first where a link is there anyway.
Receipts go back the way that the request came. Nobody keeps a request for a host who is away: whoever made
it is told so, and makes it again when it sees fit.

Where the host is gone its guests are above one another, in circles too. A request that comes round is passed
on no further, and no answer is passed back more often than the request came.

A guest that has a receipt was told that its request is written down, so it is: whoever watches after a crash
is handed it, until an application is done with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.delivery.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.places.channel.packet import Modifier, Packet, check_transient, parse, render
from linnet.places.commands import Talked
from linnet.places.items import Body, Said
from linnet.places.messages import Heard, Talk, Unheard
from linnet.places.multicast.sealed_requests import Request, RequestSender
from linnet.places.place_setup import Parts
from linnet.trace.records import Kind, Record

ROUTES = 4096
"""Requests that passed by here and are not answered, so that receipts find back."""
_NUMBERS = "place talk"
_LATE = Declined(Reason.TIMEOUT, "the host's device did not answer in time")
_DEAF = "the host's device is there, but nobody listens at it: say it again when the host watches the place"
_NOT_TAKEN = "the host's device did not take it"
_OURS = Declined(Reason.NOT_ALLOWED, "this node is the voice of the place by now: announce instead")
_AWAY = Declined(Reason.UNREACHABLE, "the host is away, and nobody keeps requests for it: say it again later")
MOST = 4096
MOST_BYTES = 64 * 1024 * 1024
"""Requests of one place that wait for an application; past this guests are told that it is too much."""


class TalkDue(Timer, frozen=True, gc=False):
    """Requests to the host of a place were not answered in time: they are to be said again."""

    place: TopicId


class Asked(Struct, frozen=True, gc=False):
    """What a guest said to us, whole: to be told, then to be answered by `GuestRequests.answer_request`."""

    source: PeerId
    request: Request
    packet: Packet


class _Waiting(Struct, gc=False):
    asked: int | None
    """The application's request; None: nobody's, but our own."""
    until: float
    is_away: bool = False
    """Whether there was no way to the host's device when it was last said."""
    to: PeerId | None = None
    """Whose it is; None: whoever is the voice."""


class _Route(Struct, gc=False):
    """A request that passed by here."""

    back: PeerId
    """Who brought it."""
    hops: int
    at: float
    """When it came, or came again since it was said again."""
    is_unheard: bool = False
    """Whether word that there is no way was passed back since."""


class GuestRequests:
    """Requests of one place, as a guest, on their way, and at the host."""

    def __init__(self, parts: Parts, out: Outbox) -> None:
        self._parts = parts
        self._out = out
        context = parts.context
        kept = context.store.cells.get(_NUMBERS, parts.id)
        first = 1 if kept is None else int.from_bytes(kept, "big")
        self._sender = RequestSender(
            parts.id, context.key, context.card, parts.config, context.entropy, first
        )
        self._waiting: dict[int, _Waiting] = {}
        self._routes: dict[tuple[PeerId, int], _Route] = {}
        """By the device that made a request, and its number."""

    # The guest.

    def say(
        self,
        asked: int | None,
        method: str,
        modifiers: Sequence[Modifier],
        body: bytes,
        patience: float,
        now: float,
        to: PeerId | None = None,
    ) -> None:
        """Say something to the host; answered when its device has it, or after `patience`.

        With `to` it is for this device, be it the voice or not.
        """
        try:
            check_transient(modifiers)
        except RemoteError as error:
            raise Refused(error.reason, error.detail) from error
        voice = to or self._parts.voice
        if voice is None:
            raise Refused(Reason.UNREACHABLE, "nobody has spoken in this place yet: enter it first")
        way = self._way(voice)
        number, pieces = self._sender.say(voice, render(modifiers, method) + body)
        numbers = self._sender.next_request.to_bytes(8, "big")
        self._parts.context.store.cells.put(_NUMBERS, self._parts.id, numbers)
        self._waiting[number] = _Waiting(asked, now + patience, way is None, to)
        if way is not None:
            for piece in pieces:
                # After the commit: a number that was seen is not used for something else after a crash.
                self._out.committed.send(way, piece)
        self._set_timer()

    def say_again(self, now: float) -> None:
        """Say again what was not answered, and give up what waited too long."""
        for number, waiting in list(self._waiting.items()):
            if waiting.until <= now:
                self._end(number, _AWAY if waiting.is_away else _LATE)
                continue
            voice = waiting.to or self._parts.voice
            if voice == self._parts.context.peer:
                self._end(number, _OURS)
                continue
            way = None if voice is None else self._way(voice)
            waiting.is_away = way is None or waiting.is_away
            if way is not None:
                for piece in self._sender.again(number, voice):
                    self._out.send(way, piece)
        if self._waiting:
            self._set_timer()

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        for waiting in self._waiting.values():
            waiting.until -= seconds
        for route in self._routes.values():
            route.at -= seconds

    def handle_heard(self, peer: PeerId, heard: Heard) -> None:
        """Take a receipt for us, or pass on one for somebody whose request passed by here."""
        if heard.device != self._parts.context.peer:
            route = self._routes.pop((heard.device, heard.request), None)
            if route is not None:
                self._out.send(route.back, heard)
            else:
                note = "a receipt for nobody who spoke through us"
                self._record(Kind.DROPPED, peer, Reason.UNREACHABLE, note)
            return
        voice = self._parts.voice
        try:
            self._sender.heard(heard)
        except RemoteError as error:
            self._record(Kind.REJECTED, peer, error.reason, f"receipt: {error.detail}"[:200])
            return
        if heard.reason is not None or voice is None:
            reason = heard.reason or Reason.UNREACHABLE
            nobody = reason is Reason.NOT_HELD
            self._end(heard.request, Declined(reason, _DEAF if nobody else _NOT_TAKEN))
        else:
            self._end(heard.request, Talked(self._parts.id, heard.request, voice))

    def handle_unheard(self, peer: PeerId, unheard: Unheard) -> None:
        """Note that the host is away, as somebody on the way says; or pass it on to who spoke through us."""
        parts = self._parts
        route = self._routes.get((unheard.device, unheard.request))
        if route is not None and not route.is_unheard and route.back != peer:
            route.is_unheard = True
            self._out.send(route.back, unheard)
            return
        waiting = self._waiting.get(unheard.request)
        if unheard.device != parts.context.peer or waiting is None:
            note = "no way to the host, for nobody who asked through us"
            self._record(Kind.DROPPED, peer, Reason.SURPLUS, note)
            return
        waiting.is_away = True
        note = f"no way to the host for request {unheard.request}"
        self._record(Kind.CONTROL, peer, Reason.UNREACHABLE, note)

    # On the way, and at the host.

    def handle_talk(self, peer: PeerId, talk: Talk, is_guest: bool, now: float) -> Asked | None:
        """Take a piece of a request for us, or pass it on; the request, if it is whole now."""
        parts = self._parts
        if not is_guest:
            self._record(Kind.REJECTED, peer, Reason.NOT_A_MEMBER, "a request of nobody who is a guest")
            return None
        if talk.to != parts.context.peer:
            self._pass_on(peer, talk, now)
            return None
        try:
            found = parts.request_receiver.take(talk, now)
            if found is None:
                return None
            if isinstance(found, Heard):
                self._out.send(peer, found)
                return None
            return Asked(peer, found, parse(found.body))
        except RemoteError as error:
            self._record(Kind.REJECTED, peer, error.reason, f"request: {error.detail}"[:200])
            return None

    def answer_request(self, asked: Asked, reason: Reason | None) -> None:
        """Say that a request was taken, or why not."""
        heard = self._parts.request_receiver.answer(asked.request, reason)
        self._out.committed.send(asked.source, heard)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget the requests that came over a link that is down."""
        for request in [request for request, route in self._routes.items() if route.back == peer]:
            del self._routes[request]

    def _pass_on(self, peer: PeerId, talk: Talk, now: float) -> None:
        way = self._way(talk.to)
        if way is None or way == peer or talk.hops >= 64 or self._comes_round(talk, now):
            note = f"a request after {talk.hops} hops, and no way up"
            self._record(Kind.DROPPED, peer, Reason.UNREACHABLE, note)
            self._out.send(peer, Unheard(self._parts.id, talk.card.device_key, talk.request))
            return
        self._remember(peer, talk, now)
        self._out.send(way, replace(talk, hops=talk.hops + 1))

    def _comes_round(self, talk: Talk, now: float) -> bool:
        """Whether it was here before on this way: with more hops, and too soon to have been said again."""
        device = talk.card.device_key
        if device == self._parts.context.peer:
            return True
        route = self._routes.get((device, talk.request))
        # Half, since it may travel faster than it did before.
        soon = self._parts.config.replay_timeout / 2
        return route is not None and talk.hops > route.hops and now < route.at + soon

    def _way(self, voice: PeerId) -> PeerId | None:
        """Straight if there is a link, else to whoever brings what the voice says."""
        if voice in self._parts.context.links:
            return voice
        return self._parts.toward or self._parts.tree.way_up()

    def _remember(self, peer: PeerId, talk: Talk, now: float) -> None:
        request = (talk.card.device_key, talk.request)
        self._routes.pop(request, None)
        self._routes[request] = _Route(peer, talk.hops, now)
        if len(self._routes) > ROUTES:
            del self._routes[next(iter(self._routes))]

    def _end(self, number: int, result: Talked | Declined) -> None:
        waiting = self._waiting.pop(number, None)
        self._sender.give_up(number)
        if waiting is None:
            return
        if waiting.asked is not None:
            self._out.committed.reply(waiting.asked, result)
        elif isinstance(result, Declined):
            self._record(Kind.DROPPED, None, result.reason, f"request {number} of our own")

    def _set_timer(self) -> None:
        self._out.set_timer(self._parts.config.replay_timeout, TalkDue(self._parts.id))

    def _record(self, kind: Kind, peer: PeerId | None, reason: Reason, note: str) -> None:
        self._out.record(Record(kind, self._parts.id, peer=peer, reason=reason, note=note))


class _Kept(Struct, frozen=True, array_like=True, gc=False):
    nym: AuthorId
    request: int
    method: str
    modifiers: tuple[Modifier, ...]
    body: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Kept).decode


class PendingRequests:
    """The requests of one place that wait, by numbers that count from 1 in the order in which they came."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._place = place
        self._cells = cells
        self._space = f"place request {place.hex()}"
        self._sizes = {int.from_bytes(key, "big"): len(raw) for key, raw in cells.scan(self._space)}
        self._bytes = sum(self._sizes.values())
        self._next = max(self._sizes, default=0) + 1

    def __len__(self) -> int:
        return len(self._sizes)

    def keep(self, nym: AuthorId, request: int, packet: Packet) -> int:
        """Write one down; its number. `Refused` if too much waits already."""
        raw = _encode(_Kept(nym, request, packet.method, packet.modifiers, packet.body))
        if len(self._sizes) >= MOST or self._bytes + len(raw) > MOST_BYTES:
            raise Refused(Reason.QUEUE_FULL, f"{len(self._sizes)} requests wait for an application")
        number, self._next = self._next, self._next + 1
        self._cells.put(self._space, number.to_bytes(8, "big"), raw)
        self._sizes[number] = len(raw)
        self._bytes += len(raw)
        return number

    def done(self, number: int) -> None:
        """An application has handled it; again does nothing."""
        size = self._sizes.pop(number, None)
        if size is not None:
            self._bytes -= size
            self._cells.delete(self._space, number.to_bytes(8, "big"))

    def items(self) -> Iterator[tuple[int, Said, Body]]:
        """All that wait, in their order, as they are handed over."""
        for key, raw in self._cells.scan(self._space):
            kept = _decode(raw)
            said, body = items_of(
                self._place, kept.nym, kept.request, Packet(kept.modifiers, kept.method, kept.body)
            )
            yield int.from_bytes(key, "big"), said, body


def items_of(place: TopicId, nym: AuthorId, request: int, packet: Packet) -> tuple[Said, Body]:
    """A request as it is handed over."""
    said = Said(place, request, nym, nym, packet.method, packet.modifiers, False)
    return said, Body(place, request, nym, 0, packet.body, True)

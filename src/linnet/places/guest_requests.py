"""Requests of guests to the host: over a link, or up the tree and sealed against the relays.

Toth 2013, section 3.9, weighs three ways; this is its second, with the first where a link exists anyway.
Receipts go back the way that the request came. Nobody keeps a request for a host who is away: the guest is
told so, and repeats the request when it sees fit.

Without a host its guests are above one another, in circles too. A request that comes round is not passed on
again, and no answer is passed back more often than the request came.

A receipt promises the guest that its request is stored: a subscriber after a crash is handed it, until an
application has handled it.
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
from linnet.machine.commands import Declined
from linnet.places.channel.packet import Modifier, Packet, check_transient, parse, render
from linnet.places.commands import Talked
from linnet.places.items import Body, Said
from linnet.places.messages import Heard, Talk, Unheard
from linnet.places.multicast.sealed_requests import Request, RequestSender
from linnet.places.place_setup import Parts, PlaceTimer
from linnet.trace.records import Kind

ROUTES = 4096
"""Requests passed on here and not answered yet, remembered so that receipts find their way back."""
_NUMBERS = "place talk"
_LATE = Declined(Reason.TIMEOUT, "the host's device did not answer in time")
_DEAF = "the host's device is there, but nobody listens at it: say it again when the host watches the place"
_NOT_TAKEN = "the host's device did not take it"
_OURS = Declined(Reason.NOT_ALLOWED, "this node is the voice of the place by now: announce instead")
_AWAY = Declined(Reason.UNREACHABLE, "the host is away, and nobody keeps requests for it: say it again later")
MOST = 4096
MOST_BYTES = 64 * 1024 * 1024
"""The requests of one place that wait for an application; past this, guests are refused."""


class TalkDue(PlaceTimer, frozen=True, gc=False):
    """A timer: requests to the host of a place were not answered in time and are repeated."""


class Asked(Struct, frozen=True, gc=False):
    """A complete request of a guest: to be handled, then answered by `GuestRequests.answer_request`."""

    source: PeerId
    request: Request
    packet: Packet


class _Waiting(Struct, gc=False):
    asked: int | None
    """The application's request; None: the request is our own."""
    until: float
    is_away: bool = False
    """Whether there was no way to the host's device when the request was last sent."""
    to: PeerId | None = None
    """The device that it is sent to; None: the present voice."""


class _Route(Struct, gc=False):
    """The way back of a request that was passed on here."""

    back: PeerId
    """The peer that brought it."""
    hops: int
    at: float
    """When the request came, or last came again after the guest repeated it."""
    is_unheard: bool = False
    """Whether a notice that there is no way was passed back since."""


class GuestRequests:
    """The requests of one place: as a guest, as a relay, and at the host."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        context = parts.context
        kept = context.store.cells.get(_NUMBERS, parts.id)
        first = 1 if kept is None else int.from_bytes(kept, "big")
        self._sender = RequestSender(
            parts.id, context.key, context.card, parts.config, context.entropy, first
        )
        self._waiting: dict[int, _Waiting] = {}
        self._routes: dict[tuple[PeerId, int], _Route] = {}
        """The routes by the device that made the request, and its number."""

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
        """Send something to the host; answered when its device has it, or after `patience`.

        With `to` it goes to this device, be it the voice or not.
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
                self._parts.out.committed.send(way, piece)
        self._set_timer()

    def say_again(self, now: float) -> None:
        """Repeat the requests that were not answered, and give up those that waited too long."""
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
                    self._parts.out.send(way, piece)
        if self._waiting:
            self._set_timer()

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        for waiting in self._waiting.values():
            waiting.until -= seconds
        for route in self._routes.values():
            route.at -= seconds

    def handle_heard(self, peer: PeerId, heard: Heard) -> None:
        """Take a receipt for us, or pass on one for a guest whose request passed by here."""
        if heard.device != self._parts.context.peer:
            route = self._routes.pop((heard.device, heard.request), None)
            if route is not None:
                self._parts.out.send(route.back, heard)
            else:
                note = "a receipt for nobody who spoke through us"
                self._parts.record(Kind.DROPPED, peer, Reason.UNREACHABLE, note)
            return
        voice = self._parts.voice
        try:
            self._sender.heard(heard)
        except RemoteError as error:
            self._parts.record(Kind.REJECTED, peer, error.reason, f"receipt: {error.detail}")
            return
        if heard.reason is not None or voice is None:
            reason = heard.reason or Reason.UNREACHABLE
            nobody = reason is Reason.NOT_HELD
            self._end(heard.request, Declined(reason, _DEAF if nobody else _NOT_TAKEN))
        else:
            self._end(heard.request, Talked(self._parts.id, heard.request, voice))

    def handle_unheard(self, peer: PeerId, unheard: Unheard) -> None:
        """Note that the host is away, as a peer on the way says; or pass that on to the guest it is for."""
        parts = self._parts
        route = self._routes.get((unheard.device, unheard.request))
        if route is not None and not route.is_unheard and route.back != peer:
            route.is_unheard = True
            self._parts.out.send(route.back, unheard)
            return
        waiting = self._waiting.get(unheard.request)
        if unheard.device != parts.context.peer or waiting is None:
            note = "no way to the host, for nobody who asked through us"
            self._parts.record(Kind.DROPPED, peer, Reason.SURPLUS, note)
            return
        waiting.is_away = True
        note = f"no way to the host for request {unheard.request}"
        self._parts.record(Kind.CONTROL, peer, Reason.UNREACHABLE, note)

    # On the way, and at the host.

    def handle_talk(self, peer: PeerId, talk: Talk, is_guest: bool, now: float) -> Asked | None:
        """Take a piece of a request for us, or pass it on; return the request once it is complete."""
        parts = self._parts
        if not is_guest:
            self._parts.record(Kind.REJECTED, peer, Reason.NOT_A_MEMBER, "a request of nobody who is a guest")
            return None
        if talk.to != parts.context.peer:
            self._pass_on(peer, talk, now)
            return None
        for late in parts.request_receiver.expire(now):
            parts.out.record(late)
        try:
            found = parts.request_receiver.take(talk, now)
            if found is None:
                return None
            if isinstance(found, Heard):
                self._parts.out.send(peer, found)
                return None
            packet = parse(found.body)
            check_transient(packet.modifiers)
            return Asked(peer, found, packet)
        except RemoteError as error:
            self._parts.record(Kind.REJECTED, peer, error.reason, f"request: {error.detail}")
            return None

    def answer_request(self, asked: Asked, reason: Reason | None) -> None:
        """Send a receipt that a request was taken, or the reason why not."""
        heard = self._parts.request_receiver.answer(asked.request, reason)
        self._parts.out.committed.send(asked.source, heard)

    def handle_link_down(self, peer: PeerId) -> None:
        """Forget the requests that came over a link that is down."""
        for request in [request for request, route in self._routes.items() if route.back == peer]:
            del self._routes[request]

    def _pass_on(self, peer: PeerId, talk: Talk, now: float) -> None:
        way = self._way(talk.to)
        if way is None or way == peer or talk.hops >= 64 or self._comes_round(talk, now):
            note = f"a request after {talk.hops} hops, and no way up"
            self._parts.record(Kind.DROPPED, peer, Reason.UNREACHABLE, note)
            self._parts.out.send(peer, Unheard(self._parts.id, talk.card.device_key, talk.request))
            return
        self._remember(peer, talk, now)
        self._parts.out.send(way, replace(talk, hops=talk.hops + 1))

    def _comes_round(self, talk: Talk, now: float) -> bool:
        """Return whether a request went in a circle: back with more hops, too soon to be a repetition."""
        device = talk.card.device_key
        if device == self._parts.context.peer:
            return True
        route = self._routes.get((device, talk.request))
        # Half of it, since the request may travel faster than it did before.
        soon = self._parts.config.replay_timeout / 2
        return route is not None and talk.hops > route.hops and now < route.at + soon

    def _way(self, voice: PeerId) -> PeerId | None:
        """Return the next hop to a device: the device if there is a link, else the way to the voice."""
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
            self._parts.out.committed.reply(waiting.asked, result)
        elif isinstance(result, Declined):
            self._parts.record(Kind.DROPPED, None, result.reason, f"request {number} of our own")

    def _set_timer(self) -> None:
        self._parts.out.set_timer(self._parts.config.replay_timeout, TalkDue(self._parts.id))


class _Kept(Struct, frozen=True, array_like=True, gc=False):
    nym: AuthorId
    request: int
    method: str
    modifiers: tuple[Modifier, ...]
    body: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Kept).decode


class PendingRequests:
    """The waiting requests of one place, numbered from 1 in the order of their arrival."""

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
        """Store a request; return its number. `Refused` if too much waits already."""
        raw = _encode(_Kept(nym, request, packet.method, packet.modifiers, packet.body))
        if len(self._sizes) >= MOST or self._bytes + len(raw) > MOST_BYTES:
            raise Refused(Reason.QUEUE_FULL, f"{len(self._sizes)} requests wait for an application")
        number, self._next = self._next, self._next + 1
        self._cells.put(self._space, number.to_bytes(8, "big"), raw)
        self._sizes[number] = len(raw)
        self._bytes += len(raw)
        return number

    def done(self, number: int) -> None:
        """Delete a request that an application has handled; do nothing if it is gone already."""
        size = self._sizes.pop(number, None)
        if size is not None:
            self._bytes -= size
            self._cells.delete(self._space, number.to_bytes(8, "big"))

    def items(self) -> Iterator[tuple[int, Said, Body]]:
        """Yield all waiting requests in their order, as the items that are handed over."""
        for key, raw in self._cells.scan(self._space):
            kept = _decode(raw)
            said, body = items_of(
                self._place, kept.nym, kept.request, Packet(kept.modifiers, kept.method, kept.body)
            )
            yield int.from_bytes(key, "big"), said, body


def items_of(place: TopicId, nym: AuthorId, request: int, packet: Packet) -> tuple[Said, Body]:
    """Return the items that hand a request over."""
    said = Said(place, request, nym, nym, packet.method, packet.modifiers, False)
    return said, Body(place, request, nym, 0, packet.body, True)

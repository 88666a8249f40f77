"""What is fuzzed: everything that reads bytes or texts of strangers, and a whole node.

A target is a function of bytes. It returns nothing, and raises only if there is a bug: an error that is not
of the kinds that its caller handles, or something that does not hold for what was read.
"""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import msgspec
from tests.attacks.besieged import Besieged
from tests.attacks.hostile_messages import KINDS, Attacker, Pools

from linnet.api.errors import ApiError
from linnet.api.operations import OPERATIONS
from linnet.content.predicate import (
    covers,
    foreign_attributes,
    foreign_predicate,
    read_attributes,
    read_predicate,
)
from linnet.core.errors import BadText, ConfigError, LinnetError, MalformedMessage, RemoteError
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import FRAME_BYTES
from linnet.edge.announcement import key_of, read_announcement
from linnet.event.event import Unverified
from linnet.event.signing import recall_unit
from linnet.groups.bodies import decode_body, encode_body
from linnet.groups.membership import decode as decode_history
from linnet.groups.prekeys import decode_bundle, make_prekeys
from linnet.identity import cards
from linnet.identity.addresses import (
    contact_text,
    parse_contact,
    parse_device,
    parse_hint,
    parse_http,
    parse_person,
    split_hint,
)
from linnet.identity.cards import card_from_text, card_to_text
from linnet.identity.words import from_phrase, read_words, to_phrase
from linnet.names.address import read_address, read_label, read_name
from linnet.names.records import decode_set
from linnet.net.failure import LinkFailure
from linnet.net.websocket import WebSocket
from linnet.node import archive, config_file
from linnet.node.relay_protocol import AuthDagRequest, GetRequest, RelayHttpError, ResyncRequest, SendRequest
from linnet.node.relay_signing import read_proof
from linnet.node.relay_translation import control_message, parcel_of, resync_message, want_message
from linnet.peer.messages import CODEC, FIRST_CODEC
from linnet.places import address as place_address
from linnet.places.address import PlaceAddress, is_address, parse_address
from linnet.places.channel.membership import read_lines
from linnet.places.channel.packet import parse, parse_section, read_header, render
from linnet.places.channel.state import State, parse_list, render_list
from linnet.places.multicast.fragmentation import head_of
from linnet.places.sealed.epoch_keys import read_prefix
from linnet.places.sealed.key_boxes import decode_boxes
from linnet.rooms import invitations
from linnet.rooms.attachments import attachment_of, safe_name
from linnet.rooms.invitations import Invitation, invitation_text, issue_ticket, parse_invitation
from linnet.sim.clock import START
from linnet.sim.seeded_random import SeededEntropy, seeded_identity
from linnet.streams.sealed import access_request
from linnet.streams.sealed.access_request import parse_request, request_text
from linnet.streams.sealed.message_format import read_clear
from linnet.streams.sealed.owner import decode_announcement
from linnet.streams.stream_names import topic_of
from linnet.wire.frame import FrameReader, frame

CORPUS = Path(__file__).parent / "corpus"
LARGEST = 4096
"""Bytes of one input: what is tried is shape, not volume."""


class Target(NamedTuple):
    """Something that reads what strangers send."""

    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    """Inputs to begin with where there is no corpus."""


def frames(data: bytes) -> None:
    """A stream of bytes, cut as its first byte tells, gives the frames that it gives as a whole."""
    step = 1 + (data[0] if data else 0)
    limit = 64
    whole, pieces = FrameReader(limit), FrameReader(limit)
    cut: list[bytes] = []
    failed = False
    for start in range(0, len(data), step):
        try:
            cut += pieces.feed(data[start : start + step])
        except MalformedMessage:
            failed = True
            break
        assert pieces.pending <= 4 + limit
    try:
        assert whole.feed(data) == cut
        assert not failed
        assert b"".join(frame(each, limit) for each in cut) == data[: len(data) - whole.pending]
    except MalformedMessage:
        assert failed


def messages(data: bytes) -> None:
    """Bytes are a message, which has one form, or are refused with one error."""
    for codec in (CODEC, FIRST_CODEC):
        try:
            message: Any = codec.decode(data)
        except MalformedMessage:
            continue
        raw = codec.encode(message)
        assert codec.decode(raw) == message
        assert message.cost >= 0 if codec is CODEC else True
        for unit in _units(message):
            _read(partial(_head_of, unit), RemoteError, *_NO_DATA)


def _head_of(unit: Unverified) -> object:
    return head_of(recall_unit(unit).events[0])


def _units(message: object) -> Iterator[Unverified]:
    if isinstance(message, Unverified):
        yield message
    elif isinstance(message, msgspec.Struct):
        for name in message.__struct_fields__:
            yield from _units(getattr(message, name))
    elif isinstance(message, tuple):
        for each in message:
            yield from _units(each)


def texts(data: bytes) -> None:
    """What people paste is read, or is refused with a sentence for people."""
    text = data[1:].decode("utf-8", "surrogateescape" if data[:1] > b"\x80" else "replace")
    for read in _TEXTS:
        _read(partial(read, text), BadText)
    _read(lambda: key_of(text), ValueError)
    contact = _read(lambda: parse_contact(text), BadText)
    if contact is not None:
        assert parse_contact(contact_text(contact)) == contact


_NO_DATA = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for foreign bytes; whoever decodes them has to handle all three."""

_TEXTS: tuple[Callable[[str], object], ...] = (
    parse_invitation,
    parse_address,
    is_address,
    card_from_text,
    parse_contact,
    parse_hint,
    split_hint,
    parse_http,
    parse_device,
    parse_person,
    topic_of,
    read_address,
    read_label,
    read_name,
    safe_name,
    lambda text: parse_request(text, START),
)


def words(data: bytes) -> None:
    """The words of a recovery phrase, as somebody types them."""
    text = data.decode("utf-8", "replace")
    _read(lambda: read_words(text), BadText)
    seed = _read(lambda: from_phrase(text), BadText)
    if seed is not None:
        assert from_phrase(to_phrase(seed)) == seed


def invitation(data: bytes) -> None:
    """The inside of an invitation, with the right length and checksum around it."""
    whole = len(data).to_bytes(2, "big") + data
    letters = base64.b32encode(whole + invitations._checksum(whole)).decode().rstrip("=")
    read = _read(lambda: parse_invitation(invitations.PREFIX + letters.lower(), START), BadText)
    if read is not None:
        again = parse_invitation(invitation_text(read), START)
        assert (again.ticket, again.name) == (read.ticket, read.name)


def address(data: bytes) -> None:
    """The inside of the address of a place, with the right length and checksum around it."""
    whole = len(data).to_bytes(2, "big") + data
    letters = base64.b32encode(whole + place_address._checksum(whole)).decode().rstrip("=")
    read = _read(lambda: parse_address(place_address.PREFIX + letters.lower()), BadText)
    if read is not None:
        assert parse_address(read.text).place == read.place


def card(data: bytes) -> None:
    """The inside of a card, with the right checksum behind it."""
    letters = base64.b32encode(data + cards._checksum(data)).decode().rstrip("=")
    read = _read(lambda: card_from_text(cards.PREFIX + letters.lower()), BadText)
    if read is not None:
        assert card_from_text(card_to_text(read)) == read


def request(data: bytes) -> None:
    """The inside of a request to read a sealed stream, with the right length and checksum around it."""
    whole = len(data).to_bytes(2, "big") + data
    letters = base64.b32encode(whole + access_request._checksum(whole)).decode().rstrip("=")
    _read(lambda: parse_request(access_request.PREFIX + letters.lower(), START), BadText)


def archives(data: bytes) -> None:
    """The records of an archive without a passphrase, as they are and behind a right beginning."""
    for raw in (data, archive._TITLE + data, _framed(data)):
        _read(partial(_records, raw), archive.ArchiveError)


def _records(raw: bytes) -> list[object]:
    return [*islice(archive._read(io.BytesIO(raw), None), 1000)]


def _framed(data: bytes) -> bytes:
    """An archive of records whose lengths are right, with its hash at the end."""
    records = [part for part in data.split(b"\xff\xff") if part]
    body = b"".join(len(part).to_bytes(4, "big") + part for part in records)
    header = msgspec.msgpack.encode({"seal": None})
    end = msgspec.msgpack.encode({"type": "end", "sha256": hashlib.sha256(b"".join(records)).digest()})
    lengths = (len(header).to_bytes(4, "big") + header, body, len(end).to_bytes(4, "big") + end)
    return archive._TITLE + b"".join(lengths)


def packets(data: bytes) -> None:
    """The text of places: what is read can be written, and reads the same again."""
    for read in (parse, parse_section):
        packet = _read(partial(read, data), RemoteError)
        if packet is not None and not packet.ignored:
            written = render(packet.modifiers, packet.method)
            again = parse_section(written)
            assert (again.modifiers, again.method) == (packet.modifiers, packet.method)
    _read(lambda: read_header(data), RemoteError)
    state = _read(lambda: State.decode(data), RemoteError)
    if state is not None:
        assert State.decode(state.encode()).digest() == state.digest()
    elements = _read(lambda: parse_list(data), RemoteError)
    if elements is not None:
        assert parse_list(render_list(elements)) == elements
    lines = _read(lambda: read_lines(data), RemoteError)
    if lines is not None:
        assert lines.lines() == data


def predicates(data: bytes) -> None:
    """A predicate has one canonical text, which is read as the same; it covers itself."""
    text = data.decode("utf-8", "replace")
    first, _, second = text.partition("\n")
    for each in (first, second):
        _read(partial(foreign_predicate, each), RemoteError)
        _read(partial(foreign_attributes, each), RemoteError)
    one, two = (_read(partial(read_predicate, each), BadText) for each in (first, second))
    event = _read(lambda: read_attributes(first), BadText)
    for known in (one, two):
        if known is not None:
            assert foreign_predicate(known.text) == known
            assert known.covers(known)
    if one is not None and two is not None:
        merged = one.merged(two)
        if merged is not None:
            assert merged.covers(one)
            assert merged.covers(two)
        if event is not None and two.covers(one):
            conditions = dict(event.conditions)
            assert not one.accepts(conditions) or two.accepts(conditions)
    if event is not None:
        assert foreign_attributes(event.text) == event
        assert all(covers(each, each) for each in dict(event.conditions).values())


def bodies(data: bytes) -> None:
    """What members of groups, hosts and owners seal and sign: read, or refused with an error of a peer."""
    for read in _BODIES:
        _read(partial(read, data), RemoteError)
    body = _read(lambda: decode_body(data), RemoteError)
    if body is not None:
        assert decode_body(encode_body(body)) == body


_BODIES: tuple[Callable[[bytes], object], ...] = (
    decode_history,
    decode_bundle,
    decode_boxes,
    decode_announcement,
    decode_set,
    read_clear,
    read_prefix,
    attachment_of,
    read_announcement,
)


def relay_bodies(data: bytes) -> None:
    """Bodies of requests to a relay over HTTP, and the header that signs them."""
    for kind, use in _RELAY:
        asked = _read(partial(msgspec.json.decode, data, type=kind), *_NO_DATA)
        if asked is not None:
            _read(partial(use, asked), BadText, RelayHttpError)
    header = data.decode("latin-1")
    _read(lambda: read_proof(header), RemoteError)
    _read(lambda: read_proof(f"Linnet-Sig {header}"), RemoteError)


_ROOM: Any = bytes(32)
_RELAY: tuple[tuple[Any, Callable[[Any], object]], ...] = (
    (SendRequest, parcel_of),
    (ResyncRequest, lambda asked: resync_message(_ROOM, 1, asked)),
    (GetRequest, lambda asked: want_message(_ROOM, 1, asked)),
    (AuthDagRequest, lambda asked: control_message(_ROOM, 1, asked)),
)


def api_bodies(data: bytes) -> None:
    """Bodies of requests to the control API: a command, or an error that the client is told."""
    operation = OPERATIONS[(data[0] if data else 0) % len(OPERATIONS)]
    asked = _read(lambda: msgspec.json.decode(data[1:], type=operation.shape), *_NO_DATA)
    if asked is None:
        return
    path = dict.fromkeys(operation.path_shape.__struct_fields__, "x")
    converted = _read(lambda: msgspec.convert(path, operation.path_shape, strict=False), msgspec.DecodeError)
    if converted is not None:
        _read(lambda: operation.read(converted, asked), ApiError, LinnetError)


def configurations(data: bytes) -> None:
    """A configuration file: read, or refused with its line."""
    text = data.decode("utf-8", "replace")
    _read(lambda: config_file.parse(text), ConfigError)
    config_file.key_lines(text)


def websockets(data: bytes) -> None:
    """What a stranger sends where a WebSocket is expected, whole and in two pieces."""
    for prefix in (b"", _UPGRADE):
        for cut in (len(data), len(data) // 2):
            socket = WebSocket()
            for piece in (prefix, data[:cut], data[cut:]):
                if _read(partial(socket.feed, piece), LinkFailure) is None:
                    break
                socket.to_send()


_UPGRADE = (
    b"GET /linnet HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


class Choices(Random):
    """A generator whose draws are the bytes of an input, and after them those of their hash.

    So what changes an input changes what an attacker does, and a prefix stays the same course.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        super().__init__()
        self._rest = Random(int.from_bytes(hashlib.sha256(data).digest()[:8], "big"))

    def getrandbits(self, k: int, /) -> int:
        """See `Random.getrandbits`."""
        size = (k + 7) // 8
        taken = self._data[self._at : self._at + size]
        self._at += size
        if len(taken) < size:
            return self._rest.getrandbits(k)
        return int.from_bytes(taken, "big") >> (8 * size - k)

    def random(self) -> float:
        """See `Random.random`; a byte is enough for choices."""
        return self.getrandbits(8) / 256


def machine(data: bytes) -> None:
    """A node with every part, and strangers who say what the bytes choose; then raw messages of the bytes.

    No input may raise an error, and every timer may run out.
    """
    besieged = Besieged(1)
    besieged.settle()
    choices = Choices(data)
    besieged.rng = choices
    for number in range(3):
        besieged._known[seeded_identity(2, f"s{number}", START).peer] = attacker = Attacker(
            seeded_identity(2, f"s{number}", START), choices, besieged.pools
        )
        besieged._link(attacker.peer, dialed=False)
    for _ in range(min(24, 4 + len(data) // 16)):
        kind = KINDS[choices.getrandbits(8) % len(KINDS)]
        linked = list(besieged._up.values())
        if not linked:
            break
        besieged.say(linked[choices.getrandbits(8) % len(linked)], kind)
        besieged.pass_time(choices.getrandbits(8) / 64)
    besieged.pass_time(30.0)


def _read(read: Callable[[], Any], *expected: type[Exception]) -> Any:  # noqa: ANN401 - what was read
    """Return what is read; None if it is refused with an expected error."""
    try:
        return read()
    except expected:
        return None


def _packed(*values: object) -> tuple[bytes, ...]:
    return tuple(map(msgspec.msgpack.encode, values))


def _kinds() -> tuple[bytes, ...]:
    """One message of each kind."""
    identity, pools = seeded_identity(1, "seed", START), Pools(Random(1))
    who = Attacker(identity, Random(1), pools)
    found: list[bytes] = []
    for kind in KINDS:
        raw = min((CODEC.encode(who.make(kind, START)) for _ in range(8)), key=len)
        found.append(raw)
    return tuple(found)


def _inside_of(text: str, prefix: str, checksum: int, length: int = 0) -> bytes:
    """What is inside a text that people paste."""
    letters = text[len(prefix) :].upper()
    return base64.b32decode(letters + "=" * (-len(letters) % 8))[length:-checksum]


def _invitation() -> bytes:
    """The inside of a good invitation."""
    who = seeded_identity(1, "ann", START)
    ticket = issue_ticket(who.device, who.card, TopicId(bytes(32)), None, int(START * 2000), bytes(8))
    contacts = (Contact(who.peer, ("tls://a:1",)), Contact(PeerId(b"b" * 32), ("wss://[::1]:2", "tls://c:3")))
    return _inside_of(invitation_text(Invitation(ticket, contacts, "tea")), invitations.PREFIX, 4, 2)


def _address() -> bytes:
    """The inside of a good address of a place."""
    contacts = (Contact(PeerId(b"b" * 32), ("tls://a:1",)),)
    return _inside_of(PlaceAddress(TopicId(bytes(32)), contacts, "tea").text, place_address.PREFIX, 4, 2)


def _request() -> bytes:
    """The inside of a good request to read a sealed stream."""
    who = seeded_identity(1, "ann", START)
    bundle = make_prekeys(SeededEntropy(1, "prekeys"), START, 1).bundle
    text = request_text(TopicId(bytes(32)), who.card, bundle, who.device)
    return _inside_of(text, access_request.PREFIX, 4, 2)


TARGETS: dict[str, Target] = {
    "frames": Target(frames, (frame(b"one") + frame(b"") + frame(b"x" * 64), b"\x00\x00\x00\x41")),
    "messages": Target(messages, _kinds()),
    "texts": Target(texts, (b"\x00li1aaaa", b"\x00lc1aaaa", b"\x00ld1abc@127.0.0.1:1", b"\x00tls://[::1]:7")),
    "words": Target(words, (to_phrase(bytes(32)).encode(), b"abandon abondon", b"1. zoo")),
    "invitation": Target(invitation, (_invitation(),)),
    "address": Target(address, (_address(),)),
    "card": Target(card, (msgspec.msgpack.encode(seeded_identity(1, "ann", START).card),)),
    "request": Target(request, (_request(),)),
    "archives": Target(archives, (*_packed({"type": "config", "text": ""}), _framed(b"")[17:])),
    "packets": Target(packets, (b":a\tb\n=_x 3\tabc\n_method\nbody\n|\n", b"1 2 3 :\n", b"|a|b")),
    "predicates": Target(
        predicates, (b"stock/apple/price[10,20]\nprice(10,20]", b'at{1,2,3,4}/s="AA"*\nday=3')
    ),
    "bodies": Target(bodies, (b"\x01" * 40, b"\x02" * 120, *_packed([1, 2, 3]))),
    "relay_bodies": Target(
        relay_bodies, (b'{"ids":["le1a"]}', b'{"cursor":"00.1","limit":3}', b'device="a",ts="1"')
    ),
    "api_bodies": Target(api_bodies, tuple(bytes([n]) + b'{"stream":"tea"}' for n in range(len(OPERATIONS)))),
    "configurations": Target(
        configurations, (b'[node]\nlisten = ["tls://[::]:7"]\n', b"[[storage]]\nstream = 'a'\n")
    ),
    "websockets": Target(websockets, (_UPGRADE, b"\x82\x81abcdx", b"\x89\x80abcd")),
    "machine": Target(machine, (b"", b"\x00" * 64, bytes(range(256)))),
}
assert FRAME_BYTES > LARGEST

"""Writes a device's messages: numbered, cut into fragments and signed, only while the term is its own.

Each fragment is stored before it leaves, so that a number that others saw is never used again for something
else (Toth 2013, section 5: counters survive a restart).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec.structs import replace

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, EventId
from linnet.core.reasons import Reason
from linnet.event.event import Spot, Tail, Verified
from linnet.event.signing import sign_unit
from linnet.groups.labels import Device
from linnet.places.channel.packet import (
    Header,
    Modifier,
    encode_header,
    render,
)
from linnet.places.channel.reassembly import Began
from linnet.places.multicast.fragmentation import (
    FRAGMENT,
    PIECE_BYTES,
    Change,
    Fragmenter,
    Head,
    Message,
    Numbering,
    Piece,
    encode_head,
)
from linnet.places.place_setup import Parts

NOTICE_ENTER = "_notice_place_enter"
NOTICE_LEAVE = "_notice_place_leave"
NOTICE_VOICE = "_notice_place_voice"
"""The method of the notice that another device speaks from now on."""
KEEPALIVE = "_notice_keepalive"
NYM = "_nym"

Spoken = tuple[Verified, Head]
"""A fragment of ours, to be taken in like one that was received."""

Announcement: TypeAlias = tuple[int, list[Spoken]]
"""The number of a message of ours, and its fragments."""


class FragmentWriter:
    """The outgoing messages of this device."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._cutting = Fragmenter()
        self._numbering = Numbering(parts.fragments.standing)
        self._since_hash = 0
        self._sizes: dict[int, int] = {}
        """The bytes of the bodies of open messages."""
        self._ended = 0, 0
        """The last message that ended, and the bytes of its body."""
        self._chain = self._last_of_chain()

    @property
    def under_way(self) -> bool:
        """Whether a message has begun and not ended."""
        return bool(self._numbering.under_way)

    @property
    def is_current(self) -> bool:
        """Whether nobody else has spoken since, so that our numbers go on from here."""
        standing, parts = self._numbering.standing, self._parts
        term = standing.term if parts.terms.voice is None else parts.term
        return (standing.term, standing.fragment) == (term, parts.fragments.standing.fragment)

    def open_term(self, now: float) -> list[Spoken]:
        """Open the next term after what is held here, with a small message of its own, since it is sent to
        many. The very first term opens with the first message of the application."""
        last = self._parts.fragments.standing
        for message in self._numbering.open_term(last):
            self._cutting.abandon(message)
        self._sizes.clear()
        return self._word(NOTICE_VOICE, now) if last.fragment >= 0 else []

    def announce(
        self, method: str, modifiers: Sequence[Modifier], body: bytes, reset: bool, more: bool, now: float
    ) -> tuple[int, list[Spoken]]:
        """Begin a message, and end it unless more follows; return its number and its fragments so far."""
        keys = self._turned(now)
        state = reset or any(each.is_persistent for each in modifiers)
        # The very first message looks like one that begins anew. Only that one carries a hash, so that a host
        # that repeats it knows which it was.
        is_due = self._numbering.standing.state > 0 and self._since_hash + 1 >= self._parts.config.hash_every
        hashed = reset or (state and is_due)
        section = render(modifiers, method)
        if len(section) > self._parts.config.modifier_bytes:
            raise Refused(Reason.TOO_LARGE, f"{len(section)} bytes of modifiers")
        digest = self._parts.order.digest_with(modifiers, reset) if hashed else None
        message = self._numbering.begin(state=state, reset=reset, hashed=hashed)
        self._since_hash = 0 if hashed else self._since_hash + state
        self._sizes[message.number] = 0
        spoken = self._begin(message, section, digest, now)
        return message.number, [*keys, *spoken, *self.more(message.number, body, more, now)]

    def size(self, message: int) -> int:
        """Return the bytes of the body of a message that is open, or has just ended."""
        return self._ended[1] if self._ended[0] == message else self._sizes.get(message, 0)

    def more(self, message: int, body: bytes, more: bool, now: float) -> list[Spoken]:
        """Add to a message's body, also one left open by an earlier run; return the new fragments."""
        if message not in self._sizes:
            self._reopen(message)
        self._sizes[message] += len(body)
        spoken: list[Spoken] = []
        at = 0
        while True:
            room = self._cutting.room(message)
            self._cutting.feed(message, body[at : at + room])
            at += room
            if at >= len(body):
                break
            spoken += self._flow(now)
        if more:
            # At once: changes of state must not be overtaken by those of the next message.
            self._cutting.flush(message)
        else:
            self._cutting.finish(message)
            self._ended = message, self._sizes.pop(message)
        return [*spoken, *self._flow(now)]

    def _reopen(self, message: int) -> None:
        fragments, context = self._parts.fragments, self._parts.context
        last = max(fragments.message(message), key=lambda row: row.offset, default=None)
        unit = None if last is None else fragments.unit(last)
        ours = unit is not None and (unit.author, unit.device) == (context.author, context.device)
        if last is None or not ours or last.term != fragments.standing.term:
            raise Refused(Reason.UNKNOWN, f"message {message} is not open here")
        began = next(self._parts.reassembly.historic(message), None)
        if last.is_last or not isinstance(began, Began):
            raise Refused(Reason.STALE, f"message {message} has ended: nothing can be added to it")
        self._numbering.reopen(message, last.flags)
        self._cutting.reopen(message, last.end)
        before = len(encode_header(began.header)) + began.header.modifier_bytes
        self._sizes[message] = last.end - before

    def joined(
        self, nym: AuthorId, since: int | None, now: float, device: Device | None = None
    ) -> tuple[int, list[Spoken]]:
        """Announce that a guest came in, with the hash of the state, for newcomers.

        In a sealed place the key takes a step first, and the guest's device gets the key after the notice; or
        all known devices of the guest, if the notice is repeated.
        """
        keys = self._turned(now)
        if self._parts.deed.policy.seals:
            self._parts.host_keys.step()
        message = self._numbering.begin_join(nym, since)
        number, spoken = self._notice(NOTICE_ENTER, message, nym, now)
        opens = number if message.change is None else message.change.effective_since
        devices = [device] if device else self._parts.host_keys.readers.of(nym)
        told = [each for mine in devices for each in self.tell_keys(mine, opens, now)]
        return number, [*keys, *spoken, *told]

    def parted(self, nym: AuthorId, now: float) -> tuple[int, list[Spoken]]:
        """Announce that a guest left: what follows is closed to them."""
        keys = self._turned(now)
        self._parts.host_keys.readers.forget(nym)
        number, spoken = self._notice(NOTICE_LEAVE, self._numbering.begin_part(nym), nym, now)
        return number, [*keys, *spoken]

    def tell_keys(self, device: Device, since: int, now: float) -> list[Spoken]:
        """Write the keys of all that is open to a guest's device, sealed to the device's prekeys."""
        if not self._parts.deed.policy.seals:
            return []
        before = self._turned(now)
        standing = self._numbering.standing
        body = self._parts.host_keys.for_one(standing.term, standing.message + 1, device, since, now)
        return [*before, *self._say_keys(body, now)]

    def keep_alive(self, now: float) -> list[Spoken]:
        """Write a keep-alive, so that the loss of the last fragment is noticed."""
        return self._word(KEEPALIVE, now)

    def _word(self, method: str, now: float) -> list[Spoken]:
        keys = self._turned(now)
        message = self._numbering.begin()
        return [*keys, *self._begin(message, render((), method), None, now), *self._end(message, now)]

    def _notice(self, method: str, message: Message, nym: AuthorId, now: float) -> tuple[int, list[Spoken]]:
        section = render((Modifier(":", NYM, nym.hex().encode()),), method)
        digest = None if message.delta is None else self._parts.order.state.digest()
        spoken = self._begin(message, section, digest, now)
        self._since_hash = 0
        return message.number, [*spoken, *self._end(message, now)]

    def _begin(self, message: Message, section: bytes, digest: bytes | None, now: float) -> list[Spoken]:
        text = encode_header(Header(len(section), message.delta, digest)) + section
        self._cutting.open(message.number)
        spoken: list[Spoken] = []
        for at in range(0, len(text), 1 << 19):
            self._cutting.feed(message.number, text[at : at + (1 << 19)])
            spoken += self._flow(now)
        return spoken

    def _end(self, message: Message, now: float) -> list[Spoken]:
        self._cutting.finish(message.number)
        return self._flow(now)

    def _flow(self, now: float) -> list[Spoken]:
        spoken: list[Spoken] = []
        while (piece := self._cutting.take()) is not None:
            spoken += self._turned(now)
            spoken.append(self._sign(piece, now, self._parts.deed.policy.seals))
        return spoken

    def _turned(self, now: float) -> list[Spoken]:
        """Begin a new epoch in a sealed place, if one is due before the next fragment; return its keys."""
        parts, standing = self._parts, self._numbering.standing
        if not parts.deed.policy.seals or not parts.host_keys.is_due(standing.term, standing.generation):
            return []
        message = standing.message + 1
        parts.host_keys.begin(standing.term, standing.generation, message)
        # Others who may speak have to know how keys are sealed to us: we are nobody's guest.
        own = parts.guest_keys.prekeys(now) if len(parts.deed.voices) > 1 else b""
        return self._say_keys(parts.host_keys.for_all(standing.term, message, parts.is_guest, now, own), now)

    def _say_keys(self, body: bytes | None, now: float) -> list[Spoken]:
        """Write a message of keys, all of it at once, before the next message gets a number."""
        if body is None:
            return []
        number = self._numbering.begin_keys().number
        ends = range(0, len(body), PIECE_BYTES)
        pieces = [
            Piece(number, at, body[at : at + PIECE_BYTES], at == 0, at + PIECE_BYTES >= len(body))
            for at in ends
        ]
        return [self._sign(piece, now, False) for piece in pieces]

    def _sign(self, piece: Piece, now: float, sealed: bool) -> Spoken:
        head = self._numbering.head(piece.message, piece, sealed)
        if head.change is not None:
            head = self._with_roll(head, head.change)
        context = self._parts.context
        clear = encode_head(head)
        tail = Tail(None, None, None, None, FRAGMENT, None, int(now * 1000), clear, piece.data)
        seq, prev = self._chain
        if sealed:
            tail = self._parts.host_keys.seal(tail, seq, prev)
        verified = sign_unit(
            context.key, Spot(self._parts.id, context.author, context.device, seq, prev), (tail,)
        )
        self._chain = seq + 1, verified.head
        return verified, head

    def _with_roll(self, head: Head, change: Change) -> Head:
        """Apply our own change of membership, and put the hash of all membership now in force into it."""
        parts = self._parts
        parts.membership.store(change, head.message, head.generation)
        knows_all = parts.membership.is_whole and parts.fragments.upto > parts.fragments.standing.fragment
        return replace(head, change=replace(change, roll=parts.membership.digest() if knows_all else None))

    def _last_of_chain(self) -> tuple[int, EventId | None]:
        context = self._parts.context
        for head in context.store.log.heads(self._parts.id):
            if (head.author, head.device) == (context.author, context.device):
                return head.last + 1, head.head
        return 0, None

"""The voice of a place at this node: says messages when it is our turn.

Messages of the application are said at once if it is our turn, else when it is. While nothing is said,
keep-alives are sent. Strangers at our door also wait for our turn, while the voice that would decide about
them is away.

Messages that this device said in a term that was cut are repeated first in its next term, in the same order
(decision 0018). Each is repeated only once, however often terms are cut and nodes crash: it names the event
that it began with when it was first said, and the event of its repetition is stored under that name beside
the orphans.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import AuthorId, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.groups.labels import Device
from linnet.machine.commands import Declined
from linnet.places.channel.fragment_store import Row
from linnet.places.channel.packet import (
    LARGEST_HEADER,
    Header,
    Modifier,
    Packet,
    parse_section,
    read_header,
)
from linnet.places.commands import Admit, Announce, Announced, AnnounceMore, Eject
from linnet.places.door import Door, ToAdmit, Waiting
from linnet.places.entry import EntrySearch
from linnet.places.fragment_writer import (
    KEEPALIVE,
    NOTICE_VOICE,
    Announcement,
    FragmentWriter,
    Spoken,
)
from linnet.places.host_terms import OpenMessages, TermTakeover, Turn
from linnet.places.ingest import Ingest
from linnet.places.items import AGAIN, Knocked
from linnet.places.keepers import Keepers
from linnet.places.key_distribution import KeyDistribution
from linnet.places.messages import Away, Yield, Yielded
from linnet.places.multicast.fragmentation import (
    Change,
    Flag,
    head_of,
)
from linnet.places.place_setup import Parts, PlaceTimer
from linnet.places.subscriber import Subscribers
from linnet.trace.records import Kind, Record

_SAID = "place said again"
QUEUE = 256
"""The most commands that wait for our turn."""
AT_ONCE = 4 * 1024 * 1024
"""The most bytes that are repeated in one go."""
SILENCE = 2.5
"""The number of missed keep-alives after which other upstreams are looked for."""

VoiceCommand: TypeAlias = Announce | AnnounceMore | Admit | Eject


class Orphan(NamedTuple):
    """A message of ours that is not in the line."""

    rows: list[Row]
    """The fragments that were taken out of the line, in order."""

    @property
    def message(self) -> int:
        """The number that the message had."""
        return self.rows[0].message


class _Words(NamedTuple):
    first: EventId
    """The event that the message began with when it was first said."""
    change: Change | None
    header: Header
    packet: Packet
    body: bytes
    has_begun: bool
    """Whether the beginning is in the line, and so its changes of state are applied."""


def orphans(parts: Parts) -> list[Orphan]:
    """Return this device's messages that were taken out of the line, in the order in which they were said."""
    found: dict[tuple[int, int], list[Row]] = {}
    for row in parts.fragments.orphans():
        if row.flags & Flag.KEYS:
            continue  # of a term that does not count: the next one has keys of its own
        if _is_ours(parts, row):
            found.setdefault((row.term, row.message), []).append(row)
    return [Orphan(rows) for rows in found.values()]


def forget_idle(parts: Parts) -> bool:
    """Forget orphaned keep-alives and voice notices; return whether any other orphan is left to repeat."""
    left = False
    for orphan in orphans(parts):
        try:
            words = _words(parts, orphan)
        except RemoteError:
            words = None  # recorded when its turn comes
        if words is not None and words.packet.method in (KEEPALIVE, NOTICE_VOICE):
            for row in orphan.rows:
                parts.fragments.forget_orphan(row)
        else:
            left = True
    return left


def say_again(
    parts: Parts, writer: FragmentWriter, orphan: Orphan, now: float
) -> tuple[list[Spoken], Record | None]:
    """Repeat a message, unless it is in the line by now; return its fragments, and a record if dropped."""
    for row in orphan.rows:
        parts.fragments.forget_orphan(row)
    try:
        words = _words(parts, orphan)
    except RemoteError as error:
        return [], _dropped(parts, orphan, error.reason, error.detail)
    if words is None:
        return [], _dropped(parts, orphan, Reason.STALE, "its term ended before it did")
    if _stands(parts, words.first):
        return [], None
    if words.change is not None:
        spoken = _change(parts, writer, words.change, orphan.message, now)
    else:
        spoken = _announce(parts, writer, words, now)
    if spoken:
        # The message is behind keys that have to be sent first, if any.
        said = next(verified for verified, head in spoken if not head.flags & Flag.KEYS)
        parts.context.store.cells.put(_SAID, parts.id + words.first, said.head)
    return spoken, None


def _announce(parts: Parts, writer: FragmentWriter, words: _Words, now: float) -> list[Spoken]:
    kept = [each for each in words.packet.modifiers if each.name != AGAIN]
    if words.has_begun:
        kept = [each for each in kept if not each.is_persistent]
    # A first change of state has no distance, too; others may have changed it first by now:
    # see `FragmentWriter`.
    reset = words.header.delta == 0 and words.header.hash is not None and not words.has_begun
    modifiers = (*kept, Modifier(":", AGAIN, words.first.hex().encode()))
    return writer.announce(words.packet.method, modifiers, words.body, reset, False, now)[1]


def _change(parts: Parts, writer: FragmentWriter, change: Change, message: int, now: float) -> list[Spoken]:
    changes = parts.membership.changes(change.nym)
    is_in = bool(changes) and changes[-1].joins
    if change.joins == is_in:
        return []  # another device announced it meanwhile
    if not change.joins:
        return writer.parted(AuthorId(change.nym), now)[1]
    # Numbers have changed: what the guest could see from then on, it can see from now on at the latest.
    is_late = change.effective_since > parts.fragments.standing.message
    since = None if change.effective_since == message or is_late else change.effective_since
    return writer.joined(AuthorId(change.nym), since, now)[1]


def _words(parts: Parts, orphan: Orphan) -> _Words | None:
    """Return the whole of a message; None if it had not ended."""
    # The same number of the same term may be a message of another device, which opened this term too and
    # counts; or ours, of a term that we had to open again behind another fragment: then all of this message
    # is orphaned.
    begun = () if orphan.rows[0].is_first else parts.fragments.message(orphan.message)
    standing = [row for row in begun if row.term == orphan.rows[0].term and _is_ours(parts, row)]
    rows = sorted([*standing, *orphan.rows], key=lambda row: row.offset)
    text = bytearray()
    for row in rows:
        piece = parts.reassembly.read(row)
        if piece is None or row.offset != len(text):
            return None
        text += piece
    if not rows[-1].is_last:
        return None
    found = read_header(bytes(text[:LARGEST_HEADER]), parts.config)
    verified = parts.fragments.verified(rows[0])
    if found is None or verified is None:
        return None
    header, begin = found
    end = begin + header.modifier_bytes
    packet = parse_section(bytes(text[begin:end]), parts.config)
    first = _first(packet) or rows[0].event
    has_begun = bool(standing) and standing[-1].end >= end
    return _Words(first, head_of(verified.events[0]).change, header, packet, bytes(text[end:]), has_begun)


def _is_ours(parts: Parts, row: Row) -> bool:
    """Return whether this device said the fragment."""
    unit, context = parts.fragments.unit(row), parts.context
    return unit is not None and (unit.author, unit.device) == (context.author, context.device)


def _first(packet: Packet) -> EventId | None:
    """Return the event that a repeated message first began with; None if it is said for the first time."""
    again = [each.value for each in packet.modifiers if each.name == AGAIN]
    if not again or not re.fullmatch(rb"[0-9a-f]{64}", again[0]):
        return None
    return EventId(bytes.fromhex(again[0].decode()))


def _stands(parts: Parts, first: EventId) -> bool:
    """Return whether a message is in the line, as first said or as repeated."""
    again = parts.context.store.cells.get(_SAID, parts.id + first)
    return any(
        parts.is_in_line(event) and parts.fragments.is_whole(spoken.message)
        for event in (first, None if again is None else EventId(again))
        if event is not None and (spoken := parts.spoken(event)) is not None
    )


def _dropped(parts: Parts, orphan: Orphan, reason: Reason, detail: str) -> Record:
    note = f"message {orphan.message} is not said again: {detail}"[:200]
    return Record(Kind.DROPPED, parts.id, orphan.rows[0].event, reason=reason, note=note)


class KeepAliveDue(PlaceTimer, frozen=True, gc=False):
    """A timer: a keep-alive is due in a place."""


class Host:
    """Says one node's messages in one place."""

    def __init__(
        self,
        parts: Parts,
        ingest: Ingest,
        subscribers: Subscribers,
        door: Door,
        entry_search: EntrySearch,
        key_distribution: KeyDistribution,
        keepers: Keepers,
    ) -> None:
        self._parts = parts
        self._key_distribution = key_distribution
        self._keepers = keepers
        self._ingest = ingest
        self._subscribers = subscribers
        self._door = door
        self.takeover = TermTakeover(parts, entry_search)
        self._writer: FragmentWriter | None = None
        self._open_messages = OpenMessages(parts.id, parts.context.store.cells)
        self._queue: deque[tuple[int, VoiceCommand]] = deque()
        self._telling: dict[Device, None] = {}
        """Devices of others who may speak, to be given keys in our turn."""
        self._again = parts.may_speak and forget_idle(parts)
        """Whether messages of ours have to be repeated."""
        self._last_said = 0.0
        self._yielded_at = 0.0

    def start(self, now: float) -> None:
        """Go on sending keep-alives as the voice after a restart, even with nothing to say."""
        self._last_said = self._yielded_at = now
        voice = self._parts.terms.voice
        if voice is None or voice.device != self._parts.context.device:
            return
        self._set_timer(self._parts.config.keepalive)
        if self._parts.is_voice:
            self._keepers.hold_keepers(now)

    def put_back(self, seconds: float) -> None:
        """Shift the stored times by the seconds that the clock went back, so that nothing is due later."""
        self._last_said -= seconds
        self._yielded_at -= seconds
        self.takeover.put_back(seconds)

    # What the application wants.

    def handle_command(self, request: int, command: VoiceCommand, now: float) -> None:
        """Say something, now or when it is our turn; `Refused` if that will never come."""
        if not self._parts.may_speak:
            raise Refused(Reason.NOT_A_PUBLISHER, "this place is not ours to speak in: talk to the host")
        is_rest = isinstance(command, AnnounceMore)
        if isinstance(command, AnnounceMore):
            self._open_messages.check(command.message, self._parts.term)
        turn = self.takeover.turn(now)
        # Waiting commands and repetitions come first, except for the rest of a message that is in the line.
        # Our turn may have come by the clock alone, and then nobody has looked at the waiting commands since.
        is_next = is_rest or not self._queue
        is_free = is_rest or not (self._again or self._ingest.cut_off)
        if is_next and ((turn is Turn.OURS and is_free) or self._parts.terms.voice is None):
            self._do(request, command, now)
            return
        if isinstance(command, AnnounceMore):
            raise Refused(Reason.STALE, "somebody else speaks now: this message ends here, say it again")
        if isinstance(command, Admit) and command.nym not in self._door.waiting:
            raise Refused(Reason.UNKNOWN, "nobody of this name waits at the door")
        if len(self._queue) >= QUEUE:
            raise Refused(Reason.QUEUE_FULL, f"{QUEUE} commands wait for our turn to speak")
        self._queue.append((request, command))
        self.takeover.want_turn(now)
        self.say_waiting(now)

    def say_waiting(self, now: float) -> None:
        """Say what waits, if it is our turn by now, and decide about the strangers who knocked meanwhile."""
        if self._ingest.cut_off:
            self._ingest.cut_off = False
            self._again = self._parts.may_speak and forget_idle(self._parts)
        if not (self._queue or self._again or self._telling):
            if self._door.is_voice_there:
                self._refer_strangers()  # to the voice, which we can reach by now
            if not self._door.undecided:
                self.takeover.end_wish()
                return
        if not self.takeover.is_wanted:
            self.takeover.want_turn(now)
        turn = self.takeover.turn(now)
        if turn is Turn.WAIT:
            self.takeover.ask_voice(now)
            return
        before = self._parts.out.mark()
        try:
            if turn is Turn.OPEN:
                self._cut_back(now)
                before = self._parts.out.mark()  # What was cut stays so, and is told.
                self._open(now)
                before = self._parts.out.mark()
            self._say_again(now)
        except Refused as refused:
            self._parts.out.forget_since(before)
            self._give_up(refused)
            return
        if self._again:
            self.takeover.set_timer(0.0)
            return
        self.takeover.end_wish()
        while self._queue:
            request, command = self._queue.popleft()
            before = self._parts.out.mark()
            try:
                self._do(request, command, now)
            except Refused as refused:
                self._parts.out.forget_since(before)
                self._parts.out.reply(request, Declined(refused.reason, refused.detail))
        self._tell_waiting(now)
        self._decide_knocks(now)

    def tell_keys_in_turn(self, device: Device, now: float) -> Reason | None:
        """Give a device the keys of what is open to it, now or in our turn; return why if we cannot."""
        if self._parts.is_voice:
            self.tell_keys(device, now)
            return None
        if len(self._telling) >= QUEUE and device not in self._telling:
            return Reason.QUEUE_FULL
        self._telling[device] = None
        self.say_waiting(now)
        return None

    def _tell_waiting(self, now: float) -> None:
        waiting, self._telling = self._telling, {}
        for device in waiting:
            before = self._parts.out.mark()
            try:
                self.tell_keys(device, now)
            except Refused as refused:
                self._parts.out.forget_since(before)
                self._record_untold(refused)

    def _record_untold(self, refused: Refused) -> None:
        note = f"keys that somebody else who may speak asked for: {refused.detail}"
        self._parts.record(Kind.DROPPED, None, refused.reason, note)

    def _decide_knocks(self, now: float) -> None:
        """Decide, in our turn, about the strangers who knocked while the voice was away."""
        for asking in self._door.take_undecided():
            if self._parts.is_guest(asking.enter.card.person):
                self._door.refer(asking)  # it was let in meanwhile: when it knocks again it comes in
                continue
            before = self._parts.out.mark()
            try:
                todo = self._door.decide(asking)
                if isinstance(todo, ToAdmit):
                    self.admit(asking, None, now)
                elif isinstance(todo, Knocked):
                    self._subscribers.tell_knock(todo)
            except Refused as refused:
                self._parts.out.forget_since(before)
                self._door.turn_away(asking, refused)

    def _refer_strangers(self, refused: Refused | None = None) -> None:
        """Refer strangers who wait for our turn to the voice: it is reachable, or our turn does not come."""
        for asking in self._door.take_undecided():
            self._door.refer(asking, refused)

    # Hand-over.

    def handle_yield(self, peer: PeerId, asked: Yield, now: float) -> None:
        """Let a peer speak that asks to, if it may."""
        under_way = self._writer is not None and self._writer.under_way and self._parts.is_voice
        self.takeover.handle_yield(peer, asked, under_way, now)
        if not self._parts.is_voice:
            self._writer = None
            self._yielded_at = now

    def handle_yielded(self, peer: PeerId, answer: Yielded, now: float) -> None:
        """Speak if the voice lets us, or give it up."""
        reason = self.takeover.handle_yielded(peer, answer, now)
        if reason is not None:
            self._give_up(Refused(reason, "the device that speaks does not hand over"))
        else:
            self.say_waiting(now)

    # Saying.

    def writer(self) -> FragmentWriter:
        """Return the writer of our messages; `Refused` if another device is the voice."""
        parts = self._parts
        if parts.terms.voice is not None and not parts.is_voice:
            raise Refused(Reason.NOT_ALLOWED, "somebody else speaks now")
        self._check_line()
        if self._writer is None or not self._writer.is_current:
            self._writer = FragmentWriter(parts)
            if parts.terms.voice is None:
                self._writer.open_term(0.0)
        return self._writer

    def say(self, spoken: Sequence[Spoken], now: float) -> None:
        """Send out fragments of ours, and take them in here as well."""
        self._last_said = now
        noted, self._parts.host_keys.noted = self._parts.host_keys.noted, []
        for record in noted:
            self._parts.out.record(record)
        self._ingest.take_own(spoken, now)
        self._keepers.hold_keepers(now)
        self._set_timer(self._parts.config.keepalive)

    def admit(self, waiting: Waiting, since: int | None, now: float) -> Announcement:
        """Let a waiting peer in: announce it first, then answer it."""
        parts, nym = self._parts, waiting.enter.card.person
        policy = parts.deed.policy
        opens = since if since is not None else (None if policy.restricts else 0)
        message, spoken = self.writer().joined(nym, opens, now, self._key_distribution.learn_device(waiting))
        self.say(spoken, now)
        self._door.let_in(waiting, now)
        return message, spoken

    def greet_device(self, waiting: Waiting, now: float) -> None:
        """Give a returning guest the keys, if it comes with a device that lacks them."""
        if not self._key_distribution.is_news(waiting):
            return
        device = self._key_distribution.learn_device(waiting)
        if device is not None:
            self.tell_keys(device, now)

    def tell_keys(self, device: Device, now: float) -> None:
        """Give a guest's device the keys of what is open to it; `Refused` if another device is the voice."""
        self.say(self.writer().tell_keys(device, self._parts.since_of(device.author), now), now)

    def draft_parting(self, nym: AuthorId, now: float) -> Announcement:
        """Sign the notice that a guest is out, for `say_parting`; `Refused` if there is no such guest."""
        if not self._parts.is_guest(nym) or self._parts.deed.rank(nym) is not None:
            raise Refused(Reason.NOT_A_MEMBER, "no guest of this name is here")
        return self.writer().parted(nym, now)

    def say_parting(self, nym: AuthorId, spoken: Sequence[Spoken], now: float) -> None:
        """Announce that a guest is out, and disconnect it."""
        self.say(spoken, now)
        for peer, guest in self._parts.tree.downstreams.items():
            if guest == nym:
                # Behind the notice itself, which waits for its commit.
                self._parts.out.committed.send(peer, Away(self._parts.id, Reason.NOT_A_MEMBER))
                self._ingest.drop_neighbor(peer)

    def take_over(self, now: float) -> None:
        """Go on as the host, if a new version of the deed no longer lets the voice speak."""
        parts, voice = self._parts, self._parts.terms.voice
        if voice is None or parts.deed.rank(voice.person) is not None:
            return
        if parts.deed.rank(parts.context.author) == 0 and parts.is_whole:
            self._cut_back(now)
            self._open(now)

    def break_silence(self, now: float) -> None:
        """Send a keep-alive if nothing was said for a while; open a term if our successor stays silent."""
        parts = self._parts
        if not parts.is_voice:
            ours = parts.terms.voice is not None and parts.yielded == parts.opened_by
            if ours and parts.may_speak:
                self._speak_instead(now)
            return
        silent = now - self._last_said
        if silent + 1e-6 < parts.config.keepalive:
            self._set_timer(parts.config.keepalive - silent)
            return
        self.say(self.writer().keep_alive(now), now)

    def _speak_instead(self, now: float) -> None:
        """Open the next term if the device that we handed over to has not used it for long."""
        left = self._yielded_at + SILENCE * self._parts.config.keepalive - now
        if left > 0.0:
            self._set_timer(left)
            return
        before = self._parts.out.mark()
        try:
            self._cut_back(now)
            before = self._parts.out.mark()
            self._open(now)
        except Refused:
            self._parts.out.forget_since(before)
            self._set_timer(self._parts.config.keepalive)

    # Inside.

    def _do(self, request: int, command: VoiceCommand, now: float) -> None:
        match command:
            case Announce(_, method, modifiers, body, reset, more):
                self._parts.order.check(modifiers, reset)
                if more:
                    self._skip_numbers(now)
                message, spoken = self.writer().announce(method, modifiers, body, reset, more, now)
                self.say(spoken, now)
                if more:
                    self._open_messages.began(message, self._parts.term)
            case AnnounceMore(_, message, body, more):
                spoken = self.writer().more(message, body, more, now)
                if not more:
                    self._open_messages.ended(message)
                self.say(spoken, now)
            case Admit(_, nym, since):
                message, spoken = self.admit(self._door.take_waiting(nym), since, now)
            case Eject(_, nym):
                message, spoken = self.draft_parting(nym, now)
                self.say_parting(nym, spoken, now)
        self._reply(request, message, spoken)

    def _skip_numbers(self, now: float) -> None:
        """Use up numbers that an application uses for messages of older terms: no open message gets them."""
        # The next one, and the one behind it, if keys have to be sent first.
        while any(
            self._open_messages.is_taken(self._parts.fragments.standing.message + ahead, self._parts.term)
            for ahead in (1, 2)
        ):
            self.say(self.writer().keep_alive(now), now)

    def _reply(self, request: int, message: int, spoken: Sequence[Spoken]) -> None:
        """Answer a command that announced something."""
        last = spoken[-1] if spoken else None
        fragment, event = (-1, None) if last is None else (last[1].fragment, last[0].head)
        size = 0 if self._writer is None else self._writer.size(message)
        self._parts.out.committed.reply(request, Announced(self._parts.id, message, fragment, event, size))

    def _cut_back(self, now: float) -> None:
        """Cut the line back to what is held without a gap; `Refused`, and nothing is cut, if that ends in an
        older term: others would not put a new term there."""
        fragments = self._parts.fragments
        last = fragments.upto - 1
        row = fragments.get(last)
        is_older = row is None or row.term != self._parts.term
        if self._parts.terms.voice is not None and last < fragments.standing.fragment and is_older:
            detail = (
                "the beginning of a term is missing here: say it again when a guest who has it is in reach"
            )
            raise Refused(Reason.MISSING_DEPENDENCY, detail)
        self._ingest.cut_back(now)

    def _open(self, now: float) -> None:
        """Open the next term after what is held here, which has no gap."""
        if not self._parts.knows_state:
            raise Refused(Reason.MISSING_DEPENDENCY, "the state of the place is not known here yet")
        self._check_line()
        self._writer = FragmentWriter(self._parts)
        self.say(self._writer.open_term(now), now)

    def _check_line(self) -> None:
        """Raise `Refused` if nothing can be said behind what is held: others would not put it there."""
        if self._parts.terms.voice is not None and not self._parts.holds_line:
            detail = "the end of a term is damaged here: say it again when a guest who has it is in reach"
            raise Refused(Reason.MISSING_DEPENDENCY, detail)

    def _say_again(self, now: float) -> None:
        size = 0
        for orphan in orphans(self._parts) if self._again else ():
            if size > AT_ONCE:
                return
            size += sum(row.length for row in orphan.rows)
            spoken, record = say_again(self._parts, self.writer(), orphan, now)
            self.say(spoken, now)
            if record is not None:
                self._parts.out.record(record)
        self._again = False

    def _give_up(self, refused: Refused) -> None:
        """Refuse the waiting commands, since our turn does not come. Repetitions are tried again later."""
        waiting, self._queue = self._queue, deque()
        self.takeover.end_wish()
        for request, _ in waiting:
            self._parts.out.reply(request, Declined(refused.reason, refused.detail))
        untold, self._telling = self._telling, {}
        for _ in untold:
            self._record_untold(refused)  # it asks again
        self._refer_strangers(refused)
        if self._again:
            self.takeover.set_timer(self._parts.config.entry_timeout)

    def _set_timer(self, delay: float) -> None:
        self._parts.out.set_timer(delay, KeepAliveDue(self._parts.id))

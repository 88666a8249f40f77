"""The voice of a place at this node: what it is to say, and when it may.

What the application wants to say is said at once if it is our turn, else when it is. What was said in a term
that was cut is said again first, so that the order stays. While nothing is said, signs of life are given.
Strangers at our door are something to be said, too, while the voice that would decide about them is away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.commands import Declined
from linnet.groups.ids import Device
from linnet.machine.outbox import Outbox
from linnet.places import resaying
from linnet.places.commands import Admit, Announce, Announced, AnnounceMore, Eject
from linnet.places.door import Door, ToAdmit, Waiting
from linnet.places.items import Knocked
from linnet.places.keepers import Keepers
from linnet.places.keying import Keying
from linnet.places.messages import Away, Yield, Yielded
from linnet.places.parts import Parts
from linnet.places.speaking import Speaking, Spoken
from linnet.places.taking import Taking
from linnet.places.turns import Turn, Turns
from linnet.places.unfinished import Unfinished
from linnet.places.visiting import Visiting
from linnet.places.watching import Watching
from linnet.trace.records import Kind, Record

QUEUE = 256
"""Commands that may wait for our turn."""
AT_ONCE = 4 * 1024 * 1024
"""Bytes of what is said again in one go."""
SILENCE = 2.5
"""Keep-alives that may be missing before others are looked for."""

VoiceCommand: TypeAlias = Announce | AnnounceMore | Admit | Eject


Announcement: TypeAlias = tuple[int, list[Spoken]]
"""The number of a message of ours, and its fragments."""


class KeepAliveDue(Timer, frozen=True, gc=False):
    """Nothing was said in a place for so long that a sign of life is due."""

    place: TopicId


class Voicing:
    """What one node says in one place."""

    def __init__(
        self,
        parts: Parts,
        taking: Taking,
        watching: Watching,
        door: Door,
        visiting: Visiting,
        keying: Keying,
        keepers: Keepers,
        out: Outbox,
    ) -> None:
        self._parts = parts
        self._out = out
        self._keying = keying
        self._keepers = keepers
        self._taking = taking
        self._watching = watching
        self._door = door
        self.turns = Turns(parts, visiting, out)
        self._speaking: Speaking | None = None
        self._unfinished = Unfinished(parts.id, parts.context.store.cells)
        self._queue: deque[tuple[int, VoiceCommand]] = deque()
        self._telling: dict[Device, None] = {}
        """Devices of others who may speak, and are told keys in our turn."""
        self._again = parts.may_speak and resaying.forget_idle(parts)
        """Whether something of ours is to be said again."""
        self._last_said = 0.0
        self._yielded_at = 0.0

    def start(self, now: float) -> None:
        """Go on to give signs of life as the voice, also if it has nothing to say after a restart."""
        self._last_said = self._yielded_at = now
        voice = self._parts.terms.voice
        if voice is None or voice.device != self._parts.context.device:
            return
        self._set_timer(self._parts.config.keepalive)
        if self._parts.is_voice:
            self._keepers.hold_keepers(now)

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        self._last_said -= seconds
        self._yielded_at -= seconds
        self.turns.put_back(seconds)

    # What the application wants.

    def handle_command(self, request: int, command: VoiceCommand, now: float) -> None:
        """Say something, now or when it is our turn; `Refused` if that will not come."""
        if not self._parts.may_speak:
            raise Refused(Reason.NOT_A_PUBLISHER, "this place is not ours to speak in: talk to the host")
        is_rest = isinstance(command, AnnounceMore)
        if isinstance(command, AnnounceMore):
            self._unfinished.check(command.message, self._parts.term)
        turn = self.turns.turn(now)
        # What waits comes first, and what is to be said again; but for the rest of a message that stands. Our
        # turn may have come by the clock alone, and then nobody has looked at what waits since.
        is_next = is_rest or not self._queue
        is_free = is_rest or not (self._again or self._taking.cut_off)
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
        self.turns.want_turn(now)
        self.say_waiting(now)

    def say_waiting(self, now: float) -> None:
        """Say what waits, if it is our turn by now, and decide about those who knocked meanwhile."""
        if self._taking.cut_off:
            self._taking.cut_off = False
            self._again = self._parts.may_speak and resaying.forget_idle(self._parts)
        if not (self._queue or self._again or self._telling):
            if self._door.is_voice_there:
                self._refer_strangers()  # to whom we needed to reach, and do now
            if not self._door.undecided:
                self.turns.end_wish()
                return
        if not self.turns.is_wanted:
            self.turns.want_turn(now)
        turn = self.turns.turn(now)
        if turn is Turn.WAIT:
            self.turns.ask_voice(now)
            return
        before = self._out.mark()
        try:
            if turn is Turn.OPEN:
                self._open(now)
                before = self._out.mark()
            self._say_again(now)
        except Refused as refused:
            self._out.forget_since(before)
            self._give_up(refused)
            return
        if self._again:
            self.turns.set_timer(0.0)
            return
        self.turns.end_wish()
        while self._queue:
            request, command = self._queue.popleft()
            before = self._out.mark()
            try:
                self._do(request, command, now)
            except Refused as refused:
                self._out.forget_since(before)
                self._out.reply(request, Declined(refused.reason, refused.detail))
        self._tell_waiting(now)
        self._decide_knocks(now)

    def tell_keys_in_turn(self, device: Device, now: float) -> Reason | None:
        """Tell a device the keys of what is open to it, now or when it is our turn; why not, if we do not."""
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
            before = self._out.mark()
            try:
                self.tell_keys(device, now)
            except Refused as refused:
                self._out.forget_since(before)
                self._record_untold(refused)

    def _record_untold(self, refused: Refused) -> None:
        note = f"keys that somebody else who may speak asked for: {refused.detail}"[:200]
        self._out.record(Record(Kind.DROPPED, self._parts.id, reason=refused.reason, note=note))

    def _decide_knocks(self, now: float) -> None:
        """Decide, in our turn, about the strangers who knocked while nobody could."""
        for asking in self._door.take_undecided():
            if self._door.is_guest(asking.enter.card.person):
                self._door.refer(asking)  # somebody let it in meanwhile: when it knocks again it comes in
                continue
            before = self._out.mark()
            try:
                todo = self._door.decide(asking)
                if isinstance(todo, ToAdmit):
                    self.admit(asking, None, now)
                elif isinstance(todo, Knocked):
                    self._watching.tell_knock(todo)
            except Refused as refused:
                self._out.forget_since(before)
                self._door.turn_away(asking, refused)

    def _refer_strangers(self, refused: Refused | None = None) -> None:
        """Send those who wait for our turn to the voice: it is there, or our turn does not come."""
        for asking in self._door.take_undecided():
            self._door.refer(asking, refused)

    # Hand-over.

    def handle_yield(self, peer: PeerId, asked: Yield, now: float) -> None:
        """Let a peer speak that wants to, if it may."""
        under_way = self._speaking is not None and self._speaking.under_way and self._parts.is_voice
        self.turns.handle_yield(peer, asked, under_way, now)
        if not self._parts.is_voice:
            self._speaking = None
            self._yielded_at = now

    def handle_yielded(self, peer: PeerId, answer: Yielded, now: float) -> None:
        """Speak if the voice lets us, or give it up."""
        reason = self.turns.handle_yielded(peer, answer)
        if reason is not None:
            self._give_up(Refused(reason, "the device that speaks does not hand over"))
        else:
            self.say_waiting(now)

    # Saying.

    def speaking(self) -> Speaking:
        """The voice; `Refused` if it is not ours."""
        parts = self._parts
        if parts.terms.voice is not None and not parts.is_voice:
            raise Refused(Reason.NOT_ALLOWED, "somebody else speaks now")
        if self._speaking is None or not self._speaking.is_current:
            self._speaking = Speaking(parts)
            if parts.terms.voice is None:
                self._speaking.open_term(0.0)
        return self._speaking

    def say(self, spoken: Sequence[Spoken], now: float) -> None:
        """Send out fragments of ours, and take them in here as well."""
        self._last_said = now
        noted, self._parts.sealing.noted = self._parts.sealing.noted, []
        for record in noted:
            self._out.record(record)
        self._taking.take_own(spoken, now)
        self._keepers.hold_keepers(now)
        self._set_timer(self._parts.config.keepalive)

    def admit(self, waiting: Waiting, since: int | None, now: float) -> Announcement:
        """Let somebody in who asked: the notice first, then the answer."""
        parts, nym = self._parts, waiting.enter.card.person
        policy = parts.deed.policy
        opens = since if since is not None else (None if policy.restricts else 0)
        message, spoken = self.speaking().joined(nym, opens, now, self._keying.learn_device(waiting))
        self.say(spoken, now)
        self._door.let_in(waiting, now)
        return message, spoken

    def greet_device(self, waiting: Waiting, now: float) -> None:
        """Tell keys to a guest who is back at our door, perhaps with another device that lacks them."""
        device = self._keying.learn_device(waiting) if self._keying.is_news(waiting) else None
        if device is not None:
            self.tell_keys(device, now)

    def tell_keys(self, device: Device, now: float) -> None:
        """Tell a guest's device the keys of what is open to it; `Refused` if somebody else speaks."""
        self.say(self.speaking().tell_keys(device, self._parts.since_of(device.author), now), now)

    def draft_parting(self, nym: AuthorId, now: float) -> Announcement:
        """Sign the notice that a guest is none any more, for `say_parting`; `Refused` if nobody is to go."""
        if not self._door.is_guest(nym) or self._parts.deed.rank(nym) is not None:
            raise Refused(Reason.NOT_A_MEMBER, "no guest of this name is here")
        return self.speaking().parted(nym, now)

    def say_parting(self, nym: AuthorId, spoken: Sequence[Spoken], now: float) -> None:
        """Tell all that a guest is none any more, and disconnect it."""
        self.say(spoken, now)
        for peer, guest in self._parts.tree.downstreams.items():
            if guest == nym:
                # Behind the notice itself, which waits for its commit.
                self._out.committed.send(peer, Away(self._parts.id, Reason.NOT_A_MEMBER))
                self._taking.drop_neighbor(peer)

    def take_over(self, now: float) -> None:
        """Go on as the host, if a new version of the deed does not let the voice speak any more."""
        parts, voice = self._parts, self._parts.terms.voice
        if voice is None or parts.deed.rank(voice.person) is not None:
            return
        if parts.deed.rank(parts.context.author) == 0 and parts.is_whole:
            self._open(now)

    def break_silence(self, now: float) -> None:
        """Give a sign of life if nothing was said for a while, also where somebody got the voice and does
        not use it."""
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
        self.say(self.speaking().keep_alive(now), now)

    def _speak_instead(self, now: float) -> None:
        """Open the next term if whoever got the voice from us has not used it for long."""
        left = self._yielded_at + SILENCE * self._parts.config.keepalive - now
        if left > 0.0:
            self._set_timer(left)
            return
        before = self._out.mark()
        try:
            self._open(now)
        except Refused:
            self._out.forget_since(before)
            self._set_timer(self._parts.config.keepalive)

    # Inside.

    def _do(self, request: int, command: VoiceCommand, now: float) -> None:
        match command:
            case Announce(_, method, modifiers, body, reset, more):
                if more:
                    self._skip_numbers(now)
                message, spoken = self.speaking().announce(method, modifiers, body, reset, more, now)
                self.say(spoken, now)
                if more:
                    self._unfinished.began(message, self._parts.term)
            case AnnounceMore(_, message, body, more):
                spoken = self.speaking().more(message, body, more, now)
                if not more:
                    self._unfinished.ended(message)
                self.say(spoken, now)
            case Admit(_, nym, since):
                message, spoken = self.admit(self._door.take_waiting(nym), since, now)
            case Eject(_, nym):
                message, spoken = self.draft_parting(nym, now)
                self.say_parting(nym, spoken, now)
        self._reply(request, message, spoken)

    def _skip_numbers(self, now: float) -> None:
        """Use up numbers that an application still takes for its messages': open ones do not get them."""
        # The next one, and the one behind it, if keys have to be told first.
        while any(
            self._unfinished.is_taken(self._parts.fragments.standing.message + ahead, self._parts.term)
            for ahead in (1, 2)
        ):
            self.say(self.speaking().keep_alive(now), now)

    def _reply(self, request: int, message: int, spoken: Sequence[Spoken]) -> None:
        """Answer whoever announced something."""
        last = spoken[-1] if spoken else None
        fragment, event = (-1, None) if last is None else (last[1].fragment, last[0].head)
        size = 0 if self._speaking is None else self._speaking.size(message)
        self._out.committed.reply(request, Announced(self._parts.id, message, fragment, event, size))

    def _open(self, now: float) -> None:
        """Open the next term behind all that is held here without a gap."""
        self._taking.cut_back(now)
        if not self._parts.knows_state:
            raise Refused(Reason.MISSING_DEPENDENCY, "the state of the place is not known here yet")
        self._speaking = Speaking(self._parts)
        self.say(self._speaking.open_term(now), now)

    def _say_again(self, now: float) -> None:
        size = 0
        for orphan in resaying.orphans(self._parts) if self._again else ():
            if size > AT_ONCE:
                return
            size += sum(row.length for row in orphan.rows)
            spoken, record = resaying.say_again(self._parts, self.speaking(), orphan, now)
            self.say(spoken, now)
            if record is not None:
                self._out.record(record)
        self._again = False

    def _give_up(self, refused: Refused) -> None:
        """Tell whoever waits that our turn does not come. What is to be said again is tried again later."""
        waiting, self._queue = self._queue, deque()
        self.turns.end_wish()
        for request, _ in waiting:
            self._out.reply(request, Declined(refused.reason, refused.detail))
        untold, self._telling = self._telling, {}
        for _ in untold:
            self._record_untold(refused)  # it asks again
        self._refer_strangers(refused)
        if self._again:
            self.turns.set_timer(self._parts.config.entry_timeout)

    def _set_timer(self, delay: float) -> None:
        self._out.set_timer(delay, KeepAliveDue(self._parts.id))

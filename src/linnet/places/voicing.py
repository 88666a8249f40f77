"""The voice of a place at this node: what it is to say, and when it may.

What the application wants to say is said at once if it is our turn, else when it is. What was said in a term
that was cut is said again first, so that the order stays. While nothing is said, signs of life are given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeAlias

from linnet.core.effects import AfterCommit, Reply, Send, SetTimer
from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined
from linnet.groups.ids import Device
from linnet.places import resaying
from linnet.places.commands import Admit, Announce, Announced, AnnounceMore, Eject
from linnet.places.door import Door, Waiting
from linnet.places.effects import PlaceEffect
from linnet.places.keepers import Keepers
from linnet.places.keying import Keying
from linnet.places.messages import Away, Yield, Yielded
from linnet.places.parts import Parts
from linnet.places.speaking import Speaking, Spoken
from linnet.places.taking import Taking
from linnet.places.turns import Turn, Turns
from linnet.places.unfinished import Unfinished
from linnet.places.visiting import Visiting

OWNER = "place"
QUEUE = 256
"""Commands that may wait for our turn."""
AT_ONCE = 4 * 1024 * 1024
"""Bytes of what is said again in one go."""
SILENCE = 2.5
"""Keep-alives that may be missing before others are looked for."""

VoiceCommand: TypeAlias = Announce | AnnounceMore | Admit | Eject


class Voicing:
    """What one node says in one place."""

    def __init__(
        self,
        parts: Parts,
        taking: Taking,
        door: Door,
        visiting: Visiting,
        keying: Keying,
        keepers: Keepers,
    ) -> None:
        self._parts = parts
        self._keying = keying
        self._keepers = keepers
        self._taking = taking
        self._door = door
        self.turns = Turns(parts, visiting)
        self._speaking: Speaking | None = None
        self._unfinished = Unfinished(parts.id, parts.context.store.cells)
        self._queue: deque[tuple[int, VoiceCommand]] = deque()
        self._again = parts.may_speak and resaying.forget_idle(parts)
        """Whether something of ours is to be said again."""
        self._last_said = 0.0
        self._yielded_at = 0.0
        self.alive = Tick(OWNER, "alive", parts.id)

    def start(self, now: float) -> list[PlaceEffect]:
        """The voice goes on to give signs of life, also if it has nothing to say after a restart."""
        self._last_said = self._yielded_at = now
        voice = self._parts.terms.voice
        if voice is None or voice.device != self._parts.context.device:
            return []
        looked = self._keepers.look(now) if self._parts.is_voice else []
        return [SetTimer(self._parts.config.keepalive, self.alive), *looked]

    def put_back(self, seconds: float) -> None:
        """The clock was put back by so many seconds: what is to come is as far away as before."""
        self._last_said -= seconds
        self._yielded_at -= seconds
        self.turns.put_back(seconds)

    # What the application wants.

    def ask(self, request: int, command: VoiceCommand, now: float) -> list[PlaceEffect]:
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
            return self._do(request, command, now)
        if isinstance(command, AnnounceMore):
            raise Refused(Reason.STALE, "somebody else speaks now: this message ends here, say it again")
        if isinstance(command, Admit) and command.nym not in self._door.waiting:
            raise Refused(Reason.UNKNOWN, "nobody of this name waits at the door")
        if len(self._queue) >= QUEUE:
            raise Refused(Reason.QUEUE_FULL, f"{QUEUE} commands wait for our turn to speak")
        self._queue.append((request, command))
        return [*self.turns.want(now), *self.go_on(now)]

    def go_on(self, now: float) -> list[PlaceEffect]:
        """Say what waits, if it is our turn by now."""
        if self._taking.cut_off:
            self._taking.cut_off = False
            self._again = self._parts.may_speak and resaying.forget_idle(self._parts)
        if not (self._queue or self._again):
            return []
        effects: list[PlaceEffect] = [] if self.turns.is_wanted else [*self.turns.want(now)]
        turn = self.turns.turn(now)
        if turn is Turn.WAIT:
            return [*effects, *self.turns.ask(now)]
        try:
            if turn is Turn.OPEN:
                effects += self._open(now)
            effects += self._said_again(now)
        except Refused as refused:
            return [*effects, *self._give_up(refused)]
        if self._again:
            return [*effects, SetTimer(0.0, self.turns.tick)]
        effects += self.turns.done()
        while self._queue:
            request, command = self._queue.popleft()
            try:
                effects += self._do(request, command, now)
            except Refused as refused:
                effects.append(Reply(request, Declined(refused.reason, refused.detail)))
        return effects

    # Hand-over.

    def on_yield(self, peer: PeerId, asked: Yield, now: float) -> list[PlaceEffect]:
        """Somebody else wants to speak."""
        under_way = self._speaking is not None and self._speaking.under_way and self._parts.is_voice
        effects = self.turns.asked(peer, asked, under_way, now)
        if not self._parts.is_voice:
            self._speaking = None
            self._yielded_at = now
        return [*effects]

    def on_yielded(self, peer: PeerId, answer: Yielded, now: float) -> list[PlaceEffect]:
        """The voice lets us speak, or not."""
        reason, effects = self.turns.answered(peer, answer)
        if reason is not None:
            refused = Refused(reason, "the device that speaks does not hand over")
            return [*effects, *self._give_up(refused)]
        return [*effects, *self.go_on(now)]

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

    def say(self, spoken: Sequence[Spoken], now: float) -> list[PlaceEffect]:
        """Fragments of ours go out, and are taken in here as well."""
        self._last_said = now
        noted, self._parts.sealing.noted = self._parts.sealing.noted, []
        effects = [*noted, *self._taking.own(spoken, now), *self._keepers.look(now)]
        return [*effects, SetTimer(self._parts.config.keepalive, self.alive)]

    def admit(
        self, waiting: Waiting, since: int | None, now: float
    ) -> tuple[int, list[Spoken], list[PlaceEffect]]:
        """Let somebody in who asked: the notice first, then the answer."""
        parts, nym = self._parts, waiting.enter.card.person
        policy = parts.deed.policy
        opens = since if since is not None else (None if policy.restricts else 0)
        message, spoken = self.speaking().joined(nym, opens, now, self._keying.learned(waiting))
        effects = self.say(spoken, now)
        return message, spoken, [*effects, *self._door.let_in(waiting, now)]

    def greet(self, waiting: Waiting, now: float) -> list[PlaceEffect]:
        """A guest is back at our door, perhaps with another device: it may lack the keys."""
        device = self._keying.learned(waiting) if self._keying.is_news(waiting) else None
        return [] if device is None else self.tell_keys(device, now)

    def tell_keys(self, device: Device, now: float) -> list[PlaceEffect]:
        """Tell a guest's device the keys of what is open to it; `Refused` if somebody else speaks."""
        return self.say(self.speaking().tell_keys(device, self._parts.since_of(device.author), now), now)

    def part(self, nym: AuthorId, now: float) -> tuple[int, list[Spoken], list[PlaceEffect]]:
        """Tell all that a guest is none any more."""
        if not self._door.is_guest(nym) or self._parts.deed.rank(nym) is not None:
            raise Refused(Reason.NOT_A_MEMBER, "no guest of this name is here")
        message, spoken = self.speaking().parted(nym, now)
        effects = self.say(spoken, now)
        for peer, guest in self._parts.tree.downstreams.items():
            if guest == nym:
                # Behind the notice itself, which waits for its commit.
                effects += [AfterCommit((Send(peer, Away(self._parts.id, Reason.NOT_A_MEMBER)),))]
                self._taking.dropped(peer)
        return message, spoken, effects

    def take_over(self, now: float) -> list[PlaceEffect]:
        """The deed has a new version: if it does not let the voice speak any more, the host goes on."""
        parts, voice = self._parts, self._parts.terms.voice
        if voice is None or parts.deed.rank(voice.person) is not None:
            return []
        if parts.deed.rank(parts.context.author) != 0 or not parts.is_whole:
            return []
        return self._open(now)

    def silence(self, now: float) -> list[PlaceEffect]:
        """Nothing was said for a while: give a sign of life, also where somebody got the voice and does
        not use it."""
        parts = self._parts
        if not parts.is_voice:
            ours = parts.terms.voice is not None and parts.yielded == parts.opened_by
            if not ours or not parts.may_speak:
                return []
            left = self._yielded_at + SILENCE * parts.config.keepalive - now
            if left > 0.0:
                return [SetTimer(left, self.alive)]
            try:
                return self._open(now)
            except Refused:
                return [SetTimer(parts.config.keepalive, self.alive)]
        silent = now - self._last_said
        if silent + 1e-6 < parts.config.keepalive:
            return [SetTimer(parts.config.keepalive - silent, self.alive)]
        return self.say(self.speaking().keep_alive(now), now)

    # Inside.

    def _do(self, request: int, command: VoiceCommand, now: float) -> list[PlaceEffect]:
        match command:
            case Announce(_, method, modifiers, body, reset, more):
                effects = self._skip_numbers(now) if more else []
                message, spoken = self.speaking().announce(method, modifiers, body, reset, more, now)
                effects += self.say(spoken, now)
                if more:
                    self._unfinished.began(message, self._parts.term)
                return [*effects, self._announced(request, message, spoken)]
            case AnnounceMore(_, message, body, more):
                spoken = self.speaking().more(message, body, more, now)
                if not more:
                    self._unfinished.ended(message)
                return [*self.say(spoken, now), self._announced(request, message, spoken)]
            case Admit(_, nym, since):
                message, spoken, effects = self.admit(self._door.take_waiting(nym), since, now)
                return [*effects, self._announced(request, message, spoken)]
            case Eject(_, nym):
                message, spoken, effects = self.part(nym, now)
                return [*effects, self._announced(request, message, spoken)]

    def _skip_numbers(self, now: float) -> list[PlaceEffect]:
        """Numbers that an application still takes for those of its messages are not given to open ones."""
        effects: list[PlaceEffect] = []
        # The next one, and the one behind it, if keys have to be told first.
        while any(
            self._unfinished.is_taken(self._parts.fragments.standing.message + ahead, self._parts.term)
            for ahead in (1, 2)
        ):
            effects += self.say(self.speaking().keep_alive(now), now)
        return effects

    def _announced(
        self, request: int, message: int, spoken: Sequence[Spoken]
    ) -> AfterCommit[Reply[Announced]]:
        """The answer to whoever announced something."""
        last = spoken[-1] if spoken else None
        fragment, event = (-1, None) if last is None else (last[1].fragment, last[0].head)
        size = 0 if self._speaking is None else self._speaking.size(message)
        return AfterCommit((Reply(request, Announced(self._parts.id, message, fragment, event, size)),))

    def _open(self, now: float) -> list[PlaceEffect]:
        """Open the next term behind all that is held here without a gap."""
        effects: list[PlaceEffect] = [*self._taking.cut_back(now)]
        if not self._parts.knows_state:
            raise Refused(Reason.MISSING_DEPENDENCY, "the state of the place is not known here yet")
        self._speaking = Speaking(self._parts)
        return [*effects, *self.say(self._speaking.open_term(now), now)]

    def _said_again(self, now: float) -> list[PlaceEffect]:
        effects: list[PlaceEffect] = []
        size = 0
        for orphan in resaying.orphans(self._parts) if self._again else ():
            if size > AT_ONCE:
                return effects
            size += sum(row.length for row in orphan.rows)
            spoken, record = resaying.say_again(self._parts, self.speaking(), orphan, now)
            effects += [*self.say(spoken, now), *([] if record is None else [record])]
        self._again = False
        return effects

    def _give_up(self, refused: Refused) -> list[PlaceEffect]:
        """Our turn does not come: whoever waits is told. What is to be said again is tried again later."""
        waiting, self._queue = self._queue, deque()
        declined = Declined(refused.reason, refused.detail)
        effects: list[PlaceEffect] = [*self.turns.done(), *(Reply(each[0], declined) for each in waiting)]
        if self._again:
            effects.append(SetTimer(self._parts.config.entry_timeout, self.turns.tick))
        return effects

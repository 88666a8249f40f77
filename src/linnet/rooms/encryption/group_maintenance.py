"""Makes the group follow the room: who joined is let in, who left is put out, keys are renewed, acks go out.

Nothing here is decided by one member: each compares the resolved state with the group, and whose turn it is
(`Turns`) acts. Before anything is said the group is as the state wants it, and healed
(Weidner et al. 2021, section 6; docs/design/groups.md).

Whose turn it is: what one member does for all is done by the first, and by the next if that one does not.

All who are there work out the same order for each task, so mostly one of them acts. Whoever knows of others
that they are here waits for those before it in the order; nobody waits for who is away.

Members that have been away for so long that nobody should wait for them: they are put out, and added anew.

As long as a member has not acknowledged an operation all others keep what its ratchet will take then, a
newcomer is told of all of it, and whoever robs the one that is away can read the group. A relay keeps
operations for as long and no longer (`linnet.rooms.relay.group_keeping`), so who has missed more could not
follow anyway.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.commands import Declined
from linnet.groups import agreement
from linnet.groups.ids import Device, MemberId
from linnet.groups.state import GroupState
from linnet.identity.keys import device_id
from linnet.rooms.encryption.secrecy import Secrecy
from linnet.rooms.event_flow import Passing
from linnet.rooms.room_setup import Parts
from linnet.trace.records import Kind, Record

PARKED = 256
"""Commands that wait until this device has keys."""

_HEAL, _REMOVE = b"heal", b"remove"


class AcksDue(Timer, frozen=True, gc=False):
    """Acknowledgements that a room's group is owed are to be said."""

    room: TopicId


class KeyUpdateDue(Timer, frozen=True, gc=False):
    """The keys of a room's group are to be renewed."""

    room: TopicId


class ParkedDue(Timer, frozen=True, gc=False):
    """The first of the commands that wait for a room's keys has waited as long as it may."""

    room: TopicId


class TurnDue(Timer, frozen=True, gc=False):
    """It may be our turn to do something for a room's group."""

    room: TopicId


class _Parked(NamedTuple):
    request: int
    perform: Callable[[float], None]
    due: float


class Guarding:
    """The keeper of one room's keys at one device."""

    def __init__(self, parts: Parts, passing: Passing, secrecy: Secrecy) -> None:
        self._parts = parts
        self._out = parts.out
        self._passing = passing
        self._secrecy = secrecy
        self._config = parts.config
        self._context = parts.context
        self._turns = Turns(parts.config.turn_step)
        self._absence = Absence(parts.config.key_absence, parts.config.key_pending)
        self._parked: deque[_Parked] = deque()
        self._keyless: dict[AuthorId, float] = {}
        """People who are in the room and of whom no device can be reached, since when."""
        self._armed: dict[Timer, float] = {}
        """Timers that are set, and when they fire."""
        self._seen: object = None

    # Saying something.

    def prepare(self, now: float) -> None:
        """Say what has to be said before the next message; `Refused` while this device has no keys."""
        if not self._secrecy.can_speak:
            raise Refused(Reason.KEY_MISSING, "no member has let this device into the room's group yet")
        self._put_in_order(now)
        if agreement.needs_heal(self._secrecy.state(now)):
            self._update(now)
        for device in self._secrecy.missing():
            self._add(device, now)  # Whoever is in the room is to read it, whoever's turn it is.

    def park(self, request: int, perform: Callable[[float], None], now: float) -> None:
        """Keep a command until there are keys; it is answered then, or after a while."""
        if len(self._parked) >= PARKED:
            raise Refused(Reason.QUEUE_FULL, "too much waits for this device to be let into the group")
        self._parked.append(_Parked(request, perform, now + self._config.key_patience))
        self._arm(ParkedDue(self._parts.id), self._config.key_patience, now)

    def must_wait(self, now: float) -> bool:
        """Whether to say nothing yet: without keys, or while those who just joined have told none."""
        longest = self._config.newcomer_wait
        return not self._secrecy.can_speak or any(now - since < longest for since in self._keyless.values())

    # The life of the group.

    def found(self, now: float) -> None:
        """Found a group of this device alone, for a new room."""
        secrecy, entropy = self._secrecy, self._context.entropy
        draft = agreement.draft_create(secrecy.state(now), (), secrecy.bundle, secrecy.may_hold, entropy, now)
        self._say_seed(draft, now)
        self.act_on_changes(now)

    def _say_seed(self, draft: agreement.Draft, now: float) -> None:
        """Say an operation with a seed, and prekeys that are as new: older ones are not used after it."""
        self._passing.say_group(draft, now)
        self._tell_keys(now)

    def act_on_changes(self, now: float) -> None:
        """Look whether something is to be done; nothing if all is as it was."""
        while (seen := self._standing()) != self._seen:
            self._seen = seen
            self._look_for_keyless(now)
            self._absence.look(bool(self._parts.guests.by_peer), now)
            self._act(now)
        self._tell_repaired()

    def _standing(self) -> object:
        """All that what is to be done depends on, but for time."""
        parts = self._parts
        return self._secrecy.version, parts.control.heads, parts.guests.members, self._is_active

    def say_acks(self, now: float) -> None:
        """Say the acknowledgements that are owed."""
        self._forget_timer(AcksDue(self._parts.id))
        self._say_acks(now)
        self.act_on_changes(now)

    def renew_keys(self, now: float) -> None:
        """Renew keys on a schedule: so a theft that nobody noticed ends."""
        self._forget_timer(KeyUpdateDue(self._parts.id))
        if self._is_active and self._secrecy.can_speak:
            self._update(now)
        self.act_on_changes(now)

    def decline_parked(self, now: float) -> None:
        """Decline the commands that have waited for keys as long as they may."""
        self._forget_timer(ParkedDue(self._parts.id))
        while self._parked and self._parked[0].due <= now:
            waiting = self._parked.popleft()
            detail = "no member has let this device into the room's group yet; try again when one is online"
            self._out.reply(waiting.request, Declined(Reason.KEY_MISSING, detail))
        if self._parked:
            self._arm(ParkedDue(self._parts.id), self._parked[0].due - now, now)

    def take_turn(self, now: float) -> None:
        """See whether something is ours to do."""
        self._forget_timer(TurnDue(self._parts.id))
        self.act_on_changes(now)

    def _forget_timer(self, timer: Timer) -> None:
        self._armed.pop(timer, None)
        self._seen = None

    def stop(self) -> None:
        """Do nothing any more: the node stops, or we are of the room no longer."""
        for timer in self._armed:
            self._out.cancel_timer(timer)
        self._armed.clear()
        self._turns.clear()
        self._seen = None
        while self._parked:
            waiting = self._parked.popleft()
            self._out.reply(waiting.request, Declined(Reason.SHUTDOWN, "this node left or stops"))

    def _act(self, now: float) -> None:
        if not self._is_active:
            if self._secrecy.is_member:
                self._secrecy.forget(now)  # Others will not tell us that we were removed.
            return
        if not self._secrecy.is_member:
            self._tell_keys(now)
            return
        state = self._secrecy.state(now)
        if agreement.is_desynced(state):
            # Nobody can follow us any more: be removed, and added anew.
            if state.me not in state.leaving:
                self._passing.say_group(agreement.draft_leave(state, now), now)
            return
        if agreement.owes_acks(state):
            self._arm(AcksDue(self._parts.id), self._config.ack_delay, now)
        self._tell_keys(now)
        self._take_turns(now)
        self._arm_update(now)
        self._unpark(now)

    def _unpark(self, now: float) -> None:
        """Say what has waited, if nothing stands against it any more."""
        while self._parked and not self.must_wait(now):
            waiting = self._parked.popleft()
            before = self._out.mark()
            try:
                self.prepare(now)
                waiting.perform(now)
            except Refused as error:
                self._out.forget_since(before)
                self._out.reply(waiting.request, Declined(error.reason, error.detail))
        if self._parked and self._secrecy.can_speak:
            self._arm(TurnDue(self._parts.id), self._config.newcomer_wait, now)

    def _look_for_keyless(self, now: float) -> None:
        """Who is in the room without keys and without telling prekeys."""
        secrecy, view = self._secrecy, self._parts.control.view()
        reachable = {device.author for device in (*secrecy.members().values(), *secrecy.missing())}
        lacking = (
            person
            for person in view.joined()
            if person not in reachable and person != secrecy.ours.author and not view.is_relay_person(person)
        )
        self._keyless = {person: self._keyless.get(person, now) for person in lacking}

    def _take_turns(self, now: float) -> None:
        """Do what is ours to do now, and look again when the next is."""
        secrecy = self._secrecy
        tasks: dict[bytes, Callable[[float], None]] = {}
        if self._surplus(now):
            tasks[_REMOVE] = self._put_in_order
        elif agreement.needs_heal(secrecy.state(now)):
            tasks[_HEAL] = self._update
        for device in secrecy.missing():
            tasks[device.author + device.device] = partial(self._add, device)
        ours = secrecy.state(now).me or MemberId(b"")
        look = self._absence.next_look(secrecy.state(now), now)
        later: list[float] = [] if look is None else [look]
        for task, turn in self._turns.due(tasks, ours, self._here(), now).items():
            # More may be on its way, as when a partition ends. Who has something to say does not wait for it.
            due = turn + self._config.ack_delay if task in (_HEAL, _REMOVE) else turn
            if due > now:
                later.append(due)
                continue
            before = self._out.mark()
            try:
                tasks[task](now)
            except Refused as error:
                self._out.forget_since(before)
                self._turns.failed(task, now)
                later.append(now + self._config.turn_step)
                note = f"group: {error.detail[:80]}"
                self._out.record(Record(Kind.DROPPED, self._parts.id, reason=error.reason, note=note))
        if later:
            self._arm(TurnDue(self._parts.id), min(later) - now, now)

    def _surplus(self, now: float) -> list[MemberId]:
        """Members to be put out: who should hold no keys, and who has been away for too long."""
        surplus = self._secrecy.surplus()
        overdue = self._absence.overdue(self._secrecy.state(now), now)
        return [*surplus, *(member for member in overdue if member not in surplus)]

    def _put_in_order(self, now: float) -> None:
        """Say acks that are owed, and put out whoever should hold no keys: first of all that we say."""
        self._say_acks(now)
        secrecy = self._secrecy
        surplus = self._surplus(now)
        if surplus:
            draft = agreement.draft_remove(
                secrecy.state(now), surplus, secrecy.bundle, secrecy.may_hold, self._context.entropy, now
            )
            self._say_seed(draft, now)

    def _update(self, now: float) -> None:
        secrecy = self._secrecy
        removes = bool(self._surplus(now))
        self._put_in_order(now)
        if removes:
            return  # A removal brings a new seed as well.
        draft = agreement.draft_update(
            secrecy.state(now), secrecy.bundle, secrecy.may_hold, self._context.entropy, now
        )
        self._say_seed(draft, now)

    def _add(self, device: Device, now: float) -> None:
        secrecy = self._secrecy
        self._put_in_order(now)
        keys = secrecy.keyring.bundles[device]
        draft = agreement.draft_add(
            secrecy.state(now), device, keys, secrecy.bundle, secrecy.may_hold, self._context.entropy, now
        )
        self._passing.say_group(draft, now)

    def _say_acks(self, now: float) -> None:
        secrecy = self._secrecy
        while secrecy.is_member and agreement.owes_acks(secrecy.state(now)):
            draft = agreement.draft_acks(
                secrecy.state(now), secrecy.bundle, secrecy.may_hold, self._context.entropy, now
            )
            if draft is None:
                break
            self._passing.say_group(draft, now)

    def _tell_keys(self, now: float) -> None:
        """Tell prekeys by which this device can be reached, the first time and whenever they run low."""
        draft = agreement.draft_keys(self._secrecy.state(now), self._context.entropy, now)
        if draft is not None:
            self._passing.say_group(draft, now)

    def _arm_update(self, now: float) -> None:
        due = (self._secrecy.state(now).healed or now) + self._config.key_update
        delay = max(0.0, due - now) + self._context.rng.uniform(0.0, self._config.turn_step)
        self._arm(KeyUpdateDue(self._parts.id), delay, now)

    def _tell_repaired(self) -> None:
        """Tell whoever reads of events that can be read at last."""
        opening = self._secrecy.opening
        repaired, opening.repaired = opening.repaired, []
        if repaired:
            self._parts.readers.tell_repaired()

    @property
    def _is_active(self) -> bool:
        return self._secrecy.may_hold(self._secrecy.ours)

    def _here(self) -> tuple[MemberId, ...]:
        """Members that can be reached now, without ourselves."""
        guests = self._parts.guests
        online = {Device(guests.by_peer[peer].person, device_id(peer)) for peer in guests.members}
        return tuple(member for member, device in self._secrecy.members().items() if device in online)

    def _arm(self, timer: Timer, delay: float, now: float) -> None:
        """Set a timer, unless it fires before that anyway."""
        due = now + delay
        if self._armed.get(timer, due + 1.0) <= due:
            return
        self._armed[timer] = due
        self._out.set_timer(delay, timer)


class Turns:
    """Tasks of one room, and since when each is known to be due."""

    def __init__(self, step: float) -> None:
        self._step = step
        self._since: dict[bytes, float] = {}

    def due(
        self, tasks: Iterable[bytes], ours: MemberId, here: Iterable[MemberId], now: float
    ) -> dict[bytes, float]:
        """When each task is ours to do; tasks that are not named any more are forgotten."""
        here = tuple(here)
        self._since = {task: self._since.get(task, now) for task in tasks}
        return {task: since + self._step * rank(task, ours, here) for task, since in self._since.items()}

    def failed(self, task: bytes, now: float) -> None:
        """It could not be done: not before a step more."""
        if task in self._since:
            self._since[task] = now + self._step

    def clear(self) -> None:
        """Nothing is due."""
        self._since.clear()


def rank(task: bytes, ours: MemberId, here: Iterable[MemberId]) -> int:
    """How many of those who are here come before us in the order of a task."""
    place = _place(task, ours)
    return sum(_place(task, member) < place for member in here if member != ours)


def _place(task: bytes, member: MemberId) -> bytes:
    return hashlib.sha256(b"linnet/turn/1" + task + member).digest()


CONTACT = 3_600.0
"""Seconds in touch with others before we blame anybody: it may be us who were away, or still catch up."""


class Absence:
    """Who lets one room's group wait, as one device sees it."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._met: float | None = None
        """Since when somebody of the room has been here without a break."""

    def look(self, is_anyone_here: bool, now: float) -> None:
        """Whether there is anybody to hear acknowledgements from."""
        if not is_anyone_here:
            self._met = None
        elif self._met is None:
            self._met = now

    def overdue(self, state: GroupState, now: float) -> tuple[MemberId, ...]:
        """Members to be put out, without us; nobody before we have been in touch for a while."""
        return () if now < self.ripe(now) else self._late(state, now)

    def next_look(self, state: GroupState, now: float) -> float | None:
        """When to look again, if somebody is late and it is too early to say so."""
        is_early = self._met is not None and now < self.ripe(now)
        return self.ripe(now) if is_early and self._late(state, now) else None

    def ripe(self, now: float) -> float:
        """When we have been in touch for long enough; later than now while nobody is here."""
        return (now if self._met is None else self._met) + CONTACT

    def _late(self, state: GroupState, now: float) -> tuple[MemberId, ...]:
        late = agreement.overdue(state, now - self._seconds, self._most)
        return tuple(member for member in late if member != state.me)

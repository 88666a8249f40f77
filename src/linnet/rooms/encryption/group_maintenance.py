"""Makes the group follow the room: it adds and removes devices, renews keys, and publishes acknowledgements.

No single member is in charge: each compares the resolved state with the group, and the member whose turn it
is (`Turns`) acts. Before a message is sent, the group matches the state and is healed
(Weidner et al. 2021, section 6; docs/design/groups.md).

Turns: a task that one member does for all falls to the first in an order, and to the next if the first fails
to act. All online members compute the same order for each task, so mostly one of them acts. A member waits
for the online members before it in the order, and for no member that is offline.

Absence: a member that has been away for too long is removed from the group, and added anew when it returns.
As long as a member has not acknowledged an operation, all others keep the input for its ratchet, a newcomer
is told all of it, and a thief of the absent device can read the group. A relay keeps operations for as long
and no longer (`linnet.rooms.relay.event_index`), so a member that missed more could not follow anyway.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.groups import agreement
from linnet.groups.labels import Device, MemberId
from linnet.groups.state import GroupState
from linnet.identity.keys import device_id
from linnet.machine.commands import Declined
from linnet.rooms.encryption.room_group import RoomGroup
from linnet.rooms.event_flow import Passing
from linnet.rooms.messages import RoomTimer
from linnet.rooms.room_setup import Parts
from linnet.trace.records import Kind, Record

PARKED = 256
"""The most commands that wait until this device has keys."""

_HEAL, _REMOVE = b"heal", b"remove"


class AcksDue(RoomTimer, frozen=True, gc=False):
    """Timer: publish the acknowledgements that we owe a room's group."""


class KeyUpdateDue(RoomTimer, frozen=True, gc=False):
    """Timer: renew our keys in a room's group."""


class ParkedDue(RoomTimer, frozen=True, gc=False):
    """Timer: the first of the commands that wait for a room's keys has waited as long as it may."""


class TurnDue(RoomTimer, frozen=True, gc=False):
    """Timer: it may be our turn to do something for a room's group."""


class _Parked(NamedTuple):
    request: int
    perform: Callable[[float], None]
    due: float


class GroupMaintenance:
    """Maintains the group of one room at one device."""

    def __init__(self, parts: Parts, passing: Passing, group: RoomGroup) -> None:
        self._parts = parts
        self._passing = passing
        self._group = group
        self._turns = Turns(parts.config.turn_step)
        self._absence = Absence(parts.config.key_absence, parts.config.key_pending)
        self._parked: deque[_Parked] = deque()
        self._keyless: dict[AuthorId, float] = {}
        """Members without keys and prekeys on any device, with the time since which this holds."""
        self._armed: dict[Timer, float] = {}
        """The timers that are set, with the times at which they fire."""
        self._seen: object = None

    # Saying something.

    def prepare(self, now: float) -> None:
        """Publish the operations that are due before a message; raises `Refused` without keys."""
        if not self._group.can_speak:
            raise Refused(Reason.KEY_MISSING, "no member has let this device into the room's group yet")
        self._put_in_order(now)
        if agreement.needs_heal(self._group.state(now)):
            self._update(now)
        for device in self._group.missing():
            self._add(device, now)  # Every member should be able to read it, so do not wait for a turn.

    def park(self, request: int, perform: Callable[[float], None], now: float) -> None:
        """Park a command until we have keys; it is then carried out, or declined after a while."""
        if len(self._parked) >= PARKED:
            raise Refused(Reason.QUEUE_FULL, "too much waits for this device to be let into the group")
        self._parked.append(_Parked(request, perform, now + self._parts.config.key_patience))
        self._arm(ParkedDue(self._parts.id), self._parts.config.key_patience, now)

    def must_wait(self, now: float) -> bool:
        """Return whether messages must wait: for keys, or for prekeys of people who have just joined."""
        longest = self._parts.config.newcomer_wait
        return not self._group.can_speak or any(now - since < longest for since in self._keyless.values())

    # The life of the group.

    def found(self, now: float) -> None:
        """Found a group of this device alone, for a new room."""
        group = self._group
        draft = agreement.draft_create(group.state(now), (), self._means(now))
        self._say_seed(draft, now)
        self.act_on_changes(now)

    def _means(self, now: float) -> agreement.Means:
        group = self._group
        return agreement.Means(group.bundle, group.may_hold, self._parts.context.entropy, now)

    def _say_seed(self, draft: agreement.Draft, now: float) -> None:
        """Publish an operation with a new seed, and new prekeys, which replace the older ones."""
        self._passing.say_group(draft, now)
        self._tell_keys(now)

    def act_on_changes(self, now: float) -> None:
        """Act on changes of the group, the state or the online members, until nothing more is due."""
        while (seen := self._standing()) != self._seen:
            self._seen = seen
            self._look_for_keyless(now)
            self._absence.look(bool(self._parts.guests.by_peer), now)
            self._act(now)
        self._tell_repaired()

    def _standing(self) -> object:
        """Return everything but time on which the next actions depend."""
        parts = self._parts
        return self._group.version, parts.control.heads, parts.guests.members, self._is_active

    def say_acks(self, now: float) -> None:
        """Publish the acknowledgements that we owe."""
        self._forget_timer(AcksDue(self._parts.id))
        self._say_acks(now)
        self.act_on_changes(now)

    def renew_keys(self, now: float) -> None:
        """Renew our keys on a schedule, which ends an unnoticed theft."""
        self._forget_timer(KeyUpdateDue(self._parts.id))
        if self._is_active and self._group.can_speak:
            self._update(now)
        self.act_on_changes(now)

    def decline_parked(self, now: float) -> None:
        """Decline the commands that have waited for keys as long as they may."""
        self._forget_timer(ParkedDue(self._parts.id))
        while self._parked and self._parked[0].due <= now:
            waiting = self._parked.popleft()
            detail = "no member has let this device into the room's group yet; try again when one is online"
            self._parts.out.reply(waiting.request, Declined(Reason.KEY_MISSING, detail))
        if self._parked:
            self._arm(ParkedDue(self._parts.id), self._parked[0].due - now, now)

    def take_turn(self, now: float) -> None:
        """Do the tasks for which it is our turn."""
        self._forget_timer(TurnDue(self._parts.id))
        self.act_on_changes(now)

    def _forget_timer(self, timer: Timer) -> None:
        self._armed.pop(timer, None)
        self._seen = None

    def stop(self) -> None:
        """Cancel all timers and decline parked commands: the node stops, or we have left."""
        for timer in self._armed:
            self._parts.out.cancel_timer(timer)
        self._armed.clear()
        self._turns.clear()
        self._seen = None
        while self._parked:
            waiting = self._parked.popleft()
            self._parts.out.reply(waiting.request, Declined(Reason.SHUTDOWN, "this node left or stops"))

    def _act(self, now: float) -> None:
        if not self._is_active:
            if self._group.is_member:
                self._group.forget(now)  # Others will not tell us that we were removed.
            return
        if not self._group.is_member:
            self._tell_keys(now)
            return
        state = self._group.state(now)
        if agreement.is_desynced(state):
            # Nobody can follow our keys any more: leave the group, to be added anew.
            if state.me not in state.leaving:
                self._passing.say_group(agreement.draft_leave(state, now), now)
            return
        if agreement.owes_acks(state):
            self._arm(AcksDue(self._parts.id), self._parts.config.ack_delay, now)
        self._tell_keys(now)
        self._take_turns(now)
        self._arm_update(now)
        self._unpark(now)

    def _unpark(self, now: float) -> None:
        """Carry out parked commands, if messages need not wait any more."""
        while self._parked and not self.must_wait(now):
            waiting = self._parked.popleft()
            before = self._parts.out.mark()
            try:
                self.prepare(now)
                waiting.perform(now)
            except Refused as error:
                self._parts.out.forget_since(before)
                self._parts.out.reply(waiting.request, Declined(error.reason, error.detail))
        if self._parked and self._group.can_speak:
            self._arm(TurnDue(self._parts.id), self._parts.config.newcomer_wait, now)

    def _look_for_keyless(self, now: float) -> None:
        """Note the members of the room that have neither keys nor prekeys."""
        group, view = self._group, self._parts.control.view()
        reachable = {device.author for device in (*group.members().values(), *group.missing())}
        lacking = (
            person
            for person in view.joined()
            if person not in reachable and person != group.ours.author and not view.is_relay_person(person)
        )
        self._keyless = {person: self._keyless.get(person, now) for person in lacking}

    def _take_turns(self, now: float) -> None:
        """Do the tasks for which it is our turn now, and set the timer for the next turn."""
        group = self._group
        tasks: dict[bytes, Callable[[float], None]] = {}
        if self._surplus(now):
            tasks[_REMOVE] = self._put_in_order
        elif agreement.needs_heal(group.state(now)):
            tasks[_HEAL] = self._update
        for device in group.missing():
            tasks[device.author + device.device] = partial(self._add, device)
        ours = group.state(now).me or MemberId(b"")
        look = self._absence.next_look(group.state(now), now)
        later: list[float] = [] if look is None else [look]
        for task, turn in self._turns.due(tasks, ours, self._here(), now).items():
            # Wait: more changes may follow, as when a partition ends. Members about to send do not wait.
            due = turn + self._parts.config.ack_delay if task in (_HEAL, _REMOVE) else turn
            if due > now:
                later.append(due)
                continue
            before = self._parts.out.mark()
            try:
                tasks[task](now)
            except Refused as error:
                self._parts.out.forget_since(before)
                self._turns.failed(task, now)
                later.append(now + self._parts.config.turn_step)
                note = f"group: {error.detail[:80]}"
                self._parts.out.record(Record(Kind.DROPPED, self._parts.id, reason=error.reason, note=note))
        if later:
            self._arm(TurnDue(self._parts.id), min(later) - now, now)

    def _surplus(self, now: float) -> list[MemberId]:
        """Return the members to remove: they should hold no keys, or have been away for too long."""
        surplus = self._group.surplus()
        overdue = self._absence.overdue(self._group.state(now), now)
        return [*surplus, *(member for member in overdue if member not in surplus)]

    def _put_in_order(self, now: float) -> None:
        """Publish owed acknowledgements, and remove members that should hold no keys."""
        self._say_acks(now)
        group = self._group
        surplus = self._surplus(now)
        if surplus:
            draft = agreement.draft_remove(
                group.state(now),
                surplus,
                self._means(now),
            )
            self._say_seed(draft, now)

    def _update(self, now: float) -> None:
        group = self._group
        removes = bool(self._surplus(now))
        self._put_in_order(now)
        if removes:
            return  # A removal brings a new seed as well.
        draft = agreement.draft_update(group.state(now), self._means(now))
        self._say_seed(draft, now)

    def _add(self, device: Device, now: float) -> None:
        group = self._group
        self._put_in_order(now)
        keys = group.keyring.bundles[device]
        draft = agreement.draft_add(
            group.state(now),
            device,
            keys,
            self._means(now),
        )
        self._passing.say_group(draft, now)

    def _say_acks(self, now: float) -> None:
        group = self._group
        while group.is_member and agreement.owes_acks(group.state(now)):
            draft = agreement.draft_acks(group.state(now), self._means(now))
            if draft is None:
                break
            self._passing.say_group(draft, now)

    def _tell_keys(self, now: float) -> None:
        """Publish prekeys by which this device can be added, if there are none yet or they run low."""
        draft = agreement.draft_keys(self._group.state(now), self._parts.context.entropy, now)
        if draft is not None:
            self._passing.say_group(draft, now)

    def _arm_update(self, now: float) -> None:
        due = (self._group.state(now).healed or now) + self._parts.config.key_update
        delay = max(0.0, due - now) + self._parts.context.rng.uniform(0.0, self._parts.config.turn_step)
        self._arm(KeyUpdateDue(self._parts.id), delay, now)

    def _tell_repaired(self) -> None:
        """Tell subscribers about messages that have become readable."""
        opening = self._group.messages
        repaired, opening.repaired = opening.repaired, []
        if repaired:
            self._parts.subscriptions.tell_repaired()

    @property
    def _is_active(self) -> bool:
        return self._group.may_hold(self._group.ours)

    def _here(self) -> tuple[MemberId, ...]:
        """Return the members of the group whose devices are online."""
        guests = self._parts.guests
        online = {Device(guests.by_peer[peer].person, device_id(peer)) for peer in guests.members}
        return tuple(member for member, device in self._group.members().items() if device in online)

    def _arm(self, timer: Timer, delay: float, now: float) -> None:
        """Set a timer, unless it is set to fire sooner."""
        due = now + delay
        if self._armed.get(timer, due + 1.0) <= due:
            return
        self._armed[timer] = due
        self._parts.out.set_timer(delay, timer)


class Turns:
    """The turns of one room's members at tasks that one member does for all."""

    def __init__(self, step: float) -> None:
        self._step = step
        self._since: dict[bytes, float] = {}

    def due(
        self, tasks: Iterable[bytes], ours: MemberId, here: Iterable[MemberId], now: float
    ) -> dict[bytes, float]:
        """Return the time at which each task becomes our turn; forget tasks that are no longer given."""
        here = tuple(here)
        self._since = {task: self._since.get(task, now) for task in tasks}
        return {task: since + self._step * rank(task, ours, here) for task, since in self._since.items()}

    def failed(self, task: bytes, now: float) -> None:
        """Postpone a failed task by one step."""
        if task in self._since:
            self._since[task] = now + self._step

    def clear(self) -> None:
        """Forget all tasks."""
        self._since.clear()


def rank(task: bytes, ours: MemberId, here: Iterable[MemberId]) -> int:
    """Return the number of online members that come before us in the order of a task."""
    place = _place(task, ours)
    return sum(_place(task, member) < place for member in here if member != ours)


def _place(task: bytes, member: MemberId) -> bytes:
    return hashlib.sha256(b"linnet/turn/1" + task + member).digest()


CONTACT = 3_600.0
"""Seconds of contact with others before we count anyone as absent: we may have been away ourselves."""


class Absence:
    """Finds the group members that have been away for too long, as one device sees it."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._met: float | None = None
        """The time since which some member of the room has always been online; None: nobody is now."""

    def look(self, is_anyone_here: bool, now: float) -> None:
        """Note whether any other member is online."""
        if not is_anyone_here:
            self._met = None
        elif self._met is None:
            self._met = now

    def overdue(self, state: GroupState, now: float) -> tuple[MemberId, ...]:
        """Return the members to remove; none before we have been in contact for a while."""
        return () if now < self.ripe(now) else self._late(state, now)

    def next_look(self, state: GroupState, now: float) -> float | None:
        """Return when to look again, if a member is overdue and it is too early to remove it."""
        is_early = self._met is not None and now < self.ripe(now)
        return self.ripe(now) if is_early and self._late(state, now) else None

    def ripe(self, now: float) -> float:
        """Return the time at which we have been in contact for long enough; in the future while alone."""
        return (now if self._met is None else self._met) + CONTACT

    def _late(self, state: GroupState, now: float) -> tuple[MemberId, ...]:
        late = agreement.overdue(state, now - self._seconds, self._most)
        return tuple(member for member in late if member != state.me)

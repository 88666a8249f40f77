"""Makes the group follow the room: who joined is let in, who left is put out, keys are renewed, acks go out.

Nothing here is decided by one member: each compares the resolved state with the group, and whose turn it is
(`turns`) acts. Before anything is said the group is as the state wants it, and healed
(Weidner et al. 2021, section 6; docs/design/groups.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from linnet.core.effects import CancelTimer, Reply, SetTimer
from linnet.core.errors import Refused
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined
from linnet.groups import agreement
from linnet.groups.ids import Device, MemberId
from linnet.identity.keys import device_id
from linnet.rooms.effects import RoomStep
from linnet.rooms.parts import Parts
from linnet.rooms.passing import Passing
from linnet.rooms.secrecy.absence import Absence
from linnet.rooms.secrecy.secrecy import Secrecy
from linnet.rooms.secrecy.turns import Turns
from linnet.trace.records import Kind, Record

OWNER = "group"
PARKED = 256
"""Commands that wait until this device has keys."""

_HEAL, _REMOVE = b"heal", b"remove"


class _Parked(NamedTuple):
    request: int
    perform: Callable[[float], list[RoomStep]]
    due: float


class Guarding:
    """The keeper of one room's keys at one device."""

    def __init__(self, parts: Parts, passing: Passing, secrecy: Secrecy) -> None:
        self._parts = parts
        self._passing = passing
        self._secrecy = secrecy
        self._config = parts.config
        self._context = parts.context
        self._turns = Turns(parts.config.turn_step)
        self._absence = Absence(parts.config.key_absence, parts.config.key_pending)
        self._parked: deque[_Parked] = deque()
        self._keyless: dict[AuthorId, float] = {}
        """People who are in the room and of whom no device can be reached, since when."""
        self._armed: dict[str, float] = {}
        """Timers that are set, and when they fire."""
        self._seen: object = None

    # Saying something.

    def ready(self, now: float) -> list[RoomStep]:
        """What has to be said before the next message; `Refused` while this device has no keys."""
        if not self._secrecy.can_speak:
            raise Refused(Reason.KEY_MISSING, "no member has let this device into the room's group yet")
        steps = self._put_in_order(now)
        if agreement.needs_heal(self._secrecy.state(now)):
            steps += self._update(now)
        for device in self._secrecy.missing():
            steps += self._add(device, now)  # Whoever is in the room is to read it, whoever's turn it is.
        return steps

    def park(self, request: int, perform: Callable[[float], list[RoomStep]], now: float) -> list[RoomStep]:
        """Keep a command until there are keys; it is answered then, or after a while."""
        if len(self._parked) >= PARKED:
            raise Refused(Reason.QUEUE_FULL, "too much waits for this device to be let into the group")
        self._parked.append(_Parked(request, perform, now + self._config.key_patience))
        return self._arm("parked", self._config.key_patience, now)

    def must_wait(self, now: float) -> bool:
        """Whether to say nothing yet: without keys, or while those who just joined have told none."""
        longest = self._config.newcomer_wait
        return not self._secrecy.can_speak or any(now - since < longest for since in self._keyless.values())

    # The life of the group.

    def found(self, now: float) -> list[RoomStep]:
        """A new room: a group of this device alone."""
        secrecy, entropy = self._secrecy, self._context.entropy
        draft = agreement.draft_create(secrecy.state(now), (), secrecy.bundle, secrecy.may_hold, entropy, now)
        return [*self._say_seed(draft, now), *self.changed(now)]

    def _say_seed(self, draft: agreement.Draft, now: float) -> list[RoomStep]:
        """An operation with a seed, and prekeys that are as new: older ones are not used after it."""
        return [*self._passing.say_group(draft, now), *self._tell_keys(now)]

    def changed(self, now: float) -> list[RoomStep]:
        """Look whether something is to be done; nothing if all is as it was."""
        steps: list[RoomStep] = []
        while (seen := self._standing()) != self._seen:
            self._seen = seen
            self._look_for_keyless(now)
            self._absence.look(bool(self._parts.guests.by_peer), now)
            steps += self._act(now)
        return [*steps, *self._tell_repaired()]

    def _standing(self) -> object:
        """All that what is to be done depends on, but for time."""
        parts = self._parts
        return self._secrecy.version, parts.control.heads, parts.guests.members, self._is_active

    def fired(self, tick: Tick, now: float) -> list[RoomStep]:
        """A timer has run out."""
        self._armed.pop(tick.what, None)
        self._seen = None
        match tick.what:
            case "acks":
                return [*self._acks(now), *self.changed(now)]
            case "update":
                return [*self._renew(now), *self.changed(now)]
            case "parked":
                return self._impatient(now)
            case _:
                return self.changed(now)

    def stop(self) -> list[RoomStep]:
        """The node stops, or we are of the room no longer."""
        steps: list[RoomStep] = [CancelTimer(self._tick(what)) for what in self._armed]
        self._armed.clear()
        self._turns.clear()
        self._seen = None
        while self._parked:
            waiting = self._parked.popleft()
            steps.append(Reply(waiting.request, Declined(Reason.SHUTDOWN, "this node left or stops")))
        return steps

    def _act(self, now: float) -> list[RoomStep]:
        if not self._is_active:
            if self._secrecy.is_member:
                self._secrecy.forget(now)  # Others will not tell us that we were removed.
            return []
        if not self._secrecy.is_member:
            return self._tell_keys(now)
        state = self._secrecy.state(now)
        steps: list[RoomStep] = []
        if agreement.is_desynced(state):
            # Nobody can follow us any more: be removed, and added anew.
            asked = state.me in state.leaving
            return [] if asked else self._passing.say_group(agreement.draft_leave(state, now), now)
        if agreement.owes_acks(state):
            steps += self._arm("acks", self._config.ack_delay, now)
        steps += self._tell_keys(now)
        steps += self._take_turns(now)
        steps += self._arm_update(now)
        return [*steps, *self._unpark(now)]

    def _unpark(self, now: float) -> list[RoomStep]:
        """Say what has waited, if nothing stands against it any more."""
        steps: list[RoomStep] = []
        while self._parked and not self.must_wait(now):
            waiting = self._parked.popleft()
            try:
                steps += [*self.ready(now), *waiting.perform(now)]
            except Refused as error:
                steps.append(Reply(waiting.request, Declined(error.reason, error.detail)))
        if self._parked and self._secrecy.can_speak:
            steps += self._arm("turn", self._config.newcomer_wait, now)
        return steps

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

    def _take_turns(self, now: float) -> list[RoomStep]:
        """Do what is ours to do now, and look again when the next is."""
        secrecy = self._secrecy
        tasks: dict[bytes, Callable[[float], list[RoomStep]]] = {}
        if self._surplus(now):
            tasks[_REMOVE] = self._put_in_order
        elif agreement.needs_heal(secrecy.state(now)):
            tasks[_HEAL] = self._update
        for device in secrecy.missing():
            tasks[device.author + device.device] = lambda now, device=device: self._add(device, now)  # type: ignore[misc]
        ours = secrecy.state(now).me or MemberId(b"")
        steps: list[RoomStep] = []
        look = self._absence.next_look(secrecy.state(now), now)
        later: list[float] = [] if look is None else [look]
        for task, turn in self._turns.due(tasks, ours, self._here(), now).items():
            # More may be on its way, as when a partition ends. Who has something to say does not wait for it.
            due = turn + self._config.ack_delay if task in (_HEAL, _REMOVE) else turn
            if due > now:
                later.append(due)
                continue
            try:
                steps += tasks[task](now)
            except Refused as error:
                self._turns.failed(task, now)
                later.append(now + self._config.turn_step)
                steps.append(
                    Record(
                        Kind.DROPPED, self._parts.id, reason=error.reason, note=f"group: {error.detail[:80]}"
                    )
                )
        return [*steps, *(self._arm("turn", min(later) - now, now) if later else ())]

    def _surplus(self, now: float) -> list[MemberId]:
        """Members to be put out: who should hold no keys, and who has been away for too long."""
        surplus = self._secrecy.surplus()
        overdue = self._absence.overdue(self._secrecy.state(now), now)
        return [*surplus, *(member for member in overdue if member not in surplus)]

    def _put_in_order(self, now: float) -> list[RoomStep]:
        """Acks that are owed, and out with whoever should hold no keys: first of all that we say."""
        steps = self._acks(now)
        secrecy = self._secrecy
        surplus = self._surplus(now)
        if surplus:
            draft = agreement.draft_remove(
                secrecy.state(now), surplus, secrecy.bundle, secrecy.may_hold, self._context.entropy, now
            )
            steps += self._say_seed(draft, now)
        return steps

    def _update(self, now: float) -> list[RoomStep]:
        secrecy = self._secrecy
        removes = bool(self._surplus(now))
        steps = self._put_in_order(now)
        if removes:
            return steps  # A removal brings a new seed as well.
        draft = agreement.draft_update(
            secrecy.state(now), secrecy.bundle, secrecy.may_hold, self._context.entropy, now
        )
        return [*steps, *self._say_seed(draft, now)]

    def _add(self, device: Device, now: float) -> list[RoomStep]:
        secrecy = self._secrecy
        steps = self._put_in_order(now)
        keys = secrecy.keyring.bundles[device]
        draft = agreement.draft_add(
            secrecy.state(now), device, keys, secrecy.bundle, secrecy.may_hold, self._context.entropy, now
        )
        return [*steps, *self._passing.say_group(draft, now)]

    def _acks(self, now: float) -> list[RoomStep]:
        secrecy = self._secrecy
        steps: list[RoomStep] = []
        while secrecy.is_member and agreement.owes_acks(secrecy.state(now)):
            draft = agreement.draft_acks(
                secrecy.state(now), secrecy.bundle, secrecy.may_hold, self._context.entropy, now
            )
            if draft is None:
                break
            steps += self._passing.say_group(draft, now)
        return steps

    def _tell_keys(self, now: float) -> list[RoomStep]:
        """Prekeys by which this device can be reached, the first time and whenever they run low."""
        draft = agreement.draft_keys(self._secrecy.state(now), self._context.entropy, now)
        return [] if draft is None else self._passing.say_group(draft, now)

    def _renew(self, now: float) -> list[RoomStep]:
        """New keys on a schedule: so a theft that nobody noticed ends."""
        if not self._is_active or not self._secrecy.can_speak:
            return []
        return self._update(now)

    def _arm_update(self, now: float) -> list[RoomStep]:
        due = (self._secrecy.state(now).healed or now) + self._config.key_update
        return self._arm(
            "update", max(0.0, due - now) + self._context.rng.uniform(0.0, self._config.turn_step), now
        )

    def _impatient(self, now: float) -> list[RoomStep]:
        steps: list[RoomStep] = []
        while self._parked and self._parked[0].due <= now:
            waiting = self._parked.popleft()
            detail = "no member has let this device into the room's group yet; try again when one is online"
            steps.append(Reply(waiting.request, Declined(Reason.KEY_MISSING, detail)))
        if self._parked:
            steps += self._arm("parked", self._parked[0].due - now, now)
        return steps

    def _tell_repaired(self) -> list[RoomStep]:
        """Events that can be read at last, to whoever reads."""
        opening = self._secrecy.opening
        repaired, opening.repaired = opening.repaired, []
        return [*self._parts.readers.repaired()] if repaired else []

    @property
    def _is_active(self) -> bool:
        return self._secrecy.may_hold(self._secrecy.ours)

    def _here(self) -> tuple[MemberId, ...]:
        """Members that can be reached now, without ourselves."""
        guests = self._parts.guests
        online = {Device(guests.by_peer[peer].person, device_id(peer)) for peer in guests.members}
        return tuple(member for member, device in self._secrecy.members().items() if device in online)

    def _arm(self, what: str, delay: float, now: float) -> list[RoomStep]:
        """Set a timer, unless it fires before that anyway."""
        due = now + delay
        if self._armed.get(what, due + 1.0) <= due:
            return []
        self._armed[what] = due
        return [SetTimer(delay, self._tick(what))]

    def _tick(self, what: str) -> Tick:
        return Tick(OWNER, what, self._parts.id)

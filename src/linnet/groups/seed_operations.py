"""Creations, updates and removals: operations that bring a seed (Weidner et al. 2021, section 5.3).

Each recipient's share of the seed goes into its own ratchet when it acknowledges, and all others follow it
then. Members that are no recipients acknowledge without a share. One rule is our own: a member whose view
lacks the sender takes nothing of its seed. Each member's acknowledgements of others' operations tell
everybody whether that was so; and once all have seen a removal, no key depends on the removed member any
more.
"""

from __future__ import annotations

from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import membership, removal_cover, two_party
from linnet.groups.bodies import Create, Head, Remove, Update
from linnet.groups.drafts import Step, founders
from linnet.groups.labels import Device, MemberId, Purpose
from linnet.groups.notes import Added, Desynced, Ignored, Joined, Removed, RemovedSelf
from linnet.groups.primitives import KeyPair
from linnet.groups.state import GroupState, Owed
from linnet.groups.work import UNUSED, Direct, Work, member_id, member_secrets

MAX_PAST = 64
"""Former stays of our own device that are remembered, at most."""


def found_group(work: Work, op: EventId, content: Create) -> None:
    """Begin the group with the members that a creation names."""
    members = founders(work.group, op, content.members, content.nonce)
    work.history = membership.create(membership.EMPTY, op, members)
    for member in members:
        work.clock[member.id], work.ratchets[member.id] = 0, UNUSED


def join_founded(work: Work, sender: Device, op: EventId, content: Create, now: float) -> None:
    """Join a group that another device created with us among the first members."""
    group, nonce = work.group, content.nonce
    ids = {device: member_id(group, device, identity, nonce) for device, identity in content.members}
    if ids.get(sender) != content.head.sender or content.head.cseq != 1:
        raise MalformedMessage("a creation by one who is not in it")
    if len(ids) > work.config.members:
        raise RemoteError(Reason.GROUP_FULL, f"a group has at most {work.config.members} members")
    found_group(work, op, content)
    work.me = ids[work.ours]
    work.clock[content.head.sender], work.last[content.head.sender] = 1, op
    work.notes += (Joined(work.me), *(Added(ids[device], device) for device in ids))
    take_seed(work, op, content, now)


def receive_update(work: Work, op: EventId, content: Update, now: float) -> None:
    """Carry out another member's update, which brings a new seed."""
    take_seed(work, op, content, now)


def receive_remove(work: Work, op: EventId, content: Remove, now: float) -> bool:
    """Carry out another member's removal with its new seed; False, with nothing done, if it names us."""
    before = work.history.view_ids(None)
    try:
        history = membership.remove(work.history, op, content.head.sender, content.targets)
    except RemoteError as error:
        work.notes.append(Ignored(error.reason, error.detail))
        return True
    if membership.covers(history, op, work.self):
        _recipients(history, content)
        return False
    work.history = history
    take_seed(work, op, content, now)
    after = set(history.view_ids(None))
    gone = tuple(member for member in before if member not in after)
    if gone:
        work.notes.append(Removed(gone))
    return True


def take_seed(work: Work, op: EventId, content: Create | Update | Remove, now: float) -> None:
    """Take the seed of another member's operation, which the history has already."""
    head, me = content.head, work.self
    recipients = _recipients(work.history, content)
    secrets: dict[MemberId, bytes] = {}
    share: bytes | None = None
    heeds = membership.sees(work.history, None, head.sender)
    if head.sender in work.closed:
        recipients = ()  # Its keys are gone, and nobody takes anything of its seed any more.
    elif work.hardening.inband_prekeys:
        work.peer_inband[head.sender] = (head.cseq, content.spk)
    if me in recipients:
        direct = content.directs[recipients.index(me)]
        try:
            seed = work.open_from(Direct(head.sender, head.cseq, Purpose.SEED, direct), now)
        except RemoteError as error:
            _miss_seed(work, op, content, error, now)
            return
        secrets = member_secrets(seed, work.group, op, (head.sender, *recipients))
        share = secrets.pop(me) if heeds else None
        secrets.pop(me, None)
        _turn_ratchet(work, head, secrets.pop(head.sender), now)
    elif work.hardening.inband_prekeys and head.sender in work.channels:
        # The keys of the sender that we know may be known to a thief that it has just shut out.
        work.channels[head.sender] = two_party.restart(work.channels[head.sender])
    if me not in recipients:
        secrets = dict.fromkeys(recipients, b"")
    work.await_acks(op, head, secrets, now)
    to: tuple[MemberId, ...] = ()
    if share is not None:
        work.cover = removal_cover.cover_by_seed(work.cover, work.history, head.sender)
        known = {me, head.sender, *recipients}
        to = tuple(member for member in work.history.view_ids(None) if member not in known)
    if not work.desynced:
        work.owed = (*work.owed, Owed(op, False, share, to))


def sent_seed(work: Work, op: EventId, content: Create | Update | Remove, seed: bytes, now: float) -> None:
    """Carry out an operation of our own that was sent, with its seed."""
    me = work.self
    if isinstance(content, Create):
        found_group(work, op, content)
        work.notes.append(Joined(me))
    elif isinstance(content, Remove):
        work.history = membership.remove(work.history, op, me, content.targets)
        work.notes.append(Removed(content.targets))
    work.cover = removal_cover.cover_by_own_seed(work.history)
    recipients = tuple(member for member in work.history.view_ids(None) if member != me)
    secrets = member_secrets(seed, work.group, op, (me, *recipients))
    _turn_ratchet(work, content.head, secrets.pop(me), now)
    work.await_acks(op, content.head, secrets, now)
    if isinstance(content, Remove):
        work.close(now)


def forget_group(state: GroupState) -> Step:
    """Return the step after our removal: no secret is left, and to be added again we publish new prekeys."""
    past = state.past if state.me is None else (*state.past, state.me)
    nothing = replace(state.prekeys, identity=KeyPair(b"", b""), signed=(), one_time=())
    blank = GroupState(
        state.group, state.ours, state.config, state.hardening, nothing, 0, True, None, past[-MAX_PAST:]
    )
    return Step(blank, (RemovedSelf(),))


def _recipients(history: membership.History, content: Create | Update | Remove) -> tuple[MemberId, ...]:
    """Return the members that the sender addressed, by its own view."""
    sender = content.head.sender
    recipients = tuple(member for member in history.view_ids(sender) if member != sender)
    if len(recipients) != len(content.directs):
        raise MalformedMessage(
            f"a seed to {len(content.directs)} members, its sender knows {len(recipients)}"
        )
    return recipients


def _turn_ratchet(work: Work, head: Head, secret: bytes, now: float) -> None:
    """Give the sender's own ratchet its share."""
    work.epoch(head.sender, head.cseq, work.mix(head.sender, secret), head.app_count, now)


def _miss_seed(
    work: Work, op: EventId, content: Create | Update | Remove, error: RemoteError, now: float
) -> None:
    """Stop sending after a seed that we should take but cannot: nobody could follow us, so we only listen."""
    head = content.head
    recipients = _recipients(work.history, content)
    heeds = membership.sees(work.history, None, head.sender)
    work.lose(head.sender, f"its seed does not open: {error.reason}")
    work.await_acks(op, head, dict.fromkeys(recipients, b""), now)
    if not heeds:
        work.owed = (*work.owed, Owed(op, False, None, ()))
    elif not work.desynced:
        work.desynced = f"a seed of {head.sender.hex()} does not open: {error.reason}"
        work.owed = ()
        work.notes.append(Desynced(work.desynced))

"""Creations, updates and removals: operations that bring a seed (Weidner et al. 2021, section 5.3).

Each recipient's share of the seed goes into its own ratchet when it acknowledges, and all others follow it
then. Whoever is no recipient acknowledges without a share. One rule is our own: a member whose view lacks
the sender takes nothing of its seed. What is seen of each other's acknowledgements tells everybody
whether that was so; and once all have seen a removal, no key depends on the removed any more.
"""

from __future__ import annotations

from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import healing, membership, two_party
from linnet.groups.bodies import Create, Head, Remove, Update
from linnet.groups.drafting import Step, founders
from linnet.groups.ids import Device, MemberId
from linnet.groups.labels import Purpose
from linnet.groups.notes import Added, Desynced, Ignored, Joined, Removed, RemovedSelf
from linnet.groups.primitives import KeyPair
from linnet.groups.state import GroupState, Owed
from linnet.groups.working import UNUSED, Work, member_id, member_secrets

MAX_PAST = 64
"""Former stays of our own that are remembered."""


def found(work: Work, op: EventId, content: Create) -> None:
    """The group begins, for whoever is named."""
    members = founders(work.group, op, content.members, content.nonce)
    work.history = membership.create(membership.EMPTY, op, members)
    for member in members:
        work.clock[member.id], work.ratchets[member.id] = 0, UNUSED


def join_founded(work: Work, sender: Device, op: EventId, content: Create, now: float) -> None:
    """We are among the first members of a group that somebody else created."""
    group, nonce = work.group, content.nonce
    ids = {device: member_id(group, device, identity, nonce) for device, identity in content.members}
    if ids.get(sender) != content.head.sender or content.head.cseq != 1:
        raise MalformedMessage("a creation by one who is not in it")
    if len(ids) > work.config.members:
        raise RemoteError(Reason.GROUP_FULL, f"a group has at most {work.config.members} members")
    found(work, op, content)
    work.me = ids[work.ours]
    work.clock[content.head.sender], work.last[content.head.sender] = 1, op
    work.notes += (Joined(work.me), *(Added(ids[device], device) for device in ids))
    take_seed(work, op, content, now)


def update(work: Work, op: EventId, content: Update, now: float) -> None:
    """A member brought a new seed."""
    take_seed(work, op, content, now)


def remove(work: Work, op: EventId, content: Remove, now: float) -> bool:
    """A member removed others, and brought a new seed. False if we are among them: then nothing is done."""
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
    """A seed of somebody else, in whose operation the history is up to date."""
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
            seed = work.open_from(head.sender, Purpose.SEED, direct, head.cseq, now)
        except RemoteError as error:
            _miss(work, head, recipients, op, error, heeds, now)
            return
        secrets = member_secrets(seed, work.group, op, (head.sender, *recipients))
        share = secrets.pop(me) if heeds else None
        secrets.pop(me, None)
        _turn(work, head, secrets.pop(head.sender), now)
    elif work.hardening.inband_prekeys and head.sender in work.channels:
        # What we know of the sender may be known to whoever it has just shut out.
        work.channels[head.sender] = two_party.restart(work.channels[head.sender])
    if me not in recipients:
        secrets = dict.fromkeys(recipients, b"")
    work.await_acks(op, head.sender, head.cseq, secrets, now)
    to: tuple[MemberId, ...] = ()
    if share is not None:
        work.cover = healing.incorporated(work.cover, work.history, head.sender)
        known = {me, head.sender, *recipients}
        to = tuple(member for member in work.history.view_ids(None) if member not in known)
    if not work.desynced:
        work.owed = (*work.owed, Owed(op, False, share, to))


def sent_seed(work: Work, op: EventId, content: Create | Update | Remove, seed: bytes, now: float) -> None:
    """A seed of our own is out."""
    me = work.self
    if isinstance(content, Create):
        found(work, op, content)
        work.notes.append(Joined(me))
    elif isinstance(content, Remove):
        work.history = membership.remove(work.history, op, me, content.targets)
        work.notes.append(Removed(content.targets))
    work.cover = healing.own(work.history)
    recipients = tuple(member for member in work.history.view_ids(None) if member != me)
    secrets = member_secrets(seed, work.group, op, (me, *recipients))
    _turn(work, content.head, secrets.pop(me), now)
    work.await_acks(op, me, content.head.cseq, secrets, now)
    if isinstance(content, Remove):
        work.close(now)


def removed_self(state: GroupState) -> Step:
    """We are out: no secret is left, not even to be added again by: for that we publish new prekeys."""
    past = state.past if state.me is None else (*state.past, state.me)
    nothing = replace(state.prekeys, identity=KeyPair(b"", b""), signed=(), one_time=())
    blank = GroupState(
        state.group, state.ours, state.config, state.hardening, nothing, 0, True, None, past[-MAX_PAST:]
    )
    return Step(blank, (RemovedSelf(),))


def _recipients(history: membership.History, content: Create | Update | Remove) -> tuple[MemberId, ...]:
    """Whom the sender addressed, by its own view."""
    sender = content.head.sender
    recipients = tuple(member for member in history.view_ids(sender) if member != sender)
    if len(recipients) != len(content.directs):
        raise MalformedMessage(
            f"a seed to {len(content.directs)} members, its sender knows {len(recipients)}"
        )
    return recipients


def _turn(work: Work, head: Head, secret: bytes, now: float) -> None:
    """The sender's own ratchet takes its share."""
    work.epoch(head.sender, head.cseq, work.mix(head.sender, secret), head.app_count, now)


def _miss(
    work: Work,
    head: Head,
    recipients: tuple[MemberId, ...],
    op: EventId,
    error: RemoteError,
    heeds: bool,
    now: float,
) -> None:
    """We cannot take a seed that we should: nobody could follow us, so we only listen from now on."""
    work.lose(head.sender, f"its seed does not open: {error.reason}")
    work.await_acks(op, head.sender, head.cseq, dict.fromkeys(recipients, b""), now)
    if not heeds:
        work.owed = (*work.owed, Owed(op, False, None, ()))
    elif not work.desynced:
        work.desynced = f"a seed of {head.sender.hex()} does not open: {error.reason}"
        work.owed = ()
        work.notes.append(Desynced(work.desynced))

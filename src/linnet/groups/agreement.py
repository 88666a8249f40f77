"""Key agreement of a group without a server: our own and others' operations, and queries on a state.

The protocol is that of Weidner, Kleppmann, Hugenroth and Beresford, "Key Agreement for Decentralized Secure
Group Messaging with Strong Security Guarantees" (2021), with hardenings of our own (docs/design/groups.md).
Local operations are drafted, then `sent` once the event has its id; those of others are received. All is
`new_state = f(state, input)`: the caller keeps the new state before anything else becomes visible.

A member's operations count in their order, and an acknowledgement after the operation that it names; a caller
that delivers events causally has both for free. Whether an operation is valid is judged in its sender's view
alone, so that all members agree.

Operations of a removed member still count: members that did not know of the removal have followed them, and
two who remove each other must both be out, or the group would be split for good. When all have seen the
removal its keys are gone and nothing depends on its seeds; after a while more (`GroupConfig.linger`) an
operation of its counts only once a present member has acknowledged it, and after as long again it is
forgotten.
"""

from __future__ import annotations

from typing import assert_never

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups import acknowledgements, additions, membership, removal_cover, seed_operations
from linnet.groups.acknowledgements import draft_acks, healed_by, overdue, pending_by_member
from linnet.groups.additions import draft_add, sent_add
from linnet.groups.bodies import Acks, Add, Body, Create, Head, Keys, Leave, Remove, Update, decode_body
from linnet.groups.chains import NO_TOTAL, debt
from linnet.groups.drafts import (
    Draft,
    Step,
    draft_create,
    draft_keys,
    draft_leave,
    draft_remove,
    draft_update,
)
from linnet.groups.labels import Device, MemberId
from linnet.groups.notes import Desynced, Equivocation, Ignored, Lack, Leaves, Note, Waits
from linnet.groups.prekeys import make_prekeys
from linnet.groups.seed_operations import sent_seed
from linnet.groups.state import GroupConfig, GroupState, Hardening
from linnet.groups.work import Directory, MayHold, Means, Work, member_id

__all__ = [
    "Directory",
    "Draft",
    "MayHold",
    "Means",
    "Step",
    "begin",
    "draft_acks",
    "draft_add",
    "draft_create",
    "draft_keys",
    "draft_leave",
    "draft_remove",
    "draft_update",
    "forward_debt",
    "healed_by",
    "identity_of",
    "is_desynced",
    "is_member",
    "key_ages",
    "late_messages",
    "leaving",
    "members",
    "needs_heal",
    "overdue",
    "owes_acks",
    "pending_by_member",
    "receive",
    "sent",
    "tend",
]

_CONFIG, _HARDENING = GroupConfig(), Hardening()


def begin(
    group: bytes,
    ours: Device,
    entropy: Entropy,
    now: float,
    config: GroupConfig = _CONFIG,
    hardening: Hardening = _HARDENING,
) -> GroupState:
    """Return the state of a device that is not in the group yet, with prekeys to be added by."""
    return GroupState(group, ours, config, hardening, make_prekeys(entropy, now, config.one_time))


def sent(draft: Draft, op: EventId) -> Step:
    """Carry out a draft that became the event of this id."""
    work, content = Work(draft.state), draft.content
    match content:
        case Create() | Update() | Remove():
            sent_seed(work, op, content, draft.seed, draft.now)
        case Add():
            sent_add(work, op, content, draft.now)
        case Leave():
            work.leaving = (*work.leaving, work.self)
        case Acks() | Keys():
            pass  # All was done when it was drafted: nothing depends on the id.
    if not isinstance(content, Keys):
        work.clock[work.self], work.last[work.self] = work.cseq, op
    return Step(work.state(), (*draft.notes, *work.notes))


def tend(state: GroupState, now: float) -> GroupState:
    """Drop from a state all that has expired; sending and receiving do the same."""
    work = Work(state)
    work.tend(now)
    return work.state()


def is_member(state: GroupState) -> bool:
    """Return whether this device is in the group, as far as it knows."""
    return state.me is not None


def is_desynced(state: GroupState) -> bool:
    """Return whether nobody could follow us any more: this device has to be removed and added anew."""
    return bool(state.desynced)


def owes_acks(state: GroupState) -> bool:
    """Return whether acknowledgements have to be sent before anything else."""
    return bool(state.owed) and not state.desynced


def needs_heal(state: GroupState) -> bool:
    """Return whether removed members might read our messages: a new seed has to come first."""
    return state.me is not None and removal_cover.needs_heal(state.cover, state.history)


def members(state: GroupState) -> dict[MemberId, Device]:
    """Return the members of the group, as far as we know, by id."""
    if state.me is None:
        return {}
    view = set(state.history.view_ids(None))
    return {member.id: member.device for member in state.history.members if member.id in view}


def identity_of(state: GroupState, member: MemberId) -> bytes | None:
    """Return the identity key of a member, present or past."""
    known = state.history.member(member)
    return None if known is None else known.identity


def leaving(state: GroupState) -> tuple[MemberId, ...]:
    """Return the members that have asked to be removed and are still there, by id."""
    here = set(state.history.view_ids(None))
    return tuple(sorted(member for member in state.leaving if member in here))


def key_ages(state: GroupState, now: float) -> dict[MemberId, float]:
    """Return the age in seconds of the present epoch of each member that can be read, and of our own."""
    ages = {
        member: now - state.chains[member].chains[-1].since
        for member in members(state)
        if member in state.chains and state.chains[member].chains
    }
    if state.me is not None and state.sending is not None:
        ages[state.me] = now - state.sending.since
    return dict(sorted(ages.items()))


def late_messages(state: GroupState) -> int:
    """Return how many messages are known to have been sent and have not come; their keys are kept.

    How many messages a removed member had sent is not known: none of them are counted.
    """
    chains = [chain for member in state.chains.values() for chain in member.chains]
    return sum(len(chain.skipped) for chain in chains) + sum(
        max(0, chain.total - chain.index) for chain in chains if 0 <= chain.total < NO_TOTAL
    )


def forward_debt(state: GroupState) -> int:
    """Return how many keys of past messages are kept for late ones: messages that a thief could read."""
    return sum(debt(chains) for chains in state.chains.values())


def receive(state: GroupState, sender: Device, op: EventId, body: bytes, now: float) -> Step:
    """Carry out an operation signed by this device; `RemoteError` without any change if it is invalid.

    Keep the state of the step in any case, even if the operation waits for others.
    """
    content = decode_body(body)
    if isinstance(content, Keys):
        return Step(state)  # Prekeys are the directory's matter.
    if state.me is None:
        return _receive_outside(state, sender, op, content, now)
    if content.head.sender == state.me:
        return _receive_own(state, sender, content.head)
    head = content.head
    known = state.history.member(head.sender)
    if known is None:
        if head.sender in state.forgotten:
            return Step(state, (Ignored(Reason.UNKNOWN_MEMBER, "of a member that is long gone"),))
        return Step(state, (Waits(Lack.MEMBER, head.sender),))
    if known.device != sender:
        raise RemoteError(Reason.UNKNOWN_MEMBER, "a device speaks as a member that it is not")
    return _receive_ordered(state, op, content, now)


def _receive_own(state: GroupState, sender: Device, head: Head) -> Step:
    """Handle an operation of our own from outside: a known one, or a sign that our state is an old one.

    An operation of a former stay of our device belongs to another member id, and counts like any other.
    """
    if sender != state.ours:
        raise RemoteError(Reason.UNKNOWN_MEMBER, "a device speaks as a member that it is not")
    if head.cseq <= state.cseq or state.desynced:
        return Step(state)
    work = Work(state)
    work.desynced, work.owed = "our own operations are ahead of our state, which was restored", ()
    return Step(work.state(), (Desynced(work.desynced),))


def _receive_outside(state: GroupState, sender: Device, op: EventId, content: Body, now: float) -> Step:
    """Handle an operation while we are not in the group: only one that names our present identity counts."""
    work, ours = Work(state), (state.ours, state.prekeys.identity.public)
    nothing = Step(state, (Waits(Lack.WELCOME),))
    match content:
        case Create(members=members, nonce=nonce) if ours in members:
            if member_id(state.group, *ours, nonce) in state.past:
                return nothing
            seed_operations.join_founded(work, sender, op, content, now)
        case Add(device=device, identity=identity, nonce=nonce) if (device, identity) == ours:
            if member_id(state.group, *ours, nonce) in state.past:
                return nothing
            additions.join_added(work, sender, op, content, now)
        case _:
            return nothing
    return Step(work.state(), tuple(work.notes))


def _receive_ordered(state: GroupState, op: EventId, content: Body, now: float) -> Step:
    """Carry out a known member's operation if it is next in order and waits for nothing."""
    if isinstance(content, Keys):
        return Step(state)
    head = content.head
    clock = state.clock.get(head.sender, 0)
    if head.cseq <= clock:
        first = state.last.get(head.sender)
        if head.cseq == clock and first is not None and first != op:
            return Step(state, (Equivocation(head.sender, first, op),))
        return Step(state)
    if head.cseq > clock + 1:
        return Step(state, (Waits(Lack.EARLIER, head.sender),))
    work = Work(state)
    work.tend(now)
    waits = _find_wait(work, op, content, now)
    if waits is not None:
        return Step(work.state() if work.wanted != state.wanted else state, (waits,))
    work.clock[head.sender], work.last[head.sender] = head.cseq, op
    work.wanted = tuple(each for each in work.wanted if each != op)
    if not _carry_out(work, op, content, now):
        return seed_operations.forget_group(state)
    return Step(work.state(), tuple(work.notes))


def _find_wait(work: Work, op: EventId, content: Body, now: float) -> Note | None:
    if isinstance(content, Acks):
        return acknowledgements.find_lacking(work, content)
    if isinstance(content, Leave | Keys) or op in work.wanted:
        return None
    closed = work.closed.get(content.head.sender)
    is_over = closed is not None and now >= closed + work.config.linger
    return Waits(Lack.VOUCHER, op) if is_over else None


def _carry_out(work: Work, op: EventId, content: Body, now: float) -> bool:
    """Carry out an operation whose turn it is; return False if it removes us."""
    match content:
        case Update():
            seed_operations.receive_update(work, op, content, now)
        case Remove():
            return seed_operations.receive_remove(work, op, content, now)
        case Add():
            additions.receive_add(work, op, content, now)
        case Acks():
            acknowledgements.follow_acks(work, content, now)
        case Leave(head):
            if head.sender not in work.leaving and membership.sees(work.history, None, head.sender):
                work.leaving = (*work.leaving, head.sender)
                work.notes.append(Leaves(head.sender))
        case Create():
            work.notes.append(Ignored(Reason.DUPLICATE, "the group exists already"))
        case Keys():
            pass
        case _:
            assert_never(content)
    return True

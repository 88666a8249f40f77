"""Operations of others: which of them count now, which wait, and which mean nothing.

A member's operations count in their order, and an acknowledgement after what it names; whoever delivers
events causally has both for free. Whether an operation is valid is judged in its sender's view alone, so
that all come to the same.

Operations of a removed member still count: whoever did not know of the removal has followed them, and two
who remove each other must both be out, or the group would be split for good. When all have seen the
removal its keys are gone and nothing depends on its seeds; after a while more (`GroupConfig.linger`) an
operation of its counts only once a present member has acknowledged it, and after as long again it is
forgotten.
"""

from __future__ import annotations

from typing import assert_never

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import acking, adding, membership, seeding
from linnet.groups.bodies import Acks, Add, Body, Create, Head, Keys, Leave, Remove, Update, decode_body
from linnet.groups.drafting import Step
from linnet.groups.ids import Device
from linnet.groups.notes import Desynced, Equivocation, Ignored, Lack, Leaves, Note, Waits
from linnet.groups.state import GroupState
from linnet.groups.working import Directory, Work, member_id


def receive(
    state: GroupState, sender: Device, op: EventId, body: bytes, directory: Directory, now: float
) -> Step:
    """An operation came, signed by this device. `RemoteError` if it is none; the state is as it was then.

    The state of the step is to be kept in any case, also where the operation waits for others.
    """
    content = decode_body(body)
    if isinstance(content, Keys):
        return Step(state)  # Prekeys are the directory's matter.
    if state.me is None:
        return _outside(state, sender, op, content, now)
    if content.head.sender == state.me:
        return _own(state, sender, content.head)
    head = content.head
    known = state.history.member(head.sender)
    if known is None:
        if head.sender in state.forgotten:
            return Step(state, (Ignored(Reason.UNKNOWN_MEMBER, "of a member that is long gone"),))
        return Step(state, (Waits(Lack.MEMBER, head.sender),))
    if known.device != sender:
        raise RemoteError(Reason.UNKNOWN_MEMBER, "a device speaks as a member that it is not")
    return _ordered(state, op, content, now)


def _own(state: GroupState, sender: Device, head: Head) -> Step:
    """An operation of our own that comes from outside: known, or a sign that our state is an old one.

    What our device did in a former stay is another member's, and counts like that of any other.
    """
    if sender != state.ours:
        raise RemoteError(Reason.UNKNOWN_MEMBER, "a device speaks as a member that it is not")
    if head.cseq <= state.cseq or state.desynced:
        return Step(state)
    work = Work(state)
    work.desynced, work.owed = "our own operations are ahead of our state, which was restored", ()
    return Step(work.state(), (Desynced(work.desynced),))


def _outside(state: GroupState, sender: Device, op: EventId, content: Body, now: float) -> Step:
    """While we are not in the group only what names us counts, as we are now."""
    work, ours = Work(state), (state.ours, state.prekeys.identity.public)
    nothing = Step(state, (Waits(Lack.WELCOME),))
    match content:
        case Create(members=members, nonce=nonce) if ours in members:
            if member_id(state.group, *ours, nonce) in state.past:
                return nothing
            seeding.join_founded(work, sender, op, content, now)
        case Add(device=device, identity=identity, nonce=nonce) if (device, identity) == ours:
            if member_id(state.group, *ours, nonce) in state.past:
                return nothing
            adding.join_added(work, sender, op, content, now)
        case _:
            return nothing
    return Step(work.state(), tuple(work.notes))


def _ordered(state: GroupState, op: EventId, content: Body, now: float) -> Step:
    """An operation of a known member, in its order."""
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
    waits = _waits(work, op, content, now)
    if waits is not None:
        return Step(work.state() if work.wanted != state.wanted else state, (waits,))
    work.clock[head.sender], work.last[head.sender] = head.cseq, op
    work.wanted = tuple(each for each in work.wanted if each != op)
    if not _take(work, op, content, now):
        return seeding.removed_self(state)
    return Step(work.state(), tuple(work.notes))


def _waits(work: Work, op: EventId, content: Body, now: float) -> Note | None:
    if isinstance(content, Acks):
        return acking.lacking(work, content)
    if isinstance(content, Leave | Keys) or op in work.wanted:
        return None
    closed = work.closed.get(content.head.sender)
    is_over = closed is not None and now >= closed + work.config.linger
    return Waits(Lack.VOUCHER, op) if is_over else None


def _take(work: Work, op: EventId, content: Body, now: float) -> bool:
    """What an operation does whose turn it is; False if it removes us."""
    match content:
        case Update():
            seeding.update(work, op, content, now)
        case Remove():
            return seeding.remove(work, op, content, now)
        case Add():
            adding.add(work, op, content, now)
        case Acks():
            acking.follow(work, content, now)
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

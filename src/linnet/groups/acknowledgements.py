"""Acknowledgements: with each one a member's ratchet takes its share of a seed, and all others follow it.

Owed acknowledgements are noted as operations come, with the members that have to be told a secret as of then.
They go out in one operation, item by item in the order in which they came to be owed, which is the same as
one by one. Acknowledgements are not acknowledged themselves.
"""

from __future__ import annotations

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import membership
from linnet.groups.bodies import MAX_ITEMS, Acks, Item, encode_item
from linnet.groups.drafts import Draft, make_draft, next_head
from linnet.groups.labels import STEP_ADD, MemberId, Purpose
from linnet.groups.notes import Lack, Lost, Unreached, Waits
from linnet.groups.state import Act, GroupState, Op, Owed
from linnet.groups.work import Direct, Means, Work

WANTED = 256
"""Operations that others have acknowledged and we lack: at most so many are waited for by their id."""


def draft_acks(state: GroupState, means: Means) -> Draft | None:
    """Draft the acknowledgements that we owe, as many as fit; the caller drafts again for the rest.

    None if there is nothing to acknowledge, or nobody could follow us.
    """
    if not state.owed or state.desynced or state.me is None:
        return None
    work, now = Work(state), means.now
    work.tend(now)
    head = next_head(work)
    items: list[Item] = []
    size, output = 0, None
    for owed in state.owed[:MAX_ITEMS]:
        item, out = _acknowledge(work, owed, means)
        output = out or output
        items.append(item)
        size += len(encode_item(item))
        if size >= state.config.ack_bytes:
            break
    work.owed = state.owed[len(items) :]
    work.epoch(work.self, work.cseq, output, 0, now)
    for item in items:
        work.settle(item.op)
    work.close(now)
    return make_draft(work, Acks(head, tuple(items)), now, deps=tuple(item.op for item in items))


def _acknowledge(work: Work, owed: Owed, means: Means) -> tuple[Item, bytes | None]:
    """Return one item, and our ratchet's output if the ratchet took something."""
    me = work.self
    payload = work.ratchets[me] if owed.is_add else owed.secret
    purpose = Purpose.RATCHET if owed.is_add else Purpose.FORWARD
    directs = []
    for member in owed.to:
        known = work.history.member(member)
        withheld = work.hardening.withhold_from_outsiders and not membership.sees(work.history, None, member)
        if payload is None or known is None or withheld:
            continue
        if not means.may_hold(known.device):
            work.notes.append(Unreached(member, Reason.SURPLUS))
            continue
        try:
            directs.append((member, work.seal_to(member, purpose, payload, means)))
        except Refused as error:
            # One member's lack of prekeys must not keep all others from hearing of our acknowledgement.
            work.notes.append(Unreached(member, error.reason))
    if owed.op in work.ops:
        work.acked(owed.op, me)
    item = Item(owed.is_add, owed.op, tuple(directs))
    if owed.is_add:
        return item, work.step(me, STEP_ADD)
    return item, None if owed.secret is None else work.mix(me, owed.secret)


def find_lacking(work: Work, content: Acks) -> Waits | None:
    """Return the first acknowledged operation that is not here, as one that these wait for; None if all are.

    A present member's acknowledgement vouches for the operation, and lets it in.
    """
    for item in content.items:
        if item.op in work.ops:
            continue
        if membership.sees(work.history, None, content.head.sender) and item.op not in work.wanted:
            work.wanted = (*work.wanted, item.op)[-WANTED:]
        return Waits(Lack.ACKED, item.op)
    return None


def follow_acks(work: Work, content: Acks, now: float) -> None:
    """Follow another member's acknowledgements of operations that are all here."""
    head = content.head
    before, output = work.history, None
    for item in content.items:
        out = _follow(work, head.sender, head.cseq, item, now)
        output = out or output
        work.settle(item.op)
    work.epoch(head.sender, head.cseq, output, head.app_count, now)
    if work.history is not before:
        work.close(now)


def _follow(work: Work, sender: MemberId, cseq: int, item: Item, now: float) -> bytes | None:
    op = work.ops[item.op]
    if sender not in op.awaiting and sender not in op.late:
        raise MalformedMessage("an operation is acknowledged that was not theirs to acknowledge")
    if item.is_add != (op.act is Act.ADD and sender != op.newcomer):
        raise MalformedMessage("an acknowledgement of another kind than its operation")
    takes = _takes(work, op, sender)
    known = work.acked(item.op, sender)
    direct = next((sealed for member, sealed in item.directs if member == work.me), None)
    if sender in work.closed:
        return None  # Its keys are gone for good, and nothing that it tells brings them back.
    if item.is_add:
        if direct is not None:
            told = _open(work, Direct(sender, cseq, Purpose.RATCHET, direct), now)
            if told is not None:
                work.ratchets[sender] = told
        return work.step(sender, STEP_ADD)
    told = None if direct is None else _open(work, Direct(sender, cseq, Purpose.FORWARD, direct), now)
    secret = known or told
    if not takes or (known is None and told is None):
        return None
    if not secret:
        work.lose(sender, "it took a seed that we were not told")
        return None
    return work.mix(sender, secret)


def _takes(work: Work, op: Op, sender: MemberId) -> bool:
    """Return whether a member takes its share of a seed: not if it has seen the removal of the sender."""
    return op.act is Act.ADD or membership.sees(work.history, sender, op.sender)


def _open(work: Work, direct: Direct, now: float) -> bytes | None:
    try:
        return work.open_from(direct, now)
    except RemoteError as error:
        work.ratchets.pop(direct.sender, None)
        work.notes.append(Lost(direct.sender, f"what it told us does not open: {error.reason}"))
        return None


def pending_by_member(state: GroupState) -> dict[MemberId, int]:
    """Return how many operations each member has yet to acknowledge, for all members that lack some."""
    counts: dict[MemberId, int] = {}
    for op in sorted(state.ops):
        for member in state.ops[op].awaiting:
            counts[member] = counts.get(member, 0) + 1
    return dict(sorted(counts.items()))


def overdue(state: GroupState, since: float, most: int) -> tuple[MemberId, ...]:
    """Return the members that owe more than `most` acknowledgements, or owed one before the time `since`."""
    if len(state.ops) <= most and not any(op.since < since for op in state.ops.values()):
        return ()
    late = {member for op in state.ops.values() if op.since < since for member in op.awaiting}
    late |= {member for member, count in pending_by_member(state).items() if count > most}
    here = set(state.history.view_ids(None))
    return tuple(sorted(late & here))


def healed_by(state: GroupState, op: EventId) -> tuple[MemberId, ...]:
    """Return the members that took the seed of this operation, or saw it: all, once none is awaited."""
    awaiting = state.ops[op].awaiting if op in state.ops else {}
    return tuple(member for member in state.history.view_ids(None) if member not in awaiting)

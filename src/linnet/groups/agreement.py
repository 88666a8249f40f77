"""Key agreement of a group without a server: the operations, and what a state tells.

The protocol is that of Weidner, Kleppmann, Hugenroth and Beresford, "Key Agreement for Decentralized Secure
Group Messaging with Strong Security Guarantees" (2021), with hardenings of our own (docs/design/groups.md).
Local operations are drafted, then `sent` once the event has its id; those of others are received.
All is `new_state = f(state, input)`: the caller keeps the new state before anything else becomes visible.
"""

from __future__ import annotations

from linnet.core.ids import EventId
from linnet.core.luck import Entropy
from linnet.groups import healing
from linnet.groups.acking import draft_acks, healed_by, overdue, pending_by_member
from linnet.groups.adding import draft_add, sent_add
from linnet.groups.bodies import Acks, Add, Create, Keys, Leave, Remove, Update
from linnet.groups.chains import NO_TOTAL, debt
from linnet.groups.drafting import (
    Draft,
    Step,
    draft_create,
    draft_keys,
    draft_leave,
    draft_remove,
    draft_update,
)
from linnet.groups.ids import Device, MemberId
from linnet.groups.prekeys import make_prekeys
from linnet.groups.receiving import receive
from linnet.groups.seeding import sent_seed
from linnet.groups.state import GroupConfig, GroupState, Hardening
from linnet.groups.working import Directory, MayHold, Work

__all__ = [
    "Directory",
    "Draft",
    "MayHold",
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
    """The state of a device that is not in the group yet, with prekeys to be added by."""
    return GroupState(group, ours, config, hardening, make_prekeys(entropy, now, config.one_time))


def sent(draft: Draft, op: EventId) -> Step:
    """A draft became the event of this id."""
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
    """Without what has outlived its time; the same is done whenever something is sent or received."""
    work = Work(state)
    work.tend(now)
    return work.state()


def is_member(state: GroupState) -> bool:
    """Whether this device is in the group, as far as it knows."""
    return state.me is not None


def is_desynced(state: GroupState) -> bool:
    """Whether nobody could follow us any more: to be removed and added anew."""
    return bool(state.desynced)


def owes_acks(state: GroupState) -> bool:
    """Whether acknowledgements are to be sent, before anything else is."""
    return bool(state.owed) and not state.desynced


def needs_heal(state: GroupState) -> bool:
    """Whether removed members might read what we would send: a new seed has to come first."""
    return state.me is not None and healing.needs_heal(state.cover, state.history)


def members(state: GroupState) -> dict[MemberId, Device]:
    """Who is in the group, as far as we know, by id."""
    if state.me is None:
        return {}
    view = set(state.history.view_ids(None))
    return {member.id: member.device for member in state.history.members if member.id in view}


def identity_of(state: GroupState, member: MemberId) -> bytes | None:
    """The identity key of a member, present or past."""
    known = state.history.member(member)
    return None if known is None else known.identity


def leaving(state: GroupState) -> tuple[MemberId, ...]:
    """Members that have asked to be removed and are still there, by id."""
    here = set(state.history.view_ids(None))
    return tuple(sorted(member for member in state.leaving if member in here))


def key_ages(state: GroupState, now: float) -> dict[MemberId, float]:
    """For each member that can be read, and for us, how many seconds its present epoch lasts."""
    ages = {
        member: now - state.chains[member].chains[-1].since
        for member in members(state)
        if member in state.chains and state.chains[member].chains
    }
    if state.me is not None and state.sending is not None:
        ages[state.me] = now - state.sending.since
    return dict(sorted(ages.items()))


def late_messages(state: GroupState) -> int:
    """How many messages were said, for all that is known, and have not come; their keys are kept.

    How much who was removed had said is not known: of that nothing is counted.
    """
    chains = [chain for member in state.chains.values() for chain in member.chains]
    return sum(len(chain.skipped) for chain in chains) + sum(
        max(0, chain.total - chain.index) for chain in chains if 0 <= chain.total < NO_TOTAL
    )


def forward_debt(state: GroupState) -> int:
    """How many keys of past messages are kept for those that may come late: what a thief could read."""
    return sum(debt(chains) for chains in state.chains.values())

"""Our own operations, in two phases: a draft with its body, then the step, once the event has an id.

A draft holds the state that it leads to. A draft that is not sent is thrown away with all its keys; the state
that it was made from is as good as before.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.ids import EventId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups.bodies import Body, Create, Head, Keys, Leave, Remove, Update, encode_body
from linnet.groups.labels import Device, MemberId, Purpose
from linnet.groups.membership import Member, create
from linnet.groups.notes import Note
from linnet.groups.prekeys import RENEWED, bundle_of, due, make_prekeys, renew
from linnet.groups.primitives import Hidden, key_pair
from linnet.groups.state import GroupState
from linnet.groups.work import MayHold, Means, Work, member_id

_MOST_OPERATIONS = 2**31 - 1
"""The number of an operation that brings a prekey names that prekey, and one bit of it is taken."""


class Draft(Hidden, frozen=True):
    """An operation of ours that has no id yet."""

    body: bytes
    """The body of the event to be made."""
    deps: tuple[EventId, ...]
    """The events that it must come after."""
    state: GroupState
    content: Body
    now: float
    seed: bytes = b""
    notes: tuple[Note, ...] = ()


class Step(Struct, frozen=True):
    """A new state, to be kept before anything else happens, and notes for the caller."""

    state: GroupState
    notes: tuple[Note, ...] = ()


def draft_keys(state: GroupState, entropy: Entropy, now: float) -> Draft | None:
    """Draft the publication of our prekeys, if others lack them; None if there is nothing to publish.

    Call it after every seed of our own: prekeys from before it are worthless. After a removal the identity is
    new.
    """
    work = Work(state)
    work.tend(now)
    count, inband = state.config.one_time, work.own_inband()
    if state.me is not None:
        count = min(count, max(RENEWED, len(work.history.view_ids(None))))
    if state.stale:
        work.prekeys, work.stale = make_prekeys(entropy, now, count), False
    elif inband is not None and inband.public != bundle_of(work.prekeys).spk:
        work.prekeys = renew(work.prekeys, entropy, now, count, inband)
    elif state.published == bundle_of(work.prekeys).gen:
        if not due(work.prekeys, now):
            return None
        work.prekeys = renew(work.prekeys, entropy, now, count, inband)
    bundle = bundle_of(work.prekeys)
    work.published = bundle.gen
    return make_draft(work, Keys(bundle), now)


def draft_create(
    state: GroupState,
    others: Iterable[Device],
    means: Means,
) -> Draft:
    """Draft a new group of us and these devices."""
    if state.me is not None:
        raise Refused(Reason.DUPLICATE, "this device is in the group already")
    if state.stale:
        raise Refused(Reason.MISSING_PREKEYS, "this device has to publish new prekeys first")
    work = Work(state)
    ours = work.prekeys.identity.public
    identities = {state.ours: ours}
    for device in sorted(set(others) - {state.ours}):
        if not means.may_hold(device):
            raise Refused(Reason.SURPLUS, "a device may not hold keys")
        bundle = means.directory(device)
        if bundle is None:
            raise Refused(Reason.MISSING_PREKEYS, "a device has published no prekeys")
        identities[device] = bundle.identity
    if len(identities) > state.config.members:
        raise Refused(Reason.GROUP_FULL, f"a group has at most {state.config.members} members")
    nonce = means.entropy(16)
    members = tuple(sorted(identities.items()))
    placeholder = EventId(bytes(32))  # Its real id is not known yet, and nothing here depends on it.
    work.history = create(work.history, placeholder, founders(state.group, placeholder, members, nonce))
    work.me = member_id(state.group, state.ours, ours, nonce)
    work.cseq, work.count, work.sending = 0, 0, None
    recipients = tuple(member for member in work.history.view_ids(None) if member != work.me)
    head, spk, directs, seed = _make_seed(work, recipients, means)
    return make_draft(work, Create(head, spk, nonce, members, directs), means.now, seed)


def draft_update(state: GroupState, means: Means) -> Draft:
    """Draft a new seed for everybody, and new keys of our own with it: a thief of old ones is shut out."""
    work = begin_work(state, means.now)
    recipients = tuple(member for member in work.history.view_ids(None) if member != work.me)
    check_surplus(work, recipients, means.may_hold)
    head, spk, directs, seed = _make_seed(work, recipients, means)
    return make_draft(work, Update(head, spk, directs), means.now, seed)


def draft_remove(
    state: GroupState,
    targets: Iterable[MemberId],
    means: Means,
) -> Draft:
    """Draft the removal of members, with a new seed for all others. It is safer to remove several at once."""
    work = begin_work(state, means.now)
    view = work.history.view_ids(None)
    out = tuple(sorted(set(targets)))
    if not out or work.me in out:
        raise Refused(Reason.NOT_ALLOWED, "somebody else is to be removed: to go, ask to leave")
    if not set(out) <= set(view):
        raise Refused(Reason.UNKNOWN_MEMBER, "somebody to be removed is not a member")
    recipients = tuple(member for member in view if member != work.me and member not in out)
    check_surplus(work, recipients, means.may_hold)
    head, spk, directs, seed = _make_seed(work, recipients, means)
    return make_draft(work, Remove(head, spk, out, directs), means.now, seed)


def draft_leave(state: GroupState, now: float = 0.0) -> Draft:
    """Draft our request to be removed; also the way out for a device that nobody can follow any more."""
    work = Work(state)
    if work.self in state.leaving:
        raise Refused(Reason.DUPLICATE, "this device has asked already")
    if not state.desynced and state.owed:
        raise Refused(Reason.ACKS_OWED, f"{len(state.owed)} acknowledgements are to be sent first")
    return make_draft(work, Leave(next_head(work)), now)


def begin_work(state: GroupState, now: float) -> Work:
    """Return a state to work on; `Refused` if it may not make an operation now."""
    work = Work(state)
    if work.self in state.leaving:
        raise Refused(Reason.NOT_ALLOWED, "this device has asked to leave")
    if state.desynced:
        raise Refused(Reason.DESYNCED, state.desynced)
    if state.owed:
        raise Refused(Reason.ACKS_OWED, f"{len(state.owed)} acknowledgements are to be sent first")
    work.tend(now)
    return work


def check_surplus(work: Work, recipients: Iterable[MemberId], may_hold: MayHold) -> None:
    """Refuse to tell keys to members that may not hold them: these are to be removed first."""
    for member in recipients:
        if not may_hold(work.device(member)):
            raise Refused(Reason.SURPLUS, "a member may not hold keys any more: remove it first")


def next_head(work: Work) -> Head:
    """Return the head of our next operation."""
    if work.cseq >= _MOST_OPERATIONS:
        raise Refused(Reason.TOO_MANY, "this member has no more numbers: be added anew")
    work.cseq += 1
    return Head(work.self, work.cseq, work.sending.index if work.sending else 0)


def founders(
    group: bytes, op: EventId, members: Iterable[tuple[Device, bytes]], nonce: bytes
) -> list[Member]:
    """Return the first members of a group."""
    return [
        Member(member_id(group, device, identity, nonce), device, identity, op)
        for device, identity in members
    ]


def _make_seed(
    work: Work, recipients: tuple[MemberId, ...], means: Means
) -> tuple[Head, bytes, tuple[bytes, ...], bytes]:
    """Return head, in-band prekey, direct messages and seed of an operation for these members."""
    head, seed, spk = next_head(work), means.entropy(32), key_pair(means.entropy)
    directs = tuple(work.seal_to(member, Purpose.SEED, seed, means) for member in recipients)
    work.inband[work.cseq], work.peer_inband[work.self] = spk.secret, (work.cseq, spk.public)
    work.healed = means.now
    return head, spk.public, directs, seed


def make_draft(
    work: Work, content: Body, now: float, seed: bytes = b"", deps: tuple[EventId, ...] = ()
) -> Draft:
    """Make a draft of the finished work on an operation."""
    body, notes = encode_body(content), tuple(work.notes)
    work.notes = []
    return Draft(body, deps, work.state(), content, now, seed, notes)

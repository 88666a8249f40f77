"""Operations of our own, in two phases: a draft with its body, then the step, once the event has an id.

A draft holds the state that it leads to. One that is not sent is thrown away with all its keys; the state
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
from linnet.groups.ids import Device, MemberId
from linnet.groups.labels import Purpose
from linnet.groups.membership import Member, create
from linnet.groups.notes import Note
from linnet.groups.prekeys import RENEWED, bundle_of, due, make_prekeys, renew
from linnet.groups.primitives import Hidden, key_pair
from linnet.groups.state import GroupState
from linnet.groups.working import Directory, MayHold, Work, member_id

_MOST_OPERATIONS = 2**31 - 1
"""A prekey that an operation brings is known by its number, with one bit for that."""


class Draft(Hidden, frozen=True):
    """An operation that has no id yet."""

    body: bytes
    """Of the event to be made."""
    deps: tuple[EventId, ...]
    """What that event must come after."""
    state: GroupState
    content: Body
    now: float
    seed: bytes = b""
    notes: tuple[Note, ...] = ()


class Step(Struct, frozen=True):
    """A new state, to be kept before anything else happens, and what is to be told."""

    state: GroupState
    notes: tuple[Note, ...] = ()


def draft_keys(state: GroupState, entropy: Entropy, now: float) -> Draft | None:
    """Our prekeys, if others lack them; after a removal with another identity. None: nothing to publish.

    To be asked after every seed of our own: prekeys from before it are worth nothing any more.
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
    return drafted(work, Keys(bundle), now)


def draft_create(
    state: GroupState,
    others: Iterable[Device],
    directory: Directory,
    may_hold: MayHold,
    entropy: Entropy,
    now: float,
) -> Draft:
    """A new group of us and these devices."""
    if state.me is not None:
        raise Refused(Reason.DUPLICATE, "this device is in the group already")
    if state.stale:
        raise Refused(Reason.MISSING_PREKEYS, "this device has to publish new prekeys first")
    work = Work(state)
    ours = work.prekeys.identity.public
    identities = {state.ours: ours}
    for device in sorted(set(others) - {state.ours}):
        if not may_hold(device):
            raise Refused(Reason.SURPLUS, "a device may not hold keys")
        bundle = directory(device)
        if bundle is None:
            raise Refused(Reason.MISSING_PREKEYS, "a device has published no prekeys")
        identities[device] = bundle.identity
    if len(identities) > state.config.members:
        raise Refused(Reason.GROUP_FULL, f"a group has at most {state.config.members} members")
    nonce = entropy(16)
    members = tuple(sorted(identities.items()))
    placeholder = EventId(bytes(32))  # Its real id is not known yet, and nothing here depends on it.
    work.history = create(work.history, placeholder, founders(state.group, placeholder, members, nonce))
    work.me = member_id(state.group, state.ours, ours, nonce)
    work.cseq, work.count, work.sending = 0, 0, None
    recipients = tuple(member for member in work.history.view_ids(None) if member != work.me)
    head, spk, directs, seed = _seed(work, recipients, directory, entropy, now)
    return drafted(work, Create(head, spk, nonce, members, directs), now, seed)


def draft_update(
    state: GroupState, directory: Directory, may_hold: MayHold, entropy: Entropy, now: float
) -> Draft:
    """A new seed for everybody, and with it new keys of our own: whoever stole them is shut out."""
    work = ready(state, now)
    recipients = tuple(member for member in work.history.view_ids(None) if member != work.me)
    check_surplus(work, recipients, may_hold)
    head, spk, directs, seed = _seed(work, recipients, directory, entropy, now)
    return drafted(work, Update(head, spk, directs), now, seed)


def draft_remove(
    state: GroupState,
    targets: Iterable[MemberId],
    directory: Directory,
    may_hold: MayHold,
    entropy: Entropy,
    now: float,
) -> Draft:
    """These members are out, and all others get a new seed. One removal of several is safer than several."""
    work = ready(state, now)
    view = work.history.view_ids(None)
    out = tuple(sorted(set(targets)))
    if not out or work.me in out:
        raise Refused(Reason.NOT_ALLOWED, "somebody else is to be removed: to go, ask to leave")
    if not set(out) <= set(view):
        raise Refused(Reason.UNKNOWN_MEMBER, "somebody to be removed is not a member")
    recipients = tuple(member for member in view if member != work.me and member not in out)
    check_surplus(work, recipients, may_hold)
    head, spk, directs, seed = _seed(work, recipients, directory, entropy, now)
    return drafted(work, Remove(head, spk, out, directs), now, seed)


def draft_leave(state: GroupState, now: float = 0.0) -> Draft:
    """We ask to be removed; also the way out for one that nobody can follow any more."""
    work = Work(state)
    if work.self in state.leaving:
        raise Refused(Reason.DUPLICATE, "this device has asked already")
    if not state.desynced and state.owed:
        raise Refused(Reason.ACKS_OWED, f"{len(state.owed)} acknowledgements are to be sent first")
    return drafted(work, Leave(next_head(work)), now)


def ready(state: GroupState, now: float) -> Work:
    """A state to work on, if it may make an operation now."""
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
    """Nothing is told to anybody who may not hold keys: such members are to be removed first."""
    for member in recipients:
        if not may_hold(work.device(member)):
            raise Refused(Reason.SURPLUS, "a member may not hold keys any more: remove it first")


def next_head(work: Work) -> Head:
    """The head of our next operation."""
    if work.cseq >= _MOST_OPERATIONS:
        raise Refused(Reason.TOO_MANY, "this member has no more numbers: be added anew")
    work.cseq += 1
    return Head(work.self, work.cseq, work.sending.index if work.sending else 0)


def founders(
    group: bytes, op: EventId, members: Iterable[tuple[Device, bytes]], nonce: bytes
) -> list[Member]:
    """The first members of a group."""
    return [
        Member(member_id(group, device, identity, nonce), device, identity, op)
        for device, identity in members
    ]


def _seed(
    work: Work, recipients: tuple[MemberId, ...], directory: Directory, entropy: Entropy, now: float
) -> tuple[Head, bytes, tuple[bytes, ...], bytes]:
    """Head, in-band prekey, direct messages and seed of an operation to these, whose channels move on."""
    head, seed, spk = next_head(work), entropy(32), key_pair(entropy)
    directs = tuple(
        work.seal_to(member, Purpose.SEED, seed, directory, entropy, now) for member in recipients
    )
    work.inband[work.cseq], work.peer_inband[work.self] = spk.secret, (work.cseq, spk.public)
    work.healed = now
    return head, spk.public, directs, seed


def drafted(
    work: Work, content: Body, now: float, seed: bytes = b"", deps: tuple[EventId, ...] = ()
) -> Draft:
    """What the work on an operation has come to."""
    body, notes = encode_body(content), tuple(work.notes)
    work.notes = []
    return Draft(body, deps, work.state(), content, now, seed, notes)

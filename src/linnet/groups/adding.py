"""Additions: a newcomer can write at once, and read each member from where that one has heard of it.

The adder tells the newcomer its own ratchet as it was, then turns it twice by constants: the first output
is the newcomer's first share, the second begins the adder's next epoch. Every other member tells its ratchet
when it acknowledges, and turns it by a constant, so that nothing earlier can be read. Constants heal
nothing: whoever could follow the ratchets before still can (Weidner et al. 2021, section 5.4).
"""

from __future__ import annotations

from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, Refused
from linnet.core.ids import EventId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups import membership
from linnet.groups.bodies import Add
from linnet.groups.drafting import Draft, check_surplus, drafted, next_head, ready
from linnet.groups.ids import Device, MemberId
from linnet.groups.labels import STEP_ADD, STEP_WELCOME, Purpose
from linnet.groups.membership import Member
from linnet.groups.notes import Added, Doubled, Ignored, Joined
from linnet.groups.state import GroupState, Owed
from linnet.groups.welcoming import open_blob, seal_blob
from linnet.groups.working import UNUSED, Directory, MayHold, Work, member_id


def draft_add(
    state: GroupState,
    device: Device,
    keys: EventId,
    directory: Directory,
    may_hold: MayHold,
    entropy: Entropy,
    now: float,
) -> Draft:
    """A device more, by the prekeys that this event of its told."""
    work = ready(state, now)
    view = work.history.view_ids(None)
    check_surplus(work, (member for member in view if member != work.me), may_hold)
    if not may_hold(device):
        raise Refused(Reason.SURPLUS, "the device may not hold keys")
    if any(work.device(member) == device for member in view):
        raise Refused(Reason.DUPLICATE, "the device is in the group already")
    if len(view) >= state.config.members:
        raise Refused(Reason.GROUP_FULL, f"a group has at most {state.config.members} members")
    bundle = directory(device)
    if bundle is None:
        raise Refused(Reason.MISSING_PREKEYS, "the device has published no prekeys")
    if any(member.identity == bundle.identity for member in work.history.members):
        raise Refused(Reason.MISSING_PREKEYS, "the device was here before: it has to publish new prekeys")
    nonce, key = entropy(16), entropy(32)
    newcomer = Member(
        member_id(work.group, device, bundle.identity, nonce), device, bundle.identity, EventId(bytes(32))
    )
    head = next_head(work)
    blob = seal_blob(work, key, newcomer.id)
    known = work.history
    work.history = membership.add(known, newcomer.added_by, work.self, newcomer)
    told = work.ratchets[work.self] + key
    welcome = work.seal_to(newcomer.id, Purpose.WELCOME, told, directory, entropy, now)
    work.history = known  # It changes when the operation is out and has an id.
    content = Add(head, work.prekeys.identity.public, device, bundle.identity, nonce, keys, welcome, blob)
    return drafted(work, content, now, deps=(keys,))


def sent_add(work: Work, op: EventId, content: Add, now: float) -> None:
    """An addition of our own is out."""
    newcomer = newcomer_of(work.group, content)
    _enter(work, op, content, newcomer, now)
    work.close(now)


def add(work: Work, op: EventId, content: Add, now: float) -> None:
    """A member added another one."""
    newcomer, head = newcomer_of(work.group, content), content.head
    if len(work.history.view_ids(head.sender)) >= work.config.members:
        work.notes.append(Ignored(Reason.GROUP_FULL, "an addition beyond the limit"))
        return
    if work.history.member(newcomer) is not None:
        work.notes.append(Ignored(Reason.DUPLICATE, "an addition of a member"))
        return
    _enter(work, op, content, newcomer, now)
    is_in = membership.sees(work.history, None, newcomer)
    if is_in and content.device == work.ours:
        work.notes.append(Doubled(newcomer))
    if not work.desynced:
        is_told = is_in or not work.hardening.withhold_from_outsiders
        work.owed = (*work.owed, Owed(op, True, None, (newcomer,) if is_told else ()))


def join_added(work: Work, sender: Device, op: EventId, content: Add, now: float) -> None:
    """Somebody added us."""
    head = content.head
    me = newcomer_of(work.group, content)
    work.me = me
    told = work.open_by(content.by, head.sender, Purpose.WELCOME, content.welcome, head.cseq, now)
    open_blob(work, told[32:], head.sender, head.cseq, content.blob, now)
    adder = work.history.member(head.sender)
    if adder is None or adder.device != sender or not membership.sees(work.history, None, head.sender):
        raise MalformedMessage("a welcome by one who is not in the group")
    if adder.identity != content.by or work.clock[head.sender] + 1 != head.cseq:
        raise MalformedMessage("a welcome that does not fit its operation")
    if work.history.member(me) is not None:
        raise MalformedMessage("a welcome to one who is in the group")
    work.ratchets = {head.sender: told[:32]}
    work.clock[head.sender], work.last[head.sender] = head.cseq, op
    work.notes.append(Joined(me))
    secret = _enter(work, op, content, me, now)
    work.owed = (Owed(op, False, secret, ()),)


def newcomer_of(group: bytes, content: Add) -> MemberId:
    """Whom an addition adds."""
    return member_id(group, content.device, content.identity, content.nonce)


def _enter(work: Work, op: EventId, content: Add, newcomer: MemberId, now: float) -> bytes | None:
    """A newcomer is in the history, and its adder's ratchet turns; its first share, if we can tell."""
    head = content.head
    member = Member(newcomer, content.device, content.identity, op)
    work.history = membership.add(work.history, op, head.sender, member)
    work.clock[newcomer] = 0
    for other, known in list(work.ops.items()):
        if head.sender in known.awaiting:  # What the adder has not seen is new to the newcomer, too.
            work.ops[other] = replace(known, awaiting={**known.awaiting, newcomer: None})
        elif head.sender in known.late:
            work.ops[other] = replace(known, late=(*known.late, newcomer))
    secret = work.step(head.sender, STEP_WELCOME)
    work.epoch(head.sender, head.cseq, work.step(head.sender, STEP_ADD), head.app_count, now)
    secrets = {}
    if secret is not None:
        work.ratchets[newcomer] = UNUSED
        if newcomer != work.me:
            secrets[newcomer] = secret
    work.await_acks(op, head.sender, head.cseq, secrets, now, newcomer)
    work.notes.append(Added(newcomer, content.device))
    return secret

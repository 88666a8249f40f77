"""Additions: a newcomer can write at once, and reads each member from that one's acknowledgement on.

The adder tells the newcomer its own ratchet as it was, then turns it twice by constants: the first output is
the newcomer's first share, the second begins the adder's next epoch. Every other member tells its ratchet
when it acknowledges, and turns it by a constant, so that nothing earlier can be read. Constants heal nothing:
anyone who could follow the ratchets before still can (Weidner et al. 2021, section 5.4).

The state of the group comes to the newcomer in a blob, sealed under a key that only its welcome has.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import membership, removal_cover
from linnet.groups.bodies import BLOB_BYTES, NOBODY, Add, Head, Reader
from linnet.groups.drafts import Draft, begin_work, check_surplus, make_draft, next_head
from linnet.groups.labels import STEP_ADD, STEP_WELCOME, WELCOME, Device, MemberId, Purpose, fields, u32
from linnet.groups.membership import History, Member, places
from linnet.groups.notes import Added, Doubled, Ignored, Joined
from linnet.groups.prekeys import MAX_GENERATION
from linnet.groups.primitives import NONCE_BYTES, TAG_BYTES, check_public, open_sealed, seal
from linnet.groups.state import Act, GroupState, Op, Owed
from linnet.groups.work import UNUSED, Direct, Means, Work, member_id

_NOBODY = 0xFFFF
_NONCE = bytes(NONCE_BYTES)
"""Zeros will do, since a key seals only one blob."""


def seal_blob(work: Work, key: bytes, newcomer: MemberId) -> bytes:
    """Seal all that a newcomer must know of the group, as it is before the newcomer is in it."""
    history, ids = work.history, [member.id for member in work.history.members]
    recorded = membership.encode(history)
    healthy = not removal_cover.needs_heal(work.cover, history)
    parts = [bytes((healthy,)), u32(len(recorded)), recorded]
    for member in ids:
        cseq, prekey = work.peer_inband.get(member, (0, bytes(32)))
        parts += (u32(work.clock.get(member, 0)), u32(cseq), prekey)
    width = (len(ids) + 7) // 8
    parts.append(_bits(history, work.leaving).to_bytes(width, "big"))
    parts.append(_bits(history, work.closed).to_bytes(width, "big"))
    parts.append(_u16(len(work.ops)))
    for op in sorted(work.ops):
        known = work.ops[op]
        new = _NOBODY if known.newcomer is None else _place(history, known.newcomer)
        parts += (op, _u16(_place(history, known.sender)), u32(known.cseq), bytes((known.act,)), _u16(new))
        parts.append(_bits(history, (*known.awaiting, *known.late)).to_bytes(width, "big"))
    blob = b"".join(parts)
    if len(blob) + TAG_BYTES > BLOB_BYTES or len(work.ops) > 0xFFFF:
        raise Refused(Reason.TOO_LARGE, "too much is pending to tell a newcomer: remove who does not answer")
    return seal(key, _NONCE, blob, _bound(work.group, work.self, newcomer, work.cseq))


def open_blob(work: Work, key: bytes, head: Head, blob: bytes, now: float) -> None:
    """Take in what our adder told us of the group; `RemoteError` if it is inconsistent."""
    reader = Reader(open_sealed(key, _NONCE, blob, _bound(work.group, head.sender, work.self, head.cseq)))
    healthy = reader.u8()
    if healthy > 1:
        raise MalformedMessage("a welcome that is neither healthy nor not")
    history = work.history = membership.decode(reader.take(reader.u32()))
    work.cover = removal_cover.cover_by_welcome(history, bool(healthy))
    for member in history.members:
        check_public(member.identity)
        work.clock[member.id] = reader.u32()
        number, prekey = reader.u32(), reader.take(32)
        if number > work.clock[member.id] or number > MAX_GENERATION:
            raise MalformedMessage("a welcome with a prekey of an operation that was not")
        if number:
            work.peer_inband[member.id] = (number, check_public(prekey))
    work.leaving = _members(history, reader)
    work.closed = dict.fromkeys(_members(history, reader), now)
    for _ in range(reader.u16()):
        op = EventId(reader.take(32))
        work.count += 1
        if op in work.ops:
            raise MalformedMessage("a welcome tells of an operation twice")
        work.ops[op] = _read_op(work, reader, now)
    reader.end()
    if not work.hardening.inband_prekeys:
        work.peer_inband = {}


def _read_op(work: Work, reader: Reader, now: float) -> Op:
    history = work.history
    sender, cseq, act, new = reader.u16(), reader.u32(), reader.u8(), reader.u16()
    if act not in (Act.SEED, Act.ADD) or (act == Act.SEED and new != _NOBODY):
        raise MalformedMessage("a welcome with an operation of no known kind")
    newcomer = _at(history, new) if act == Act.ADD else None
    named = _members(history, reader)
    awaiting: dict[MemberId, bytes | None] = {each: None for each in named if each not in work.closed}
    late = tuple(each for each in named if each in work.closed)
    return Op(_at(history, sender), cseq, Act(act), work.count, now, newcomer, awaiting, late, not awaiting)


def _bound(group: bytes, adder: MemberId, newcomer: MemberId, cseq: int) -> bytes:
    return fields(WELCOME, group, adder, newcomer, u32(cseq))


def _place(history: History, member: MemberId) -> int:
    return history.gap(member) if history.member(member) is not None else _NOBODY


def _at(history: History, place: int) -> MemberId:
    if place == _NOBODY:
        return NOBODY  # A forgotten member.
    if place >= len(history.members):
        raise MalformedMessage("a welcome that tells of more members than there are")
    return history.members[place].id


def _bits(history: History, members: Iterable[MemberId]) -> int:
    bits = 0
    for member in members:
        bits |= history.bit(member)
    return bits


def _members(history: History, reader: Reader) -> tuple[MemberId, ...]:
    count = len(history.members)
    bits = int.from_bytes(reader.take((count + 7) // 8), "big")
    if bits >> count:
        raise MalformedMessage("a set of more members than there are")
    return tuple(history.members[place].id for place in places(bits))


def _u16(number: int) -> bytes:
    return number.to_bytes(2, "big")


def draft_add(
    state: GroupState,
    device: Device,
    keys: EventId,
    means: Means,
) -> Draft:
    """Draft the addition of a device by the prekeys that its event `keys` published."""
    work, now = begin_work(state, means.now), means.now
    view = work.history.view_ids(None)
    check_surplus(work, (member for member in view if member != work.me), means.may_hold)
    if not means.may_hold(device):
        raise Refused(Reason.SURPLUS, "the device may not hold keys")
    if any(work.device(member) == device for member in view):
        raise Refused(Reason.DUPLICATE, "the device is in the group already")
    if len(view) >= state.config.members:
        raise Refused(Reason.GROUP_FULL, f"a group has at most {state.config.members} members")
    bundle = means.directory(device)
    if bundle is None:
        raise Refused(Reason.MISSING_PREKEYS, "the device has published no prekeys")
    if any(member.identity == bundle.identity for member in work.history.members):
        raise Refused(Reason.MISSING_PREKEYS, "the device was here before: it has to publish new prekeys")
    nonce, key = means.entropy(16), means.entropy(32)
    newcomer = Member(
        member_id(work.group, device, bundle.identity, nonce), device, bundle.identity, EventId(bytes(32))
    )
    head = next_head(work)
    blob = seal_blob(work, key, newcomer.id)
    known = work.history
    work.history = membership.add(known, newcomer.added_by, work.self, newcomer)
    told = work.ratchets[work.self] + key
    welcome = work.seal_to(newcomer.id, Purpose.WELCOME, told, means)
    work.history = known  # It changes when the operation is out and has an id.
    content = Add(head, work.prekeys.identity.public, device, bundle.identity, nonce, keys, welcome, blob)
    return make_draft(work, content, now, deps=(keys,))


def sent_add(work: Work, op: EventId, content: Add, now: float) -> None:
    """Carry out an addition of our own that was sent."""
    newcomer = newcomer_of(work.group, content)
    _enter(work, op, content, newcomer, now)
    work.close(now)


def receive_add(work: Work, op: EventId, content: Add, now: float) -> None:
    """Carry out another member's addition of a device."""
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
    """Join a group by another member's addition of this device."""
    head = content.head
    me = newcomer_of(work.group, content)
    work.me = me
    told = work.open_by(content.by, Direct(head.sender, head.cseq, Purpose.WELCOME, content.welcome), now)
    open_blob(work, told[32:], head, content.blob, now)
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
    """Return the id of the member that an addition adds."""
    return member_id(group, content.device, content.identity, content.nonce)


def _enter(work: Work, op: EventId, content: Add, newcomer: MemberId, now: float) -> bytes | None:
    """Enter a newcomer into the history and turn its adder's ratchet; return its first share, if known."""
    head = content.head
    member = Member(newcomer, content.device, content.identity, op)
    work.history = membership.add(work.history, op, head.sender, member)
    work.clock[newcomer] = 0
    for other, known in list(work.ops.items()):
        if head.sender in known.awaiting:  # New to the adder, and so to the newcomer.
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
    work.await_acks(op, head, secrets, now, newcomer)
    work.notes.append(Added(newcomer, content.device))
    return secret

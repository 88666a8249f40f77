"""What a member who does not keep to the rules can sign: bodies that others refuse, each with its reason.

Made from the forger's own state, so that everything about them is right but for one thing.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups import agreement
from linnet.groups.agreement import Directory
from linnet.groups.bodies import Acks, Add, Body, Create, Head, Item, Leave, Remove, Update, decode_body
from linnet.groups.bodies import encode_body as encode
from linnet.groups.labels import Device, MemberId
from linnet.groups.state import Act, GroupState

STRANGER = Device(AuthorId(b"s" * 32), DeviceId(b"stranger"))
KEY = b"\x09" + bytes(31)


class Forgery(NamedTuple):
    """A body, and why it is refused."""

    body: bytes
    reason: Reason


def head_of(state: GroupState, ahead: int = 1) -> Head:
    assert state.me is not None
    return Head(state.me, state.cseq + ahead, 0 if state.sending is None else state.sending.index)


def update_of(state: GroupState, directory: Directory, entropy: Entropy, now: float) -> Update:
    """An update as it should be."""
    content = decode_body(
        agreement.draft_update(state, agreement.Means(directory, lambda device: True, entropy, now)).body
    )
    assert isinstance(content, Update)
    assert len(content.directs) >= 2
    return content


def refused(state: GroupState, directory: Directory, entropy: Entropy, now: float) -> dict[str, Forgery]:
    """One of everything. Something of the forger's and of another must still be awaiting acknowledgements."""
    head, good = head_of(state), update_of(state, directory, entropy, now)
    bodies: dict[str, tuple[Body, Reason]] = {}
    for name, body in out_of_form(head, good).items():
        bodies[name] = (body, Reason.MALFORMED)
    for name, acks in false_acks(state, head).items():
        bodies[name] = (acks, Reason.MALFORMED)
    other = next(member for member in sorted(agreement.members(state)) if member != state.me)
    spoken = Leave(Head(other, state.clock[other] + 1, 0))
    bodies["as another member"] = (spoken, Reason.UNKNOWN_MEMBER)
    forged = {name: Forgery(encode(body), reason) for name, (body, reason) in bodies.items()}
    data = encode(good)
    forged["nothing"] = Forgery(b"", Reason.MALFORMED)
    forged["a version to come"] = Forgery(b"\x02" + data[1:], Reason.UNSUPPORTED)
    forged["an unknown type"] = Forgery(data[:1] + b"\x06" + data[2:], Reason.UNSUPPORTED)
    forged["one byte more"] = Forgery(data + b"\x00", Reason.MALFORMED)
    forged["one byte less"] = Forgery(data[:-1], Reason.MALFORMED)
    forged["a direct message of no kind"] = Forgery(data[:60] + b"\x09" + data[61:], Reason.MALFORMED)
    return forged


def out_of_form(head: Head, good: Update) -> dict[str, Body]:
    low, high = MemberId(b"a" * 16), MemberId(b"b" * 16)
    welcome = b"\x01" + bytes(180)
    founders = (
        (Device(AuthorId(b"b" * 32), STRANGER.device), KEY),
        (STRANGER._replace(author=AuthorId(b"a" * 32)), KEY),
    )
    item = Item(False, EventId(b"o" * 32), ((high, good.directs[0]), (low, good.directs[1])))
    return {
        "a seed to fewer": replace(good, directs=good.directs[1:]),
        "a seed to more": replace(good, directs=(*good.directs, good.directs[0])),
        "a prekey of low order": replace(good, spk=bytes(32)),
        "targets out of order": Remove(head, KEY, (high, low), ()),
        "a target twice": Remove(head, KEY, (low, low), ()),
        "a removal of nobody": Remove(head, KEY, (), good.directs),
        "recipients out of order": Acks(head, (item,)),
        "founders out of order": Create(head, KEY, bytes(16), founders, (good.directs[0],)),
        "a newcomer without key": Add(
            head, KEY, STRANGER, bytes(32), bytes(16), EventId(bytes(32)), welcome, b""
        ),
        "no number": Leave(Head(head.sender, 0, 0)),
    }


def false_acks(state: GroupState, head: Head) -> dict[str, Acks]:
    """Acknowledgements of what is not the forger's to acknowledge."""
    own = min(op for op, known in state.ops.items() if known.sender == state.me)
    again = min(op for op, known in state.ops.items() if known.sender != state.me and known.act is Act.SEED)
    return {
        "its own operation acknowledged": Acks(head, (Item(False, own, ()),)),
        "acknowledged again": Acks(head, (Item(False, again, ()),)),
        "acknowledged as an addition": Acks(head, (Item(True, again, ()),)),
        "acknowledged twice in one": Acks(head, (Item(False, own, ()), Item(False, own, ()))),
        "acknowledgements of nothing": Acks(head, ()),
    }

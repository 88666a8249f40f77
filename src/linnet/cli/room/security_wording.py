"""How safe a room is, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linnet.cli.moments import clock_text, duration_text
from linnet.cli.output import counted, plain
from linnet.cli.room.wording import UNREADABLE

if TYPE_CHECKING:
    from linnet.cli.room.names import Names
    from linnet.node.control_types import RoomView
    from linnet.node.security_types import PersonReply, SecurityReply

COLUMNS = ("name", "device", "keys", "age of keys", "to acknowledge ", "verified")
OVERVIEW = ("name", "room", "encrypted", "you hold keys", "devices ", "unread ", "next message", "warnings ")
STANDING = {
    "holds": "holds them",
    "surplus": "holds them and should not: is removed before the next message",
    "to_be_added": "none yet: is let in next",
    "no_prekeys": "none yet: it has not told how to reach it",
    "used_prekeys": "none: it has to be online to come in anew",
    "expired_prekeys": "none: it was away too long, and has to be online",
    "unknown": "not known while this device has none",
}
WAITING = {
    "not_let_in": "no member that is online has let this device in yet",
    "out_of_step": "the keys of this device fit those of the others no more: it has to be let in anew",
    "newcomers": "somebody just joined and has not told yet how to reach them",
}
FIRST = {
    "acks": "acknowledge the others' changes of keys",
    "surplus": "remove devices that should hold no keys any more",
    "heal": "renew its keys, since somebody who was removed might follow them",
    "missing": "let in devices that joined",
}
_PER_LINE = 6


def protection(reply: SecurityReply, name: str) -> str:
    """Whether a room is encrypted, and for whom it is."""
    if not reply.encrypted:
        return f"{name} is not encrypted: whoever carries it, relays and anyone who joins, can read all of it"
    is_shared = reply.newcomers is not None and reply.newcomers.value == "shared"
    newcomers = "may be shown what was said before" if is_shared else "read from then on"
    return (
        f"{name} is encrypted: its members' devices can read it, and nobody who only carries it; "
        f"those who join {newcomers}"
    )


def device_rows(reply: SecurityReply, names: Names) -> list[tuple[object, ...]]:
    """Device by device, who holds keys."""
    return [
        (
            names.of(device.person),
            device.device
            + (f" ({plain(device.label)})" if device.label else "")
            + ", this one" * device.this,
            STANDING[device.standing.value],
            None if device.key_age is None else duration_text(max(0.0, device.key_age)),
            device.pending,
            None if names.of(device.person) == "you" else device.verified,
        )
        for device in reply.devices
    ]


def sending(reply: SecurityReply) -> list[str]:
    """What happens to the next message, and to our keys."""
    found = [hindrance.value for hindrance in reply.hindrances]
    lines = [f"your next message waits: {WAITING[each]}" for each in found if each in WAITING]
    first = [FIRST[each] for each in found if each in FIRST]
    if first:
        lines.append(f"before your next message this device will {', '.join(first)}")
    if not found:
        lines.append("nothing stands before your next message")
    if reply.renewal_in is not None:
        lines.append(f"the keys of this device are renewed in {duration_text(reply.renewal_in)}")
    return lines


def unread(reply: SecurityReply) -> list[str]:
    """What cannot be read, and why."""
    return [
        f"{counted(count, 'message')}: {UNREADABLE.get(reason, 'cannot be read: ' + reason)}"
        for reason, count in reply.unread.items()
    ]


def theft(reply: SecurityReply) -> list[str]:
    """What a thief of this device could read now."""
    found = reply.theft
    if found is None:
        return []
    lines = [f"{counted(found.messages, 'message')} that this device keeps for you to read, in the clear"]
    if found.shared_keys:
        lines.append(f"{counted(found.shared_keys, 'key')} of messages, kept to be shown to newcomers")
    if found.late_keys:
        lines.append(f"{counted(found.late_keys, 'message')} that were sent and have not come here yet")
    if found.member_secrets:
        secrets = counted(found.member_secrets, "secret")
        lines.append(f"the next keys of others, by {secrets} kept until these have acknowledged them")
    if reply.holds_keys:
        when = "" if reply.renewal_in is None else f" (in {duration_text(reply.renewal_in)})"
        who = counted(found.follows, "other device")
        lines.append(f"everything said by this device and {who} until its next update{when} or its removal")
    return [
        "a thief of this device could read now:",
        *(f"  {line}" for line in lines),
        "and could speak as this device until it is taken out of use: linnet id revoke",
    ]


def overview(room: RoomView, reply: SecurityReply) -> tuple[object, ...]:
    """A room in a table of all."""
    holding = sum(device.standing.value == "holds" for device in reply.devices)
    return (
        None if room.name is None else plain(room.name),
        room.room,
        reply.encrypted,
        reply.holds_keys if reply.encrypted else None,
        holding if reply.encrypted else None,
        sum(reply.unread.values()),
        "waits" if reply.would_wait else "goes out",
        len(reply.warnings),
    )


def person(reply: PersonReply) -> list[str]:
    """A person, and what to compare with them."""
    names = ", ".join(repr(plain(label)) for label in reply.labels) or "no name"
    seen = "never seen here" if reply.first_seen is None else f"first seen {clock_text(reply.first_seen)}"
    lines = [reply.person, f"known as {names}; {counted(len(reply.devices), 'device')}; {seen}"]
    if reply.safety_number is None or reply.safety_words is None:
        return [*lines, "this is you; --verify says that all devices that were seen here are yours"]
    if reply.verified_at is None:
        lines.append("not verified: compare this by voice or side by side, and use --verify if it is equal")
    else:
        lines.append(f"verified {clock_text(reply.verified_at)}")
    groups = reply.safety_number.split()
    rows = [" ".join(groups[at : at + _PER_LINE]) for at in range(0, len(groups), _PER_LINE)]
    return [*lines, "", *(f"  {row}" for row in rows), "", f"  {reply.safety_words}"]

"""From what rooms say to what the control API says about them: ids become text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from msgspec.structs import replace

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.items import Item, Unreadable
from linnet.event.event import Event
from linnet.identity.text import Sort, to_text
from linnet.node.addresses import contact_text
from linnet.node.control_types import EventView, ItemView
from linnet.node.control_views import device_text, event_view, item_view
from linnet.node.room_types import (
    Content,
    EventFatesView,
    InvitationReply,
    LedgerReply,
    MemberFateView,
    MemberView,
    RelayKnowledgeView,
    RelayReportReply,
    RelayRoomView,
    SentReply,
    StateEntryView,
    StateReply,
)
from linnet.rooms.attachments import attachment_of
from linnet.rooms.content import (
    ATTACHMENT,
    REDACTION,
    Create,
    JoinRules,
    Member,
    Plain,
    Power,
    Relay,
    Retention,
    Revoked,
    content_of,
    redaction_of,
)
from linnet.rooms.invitation import Invitation
from linnet.rooms.results import (
    LedgerIs,
    MemberFate,
    RelayReport,
    RelayRoomReport,
    RoomMember,
    Sent,
    StateEntry,
    StateIs,
)

LabelOf = Callable[[AuthorId, DeviceId], str]
"""What a device calls itself; empty if that is not known."""

IsVerified = Callable[[AuthorId], bool]
"""Whether our user has compared safety numbers with a person."""


def _nobody(person: AuthorId) -> bool:
    return False


def room_text(room: TopicId) -> str:
    """A room id."""
    return to_text(Sort.TOPIC, room)


def person_text(person: bytes) -> str:
    """A person id."""
    return to_text(Sort.PERSON, person)


def event_text(event: EventId) -> str:
    """An event id."""
    return to_text(Sort.EVENT, event)


def room_item_view(item: Item, label_of: LabelOf) -> ItemView:
    """One line of what is read in a room."""
    if isinstance(item, Unreadable):
        unread, label = item_view(item), label_of(item.event.author, item.event.device)
        return replace(unread, label=label or None) if isinstance(unread, EventView) else unread
    if not isinstance(item, Event):
        return item_view(item)
    content = content_view(item.kind, item.body)
    view = event_view(item)
    # The create event cannot name the room: its id is the room's.
    topic = room_text(TopicId(item.id)) if item.kind == "create" else view.topic
    return replace(
        view,
        topic=topic,
        text=view.text if content is None else None,
        label=label_of(item.author, item.device) or None,
        content=content,
    )


def content_view(kind: str, body: bytes) -> Content | None:
    """What an event says, if nodes understand its kind; None for what only applications read."""
    try:
        if kind == ATTACHMENT:
            found = attachment_of(body)
            return {"name": found.file_name, "size": found.size, "media": found.media}
        if kind == REDACTION:
            redaction = redaction_of(body)
            return {"event": event_text(redaction.event), "reason": redaction.reason}
        content = content_of(kind, body)
    except InvalidEvent as error:
        return {"malformed": error.detail}
    match content:
        case Create(version, creators):
            return {"version": version, "creators": list(map(person_text, creators))}
        case Member(membership, reason, ticket):
            inviter = None if ticket is None else person_text(ticket.inviter)
            return {"membership": membership.value, "reason": reason, "invited_by": inviter}
        case Power():
            return power_view(content)
        case JoinRules(rule):
            return {"rule": rule.value}
        case Relay(active, person, hints):
            return {"active": active, "person": person_text(person), "hints": list(hints)}
        case Retention(lifetime):
            return {"max_lifetime_ms": lifetime}
        case Revoked(revocation):
            return {"person": person_text(revocation.person), "device": revocation.device.hex()}
        case Plain():
            return None
        case _:
            assert_never(content)


def power_view(power: Power) -> Content:
    """Power levels; what is absent has its default."""
    said = {
        name: getattr(power, name)
        for name in ("users_default", "events_default", "state_default", "ban", "kick", "redact", "invite")
    }
    users = {person_text(person): level for person, level in power.users.items()}
    return {"users": users, "events": dict(power.events)} | {
        name: level for name, level in said.items() if level is not None
    }


def sent_view(sent: Sent) -> SentReply:
    """What became of what was said."""
    relays = tuple(map(device_text, sent.relays))
    return SentReply(room_text(sent.room), tuple(map(event_text, sent.ids)), sent.neighbors, relays)


def invitation_view(invitation: Invitation) -> InvitationReply:
    """An invitation."""
    ticket = invitation.ticket
    return InvitationReply(
        invitation.text,
        room_text(invitation.room),
        invitation.name,
        None if ticket.person is None else person_text(ticket.person),
        ticket.expires_ms / 1000,
        tuple(map(contact_text, invitation.contacts)),
    )


def member_view(member: RoomMember, label_of: LabelOf, is_verified: IsVerified = _nobody) -> MemberView:
    """A person in a room."""
    return MemberView(
        person_text(member.person),
        label(member, label_of),
        member.membership,
        member.level,
        member.online,
        tuple(device.hex() for device in member.devices),
        member.relay,
        tuple(device.hex() for device in member.key_devices),
        is_verified(member.person),
    )


def label(member: RoomMember, label_of: LabelOf) -> str:
    """What the first of a person's devices that says something calls itself."""
    labels = (label_of(member.person, device) for device in (*member.devices, *member.key_devices))
    return next(filter(None, labels), "")


def state_view(state: StateIs, label_of: LabelOf, is_verified: IsVerified = _nobody) -> StateReply:
    """The resolved state of a room."""
    return StateReply(
        room_text(state.room),
        tuple(map(_entry_view, state.entries)),
        tuple(member_view(member, label_of, is_verified) for member in state.members),
        power_view(state.power),
        state.rule,
        tuple(map(event_text, state.heads)),
        tuple(map(event_text, state.control)),
        state.digest.hex(),
    )


def _entry_view(entry: StateEntry) -> StateEntryView:
    content = content_view(entry.kind, entry.event.body)
    event = event_view(entry.event)
    return StateEntryView(
        entry.kind,
        entry.key,
        event.id,
        event.author,
        event.time,
        event.body,
        event.text if content is None else None,
        content,
    )


def ledger_view(ledger: LedgerIs, labels: Mapping[AuthorId, str]) -> LedgerReply:
    """At whom our events have arrived."""
    return LedgerReply(
        room_text(ledger.room),
        tuple(
            EventFatesView(
                event_text(each.event),
                each.kind,
                each.time,
                tuple(_fate_view(fate, labels) for fate in each.members),
            )
            for each in ledger.events
        ),
    )


def _fate_view(fate: MemberFate, labels: Mapping[AuthorId, str]) -> MemberFateView:
    return MemberFateView(
        person_text(fate.person),
        labels.get(fate.person, ""),
        fate.fate,
        fate.at,
        tuple(map(device_text, fate.relays)),
        _reason(fate.reason),
    )


def relay_report_view(report: RelayReport) -> RelayReportReply:
    """What this relay knows."""
    return RelayReportReply(report.epoch.hex(), tuple(map(_relay_room_view, report.rooms)))


def _relay_room_view(room: RelayRoomReport) -> RelayRoomView:
    people = tuple(
        RelayKnowledgeView(
            person_text(known.person),
            known.membership,
            known.control_events,
            known.kept_events,
            known.kept_bytes,
            known.devices,
            known.last_event_ms,
            known.last_seen,
            known.receipts,
            known.key_devices,
        )
        for known in room.people
    )
    return RelayRoomView(
        room_text(room.room),
        room.control_events,
        room.kept_events,
        room.kept_bytes,
        room.chunk_bytes,
        room.oldest,
        room.expired,
        room.evicted,
        room.plain_state_events,
        people,
        room.group_events,
        room.group_bytes,
    )


def _reason(reason: Reason | None) -> str | None:
    return None if reason is None else reason.value

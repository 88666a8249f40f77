"""From what names say to what the control API says: ids become text."""

from __future__ import annotations

from linnet.core.ids import AuthorId
from linnet.identity.text import Sort, to_text
from linnet.names.commands import (
    NamesAre,
    NameStatus,
    NotResolved,
    PetnamesAre,
    Published,
    Resolved,
    Step,
    Via,
)
from linnet.node.addresses import contact_text
from linnet.node.control_views import device_text, topic_text
from linnet.node.name_types import (
    NameReply,
    NamesReply,
    NameView,
    PetnamesReply,
    PetnameView,
    ResolveNameReply,
    StepView,
    ToldView,
)


def name_view(said: Published) -> NameReply:
    """What was said."""
    return NameReply(
        said.label, said.version, said.expires, said.removed, tuple(map(device_text, said.handed))
    )


def resolve_view(outcome: Resolved | NotResolved) -> ResolveNameReply:
    """Where an address leads, or why nowhere."""
    path = tuple(map(_step, outcome.path))
    if isinstance(outcome, Resolved):
        contacts = tuple(map(contact_text, outcome.contacts))
        return ResolveNameReply(outcome.address, topic_text(outcome.place), contacts, path, outcome.expires)
    return ResolveNameReply(
        outcome.address,
        None,
        (),
        path,
        None,
        outcome.fault.value,
        outcome.label,
        _person(outcome.zone),
        outcome.detail,
    )


def names_view(told: NamesAre) -> NamesReply:
    """All labels of the zone."""
    return NamesReply(to_text(Sort.PERSON, told.zone), tuple(map(_name, told.names)))


def petnames_view(told: PetnamesAre) -> PetnamesReply:
    """Everybody whom the user knows."""
    return PetnamesReply(tuple(PetnameView(name, to_text(Sort.PERSON, zone)) for name, zone in told.names))


def _step(step: Step) -> StepView:
    leads_to = topic_text(step.leads_to) if step.via is Via.PLACE else to_text(Sort.PERSON, step.leads_to)
    device = None if step.device is None else step.device.hex()
    return StepView(step.via.value, step.name, _person(step.says), leads_to, step.expires, device)


def _name(status: NameStatus) -> NameView:
    return NameView(
        status.label,
        status.protected,
        None if status.place is None else topic_text(status.place),
        tuple(map(contact_text, status.contacts)),
        _person(status.zone),
        status.version,
        status.expires,
        status.renew,
        status.removed,
        tuple(
            ToldView(device_text(peer), None if reason is None else reason.value)
            for peer, reason in status.told
        ),
    )


def _person(person: AuthorId | None) -> str | None:
    return None if person is None else to_text(Sort.PERSON, person)

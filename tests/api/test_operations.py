"""The table of operations: complete, and each of its lines is one that can be derived."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import msgspec
import pytest

from linnet.api.json_forms import form_of
from linnet.api.operations import BY_COMMAND, OPERATIONS, answer_type
from linnet.content.commands import PublishContent, SubscribeContent, UnsubscribeContent
from linnet.content.fast.commands import JoinGroups, LeaveGroups, PublishToGroup
from linnet.core.ids import PeerId
from linnet.core.limits import BATCH_EVENTS, STREAM_NAME_CHARS
from linnet.delivery.commands import Unsubscribe
from linnet.edge.commands import AllowOnNetwork
from linnet.identity.text import device_text
from linnet.machine.commands import Command, SubscriptionCommand
from linnet.names.commands import PublishName, RemoveName, ResolveName
from linnet.overlay.gossip.commands import SetTrust
from linnet.peer.interface import Examine, Start, Stop
from linnet.places.commands import EnterPlace, HostPlace
from linnet.rooms.commands import (
    AskRelay,
    ExamineSecurity,
    JoinRoom,
    MakeTicket,
    NotePerson,
    RevokeInRoom,
    RoomCommand,
    SetPower,
)
from linnet.streams.commands import AllowReader, DisallowReader, Publish, Revoke, SwitchOverlay

WITHIN = {
    SubscriptionCommand: "a base",
    RoomCommand: "a base",
    Start: "the process of the node starts it",
    Stop: "the process of the node stops it",
    Examine: "told by ReportStatus, with what the node knows beside it",
    Revoke: "spread by RevokeDevice, which says it in rooms too",
    AllowOnNetwork: "asked by the node for AllowOnLan, which may leave out the network",
    Unsubscribe: "a subscription over HTTP ends with its connection",
    SubscribeContent: "opened by ReadContent, whose query is flat",
    UnsubscribeContent: "a subscription over HTTP ends with its connection",
    PublishContent: "asked by the node for SayContent, which chooses the way",
    PublishToGroup: "asked by the node for SayContent, which chooses the way",
    JoinGroups: "part of a subscription by fast or auto",
    LeaveGroups: "part of a subscription by fast or auto",
    PublishName: "asked by the node for PublishLabel, which has the password",
    RemoveName: "asked by the node for WithdrawLabel, which has the password",
    HostPlace: "asked by the node for OpenPlace, which opens the door as well",
    EnterPlace: "asked by the node for AskToEnter, which reads addresses and names",
    JoinRoom: "asked by the node for AskToJoin, which reads invitations",
    MakeTicket: "asked by the node for InviteToRoom, which makes an invitation of it",
    ExamineSecurity: "asked by the node for ReportSecurity, which knows people",
    NotePerson: "asked by the node for VerifyPerson",
    SetPower: "changed level by level, by SetLevel",
    RevokeInRoom: "asked by the node for RevokeDevice",
    AskRelay: "asked by the relay's HTTP face, which is a protocol of its own",
    ResolveName: "asked by the node for LookUpAddress, which has the password",
}
"""Commands that are no operations, and why."""


def commands() -> set[type[Command[Any]]]:
    """Every command of what ships."""
    for package in (
        "api",
        "content",
        "delivery",
        "edge",
        "names",
        "overlay",
        "peer",
        "places",
        "rooms",
        "streams",
    ):
        inner = importlib.import_module(f"linnet.{package}")
        for module in pkgutil.walk_packages(inner.__path__, f"linnet.{package}."):
            importlib.import_module(module.name)
    found: set[type[Command[Any]]] = set()
    waiting: list[type[Command[Any]]] = [Command]
    while waiting:
        below = waiting.pop().__subclasses__()
        found.update(below)
        waiting += below
    return {kind for kind in found if kind.__module__.startswith("linnet.")}


def test_every_command_is_an_operation_or_has_a_reason_why_not() -> None:
    known = {each.command for each in OPERATIONS} | set(WITHIN)
    assert commands() - known == set()
    assert set(WITHIN).isdisjoint(each.command for each in OPERATIONS)


def test_names_and_paths_are_unique() -> None:
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)
    assert len({(each.method, each.path) for each in OPERATIONS}) == len(OPERATIONS)
    assert all(each.path.startswith("/v1/") for each in OPERATIONS)


def test_each_says_what_it_does_in_a_sentence() -> None:
    assert [each.name for each in OPERATIONS if not each.summary.endswith(".")] == []


def test_each_answer_has_a_form() -> None:
    for each in OPERATIONS:
        assert form_of(answer_type(each.command)).shape is not None


DEVICE = device_text(PeerId(b"p" * 32))


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        (Publish, {"stream": ""}),
        (Publish, {"stream": "x" * (STREAM_NAME_CHARS + 1)}),
        (Publish, {"stream": "s", "bodies": ["*"]}),
        (Publish, {"stream": "s", "confirm": 3601}),
        (Publish, {"stream": "s", "texts": [""] * (BATCH_EVENTS + 1)}),
        (Publish, {"stream": "s", "bodies": [""] * (BATCH_EVENTS + 1)}),
        (Publish, {"stream": "s", "other": 1}),
        (SetTrust, {"value": 1}),
        (SetTrust, {"device": DEVICE, "value": 0}),
        (SetTrust, {"device": DEVICE, "value": 1.5}),
        (SwitchOverlay, {"stream": "s", "overlay": "mesh"}),
        (SwitchOverlay, {"overlay": "ring"}),
        (AllowReader, {"stream": "s"}),
        (AllowReader, {"stream": "", "request": "lr1"}),
        (AllowReader, {"stream": "s", "request": "a", "x": 1}),
        (DisallowReader, {"stream": "s", "device": "bea"}),
    ],
)
def test_what_is_asked_has_bounds(command: type[Command[Any]], wrong: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(wrong), type=BY_COMMAND[command].shape)


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        (Publish, {"stream": "x" * STREAM_NAME_CHARS, "confirm": 3600, "texts": [""] * BATCH_EVENTS}),
        (SetTrust, {"device": DEVICE, "value": 1}),
        (SetTrust, {"device": DEVICE}),
        (SwitchOverlay, {"stream": "s", "overlay": "ring"}),
        (AllowReader, {"stream": "s", "request": "lr1"}),
    ],
)
def test_what_is_at_its_bounds_may_be_asked(command: type[Command[Any]], asked: dict[str, object]) -> None:
    shape = BY_COMMAND[command].shape
    assert isinstance(msgspec.json.decode(msgspec.json.encode(asked), type=shape), shape)

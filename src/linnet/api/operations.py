"""The operations of the control API, one line each; routes, OpenAPI, client and `linnet api` are derived.

The fields of a command are the request, the R of its `Command[R]` is the answer, its docstring the
description. Fields in braces are in the path, the others in the body of a POST or in the query of a GET.
"""

from __future__ import annotations

import re
import sys
import types
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ForwardRef, Literal, get_args, get_origin, get_type_hints

from msgspec import Struct

from linnet.api.content import ContentItemView, ReadContent, SayContent, content_item_of, content_item_view
from linnet.api.items import ItemView, item_of, item_view
from linnet.api.json_forms import Field, Form, define_twin, fields_of, form_of, snake
from linnet.api.name_commands import LookUpAddress, PublishLabel, WithdrawLabel
from linnet.api.node_commands import (
    AllowOnLan,
    ExamineGraph,
    ListDevices,
    ListPeers,
    ReadHistory,
    ReportHealth,
    ReportStatus,
    RevokeDevice,
    StopNode,
)
from linnet.api.places import (
    AskToEnter,
    ExaminePlace,
    ListenToPlace,
    OpenPlace,
    PlaceItemView,
    ReadBody,
    ReadPlaceHistory,
    place_item_of,
    place_item_view,
)
from linnet.api.rooms import (
    AskToJoin,
    InviteToRoom,
    ListMembers,
    LookUpPerson,
    ReportSecurity,
    VerifyPerson,
)
from linnet.content.commands import ForgetContent, ListContent
from linnet.content.fast.commands import CloseGroup, ExamineGroups, OpenGroup, SearchGroups
from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.delivery.commands import Consumed
from linnet.edge.commands import ExamineEdge, ExamineLan, Sleep, Wake
from linnet.machine.commands import Command
from linnet.machine.protocol import Protocol
from linnet.names.commands import ExportNames, ListNames, ListPetnames, RemovePetname, SetPetname, TakeInNames
from linnet.overlay.gossip.commands import ExamineOverlay, ExaminePrivacy, ListTrust, SetTrust
from linnet.peer.interface import Block, Connect, Disconnect
from linnet.places.commands import (
    Admit,
    Announce,
    AnnounceMore,
    ChangePlace,
    Eject,
    LeavePlace,
    ListGuests,
    ListPlaces,
    ListReceipts,
    Look,
    Reject,
    TalkTo,
    WatchPlace,
)
from linnet.rooms.commands import (
    AddRelay,
    CompareRelays,
    CreateRoom,
    DropRelay,
    ExamineLedger,
    ExaminePrice,
    ExamineRelay,
    ExamineRooms,
    ExamineState,
    FetchChunk,
    KeepChunk,
    LeaveRoom,
    ReadRoom,
    Redact,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetRetention,
    SetRule,
    SetState,
    ShareHistory,
)
from linnet.streams.commands import (
    AllowReader,
    AskToRead,
    CheckStorage,
    Declare,
    DisallowReader,
    ListReaders,
    Publish,
    Subscribe,
    SwitchOverlay,
)

DESCRIPTION_PATH = "/v1/openapi.json"
SUBSCRIPTION = "subscription"
ACK = Field("ack", "ack", Form(Literal["auto", "manual"]), "auto")
ACK_MEANING = "auto: what was written to the caller is consumed; manual: what the caller says."


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation of the control API."""

    method: str
    path: str
    command: type[Command[Any]]
    status: int = 200
    patience: float = 0.0
    """Seconds that it may take beyond the usual limit of an answer."""
    item: Form | None = None
    """For a subscription: the form of its items, one in each line."""

    @property
    def name(self) -> str:
        """The name of the operation."""
        return snake(self.command.__name__)

    @property
    def summary(self) -> str:
        """One sentence about what it does."""
        return (self.command.__doc__ or "").partition("\n")[0]

    @cached_property
    def in_path(self) -> tuple[Field, ...]:
        """The fields in the path."""
        named = re.findall(r"{(\w+)}", self.path)
        return tuple(field for field in fields_of(self.command) if field.told in named)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields in the body or the query."""
        rest = tuple(field for field in fields_of(self.command) if field not in self.in_path)
        # The node gives a subscription its number.
        return rest if self.item is None else tuple(field for field in rest if field.name != SUBSCRIPTION)

    @cached_property
    def path_shape(self) -> type[Struct]:
        """The struct of the path's fields."""
        return define_twin(self.command, self.in_path)

    @cached_property
    def shape(self) -> type[Struct]:
        """The struct of the body or the query."""
        return define_twin(self.command, self.fields if self.item is None else (*self.fields, ACK))

    @cached_property
    def answer(self) -> Form:
        """The form of the answer."""
        return form_of(answer_type(self.command))

    def read(self, path: Struct, rest: Struct) -> Command[Any]:
        """Return the command of a request. Raises `BadText` if an id is wrong."""
        given: dict[str, Any] = {} if self.item is None else {SUBSCRIPTION: 0}
        given |= {each.name: _read(each, path) for each in self.in_path}
        return self.command(**given, **{each.name: _read(each, rest) for each in self.fields})

    def write(self, command: Command[Any], **more: object) -> tuple[dict[str, Any], Struct]:
        """Return the path's fields of a command, and the struct of the others."""
        path = {each.told: _written(each, command) for each in self.in_path}
        return path, self.shape(**{each.told: _written(each, command) for each in self.fields}, **more)


def _read(field: Field, told: Struct) -> Any:  # noqa: ANN401 - of the field's type
    value = getattr(told, field.told)
    return value if field.form.read is None else field.form.read(value)


def _written(field: Field, command: Command[Any]) -> Any:  # noqa: ANN401 - JSON itself
    value = getattr(command, field.name)
    return value if field.form.write is None else field.form.write(value)


def answer_type(command: type[Command[Any]]) -> Any:  # noqa: ANN401 - a type
    """Return the R of a `Command[R]`."""
    for kind in command.__mro__:
        for base in kind.__dict__.get("__orig_bases__", ()):
            origin = get_origin(base)
            if isinstance(origin, type) and issubclass(origin, Command):
                [answer] = get_args(base)
                return _resolved(answer, kind)
    raise TypeError(f"{command.__name__} does not tell what it is answered by")


def _resolved(answer: Any, kind: type) -> Any:  # noqa: ANN401 - a type
    if not isinstance(answer, ForwardRef):
        return answer
    told = types.SimpleNamespace(__annotations__={"answer": answer.__forward_arg__})
    return get_type_hints(told, vars(sys.modules[kind.__module__]))["answer"]


def get(path: str, command: type[Command[Any]], patience: float = 0.0) -> Operation:
    """Return an operation that reads."""
    return Operation("GET", path, command, patience=patience)


def post(path: str, command: type[Command[Any]], status: int = 200, patience: float = 0.0) -> Operation:
    """Return an operation that changes something."""
    return Operation("POST", path, command, status, patience)


def lines(path: str, command: type[Command[Any]], item: Form) -> Operation:
    """Return a subscription: one JSON value per line until either side closes."""
    return Operation("GET", path, command, item=item)


ITEM = Form(ItemView, item_view, item_of)

CONTENT_ITEM = Form(ContentItemView, content_item_view, content_item_of)

PLACE_ITEM = Form(PlaceItemView, place_item_view, place_item_of)

OPERATIONS: tuple[Operation, ...] = (
    get("/v1/status", ReportStatus),
    get("/v1/peers", ListPeers),
    get("/v1/doctor", ReportHealth),
    get("/v1/trackers/{topic}", ExamineGraph),
    post("/v1/publish", Publish),
    lines("/v1/subscribe", Subscribe, ITEM),
    lines("/v1/history", ReadHistory, ITEM),
    post("/v1/subscriptions/{subscription}/consumed", Consumed),
    post("/v1/declare", Declare),
    post("/v1/sealed/request", AskToRead),
    post("/v1/sealed/allow", AllowReader),
    post("/v1/sealed/disallow", DisallowReader),
    get("/v1/sealed/readers", ListReaders),
    post("/v1/storage/check", CheckStorage, patience=30.0),
    post("/v1/block", Block),
    post("/v1/connect", Connect),
    post("/v1/disconnect", Disconnect),
    get("/v1/devices", ListDevices),
    post("/v1/devices/revoke", RevokeDevice),
    get("/v1/overlay", ExamineOverlay),
    post("/v1/overlay/switch", SwitchOverlay),
    get("/v1/privacy", ExaminePrivacy),
    get("/v1/trust", ListTrust),
    post("/v1/trust", SetTrust),
    get("/v1/lan", ExamineLan),
    post("/v1/lan/allow", AllowOnLan),
    get("/v1/edge", ExamineEdge),
    post("/v1/edge/sleep", Sleep),
    post("/v1/edge/wake", Wake),
    get("/v1/names", ListNames),
    post("/v1/names/publish", PublishLabel),
    post("/v1/names/remove", WithdrawLabel),
    post("/v1/names/resolve", LookUpAddress, patience=60.0),
    get("/v1/names/export", ExportNames),
    post("/v1/names/import", TakeInNames),
    get("/v1/petnames", ListPetnames),
    post("/v1/petnames/set", SetPetname),
    post("/v1/petnames/remove", RemovePetname),
    get("/v1/content", ListContent),
    post("/v1/content/publish", SayContent, patience=600.0),
    lines("/v1/content/subscribe", ReadContent, CONTENT_ITEM),
    post("/v1/content/forget", ForgetContent),
    get("/v1/content/groups", ExamineGroups),
    get("/v1/content/groups/find", SearchGroups, patience=120.0),
    post("/v1/content/groups", OpenGroup),
    post("/v1/content/groups/close", CloseGroup),
    get("/v1/rooms", ExamineRooms),
    post("/v1/rooms", CreateRoom),
    post("/v1/rooms/join", AskToJoin),
    post("/v1/rooms/{room}/invite", InviteToRoom),
    post("/v1/rooms/{room}/leave", LeaveRoom),
    post("/v1/rooms/{room}/membership", SetMembership),
    post("/v1/rooms/{room}/level", SetLevel),
    post("/v1/rooms/{room}/rule", SetRule),
    post("/v1/rooms/{room}/state", SetState),
    post("/v1/rooms/{room}/retention", SetRetention),
    post("/v1/rooms/{room}/send", SendToRoom),
    post("/v1/rooms/{room}/redact", Redact),
    post("/v1/rooms/{room}/share", ShareHistory),
    lines("/v1/rooms/{room}/read", ReadRoom, ITEM),
    get("/v1/rooms/{room}/state", ExamineState),
    get("/v1/rooms/{room}/members", ListMembers),
    get("/v1/rooms/{room}/ledger", ExamineLedger),
    get("/v1/rooms/{room}/security", ReportSecurity),
    post("/v1/rooms/{room}/relays", AddRelay),
    post("/v1/rooms/{room}/relays/drop", DropRelay),
    post("/v1/rooms/{room}/relays/compare", CompareRelays),
    get("/v1/rooms/{room}/relays/{relay}/price", ExaminePrice),
    post("/v1/rooms/{room}/chunks", KeepChunk),
    get("/v1/rooms/{room}/chunks/{digest}", FetchChunk),
    get("/v1/people/{person}", LookUpPerson),
    post("/v1/people/{person}/verified", VerifyPerson),
    get("/v1/relay", ExamineRelay),
    get("/v1/places", ListPlaces),
    post("/v1/places", OpenPlace),
    post("/v1/places/enter", AskToEnter),
    get("/v1/places/{place}", ExaminePlace),
    post("/v1/places/{place}/deed", ChangePlace),
    post("/v1/places/{place}/announce", Announce),
    post("/v1/places/{place}/announce/more", AnnounceMore),
    post("/v1/places/{place}/talk", TalkTo),
    post("/v1/places/{place}/admit", Admit),
    post("/v1/places/{place}/reject", Reject),
    post("/v1/places/{place}/eject", Eject),
    post("/v1/places/{place}/leave", LeavePlace),
    get("/v1/places/{place}/objects", Look),
    get("/v1/places/{place}/guests", ListGuests),
    lines("/v1/places/{place}/watch", WatchPlace, PLACE_ITEM),
    lines("/v1/places/{place}/listen", ListenToPlace, PLACE_ITEM),
    lines("/v1/places/{place}/history", ReadPlaceHistory, PLACE_ITEM),
    get("/v1/places/{place}/messages/{message}/receipts", ListReceipts),
    lines("/v1/places/{place}/messages/{message}/body", ReadBody, PLACE_ITEM),
    post("/v1/stop", StopNode, status=202),
)


def offered_by(protocols: Iterable[Protocol[Any]]) -> tuple[Operation, ...]:
    """Return the operations of added protocols; raises `ValueError` if one exists already."""
    offers = [offer for protocol in protocols for offer in protocol.offers]
    added = tuple(
        Operation(each.method, each.path, each.command, item=ITEM if each.is_subscription else None)
        for each in offers
    )
    every = (*OPERATIONS, *added)
    for taken in (Counter(each.name for each in every), Counter((each.method, each.path) for each in every)):
        [(what, count)] = taken.most_common(1)
        if count > 1:
            raise ValueError(f"two operations are {what}")
    return added


BY_COMMAND = {operation.command: operation for operation in OPERATIONS}


def operation_of(command: Command[Any]) -> Operation:
    """Return the operation for a command; raises `Refused` if only the node's own process may give it."""
    operation = BY_COMMAND.get(type(command))
    if operation is None:
        detail = f"{type(command).__name__} is asked within the process of a node alone: see Node(home)"
        raise Refused(Reason.UNSUPPORTED, detail)
    return operation

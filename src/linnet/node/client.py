"""Talking to a running node from another process of the same machine, by its control API.

::

    with ControlClient(home) as control:
        control.publish("weather", [b"rain"])
        for item in control.subscribe("weather", since=0):
            ...
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from linnet.node.caller import ANSWER_SECONDS, ControlError, NodeUnreachable, control_socket
from linnet.node.content_calls import ContentCalls
from linnet.node.control_types import (
    BlockRequest,
    ConnectRequest,
    ConsumedRequest,
    DeclareRequest,
    DoctorReply,
    DoneReply,
    GraphReply,
    HistoryQuery,
    ItemView,
    PublishReply,
    PublishRequest,
    SubscribeQuery,
)
from linnet.node.device_types import DevicesReply, RevokeReply, RevokeRequest
from linnet.node.edge_calls import EdgeCalls
from linnet.node.lan_calls import LanCalls
from linnet.node.name_calls import NameCalls
from linnet.node.overlay_types import (
    OverlayReply,
    PrivacyReply,
    SwitchReply,
    SwitchRequest,
    TrustReply,
    TrustRequest,
)
from linnet.node.place_calls import PlaceCalls
from linnet.node.room_calls import RoomCalls
from linnet.node.sealed_types import (
    AllowRequest,
    DisallowRequest,
    ReadersQuery,
    ReadersReply,
    ReadingRequest,
    RequestReply,
)
from linnet.node.status_types import PeersReply, StatusReply

__all__ = ["ControlClient", "ControlError", "NodeUnreachable", "control_socket"]


class ControlClient(RoomCalls, PlaceCalls, ContentCalls, LanCalls, EdgeCalls, NameCalls):
    """One caller of the control API; close it, or use it as a context."""

    def status(self) -> StatusReply:
        """How things stand."""
        return self._get("/v1/status", StatusReply)

    def peers(self) -> PeersReply:
        """Every link, open or wanted."""
        return self._get("/v1/peers", PeersReply)

    def publish(self, stream: str, bodies: Sequence[bytes], confirm: float = 0.0) -> PublishReply:
        """Publish bodies, in this order."""
        request = PublishRequest(stream, tuple(bodies), confirm=confirm)
        return self._post("/v1/publish", request, PublishReply, ANSWER_SECONDS + confirm)

    def subscribe(
        self,
        stream: str,
        since: float | None = None,
        name: str | None = None,
        ordered: bool = True,
        live: bool = True,
        receipts: bool = False,
        manual: bool = False,
    ) -> Iterator[ItemView]:
        """What is said in a stream, item by item; the first is `SubscribedView`. Closing it unsubscribes.

        With `manual`, call `consumed` with the number in the first item; that needs a client of its own.
        """
        query = SubscribeQuery(stream, since, name, ordered, live, receipts, "manual" if manual else "auto")
        return self._lines("/v1/subscribe", query)

    def history(self, stream: str, since: float = 0.0, ordered: bool = True) -> Iterator[ItemView]:
        """What is kept of a stream; ends with it."""
        return self._lines("/v1/history", HistoryQuery(stream, since, ordered))

    def consumed(self, subscription: int, items: int) -> None:
        """So many more items of a manual subscription were handled; returns when that is durable."""
        self._post(f"/v1/subscriptions/{subscription}/consumed", ConsumedRequest(items), DoneReply)

    def declare(self, request: DeclareRequest) -> PublishReply:
        """Decide about a stream of ours."""
        return self._post("/v1/declare", request, PublishReply)

    def request_reading(self, stream: str) -> RequestReply:
        """A line by which this device asks to read a sealed stream."""
        return self._post("/v1/sealed/request", ReadingRequest(stream), RequestReply)

    def allow_reader(self, request: AllowRequest) -> ReadersReply:
        """Let a device read a stream that this device seals."""
        return self._post("/v1/sealed/allow", request, ReadersReply)

    def disallow_reader(self, request: DisallowRequest) -> ReadersReply:
        """Put readers out of a stream that this device seals."""
        return self._post("/v1/sealed/disallow", request, ReadersReply)

    def stream_readers(self, stream: str) -> ReadersReply:
        """Who may read a stream that this device seals."""
        return self._get("/v1/sealed/readers", ReadersReply, ReadersQuery(stream))

    def overlay(self) -> OverlayReply:
        """How the node stands without trackers."""
        return self._get("/v1/overlay", OverlayReply)

    def switch_overlay(self, request: SwitchRequest) -> SwitchReply:
        """Give a stream another overlay at this node."""
        return self._post("/v1/overlay/switch", request, SwitchReply)

    def privacy(self) -> PrivacyReply:
        """What the node has told others of its interests."""
        return self._get("/v1/privacy", PrivacyReply)

    def trust(self) -> TrustReply:
        """Whom the user trusts."""
        return self._get("/v1/trust", TrustReply)

    def set_trust(self, request: TrustRequest) -> TrustReply:
        """Trust a device so much, or no longer."""
        return self._post("/v1/trust", request, TrustReply)

    def block(self, device: str, blocked: bool = True) -> None:
        """Have nothing to do with a device any more, or again."""
        self._post("/v1/block", BlockRequest(device, blocked), DoneReply)

    def connect(self, contact: str) -> None:
        """Keep a link to a peer, ``KEY@HOST:PORT``."""
        self._post("/v1/connect", ConnectRequest(contact), DoneReply)

    def devices(self) -> DevicesReply:
        """The devices of the person, as far as the node has met them."""
        return self._get("/v1/devices", DevicesReply)

    def revoke_device(self, request: RevokeRequest) -> RevokeReply:
        """Take a device out of use in streams and in every room of the node."""
        return self._post("/v1/devices/revoke", request, RevokeReply)

    def doctor(self) -> DoctorReply:
        """What the node knows about its own health."""
        return self._get("/v1/doctor", DoctorReply)

    def graph(self, topic: str) -> GraphReply:
        """The graph of a topic that the node tracks."""
        return self._get(f"/v1/trackers/{topic}", GraphReply)

    def stop(self) -> None:
        """Stop the node, in good order. Returns when it has begun to."""
        self._post("/v1/stop", None, DoneReply)

    def openapi(self) -> dict[str, Any]:
        """The description of the API."""
        return self._get("/v1/openapi.json", dict[str, Any])

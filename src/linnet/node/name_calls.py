"""What the control API can be asked about names, by a program."""

from __future__ import annotations

from linnet.node.caller import ANSWER_SECONDS, Caller
from linnet.node.name_types import (
    NameReply,
    NamesFileReply,
    NamesReply,
    PetnameRequest,
    PetnamesReply,
    PublishNameRequest,
    RemoveNameRequest,
    RemovePetnameRequest,
    ResolveNameReply,
    ResolveNameRequest,
    TakeInNamesRequest,
    TakenInReply,
)

RESOLVE_SECONDS = 60.0
"""Seconds that an address may take beyond an answer: each of its labels is waited for."""


class NameCalls(Caller):
    """Calls about names."""

    def names(self) -> NamesReply:
        """What our zone says."""
        return self._get("/v1/names", NamesReply)

    def publish_name(self, request: PublishNameRequest) -> NameReply:
        """Say something under a label of our zone."""
        return self._post("/v1/names/publish", request, NameReply)

    def remove_name(self, request: RemoveNameRequest) -> NameReply:
        """Take back what our zone says under a label."""
        return self._post("/v1/names/remove", request, NameReply)

    def resolve_name(self, request: ResolveNameRequest) -> ResolveNameReply:
        """Where an address leads, or why nowhere."""
        return self._post("/v1/names/resolve", request, ResolveNameReply, ANSWER_SECONDS + RESOLVE_SECONDS)

    def export_names(self) -> NamesFileReply:
        """Our own records as a file."""
        return self._get("/v1/names/export", NamesFileReply)

    def take_in_names(self, data: bytes) -> TakenInReply:
        """Keep the records of such a file."""
        return self._post("/v1/names/import", TakeInNamesRequest(data), TakenInReply)

    def petnames(self) -> PetnamesReply:
        """Whom the user knows by which name."""
        return self._get("/v1/petnames", PetnamesReply)

    def set_petname(self, name: str, person: str) -> PetnamesReply:
        """Know a person by a name."""
        return self._post("/v1/petnames/set", PetnameRequest(name, person), PetnamesReply)

    def remove_petname(self, name: str) -> PetnamesReply:
        """Know nobody by this name any more."""
        return self._post("/v1/petnames/remove", RemovePetnameRequest(name), PetnamesReply)

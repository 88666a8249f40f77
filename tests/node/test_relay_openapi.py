"""The description is complete, and no request that can be derived from it breaks the face."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import httpx
import msgspec
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from tests.node.standin_relay import RELAY, RELAY_IDENTITY, ROOM, StandInRelay

from linnet.api.openapi import HttpOperation
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, to_text
from linnet.node.relay_http import RelayHttp
from linnet.node.relay_protocol import (
    PREFIX,
    RELAY_OPERATIONS,
    RelayErrorReply,
    RelayHttpError,
    relay_document,
)
from linnet.node.relay_signing import SignedRequest, authorization
from linnet.sim.clock import START
from linnet.testing.identities import known_identity

ANN = known_identity("ann")
DOCUMENT = relay_document()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
FUZZ = settings(
    max_examples=100 if os.environ.get("LINNET_SOAK") == "1" else 15,
    suppress_health_check=list(HealthCheck),
)
SIGNED = [operation for operation in RELAY_OPERATIONS if operation.body is not None]


def described_answer(operation: HttpOperation, response: httpx.Response) -> None:
    described = DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"]
    assert str(response.status_code) in described, f"{operation.name} answered {response.status_code}"
    kind = operation.reply if response.status_code == operation.status else RelayErrorReply
    msgspec.json.decode(response.content, type=kind)


async def asked(method: str, path: str, body: bytes, nonce: bytes) -> httpx.Response:
    """The answer of a new face to a request that Ann signed."""
    app = RelayHttp(StandInRelay(ANN), RELAY_IDENTITY, lambda: START).app()
    ts = int(START * 1000)
    request = SignedRequest(RELAY.peer, method, path.encode(), body)
    header = authorization(ANN.device, ANN.card, request, ts, nonce)
    headers = {"authorization": header, "content-type": "application/json"}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://relay") as http:
        url = httpx.URL("http://relay").copy_with(raw_path=path.encode())
        return await http.request(method, url, content=body, headers=headers)


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("operation", SIGNED, ids=lambda operation: operation.name)
@FUZZ
@given(data=st.data(), nonce=st.binary(min_size=16, max_size=16), real_room=st.booleans())
async def test_every_request_has_a_described_answer(
    operation: HttpOperation, mode: GenerationMode, data: st.DataObject, nonce: bytes, real_room: bool
) -> None:
    case = data.draw(SCHEMA[operation.path][operation.method].as_strategy(generation_mode=mode))
    if real_room:
        case.path_parameters["room"] = to_text(Sort.TOPIC, ROOM)
    try:
        prepared = requests.Request(**case.as_transport_kwargs(base_url="http://relay")).prepare()
        path = httpx.URL(str(prepared.url)).raw_path.decode()
    except (ValueError, httpx.InvalidURL, requests.RequestException):
        return  # No client can send that.
    if path.count("/") != operation.path.count("/"):
        return  # A parameter with a slash is another path.
    body = prepared.body if isinstance(prepared.body, bytes) else str(prepared.body or "").encode()
    response = await asked(operation.method, path, body, nonce)
    if response.status_code != 405:
        described_answer(operation, response)


@FUZZ
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    st.text("/lt1{}.%ab", max_size=20),
    st.binary(max_size=99),
)
async def test_no_bytes_break_the_face(method: str, path: str, body: bytes) -> None:
    try:
        response = await asked(method, f"{PREFIX}/{path}", body, bytes(16))
    except httpx.InvalidURL:
        return
    assert response.status_code < 500
    if response.status_code >= 400:
        msgspec.json.decode(response.content, type=RelayErrorReply)


@pytest.mark.parametrize("operation", SIGNED, ids=lambda operation: operation.name)
@FUZZ
@given(
    body=st.binary(max_size=99)
    | st.sampled_from((b"\xff", b"{", b"[" * 9999, b'{"events":[1]}', b'{"ids":0}'))
)
async def test_no_body_breaks_a_request_of_a_room(operation: HttpOperation, body: bytes) -> None:
    path = operation.path.replace("{room}", to_text(Sort.TOPIC, ROOM)).replace("{txn}", "1")
    described_answer(operation, await asked(operation.method, path, body, bytes(16)))


def test_every_status_of_a_refusal_is_described() -> None:
    """But that of a bug, which nobody can count on."""
    operations = [DOCUMENT["paths"][each.path][each.method.lower()] for each in SIGNED]
    described = {int(status) for operation in operations for status in operation["responses"]}
    assert {RelayHttpError(reason, "").status for reason in Reason} - described == {500}


def test_the_description_is_complete() -> None:
    assert DOCUMENT["openapi"] == "3.1.0"
    for operation in RELAY_OPERATIONS:
        assert operation.path.startswith(PREFIX)
        found: dict[str, Any] = DOCUMENT["paths"][operation.path][operation.method.lower()]
        assert found["summary"].endswith(".")
        assert [parameter["name"] for parameter in found["parameters"]] == [
            name for name, _, _ in operation.parameters
        ]
        assert [name for name, _, _ in operation.parameters] == re.findall(r"{(\w+)}", operation.path)
        assert all(parameter["description"] for parameter in found["parameters"])
        assert (found["security"] == [{"device": []}]) is (operation.body is not None)
    text = json.dumps(DOCUMENT)
    references = {part.split('"')[0] for part in text.split('"$ref": "#/components/schemas/')[1:]}
    assert references <= set(DOCUMENT["components"]["schemas"])

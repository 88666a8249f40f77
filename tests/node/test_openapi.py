"""The description is complete, and no request that can be derived from it breaks the server."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest
import pytest_asyncio
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode

from linnet.api.errors import ErrorReply
from linnet.api.openapi import DESCRIPTION, HttpOperation, Media, described, document
from linnet.api.operations import OPERATIONS as DERIVED
from linnet.delivery.config import DeliveryConfig
from linnet.identity.text import topic_text
from linnet.net.config import NetConfig
from linnet.node.config import ControlSection, NodeConfig, TrackerSection
from linnet.node.control import Control, serve_control
from linnet.node.library import Node

LIMIT = 30.0
SOAK = os.environ.get("LINNET_SOAK") == "1"
OPERATIONS = (*map(described, DERIVED), DESCRIPTION)
DOCUMENT = document(DERIVED)
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
FUZZ = settings(
    max_examples=100 if SOAK else 10,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)


class Api(NamedTuple):
    """A node's control API, and what is there to be asked about."""

    http: httpx.AsyncClient
    place: str
    room: str


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    """One node for all requests: whatever one of them did, the next has a described answer too."""
    config = NodeConfig(
        tracker=TrackerSection(enabled=True),
        control=ControlSection(max_request_bytes=64 * 1024),
        delivery=DeliveryConfig(history_timeout=0.05),
        net=NetConfig(linger=0.1),
    )
    path = tmp_path_factory.mktemp("node") / "c.sock"
    transport = httpx.AsyncHTTPTransport(uds=str(path))
    async with (
        Node(config=config) as node,
        serve_control(Control(node, lambda: None).app(), path),
        httpx.AsyncClient(transport=transport, base_url="http://node", timeout=LIMIT) as client,
    ):
        place, room = await node.places.host(name="tea"), await node.create_room("tea")
        yield Api(client, place.text, topic_text(room.id))
        node.end_subscriptions()


async def answer(http: httpx.AsyncClient, request: httpx.Request) -> tuple[int, bytes]:
    """Status and body; of a subscription that is on, its first line."""
    async with asyncio.timeout(LIMIT):
        response = await http.send(request, stream=True)
        try:
            if response.headers.get("content-type") == Media.LINES:
                return response.status_code, (await anext(response.aiter_lines())).encode()
            return response.status_code, await response.aread()
        finally:
            await response.aclose()


def check(operation: HttpOperation, status: int, body: bytes) -> None:
    described = DOCUMENT["paths"][operation.path][operation.method.lower()]["responses"]
    assert str(status) in described, f"{operation.name} answered {status}, which is not described"
    msgspec.json.decode(body, type=operation.reply if status == operation.status else ErrorReply)


def point_at(api: Api, case: Case[Any]) -> None:
    """Ask about the place or the room that is there."""
    for name, there in (("place", api.place), ("room", api.room)):
        if name in (case.path_parameters or {}):
            case.path_parameters[name] = there


def request_of(http: httpx.AsyncClient, case: Case[Any]) -> httpx.Request:
    if isinstance(case.body, dict) and isinstance(case.body.get("confirm"), int | float):
        case.body["confirm"] = 0  # or we would have to wait that long
    kept = {key: value for key, value in (case.headers or {}).items() if str(value).isprintable()}
    case.headers = requests.structures.CaseInsensitiveDict(kept)
    case.cookies = {}
    prepared = requests.Request(**case.as_transport_kwargs(base_url="http://node")).prepare()
    content = prepared.body if isinstance(prepared.body, bytes | str) else None
    headers = {key: str(value) for key, value in prepared.headers.items() if key.lower() == "content-type"}
    return http.build_request(prepared.method or "GET", str(prepared.url), content=content, headers=headers)


@pytest.mark.parametrize(
    ("operation", "mode"),
    [
        *((operation, GenerationMode.POSITIVE) for operation in OPERATIONS),
        # Nothing can be wrong with a request that has no types but text.
        *(
            (operation, GenerationMode.NEGATIVE)
            for operation in OPERATIONS
            if operation.query or operation.body
        ),
    ],
    ids=lambda value: getattr(value, "name", value),
)
@pytest.mark.asyncio(loop_scope="module")
@FUZZ
@given(data=st.data())
async def test_every_request_has_a_described_answer(
    api: Api, operation: HttpOperation, mode: GenerationMode, data: st.DataObject
) -> None:
    described = SCHEMA[operation.path][operation.method]
    case = data.draw(described.as_strategy(generation_mode=mode))
    if data.draw(st.booleans()):
        point_at(api, case)
    try:
        request = request_of(api.http, case)
    except (ValueError, httpx.InvalidURL, requests.RequestException):
        return  # No client can send that.
    if request.url.path.count("/") != operation.path.count("/"):
        return  # A parameter with a slash is another path.
    status, body = await answer(api.http, request)
    if operation.parameters and status in (404, 405):
        return  # An empty parameter is another path.
    check(operation, status, body)


PATHS = st.sampled_from([operation.path for operation in OPERATIONS]) | st.text("/v1{}.%abc\x7f", max_size=20)


@pytest.mark.asyncio(loop_scope="module")
@FUZZ
@given(
    st.sampled_from(["GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE"]),
    PATHS,
    st.binary(max_size=200) | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps),
    st.sampled_from(["application/json", "", "text/plain", "application/json; charset=x"]),
)
async def test_no_bytes_break_the_server(
    api: Api, method: str, path: str, content: bytes | str, form: str
) -> None:
    try:
        url = httpx.URL("http://node").copy_with(raw_path=("/" + path.lstrip("/")).encode())
    except httpx.InvalidURL:
        return
    request = api.http.build_request(method, url, content=content, headers={"content-type": form})
    status, _ = await answer(api.http, request)
    assert status < 500


def test_the_description_is_complete() -> None:
    described = document(DERIVED)
    assert described["openapi"] == "3.1.0"
    for operation in OPERATIONS:
        found: dict[str, Any] = described["paths"][operation.path][operation.method.lower()]
        assert found["operationId"] == operation.name
        assert found["summary"].endswith(".")
        assert str(operation.status) in found["responses"]
        names = [parameter["name"] for parameter in found["parameters"]]
        assert names == [name for name, _, _ in operation.parameters] + list(
            operation.query.__struct_fields__ if operation.query else ()
        )
        assert all(
            parameter["description"] for parameter in found["parameters"] if parameter["name"] != "stream"
        )
        assert ("requestBody" in found) is (operation.body is not None)


def test_every_reference_leads_somewhere() -> None:
    described = document(DERIVED)
    text = json.dumps(described)
    references = {part.split('"')[0] for part in text.split('"$ref": "#/components/schemas/')[1:]}
    assert references <= set(described["components"]["schemas"])
    assert "SubscribeQuery" not in described["components"]["schemas"]

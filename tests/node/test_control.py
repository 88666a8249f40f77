"""Every endpoint over a real node, by a real socket; and hostile requests, in process."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from linnet.delivery.config import DeliveryConfig
from linnet.identity.text import Sort, to_text
from linnet.net.config import NetConfig
from linnet.node.config import ControlSection, NodeConfig, StorageSection, TrackerSection
from linnet.node.control import Control, serve_control
from linnet.node.library import Node
from linnet.streams.stream_names import topic_of

LIMIT = 30.0
STREAM = "weather"
TOPIC = to_text(Sort.TOPIC, topic_of(STREAM))
JSON = {"content-type": "application/json"}


class Served:
    """A node with its control API at a socket."""

    def __init__(self, node: Node, http: httpx.AsyncClient) -> None:
        self.node = node
        self.http = http
        self.stopped = asyncio.Event()

    async def post(self, path: str, **body: object) -> httpx.Response:
        return await self.http.post(path, json=body)

    async def until_unsubscribed(self) -> None:
        async with asyncio.timeout(LIMIT):
            while (await self.node.status()).streams[0].subscriptions:  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0.01)

    async def until_linked(self) -> None:
        async with asyncio.timeout(LIMIT):
            while not any(peer["up"] for peer in (await self.http.get("/v1/peers")).json()["peers"]):  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    config = NodeConfig(
        tracker=TrackerSection(enabled=True),
        storage=(StorageSection(STREAM),),
        control=ControlSection(max_request_bytes=1024 * 64, max_subscriptions=2),
        delivery=DeliveryConfig(history_timeout=0.2),
        net=NetConfig(linger=0.5),
    )
    path = tmp_path / "c.sock"
    transport = httpx.AsyncHTTPTransport(uds=str(path))
    async with (
        Node(config=config) as node,
        httpx.AsyncClient(transport=transport, base_url="http://node", timeout=LIMIT) as http,
    ):
        served = Served(node, http)
        async with serve_control(Control(node, served.stopped.set).app(), path):
            yield served
            node.end_subscriptions()


class Lines:
    """The lines of a subscription, one by one."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(LIMIT):
            found: dict[str, Any] = json.loads(await anext(self._lines))
            return found


def reason(response: httpx.Response) -> str:
    error = response.json()["error"]
    assert set(error) == {"reason", "detail", "hint"}
    return str(error["reason"])


async def test_status_tells_who_and_where(served: Served) -> None:
    status = (await served.http.get("/v1/status")).json()
    assert status["device"] == to_text(Sort.DEVICE, served.node.peer)
    assert status["person"] == to_text(Sort.PERSON, served.node.author)
    assert status["contact"] == served.node.address
    assert status["roles"] == ["tracker", "storage"]
    assert status["streams"][0]["stream"] == STREAM
    assert (status["hash_table"], status["content"]) == (None, None)
    assert (await served.http.get("/v1/peers")).json() == {"peers": []}


async def test_publish_and_subscribe(served: Served) -> None:
    async with served.http.stream("GET", "/v1/subscribe", params={"stream": STREAM}) as response:
        assert response.headers["content-type"] == "application/x-ndjson"
        lines = Lines(response)
        assert await lines.next() == {"type": "subscribed", "subscription": 1, "resumed": False}
        published = await served.post(
            "/v1/publish", stream=STREAM, bodies=[base64.b64encode(b"\xff\x00").decode()], texts=["grüße"]
        )
        outcome = published.json()
        assert published.status_code == 200
        assert (outcome["topic"], outcome["first"], len(outcome["ids"])) == (TOPIC, 0, 2)
        first, second = await lines.next(), await lines.next()
    assert (first["type"], first["id"], first["seq"], first["body"]) == (
        "event",
        outcome["ids"][0],
        0,
        "/wA=",
    )
    assert "text" not in first
    assert (second["text"], second["prev"]) == ("grüße", outcome["ids"][0])
    assert base64.b64decode(second["body"]).decode() == "grüße"


async def test_a_caller_that_goes_away_is_unsubscribed(served: Served) -> None:
    for _ in range(6):  # Three times as many as may be open at once.
        async with served.http.stream("GET", "/v1/subscribe", params={"stream": STREAM}) as response:
            assert (await Lines(response).next())["type"] == "subscribed"
        await served.until_unsubscribed()


async def test_only_so_many_subscriptions_at_once(served: Served) -> None:
    query = {"stream": STREAM}
    async with (
        served.http.stream("GET", "/v1/subscribe", params=query) as one,
        served.http.stream("GET", "/v1/subscribe", params=query) as two,
    ):
        await Lines(one).next()
        await Lines(two).next()
        third = await served.http.get("/v1/subscribe", params=query)
    assert (third.status_code, reason(third)) == (429, "too_many")


async def test_manual_acknowledgement(served: Served) -> None:
    query = {"stream": STREAM, "name": "worker", "ack": "manual"}
    async with served.http.stream("GET", "/v1/subscribe", params=query) as response:
        lines = Lines(response)
        number = (await lines.next())["subscription"]
        for text in ("a", "b"):
            await served.post("/v1/publish", stream=STREAM, texts=[text])
        assert [(await lines.next())["text"], (await lines.next())["text"]] == ["a", "b"]
        too_many = await served.post(f"/v1/subscriptions/{number}/consumed", items=3)
        assert (too_many.status_code, reason(too_many)) == (409, "too_many")
        done = await served.post(f"/v1/subscriptions/{number}/consumed", items=1)
        assert done.json() == {"done": True}
    await served.until_unsubscribed()
    gone = await served.post(f"/v1/subscriptions/{number}/consumed", items=1)
    assert (gone.status_code, reason(gone)) == (404, "not_found")
    async with served.http.stream("GET", "/v1/subscribe", params=query) as response:
        lines = Lines(response)
        assert (await lines.next())["resumed"] is True
        assert (await lines.next())["text"] == "b"


async def test_history_ends(served: Served) -> None:
    async with asyncio.timeout(LIMIT):
        lines = (await served.http.get("/v1/history", params={"stream": "unheard"})).text.splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["subscribed", "caught_up", "ended"]


async def test_the_graph_of_a_tracked_topic(served: Served) -> None:
    async with asyncio.timeout(LIMIT):
        while not (tracked := (await served.http.get("/v1/status")).json()["tracked"]):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    graph = (await served.http.get(f"/v1/trackers/{tracked[0]}")).json()
    assert (graph["topic"], graph["degree"]) == (tracked[0], 4)
    assert [node["device"] for node in graph["nodes"]] == [to_text(Sort.DEVICE, served.node.peer)]
    other = await served.http.get(f"/v1/trackers/{to_text(Sort.TOPIC, bytes(32))}")
    assert (other.status_code, reason(other)) == (404, "not_found")


async def test_links_and_blocks(served: Served) -> None:
    device = to_text(Sort.DEVICE, bytes(32))
    assert (await served.post("/v1/block", device=device)).json() == {"done": True}
    assert (await served.http.get("/v1/status")).json()["blocked"] == [device]
    assert (await served.post("/v1/block", device=device, blocked=False)).json() == {"done": True}
    async with Node() as other:
        assert (await served.post("/v1/connect", contact=other.address)).json() == {"done": True}
        await served.until_linked()


async def test_declaring_what_is_not_ours_is_declined(served: Served) -> None:
    stranger = await served.post("/v1/declare", stream=f"{to_text(Sort.PERSON, bytes(32))}/x", policy={})
    assert stranger.status_code in (400, 403, 409)
    person = to_text(Sort.PERSON, served.node.author)
    policy = {"publishers": [person], "degree": 6}
    ours = await served.post("/v1/declare", stream=f"{person}/x", policy=policy)
    assert ours.status_code == 200


async def test_doctor_tells_the_node_s_side(served: Served) -> None:
    checks = (await served.http.get("/v1/doctor")).json()["checks"]
    assert {check["name"]: check["ok"] for check in checks} == {
        "clock": True,
        "store": True,
        "listening": True,
        "reachable": True,
        "tracker": True,
        "streams": True,
    }


async def test_stop_is_passed_on(served: Served) -> None:
    assert (await served.http.post("/v1/stop")).status_code == 202
    assert served.stopped.is_set()


BAD_REQUESTS = [
    ("GET", "/", b"", 404, "not_found"),
    ("GET", "/v1/publish", b"", 405, "method_not_allowed"),
    ("POST", "/v1/publish", b"", 400, "bad_request"),
    ("POST", "/v1/publish", b"[1]", 400, "bad_request"),
    ("POST", "/v1/publish", b"\xff", 400, "bad_request"),
    ("POST", "/v1/publish", b"[" * 50_000, 400, "bad_request"),
    ("POST", "/v1/publish", b'{"stream": "s", "bodies": ["*"]}', 400, "bad_request"),
    ("POST", "/v1/publish", b'{"stream": "s"}', 400, "malformed"),
    ("POST", "/v1/publish", b'{"stream": "a\\nb", "texts": ["x"]}', 400, "malformed"),
    ("POST", "/v1/publish", b'{"stream": "s", "texts": ["x"], "confirm": -1}', 400, "bad_request"),
    ("POST", "/v1/publish", b'{"stream": "s", "texts": ["x"], "more": 1}', 400, "bad_request"),
    ("POST", "/v1/publish", b'{"x": "' + b"x" * 70_000 + b'"}', 413, "too_large"),
    ("GET", "/v1/subscribe", b"", 400, "bad_request"),
    ("GET", "/v1/subscribe?stream=", b"", 400, "bad_request"),
    ("GET", "/v1/subscribe?stream=s&stream=t", b"", 400, "bad_request"),
    ("GET", "/v1/subscribe?stream=s&since=nan", b"", 400, "bad_request"),
    ("GET", "/v1/subscribe?stream=s&since=-1", b"", 400, "bad_request"),
    ("GET", "/v1/subscribe?stream=s&ack=never", b"", 400, "bad_request"),
    ("GET", "/v1/subscribe?stream=s&ordered=2", b"", 400, "bad_request"),
    ("GET", "/v1/history?stream=s&x=1", b"", 400, "bad_request"),
    ("POST", "/v1/subscriptions/x/consumed", b'{"items": 1}', 400, "bad_request"),
    ("POST", "/v1/subscriptions/99/consumed", b'{"items": 1}', 404, "not_found"),
    ("POST", "/v1/subscriptions/99/consumed", b'{"items": 0}', 400, "bad_request"),
    ("POST", "/v1/block", b'{"device": "lp1"}', 400, "bad_request"),
    ("POST", "/v1/connect", b'{"contact": "nonsense"}', 400, "bad_request"),
    ("POST", "/v1/declare", b'{"stream": "s", "publishers": ["x"]}', 400, "bad_request"),
    ("GET", "/v1/trackers/x", b"", 400, "bad_request"),
]


async def test_a_bad_request_is_told_what_is_wrong(served: Served) -> None:
    found = []
    for method, path, content, _, _ in BAD_REQUESTS:
        response = await served.http.request(method, path, content=content, headers=JSON)
        found.append((method, path, content, response.status_code, reason(response)))
    assert found == BAD_REQUESTS


async def test_only_json_is_read(served: Served) -> None:
    response = await served.http.post("/v1/publish", content=b"{}", headers={"content-type": "text/plain"})
    assert (response.status_code, reason(response)) == (415, "not_json")

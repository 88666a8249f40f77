"""The endpoints of overlays without trackers; by their commands they are called in tests/cli, too."""

from __future__ import annotations

from tests.node.control_api import http_of

from linnet.identity.text import Sort, to_text
from linnet.net.config import NetConfig
from linnet.node.config import NodeConfig, NodeSection
from linnet.node.library import Node
from linnet.overlay.config import Overlay

NET = NetConfig(linger=0.5)
FRIEND = to_text(Sort.DEVICE, b"f" * 32)


async def test_a_node_on_the_ring() -> None:
    config = NodeConfig(node=NodeSection(overlay=Overlay.RING), net=NET)
    async with Node(config=config) as node, http_of(node) as http:
        await node.publish("tea", "early")
        overlay = (await http.get("/v1/overlay")).json()
        assert [ring["name"] for ring in overlay["rings"]] == ["tea"]
        trusted = {"devices": [{"device": FRIEND, "value": 0.5}]}
        assert (await http.post("/v1/trust", json={"device": FRIEND, "value": 0.5})).json() == trusted
        assert (await http.get("/v1/trust")).json() == trusted
        assert (await http.post("/v1/trust", json={"device": FRIEND})).json() == {"devices": []}
        gone = await http.post("/v1/trust", json={"device": FRIEND})
        assert (gone.status_code, gone.json()["error"]["reason"]) == (409, "unknown")
        assert (await http.post("/v1/trust", json={"device": "ld1"})).status_code == 400
        assert (await http.get("/v1/privacy")).json()["surest"] == 0.5
        refused = await http.post("/v1/overlay/switch", json={"stream": "tea", "overlay": "tracker"})
        assert (refused.status_code, refused.json()["error"]["reason"]) == (400, "unsupported")
        status = (await http.get("/v1/status")).json()
        assert (status["overlay"], status["streams"][0]["overlay"]) == ("ring", "ring")
        names = [check["name"] for check in (await http.get("/v1/doctor")).json()["checks"]]
        assert "ring" in names
        assert "trackers" not in names


async def test_a_node_that_follows_trackers(hub: Node) -> None:
    async with http_of(hub) as http:
        refused = await http.get("/v1/overlay")
        assert refused.status_code == 400
        assert "linnet up --overlay ring" in refused.json()["error"]["detail"]
        assert (await http.get("/v1/privacy")).status_code == 200
        assert "ring" not in [check["name"] for check in (await http.get("/v1/doctor")).json()["checks"]]

from __future__ import annotations

from tests.cli.identity.conftest import Lost
from tests.cli.identity.typed import Typed

from linnet.cli.identity.devices import revoked_text
from linnet.node.device_types import DeviceView


def view(revoked: bool, *rooms: str) -> DeviceView:
    return DeviceView("00" * 8, None, "", False, False, None, None, revoked, rooms)


def test_this_one_first_then_those_that_were_met(lost: Lost) -> None:
    lost.until(lambda: len(lost.laptop.json("id", "devices")["devices"]) == 2)
    found = lost.laptop.json("id", "devices")
    assert found["person"] == lost.phone.json("id", "devices")["person"]
    assert sorted(found["rooms"]) == sorted(lost.rooms.values())
    assert [(each["label"], each["this"]) for each in found["devices"]] == [
        ("laptop", True),
        ("phone", False),
    ]
    rows = [line.split() for line in lost.laptop.ok("id", "devices").splitlines()]
    assert any(
        row[0] == "laptop" and row[2:4] == ["this", "one"] and row[-1].startswith("ld1") for row in rows
    )
    assert [each["label"] for each in lost.bea.json("id", "devices")["devices"]] == ["bea"]


def test_no_node_no_list(shell: Typed) -> None:
    shell.ok("init")
    assert "linnet up" in shell.fails(69, "id", "devices")


def test_where_a_device_is_out_of_use() -> None:
    rooms = ("tea", "chess")
    assert revoked_text(view(False), rooms) == "no"
    assert revoked_text(view(True), ()) == "yes"
    assert revoked_text(view(True, "tea"), rooms) == "in 1 of 2 rooms"
    assert revoked_text(view(True, "tea", "left"), rooms) == "in 1 of 2 rooms"

from __future__ import annotations

from tests.cli.shell import Linnet


def test_an_address_is_as_good_as_a_key(running: Linnet, shell: Linnet) -> None:
    device = shell.json("init")["device"]
    assert running.json("block", f"{device}@192.0.2.7:1") == {"device": device, "blocked": True}
    assert running.ok("block", "--unblock", device) == f"unblocked {device}\n"


def test_a_wrong_key_is_told(running: Linnet, shell: Linnet) -> None:
    found = shell.json("init")
    assert "some are missing" in running.fails(2, "block", found["device"][:-4])
    assert "where a device id" in running.fails(2, "block", found["person"])

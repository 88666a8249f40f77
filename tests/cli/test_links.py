from __future__ import annotations

import socket

from tests.cli.shell import Linnet
from tests.cli.village import Tea


def test_links_are_shown_and_a_blocked_one_goes(running: Linnet, shell: Linnet) -> None:
    device = shell.json("init", "--tracker", running.address)["device"]
    with shell.up():
        assert "no links" in shell.ok("peers")
        shell.ok("publish", "kept", "from elsewhere")
        while not _is_up(running, device):
            pass
        assert device in running.ok("peers")
        (link,) = [each for each in running.json("peers")["peers"] if each["device"] == device]
        assert "kept" in " ".join(link["needed_for"]).split(), "the name of the stream, not its number"
        assert link["needed"] != link["needed_for"]
        assert f"blocked {device}" in running.ok("block", device)
        assert device in running.json("status")["blocked"]
        assert not _is_up(running, device)
        assert running.json("block", device, "--unblock") == {"device": device, "blocked": False}
        assert device not in running.json("status")["blocked"]


def _is_up(shell: Linnet, device: str) -> bool:
    return any(peer["up"] and peer["device"] == device for peer in shell.json("peers")["peers"])


def test_a_link_is_made_and_told(tea: Tea, running: Linnet) -> None:
    device = tea.ada.address.partition("@")[0]
    assert running.ok("connect", tea.ada.address) == f"linked  {device}\n"
    assert running.json("connect", tea.ada.address) == {"device": device, "up": True, "reason": None}
    (link,) = [each for each in running.json("peers")["peers"] if each["device"] == device]
    assert "asked" in link["needed"]


def test_no_answer_is_told_with_the_next_step(running: Linnet, shell: Linnet) -> None:
    device = shell.json("init")["device"]
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # Nobody listens there.
        address = f"{device}@127.0.0.1:{bound.getsockname()[1]}"
        said = running.fails(1, "connect", address, "--patience", "0.5")
    assert "connection_refused; the node goes on trying" in said
    assert f"next    linnet doctor {address}" in said
    found = running.run("connect", address, "--patience", "0", "--json")
    assert found.exit_code == 1
    assert '"up":false' in found.stdout


def test_what_is_wrong_with_an_address_is_told(running: Linnet, shell: Linnet) -> None:
    assert "@" in running.fails(2, "connect", "ld1nonsense")
    address = f"{shell.json('init')['device']}@127.0.0.1:0"
    assert "port 0" in running.fails(2, "connect", address)
    assert "start one with: linnet up" in shell.fails(69, "connect", running.address)


def test_a_link_to_itself_or_to_a_blocked_device_is_refused_at_once(running: Linnet, shell: Linnet) -> None:
    assert "device of this node itself" in running.fails(1, "connect", running.address)
    device = shell.json("init")["device"]
    running.ok("block", device)
    refused = running.fails(1, "connect", f"{device}@127.0.0.1:7700")
    assert "blocked here" in refused
    assert "linnet block --unblock" in refused
    running.ok("block", "--unblock", device)


def test_an_address_is_as_good_as_a_key(running: Linnet, shell: Linnet) -> None:
    device = shell.json("init")["device"]
    assert running.json("block", f"{device}@192.0.2.7:1") == {"device": device, "blocked": True}
    assert running.ok("block", "--unblock", device) == f"unblocked {device}\n"


def test_a_wrong_key_is_told(running: Linnet, shell: Linnet) -> None:
    found = shell.json("init")
    assert "some are missing" in running.fails(2, "block", found["device"][:-4])
    assert "where a device id" in running.fails(2, "block", found["person"])

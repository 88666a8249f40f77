from __future__ import annotations

import socket

from tests.cli.shell import Linnet
from tests.cli.village import Tea


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

from __future__ import annotations

import subprocess

from tests.cli.conftest import LINNET
from tests.cli.shell import Linnet


def test_links_are_shown_and_a_blocked_one_goes(running: Linnet, shell: Linnet) -> None:
    device = shell.json("init", "--tracker", running.address)["device"]
    command = [*LINNET, "up", "--home", str(shell.home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            assert "no links" in shell.ok("peers")
            shell.ok("publish", "kept", "from elsewhere")
            while not _is_up(running, device):
                assert process.poll() is None
            assert device in running.ok("peers")
            (link,) = [each for each in running.json("peers")["peers"] if each["device"] == device]
            assert "kept" in " ".join(link["needed_for"]).split(), "the name of the stream, not its number"
            assert link["needed"] != link["needed_for"]
            assert f"blocked {device}" in running.ok("block", device)
            assert device in running.json("status")["blocked"]
            assert not _is_up(running, device)
            assert running.json("block", device, "--unblock") == {"device": device, "blocked": False}
            assert device not in running.json("status")["blocked"]
        finally:
            process.terminate()


def _is_up(shell: Linnet, device: str) -> bool:
    return any(peer["up"] and peer["device"] == device for peer in shell.json("peers")["peers"])

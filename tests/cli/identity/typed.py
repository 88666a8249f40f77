"""``linnet id`` as it is typed, with its errors told."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import typer
from tests.cli.shell import Linnet
from tests.cli.village import LINNET, QUICK
from typer.testing import CliRunner, Result

from linnet.cli.app import told
from linnet.cli.identity import accept, ask, backup, devices, link, recover, renew, revoke

COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "backup": (backup.backup, backup.EPILOG),
    "recover": (recover.recover, recover.EPILOG),
    "ask": (ask.ask, ask.EPILOG),
    "link": (link.link, link.EPILOG),
    "accept": (accept.accept, accept.EPILOG),
    "renew": (renew.renew, renew.EPILOG),
    "devices": (devices.devices, devices.EPILOG),
    "revoke": (revoke.revoke, revoke.EPILOG),
}

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
for name, (command, epilog) in COMMANDS.items():
    group.command(name, epilog=epilog)(told(command))
app.add_typer(group, name="id")


class Typed(Linnet):
    """The command line with a home, and the commands of identities."""

    def run(self, *words: str, given: str | bytes | None = None) -> Result:
        """Type a command; a traceback fails the test."""
        if words[0] != "id":
            return super().run(*words, given=given)
        result = CliRunner().invoke(app, [*words, "--home", str(self.home)], input=given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result


@contextlib.contextmanager
def up(home: Path) -> Iterator[Typed]:
    """A node in a process, in a home that is there."""
    config = (home / "linnet.toml").read_text()
    config += "" if "[rooms]" in config else QUICK
    (home / "linnet.toml").write_text(config)
    command = [*LINNET, "up", "--home", str(home), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        shell = Typed(home)
        shell.address = json.loads(process.stdout.readline())["address"]
        try:
            yield shell
        finally:
            process.terminate()
            assert process.wait(20) == 0


if __name__ == "__main__":
    app()

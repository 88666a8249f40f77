"""``linnet doctor``: finds out why something does not work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode
from linnet.cli.moments import wall_clock
from linnet.cli.options import with_examples
from linnet.cli.output import say, say_json
from linnet.cli.running_node import Session

if TYPE_CHECKING:
    from linnet.api.node_commands import Check
    from linnet.core.ids import Contact

Address = Annotated[
    str | None, typer.Argument(metavar="KEY@HOST:PORT", help="A peer that should be reached from here.")
]
Store = Annotated[
    bool,
    typer.Option("--store", help="Read and check all that is stored; what is damaged is fetched again."),
]


@with_examples("linnet doctor", "linnet doctor ld1…@192.0.2.7:7700", "linnet doctor --store")
def doctor(address: Address = None, store: Store = False, *, session: Session) -> None:
    """Check keys, clock, store and ports, ask the running node, and try each step of a connection to a peer.

    Names the first check that fails and what to do about it; exits 1 if anything is wrong.
    """
    from linnet.identity.addresses import parse_contact

    contact = None if address is None else parse_contact(address)
    checks = []
    for check in (
        _store_checks(session.home, session.as_json) if store else _all_checks(contact, session.home)
    ):
        checks.append(check)
        if not session.as_json:
            _tell(check)
    wrong = [check for check in checks if not check.ok]
    if session.as_json:
        say_json({"ok": not wrong, "first": wrong[0].name if wrong else None, "checks": checks})
    elif wrong:
        say(f"\nfirst that fails: {wrong[0].name}; {wrong[0].advice or wrong[0].detail}")
    else:
        say("\nall is well")
    if wrong:
        raise typer.Exit(ExitCode.FAILED)


def _store_checks(home: Path | None, quiet: bool) -> Iterator[Check]:
    from linnet.cli.output import progress_bar
    from linnet.node.doctor import store_checks

    with progress_bar(quiet) as show:

        def tell(done: int, total: int) -> None:
            show(done / max(1, total), f"reading the store: {done:,}/{total:,}")

        found = list(store_checks(home, tell))
    yield from found


def _all_checks(contact: Contact | None, home: Path | None) -> Iterator[Check]:
    from linnet.node.doctor import home_checks

    yield from home_checks(home, wall_clock())
    yield from _node_checks(home)
    if contact is not None:
        yield from _connection_checks(contact)


def _node_checks(home: Path | None) -> Iterator[Check]:
    from linnet.api.errors import NodeUnreachable
    from linnet.api.node_commands import Check, ReportHealth
    from linnet.core.errors import LinnetError
    from linnet.node.client import ControlClient

    try:
        with ControlClient(home) as node:
            yield from node.ask(ReportHealth()).checks
    except NodeUnreachable:
        yield Check("node", True, "does not run at the moment; linnet up starts it")
    except LinnetError as error:
        yield Check("node", False, str(error), "look at what the node itself prints")


def _connection_checks(contact: Contact) -> list[Check]:
    import asyncio

    from linnet.net.config import NetConfig
    from linnet.node.doctor import connection_checks

    async def walked() -> list[Check]:
        return [check async for check in connection_checks(contact, NetConfig())]

    return asyncio.run(walked())


def _tell(check: Check) -> None:
    say(f"{'ok  ' if check.ok else 'FAIL'}  {check.name}: {check.detail}")
    if not check.ok and check.advice:
        say(f"      {check.advice}")

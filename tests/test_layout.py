"""The shape of the project, as far as a test can see it."""

from __future__ import annotations

import ast
import re
import statistics
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "linnet"
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))

TESTED_ELSEWHERE = {
    "content/application.py": "everything that an application asks: tests/content/test_scout.py",
    "content/branches.py": "values: tests/content/test_scout.py, tests/content/test_backups.py",
    "content/commands.py": "values without behaviour",
    "cli/content/commands.py": "each is typed: tests/cli/content and tests/cli/test_app.py",
    "node/answers.py": "under every call: tests/node/test_library.py and test_content.py",
    "node/content_calls.py": "each by its command: tests/node/test_content_control.py",
    "node/content_items.py": "what subscriptions hand over: tests/node/test_content.py",
    "node/content_operations.py": "served and called: tests/node/test_content_control.py",
    "node/content_types.py": "values without behaviour, spoken in tests/node/test_content_control.py",
    "node/content_views.py": "ids as text: tests/node/test_content_control.py",
    "node/reader.py": "both sorts of it: tests/node/test_subscription.py and test_place_items.py",
    "content/config.py": "values without behaviour",
    "content/fast/commands.py": "values without behaviour",
    "content/fast/config.py": "values without behaviour",
    "content/fast/effects.py": "names of unions; mypy closes them",
    "content/fast/messages.py": "every message of every protocol: tests/peer/test_messages.py",
    "content/fast/publisher.py": "every group: tests/content/fast/test_delivery.py",
    "content/fast/subscriptions.py": "every subscription: tests/content/fast/test_memberships.py",
    "content/fast/tasks.py": "values without behaviour",
    "sim/content_groups.py": "the world of tests/content/fast/test_delivery.py",
    "content/directory.py": "a protocol, and values: tests/content/test_elections.py",
    "content/effects.py": "names of unions; mypy closes them",
    "content/keeping.py": "each message: tests/content/test_backups.py, tests/content/test_trackers.py",
    "content/messages.py": "every message of every protocol: tests/peer/test_messages.py",
    "content/notices.py": "everything that comes down: tests/content/test_scout.py",
    "content/walks.py": "every event that goes up: tests/content/test_scout.py",
    "places/commands.py": "values without behaviour",
    "places/config.py": "values without behaviour",
    "places/effects.py": "names of unions; mypy closes them",
    "places/items.py": "values without behaviour",
    "places/messages.py": "every message of every protocol: tests/peer/test_messages.py",
    "places/parts.py": "under everything that a place does: tests/places/test_place.py",
    "places/speaking.py": "everything that a host says: tests/places/test_place.py",
    "places/dispatch.py": "every message: tests/places/test_place.py and those beside it",
    "places/voicing.py": "what is said, and when: tests/places/test_turns.py and test_resaying.py",
    "places/taking.py": "everything that comes: tests/places/test_place.py",
    "places/door.py": "who comes in, waits or is turned away: tests/places/test_place.py",
    "places/visiting.py": "from outside: tests/places/test_place.py",
    "places/catching_up.py": "what was lost on the way: tests/places/test_place.py",
    "places/places.py": "every command: tests/places/test_place.py",
    "sim/judges/verdict.py": "values without behaviour",
    "sim/nemesis/open_world.py": "the world of tests/sim/nemesis/test_course.py",
    "sim/nemesis/streams.py": "each way: tests/sim/nemesis/test_course.py",
    "sim/nemesis/rooms.py": "each way: tests/sim/nemesis/test_course.py",
    "sim/nemesis/places.py": "each way: tests/sim/nemesis/test_course.py",
    "sim/nemesis/content.py": "each way: tests/sim/nemesis/test_course.py",
    "sim/places_world.py": "the world of tests/places/test_place.py",
    "peer/outgoing.py": "the way out of every node: tests/peer/test_peer.py",
    "peer/neighborhood.py": "what overlays and networks tell: tests/peer/test_peer.py, tests/edge",
    "node/status_types.py": "values without behaviour, spoken in tests/node/test_control.py",
    "peer/status.py": "linnet status, of a whole node: tests/peer/test_peer.py",
    "peer/parts.py": "the making of every node: tests/peer/test_peer.py",
    "core/inputs.py": "values without behaviour: tests/core/test_vocabulary.py",
    "core/effects.py": "values without behaviour: tests/core/test_vocabulary.py",
    "core/luck.py": "names of types",
    "overlay/messages.py": "every message of every protocol: tests/peer/test_messages.py",
    "overlay/notices.py": "values without behaviour",
    "overlay/config.py": "values without behaviour",
    "overlay/effects.py": "names of unions; mypy closes them",
    "overlay/follower.py": "a protocol: tests/overlay/test_member_counter.py and test_member_naive.py",
    "edge/commands.py": "values without behaviour",
    "edge/config.py": "values without behaviour",
    "edge/effects.py": "names of unions; mypy closes them",
    "edge/messages.py": "every message of every protocol: tests/peer/test_messages.py",
    "edge/notices.py": "values without behaviour",
    "edge/proxy_commands.py": "values without behaviour",
    "edge/proxy_config.py": "values without behaviour",
    "node/edge_calls.py": "each by its command: tests/node/test_edge_control.py",
    "node/edge_operations.py": "served and called: tests/node/test_edge_control.py",
    "node/edge_types.py": "values without behaviour, spoken in tests/node/test_edge_control.py",
    "node/name_calls.py": "each by its command: tests/cli/name/test_resolve.py and its neighbours",
    "node/name_operations.py": "served and called: tests/node/test_operations.py",
    "node/name_types.py": "values, spoken and not shown in tests/node/test_name_control.py",
    "node/name_views.py": "ids as text: tests/node/test_name_control.py and tests/cli/name/test_resolve.py",
    "node/lan_calls.py": "each by its command: tests/cli/lan/test_switching.py",
    "node/lan_operations.py": "served and called: tests/node/test_lan_control.py",
    "node/lan_types.py": "values without behaviour, spoken in tests/node/test_lan_control.py",
    "overlay/kademlia/config.py": "values without behaviour",
    "overlay/kademlia/outcomes.py": "values without behaviour",
    "overlay/trackerless/commands.py": "values: tests/overlay/trackerless/test_asking.py",
    "overlay/trackerless/config.py": "values without behaviour",
    "overlay/trackerless/messages.py": "every message of every protocol: tests/peer/test_messages.py",
    "overlay/trackerless/status.py": "values without behaviour",
    "delivery/messages.py": "every message of every protocol: tests/peer/test_messages.py",
    "delivery/causal_messages.py": "every message of every protocol: tests/peer/test_messages.py",
    "delivery/config.py": "values without behaviour",
    "delivery/items.py": "values without behaviour, handed over in tests/delivery/test_subscription.py",
    "store/base.py": "a protocol: tests/store/test_contract.py asks it of every engine",
    "store/memory.py": "an engine: tests/store/test_contract.py",
    "store/sqlite_cells.py": "half of an engine: tests/store/test_contract.py and test_sqlite.py",
    "store/sqlite_log.py": "half of an engine: tests/store/test_contract.py and test_sqlite.py",
    "trace/arrow.py": "every writer against the schema: tests/trace/test_schema.py",
    "trace/records.py": "rows against the schema: tests/trace/test_schema.py",
    "trace/sink.py": "a protocol, and a sink that does nothing",
    "delivery/commands.py": "values without behaviour",
    "groups/ids.py": "names of types",
    "groups/notes.py": "values without behaviour, told in tests/groups/test_receiving.py",
    "groups/reading.py": "under every decoder: tests/groups/test_bodies.py and test_welcoming.py",
    "rooms/access/verdict.py": "values without behaviour",
    "rooms/secrecy/outgoing.py": "every sealed message: tests/rooms/secrecy/test_encrypted_rooms.py",
    "rooms/arrival.py": "values, and the first check of each unit: tests/rooms/test_intake.py",
    "rooms/catching_up.py": "what is gone, and who is heard: tests/rooms/test_room.py",
    "rooms/entering.py": "joins of real machines: tests/rooms/test_desk.py and test_rooms.py",
    "rooms/commands.py": "values without behaviour",
    "rooms/results.py": "values without behaviour",
    "rooms/config.py": "values without behaviour",
    "rooms/effects.py": "names of unions; mypy closes them",
    "rooms/parts.py": "a room put together and read back: tests/rooms/test_room.py and test_intake.py",
    "rooms/places.py": "heights, what is early, what is in the log: tests/rooms/test_intake.py",
    "rooms/relay_notices.py": "values without behaviour",
    "rooms/secrecy/secrecy.py": "through machines: tests/rooms/secrecy/test_encrypted_rooms.py",
    "rooms/messages.py": "every message of every protocol: tests/peer/test_messages.py",
    "node/peer_settings.py": "every setting reaches the machine: tests/node/test_config.py",
    "node/caller.py": "the way of every call: tests/node/test_client.py",
    "node/endpoints.py": "under every endpoint: tests/node/test_control.py",
    "node/operation.py": "values without behaviour",
    "node/place_calls.py": "each by its command: tests/cli/place/test_announce.py and its neighbours",
    "node/place_operations.py": "served and called: tests/node/test_place_control.py",
    "node/place_types.py": "values without behaviour, spoken in tests/node/test_place_control.py",
    "node/room_calls.py": "each by its command: tests/cli/room/test_send.py and its neighbours",
    "node/room_operations.py": "served and called: tests/node/test_operations.py",
    "sim/overheard.py": "values without behaviour, made in tests/sim/test_groups.py",
    "streams/commands.py": "values without behaviour",
    "streams/effects.py": "names of unions; mypy closes them",
    "streams/messages.py": "every message of every protocol: tests/peer/test_messages.py",
    "streams/options.py": "values without behaviour, obeyed in tests/streams/test_storage.py",
    "node/web_server.py": "serves both: tests/node/test_control_server.py and test_relay_http_server.py",
    "peer/interface.py": "values without behaviour; mypy closes the unions",
    "peer/config.py": "values without behaviour",
    "node/relay_http_types.py": "spoken in tests/node/test_relay_http.py, described in test_relay_openapi.py",
    "node/relay_operations.py": "routed in tests/node/test_relay_http.py, described in test_relay_openapi.py",
    "lab/errors.py": "values without behaviour",
    "lab/report/parts.py": "values without behaviour, written in tests/lab/report/test_writing.py",
    "lab/sources/choices.py": "values without behaviour",
    "lab/sources/rows.py": "values of every parser: tests/lab/sources/test_messages.py and its neighbours",
    "lab/spark/progress.py": "bars in a terminal: tests/cli/lab/test_options.py",
    "lab/studies/relays/drawings.py": "drawn in tests/lab/studies/relays/test_report.py",
    "lab/studies/relays/parameters.py": "values without behaviour",
    "cli/options.py": "the help of every command: tests/cli/test_app.py",
    "cli/play/nodes.py": "real nodes: tests/cli/play/test_command.py",
    "cli/play/live.py": "plays on real nodes: tests/cli/play/test_command.py",
    "cli/room/membership.py": "by its commands: tests/cli/room/test_ban.py, test_kick.py and test_unban.py",
    "cli/name/group.py": "the help of every command: tests/cli/test_app.py",
    "cli/name/options.py": "the help of every command: tests/cli/test_app.py",
    "cli/place/commands.py": "each is typed: tests/cli/place and tests/cli/test_app.py",
    "cli/place/options.py": "by the commands: tests/cli/place/test_announce.py",
    "cli/room/options.py": "the help of every command: tests/cli/test_app.py",
    "cli/demo/messages.py": "values without behaviour",
    "cli/demo/member.py": "runs as a process of the demo: tests/cli/demo/test_command.py",
    "cli/demo/network.py": "runs in the demo: tests/cli/demo/test_command.py",
    "cli/demo/story.py": "runs in the demo: tests/cli/demo/test_command.py",
}
"""Modules without a test file of their own, each with the reason."""

EXAMPLES = 6
FORBIDDEN_WORDS = {"utils", "util", "common", "helpers", "helper", "misc", "manager", "handler"}
PURE = {
    "core",
    "identity",
    "wire",
    "event",
    "groups",
    "overlay",
    "delivery",
    "edge",
    "streams",
    "rooms",
    "places",
    "content",
    "names",
    "peer",
}
WORLD = {
    "asyncio",
    "io",
    "logging",
    "os",
    "pathlib",
    "secrets",
    "select",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "ssl",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
}
"""What touches files, sockets, clocks, threads or ambient luck."""


def lines_of(module: Path) -> int:
    return len((SOURCE / module).read_text().splitlines())


def syntax_of(module: Path) -> ast.Module:
    return ast.parse((SOURCE / module).read_text())


def test_every_module_has_its_test_file() -> None:
    missing = [
        module.as_posix()
        for module in MODULES
        if module.name not in ("__init__.py", "__main__.py")
        and module.parts[0] != "testing"  # what tests use is tested by its use
        and module.as_posix() not in TESTED_ELSEWHERE
        and not (ROOT / "tests" / module.parent / f"test_{module.name}").exists()
    ]
    assert missing == []


def test_every_exception_is_still_one() -> None:
    """A module that went, or that has a test file by now, leaves the list; a reason names files that are."""
    for name, reason in TESTED_ELSEWHERE.items():
        module = Path(name)
        assert (SOURCE / module).exists(), name
        assert not (ROOT / "tests" / module.parent / f"test_{module.name}").exists(), name
        folder = ROOT
        for file in re.findall(r"[\w/]+\.py", reason):
            folder = (ROOT / file).parent if "/" in file else folder
            assert (folder / Path(file).name).exists(), f"{name}: {file}"


def test_modules_are_small() -> None:
    sizes = {module.as_posix(): lines_of(module) for module in MODULES if module.name != "__init__.py"}
    assert statistics.median(sizes.values()) < 250
    assert {name: size for name, size in sizes.items() if size > 500} == {}


def test_functions_are_small() -> None:
    """Docstrings are not counted."""
    long = {
        f"{module.as_posix()}:{node.name}": length
        for module in MODULES
        for node in ast.walk(syntax_of(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (length := body_lines(node)) > 60
    }
    assert long == {}


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("module", MODULES, ids=Path.as_posix)
def test_names_say_what_a_thing_is(module: Path) -> None:
    names = [*module.parts[:-1], module.stem]
    names += [node.name for node in ast.walk(syntax_of(module)) if isinstance(node, ast.ClassDef)]
    for name in names:
        words = re.findall(r"[A-Z]?[a-z0-9]+", name)
        assert not FORBIDDEN_WORDS & {word.lower() for word in words}, name


@pytest.mark.parametrize(
    "module", [module for module in MODULES if module.parts[0] in PURE], ids=Path.as_posix
)
def test_machines_do_not_touch_the_world(module: Path) -> None:
    imported: dict[str, int] = {}
    for node in ast.walk(syntax_of(module)):
        if isinstance(node, ast.Import):
            imported |= {alias.name: node.lineno for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            imported[node.module or ""] = node.lineno
    touching = {name: line for name, line in imported.items() if name.split(".")[0] in WORLD}
    assert touching == {}
    assert not any(name.startswith(("linnet.store", "linnet.testing")) for name in imported)


def test_the_lock_names_no_host_and_hashes_everything() -> None:
    lock = (ROOT / "requirements" / "lock.txt").read_text()
    assert "://" not in lock
    assert "--index" not in lock
    assert "--extra-index" not in lock
    assert "--find-links" not in lock
    requirements = lock.replace("\\\n", " ").splitlines()
    assert len(requirements) > 20
    for line in requirements:
        assert re.match(r"[a-z0-9-]+(\[[a-z,]+\])?==\S+", line), line
        assert "--hash=sha256:" in line, line


def test_the_lock_names_everything_that_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    asked += project["project"]["optional-dependencies"]["sim"] + project["dependency-groups"]["dev"]
    locked = re.findall(r"^([a-z0-9-]+)", (ROOT / "requirements" / "lock.txt").read_text(), re.MULTILINE)
    names = {re.split(r"[<>=!~;\[ ]", one)[0].lower() for one in asked}
    assert names - set(locked) == set()


def test_what_is_checked_includes_the_examples() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert {"src", "tests", "examples", "bench", "scripts"} <= set(project["tool"]["mypy"]["files"])
    assert project["tool"]["mypy"]["strict"] is True
    assert len(list((ROOT / "examples").glob("*.py"))) >= EXAMPLES


def test_types_are_shipped() -> None:
    assert (SOURCE / "py.typed").exists()


def test_every_package_has_a_page_and_every_link_leads_somewhere() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    pages = {path.stem for path in (ROOT / "docs" / "design").glob("*.md")}
    assert packages - pages - {"testing"} == set()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"


def test_decisions_are_numbered_and_listed() -> None:
    decisions = sorted(path.name for path in (ROOT / "docs" / "adr").glob("*.md"))
    assert [int(name[:4]) for name in decisions] == list(range(1, len(decisions) + 1))
    index = (ROOT / "docs" / "README.md").read_text()
    assert [name for name in decisions if f"adr/{name}" not in index] == []

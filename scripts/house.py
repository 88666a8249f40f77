"""Measure the house: how large the packages are, and how many files one message passes.

    python scripts/house.py                 # a table
    python scripts/house.py --json          # the same for programs
    python scripts/house.py --walks         # also name the files that each message passes
    python scripts/house.py --write         # put the walks into docs/architecture.md
    python scripts/house.py --list          # name what each bar counts

Lines and modules leave out the lab, which has a plan of its own. A walk counts the files of `linnet` in
which a function is called from the moment a message is published until its reader has it, in real nodes of
one process: two members and whoever carries the message between them. Only public names are used, so that
the script also runs on earlier versions. The walk of a study is what its modules import.
"""

from __future__ import annotations

import ast
import asyncio
import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any

import linnet
from linnet import Node, NodeConfig, NodeSection, RelayPolicy, RelaySection, Room, TrackerSection

SOURCE = Path(linnet.__file__).parent
MACHINES = ("peer", "streams", "rooms", "places", "content", "edge", "names", "delivery", "overlay", "groups")
SECONDS = 30.0
"""After this long a walk has failed."""
STUDY = "linnet.lab.studies.streams.study"
MAP = Path(__file__).parents[1] / "docs" / "architecture.md"
BEGIN, END = "<!-- walks: python scripts/house.py --write -->", "<!-- end of walks -->"
TITLES = {
    "stream": "A stream message, from publisher to subscriber",
    "room": "A message of an encrypted room, to a member and by a relay, and its receipts",
    "content": "A content event, from publisher by a rendezvous to a subscriber",
    "study": "The streams study, by what it imports",
}


def modules() -> Iterator[tuple[str, ast.Module, str]]:
    """Name, tree and text of every module outside of the lab."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if "lab" not in parts:
            text = path.read_text()
            yield ".".join(("linnet", *parts)).removesuffix(".__init__"), ast.parse(text), text


def parameters_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many arguments a caller may give, without `self` and `cls`."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return len([each for each in given if each.arg not in ("self", "cls")])


def attributes_of(kind: ast.ClassDef) -> int:
    """How many attributes of its own a class sets on `self`."""
    found = {
        node.attr
        for node in ast.walk(kind)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    return len(found)


def imports_of(name: str, tree: ast.Module, known: set[str]) -> set[str]:
    """The modules of ours that a module imports, wherever the import stands."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                whole = f"{node.module}.{each.name}"
                found.add(whole if whole in known else node.module)
    return {each for each in found if each in known and each != name}


def count_cycles(imports: dict[str, set[str]]) -> int:
    """How many groups of modules import each other in a circle."""
    order = TopologicalSorter(imports)
    found = 0
    while True:
        try:
            order.prepare()
        except CycleError as error:
            found += 1
            circle = error.args[1]
            imports[circle[1]].discard(circle[0])
            order = TopologicalSorter(imports)
        else:
            return found


def measure_source() -> dict[str, int]:
    """Sizes and shapes of the source."""
    trees = list(modules())
    known = {name for name, _, _ in trees}
    imports = {name: imports_of(name, tree, known) for name, tree, _ in trees}
    importers = Counter(each for imported in imports.values() for each in imported)
    nodes = [node for _, tree, _ in trees for node in ast.walk(tree)]
    machines = [
        (tree, text) for name, tree, text in trees if name.split(".")[1:2] and name.split(".")[1] in MACHINES
    ]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    names = [node for tree, _ in machines for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return {
        "lines": sum(text.count("\n") for _, _, text in trees),
        "modules": len(trees),
        "modules with one importer": sum(count == 1 for count in importers.values()),
        "functions with more than 5 parameters": sum(parameters_of(each) > 5 for each in functions),
        "classes with more than 10 attributes": sum(attributes_of(each) > 10 for each in classes),
        "type: ignore in machines": sum(text.count("type: ignore") for _, text in machines),
        "Any in machines": sum(each.id == "Any" for each in names),
        "circles of imports": count_cycles(imports),
    }


class FilesPassed:
    """The files of ours in which a function is called while this is open, in every thread."""

    def __init__(self) -> None:
        self._codes: set[str] = set()

    def _see(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            self._codes.add(frame.f_code.co_filename)

    def __enter__(self) -> FilesPassed:
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    @property
    def files(self) -> list[str]:
        """Their paths below the package."""
        inside = (Path(code) for code in self._codes if code.startswith(str(SOURCE)))
        return sorted(str(path.relative_to(SOURCE)) for path in inside)


async def walk_stream() -> list[str]:
    """One message of a stream, from a publisher to a subscriber, with a tracker between them."""
    async with Node(config=NodeConfig(tracker=TrackerSection(enabled=True))) as tracker:
        config = NodeConfig(node=NodeSection(trackers=(tracker.address,)))
        async with (
            Node(config=config) as one,
            Node(config=config) as two,
            two.subscribe("weather", since=0) as reader,
        ):
            items = aiter(reader)
            await one.publish("weather", "warm up", confirm=5.0)
            await anext(items)
            with FilesPassed() as passed:
                await one.publish("weather", "rain")
                await anext(items)
    return passed.files


async def walk_room() -> list[str]:
    """One message of an encrypted room: to a member, to a relay that keeps it, and the receipts back."""
    relay_config = NodeConfig(relay=RelaySection(enabled=True, policy=RelayPolicy.OPEN, fetch_timeout=0.2))
    async with Node(config=relay_config) as relay, Node() as one, Node() as two:
        room = await one.create_room("tea")
        await room.add_relay(relay.address)
        theirs = await two.join_room((await room.invite()).text)
        while not all(member.key_devices for member in await room.members() if not member.relay):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        items = aiter(theirs.read(since=0, state=False))
        await room.send("warm up")
        await anext(items)
        await wait_for_receipt(room)
        with FilesPassed() as passed:
            await room.send("hello")
            await anext(items)
            await wait_for_receipt(room)
    return passed.files


async def wait_for_receipt(room: Room) -> None:
    """Wait until the newest message has arrived at the other member, as the ledger tells it."""
    while (await room.ledger(limit=1)).events[0].members[0].fate != "delivered":  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def walk_content() -> list[str]:
    """One content event from a publisher by its rendezvous to a subscriber."""
    from linnet.node.config import ContentSection, KademliaSection

    def config(*bootstrap: str) -> NodeConfig:
        return NodeConfig(
            kademlia=KademliaSection(enabled=True, bootstrap=bootstrap), content=ContentSection(enabled=True)
        )

    async with (
        Node(config=config()) as one,
        Node(config=config(one.address)) as two,
        two.content.subscribe("price[10,20]/stock") as matches,
    ):
        await two.content.settled()
        await one.content.publish("stock/price=11", "warm up")
        items = aiter(matches)
        await anext(items)
        with FilesPassed() as passed:
            await one.content.publish("stock/price=12.5", "cheap")
            await anext(items)
    return passed.files


WALKS: dict[str, Callable[[], Coroutine[Any, Any, list[str]]]] = {
    "stream": walk_stream,
    "room": walk_room,
    "content": walk_content,
}


def walk_study() -> list[str]:
    """The streams study: modules of the lab that it needs, and those of other packages that they import."""
    known = {name: path for name, path in named_modules() if not name.startswith("linnet.cli.")}
    passed: dict[str, None] = {}
    waiting = ["linnet.cli.lab.studies", STUDY]
    while waiting:
        name = waiting.pop()
        path = SOURCE.parent / Path(*name.split(".")).with_suffix(".py")
        path = path if path.exists() else path.with_suffix("") / "__init__.py"
        if str(path.relative_to(SOURCE)) in passed:
            continue
        passed[str(path.relative_to(SOURCE))] = None
        if ".lab." in name:
            waiting += imports_of(name, ast.parse(path.read_text()), set(known))
    return sorted(each for each in passed if not each.endswith("__init__.py"))


def named_modules() -> Iterator[tuple[str, Path]]:
    """Name and path of every module."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(("linnet", *parts)).removesuffix(".__init__"), path


def write_walks(walks: dict[str, list[str]]) -> None:
    """Put the walks into the map, package by package."""
    lines = [BEGIN]
    for name, files in walks.items():
        packages: dict[str, list[str]] = {}
        for file in files:
            package, _, module = file.removesuffix(".py").partition("/")
            packages.setdefault(package, []).append(module)
        lines += ["", f"**{TITLES[name]}**: {len(files)} files.", ""]
        lines += [
            f"- {package}: {', '.join(f'`{each}`' for each in packages[package])}" for package in packages
        ]
    page = MAP.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    MAP.write_text(before + "\n".join((*lines, "", END)) + after)


def list_counted() -> None:
    """Name what each bar counts."""
    trees = list(modules())
    known = {name for name, _, _ in trees}
    imports = {name: imports_of(name, tree, known) for name, tree, _ in trees}
    importers = Counter(each for imported in imports.values() for each in imported)
    for name, tree, _ in trees:
        if importers[name] == 1:
            print(f"one importer: {name} <- {next(each for each in imports if name in imports[each])}")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameters_of(node) > 5:
                print(f"parameters: {name}:{node.lineno} {node.name} {parameters_of(node)}")
            if isinstance(node, ast.ClassDef) and attributes_of(node) > 10:
                print(f"attributes: {name} {node.name} {attributes_of(node)}")


def main() -> None:
    """See the page above."""
    if "--list" in sys.argv:
        list_counted()
        return
    figures: dict[str, int] = measure_source()
    passed = {}
    for name, walk in WALKS.items():
        passed[name] = asyncio.run(asyncio.wait_for(walk(), SECONDS))
        figures[f"files passed by a {name} message"] = len(passed[name])
    if "--write" in sys.argv:
        write_walks({**passed, "study": walk_study()})
    if "--json" in sys.argv:
        print(json.dumps({**figures, "walks": passed}))
        return
    for name, figure in figures.items():
        print(f"{figure:>8,}  {name}")
    if "--walks" in sys.argv:
        for name, files in passed.items():
            print(f"\n{name}: {' '.join(files)}")


if __name__ == "__main__":
    main()

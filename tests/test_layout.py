"""The shape of the project, as far as a test can see it."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "linnet"
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))

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
    "machine",
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


def test_every_package_is_tested() -> None:
    packages = {module.parent for module in MODULES if module.name != "__init__.py"} - {Path()}
    untested = [
        package.as_posix()
        for package in packages
        if package.parts[0] not in ("testing", "cli", "lab")  # these by what they do, not by their folders
        and not any((ROOT / "tests" / package).glob("test_*.py"))
        and not any((ROOT / "tests" / package).glob("*/test_*.py"))
    ]
    assert sorted(untested) == []


def test_no_module_holds_too_much() -> None:
    assert {module.as_posix(): lines for module in MODULES if (lines := lines_of(module)) > 800} == {}


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


def test_groups_tell_what_is_in_the_clear_what_is_not_proven_and_where_they_differ() -> None:
    page = (ROOT / "docs" / "design" / "groups.md").read_text()
    decision = (ROOT / "docs" / "adr" / "0014-encrypted-groups.md").read_text()
    for text, heading in (
        (page, "What is in the clear"),
        (page, "What is not proven"),
        (decision, "Decision"),
        (decision, "Threat model"),
    ):
        _, _, rest = text.partition(f"\n## {heading}\n")
        assert len(rest.partition("\n## ")[0]) > 100, heading
    assert "adr/0014-encrypted-groups.md" in page


def test_decisions_are_numbered_and_listed() -> None:
    decisions = sorted(path.name for path in (ROOT / "docs" / "adr").glob("*.md"))
    assert [int(name[:4]) for name in decisions] == list(range(1, len(decisions) + 1))
    index = (ROOT / "docs" / "README.md").read_text()
    assert [name for name in decisions if f"adr/{name}" not in index] == []

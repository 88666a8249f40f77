"""Runs tests against mutants: in forks of one process that has imported the tests, or in a new process.

The working tree is never touched; a copy of src/ is. A fork swaps the code of the changed function in its
own memory. The changed file lies in the copy as well, for what is imported later and for processes that
tests start.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import gc
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, reduce
from importlib.machinery import SourceFileLoader
from operator import or_
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from scripts.mutation import Mutant, find_mutants

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
FAILED, CRASHED, UNFIT = 1, 2, 3
"""Exit statuses of a fork: an assertion failed, something else was raised, the code could not be swapped."""


@dataclass
class Recorded:
    """What one test function did without a mutant."""

    outcome: str
    seconds: float
    test_digest: str
    lines: dict[str, tuple[str, str]] = field(default_factory=dict)
    """For each file that was entered its digest, and its lines as bits of a number in hexadecimal."""

    def covers(self, file: str, line: int) -> bool:
        """Say whether the test ran a line."""
        return file in self.lines and bool(int(self.lines[file][1], 16) >> line & 1)


class Tree:
    """The temporary copy of src/, and the functions that were imported from it."""

    def __init__(self, src: Path, folder: Path) -> None:
        self.copy = folder / "src"
        shutil.copytree(src, self.copy, ignore=shutil.ignore_patterns("__pycache__"))
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = {}
        self._written = 0
        self.read = cache(lambda file: (self.copy / file).read_bytes())
        self.digest = cache(lambda file: _digest(self.read(file)) if (self.copy / file).exists() else "")
        self.mutants = cache(lambda file: find_mutants(file, self.read(file)))

    def find_imported(self) -> None:
        """Find the functions that this process has imported from the copy."""
        gc.unfreeze()  # what is frozen is not listed
        head = f"{self.copy}/"
        for each in gc.get_objects():
            if type(each) is FunctionType and (code := each.__code__).co_filename.startswith(head):
                key = (code.co_filename.removeprefix(head), code.co_qualname, code.co_firstlineno)
                self._functions.setdefault(key, []).append(each)
        gc.freeze()

    @contextlib.contextmanager
    def changed(self, mutant: Mutant | None) -> Iterator[None]:
        """Write a mutant into the copy, and take it back afterwards."""
        if mutant is None:
            yield
            return
        path, source = self.copy / mutant.file, self.read(mutant.file)
        before = path.stat().st_mtime_ns
        path.write_bytes(mutant.apply(source))
        self._written += 1  # Python tells compiled files apart by time, so no two mutants have the same
        os.utime(path, ns=(before, 10**18 + self._written * 10**10))
        try:
            yield
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(before, before))

    def swap_code(self, mutant: Mutant) -> None:
        """Give the functions of this process the mutant's code. ValueError: it has other free variables."""
        path = str(self.copy / mutant.file)
        codes = [compile(mutant.apply(self.read(mutant.file)), path, "exec", dont_inherit=True)]
        for code in codes:
            codes += (each for each in code.co_consts if isinstance(each, CodeType))
            if (code.co_qualname, code.co_firstlineno) == mutant.function:
                for function in self._functions.get((mutant.file, *mutant.function), ()):
                    function.__code__ = code


class Bench:
    """Runs tests that pytest has collected, each time in a fork of this process."""

    def __init__(self, root: Path, tree: Tree, limit: float) -> None:
        self.root, self.tree, self.limit = root, tree, limit
        self.digest_test = cache(lambda name: _digest((root / name.partition("::")[0]).read_bytes()))
        self.probes = Probes(f"{tree.copy}/")
        self.items: dict[str, list[pytest.Item]] = {}
        self._status = 0
        self._work: Callable[[], None] = lambda: None

    def collect(self, names: Sequence[str], work: Callable[[], None]) -> None:
        """Import tests (files, folders or test functions), then work while they can be run."""
        self._work = work
        self.probes.install()
        said = io.StringIO()
        options = ["-q", "-s", "-p", "no:cacheprovider", "--rootdir", str(self.root)]
        with contextlib.redirect_stdout(said):
            status = pytest.main([*options, *names], plugins=[self])
        if status != pytest.ExitCode.OK:
            raise SystemExit(f"mutants: pytest ended with status {status}:\n{said.getvalue()}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running all tests: let the caller say which to run."""
        for item in session.items:
            self.items.setdefault(item.nodeid.partition("[")[0], []).append(item)
        if not session.testsfailed:
            self.tree.find_imported()
            self._work()
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note whether a test failed, and whether it was code of the tests that raised."""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            said, path = (crash.message, self.root / crash.path) if crash else ("", self.root)
            is_judged = said.startswith(("assert", "AssertionError", "Failed")) or "tests" in path.parts
            self._status = FAILED if is_judged else CRASHED

    def run(self, tests: Sequence[str], seconds: float, mutant: Mutant | None, notes: str = "") -> str:
        """Run tests in a fork until one fails, and say "passed", "failed", "crashed" or "timeout"."""
        with self.tree.changed(mutant):
            child = os.fork()
            if child == 0:
                self._run_child([item for name in tests for item in self.items[name]], mutant, notes)
            with contextlib.suppress(OSError):
                os.setpgid(child, child)  # whichever of the two is first
            ends = time.monotonic() + seconds
            ended, status = 0, 0
            while not ended and time.monotonic() < ends:
                ended, status = os.waitpid(child, os.WNOHANG)
                time.sleep(0.005)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # with whatever the tests started and left behind
            if not ended:
                os.waitpid(child, 0)
                return "timeout"
        code = os.waitstatus_to_exitcode(status)
        if mutant is not None and code == UNFIT:
            return self.run_afresh(tests, seconds, mutant)
        return {0: "passed", FAILED: "failed"}.get(code, "crashed")

    def _run_child(self, items: list[pytest.Item], mutant: Mutant | None, notes: str) -> None:
        status = UNFIT
        try:
            os.setpgid(0, 0)
            for each in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), each)
            if mutant is not None:
                self.tree.swap_code(mutant)
            status = CRASHED
            self.probes.clear()
            for item, following in zip(items, [*items[1:], None], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._status:
                    break
            if notes:
                Path(notes).write_text(json.dumps(self.probes.read_lines()))
            status = self._status
        finally:
            os._exit(status)

    def run_afresh(self, tests: Sequence[str], seconds: float, mutant: Mutant) -> str:
        """Run tests in a new process that imports the changed file."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        with self.tree.changed(mutant):
            try:
                ended = subprocess.run(command, cwd=self.root, timeout=seconds + 60, capture_output=True)  # noqa: S603
            except subprocess.TimeoutExpired:
                return "timeout"
        return "passed" if ended.returncode == 0 else "failed"

    def record(self, name: str) -> Recorded:
        """Run a test without a mutant and note the lines of src that it runs."""
        notes = self.tree.copy.parent / "lines.json"
        began = time.monotonic()
        outcome = self.run([name], self.limit, None, str(notes))
        found = Recorded(outcome, round(time.monotonic() - began, 3), self.digest_test(name))
        if outcome == "passed":
            read = json.loads(notes.read_text())
            found.lines = {file: (self.tree.digest(file), bits) for file, bits in read.items()}
        return found


class Probes:
    """Notes which statements of functions in a folder are run. Tracing would cost several times as much."""

    def __init__(self, head: str) -> None:
        self._head = head
        self._ran: dict[str, bytearray] = {}
        self._last: dict[str, dict[int, int]] = {}

    def install(self) -> None:
        """Put probes into modules that are imported from now on."""
        get_code = SourceFileLoader.get_code

        def get_probed_code(loader: SourceFileLoader, name: str) -> CodeType | None:
            path = loader.get_filename(name)
            return self._compile(path) if path.startswith(self._head) else get_code(loader, name)

        SourceFileLoader.get_code = get_probed_code  # type: ignore[method-assign, assignment]

    def clear(self) -> None:
        """Forget what was run so far."""
        for ran in self._ran.values():
            ran[:] = bytes(len(ran))

    def read_lines(self) -> dict[str, str]:
        """Return the lines that were run, as bits of a number in hexadecimal for each file."""
        found = {}
        for file, ran in self._ran.items():
            spans = [(first, self._last[file][first]) for first, was_run in enumerate(ran) if was_run]
            if spans:
                found[file] = f"{reduce(or_, ((2 << last) - (1 << first) for first, last in spans)):x}"
        return found

    def _compile(self, path: str) -> CodeType:
        tree, file, name = (
            ast.parse(Path(path).read_bytes()),
            path.removeprefix(self._head),
            f"_ran_{len(self._ran)}",
        )
        last = self._last[file] = {}
        for function in (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)):
            for node in ast.walk(function):
                for block in ("body", "orelse", "finalbody"):
                    if isinstance(statements := getattr(node, block, None), list):
                        setattr(node, block, self._probe(statements, name, last))
        self._ran[file] = bytearray(max(last, default=0) + 1)
        setattr(builtins, name, self._ran[file])
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)

    def _probe(self, statements: list[ast.stmt], name: str, last: dict[int, int]) -> list[ast.stmt]:
        probed: list[ast.stmt] = []
        for each in statements:
            is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
            if isinstance(each, ast.Assign) and name in ast.unparse(each.targets[0]):
                return statements  # of a function in a function, seen before
            if not is_text:
                ends = min([each.end_lineno or 0, *(child.lineno - 1 for child in getattr(each, "body", ()))])
                last[each.lineno] = max(ends, each.lineno, last.get(each.lineno, 0))
                probe = ast.parse(f"{name}[{each.lineno}] = 1").body[0]
                for node in ast.walk(probe):
                    ast.copy_location(node, each)
                probed.append(probe)
            probed.append(each)
        return probed


class LineMap:
    """Which test runs which lines, kept in a file between runs."""

    def __init__(self, path: Path, bench: Bench, say: Callable[[str], None]) -> None:
        self._path, self._bench, self._say = path, bench, say
        kept = json.loads(path.read_text()) if path.exists() else {}
        self._kept = {name: Recorded(**each) for name, each in kept.items()}

    def record(self, names: Iterable[str]) -> dict[str, Recorded]:
        """Return entries of tests, and record those that are missing or hold no longer."""
        names = list(names)
        missing = [name for name in names if not self._holds(name)]
        for number, name in enumerate(missing, 1):
            found = self._kept[name] = self._bench.record(name)
            self._say(f"recorded {number}/{len(missing)} {found.outcome} {found.seconds:.1f} s {name}")
            if number % 100 == 0 or number == len(missing):
                self._path.write_text(json.dumps({name: asdict(each) for name, each in self._kept.items()}))
        return {name: self._kept[name] for name in names}

    def _holds(self, name: str) -> bool:
        entry = self._kept.get(name)
        if entry is None or entry.outcome != "passed" or entry.test_digest != self._bench.digest_test(name):
            return False
        return all(self._bench.tree.digest(file) == digest for file, (digest, _) in entry.lines.items())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]

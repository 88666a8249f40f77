"""Fuzz one target for a while: `python -m tests.fuzz messages --seconds 600`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random

from tests.fuzz.fuzzer import Fuzzer, file_name, read_corpus, smallest_cover
from tests.fuzz.targets import CORPUS, LARGEST, TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--crashes", type=Path, default=Path("crashes"), help="where crashes are written")
    parser.add_argument("--keep", action="store_true", help="keep the smallest inputs that reach the same")
    parser.add_argument("--atheris", action="store_true", help="use atheris, which must be installed")
    given = parser.parse_args()
    target, folder = TARGETS[given.target], CORPUS / given.target
    inputs = [*read_corpus(folder), *target.seeds]
    if given.atheris:
        return _atheris(given.target, given.seconds, given.crashes, inputs)
    fuzzer = Fuzzer(target.run, inputs, Random(given.seed), LARGEST)
    fuzzer.go_on(seconds=given.seconds)
    found = f"{fuzzer.runs} runs, {len(fuzzer.coverage)} steps, {len(fuzzer.corpus)} inputs"
    print(f"{given.target}: {found}, {len(fuzzer.crashes)} crashes")
    for place, crash in fuzzer.crashes.items():
        given.crashes.mkdir(parents=True, exist_ok=True)
        path = given.crashes / f"{given.target}-{file_name(crash.data)}"
        path.write_bytes(crash.data)
        print(f"{place}: {path}\n{crash}")
    if given.keep:
        folder.mkdir(parents=True, exist_ok=True)
        kept = {file_name(data): data for data in smallest_cover(target.run, fuzzer.corpus)}
        for path in folder.glob("*"):
            if path.name not in kept:
                path.unlink()
        for name, data in kept.items():
            (folder / name).write_bytes(data)
        print(f"kept {len(kept)} inputs, {sum(map(len, kept.values()))} bytes")
    return 1 if fuzzer.crashes else 0


def _atheris(name: str, seconds: float, crashes: Path, inputs: list[bytes]) -> int:
    try:
        import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError:
        print("atheris is not installed; without --atheris a fuzzer of our own is used", file=sys.stderr)
        return 2
    crashes.mkdir(parents=True, exist_ok=True)
    seeds = crashes / f"{name}-inputs"
    seeds.mkdir(exist_ok=True)
    for data in inputs:
        (seeds / file_name(data)).write_bytes(data)
    atheris.instrument_all()
    options = [
        f"-max_total_time={int(seconds)}",
        f"-max_len={LARGEST}",
        f"-artifact_prefix={crashes}/{name}-",
    ]
    atheris.Setup([sys.argv[0], *options, str(seeds)], TARGETS[name].run)
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Everything that reads foreign bytes, on the inputs that fuzzing has found, and on some changes of them."""

from __future__ import annotations

from random import Random

import pytest
from tests.conftest import SOAK
from tests.fuzz.fuzzer import Fuzzer, file_name, read_corpus
from tests.fuzz.targets import CORPUS, LARGEST, TARGETS

from linnet.wire.frame import FrameReader

RUNS = {"machine": 2, "words": 5}
"""How many changes are tried of targets that are slow; of others 300."""
SECONDS = 120.0
"""In a soak, for each target."""
MOST_BYTES = 200_000
"""All inputs that are kept, together."""


@pytest.mark.timeout(900 if SOAK else 120)
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_raises_what_its_reader_does_not_expect(name: str) -> None:
    target = TARGETS[name]
    inputs = [*target.seeds, *read_corpus(CORPUS / name)]
    fuzzer = Fuzzer(target.run, inputs, Random(f"{name}/{SOAK}"), LARGEST)
    if SOAK:
        fuzzer.go_on(seconds=SECONDS)
    else:
        fuzzer.go_on(runs=RUNS.get(name, 300))
    assert "\n".join(map(str, fuzzer.crashes.values())) == ""
    assert fuzzer.runs > len(inputs)


def test_each_target_has_inputs_that_lead_somewhere() -> None:
    assert sorted(each.name for each in CORPUS.iterdir()) == sorted(TARGETS)


def test_inputs_are_few_and_named_by_their_hash() -> None:
    paths = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in paths) < MOST_BYTES
    assert [path.name for path in paths if path.name != file_name(path.read_bytes())] == []


def test_the_fuzzer_finds_its_way_to_a_bug() -> None:
    """A judge of the judge: three steps that only coverage leads along, and an error behind them."""

    def run(data: bytes) -> None:
        frames = FrameReader(64).feed(data)
        assert len(frames) < 3

    fuzzer = Fuzzer(run, [b"\x00\x00\x00\x01a"], Random(1), LARGEST)
    fuzzer.go_on(runs=8_000)
    assert [type(crash.error).__name__ for crash in fuzzer.crashes.values() if "assert" in str(crash)]

"""Growing files are cut into lines once each, whatever is renamed, torn, used again or killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from linnet.core.ids import PeerId
from linnet.lab.audit.tailing import PREFIX, SUFFIX, Tailer
from linnet.lab.errors import LabError
from linnet.trace.jsonlines import JsonTrace
from linnet.trace.records import Kind, Level, Record

NODE = PeerId(b"n" * 32)


class Place:
    def __init__(self, tmp_path: Path) -> None:
        self.folder, self.out = tmp_path / "homes", tmp_path / "out"
        self.trace = self.folder / "a" / "trace" / "trace.jsonl"
        self.trace.parent.mkdir(parents=True)

    def tailer(self, cut_bytes: int = 1 << 20) -> Tailer:
        return Tailer(self.folder, self.out / "spool", self.out, cut_bytes)

    def append(self, text: str) -> None:
        with self.trace.open("a") as file:
            file.write(text)

    def lines(self) -> list[str]:
        """Everything that was cut, without what is said about it."""
        cuts = sorted((self.out / "spool").glob(f"*{SUFFIX}"))
        lines = [line for cut in cuts for line in cut.read_text().splitlines()]
        return [line.split("\t", 2)[2] for line in lines if not line.startswith(PREFIX)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_only_whole_lines_are_cut_and_each_once(place: Place) -> None:
    tailer = place.tailer()
    assert not tailer.cut()
    place.append("one\ntw")
    assert tailer.cut()
    assert not tailer.cut()
    place.append("o\nthree\n")
    assert tailer.cut()
    assert place.lines() == ["one", "two", "three"]


def test_a_line_says_where_it_stood(place: Place) -> None:
    place.append("one\n\ntwo\r\n")
    place.tailer().cut()
    (cut,) = (place.out / "spool").glob(f"*{SUFFIX}")
    assert cut.read_bytes().split(b"\n")[1:-1] == [b"0\t0\tone", b"0\t4\t", b"0\t5\ttwo\r"]


def test_a_new_tailer_goes_on_where_the_last_one_was(place: Place) -> None:
    place.append("one\n")
    place.tailer().cut()
    place.append("two\n")
    second = place.tailer()
    assert second.number == 1
    second.cut()
    place.tailer().cut()
    assert place.lines() == ["one", "two"]


def test_a_cut_that_was_not_finished_is_made_again(place: Place) -> None:
    place.append("one\n")
    place.tailer().cut()
    place.append("two\n")
    (place.out / "spool" / f".{2:012d}{SUFFIX}").write_text("half of it")
    place.tailer().cut()
    assert place.lines() == ["one", "two"]
    assert not list((place.out / "spool").glob(".*"))


def test_renamed_files_are_known_and_new_ones_are_read_from_their_begin(place: Place) -> None:
    tailer = place.tailer()
    place.append("one\n")
    tailer.cut()
    place.append("two\n")
    place.trace.rename(place.trace.with_name("trace.jsonl.1"))
    place.append("three\n")
    tailer.cut()
    assert place.lines() == ["one", "two", "three"]


def test_an_inode_that_is_used_again_is_another_file(place: Place) -> None:
    tailer = place.tailer()
    place.append("one\n")
    tailer.cut()
    place.trace.write_text("two\n")  # the same inode, truncated, as a new file may have it
    tailer.cut()
    place.trace.write_text("three\nfour\n")
    tailer.cut()
    assert place.lines() == ["one", "two", "three", "four"]


def test_a_large_trace_takes_several_cuts(place: Place) -> None:
    wanted = [f"{number:08d}" for number in range(100)]
    place.append("".join(f"{line}\n" for line in wanted))
    tailer = place.tailer(cut_bytes=200)
    assert tailer.cut_all() == 5
    assert place.lines() == wanted


def test_the_rotation_of_a_real_trace_loses_nothing(place: Place) -> None:
    tailer = place.tailer()
    with JsonTrace(place.trace.parent, Level.FULL, 65_536, 10, flush_period=0) as trace:
        for number in range(2_000):
            trace.write(NODE, Record(Kind.SENT, seq=number), float(number))
            if number % 97 == 0:
                tailer.cut()
    tailer.cut_all()
    assert len(list(place.trace.parent.iterdir())) > 3
    rows = [line for line in place.lines() if "linnet_trace" not in line]
    assert [f'"seq":{number},' in row for number, row in enumerate(rows)] == [True] * 2_000


def test_what_was_taken_in_is_forgotten_but_for_the_last(place: Place) -> None:
    tailer = place.tailer()
    for line in ("one\n", "two\n", "three\n"):
        place.append(line)
        tailer.cut()
    tailer.forget(3)
    assert place.lines() == ["three"]
    assert not place.tailer().cut()


def test_our_own_folder_is_not_watched(place: Place) -> None:
    inner = place.out / "trace"
    inner.mkdir(parents=True)
    (inner / "trace.jsonl").write_text("ours\n")
    Tailer(place.out.parent, place.out / "spool", place.out).cut()
    assert place.lines() == []


def test_a_damaged_cut_is_told(place: Place) -> None:
    place.append("one\n")
    place.tailer().cut()
    (cut,) = (place.out / "spool").glob(f"*{SUFFIX}")
    cut.write_text("#{\n")
    with pytest.raises(LabError, match="to begin anew"):
        place.tailer()

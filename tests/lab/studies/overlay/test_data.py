"""Real sets are found by their files, and read; what is wrong in one is told."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from linnet.lab.errors import LabError
from linnet.lab.studies.overlay.data import (
    WEEK_MS,
    find,
    read_artists,
    read_cities,
    read_surroundings,
    read_topics,
    read_weeks,
    taken,
    topic_count,
)

HALF = WEEK_MS // 2


def _folder(root: Path) -> Path:
    users = "".join(f"{user}\t{user % 5} {(user * 2) % 5} 7 {100 + user}\n" for user in range(80))
    (root / "set").mkdir()
    with gzip.open(root / "set" / "user_topics.txt.gz", "wt") as file:
        file.write(users)
    artists = "".join(f"{user}\t{artist}\t5\n" for user in range(60) for artist in (user % 4, 9))
    (root / "user_artists.dat").write_text("userID\tartistID\tweight\n" + artists)
    (root / "sessions_100.txt").write_text(f"0 1 1402358400000 2 {HALF} {HALF}\n1 0 1402358400000 2 5 6\n")
    pings = "".join(f"{a},{b},{20 + 2 * (a < b)}\n" for a in "XYZ" for b in "XYZ" if a != b)
    (root / "city_pings.csv").write_text("from_city,to_city,rtt_avg_ms\n" + pings)
    return root


def test_all_is_found_and_nothing_is_missing(tmp_path: Path) -> None:
    found = read_surroundings(str(_folder(tmp_path)), 20, 6, 2, 1, users=30)
    assert found.missing == ()
    assert {name: len(each) for name, each in found.interests.items()} == {"twitter": 20, "lastfm": 20}
    assert {name: len(each) for name, each in found.profiles.items()} == {"twitter": 30, "lastfm": 30}
    assert all(1 <= len(own) <= 2 for own in found.interests["twitter"])
    assert topic_count(found.interests["twitter"]) <= 6
    assert found.weeks == (((0, HALF),),) * 20
    assert found.latency.between("X", "Y") == pytest.approx(0.011)
    assert found.latency.between("Y", "X") == pytest.approx(0.010)
    assert found.latency.between("X", "X") == 0.0005
    assert found == read_surroundings(str(tmp_path), 20, 6, 2, 1, users=30)
    large = read_surroundings(str(tmp_path), 20, 6, 2, 1, users=30, scale=40).interests
    assert {name: len(each) for name, each in large.items()} == {
        "twitter": 20,
        "twitter at scale": 40,
        "lastfm": 20,
    }


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    drawn = read_surroundings("", 20, 6, 2, 1)
    assert (len(drawn.missing), drawn.interests, drawn.weeks) == (4, {}, ())
    (tmp_path / "user_topics.txt").write_text("".join(f"{user}\t1 2\n" for user in range(300)))
    part = read_surroundings(str(tmp_path), 20, 6, 2, 1)
    assert len(part.missing) == 3
    assert len(part.latency.regions) == 16
    assert find(tmp_path, "nothing") is None


def test_a_stretch_has_topics_that_several_share() -> None:
    users = [["common", f"alone-{user}", "half" if user % 2 else "other"] for user in range(40)]
    found = taken(users, 10, 50, 2, 3)
    assert len(found) == 10
    assert topic_count(found) == 3
    assert all(len(own) == 2 for own in found)
    with pytest.raises(LabError, match="40 users"):
        taken(users, 41, 50, 2, 3)


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("user_topics.txt", "1 2 3\n", read_topics),
        ("user_artists.dat", "user artist\n", read_artists),
        ("user_artists.dat", "userID\tartistID\tweight\n1 2\n", read_artists),
    ],
)
def test_other_layouts_are_refused(tmp_path: Path, name: str, text: str, read) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    (tmp_path / name).write_text(text)
    with pytest.raises(LabError, match=name):
        read(tmp_path / name)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "sessions_100.txt").write_text("0 1 14 2 5 x\n")
    with pytest.raises(LabError, match="no number"):
        read_weeks(tmp_path / "sessions_100.txt", 3, 1)
    (tmp_path / "sessions_100.txt").write_text("0 1 14 2 5 6\n")
    with pytest.raises(LabError, match="whole week"):
        read_weeks(tmp_path / "sessions_100.txt", 3, 1)
    (tmp_path / "city_pings.csv").write_text("from_city,to_city,other\nA,B,3\n")
    with pytest.raises(LabError, match="rtt_avg_ms"):
        read_cities(tmp_path / "city_pings.csv", 2)
    (tmp_path / "user_topics.txt.gz").write_bytes(b"no gzip")
    with pytest.raises(LabError, match="cannot be read"):
        read_topics(tmp_path / "user_topics.txt.gz")

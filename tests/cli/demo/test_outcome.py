from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from linnet.cli.demo.messages import Published, Received
from linnet.cli.demo.outcome import Outcome
from linnet.cli.demo.story import Facts, Plan


def facts(homes: list[Path], resumed: bool = True) -> Facts:
    names = tuple(f"peer {number}" for number in range(1, len(homes) + 1))
    return Facts(names, tuple(homes), names[:1], names[-1], 2.0, resumed, 1.5, 20.0)


def homes(tmp_path: Path, received: tuple[str, ...]) -> list[Path]:
    made = [tmp_path / "one", tmp_path / "two"]
    for home in made:
        home.mkdir()
    (made[0] / "published.jsonl").write_bytes(
        b"".join(msgspec.json.encode(Published(id)) + b"\n" for id in "ab")
    )
    for home, ids in zip(made, (("a", "b"), received), strict=True):
        lines = b"".join(msgspec.json.encode(Received(id, 1.0, 1.25)) + b"\n" for id in ids)
        (home / "received.jsonl").write_bytes(lines)
    return made


def test_all_delivered_is_all_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome.of(Plan(2, 2, 1), facts(homes(tmp_path, ("a", "b"))))
    assert outcome.ok
    outcome.show(as_json=False)
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "missing: 0"
    assert "peer 2 was away for 2.0 s" in said
    assert max(map(len, said.splitlines())) <= 80
    outcome.show(as_json=True)
    assert msgspec.json.decode(capsys.readouterr().out)["missing"] == 0


@pytest.mark.parametrize(
    ("received", "messages", "resumed", "verdict"),
    [
        (("a",), 2, True, "1 deliveries are missing"),
        (("a", "b", "z"), 2, True, "1 event came that nobody published"),
        (("a", "b"), 3, True, "2 of 3 messages were published"),
        (("a", "b"), 2, False, "did not find its durable subscription again"),
    ],
)
def test_any_loss_is_told(
    tmp_path: Path, received: tuple[str, ...], messages: int, resumed: bool, verdict: str
) -> None:
    outcome = Outcome.of(Plan(2, messages, 1), facts(homes(tmp_path, received), resumed))
    assert not outcome.ok
    assert verdict in outcome.verdict

"""Records as a file."""

from __future__ import annotations

from pathlib import Path

from tests.cli.name.neighbours import MUSIC
from tests.cli.shell import Linnet
from tests.cli.village import up


def test_records_are_carried_where_no_node_carries_them(running: Linnet, tmp_path: Path) -> None:
    running.ok("name", "publish", "carried", "--place", MUSIC)
    file = tmp_path / "shared.names"
    wrote = running.ok("name", "export", str(file))
    assert wrote.startswith("wrote ")
    assert wrote.endswith(f" to {file}\n")
    assert "File exists" in running.fails(2, "name", "export", str(file))
    address = f"carried.{running.json('status')['person']}"
    with up(tmp_path / "far") as far:
        assert "unanswered" in far.fails(1, "name", "resolve", address)
        assert far.json("name", "import", str(file))["refused"] == []
        assert far.json("name", "resolve", address)["place"] == MUSIC
        (tmp_path / "bad").write_bytes(b"no records")
        assert "no file of records" in far.fails(1, "name", "import", str(tmp_path / "bad"))
        assert "No such file" in far.fails(2, "name", "import", str(tmp_path / "none"))

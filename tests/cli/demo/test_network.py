from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from linnet.cli.demo.network import ERRORS, Process
from linnet.cli.exits import Failure
from linnet.node.background import Background


async def watch(process: Process, happened: asyncio.Event) -> None:
    while True:
        await happened.wait()
        happened.clear()
        process.check()


async def test_a_process_that_ends_by_itself_is_told_with_its_last_words(tmp_path: Path) -> None:
    happened = asyncio.Event()
    process = Process("peer 1", tmp_path / "no-home", None, happened)
    (tmp_path / "no-home").mkdir(mode=0o700)
    process.check()
    async with Background() as background:
        await process.start(background)
        with pytest.raises(Failure, match=r"peer 1 ended by itself with status 1: .*linnet\.toml"):
            await asyncio.wait_for(watch(process, happened), 20)
    assert "linnet.toml" in (tmp_path / "no-home" / ERRORS).read_text()

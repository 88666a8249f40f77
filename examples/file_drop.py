"""Stream a large file through a place, interrupt it at both ends, and receive it whole.

Neither end holds more than a few fragments of the file in memory.
Run it: python examples/file_drop.py
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from linnet import Node
from linnet.node.home import init

SIZE = 6_000_000


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        home, film, copy = Path(directory, "ada"), Path(directory, "film"), Path(directory, "copy")
        init(home, datetime.now(UTC).timestamp())
        whole = hashlib.shake_256(b"film").digest(SIZE)
        write(film, whole)
        async with asyncio.timeout(50), Node() as bea:
            async with Node(home) as ada:
                drop = await ada.places.host(name="films")
                address = await drop.address()
                seen = await bea.places.enter(address)
                message = (await drop.say(b"", "_file", more=True)).message
                await drop.say_more(message, whole[: SIZE // 3])
                print("the sender stops in the middle")
            async with Node(home) as ada:
                drop = ada.places.by_id(drop.id)
                sent = (await drop.say_more(message, b"")).size
                print(f"and goes on behind {sent * 100 // SIZE} %")
                await bea.places.enter(await drop.address())
                async with seen.listen("_file", since=message) as files:
                    await drop.announce_more(message, film, skip=sent)
                    file = await anext(aiter(files))
                write(Path(directory, "copy.part"), whole[:1_000_000])
                print("the reader has 1000000 bytes already")
                await file.save(copy)
        print("whole:", read(copy) == whole)


if __name__ == "__main__":
    asyncio.run(main())

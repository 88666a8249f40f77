"""Attach a program to a running node, such as one that `linnet up` runs, and use the same calls.

The example starts a node in a home of its own; on your machine a node may run all the time.
Run it: python examples/beside_a_node.py
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from linnet import HomeBusy, Node


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory, "home")
        for command in ("init", "up"):
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "linnet", command, "--home", home, stdout=asyncio.subprocess.PIPE
            )
            if command == "init":
                await process.communicate()
        if process.stdout is not None:
            await process.stdout.readline()  # The node prints a line when it is up.
        try:
            async with Node(home):
                pass
        except HomeBusy:
            print("the home belongs to the node that runs there")
        async with Node.attach(home) as node:
            await node.publish("weather", ["rain", "sun"])
            async for event in node.history("weather"):
                print(f"kept: {event.body.decode()}")
            async with node.subscribe("weather", name="beside") as weather:
                await node.publish("weather", "snow")
                async for event in weather:
                    print(f"new: {event.body.decode()}")
                    break
        process.terminate()
        await process.communicate()


if __name__ == "__main__":
    asyncio.run(main())

"""A worker that publishes to a broker or subscribes to it, with the client that is installed.

The clients are no dependency of the project, so they are imported by name, and have no types here.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from typing import Any, Protocol

from msgspec import Struct

from bench.workers.nodes import BODY_BYTES, STREAM
from bench.workers.talk import Arrived, Expect, Expecting, Go, Linked, Ready, Sent, orders, role, say
from linnet.node.running import run

_BODY = bytes(BODY_BYTES)
_PER_TURN = 256


class BrokerRole(Struct, frozen=True):
    """Which broker, where on this machine, and what to do there."""

    kind: str
    port: int
    subscribe: bool


class Counter:
    """Counts messages, also from another thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = 0
        self._arrived = asyncio.Event()
        self._ended_ns = 0

    def count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._ended_ns = time.monotonic_ns()
            self._loop.call_soon_threadsafe(self._arrived.set)

    async def receive(self, messages: int) -> Arrived:
        """Wait for so many messages."""
        self._left = messages
        self._arrived.clear()
        say(Expecting())
        cpu = time.process_time()
        await self._arrived.wait()
        return Arrived(self._ended_ns, time.process_time() - cpu)


class Client(Protocol):
    """What a measurement needs of a client."""

    async def connect(self, port: int) -> None: ...

    async def subscribe(self, counter: Counter) -> None: ...

    async def publish(self, messages: int) -> None: ...


class Mqtt:
    """paho-mqtt, quality of service 0."""

    def __init__(self) -> None:
        paho: Any = importlib.import_module("paho.mqtt.client")
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        self._client.max_queued_messages_set(0)

    async def connect(self, port: int) -> None:
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    async def subscribe(self, counter: Counter) -> None:
        loop, subscribed = asyncio.get_running_loop(), asyncio.Event()
        self._client.on_message = lambda *_: counter.count()
        self._client.on_subscribe = lambda *_: loop.call_soon_threadsafe(subscribed.set)
        self._client.subscribe(STREAM, 0)
        await subscribed.wait()

    async def publish(self, messages: int) -> None:
        for number in range(messages):
            self._client.publish(STREAM, _BODY, 0)
            if number % _PER_TURN == 0:
                await asyncio.sleep(0)


class Nats:
    """nats-py, core NATS without streams."""

    def __init__(self) -> None:
        self._nats: Any = importlib.import_module("nats")

    async def connect(self, port: int) -> None:
        self._client = await self._nats.connect(f"nats://127.0.0.1:{port}", pending_size=1 << 24)

    async def subscribe(self, counter: Counter) -> None:
        async def arrived(message: object) -> None:
            counter.count()

        await self._client.subscribe(
            STREAM, cb=arrived, pending_msgs_limit=10**7, pending_bytes_limit=1 << 32
        )
        await self._client.flush()

    async def publish(self, messages: int) -> None:
        for number in range(messages):
            await self._client.publish(STREAM, _BODY)
            if number % _PER_TURN == 0:
                await asyncio.sleep(0)
        await self._client.flush()


CLIENTS: dict[str, type[Mqtt | Nats]] = {"mosquitto": Mqtt, "nats-server": Nats}


async def main(given: BrokerRole) -> None:
    client: Client = CLIENTS[given.kind]()
    await client.connect(given.port)
    counter = Counter()
    if given.subscribe:
        await client.subscribe(counter)
    say(Ready(""))
    say(Linked())
    async for order in orders():
        if isinstance(order, Expect):
            say(await counter.receive(order.messages))
        elif isinstance(order, Go):
            began_ns, cpu = time.monotonic_ns(), time.process_time()
            await client.publish(order.messages)
            say(Sent(began_ns, time.process_time() - cpu))


if __name__ == "__main__":
    run(main(role(BrokerRole)))

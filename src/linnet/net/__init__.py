"""The asyncio driver: real links, real time, the same machines as in a simulation."""

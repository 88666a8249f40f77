"""Run by `test_rooms` in processes of its own: prints what must not depend on the hash seed."""

from __future__ import annotations

from msgspec.structs import asdict

from linnet.sim.rooms import run_rooms
from linnet.sim.rooms_scenario import RoomScenario


def main() -> None:
    print(asdict(run_rooms(RoomScenario(peers=5, relays=2, messages=15, loss=0.02)).timeless()))


if __name__ == "__main__":
    main()

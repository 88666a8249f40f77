"""Run by `test_groups` in processes of its own: prints what must not depend on the hash seed."""

from __future__ import annotations

from msgspec.structs import asdict

from linnet.sim.groups import run_groups
from linnet.sim.groups_report import GroupScenario
from linnet.testing.safety import Burglar


def main() -> None:
    scenario = GroupScenario(members=4, ops=20, partitions=1, thefts=2, seed=5)
    print(asdict(run_groups(scenario, Burglar).timeless()))


if __name__ == "__main__":
    main()

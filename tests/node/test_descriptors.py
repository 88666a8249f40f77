from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (100, int(sys.argv[1])))
from linnet.core.errors import LocalError
from linnet.node.config import NodeConfig
from linnet.node.descriptors import needed, raise_limit, told
raise_limit(NodeConfig())
print(needed(NodeConfig()), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
try:
    print(told(NodeConfig()))
except LocalError as error:
    print("wrong:", error)
"""


def _with_limit(hard: int) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(hard)], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()


def test_the_limit_is_raised_as_far_as_it_is_needed() -> None:
    numbers, told = _with_limit(8192)
    needed, soft = numbers.split()
    assert needed == soft
    assert told == f"{needed} may be needed, 8192 are allowed"


def test_a_system_that_allows_less_is_named() -> None:
    numbers, told = _with_limit(2000)
    needed, soft = map(int, numbers.split())
    assert soft == 2000
    assert told.startswith(f"wrong: {needed} may be needed, but the system allows 2000; ")
    assert told.endswith(f"set links.max_links to {2000 - (needed - 4096)}")

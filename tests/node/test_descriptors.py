from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (100, int(sys.argv[1])))
from linnet.core.errors import LocalError
from linnet.node.config import NodeConfig
from linnet.node.descriptors import fit_to_limit, needed, raise_limit, told
raise_limit()
print(needed(NodeConfig()), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
fitted = fit_to_limit(NodeConfig())
print(needed(fitted), fitted == NodeConfig(), fitted.links.max_links)
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


def test_a_system_that_allows_enough_changes_nothing() -> None:
    numbers, fitted, told = _with_limit(8192)
    needed, soft = numbers.split()
    assert soft == "8192"
    assert fitted == f"{needed} True 4096"
    assert told == f"{needed} may be needed, 8192 are allowed"


def test_on_a_system_that_allows_less_a_node_takes_fewer_links_and_doctor_names_it() -> None:
    numbers, fitted, told = _with_limit(1000)
    needed, soft = map(int, numbers.split())
    assert soft == 1000
    fits, unchanged, links = fitted.split()
    assert int(fits) <= 1000
    assert (unchanged, int(links) > 500) == ("False", True)
    assert told == (
        f"wrong: {needed} may be needed, but the system allows 1000, enough for {links} links; "
        f"raise the limit (ulimit -Hn), or set links.max_links to {links}"
    )

"""The page about tests of programs: what it shows runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_the_virtual_network_of_the_page_runs_as_it_stands() -> None:
    _, code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})


def test_every_module_of_the_package_stands_on_the_page() -> None:
    import linnet.testing

    names = {path.stem for path in Path(linnet.testing.__path__[0]).glob("*.py")} - {"__init__"}
    assert names == set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))

"""The README's first program, as it stands there, alone on a machine without a home."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_the_first_program_makes_a_home_and_prints_its_own_message_at_once(tmp_path: Path) -> None:
    section = README.read_text().split("## In a program")[1]
    (program, *_) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    environment = {**os.environ, "HOME": str(tmp_path)}
    environment.pop("LINNET_HOME", None)
    with subprocess.Popen(
        [sys.executable, "-u", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(2)]
        process.kill()
    assert lines[0] == "no_storage"
    assert lines[1].endswith("b'rain'")
    assert (tmp_path / ".linnet" / "linnet.toml").exists()

"""The program by its package's name."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version


def test_python_m_linnet_is_linnet() -> None:
    words = [sys.executable, "-m", "linnet", "--version"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert version("linnet") in printed

"""``python -m linnet`` is ``linnet``."""

from __future__ import annotations

from linnet.cli import main

main()

"""The example is a package of the checkout: it is imported as `python -m` does it there."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

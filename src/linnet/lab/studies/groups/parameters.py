"""What a study of groups is asked for."""

from __future__ import annotations

from msgspec import Struct

from linnet.lab.errors import LabError

SIZES = (8, 11, 16, 22, 32, 45, 64, 90, 128)
"""Those of the published benchmark."""
LARGEST = 512
"""What a group takes by default."""


class GroupsParameters(Struct, frozen=True, kw_only=True):
    """How large groups are, and how often each operation is timed."""

    sizes: tuple[int, ...] = SIZES
    repeats: int = 3
    """Runs of each operation and size that are timed, with other seeds."""
    scaling: int = 256
    """Updates are timed up to this size, at powers of two from 8; 0: not."""
    batch: int = 8
    """Updates in a row that are acknowledged one by one, and then all at once."""
    missed: int = 32
    """Updates that a member was away for; 0: nobody was."""
    fuzz: int = 10
    """Random groups of six that are cut apart and meet again; 0: none."""
    fuzz_ops: int = 60
    """Operations in each of them."""
    seed: int = 1

    def checked(self) -> GroupsParameters:
        """These parameters; `LabError` says what cannot be run."""
        if not self.sizes or min(self.sizes) < 4 or max(self.sizes) > LARGEST - 1:
            raise LabError(f"--sizes: give one or more from 4 to {LARGEST - 1}, such as 8,32")
        if len(set(self.sizes)) < len(self.sizes):
            raise LabError("--sizes: one of them is there twice")
        if self.scaling and not 16 <= self.scaling <= LARGEST:
            raise LabError(f"--scaling: give 0, or a size from 16 to {LARGEST}")
        if self.repeats < 1 or self.batch < 1 or min(self.missed, self.fuzz) < 0 or self.fuzz_ops < 1:
            raise LabError("a study needs at least one repeat, one update in a batch, one fuzzed operation")
        return self

    @property
    def ordered(self) -> tuple[int, ...]:
        """The sizes, rising."""
        return tuple(sorted(self.sizes))

    @property
    def largest(self) -> int:
        """The largest size, at which the targets are judged that name none."""
        return max(self.sizes)

    @property
    def scaled(self) -> tuple[int, ...]:
        """Sizes at which growth is looked at: powers of two, and between the largest."""
        powers = [8 << step for step in range(6) if 8 << step <= self.scaling]
        between = [size * 3 // 4 for size in powers[-2:]]
        return tuple(sorted({*powers, *between} - {6}))

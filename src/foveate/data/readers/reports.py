"""What became of the rows of a table: how many were kept, which were left out, and why."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from foveate.errors import some_of

OUTSIDE, MISSING = "outside the picture", "without a position"


@dataclass(frozen=True)
class LeftOut:
    """A row that is not among the paths: why, where it stands (a line of a text, or a row, from 1), what it says."""

    why: str
    source: str
    kind: str  # "line" or "row"
    number: int
    words: str

    def __str__(self) -> str:
        """Where it stands, and what it says."""
        return f"{self.source}, {self.kind} {self.number} ({self.words})"


@dataclass(frozen=True)
class ReadReport:
    """What became of a table's rows: how many were read, which were left out and why, and where numbers are missing."""

    source: str
    rows: int
    fixations: int
    paths: int
    left_out: tuple[LeftOut, ...]
    lost_paths: tuple[str, ...]
    gaps: tuple[str, ...]
    renamed: Mapping[str, str]
    ranges: str  # of what was kept, in degrees and seconds: where a wrong unit shows
    forced: int = 0  # fixations among those kept that are not scored

    @property
    def outside(self) -> tuple[str, ...]:
        """The rows that were left out because they lie outside the picture, in words."""
        return self._because(OUTSIDE)

    @property
    def missing(self) -> tuple[str, ...]:
        """The rows that were left out because they have no position, in words."""
        return self._because(MISSING)

    def _because(self, why: str) -> tuple[str, ...]:
        return tuple(str(it) for it in self.left_out if it.why == why)

    def left_out_table(self) -> pd.DataFrame:
        """Every row that was left out: the file, its line or row, why, and what it says."""
        names = ["source", "kind", "number", "why", "words"]
        return pd.DataFrame([[getattr(it, name) for name in names] for it in self.left_out], columns=names)

    def __str__(self) -> str:
        """The report in a few lines, for a person."""
        lines = [f"{self.source}: {self.rows:,} rows read, {self.fixations:,} fixations in {self.paths:,} paths kept."]
        lines.append(self.ranges)
        if self.forced:
            lines.append(f"{self.forced:,} forced: they condition, and are not scored.")
        told = {f"left out, {why}": self._because(why) for why in dict.fromkeys(it.why for it in self.left_out)}
        told["lost altogether, because all their fixations were left out"] = self.lost_paths
        told["kept, after a gap in the fixation numbers"] = self.gaps
        for words, items in told.items():
            if items:
                lines.append(f"{len(items):,} {words}: {some_of(items, 3)}.")
        lines += [f"column {before!r} kept as {after!r}." for before, after in self.renamed.items()]
        return "\n".join(lines)

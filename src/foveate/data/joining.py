"""Several sets of scan paths as one."""

from collections.abc import Sequence

import numpy as np

from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError


def join_paths(parts: Sequence[ScanPaths]) -> ScanPaths:
    """The paths of all parts, one behind the other, without further columns but for forced fixations.

    They have durations if all parts do.
    A path may be in several parts: those of simulated draws, say, are the same observers on the same pictures.
    """
    if not parts:
        raise InputError("no scan paths given: there must be one part or more.")
    first = parts[0]
    for index, paths in enumerate(parts):
        if paths.extent != first.extent:
            raise InputError(
                f"part {index + 1} of the scan paths lies in {paths.extent}, the first in {first.extent}; they must be "
                "the same."
            )
    longest = max(paths.x_deg.shape[1] for paths in parts)

    def joined(name: str, fill: float) -> np.ndarray:
        values = [getattr(paths, name) for paths in parts]
        room = [((0, 0), (0, longest - part.shape[1])) for part in values]
        return np.concatenate([np.pad(part, pad, constant_values=fill) for part, pad in zip(values, room, strict=True)])

    observer, picture, trial, length = (
        np.concatenate([getattr(paths, name) for paths in parts]) for name in ("observer", "picture", "trial", "length")
    )
    fixation, x_deg, y_deg = joined("fixation", 0), joined("x_deg", np.nan), joined("y_deg", np.nan)
    # Which fixations count must not depend on whether paths were joined; where none is forced, no column says so.
    flagged = any("forced" in paths.columns for paths in parts)
    columns = {"forced": joined("forced", False)} if flagged else {}
    timed = all(paths.duration_s is not None for paths in parts)
    return ScanPaths(
        extent=first.extent,
        observer=observer,
        picture=picture,
        trial=trial,
        length=length,
        fixation=fixation,
        x_deg=x_deg,
        y_deg=y_deg,
        duration_s=joined("duration_s", np.nan) if timed else None,
        columns=columns,
    )

"""Scan paths written as the HDF5 files of pysaliency; what is in them is told in `pysaliency_hdf5.py`."""

import json
from collections.abc import Collection, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd

from foveate.data.grid import PixelFrame
from foveate.data.readers.pysaliency_hdf5 import DEGREES, NAMING, check_frame
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError, some_of

# Names that a fixation of pysaliency has already, or that are written here: a column would take their place.
TAKEN = {"x", "y", "t", "n", "x_int", "y_int", "lengths", "length", "subjects", "scanpaths", "scanpath_index"}
TAKEN |= {"scanpath_history_length", "copy", "filter", "durations", "duration", "fixation_number", *DEGREES, *NAMING}

# Sizes in degrees that come from the same pixels may differ by rounding.
SAME_SIZE = 1e-9

_TEXT = h5py.string_dtype()


def write_pysaliency(
    paths: ScanPaths,
    file: str | Path,
    frame: PixelFrame,
    *,
    pictures: Sequence[Any],
    kind: str = "Scanpaths",
    columns: Collection[str] | None = None,
    at_edge: str = "error",
) -> None:
    """Write scan paths for pysaliency: `kind` 'Scanpaths', 'ScanpathFixations' or 'FixationTrains' (for its release).

    `frame` gives the pictures' size in pixels and must fit the paths' extent. `pictures` names pysaliency's stimuli in
    their order: its place there is a picture's index. Where pixels lose the last digit of a position, degrees are
    written beside them, so that `read_pysaliency` finds the same distances from the left and the upper edge. `columns`
    are the extra columns to write (None: all): numbers, or text that is the same along each path. A column `ts` holds
    onsets in seconds; without one, times are the fixations' places in their path, 0, 1, 2, as in pysaliency's own data
    without times. A fixation exactly on the right or the lower edge, which is no pixel's, is an 'error', or put just
    inside with at_edge='move'.
    """
    if kind not in ("Scanpaths", "ScanpathFixations", "FixationTrains"):
        raise InputError(f"kind = {kind!r}: say 'Scanpaths', 'ScanpathFixations' or 'FixationTrains'.")
    check_frame(frame)
    y_px, x_px = _pixels(paths, frame, at_edge)
    stimulus = _indices(paths, pictures)
    by_path, by_fixation = _attributes(paths, stimulus, list(paths.columns) if columns is None else list(columns))
    by_fixation |= _lost_in_pixels(paths, frame, y_px, x_px)
    mapping = {"durations": "duration"} if paths.duration_s is not None else {}
    buffer = BytesIO()
    with h5py.File(buffer, "w") as opened:
        group: h5py.Group = opened
        if kind == "ScanpathFixations":
            _write_notes(opened, type=kind, version="1.0")
            group = opened.create_group("scanpaths")
        if kind == "FixationTrains":
            _write_notes(group, type=kind, version="1.2", __attributes__=[], scanpath_attribute_mapping=mapping)
            arrays = {"train_xs": x_px, "train_ys": y_px, "train_ts": by_fixation.pop("ts"), "train_ns": stimulus}
            _write_arrays(group, arrays | {"train_subjects": by_path.pop("subject")})
        else:
            _write_notes(group, type="Scanpaths", version="1.0", attribute_mapping=mapping)
            _write_arrays(group, {"xs": x_px, "ys": y_px, "n": stimulus, "length": paths.length})
        of_fixations = "scanpath_fixation_attributes" if kind == "FixationTrains" else "fixation_attributes"
        for name, attributes in (("scanpath_attributes", by_path), (of_fixations, by_fixation)):
            part = group.create_group(name)
            _write_arrays(part, attributes)
            _write_notes(part, __attributes__=sorted(attributes))
    try:
        Path(file).write_bytes(buffer.getvalue())
    except OSError as error:
        raise InputError(f"{file} cannot be written ({error.strerror}); give another place.") from error


def _pixels(paths: ScanPaths, frame: PixelFrame, at_edge: str) -> tuple[np.ndarray, np.ndarray]:
    """(y, x) of every fixation in pixels from the top left corner, NaN in the padding."""
    if at_edge not in ("error", "move"):
        raise InputError(f"at_edge = {at_edge!r}: say 'error' or 'move'.")
    extent, given = paths.extent, frame.extent
    sizes = (extent.height_deg, extent.width_deg)
    if not np.allclose(sizes, (given.height_deg, given.width_deg), rtol=SAME_SIZE, atol=0):
        raise InputError(
            f"the paths lie in {extent.width_deg:g} x {extent.height_deg:g} deg, but the frame is {given.width_deg:g} "
            f"x {given.height_deg:g} deg; give its pixels and px_per_degree so that they fit."
        )
    position = frame.to_pixels(_from_top_deg(paths), paths.x_deg)
    inside = []
    for axis, values, size in zip("yx", position, (frame.height_px, frame.width_px), strict=True):
        beyond = paths.real & (values >= size)
        if beyond.any() and at_edge == "error":
            raise InputError(
                f"{paths.name_of(*np.argwhere(beyond)[0])}: {axis} lies exactly on the edge of the picture, which is "
                f"no pixel's in pysaliency; put {beyond.sum():,} of {paths.fixations:,} fixations just inside with "
                "at_edge='move'."
            )
        inside.append(np.where(beyond, np.nextafter(size, 0), values))
    return inside[0], inside[1]


def _from_top_deg(paths: ScanPaths) -> np.ndarray:
    return paths.y_deg if paths.extent.origin == "top" else paths.extent.height_deg - paths.y_deg


def _lost_in_pixels(paths: ScanPaths, frame: PixelFrame, y_px: np.ndarray, x_px: np.ndarray) -> dict[str, np.ndarray]:
    """The positions in degrees, if they are not those that the pixels give to the last digit."""
    exact = {"y_deg": _from_top_deg(paths), "x_deg": paths.x_deg}
    given = frame.to_degrees(y_px, x_px)
    same = all(np.array_equal(*both, equal_nan=True) for both in zip(exact.values(), given, strict=True))
    return {} if same else exact


def _indices(paths: ScanPaths, pictures: Sequence[Any]) -> np.ndarray:
    place = {picture: index for index, picture in enumerate(pictures)}
    if len(place) < len(pictures):
        raise InputError("pictures names a stimulus twice; give each its own name.")
    unknown = [picture for picture in paths.pictures if picture not in place]
    if unknown:
        raise InputError(
            f"picture {some_of(unknown)} not among pictures; name all of pysaliency's stimuli, in their order."
        )
    return np.array([place[picture] for picture in paths.picture.tolist()], dtype=np.int64)


def _attributes(
    paths: ScanPaths, stimulus: np.ndarray, columns: list[str]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Attributes of the paths, and of their fixations."""
    by_path: dict[str, np.ndarray] = {"subject": paths.observer}
    if paths.observer.dtype.kind not in "iu" or (paths.observer < 0).any():
        by_path = {"subject": np.unique(paths.observer, return_inverse=True)[1], "subject_name": paths.observer}
    keys = pd.DataFrame({"observer": paths.observer, "picture": paths.picture})
    running = keys.groupby(["observer", "picture"]).cumcount() + 1
    for name, values, known in (("stimulus_name", paths.picture, stimulus), ("trial", paths.trial, running)):
        if values.tolist() != known.tolist():
            by_path[name] = values
    places = np.broadcast_to(np.arange(paths.x_deg.shape[1]), paths.x_deg.shape)
    by_fixation: dict[str, np.ndarray] = {"ts": np.where(paths.real, places, np.nan)}
    if (paths.fixation != places + 1)[paths.real].any():
        by_fixation["fixation_number"] = paths.fixation
    if paths.duration_s is not None:
        by_fixation["durations"] = paths.duration_s
    for name in columns:
        if name not in paths.columns:
            raise InputError(f"column {name!r} is not in the paths; they have {some_of(list(paths.columns), 12)}.")
        values = paths.columns[name]
        if name in TAKEN or name.endswith("_hist") or name in ("", ".") or "/" in name:
            raise InputError(
                f"column {name!r} has a name that pysaliency needs; rename it, or leave it out: columns=[]."
            )
        if values.dtype.kind in "iufb":
            by_fixation[name] = values
        elif name != "ts" and (texts := _one_text_a_path(paths, values)) is not None:
            by_path[name] = texts
        else:
            raise InputError(
                f"column {name!r} is neither numbers nor text that is the same along each path, and pysaliency holds "
                "no other; leave it out: columns=[...]."
            )
    return by_path, by_fixation


def _one_text_a_path(paths: ScanPaths, values: np.ndarray) -> np.ndarray | None:
    """The text of each path, or None where it is not the same along all of a path, or no text."""
    rows = [row[:length].tolist() for row, length in zip(values, paths.length, strict=True)]
    same = all(isinstance(item, str) and item == row[0] for row in rows for item in row)
    return np.array([row[0] for row in rows], dtype=object) if same else None


def _write_notes(group: h5py.Group, **notes: Any) -> None:
    for name, value in notes.items():
        group.attrs[name] = np.bytes_(value if isinstance(value, str) else json.dumps(value))


def _write_arrays(group: h5py.Group, arrays: Mapping[str, np.ndarray]) -> None:
    for name, values in arrays.items():
        text = values.dtype.kind in "OU"
        try:
            group.create_dataset(name, data=values.astype(object) if text else values, dtype=_TEXT if text else None)
        except (ValueError, TypeError) as error:
            raise InputError(f"{name!r} cannot be written to HDF5 ({error}); change it, or leave it out.") from error

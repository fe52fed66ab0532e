"""Scan paths from the HDF5 files of pysaliency; `pysaliency_writing.py` writes such files.

Positions there are pixels of the picture itself from its top left corner, pixel j covering [j, j + 1); times are
seconds; the pictures are in another file and known by their index n, the stimulus. Read are `Scanpaths` 1.0,
`ScanpathFixations` 1.0, `FixationTrains` 1.0 to 1.3, and `Fixations` 1.0 to 1.2 where they are whole paths: every
fixation stands right behind the one that its history ends with. Fixations without their paths are refused.

What pysaliency has no place for are attributes with names of our own: `subject_name`, `stimulus_name` and `trial` of a
path, `fixation_number`, `x_deg`, `y_deg` (from the upper edge) and `forced` of a fixation. They are written where they
say more than indices and pixels do.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd

from foveate.data.columns import LARGEST_WHOLE_NUMBER, plain, shown
from foveate.data.grid import PixelFrame
from foveate.data.readers.reports import ReadReport
from foveate.data.readers.sources import Source
from foveate.data.readers.table import read_table
from foveate.data.scanpaths import ScanPaths
from foveate.data.texts import reason_of
from foveate.errors import InputError, some_of

VERSIONS = {
    "Scanpaths": ("1.0",),
    "ScanpathFixations": ("1.0",),
    "FixationTrains": ("1.0", "1.1", "1.2", "1.3"),
    "Fixations": ("1.0", "1.1", "1.2"),
}

# Attributes of a path that name it; the others become columns.
NAMING = ("subject", "subject_name", "stimulus_name", "trial")

# Attributes of a fixation that hold its position where pixels lose its last digit: they must say the same but for that.
DEGREES = ("y_deg", "x_deg")
SAME_POSITION = 1e-12  # of the picture's size

# No compression makes numbers take less than this share of their room: a file that claims more is damaged.
MOST_PER_BYTE = 1100


def read_pysaliency(
    file: str | Path,
    *,
    frame: PixelFrame,
    pictures: Sequence[Any] | None = None,
    only: Collection[Any] | None = None,
    duration: str | None = "durations",
    duration_unit: str = "s",
    forced: str | None = None,
    outside: str = "error",
    missing: str = "error",
    shortest: int = 1,
) -> tuple[ScanPaths, ReadReport]:
    """Scan paths from a file that pysaliency or `write_pysaliency` wrote, and a report.

    `frame` is the size of all pictures, PixelFrame(width_px, height_px, px_per_degree, origin="top"); where they are
    not of one size, read the pictures of one size with `only`. `pictures` names the stimuli in their order; without it
    a picture has the name that the file gives it, or else its index. `duration` names the attribute with the durations
    (None: there is none), `forced` one that flags forced fixations with 1 or true. Every other attribute becomes a
    column, that of a path the same for all of its fixations. `outside`, `missing` and `shortest` as in `read_table`.
    """
    check_frame(frame)
    file = Path(file)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file; check the name and the folder.")
    try:
        with h5py.File(file, "r") as opened:
            held = _held(opened)
    # A damaged file can fail in every way there is.
    except Exception as error:
        raise InputError(
            f"{file.name} cannot be read as scan paths of pysaliency ({reason_of(error)}); write it anew with "
            "pysaliency."
        ) from error
    observer, picture, trial = _names_of_paths(file.name, held, pictures)
    roles = {"observer": observer, "picture": picture, "trial": trial}
    table = {name: np.repeat(values, held.length) for name, values in roles.items()}
    table |= {"fixation": held.numbers, "x": held.x_px, "y": held.y_px}
    extras = _columns(held)
    for name in (duration, forced):
        if name is not None and name not in extras:
            raise InputError(
                f"{file.name}: no attribute {name!r}; it has {some_of([plain(it) for it in extras], 12) or 'none'}: "
                "name the right one, or say None if there is none."
            )
    own = {}  # an attribute of the name that the flags get is kept by another
    if forced is not None:
        flags = _flags(file.name, forced, extras.pop(forced))
        own = {"forced_read": extras.pop("forced")} if "forced" in extras else {}
        extras |= {"forced": flags} | own
    # One that holds true and false itself, and not numbers, is the one that `write_pysaliency` writes.
    flagged = {name for name, values in extras.items() if values.dtype == bool}
    exact = _same_positions(held, extras, frame)
    renamed = {name: f"{name}_read" for name in extras if name in table}
    renamed |= {"forced": "forced_read"} if own else {}
    table |= {renamed.get(name, name) if name in table else name: values for name, values in extras.items()}
    wanted, whole = _wanted(file.name, picture, only), pd.DataFrame(table)
    kept = np.flatnonzero(np.repeat(wanted, held.length))
    paths, report = read_table(
        Source(file.name, whole).taken(kept, whole.iloc[kept]),
        frame=frame,
        position_unit="px",
        duration=duration,
        duration_unit=None if duration is None else duration_unit,
        trial="trial",
        forced="forced" if "forced" in flagged else None,
        outside=outside,
        missing=missing,
        shortest=shortest,
    )
    empty = (
        f"observer {plain(observer[path])}, picture {shown(picture[path : path + 1].tolist()[0])} (empty in the file)"
        for path in np.flatnonzero(wanted & (held.length == 0))
    )
    renamed |= report.renamed
    if exact:
        paths = _with_exact(paths, {name: renamed.pop(name) for name in DEGREES})
    return paths, replace(report, lost_paths=(*report.lost_paths, *empty), renamed=renamed)


def check_frame(frame: PixelFrame) -> None:
    """Refuse a frame that is not the picture itself, from its top left corner."""
    if frame.origin != "top" or frame.left_px != 0 or frame.near_px != 0:
        raise InputError(
            "positions in pysaliency are pixels of the picture from its top left corner; give frame=PixelFrame("
            'width_px, height_px, px_per_degree, origin="top") without left_px and near_px.'
        )


# --- reading: what goes wrong here is a damaged file, and said so above ----------------------------------------------


@dataclass(frozen=True, eq=False)
class _Held:
    """What a file holds: one entry a path, and one a fixation, path after path."""

    stimulus: np.ndarray
    length: np.ndarray
    x_px: np.ndarray
    y_px: np.ndarray
    by_path: Mapping[str, np.ndarray]
    by_fixation: Mapping[str, np.ndarray]

    @property
    def numbers(self) -> np.ndarray:
        """The fixations' numbers: their places in their paths, from 1, if the file does not say."""
        places = np.arange(1, len(self.x_px) + 1) - np.repeat(np.cumsum(self.length) - self.length, self.length)
        return self.by_fixation.get("fixation_number", places)


def _held(group: h5py.Group) -> _Held:
    kind, version = _note(group, "type"), _note(group, "version")
    if kind not in VERSIONS:
        raise ValueError(f"it holds {kind!r}, not {', '.join(VERSIONS)}")
    if version not in VERSIONS[kind]:
        raise ValueError(f"it holds {kind} of version {version!r}, not {', '.join(VERSIONS[kind])}")
    if kind == "ScanpathFixations":
        return _held(_group(group, "scanpaths"))
    if kind == "Scanpaths":
        x, y = _numbers(group, "xs", 2), _numbers(group, "ys", 2)
        by_path = _attributes_in(group, "scanpath_attributes", x.shape[:1])
        by_fixation = _attributes_in(group, "fixation_attributes", x.shape)
        return _padded(_whole(group, "n"), _whole(group, "length"), x, y, by_path, by_fixation)
    return _trains(group, version) if kind == "FixationTrains" else _fixations(group, version)


def _trains(group: h5py.Group, version: str) -> _Held:
    x, y, times = (_numbers(group, f"train_{name}s", 2) for name in "xyt")
    # Before 1.3 a path ends where nothing but NaN follows.
    ends = np.where(np.isnan(x), 0, np.arange(1, x.shape[1] + 1)).max(axis=1, initial=0)
    by_path = _attributes_in(group, "scanpath_attributes", x.shape[:1]) if version >= "1.1" else {}
    by_fixation = _attributes_in(group, "scanpath_fixation_attributes", x.shape) if version >= "1.2" else {}
    held = _padded(
        _whole(group, "train_ns"),
        _whole(group, "train_lengths") if version >= "1.3" else ends,
        x,
        y,
        {"subject": _array(group, "train_subjects", x.shape[:1]), **by_path},
        {"ts": times, **by_fixation},
    )
    return replace(held, by_fixation={**held.by_fixation, **_loose_attributes(group, held.x_px.shape)})


def _padded(
    stimulus: np.ndarray,
    length: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    by_path: Mapping[str, np.ndarray],
    by_fixation: Mapping[str, np.ndarray],
) -> _Held:
    """Paths in padded arrays, path after path."""
    paths, longest = x.shape
    if not (y.shape == x.shape and stimulus.shape == length.shape == (paths,) and length.max(initial=0) <= longest):
        raise ValueError("its arrays do not fit each other")
    real = np.arange(longest) < length[:, None]
    flat = {name: values[real] for name, values in by_fixation.items()}
    return _Held(stimulus, length, x[real], y[real], by_path, flat)


def _fixations(group: h5py.Group, version: str) -> _Held:
    """Paths from single fixations with their histories, if each stands right behind the one before it."""
    x, y, times, x_before, y_before = (_numbers(group, name) for name in ("x", "y", "t", "x_hist", "y_hist"))
    stimulus, subject = _whole(group, "n"), _array(group, "subject" if version >= "1.2" else "subjects", x.shape)
    before = _whole(group, "lengths") if version >= "1.1" else (~np.isnan(x_before)).sum(axis=1)
    rows, room = len(x), min(x_before.shape[1], y_before.shape[1])
    lists = (y, times, stimulus, before)
    if not (all(values.shape == (rows,) for values in lists) and len(x_before) == len(y_before) == rows):
        raise ValueError("its arrays do not fit each other")
    if not 0 < before.max(initial=0) <= room:
        raise ValueError("it holds single fixations without histories, so that their order is not known")
    row, last = np.arange(rows), np.maximum(before - 1, 0)
    joined = (row > 0) & (before == np.roll(before, 1) + 1)
    joined &= (stimulus == np.roll(stimulus, 1)) & (subject == np.roll(subject, 1))
    joined &= (x_before[row, last] == np.roll(x, 1)) & (y_before[row, last] == np.roll(y, 1))
    apart = np.flatnonzero((before > 0) & ~joined)
    if len(apart):
        raise ValueError(
            f"its fixation {apart[0] + 1} does not stand behind those of its history: rebuild the paths with "
            "pysaliency's scanpaths_from_fixations"
        )
    first = np.flatnonzero(before == 0)
    by_fixation = {"ts": times, **_loose_attributes(group, x.shape)}
    by_path = {name: by_fixation.pop(name)[first] for name in NAMING if name in by_fixation}
    length = np.diff(first, append=rows)
    return _Held(stimulus[first], length, x, y, {"subject": subject[first], **by_path}, by_fixation)


def _loose_attributes(group: h5py.Group, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Attributes of fixations that stand beside the arrays, but for those that the paths say already."""
    known = ("subject", "subjects", "scanpath_index")
    names = [name for name in _listed(group) if name not in known and not name.endswith("_hist")]
    return {name: _array(group, name, shape) for name in names}


def _attributes_in(group: h5py.Group, name: str, shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    part = _group(group, name)
    return {name: _array(part, name, shape) for name in _listed(part)}


def _group(group: h5py.Group, name: str) -> h5py.Group:
    part = group.get(name)
    if not isinstance(part, h5py.Group):
        raise ValueError(f"it has no group {name!r}")
    return part


def _note(group: h5py.Group, name: str) -> str:
    value = group.attrs.get(name)
    if not isinstance(value, str | bytes):
        raise ValueError(f"it has no text attribute {name!r}")
    return value if isinstance(value, str) else value.decode()


def _listed(group: h5py.Group) -> list[str]:
    names = json.loads(_note(group, "__attributes__"))
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("'__attributes__' is not a list of names")
    return names


def _array(group: h5py.Group, name: str, shape: tuple[int, ...] = ()) -> np.ndarray:
    """A dataset of numbers or text whose first axes have this shape."""
    data = group.get(name)
    if not isinstance(data, h5py.Dataset) or not data.shape:
        raise ValueError(f"it has no dataset {name!r}")
    if data.shape[: len(shape)] != shape:
        raise ValueError(f"the dataset {name!r} has the shape {data.shape}, not {shape}")
    if data.nbytes > MOST_PER_BYTE * group.file.id.get_filesize():
        raise ValueError(f"the dataset {name!r} claims to be larger than the file")
    if h5py.check_string_dtype(data.dtype):
        return np.asarray(data.asstr()[...], dtype=object)
    if data.dtype.kind not in "iufb":
        raise ValueError(f"the dataset {name!r} holds {data.dtype}, not numbers or text")
    return data[...]


def _numbers(group: h5py.Group, name: str, axes: int | None = None) -> np.ndarray:
    values = _array(group, name)
    if values.dtype.kind not in "iuf" or values.ndim != (axes or (2 if name.endswith("_hist") else 1)):
        raise ValueError(f"the dataset {name!r} is not numbers of the right shape")
    return values.astype(np.float64)


def _whole(group: h5py.Group, name: str) -> np.ndarray:
    values = _numbers(group, name, 1)
    if not ((values >= 0) & (values <= LARGEST_WHOLE_NUMBER) & (values == np.round(values))).all():
        raise ValueError(f"the dataset {name!r} must hold whole numbers, zero or more")
    return values.astype(np.int64)


# --- reading: from what the file holds to a table --------------------------------------------------------------------


def _names_of_paths(
    name: str, held: _Held, pictures: Sequence[Any] | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observer, picture and trial of every path."""
    lists = {key: values for key, values in held.by_path.items() if values.ndim == 1}
    observer, named = lists.get("subject_name", lists.get("subject")), lists.get("stimulus_name")
    if observer is None:
        raise InputError(
            f"{name}: no path attribute 'subject'; it has {some_of(list(held.by_path), 12) or 'none'}: add it in "
            "pysaliency, so that observers can be told apart."
        )
    picture = held.stimulus if named is None else named
    if pictures is not None:
        if held.stimulus.max(initial=-1) >= len(pictures):
            raise InputError(
                f"{name}: there are stimuli up to index {held.stimulus.max()}, but pictures names {len(pictures)}; "
                "name all stimuli in their order."
            )
        picture = np.array([pictures[index] for index in held.stimulus.tolist()] or [0])[: len(held.stimulus)]
        known = picture if named is None else named
        for stimulus, ours, theirs in zip(held.stimulus, picture.tolist(), known.tolist(), strict=True):
            if ours != theirs:
                raise InputError(
                    f"{name}: stimulus {stimulus} is {shown(theirs)} in the file, but {shown(ours)} in pictures; leave "
                    "pictures out, or name the stimuli in their order."
                )
    keys = pd.DataFrame({"observer": observer, "picture": picture})
    running = keys.groupby(["observer", "picture"], dropna=False).cumcount().to_numpy() + 1
    return observer, picture, lists.setdefault("trial", running)


def _columns(held: _Held) -> dict[str, np.ndarray]:
    """All other attributes, one entry a fixation; those with several numbers an entry as several columns."""
    by_path = {name: np.repeat(values, held.length, axis=0) for name, values in held.by_path.items()}
    columns = {}
    for name, values in (by_path | dict(held.by_fixation)).items():
        for index, column in enumerate(values.reshape(len(values), math.prod(values.shape[1:])).T):
            columns[name if values.ndim == 1 else f"{name}_{index}"] = column
    return {name: values for name, values in columns.items() if name not in (*NAMING, "fixation_number")}


def _same_positions(held: _Held, extras: Mapping[str, np.ndarray], frame: PixelFrame) -> bool:
    """Whether there are positions in degrees, which differ from those in pixels by rounding alone."""
    if any(name not in extras or extras[name].dtype.kind != "f" for name in DEGREES):
        return False
    size = frame.extent.height_deg, frame.extent.width_deg
    by_pixels = frame.to_degrees(held.y_px, held.x_px)
    return all(
        np.allclose(extras[name], values, rtol=0, atol=SAME_POSITION * most, equal_nan=True)
        for name, values, most in zip(DEGREES, by_pixels, size, strict=True)
    )


def _with_exact(paths: ScanPaths, columns: Mapping[str, str]) -> ScanPaths:
    """The paths with the positions in these columns, but for those that rounding puts outside the picture."""
    exact = {name: paths.columns[column] for name, column in columns.items()}
    inside = paths.extent.contains(exact["y_deg"], exact["x_deg"])
    others = {name: values for name, values in paths.columns.items() if name not in columns.values()}
    positions = {name: np.where(inside, values, getattr(paths, name)) for name, values in exact.items()}
    return replace(paths, columns=others, **positions)


def _flags(file: str, name: str, values: np.ndarray) -> np.ndarray:
    if values.dtype.kind not in "iufb" or not np.isin(values, (0, 1)).all():
        raise InputError(f"{file}: the attribute {name!r} must hold 0 and 1 to flag forced fixations; name another.")
    return values.astype(bool)


def _wanted(name: str, picture: np.ndarray, only: Collection[Any] | None) -> np.ndarray:
    if only is None:
        return np.ones(len(picture), dtype=bool)
    if isinstance(only, str):
        raise InputError(f"only = {only!r}: give a list, [{only!r}].")
    names = set(picture.tolist())
    unknown = [item for item in only if item not in names]
    if unknown:
        raise InputError(f"{name}: no path on picture {some_of(unknown)}; there are {some_of(sorted(names), 10)}.")
    return np.isin(picture, np.array(list(only), dtype=picture.dtype))

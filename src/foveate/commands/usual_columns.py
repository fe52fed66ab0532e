"""Columns of a table of fixations, found by the names that people and programs usually give them.

Among those are the reports of EyeLink's Data Viewer, of Tobii's and of SMI's programs. A name is compared without its
case, its signs and a unit in brackets: 'Fixation Position X [px]' is fixation_position_x.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foveate.errors import InputError, instead_of, some_of

if TYPE_CHECKING:
    import pandas as pd

_PLACES = (
    *("{}", "fix_{}", "fixation_{}", "{}_px", "{}_deg", "current_fix_{}", "{}pos", "{}_position", "pos_{}"),
    *(
        "position_{}",
        "fixation_position_{}",
        "fixation_point_{}",
        "fix_pos_{}",
        "fixation_pos_{}",
        "mean_{}",
        "{}_mean",
    ),
    *("avg_{}", "{}_avg", "average_{}", "mean_gaze_{}", "gaze_{}", "{}_gaze", "{}_coord", "{}_coordinate", "coord_{}"),
    *("location_{}", "centroid_{}", "a{}p", "fix_{}_px", "fix_{}_deg", "{}_fix", "{}_fixation"),
)

# For every role the usual names, in the order in which they are sought.
USUAL: dict[str, tuple[str, ...]] = {
    "observer": (
        *("observer", "observer_id", "subject", "subject_id", "subject_nr", "subject_no", "subject_number"),
        *("subject_name", "subject_code", "participant", "participant_id", "participant_nr", "participant_no"),
        *("participant_number", "participant_name", "participant_code", "ppt", "pp", "ppid", "pid", "subj", "subj_id"),
        *("subj_nr", "subj_no", "sub", "sub_id", "sid", "vp", "vpn", "vp_nr", "vp_code", "proband", "person", "viewer"),
        *("recording_session_label", "recording_name", "recording", "data_file", "user", "id"),
    ),
    "picture": (
        *("picture", "picture_id", "picture_name", "picture_file", "picture_nr", "pic", "pic_id", "image", "image_id"),
        *("image_name", "image_file", "image_filename", "image_nr", "image_no", "image_number", "img", "img_id"),
        *("img_name", "img_file", "stimulus", "stimulus_id", "stimulus_name", "stimulus_file", "stim", "stim_id"),
        *("stim_name", "stim_file", "scene", "scene_id", "scene_name", "photo", "media", "media_name"),
        *("presented_media_name", "presented_stimulus_name", "filename"),
    ),
    "fixation": (
        *("fixation", "fixation_number", "fixation_index", "fixation_nr", "fixation_no", "fixation_num", "fixation_id"),
        *(
            "fixation_order",
            "fixation_count",
            "fix",
            "fix_number",
            "fix_index",
            "fix_nr",
            "fix_no",
            "fix_num",
            "fix_id",
        ),
        *("fix_order", "fix_count", "nfix", "current_fix_index", "event_index", "index", "number", "nr", "order"),
    ),
    "x": tuple(name.format("x") for name in _PLACES),
    "y": tuple(name.format("y") for name in _PLACES),
    "duration": (
        *("duration", "duration_ms", "duration_s", "fixation_duration", "fixation_duration_ms"),
        *("fixation_duration_s", "fix_duration", "fix_duration_ms", "fix_dur", "fix_dur_ms", "fdur", "dur", "dur_ms"),
        *("dur_s", "current_fix_duration", "event_duration", "gaze_event_duration"),
    ),
    "trial": (
        *("trial", "trial_id", "trial_index", "trial_nr", "trial_no", "trial_num", "trial_number", "trial_count"),
        *("trial_label", "block"),
    ),
    "forced": ("forced", "forced_fixation", "is_forced", "fixation_forced", "fix_forced"),
}
NEEDED = ("observer", "picture", "fixation", "x", "y")

# Names of flags that may mean forced fixations, though only their owner can tell.
LIKE_FORCED = (
    *("central", "is_central", "central_fixation", "centre", "is_centre", "center", "is_center", "initial"),
    *(
        "is_initial",
        "initial_fixation",
        "first",
        "is_first",
        "first_fixation",
        "start",
        "is_start",
        "cross",
        "is_cross",
    ),
    *("on_cross", "fixation_cross", "cued", "is_cued", "instructed", "before_picture", "before_onset", "pretrial"),
)


def found_columns(present: Sequence[str], said: Mapping[str, str]) -> dict[str, str]:
    """The column of every role, in the roles' order: what is said, or one with a usual name that is nothing else's."""
    free: dict[str, str] = {}
    for name in present:
        if name not in said.values():
            free.setdefault(_plain(name), name)
    found = {}
    for role, usual in USUAL.items():
        names = [free[key] for key in map(_plain, usual) if key in free]
        if role in said:
            found[role] = said[role]
        elif names:
            found[role] = names[0]
    return found


def like_forced(table: "pd.DataFrame", taken: Sequence[str]) -> list[str]:
    """Columns that look like flags of forced fixations by their names, and are flags by their values."""
    likely = {_plain(name) for name in LIKE_FORCED}
    names = [str(name) for name in table.columns]
    return [name for name in names if name not in taken and _plain(name) in likely and _is_flag(table, name)]


def column_of(answer: str, present: Sequence[str]) -> str:
    """The column that is meant, in any case; a name that the table does not have is an error."""
    from foveate.data.columns import plain

    named = [name for name in present if answer in (name, plain(name))]
    named = named or [name for name in present if name.lower() == answer.strip().lower()]
    if len(named) != 1:
        names = [plain(name) for name in present]
        near = instead_of(answer, names)
        raise InputError(
            f"there is no such column; {near if near.endswith('?') else f'it is one of {some_of(names, 20)}.'}"
        )
    return named[0]


def _plain(name: str) -> str:
    """A name without its case, its signs and what stands in brackets."""
    without = re.sub(r"\(.*?\)|\[.*?\]", "", name)
    return re.sub(r"[\W_]+", "", without.lower()) or name


def _is_flag(table: Any, name: str) -> bool:
    """Whether a column has nothing but 0 and 1, or false and true, and both of them."""
    from foveate.data.columns import flags

    try:
        values = flags(table, name)
    except InputError:
        return False
    return bool(values.any() and not values.all())

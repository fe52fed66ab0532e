"""The settings file that `foveate init` writes, with comments, as a person would write it."""

from typing import TYPE_CHECKING, Any

from foveate.commands.screens import Screen
from foveate.commands.usual_columns import like_forced

if TYPE_CHECKING:
    import pandas as pd


def settings_text(
    file: str, columns: dict[str, str], table: "pd.DataFrame", said: dict[str, Any], screen: Screen | None
) -> str:
    """The settings of the table in `file`; `said` has units and sizes, `screen` where px_per_degree is from."""
    from foveate.data.columns import plain

    unit, others = said["position_unit"], [str(it) for it in table.columns if str(it) not in columns.values()]
    lines = [
        "# Settings of a study for foveate; docs/data.md explains every one.",
        "",
        "[data]",
        f"file = {_quoted(file)}",
        f"position_unit = {_quoted(unit)}",
    ]
    if said["duration_unit"] is not None:
        lines.append(f"duration_unit = {_quoted(said['duration_unit'])}")
    lines += [
        'outside = "error"  # fixations outside the picture: "error", or "drop"',
        'missing = "error"  # rows without a position: "error", or "drop"',
        "",
        "[columns]  # what each is called in the table",
        *(f"{role} = {_quoted(name)}" for role, name in columns.items()),
    ]
    if "forced" not in columns:
        lines += [
            f"# forced = {_quoted(name)}  # take this in if 1 flags fixations that nobody chose to make: they "
            "condition later ones, and are not scored"
            for name in like_forced(table, list(columns.values()))
        ]
    if others:
        lines.append(f"# kept as they are: {', '.join(map(plain, others))}")
    lines += [
        "",
        "[picture]",
        f"width_{unit} = {number_text(said['width'])}",
        f"height_{unit} = {number_text(said['height'])}",
    ]
    if unit == "px":
        lines += [
            f"px_per_degree = {number_text(said['px_per_degree'])}" if screen is None else f"{screen}",
            "left_px = 0  # where the picture begins on the screen, if positions are the screen's",
            "near_px = 0",
        ]
    lines += [
        f"origin = {_quoted(said['origin'])}",
        '# folder = "pictures"  # the pictures themselves, each named as in the table: backgrounds of figures',
        "",
        "[maps]",
        'made_from = "fixations"  # or "images", with folder = "maps": greyscale, each named as its picture',
        'bandwidth_deg = "best"   # or a number: how far fixations are smoothed',
        "leave_one_out = true     # an observer's maps without their own fixations",
        "uniform_share = 0.01",
        "",
        "[study]  # defaults of the command line's options",
        'models = ["saliency_baseline", "full", "local_choice", "fixed_choice", "local_saliency"]',
        "folds = 5",
        "seed = 1",
    ]
    return "\n".join(lines) + "\n"


def number_text(value: float) -> str:
    """All digits of a number, and no more."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _quoted(text: str) -> str:
    """Text as TOML writes it; JSON's way of quoting is a part of TOML's."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

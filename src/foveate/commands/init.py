"""`foveate init`: a settings file for a table of fixations, from what its header says and what its user says."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from foveate.commands.reading import SETTINGS_ENDING
from foveate.errors import InputError, some_of

HELP = (
    "Write a settings file for a table of fixations: columns are found by their usual names, everything else is asked "
    "for (or given as options), and nothing is guessed that a table cannot tell, such as units and the picture's size."
)
SHORT_HELP = "Write a settings file for a table of fixations."
EXAMPLE = (
    "Example: foveate init fixations.csv --position-unit px --duration-unit ms --width 1280 --height 1024 "
    "--px-per-degree 40"
)

# Usual names of columns, in the order in which they are sought; written in any case.
USUAL: dict[str, tuple[str, ...]] = {
    "observer": ("observer", "subject", "subject_id", "participant", "participant_id", "subj", "vp", "sub", "id"),
    "picture": ("picture", "image", "image_id", "stimulus", "stimulus_id", "img", "scene", "filename"),
    "fixation": ("fixation", "fixation_number", "fixation_index", "fix", "index", "number", "fixnr", "nfix", "order"),
    "x": ("x", "fix_x", "fixation_x", "x_px", "x_deg", "current_fix_x", "xpos", "mean_x"),
    "y": ("y", "fix_y", "fixation_y", "y_px", "y_deg", "current_fix_y", "ypos", "mean_y"),
    "duration": ("duration", "duration_ms", "duration_s", "fixation_duration", "fixdur", "dur", "current_fix_duration"),
    "trial": ("trial", "trial_id", "trial_index", "block"),
    "forced": ("forced", "forced_fixation", "is_forced"),
}
NEEDED = ("observer", "picture", "fixation", "x", "y")


def init(
    table: Annotated[
        Path, typer.Argument(help="A table: .csv, .tsv, .parquet or .feather.", metavar="TABLE", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The settings file; one that is there is not written over.")] = Path(
        f"study{SETTINGS_ENDING}"
    ),
    position_unit: Annotated[str | None, typer.Option(help="Unit of positions: px or deg.", show_default=False)] = None,
    duration_unit: Annotated[str | None, typer.Option(help="Unit of durations: ms or s.", show_default=False)] = None,
    width: Annotated[
        float | None, typer.Option(help="The picture's width, in the unit of positions.", show_default=False)
    ] = None,
    height: Annotated[float | None, typer.Option(help="The picture's height, likewise.", show_default=False)] = None,
    px_per_degree: Annotated[
        float | None, typer.Option(help="Pixels per degree of visual angle.", show_default=False)
    ] = None,
    origin: Annotated[
        str | None, typer.Option(help="Where y = 0 lies: top or bottom of the picture.", show_default=False)
    ] = None,
) -> None:
    """Look at the header, ask for the rest, write, say how to go on."""
    from foveate.data.project import Project
    from foveate.data.readers.sources import load
    from foveate.inference.files import write_whole

    if out.suffix != SETTINGS_ENDING:
        raise InputError(f"--out {out}: the name must end in {SETTINGS_ENDING}.")
    if out.exists():
        raise InputError(f"{out} is there already and was not written over: change it by hand, or give another --out.")
    present = [str(name) for name in load(table, ()).table.columns]
    columns = _columns(present, table.name)
    said = {"position_unit": position_unit, "duration_unit": duration_unit, "origin": origin}
    said |= {"width": width, "height": height, "px_per_degree": px_per_degree}
    text = _text(_beside(table, out), columns, present, _asked(said, "duration" in columns))
    try:
        write_whole(out, lambda file: file.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error.strerror}); give another --out.") from error
    except UnicodeEncodeError as error:  # the name of a file may be bytes that are no text
        raise InputError(f"{table.name!a}: the file's name is not UTF-8 text; rename it.") from error
    try:
        Project.read(out)
    except InputError:  # what cannot be read is not left there, where it would be in the way of the next attempt
        out.unlink()
        raise
    print(f"{out} was written; look at it, then: foveate check {out} --figure check.png")


def _beside(table: Path, out: Path) -> str:
    """The table as seen from the settings file."""
    import os

    return Path(os.path.relpath(table.resolve(), out.resolve().parent)).as_posix()


def _columns(present: Sequence[str], table: str) -> dict[str, str]:
    """The column of every role that has one of its usual names."""
    by_name = {name.strip().lower().replace(" ", "_"): name for name in present}
    found = {
        role: next(by_name[name] for name in names if name in by_name)
        for role, names in USUAL.items()
        if any(name in by_name for name in names)
    }
    missing = [role for role in NEEDED if role not in found]
    if missing:
        raise InputError(
            f"{table}: no column has a usual name of {some_of(missing)}; it has {some_of(list(present), 12)}: rename "
            f"them to {some_of(missing)}, or write the settings by hand (docs/data.md)."
        )
    return found


def _asked(said: dict[str, Any], with_duration: bool) -> dict[str, Any]:
    """What the options say, and for the rest what the user answers; without a terminal, options must say it all."""
    words = {
        "position_unit": "Unit of x and y (px or deg)",
        "duration_unit": "Unit of durations (ms or s)",
        "width": "Width of the picture in that unit",
        "height": "Height of the picture in that unit",
        "px_per_degree": "Pixels per degree of visual angle",
        "origin": "Where is y = 0, at the top or at the bottom of the picture",
    }
    known = dict(said)
    for name, question in words.items():
        skipped = (name == "duration_unit" and not with_duration) or (
            name == "px_per_degree" and known["position_unit"] == "deg"
        )
        if skipped:
            known[name] = None
        elif known[name] is None:
            if not sys.stdin.isatty():
                option = f"--{name.replace('_', '-')}"
                raise InputError(f"{option} missing: {question[0].lower()}{question[1:]}? A table cannot tell.")
            known[name] = typer.prompt(question, type=float if name in ("width", "height", "px_per_degree") else str)
    for name, allowed in (
        ("position_unit", ("px", "deg")),
        ("duration_unit", ("ms", "s")),
        ("origin", ("top", "bottom")),
    ):
        if known[name] is not None and known[name] not in allowed:
            raise InputError(f"--{name.replace('_', '-')} {known[name]}: say {' or '.join(allowed)}.")
    return known


def _text(file: str, columns: dict[str, str], present: Sequence[str], said: dict[str, Any]) -> str:
    """The settings with comments, as a person would write them."""
    from foveate.data.columns import plain

    unit, others = said["position_unit"], [name for name in present if name not in columns.values()]
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
    if others:
        lines.append(f"# kept as they are: {', '.join(map(plain, others))}")
    lines += ["", "[picture]", f"width_{unit} = {_number(said['width'])}", f"height_{unit} = {_number(said['height'])}"]
    if unit == "px":
        lines += [
            f"px_per_degree = {_number(said['px_per_degree'])}",
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


def _number(value: float) -> str:
    """All digits of a number, and no more."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def _quoted(text: str) -> str:
    """Text as TOML writes it; JSON's way of quoting is a part of TOML's."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

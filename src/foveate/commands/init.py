"""`foveate init`: a settings file for a table of fixations, from what its header says and what its user says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, final

import typer

from foveate.commands.options import grouped
from foveate.commands.questions import above_zero, answer_to, can_ask, one_of, or_nothing, said_by
from foveate.commands.reading import SETTINGS_ENDING
from foveate.commands.screens import Screen
from foveate.commands.settings_text import number_text, settings_text
from foveate.commands.usual_columns import NEEDED, column_of, found_columns
from foveate.errors import InputError, some_of

HELP = (
    "Write a settings file for a table of fixations: columns are found by their usual names, everything else is asked "
    "for (or given as options), and nothing is guessed that a table cannot tell, such as units and the picture's size."
)
SHORT_HELP = "Write a settings file for a table of fixations."
EXAMPLE = (
    "Example: foveate init fixations.csv --picture stim_no --position-unit px --duration-unit ms --width 1280 "
    "--height 1024 --px-per-degree 40"
)


@final
@dataclass(frozen=True)
class Named:
    """Columns of the table that its user names."""

    observer: Annotated[
        str | None, typer.Option(help="Column that says who looked.", metavar="COLUMN", show_default=False)
    ] = None
    picture: Annotated[
        str | None, typer.Option(help="Column that says at which picture.", metavar="COLUMN", show_default=False)
    ] = None
    fixation: Annotated[
        str | None,
        typer.Option(help="Column with the number of the fixation in its path.", metavar="COLUMN", show_default=False),
    ] = None
    x: Annotated[str | None, typer.Option("--x", help="Column with x.", metavar="COLUMN", show_default=False)] = None
    y: Annotated[str | None, typer.Option("--y", help="Column with y.", metavar="COLUMN", show_default=False)] = None
    duration: Annotated[
        str | None, typer.Option(help="Column with durations, if there is one.", metavar="COLUMN", show_default=False)
    ] = None
    trial: Annotated[
        str | None,
        typer.Option(
            help="Column that tells trials apart, if somebody saw a picture more than once.",
            metavar="COLUMN",
            show_default=False,
        ),
    ] = None
    forced: Annotated[
        str | None,
        typer.Option(
            help="Column in which 1 flags fixations that nobody chose to make, such as on a cross before the picture.",
            metavar="COLUMN",
            show_default=False,
        ),
    ] = None


@final
@dataclass(frozen=True)
class Meaning:
    """What the numbers of the table mean."""

    position_unit: Annotated[str | None, typer.Option(help="Unit of positions: px or deg.", show_default=False)] = None
    duration_unit: Annotated[str | None, typer.Option(help="Unit of durations: ms or s.", show_default=False)] = None
    width: Annotated[
        float | None, typer.Option(help="The picture's width, in the unit of positions.", show_default=False)
    ] = None
    height: Annotated[float | None, typer.Option(help="The picture's height, likewise.", show_default=False)] = None
    px_per_degree: Annotated[
        float | None, typer.Option(help="Pixels per degree of visual angle.", show_default=False)
    ] = None
    screen_cm: Annotated[
        float | None,
        typer.Option(
            help="The screen's width in cm; with --distance-cm, to work out the pixels per degree.", show_default=False
        ),
    ] = None
    distance_cm: Annotated[
        float | None, typer.Option(help="Distance from the eyes to the screen in cm.", show_default=False)
    ] = None
    screen_px: Annotated[
        float | None,
        typer.Option(help="The screen's width in px; without it the picture's --width.", show_default=False),
    ] = None
    origin: Annotated[
        str | None, typer.Option(help="Where y = 0 lies: top or bottom of the picture.", show_default=False)
    ] = None


# What each of them is asked for with, and how an answer is understood.
QUESTIONS = {
    "position_unit": ("Unit of x and y (px or deg)", one_of("px", "deg")),
    "duration_unit": ("Unit of durations (ms or s)", one_of("ms", "s")),
    "width": ("Width of the picture in that unit", above_zero),
    "height": ("Height of the picture in that unit", above_zero),
    "px_per_degree": ("Pixels per degree of visual angle", above_zero),
    "screen_cm": ("Width of the screen in cm", above_zero),
    "distance_cm": ("Distance from the eyes to the screen in cm", above_zero),
    "screen_px": ("Width of the screen in px", above_zero),
    "origin": ("Where is y = 0, at the top or at the bottom of the picture", one_of("top", "bottom")),
}
OF_SCREEN = ("screen_cm", "distance_cm", "screen_px")


@grouped
def init(
    table: Annotated[
        Path, typer.Argument(help="A table: .csv, .tsv, .parquet or .feather.", metavar="TABLE", show_default=False)
    ],
    named: Named,
    meaning: Meaning,
    out: Annotated[Path, typer.Option(help="The settings file; one that is there is not written over.")] = Path(
        f"study{SETTINGS_ENDING}"
    ),
) -> None:
    """Look at the header, ask for the rest, write, say how to go on."""
    from foveate.data.project import Project
    from foveate.data.readers.sources import load
    from foveate.inference.files import write_whole

    if out.suffix != SETTINGS_ENDING:
        raise InputError(f"--out {out}: the name must end in {SETTINGS_ENDING}.")
    if out.exists():
        raise InputError(f"{out} is there already and was not written over: change it by hand, or give another --out.")
    contents = load(table, ()).table
    said = _understood(meaning)
    columns = _columns([str(name) for name in contents.columns], vars(named), table.name)
    known, screen = _asked(said, "duration" in columns)
    text = settings_text(_beside(table, out), columns, contents, known, screen)
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
    if screen is not None and known["screen_px"] is None:
        print(
            f"px_per_degree = {number_text(screen.px_per_degree)} takes the picture to be as wide as the screen; if it "
            "is not, give --screen-px."
        )
    print(f"{out} was written; look at it, then: foveate check {out} --figure check.png")


def _beside(table: Path, out: Path) -> str:
    """The table as seen from the settings file."""
    import os

    return Path(os.path.relpath(table.resolve(), out.resolve().parent)).as_posix()


def _columns(present: Sequence[str], named: Mapping[str, str | None], table: str) -> dict[str, str]:
    """The column of every role: what options say, or a usual name, or what the user answers."""
    from foveate.data.columns import plain

    said = {
        role: said_by(f"--{role}", name, partial(column_of, present=present))
        for role, name in named.items()
        if name is not None
    }
    twice = [role for role, name in said.items() if list(said.values()).count(name) > 1]
    if twice:
        options = " and ".join(f"--{role}" for role in twice)
        raise InputError(f"{options}: the same column cannot be both; name one for each.")
    found = found_columns(present, said)
    missing = [role for role in NEEDED if role not in found]
    if missing and not can_ask():
        raise InputError(
            f"{table}: no column has a usual name of {some_of(missing)}; it has "
            f"{some_of([plain(it) for it in present], 12)}: say which with "
            f"{', '.join(f'--{role} COLUMN' for role in missing)}."
        )
    for role in [*missing, *(["duration"] if "duration" not in found and can_ask() else [])]:
        free = [name for name in present if name not in found.values()]
        if not free and role in missing:
            raise InputError(f"{table}: no column is left for {role}; a table of fixations needs {some_of(NEEDED)}.")
        there, understood = f" (one of {some_of([plain(it) for it in free], 20)})", partial(column_of, present=free)
        if role in missing:
            found[role] = answer_to(f"Column of {role}{there}", understood)
        elif free and (name := answer_to(f"Column of durations, or nothing{there}", or_nothing(understood), "")):
            found[role] = name
    return found_columns(present, found)  # in the order of the roles


def _understood(meaning: Meaning) -> dict[str, Any]:
    """What the options say, each checked by itself, and that they do not contradict."""
    said = {
        name: None if value is None else said_by(_option(name), value, QUESTIONS[name][1])
        for name, value in vars(meaning).items()
    }
    of_px = [name for name in ("px_per_degree", *OF_SCREEN) if said[name] is not None]
    if len(of_px) > 1 and "px_per_degree" in of_px:
        raise InputError(f"{_option(of_px[0])} and {_option(of_px[1])}: give the one or the other.")
    if of_px and said["position_unit"] == "deg":
        raise InputError(f"{_option(of_px[0])} cannot go with positions in deg; leave it out.")
    return said


def _asked(said: dict[str, Any], with_duration: bool) -> tuple[dict[str, Any], Screen | None]:
    """What the options say, and for the rest what the user answers; without a terminal, options must say it all.

    With the screen's size and distance the pixels per degree are worked out, and the screen comes back too.
    """
    if said["duration_unit"] is not None and not with_duration:
        raise InputError(
            f"--duration-unit {said['duration_unit']}: no column has a usual name of durations; name it with "
            "--duration COLUMN, or leave the unit out."
        )
    known = dict(said)
    for name in ("position_unit", *(["duration_unit"] if with_duration else []), "width", "height"):
        known[name] = _known(known, name)
    screen = None
    if known["position_unit"] == "px" and known["px_per_degree"] is None:
        screen = _screen(known)
    if screen is not None:
        known["px_per_degree"] = screen.px_per_degree
    known["origin"] = _known(known, "origin")
    return known, screen


def _screen(known: dict[str, Any]) -> Screen | None:
    """The screen by which the pixels per degree are known, or None after an answer that says them themselves."""
    if all(known[name] is None for name in OF_SCREEN):
        if not can_ask():
            _known(known, "px_per_degree", "; or give --screen-cm and --distance-cm, which work it out")
        question, understood = QUESTIONS["px_per_degree"]
        question += " (nothing: they are worked out from the screen)"
        known["px_per_degree"] = answer_to(question, or_nothing(understood), "")
        if known["px_per_degree"] is not None:
            return None
    for name in ("screen_cm", "distance_cm"):
        known[name] = _known(known, name)
    if known["screen_px"] is None and can_ask():
        known["screen_px"] = answer_to(QUESTIONS["screen_px"][0], above_zero, number_text(known["width"]))
    return Screen(known["screen_px"] or known["width"], known["screen_cm"], known["distance_cm"])


def _known(known: Mapping[str, Any], name: str, or_else: str = "") -> Any:
    """What is known already, or what the user answers; an error that names the option where nobody can."""
    if known[name] is not None:
        return known[name]
    question, understood = QUESTIONS[name]
    if not can_ask():
        raise InputError(f"{_option(name)} missing: {question[0].lower()}{question[1:]}? A table cannot tell{or_else}.")
    return answer_to(question, understood)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"

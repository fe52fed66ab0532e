"""What commands with a folder of results share: whose files those are, progress, and leaving."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from foveate.commands.interruption import interruptible
from foveate.commands.messages import INTERRUPTED, leave_at_once, say
from foveate.errors import InputError, counted, instead_of, some_of

MODELS = ("full", "local_choice", "fixed_choice", "local_saliency")  # those of the paper that can be fitted
FITTED = (*MODELS, "wayfarer")
# The small models of experiments/part_models.py, by name here so that `--help` need not import it; a test compares.
PARTS = (
    "salient", "heavy_tail", "momentum", "return", "centre", "directions", "peaks", "here", "memory", "drift",
    "durations", "durations_ahead",
)  # fmt: skip
PACKAGES = ("foveate", "jax", "blackjax", "numpy", "scipy")  # whose versions a result depends on

# Tells how far the work has come: in words, how much is done, and of how much.
Tell = Callable[[str, float, float], None]

Result = TypeVar("Result")


def own_folder(out: Path, files: Sequence[str], marker: str, made_by: str) -> Path:
    """The folder, made if need be; files of these names are refused unless the JSON file `marker` says who made them.

    So nothing of somebody else's is ever written over.
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give the name of a folder with --out.")
    present = [name for name in files if (out / name).exists()]
    if present and not _made_by(out / marker, made_by):
        raise InputError(
            f"{out} holds {some_of(present, 3)}, which '{made_by}' did not make; nothing was written: give another "
            "folder."
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: the folder cannot be made ({error.strerror}); give another one.") from error
    return out


def _made_by(file: Path, made_by: str) -> bool:
    try:
        return json.loads(file.read_text(encoding="utf-8")).get("made_by") == made_by
    except (OSError, ValueError, AttributeError):
        return False


def claim(out: Path, files: Sequence[str], marker: str, made_by: str, asked: Mapping[str, Any]) -> None:
    """Take the folder: one with other people's files, or with results of other settings, is refused."""
    own_folder(out, files, marker, made_by)
    if (out / marker).exists():
        before = json.loads((out / marker).read_text(encoding="utf-8")).get("asked", {})
        mine = json.loads(json.dumps(dict(asked)))  # as JSON gives it back
        differ = [f"{name} {_words(before.get(name))}" for name, value in mine.items() if before.get(name) != value]
        if differ:
            raise InputError(
                f"{out} holds results of '{made_by}' with {', '.join(differ)}: nothing was overwritten; say so, or "
                "give another folder."
            )
    write_json(out / marker, {"made_by": made_by, "asked": dict(asked), "finished": False})


def _words(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def chosen(asked: str, known: Sequence[str], what: str) -> list[str]:
    """The names in a list with commas, or all that are known; an unknown one is an error."""
    if asked.strip() == "all":
        return list(known)
    names = list(dict.fromkeys(name.strip() for name in asked.split(",") if name.strip()))
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        every = f"there are {', '.join(known)}, or all of them."
        instead = instead_of(unknown[0], [*known, "all"]) if len(unknown) == 1 else every
        raise InputError(f"no {what} {some_of(unknown) or repr(asked)}; {instead}")
    return names


def chosen_models(asked: str, known: Sequence[str]) -> list[str]:
    """The models in a list with commas; `all` are those of the paper, `parts` the small ones that hold every new part.

    `known` are those that a command has beside the small ones.
    """
    if asked.strip() == "all":
        return list(MODELS)
    named = [",".join(PARTS) if name.strip() == "parts" else name for name in asked.split(",")]
    return chosen(",".join(named), [*known, *PARTS], "model")


def resumable(out: Path, work: Callable[[], Result]) -> Result:
    """What `work` gives; interrupted, it says that the same command goes on, and leaves."""
    try:
        return interruptible(work)
    except KeyboardInterrupt:
        leave_at_once(say(f"interrupted; what is done is in {out}: run the same command again to go on.", INTERRUPTED))


def refuse_version(out: Path, before: Mapping[str, Any], made_by: str) -> None:
    """Refuse results of another version of foveate: its numbers may be others."""
    theirs, ours = before.get("versions", {}).get("foveate", "of unknown version"), versions()["foveate"]
    if theirs != ours:
        raise InputError(
            f"{out} holds results of '{made_by}' with foveate {theirs}, not {ours}: nothing was overwritten; give "
            "another folder."
        )


def machine() -> str:
    """What a result was computed on, in words."""
    import platform

    import jax

    from foveate.threads import cores

    device = jax.devices()[0].device_kind
    return f"{platform.machine()} {platform.system()}, {counted(cores(), 'core')}, JAX on {device}"


def versions() -> dict[str, str]:
    """The versions that a result depends on, by package."""
    from importlib.metadata import version

    return {name: version(name) for name in PACKAGES}


@contextmanager
def progress(heading: str) -> Iterator[Tell]:
    """A bar with the time left on standard error; without a terminal, a line now and then."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    said: int | None = None
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, speed_estimate_period=600
    ) as bar:
        task = bar.add_task("starting", total=1.0)

        def tell(words: str, done: float, total: float) -> None:
            nonlocal said
            if said is None:  # not before the work begins: a mistake that it finds first is all that is said then
                console.print(heading, highlight=False)
                said = -1
            bar.update(task, description=f"{words:<44}", completed=done, total=total)
            tenth = int(20 * done / max(total, 1e-9))
            if not console.is_terminal and tenth > said:
                said = tenth
                console.print(f"{done / max(total, 1e-9):4.0%}  {words}", highlight=False)

        yield tell


def write_json(path: Path, contents: dict[str, Any]) -> None:
    """Write a JSON file, whole or not at all; numbers that are not finite become null."""
    from foveate.inference.files import write_whole

    text = json.dumps(finite(contents), indent=2, allow_nan=False) + "\n"
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def finite(value: Any) -> Any:
    """The same with null for every number that JSON cannot hold."""
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""What commands share that fit many models to many observers: the steps from a folder to its summary."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from foveate.commands.options import Run
from foveate.commands.outputs import Tell, finite, machine, own_folder, progress, resumable, versions, write_json

if TYPE_CHECKING:
    import pandas as pd

    from foveate.execution.places import Place

PAGE = "results.md"


@final
@dataclass(frozen=True)
class Job:
    """Who makes a folder, what was asked, and the files by which the folder is known as theirs."""

    made_by: str
    out: Path
    asked: Mapping[str, Any]
    summary: str  # the JSON file
    files: tuple[str, ...]  # others

    def carry_out(
        self, run: Run, check: Callable[[], None], work: "Callable[[Place, Tell], dict[str, Any]]"
    ) -> dict[str, Any]:
        """Take the folder, work with progress, write the summary and return it.

        `check` refuses what does not fit into the folder before anything is written there; `work` returns what the
        summary says of its results.
        """
        from foveate.execution.cache import keep_compiled

        place = run.place()
        own_folder(self.out, [self.summary, *self.files], self.summary, self.made_by)
        check()
        keep_compiled()
        claim = {"made_by": self.made_by, "asked": dict(self.asked)}
        write_json(self.out / self.summary, claim | {"finished": False})
        with progress(f"{self.made_by}, seed {run.seed}; the results will be in {self.out}") as tell:
            about = work(place, tell)
        summary = claim | {"finished": True, "versions": versions(), "machine": machine()} | about
        write_json(self.out / self.summary, summary)
        return finite(summary)


def show(out: Path, run: Run, work: Callable[[], dict[str, Any]], words: Callable[[dict[str, Any]], str]) -> None:
    """Do the work and print its summary, in words or as JSON."""
    summary = resumable(out, work)
    print(json.dumps(summary) if run.as_json else words(summary))


def part_of(tell: Tell, begin: float, end: float) -> Tell:
    """Tells of work that is this part of the whole."""
    return lambda words, done, total: tell(words, begin + (end - begin) * done / max(total, 1), 1.0)


def fits_told(tell: Tell, name: Callable[[Any], str] = lambda task: task.name) -> Callable[[Any, Any, int, int], None]:
    """Tells of every fit that is done, by the name of its task."""
    return lambda task, posterior, done, total: tell(f"{done} of {total} fits; {name(task)}", done, total)


def named_models(names: list[str], priors: str, ordered: bool = False) -> dict[str, Any]:
    """The models of these names, all with these priors; the baseline has none, and one policy has no order."""
    from foveate.model.catalogue import named_model

    def settings(name: str) -> dict[str, Any]:
        if name == "saliency_baseline":
            return {}
        return {"priors": priors} | ({"ordered": True} if ordered and name != "local_saliency" else {})

    return {name: named_model(name, **settings(name)) for name in names}


def write_tables(out: Path, tables: "Mapping[str, pd.DataFrame]") -> list[str]:
    """Write tables by name, each whole or not at all; the names of their files."""
    from foveate.inference.files import write_whole

    for name, table in tables.items():
        write_whole(out / f"{name}.csv", lambda file, it=table: it.to_csv(file, index=False, float_format="%.9g"))
    return [f"{name}.csv" for name in tables]


def write_page(out: Path, text: str) -> None:
    """Write the page of a study."""
    from foveate.inference.files import write_whole

    write_whole(out / PAGE, lambda file: file.write_text(text, encoding="utf-8"))


def not_converged(summary: Mapping[str, Any]) -> list[str]:
    """A line on fits that have problems, if there are any."""
    bad = summary["fits_not_converged"]
    return [f"NOT CONVERGED: {bad} of {summary['fits']} fits; 'problems' in fits.csv says why."] if bad else []

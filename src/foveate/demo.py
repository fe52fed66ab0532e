"""What `foveate demo` is about: a table of fixations, and the commands that lead from it to a report.

They are those that a user types for a table of their own; `commands/demo.py` runs them one after another.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import final

import jax

from foveate.example import example_data
from foveate.figures.scanpath import scan_path
from foveate.figures.style import journal_style, new_figure, save
from foveate.inference.files import write_whole
from foveate.simulation.simulate import simulate

MADE_BY, SUMMARY = "foveate demo", "demo.json"


@final
@dataclass(frozen=True)
class Demo:
    """A folder, a seed, and how much is fitted: on the defaults the whole takes a minute or two."""

    folder: Path
    seed: int = 1
    observers: tuple[str, ...] = ("ann", "ben", "cleo")
    fitted: str = "local_saliency"  # which compiles fastest
    compared: tuple[str, ...] = ("saliency_baseline", "fixed_choice")
    folds: int = 2
    draws: int = 10
    cells: int = 64

    @property
    def table(self) -> Path:
        """The fixations, as somebody's own table would be."""
        return self.folder / "fixations.csv"

    @property
    def settings(self) -> Path:
        """What is what in the table."""
        return self.folder / "study.toml"

    @property
    def report(self) -> Path:
        """What it all leads to."""
        return self.folder / "report.html"

    @property
    def contents(self) -> dict[str, str]:
        """What is in the folder in the end, by name."""
        return {
            self.report.name: "the report: convergence, parameters, ranking, figures, a viewer of scan paths",
            self.table.name: "the example data, one row per fixation",
            self.settings.name: "what the table's columns and units are",
            "check.png": "the data at a glance (and check.svg)",
            "fits": f"posteriors of {self.fitted}, all parameters in estimates.csv",
            "ranking": "models on pictures that they have not seen: tables, figures, results.md",
            "simulated": "scan paths drawn from the posteriors",
            "scanpath.png": "one simulated path, each fixation in the colour of its policy (and scanpath.svg)",
            SUMMARY: "commands, seed, versions and seconds",
        }

    def commands(self) -> list[list[str]]:
        """The way from the table to the report; `foveate init` is left out where its settings are there already."""
        folder, settings, observers = self.folder, str(self.settings), ",".join(self.observers)
        some = ["--observers", observers, "--cells", str(self.cells), "--seed", str(self.seed)]
        size = ["--width", "32", "--height", "24", "--origin", "bottom", "--out", settings]
        first = ["init", str(self.table), "--position-unit", "deg", "--duration-unit", "s", *size]
        models = ["--models", ",".join(self.compared), "--folds", str(self.folds)]
        compared = [*models, "--draws", str(self.draws), *some, "--workers", "1", "--out", str(folder / "ranking")]
        fitted = ["--model", self.fitted, *some, "--out", str(folder / "fits")]
        drawn = ["--draws", str(self.draws), "--seed", str(self.seed), "--out", str(folder / "simulated")]
        return [
            *([] if self.settings.exists() else [first]),
            ["check", settings, "--figure", str(folder / "check.png"), "--cells", str(self.cells)],
            ["fit", "--data", settings, *fitted],
            ["compare", "--data", settings, *compared],
            ["simulate", str(folder / "fits"), "--data", settings, *drawn],
            ["report", str(folder / "ranking"), "--data", settings, "--out", str(self.report)],
        ]

    def prepare(self) -> None:
        """Write the table, and draw a path of the model that made it."""
        example = example_data()
        table = example.data.paths.to_table()
        write_whole(self.table, lambda file: table.to_csv(file, index=False))
        paths, maps = example.data.paths, example.data.maps
        path = next(iter(simulate(example.models, maps, paths, jax.random.key(self.seed + 1))))
        policies = example.models[path.observer].policy_names
        with journal_style():
            figure = new_figure(140, 112)
            scan_path(path, maps[path.picture], maps.grid, policies, figure.subplots())
            save(figure, self.folder, "scanpath")

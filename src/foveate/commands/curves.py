"""`foveate curves`: what a population is worth, from how few pictures; resumes where it stopped."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.ablate import read_and_deal
from foveate.commands.options import Cells, Data, Observers, Results, Run, grouped
from foveate.commands.outputs import FITTED, Tell
from foveate.commands.reproduce import MAPS, numbers_of_folds
from foveate.commands.studies import PAGE, Job, part_of, show, write_page
from foveate.errors import InputError, instead_of

if TYPE_CHECKING:
    from foveate.execution.places import Place
    from foveate.experiments.learning_curves import LearningCurves

SUMMARY, MADE_BY, FIGURES = "curves.json", "foveate curves", "figures"
FITS = 0.9  # how far the bar is when the fits are done
HELP = (
    "How well held-out pictures are predicted from few and from many: fit each observer alone, all as one, and each "
    "as a member of a population that is learnt, to the same pictures, and judge them by the bits of a fold that none "
    "of them saw. Ends in a folder with a figure and a page. Interrupt it as you like: the same command goes on where "
    "it stopped."
)
SHORT_HELP = "Learning curves of separate, pooled and hierarchical fits."
EXAMPLE = (
    "Example: foveate curves --data example --model local_saliency --pictures 1,4 --folds 1 --cells 16 --out curves"
)


WORDS = {"chains": "largest R-hat", "weights": "median Pareto k-hat of the worst kind"}


@grouped
def curves(
    out: Results,
    data: Data = None,
    model: Annotated[str, typer.Option(help="A model by name, such as full or wayfarer.", metavar="NAME")] = "full",
    pictures: Annotated[str, typer.Option(help="Numbers of training pictures, with commas.")] = "3,6,12,24",
    observers: Observers = "all",
    folds: Annotated[str, typer.Option(help="'all', or numbers from 1 to 5 with commas between.")] = "all",
    cells: Cells = 64,
    by: Annotated[
        str,
        typer.Option(help="'chains' (exact) or 'weights' (draws given the learnt population, far faster)."),
    ] = "chains",
    warmup: Annotated[
        int | None, typer.Option(min=20, help="Iterations in which chains learn: 80 unless given.", show_default=False)
    ] = None,
    draws: Annotated[
        int | None, typer.Option(min=20, help="Draws kept of each of four chains: 100.", show_default=False)
    ] = None,
    *,
    run: Run,
) -> None:
    """Fit what is missing, judge, write, print the gains. --workers is the number of threads."""
    numbers = _numbers(pictures)
    asked = {"data": data, "model": model, "pictures": pictures, "observers": observers, "folds": folds}
    given = {name: value for name, value in {"warmup": warmup, "draws": draws}.items() if value is not None}
    if given and by != "chains":
        raise InputError(f"--{next(iter(given))}: it is for --by chains; leave it out.")
    asked |= {"cells": cells, "by": by, "seed": run.seed} | given
    if run.scheduler is not None:
        raise InputError("--scheduler: these fits see all observers at once and run in one place; leave it out.")

    def work() -> dict[str, Any]:
        from foveate.experiments.learning_curves import LearningCurves
        from foveate.model.catalogue import named_model

        if model not in FITTED:
            raise InputError(f"no model {model!r} that can be fitted; {instead_of(model, FITTED)}")
        whole, each, dealt = read_and_deal(data, MAPS[:1], observers, cells, run.seed)
        seconds = whole.paths.duration_s
        untimed = model == "wayfarer" and not (seconds is not None and bool((seconds > 0).any()))
        made = LearningCurves.of(
            out / "fits", named_model(model, **({"durations": False} if untimed else {})), each[MAPS[0]], dealt,
            seed=run.seed, numbers=numbers,
            chosen=numbers_of_folds(folds, len(dealt)),
            settings=given, by=by, threads=run.workers,
        )  # fmt: skip
        return _run(Job(MADE_BY, out, asked, SUMMARY, (PAGE, "fits")), run, made)

    show(out, run, work, lambda summary: _closing_words(out, summary))


def _numbers(pictures: str) -> tuple[int, ...]:
    words = [it.strip() for it in pictures.split(",") if it.strip()]
    wrong = [it for it in words if not (it.isdecimal() and int(it) > 0)]
    if wrong or not words:
        raise InputError(f"--pictures {wrong[0] if wrong else pictures}: give numbers of pictures, such as 3,6,12,24.")
    return tuple(int(it) for it in words)


def _run(job: Job, run: Run, made: "LearningCurves") -> dict[str, Any]:
    def work(place: "Place", tell: Tell) -> dict[str, Any]:
        made.folder.mkdir(parents=True, exist_ok=True)
        made.run(part_of(tell, 0.0, FITS))
        tell("scores", FITS, 1.0)
        return _write(made.results(), job.out)

    return job.carry_out(run, made.check, work)


def _write(results: Mapping[str, Any], out: Path) -> dict[str, Any]:
    """The figure and the page; what the JSON file says of them."""
    from matplotlib.figure import Figure

    from foveate.figures.learning_curves import learning_curves, learning_gains
    from foveate.figures.style import journal_style, save

    (out / FIGURES).mkdir(exist_ok=True)
    with journal_style():
        figure = Figure(figsize=(7.0, 2.8), layout="constrained")
        left, right = figure.subplots(1, 2)
        learning_curves(results, left)
        learning_gains(results, right)
        save(figure, out / FIGURES, "curves")
    lines = [
        "# Learning curves", "",
        f"Model `{results['model']}`, {results['observers']} observers, folds {', '.join(map(str, results['folds']))}, "
        f"seed {results['seed']}. Bits per held-out fixation over uniform, of the posterior predictive density; "
        "differences with intervals of 95 %, paired by observer and picture.", "",
        f"| pictures | separate | pooled | hierarchical | less separate | less pooled | {WORDS[results['by']]} |",
        "|---|---|---|---|---|---|---|",
        *[_row(it) for it in results["curves"]], "",
        *[f"{it}\n" for it in _distrusted(results)],
        f"![Bits and gains by training pictures]({FIGURES}/curves.svg)", "",
    ]  # fmt: skip
    write_page(out, "\n".join(lines))
    return {**results, "figures": [f"{FIGURES}/curves.svg"], "page": PAGE}


def _row(curve: Mapping[str, Any]) -> str:
    from foveate.figures.learning_curves import gain

    bits = {it["model"]: it["mean"] for it in curve["models"]}
    gains = ["{:+.3f} ({:+.3f} to {:+.3f})".format(*gain(curve, kind)) for kind in ("separate", "pooled")]
    cells = [str(curve["pictures"]), *(f"{bits[it]:.3f}" for it in ("separate", "pooled", "hierarchical")), *gains]
    worst = curve["max_rhat"] if "max_rhat" in curve else curve["median_pareto_k"]
    return f"| {' | '.join(cells)} | {max(worst.values()):.2f} |"


def _closing_words(out: Path, summary: Mapping[str, Any]) -> str:
    from foveate.figures.learning_curves import gain

    lines = [f"{'pictures':>8} {'hierarchical - separate':>32} {'hierarchical - pooled':>32}"]
    for curve in summary["curves"]:
        words = ["{:+.3f} [{:+.3f}, {:+.3f}]".format(*gain(curve, kind)) for kind in ("separate", "pooled")]
        lines.append(f"{curve['pictures']:>8} {words[0]:>32} {words[1]:>32}")
    return "\n".join([*lines, *_distrusted(summary), f"The page is {out / PAGE}."])


def _distrusted(results: Mapping[str, Any]) -> list[str]:
    """A sentence for each kind of fits whose weights are far from being trusted."""
    from foveate.inference.diagnosis import LARGEST_PARETO_K

    return [
        f"Do not rely on the {kind} fits to {curve['pictures']} pictures: the median Pareto k-hat of their weights is "
        f"{shape:.2f}, above {LARGEST_PARETO_K}. Sample --by chains."
        for curve in results["curves"]
        for kind, shape in curve.get("median_pareto_k", {}).items()
        if shape > LARGEST_PARETO_K
    ]

"""`foveate diagnose`: whether the fits in a folder can be trusted."""

import json
from pathlib import Path
from typing import Annotated

import typer

HELP = (
    "Judge the fits in a folder that `foveate fit` made: for each observer the worst R-hat and the least bulk and tail "
    "effective sample size of all numbers, divergences, acceptance rate, Pareto k of importance weights, the number of "
    "modes, and a verdict, with an asterisk where tempered SMC took over from importance sampling. Fits that have not "
    "converged come first."
)
SHORT_HELP = "Judge the fits in a folder."
EXAMPLE = "Example: foveate diagnose fits"


def diagnose(
    folder: Annotated[Path, typer.Argument(help="A folder that `foveate fit` made.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print the diagnoses as JSON instead of a table.")] = False,
    figures: Annotated[
        Path | None,
        typer.Option(help="Draw traces, ranks, pairs and posterior against prior of every observer into this folder."),
    ] = None,
) -> None:
    """Load, judge, print."""
    from foveate.commands.verdicts import as_record, print_verdicts, problems_first, summary
    from foveate.execution.store import FitStore

    store = FitStore.read(folder)
    run, posteriors = store.run, store.load_all()
    drawn = _draw(posteriors, store, figures) if figures is not None else []
    missing = [observer for observer in run.observers if observer not in store.finished()]
    if as_json:
        wrong = sum(not posterior.converged for posterior in posteriors)
        said = run.to_dict() | {"folder": str(folder), "summary": summary(posteriors), "not_converged": wrong}
        said |= {"figures": [str(file) for file in drawn]}
        print(json.dumps(said | {"not_fitted": missing, "fits": [as_record(it) for it in problems_first(posteriors)]}))
        return
    print_verdicts(posteriors, f"Model {run.model.name!r}, {run.sampler} sampling, seed {run.seed}")
    if missing:
        print(f"There is no fit yet of {len(missing)} of the data's {len(run.observers)} observers.")
    if drawn:
        print(f"{len(drawn)} figures, as SVG and PNG, are in {figures}.")


def _draw(posteriors, store, folder: Path) -> list[Path]:
    """Four figures of each posterior, named after its file; the PNGs."""
    from foveate.errors import InputError
    from foveate.figures.chains import ranks, trace
    from foveate.figures.posterior import against_prior, pairs
    from foveate.figures.style import journal_style, save

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be made ({error.strerror}); give another one.") from error
    kinds = {"trace": trace, "ranks": ranks, "pairs": pairs, "prior": against_prior}
    with journal_style():
        return [
            save(draw(posterior), folder, f"{store.file_of(posterior.observer).stem}-{kind}")[1]
            for posterior in posteriors
            for kind, draw in kinds.items()
        ]

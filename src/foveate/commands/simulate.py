"""`foveate simulate`: scan paths drawn from fitted models, as a table that foveate reads."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foveate.commands.options import AsJson, Data, Observers, Results, Seed
from foveate.commands.outputs import Tell
from foveate.errors import InputError, some_of

if TYPE_CHECKING:
    import pandas as pd

    from foveate.data.dataset import Dataset
    from foveate.execution.store import FitStore
    from foveate.inference.posterior import Posterior

MADE_BY, SUMMARY, TABLE = "foveate simulate", "simulation.json", "simulated.csv"
HELP = (
    "Simulate scan paths from the posteriors in a folder that `foveate fit` made: for each draw every observer looks "
    "at the pictures that they saw, as often and as long as they did. The table has a row for every fixation, in "
    "degrees inside the picture (centres of cells), with the policy that chose it (`map` or `observed` where none "
    "did). Where recorded fixations were forced, a column flags those in their places, so that both are counted alike."
)
SHORT_HELP = "Simulate scan paths from fitted models."
EXAMPLE = "Example: foveate simulate fits --data example --draws 10 --out simulated"


def simulate(
    fits: Annotated[Path, typer.Argument(help="A folder that `foveate fit` made.", show_default=False)],
    out: Results,
    data: Data = None,
    observers: Observers = "all",
    draws: Annotated[int, typer.Option(min=1, max=10_000, help="Draws of each posterior, a data set each.")] = 10,
    observed_start: Annotated[
        bool, typer.Option("--observed-start", help="Begin with the first two fixations that were observed.")
    ] = False,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """Load the fits, simulate with progress, write the table."""
    import json

    from foveate.commands.outputs import resumable

    asked = {"fits": str(fits), "data": data, "observers": observers, "draws": draws, "observed_start": observed_start}
    summary = resumable(out, lambda: _work(fits, out, asked | {"seed": seed}))
    if as_json:
        print(json.dumps(summary))
        return
    print(
        f"{summary['paths']:,} paths with {summary['fixations']:,} fixations of {summary['observers']} observers, one "
        f"data set for each of {draws} draws, are in {out / TABLE}."
    )
    if summary["not_converged"]:
        print(f"NOT CONVERGED: the fits of {some_of(summary['not_converged'])}; their paths are in the table.")


def _work(fits: Path, out: Path, asked: dict[str, Any]) -> dict[str, Any]:
    from foveate.commands.outputs import claim, finite, progress, versions, write_json
    from foveate.commands.studies import write_tables
    from foveate.execution.store import FitStore

    store = FitStore.read(fits)
    each, posteriors = _fitted(store, asked["data"], asked["observers"])
    claim(out, [SUMMARY, TABLE], SUMMARY, MADE_BY, asked)
    with progress(f"{MADE_BY}, seed {asked['seed']}; the results will be in {out}") as tell:
        table = _simulated(each, posteriors, asked, tell)
    write_tables(out, {Path(TABLE).stem: table})
    paths = table[["observer", "picture", "trial"]].drop_duplicates()
    summary = {"made_by": MADE_BY, "asked": asked, "finished": True, "versions": versions()}
    summary |= {"model": store.run.model.name, "observers": len(each), "paths": len(paths), "fixations": len(table)}
    summary |= {"not_converged": [str(who) for who, it in posteriors.items() if not it.converged], "tables": [TABLE]}
    write_json(out / SUMMARY, summary)
    return finite(summary)


def _fitted(store: "FitStore", source: str | None, names: str) -> "tuple[dict[Any, Dataset], dict[Any, Posterior]]":
    """Data and posterior of every observer that was named, checked to belong together."""
    from foveate.commands.reading import chosen_observers, read
    from foveate.data.dataset import each_observer

    finished = store.finished()
    if not finished:
        raise InputError(f"{store.folder} holds no finished fit; go on with `foveate fit`.")
    cells = store.load(finished[0]).provenance["grid"][0]
    readings = read(source, cells)
    wanted = finished if names.strip() == "all" else chosen_observers(readings.paths, names)
    missing = [observer for observer in wanted if observer not in finished]
    if missing:
        raise InputError(f"{store.folder} has no fit of observer {some_of(missing)}; it has {some_of(finished, 10)}.")
    every = each_observer(readings.data)
    absent = [observer for observer in wanted if observer not in every]
    if absent:
        raise InputError(f"observer {some_of(absent)} is not in the data; give those that were fitted with --data.")
    each = {observer: every[observer] for observer in wanted}
    posteriors = {observer: store.load(observer) for observer in wanted}
    others = [it for it, own in each.items() if posteriors[it].provenance.get("data") != own.fingerprint()]
    if others:
        raise InputError(
            f"{store.folder}: the fit of observer {some_of(others)} is of other data or maps; give those that were "
            "fitted with --data."
        )
    return each, posteriors


def _simulated(
    each: "dict[Any, Dataset]", posteriors: "dict[Any, Posterior]", asked: dict[str, Any], tell: Tell
) -> "pd.DataFrame":
    """Every draw's paths as one table: a fixation a row, a draw a trial."""
    import jax
    import pandas as pd

    from foveate.figures.style import policy_titles
    from foveate.inference.fit import observer_key
    from foveate.model.model import DRAWN_FROM_MAP
    from foveate.simulation.simulate import simulate as simulate_paths

    parts = []
    policies = next(iter(posteriors.values())).model.policy_names
    # -1, where no policy chose, is the last one.
    names = [*policy_titles(policies), "observed" if asked["observed_start"] else "map"]
    flagged = any(own.paths.forced.any() for own in each.values())
    for number, (observer, own) in enumerate(each.items()):
        tell(f"paths of observer {observer}", number, len(each))
        # By the observer's name, so that it does not matter who else is simulated.
        for_models, for_paths = jax.random.split(observer_key(jax.random.key(asked["seed"]), observer))
        paths = own.paths.at_least(DRAWN_FROM_MAP) if asked["observed_start"] else own.paths
        for draw, model in enumerate(posteriors[observer].models(asked["draws"], for_models), 1):
            key = jax.random.fold_in(for_paths, draw)
            found = simulate_paths({observer: model}, own.maps, paths, key, observed_start=asked["observed_start"])
            table = found.to_table()
            several = len(set(table["trial"])) > 1
            if flagged:  # also in the rows of those who have none: the column is either whole or not there
                table["forced"] = found.forced[found.real]
            table["draw"] = draw
            table["trial"] = table["trial"].astype(str) + f".{draw}" if several else draw
            parts.append(table.assign(policy=[names[index] for index in table["policy"]]))
    return pd.concat(parts, ignore_index=True)

"""Fits judged, for people as a table and for machines as JSON: what `foveate fit` and `foveate diagnose` print."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from foveate.commands.outputs import finite
from foveate.errors import some_of

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from foveate.inference.posterior import Posterior

WIDTH = 100  # columns, where there is no terminal to ask


def result_console() -> "Console":
    """Standard output: as wide as the terminal, or a fixed number of columns in a file or a pipe."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=WIDTH)


def problems_first(posteriors: Sequence["Posterior"]) -> list["Posterior"]:
    """The fits that have not converged, then the others, each in their order."""
    return sorted(posteriors, key=lambda posterior: posterior.converged)


def taken_over(posteriors: Sequence["Posterior"]) -> str:
    """For whom tempered SMC took over from importance sampling, in a sentence; empty where it did not."""
    whom = [posterior.observer for posterior in posteriors if _instead_of(posterior)]
    if not whom:
        return ""
    return (
        f"Tempered SMC took over from importance sampling, whose weights were too uneven, in {len(whom)} of "
        f"{len(posteriors)} fits (observer {some_of(whom, 10)})."
    )


def _instead_of(posterior: "Posterior") -> str | None:
    """The sampler that was asked for, where another took over."""
    return posterior.samples.settings.get("instead_of")


def print_verdicts(posteriors: Sequence["Posterior"], title: str) -> None:
    """A row for each fit, then what is wrong with those that have not converged, notes, takeovers, a summary."""
    from rich import box
    from rich.table import Table

    from foveate.inference.modes import VALLEY_NATS

    table = Table("observer", title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("R-hat", "bulk ESS", "tail ESS", "diverging", "accepted", "Pareto k", "modes"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for posterior in problems_first(posteriors):
        found, modes = posterior.diagnosis, posterior.samples.modes
        table.add_row(
            str(posterior.observer),
            f"{found.max_rhat:.3f}",
            f"{min(found.ess_bulk):.0f}",
            f"{min(found.ess_tail):.0f}",
            str(found.divergences) if "diverging" in posterior.samples.statistics else "-",
            "-" if found.acceptance is None else f"{found.acceptance:.2f}",
            "-" if found.pareto_k is None else f"{found.pareto_k:.2f}",
            "-" if modes is None else str(len(modes.mass)),
            ("converged" if posterior.converged else "NOT CONVERGED") + ("*" if _instead_of(posterior) else ""),
        )
    console = result_console()
    console.print(table)
    for posterior in problems_first(posteriors):
        if not posterior.converged:
            console.print(f"Observer {posterior.observer}: {' '.join(posterior.diagnosis.problems)}", markup=False)
    for posterior in posteriors:
        for note in posterior.diagnosis.notes:
            console.print(f"Observer {posterior.observer}, note: {note}", markup=False)
    if taken_over(posteriors):
        console.print(f"* {taken_over(posteriors)}", markup=False)
    if any(it.samples.modes is not None and len(it.samples.modes.mass) for it in posteriors):
        console.print(f"Modes: regions apart by a valley of {VALLEY_NATS:.0f} nats; smaller dips are not counted.")
    console.print(summary(posteriors), markup=False)


def summary(posteriors: Sequence["Posterior"]) -> str:
    """How many fits have converged, in a sentence."""
    wrong = [posterior.observer for posterior in posteriors if not posterior.converged]
    if not posteriors:
        return "No fit is finished yet."
    if not wrong:
        return "The fit has converged." if len(posteriors) == 1 else f"All {len(posteriors)} fits have converged."
    return (
        f"{len(wrong)} of {len(posteriors)} fits {'has' if len(wrong) == 1 else 'have'} NOT CONVERGED (observer "
        f"{some_of(wrong, 10)}): do not rely on them."
    )


def estimates(posteriors: Sequence["Posterior"]) -> "pd.DataFrame":
    """Mean, standard deviation and interval of every number of every fit, and whether that can be relied on."""
    import pandas as pd

    parts = [it.table().reset_index().assign(converged=it.converged) for it in posteriors]
    return pd.concat(
        {it.observer: part for it, part in zip(posteriors, parts, strict=True)}, names=["observer"]
    ).reset_index(level=0)


def as_record(posterior: "Posterior") -> dict[str, Any]:
    """A fit's diagnosis as something that JSON can hold; what is not finite is null."""
    found, modes = posterior.diagnosis, posterior.samples.modes
    said = found.to_dict()
    for name in ("labels", "rhat", "ess_bulk", "ess_tail"):  # each in the table of the numbers
        del said[name]
    return finite(
        {"observer": posterior.observer}
        | said
        | {
            "max_rhat": found.max_rhat,
            "min_ess_bulk": min(found.ess_bulk),
            "min_ess_tail": min(found.ess_tail),
            "numbers": posterior.table().to_dict(orient="index"),
            "modes": None if modes is None else [
                {"mass": mass, "mass_error": error}
                for mass, error in zip(modes.mass.tolist(), modes.mass_error.tolist(), strict=True)
            ],
            "sampler": posterior.samples.sampler,
            "instead_of": _instead_of(posterior),
            "settings": dict(posterior.samples.settings),
            "steps": posterior.provenance.get("steps"),
            "seconds": posterior.provenance.get("seconds"),
        }
    )  # fmt: skip

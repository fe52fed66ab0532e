"""The page of a model's reliability: what the halves say, and how many pictures are needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from foveate.experiments.reliability import Reliability
from foveate.experiments.study_page import markdown
from foveate.model.catalogue import TITLES

FIGURES = "figures"  # the folder of the page's figures


def page(found: Reliability, tables: Sequence[str], figures: Sequence[str]) -> str:
    """The page, with links to tables and pictures in its folder."""
    subsets, title = found.subsets, TITLES.get(found.subsets.model.name, found.subsets.model.name)
    saw = [len(own.paths.pictures) for own in subsets.data.values()]
    seen = f"{min(saw)}" if min(saw) == max(saw) else f"{min(saw)} to {max(saw)}"
    parts = [
        f"# Reliability of the parameters of {title}",
        f"{len(saw)} observers, {seen} pictures each, {len(subsets.splits)} split{'s' * (len(subsets.splits) > 1)} "
        f"into halves, {len(found.fits)} fits, seed {subsets.fits.seed}. Numbers are judged on the scale that each row "
        "names: the logarithm of a variance, the log-odds of a probability, others as they are.",
        _converged(found),
        "## One half of the pictures against the other",
        _halves_words(found),
        markdown(*_halves_table(found)),
        _differences(found),
        "## How many pictures are needed",
        _needed_words(found),
        markdown(*_needed_table(found)),
        "## Figures",
        *(f"![{Path(name).stem}]({name})" for name in figures),
        "## Tables",
        ", ".join(f"[{name}]({name})" for name in tables) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _converged(found: Reliability) -> str:
    if not found.unconverged:
        return f"All {len(found.fits)} fits have converged."
    which = [
        f"observer {row['observer']}, {row['part']}"
        for row in found.fits.to_dict(orient="records")
        if not row["converged"]
    ]
    return (
        f"**{found.unconverged} of {len(found.fits)} fits have NOT CONVERGED; they are in all numbers here, and marked "
        f"in tables and figures:** {'; '.join(which)}."
    )


def _halves_words(found: Reliability) -> str:
    kind = found.parameters["interval"].iloc[0]
    how = {
        "Fisher z": "by Fisher's z over observers",
        "bootstrap over observers": "by the bootstrap over observers, all splits together",
    }[str(kind)]
    return (
        "r is the correlation over observers of the posterior means of the halves (mean over splits); reliability is "
        "what it means for all pictures, 2 r / (1 + r) after Spearman and Brown (mirrored where r is negative: then "
        f"there is none). Intervals are of 95 %, {how}, for new observers and the same pictures. 'Expected' is what "
        "the posteriors say of themselves: the variance between observers, divided by itself and the variance with "
        "which posterior means scatter. Where the observed reliability is far below it, parameters differ between "
        "pictures by more than the model knows, or posteriors have several modes."
    )


def _halves_table(found: Reliability) -> tuple[list[str], list[list[str]]]:
    rows = [
        [
            row["parameter"],
            row["scale"],
            f"{row['correlation']:.2f}",
            f"{row['reliability']:.2f}",
            f"{row['reliability_low']:.2f} to {row['reliability_high']:.2f}",
            f"{row['expected_reliability']:.2f}",
            f"{row['between_sd']:.2f}",
            f"{row['error_sd']:.2f}",
            f"{row['share_beyond_2']:.0%}",
        ]
        for row in found.parameters.to_dict(orient="records")
    ]
    columns = ["number", "scale", "r of halves", "reliability", "interval", "expected"]
    return [*columns, "sd between observers", "error of a half", "beyond 2"], rows


def _differences(found: Reliability) -> str:
    words = (
        "'Beyond 2': share of observers and splits whose halves differ by more than two standard deviations of their "
        "difference, (m1 - m2) / sqrt(v1 + v2). It should be about 5 % if the same parameters hold in both halves, "
        "less where the prior holds them back."
    )
    if found.both_sides is not None:
        words += (
            f" {found.both_sides} of {len(found.fits)} fits have b on both sides of zero, at least 5 % of the "
            "posterior on each: their mean may lie between two modes, and differences may be large for that reason "
            "alone."
        )
    return words


def _needed_words(found: Reliability) -> str:
    row = found.needed.iloc[0]
    few, most = row["fewest_pictures_fitted"], row["most_pictures_fitted"]
    slope = (
        "The slope of log sd on log n is fitted, with an interval of 95 % over observers; by theory it is -0.5, and "
        "nearer to zero where the prior still says much."
        if row["slope_fitted"]
        else "Numbers of pictures are too much alike to fit a slope, so it is taken to be -0.5: say --pictures to see."
    )
    return (
        f"Posterior standard deviations of fits to {few} to {most} pictures. {slope} Needed are the pictures for a "
        f"standard deviation of {found.precision:g} on the scale above (of a variance about {found.precision:.0%}), "
        f"for the median observer and for 90 % of them; a star marks what lies beyond the {most} pictures of the "
        "largest fits."
    )


def _needed_table(found: Reliability) -> tuple[list[str], list[list[str]]]:
    rows = []
    for row in found.needed.to_dict(orient="records"):
        interval = f" ({row['slope_low']:.2f} to {row['slope_high']:.2f})" if row["slope_fitted"] else ""
        rows.append([row["parameter"], f"{row['slope']:.2f}{interval}", *needed_numbers(row)])
    return ["number", "slope", "pictures, median observer", "pictures, 90 % of observers"], rows


def needed_numbers(row: Mapping[Any, Any]) -> list[str]:
    """For the median observer and for 90 %, with a star for what is extrapolated; JSON has null for infinity."""
    shown = []
    for name, star in (("pictures_median_observer", "median"), ("pictures_90_percent", "90_percent")):
        number = row[name]
        many = "never" if number is None or number == float("inf") else f"{number:,.0f}"
        shown.append(f"{many}{' *' if row[f'{star}_extrapolated'] else ''}")
    return shown

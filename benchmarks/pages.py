"""The pages on speed: docs/results/growth.md with its figure, and docs/results/benchmarks.md, from benchmarks/results.

    python benchmarks/pages.py

Nothing is measured here. Numbers that were not measured are left out, never guessed; what is worked out from others is
said to be. Prints one JSON object last: the pages that were written.
"""

import json
from pathlib import Path
from typing import Any

from foveate.experiments.study_page import markdown
from foveate.figures.style import MODEL_COLOURS, PNG_DPI, TWO_COLUMNS_MM, journal_style, new_figure

HERE = Path(__file__).parent
RESULTS, DOCS = HERE / "results", HERE.parent / "docs"
CORPUS_OBSERVERS, CORPUS_PICTURES = 250, 2400
KINDS = ("likelihood", "sampling", "simulation", "scoring", "crossval", "scale_quick")
WORDS = ("command", "date", "machine", "versions", "took_s", "data", "rows", "points", "models")


def rows_along(points: list[dict], along: str, **same: Any) -> list[dict]:
    """The points of a curve."""
    return [it for it in points if it["along"] == along and same.items() <= it.items()]


def shown(value: float | None) -> str:
    """A number in a table; a dash where it was not measured."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.4g}"


def of_fits(points: list[dict], along: str, by: str) -> str:
    """A table of evaluations and fits of both models."""
    head = [by, "model", "steps", "preparing (s)", "value and gradient (ms)", "whole fit (s)", "compiling (s)",
            "simulated fixations per s", "most memory (MB)"]  # fmt: skip
    names = ("steps", "preparing_s", "evaluation_ms", "fit_s", "compiling_s", "simulated_fixations_per_s",
             "peak_memory_mb")  # fmt: skip
    key = {"grid": "cells", "fixations": "times"}[along]
    rows = [[str(it[key]), it["model"], *(shown(it.get(name)) for name in names)] for it in rows_along(points, along)]
    return markdown(head, rows)


def figure(points: list[dict]) -> None:
    """Six panels: time above memory, along the grid, along fixations; observers and chains."""
    made = new_figure(TWO_COLUMNS_MM, 105.0)
    axes = made.subplots(2, 3)
    for column, (along, key, label) in enumerate(
        (("grid", "cells", "cells along each side"), ("fixations", "fixations", "fixations of one observer"))
    ):
        for model in ("full", "wayfarer"):
            rows = rows_along(points, along, model=model)
            style = {"color": MODEL_COLOURS[model], "marker": "o", "markersize": 3, "label": model}
            for row, name in enumerate(("evaluation_ms", "peak_memory_mb")):
                axes[row, column].plot([it[key] for it in rows], [it[name] for it in rows], **style)
        for row, words in enumerate(("value and gradient (ms)", "most memory (MB)")):
            axes[row, column].set(xscale="log", yscale="log", xlabel=label, ylabel=words)
        if along == "grid":
            ticks = [it["cells"] for it in rows_along(points, along, model="full")]
            for row in (0, 1):
                axes[row, column].set_xticks(ticks, [str(it) for it in ticks])
                axes[row, column].minorticks_off()
    axes[0, 0].legend(frameon=False)
    for workers, colour in ((1, "#0072B2"), (2, "#E69F00")):
        rows = rows_along(points, "observers", workers=workers)
        style = {"color": colour, "marker": "o", "markersize": 3}
        axes[0, 2].plot([it["observers"] for it in rows], [it["wall_s"] for it in rows], **style,
                        label=f"{workers} worker{'s' if workers > 1 else ''}")  # fmt: skip
    axes[0, 2].set(xlabel="observers", ylabel="fits, wall time (s)", ylim=(0, None))
    axes[0, 2].legend(frameon=False)
    rows = rows_along(points, "chains")
    axes[1, 2].plot(
        [it["chains"] for it in rows], [it["fit_s"] for it in rows], color="#222222", marker="o", markersize=3
    )
    axes[1, 2].set(xlabel="chains of NUTS, one thread", ylabel="processor time (s)", ylim=(0, None))
    made.savefig(DOCS / "images" / "growth.png", dpi=PNG_DPI, metadata={"Software": None})


def on_paper(points: list[dict]) -> str:
    """What a corpus would take, from the largest measured corpus and the measured fits; marked as worked out."""
    parts = []
    for model in ("full", "wayfarer"):
        rows = rows_along(points, "fixations", model=model)
        fitted = [it for it in rows if "evaluations" in it]
        if not rows or not fitted:
            continue
        large, known = rows[-1], fitted[-1]
        ms = large["evaluation_ms"] * CORPUS_PICTURES / large["pictures"]
        # What an evaluation of a fit costs beside one with gradient, as it was in the largest fit that was timed.
        per_evaluation = known["fit_s"] / known["evaluations"] / (known["evaluation_ms"] / 1e3)
        hours = known["evaluations"] * per_evaluation * ms / 1e3 / 3600
        memory = large["peak_memory_mb"] * CORPUS_PICTURES / large["pictures"] / 1024
        parts.append(
            f"- `{model}`: {ms:,.0f} ms an evaluation, {known['evaluations']:,} of them a fit, {hours:,.1f} hours of "
            f"one core an observer and {hours * CORPUS_OBSERVERS:,.0f} core-hours in all "
            f"({hours * CORPUS_OBSERVERS / 100:,.0f} hours on 100 cores); {memory:.1f} GB a worker."
        )
    return "\n".join(parts)


def growth(result: dict) -> str:
    """The page with curves."""
    points = result["points"]
    observers = markdown(
        ["observers", "worker processes", "wall time (s)", "the same again, compiling (s)"],
        [[str(it["observers"]), str(it["workers"]), shown(it["wall_s"]), shown(it["compiling_s"])]
         for it in rows_along(points, "observers")],
    )  # fmt: skip
    chains = markdown(
        ["chains", "processor time (s)", "least ESS", "evaluations", "most memory (MB)"],
        [[str(it["chains"]), shown(it["fit_s"]), shown(it["min_ess"]), shown(it["evaluations"]),
          shown(it["peak_memory_mb"])] for it in rows_along(points, "chains")],
    )  # fmt: skip
    parts = [
        "# Growth",
        f"Measured with `python benchmarks/scale.py` on {result['date']} ({result['machine']}, shared with other "
        f"programs; foveate {result['versions']['foveate']}, JAX {result['versions']['jax']}): data simulated from the "
        "full model on the example's 12 pictures, 25 fixations a path, one observer. Every point is a process of its "
        "own on one core. Times are processor time after a first call that compiles; memory is the most that the "
        "process had, compiling included, of which 0.3 to 0.5 GB are JAX itself. Where a dash stands nothing was "
        f"measured. The numbers are in `benchmarks/results/scale.json`.",
        "![Time of an evaluation and most memory against cells and fixations; fits against observers; chains]"
        "(../images/growth.png)",
        "## The grid",
        of_fits(points, "grid", "cells along each side"),
        "## Fixations",
        "Pictures 1, 10 and 100 times over.",
        of_fits(points, "fixations", "times the pictures"),
        f"On paper, not measured: {CORPUS_OBSERVERS} observers who look at {CORPUS_PICTURES:,} pictures each, 25 "
        "fixations a picture, 64 x 64 cells, from the largest corpus above, in proportion to the pictures:",
        on_paper(points) or "- not enough was measured.",
        "## Observers",
        "Fits of `local_saliency` to observers one by one. They do not know of each other, so time grows with their "
        "number and shrinks with that of workers. Wall time, on a machine of two shared cores.",
        observers,
        "## Chains",
        "NUTS, `local_saliency`, 200 draws after 200 of warm-up, all chains one after the other in one thread.",
        chains,
        "## When to use what",
        "- Up to some thousand fixations an observer: `foveate fit` and `compare` as they are, one worker a core.\n"
        "- Many observers or folds: more workers, here or [on a cluster](../cluster.md). Give each the memory of the "
        "tables above.\n"
        "- Finer grids cost more than they tell: maps are smooth, and 64 x 64 cells of half a degree are finer than "
        "where people look. Try 128 on one observer before a whole study.\n"
        "- Very many fixations an observer: evaluations grow in proportion, the posterior narrows; a "
        "[GPU](../howto/gpu.md) evaluates many parameter sets side by side.\n"
        "- Where the time of a fit goes: [Profile](profile.md).",
    ]
    return "\n\n".join(parts) + "\n"


def benchmarks(results: dict[str, dict]) -> str:
    """The page of all benchmarks."""
    parts = [
        "# Benchmarks",
        "What `make bench` wrote last, each script with its command, date and machine; the whole numbers are in "
        "`benchmarks/results`. Machines are shared and differ: ratios are measured within a run, and no test asserts a "
        "time.",
    ]
    for name, found in results.items():
        versions = ", ".join(f"{package} {number}" for package, number in found.get("versions", {}).items())
        rows = [[key.replace("_", " "), shown(value)] for key, value in found.items()
                if isinstance(value, int | float) and not isinstance(value, bool) and key not in WORDS]  # fmt: skip
        rows += [[key.replace("_", " "), str(value)] for key, value in found.items() if isinstance(value, bool)]
        if name == "scale_quick":
            rows = [[", ".join(f"{k} {v}" for k, v in list(it.items())[:3]),
                     f"evaluation {shown(it.get('evaluation_ms'))} ms, "
                     f"fit {shown(it.get('fit_s', it.get('wall_s')))} s, "
                     f"{shown(it['peak_memory_mb'])} MB"] for it in found["points"]]  # fmt: skip
        parts += [
            f"## {name.replace('_', ', ')}",
            f"`{found['command']}`, {found['date']}; {found['machine']}"
            + (f"; {versions}" if versions else "")
            + (f"; data {found['data']}" if "data" in found else "")
            + (f"; took {found['took_s']} s." if "took_s" in found else "."),
            markdown(["what", "measured"], rows),
        ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    written = []
    scale = RESULTS / "scale.json"
    if scale.exists():
        result = json.loads(scale.read_text())
        with journal_style():
            figure(result["points"])
        (DOCS / "results" / "growth.md").write_text(growth(result))
        written.append("growth")
    files = {name: RESULTS / f"{name}.json" for name in KINDS}
    found = {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}
    (DOCS / "results" / "benchmarks.md").write_text(
        benchmarks({name: it for name, it in found.items() if "command" in it})
    )
    print(json.dumps({"written": [*written, "benchmarks"]}))


if __name__ == "__main__":
    main()

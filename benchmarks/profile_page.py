"""docs/results/profile.md: where the time of a fit goes (benchmarks/results/where_time_goes.json), and what was tried.

    python benchmarks/where_time_goes.py > out.txt       # its last line is what that file holds
    python benchmarks/profile_page.py

Nothing is measured here. Prints one JSON object last.
"""

import json
from pathlib import Path

from foveate.experiments.study_page import markdown

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "results" / "profile.md"

# From the history of the repository: what was changed for speed, and what it brought where that was measured.
TRIED = (
    ("normalisers of steps that are evaluated again and again", "polynomials in the variances' logarithms, tabulated "
     "once a step (`model/tables.py`)", "an evaluation of the full model with gradient 30 times as fast as plain "
     "NumPy (64 x 64 cells, see Benchmarks)"),
    ("the repulsion's sum", "windows kept with the table; then only the rows and columns that the ellipse has",
     "twice as fast, then two to three times again"),
    ("learning a proposal", "larger cells and single precision where an error does not matter",
     "twice as fast where the whole grid counts"),
    ("exploring", "fewer climbs, smaller rounds, both signs of b kept", "cost a half to a fourth"),
    ("modulated policies (wayfarer)", "one exponential a cell for all policies, products of matrices, the derivative "
     "by hand, single precision", "24 ms an evaluation with gradient instead of 180"),
    ("compiling", "steps packed into rows of common sizes, every fallback once in the program, kept on disk between "
     "runs, models alternating between workers", "one compilation serves many observers"),
    ("small linear algebra", "one thread (`threads.py`)", "threads of their own made it slower, many times so on a "
     "busy machine"),
    ("memory maps", "compiled functions are forgotten in time (`compiled.py`)", "no speed: XLA ended long processes"),
)  # fmt: skip


def page(result: dict) -> str:
    """The whole page."""
    rows = [
        [it["model"], str(it["numbers"]), it["sampler"], f"{it['steps']:,}", f"{it['evaluations']:,}",
         f"{it['first_fit_s']:.1f}", f"{it['second_fit_s']:.1f}", str(it["compilations"]),
         f"{it.get('tracing_s', 0):.1f}", f"{it.get('lowering_s', 0):.1f}", f"{it.get('compiling_s', 0):.1f}",
         f"{it['peak_memory_mb']:,}"]
        for it in result["models"]
    ]  # fmt: skip
    head = ["model", "numbers", "sampler", "steps", "evaluations", "first fit (s)", "second fit (s)", "compilations",
            "tracing (s)", "lowering (s)", "XLA (s)", "most memory (MB)"]  # fmt: skip
    parts = [
        "# Profile",
        f"Where the processor's time of a fit goes: `python benchmarks/where_time_goes.py` on {result['date']} "
        f"({result['machine']}, shared; foveate {result['versions']['foveate']}, JAX {result['versions']['jax']}; data "
        f"{result['data']}, one observer, {result['cells']} x {result['cells']} cells, one core). The first fit "
        "compiles everything, with no cache on disk; the second finds it compiled and runs under Python's profiler. "
        "Tracing includes tracing of inner functions, so that its parts overlap.",
        markdown(head, rows),
    ]
    for it in result["models"]:
        functions = [[f"`{row['function']}`", str(row["calls"]), f"{row['with_callees_s']:.2f}", f"{row['share']:.0%}"]
                     for row in it["functions"]]  # fmt: skip
        parts += [
            f"## {it['model']}",
            "Functions of foveate with what they call; compiled code counts for its caller, and a function is counted "
            "again in those that call it.",
            markdown(["function", "calls", "seconds", "share"], functions),
        ]
    parts += [
        "## What was tried",
        "So that the next person knows. What each brought is what was measured when it was made; the history of the "
        "repository has the rest, and [How foveate is built](../architecture.md) how the sums work.",
        markdown(["what took time", "what was changed", "what it brought"], [list(it) for it in TRIED]),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    result = json.loads((HERE / "results" / "where_time_goes.json").read_text())
    PAGE.write_text(page(result))
    print(json.dumps({"written": "docs/results/profile.md", "models": [it["model"] for it in result["models"]]}))


if __name__ == "__main__":
    main()

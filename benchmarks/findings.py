"""What we found: where the paper, its released files and this package differ, with the evidence, as a page.

    python benchmarks/findings.py --data DIR

DIR is the potsdam35 folder (or set FOVEATE_POTSDAM35). Nothing is fitted and nothing is random: it takes half a minute.
Writes docs/results/findings.md, prints the table, and one JSON object last.
"""

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

import foveate
from foveate.experiments.findings import FINDINGS, Finding, Material

PAGE = Path(__file__).parents[1] / "docs" / "results" / "findings.md"


def table(findings: list[Finding]) -> list[str]:
    """What paper, released files and this package say, a line a row."""
    lines = ["| # | paper | in the released files | here |", "|---|---|---|---|"]
    return lines + [f"| {it.number} | {it.paper} | {it.released} | {it.here} |" for it in findings]


def page(findings: list[Finding]) -> str:
    """The page, whole."""
    lines = [
        "# What we found",
        "",
        "Where the paper (Malem-Shinitski et al., 2020), the files released with it (data, code and notebook) and this "
        f"package ({foveate.__version__}) differ. The evidence below was computed from the data folder potsdam35, all "
        "35 observers and 30 pictures, by `python benchmarks/findings.py --data DIR`: nothing is fitted, nothing is "
        "random. The released code is not in that folder; what only it shows is said to be seen there. The recovery "
        "experiment's variances are epsilon = (25, 35) and xi = (230, 280) px^2, (row, column). Saccades across gaps "
        "in the recording are left out.",
        "",
        *table(findings),
        "",
        "## Evidence",
        "",
        *(f"{it.number}. {it.evidence}" for it in findings),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("FOVEATE_POTSDAM35"))
    material = Material.read(parser.parse_args().data)
    findings = [finding(material) for finding in FINDINGS]
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(findings))
    print("\n".join(table(findings)), "", *(f"{it.number}. {it.evidence}" for it in findings), sep="\n")
    print(json.dumps({"findings": [asdict(it) for it in findings], "foveate": foveate.__version__}))


if __name__ == "__main__":
    main()

"""What we found: where the paper, its released files and this package differ, with the evidence, as a page.

    python benchmarks/findings.py --data DIR --corrected STUDY --as-released STUDY \\
        --ordered STUDY --as-released-ordered STUDY

DIR is the potsdam35 folder (or set FOVEATE_POTSDAM35). The studies are the folders that `foveate reproduce` made of all
observers and folds without more options, with `--as-released`, with `--ordered`, and with both. Here nothing is fitted
and nothing is random: it takes half a minute. Writes docs/results/findings.md (only prints where a study is not given),
and one JSON object last.
"""

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import foveate
from foveate.experiments.findings import FINDINGS, Finding, Material
from foveate.experiments.study_page import claims_on_a_page, markdown
from foveate.model.catalogue import TITLES

PAGE = Path(__file__).parents[1] / "docs" / "results" / "findings.md"
PUBLISHED = (("nss", "nss"), ("auc", "auc_borji"))  # the scores of the paper's Table 2, and their columns here


def differences(findings: list[Finding]) -> list[str]:
    """What paper, released files and this package say, and the evidence."""
    rows = [[str(it.number), it.paper, it.released, it.here] for it in findings]
    return [
        "# What we found",
        "Where the paper (Malem-Shinitski et al., 2020), the files released with it (data, code and notebook) and this "
        f"package ({foveate.__version__}) differ. The evidence for the rows was computed from the data folder "
        "potsdam35, all 35 observers and 30 pictures, by `python benchmarks/findings.py --data DIR`: nothing is fitted "
        "and nothing random. What needs fits comes after them, with the commands that made it. The released code is "
        "not in that folder; what only it shows is said to be seen there. The recovery experiment's variances are "
        "epsilon = (25, 35) and xi = (230, 280) px^2, (row, column). Saccades across gaps in the recording are "
        "left out.",
        markdown(["#", "paper", "in the released files", "here"], rows),
        "## Evidence",
        "\n".join(f"{it.number}. {it.evidence}" for it in findings),
    ]


class StudyTables:
    """The tables of a study that `foveate reproduce` has finished."""

    def __init__(self, folder: Path) -> None:
        """Read the summary of the folder; refuse one that is not finished."""
        self.folder = folder
        self.summary: dict[str, Any] = json.loads((folder / "study.json").read_text())
        if not self.summary["finished"]:
            raise SystemExit(f"{folder} is not finished: give foveate reproduce the same command again.")

    def table(self, name: str) -> pd.DataFrame:
        """A table by its name."""
        return pd.read_csv(self.folder / f"{name}.csv")

    def by_model(self, name: str) -> pd.DataFrame:
        """A table of a row a model."""
        return self.table(name).set_index("model")

    def of_what(self) -> str:
        """Observers, folds, draws and seed."""
        asked = self.summary["asked"]
        return (
            f"observers {asked['observers']}, folds {asked['folds']}, {self.summary['draws']} posterior draws, seed "
            f"{self.summary['seed']}; {self.summary['machine']}"
        )


def table_2(corrected: StudyTables, released: StudyTables) -> str:
    """The paper's Table 2 beside both of ours, and the bits that models are ranked by here."""
    ours, theirs, bits = corrected.by_model("table2"), released.by_model("table2"), corrected.by_model("ranking")
    rows = []
    for name in ours.index:
        row = [TITLES[name]]
        for score, column in PUBLISHED:
            paper, found = theirs.loc[name, f"{score}_published"], theirs.loc[name, column]
            known = not pd.isna(paper)
            row += [f"{paper:g}", f"{found:.3f} ({found - paper:+.3f})"] if known else ["-", f"{found:.3f}"]
            row.append(f"{ours.loc[name, column]:.3f}")
        low, high = bits.loc[name, ["low", "high"]]
        rows.append([*row, f"{bits.loc[name, 'mean']:.3f} ({low:.3f} to {high:.3f})"])
    columns = ["NSS, paper", "as released", "corrected", "AUC, paper", "as released", "corrected", "bits, corrected"]
    return markdown(["model", *columns], rows)


def out_of_order(corrected: StudyTables) -> str:
    """In how many fits of each model the posterior means violate the order of epsilon and xi."""
    fits = corrected.table("fits").dropna(subset=["epsilon_row"])
    wrong = (fits["epsilon_row"] >= fits["xi_row"]) | (fits["epsilon_column"] >= fits["xi_column"])
    counts = wrong.groupby(fits["model"], sort=False).agg(["sum", "size"])
    return ", ".join(f"{count['sum']} of {count['size']} ({TITLES[str(name)]})" for name, count in counts.iterrows())


@dataclass(frozen=True)
class Studies:
    """The four whole reproductions: corrected and as released, each in any order of epsilon and xi and in order."""

    corrected: StudyTables
    released: StudyTables
    ordered: StudyTables
    released_ordered: StudyTables


def published_in_order(them: Studies) -> list[str]:
    """What the order of epsilon and xi, which the paper states and the released code does not enforce, does."""
    free, kept = them.released.by_model("table2"), them.released_ordered.by_model("table2")
    rows = []
    for name in kept.index:
        row = [TITLES[name]]
        for score, column in PUBLISHED:
            paper = free.loc[name, f"{score}_published"]
            both = (it.loc[name, column] for it in (free, kept))
            row += [f"{paper:g}", *(f"{found:.3f} ({found - paper:+.3f})" for found in both)]
        rows.append(row)
    worst = max(abs(kept[ours] - free[f"{score}_published"]).max() for score, ours in PUBLISHED)
    columns = ["NSS, paper", "any order", "epsilon below xi", "AUC, paper", "any order", "epsilon below xi"]
    return [
        "The paper has xi above epsilon on both axes (after its Eq. 3), which the released code does not enforce (row "
        f"18). Under the published priors it matters: in {out_of_order(them.corrected)} of the fits to the corrected "
        "data the posterior means violate it. With priors restricted "
        f"to the order (`foveate reproduce --as-released --ordered`, {them.released_ordered.of_what()}), the published "
        f"numbers of these models come out within {worst:.3f}. Where the authors' chains were is not known; these "
        "numbers are what chains that stay in order would give:",
        markdown(["model", *columns], rows),
        "Order does not explain Local Saliency, which has no epsilon; for its difference no reason is known.",
    ]


def bits_in_order(them: Studies) -> list[str]:
    """The models' bits on the corrected data in any order and in order."""
    free, kept = them.corrected.by_model("ranking"), them.ordered.by_model("ranking")
    tables = (free, kept, them.ordered.by_model("table2"))
    rows = []
    for name in them.corrected.by_model("table2").index:
        bits = (
            f"{it.loc[name, 'mean']:.3f} ({it.loc[name, 'low']:.3f} to {it.loc[name, 'high']:.3f})" for it in tables[:2]
        )
        rows.append(
            [TITLES[name], *bits, f"{tables[2].loc[name, 'nss']:.3f}", f"{tables[2].loc[name, 'auc_borji']:.3f}"]
        )
    return [
        "## Corrected, with epsilon below xi",
        f"The corrected study again under priors restricted to the paper's order (`foveate reproduce --ordered`, "
        f"{them.ordered.of_what()}). Where an epsilon above xi describes observers better, keeping the order costs "
        "bits:",
        markdown(["model", "bits, any order", "bits, in order", "NSS, in order", "AUC, in order"], rows),
        "Differences between the models in order, in bits per held-out fixation, paired by observer and picture:",
        leads(them.ordered),
    ]


def leads(study: StudyTables) -> str:
    """Differences between models, paired by observer and picture."""
    rows = [
        [f"{TITLES[row['first']]} - {TITLES[row['second']]}", f"{row['difference']:+.3f}",
         f"{row['low']:+.3f} to {row['high']:+.3f}", f"{row['observers_ahead']} of {row['observers']}"]
        for row in study.table("pairs").to_dict(orient="records")
    ]  # fmt: skip
    return markdown(["models", "difference", "95 % interval", "observers ahead"], rows)


def by_fits(them: Studies) -> list[str]:
    """What needs posteriors: Table 2 twice, the order of the variances, and what became of the paper's claims."""
    return [
        "## Table 2, as released and corrected",
        f"`foveate reproduce --as-released` ({them.released.of_what()}) follows the released files (rows 1, 7 to 11 "
        "and 15) with posteriors under the published priors; in brackets is the difference to the paper. `foveate "
        f"reproduce` ({them.corrected.of_what()}) has data, pairs of maps and scores put right. NSS is the mean over "
        "fixations, then pictures, draws and observers, AUC that against random cells, pooled. Bits are those of the "
        "posterior predictive density over uniform per held-out fixation, with 95 % intervals for new observers and "
        "pictures.",
        table_2(them.corrected, them.released),
        *published_in_order(them),
        "Differences between the models, corrected, in bits per held-out fixation, paired by observer and picture:",
        leads(them.corrected),
        *bits_in_order(them),
        "## Which of the paper's claims stand on the corrected data",
        "In any order:",
        claims_on_a_page(them.corrected.table("claims")),
        "With epsilon below xi, as the paper has it:",
        claims_on_a_page(them.ordered.table("claims")),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("FOVEATE_POTSDAM35"))
    for option in ("", "--as-released", "--ordered", "--as-released-ordered"):
        said = option.replace("--as-released-ordered", "--as-released --ordered")
        parser.add_argument(option or "--corrected", type=Path, help=f"folder of foveate reproduce {said}".strip())
    chosen = parser.parse_args()
    folders = (chosen.corrected, chosen.as_released, chosen.ordered, chosen.as_released_ordered)
    studies = [StudyTables(it) for it in folders if it]
    material = Material.read(chosen.data)
    findings = [finding(material) for finding in FINDINGS]
    parts = differences(findings)
    if len(studies) == len(folders):
        parts += by_fits(Studies(*studies))
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text("\n\n".join(parts) + "\n")
    elif studies:
        print(f"{len(studies)} of {len(folders)} studies were given: the page needs all, and is not written.\n")
    print("\n\n".join(parts))
    print(json.dumps({"findings": [asdict(it) for it in findings], "foveate": foveate.__version__}))


if __name__ == "__main__":
    main()

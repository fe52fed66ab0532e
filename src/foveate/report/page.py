"""The page of a report: HTML from the plain dictionaries of `payload.py`. Everything that is text is escaped here."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from foveate.errors import InputError, counted, some_of
from foveate.report.payload import Table

MARKER = "<!-- made by foveate report -->"
HEAD_BYTES = 200  # of a file, among which the marker stands
LOGARITHMIC = 50  # a column of positive numbers that span more than this factor is drawn on a logarithmic scale
LARGE = 1_000_000  # from here on numbers are written with a power of ten
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
VIEWER_SCRIPTS = ("densities_parts.js", "densities.js", "drawing.js", "embedded.js", "viewer.js")  # in this order
OPEN_ROWS = 60  # a longer table of parameters is folded up
LONG_TEXT = 60  # signs from which a cell of a table is made wide, so that it does not become a tower


def page(payload: Mapping[str, Any]) -> str:
    """The whole file."""
    about, sections = payload["about"], _sections(payload)
    navigation = "".join(f'<a href="#{name}">{escape(title)}</a>' for name, title, _ in sections)
    body = "\n".join(
        f'<section id="{name}"><h2>{escape(title)}</h2>\n{contents}</section>' for name, title, contents in sections
    )
    with_viewer = payload["viewer"] is not None
    scripts = ["page.js", *(VIEWER_SCRIPTS if with_viewer else [])]
    return Template(asset("template.html")).substitute(
        marker=MARKER,
        title=escape(about["title"]),
        style=asset("report.css"),
        opening=_opening(about, payload["convergence"]),
        navigation=navigation,
        body=body,
        data=embedded(payload["viewer"]) if with_viewer else "null",
        script="\n".join(asset(name) for name in scripts),
        foot=escape(f"Made of the folder {about['folder']} by {about['versions']['this page']}."),
    )


@cache
def asset(name: str) -> str:
    """A file that comes with the package."""
    return files("foveate.report").joinpath(name).read_text(encoding="utf-8")


def embedded(value: Any) -> str:
    """JSON that can stand in a script element: no character in it means anything to HTML."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII alone
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def check_own(out: Path) -> None:
    """Refuse to write over a file that is no report."""
    if out.is_dir():
        raise InputError(f"{out} is a folder; give the name of a file with --out.")
    if not out.exists():
        return
    try:
        with out.open("rb") as file:
            ours = MARKER.encode() in file.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(f"{out} cannot be read ({error.strerror}); give another file with --out.") from error
    if not ours:
        raise InputError(f"{out} is not a report of foveate; nothing was written: give another file with --out.")


# --- sections --------------------------------------------------------------------------------------------------------


def _sections(payload: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(id, title, HTML) of every section, in the order of the page."""
    found = [
        ("convergence", "Convergence", _convergence(payload["convergence"])),
        ("done", "What was done", _done(payload["about"])),
        ("data", "Data", facts(payload["data"]["facts"]) + "".join(_words(it) for it in payload["data"]["said"])),
        ("parameters", "Parameters", _parameters(payload["parameters"])),
    ]
    if payload["tables"]:
        found.append(("results", "Results", "".join(map(_result, payload["tables"]))))
    if payload["figures"]["shown"] or payload["figures"]["left_out"]:
        found.append(("figures", "Figures", _figures(payload["figures"])))
    found.append(("viewer", "Scan paths", _viewer(payload)))
    return found


def _opening(about: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    bad = found["fits"] - found["converged"]
    if not found["fits"]:
        verdict, kind = "There was nothing to fit.", "plain"
    elif bad:
        verdict, kind = f"{bad} of {counted(found['fits'], 'fit')} NOT CONVERGED: do not rely on them.", "bad"
    else:
        verdict = "The fit has converged." if found["fits"] == 1 else f"All {found['fits']:,} fits have converged."
        kind = "good"
    versions = ", ".join(f"{name} {it}" for name, it in about["versions"].items() if name != "this page")
    line = f"{about['made_by']} · seed {about['seed']} · {about['when']} · {versions}"
    return (
        f'<h1>{escape(about["title"])}</h1>\n<p class="line">{escape(line)}</p>\n'
        f'<p class="verdict {kind}">{escape(verdict)}</p>'
    )


def _done(about: Mapping[str, Any]) -> str:
    words = [f"<span>{escape(it)}</span>" for it in (about["command"] or "").replace(" --", "\n--").split("\n")]
    command = f"<pre><code>{' '.join(words)}</code></pre>" if about["command"] else ""
    versions = ", ".join(f"{name} {it}" for name, it in about["versions"].items())
    return command + facts([*about["settings"], ["last result written", about["when"]], ["versions", versions]])


def _convergence(found: Mapping[str, Any]) -> str:
    if not found["fits"]:
        return _words("The models have no parameters: there was nothing to fit.")
    cards = [
        (f"{found['converged']:,} of {found['fits']:,}", "fits converged", found["converged"] < found["fits"]),
        (f"{found['worst_rhat']:.3f}", "worst R-hat", found["worst_rhat"] > 1.01),
        (f"{found['least_ess']:,.0f}", "least effective draws", found["least_ess"] < 400),
    ]
    shown = "".join(
        f'<div class="{"card wrong" if wrong else "card"}"><strong>{escape(value)}</strong>'
        f"<span>{escape(name)}</span></div>"
        for value, name, wrong in cards
    )
    words = ["Problems first. R-hat should not exceed 1.01, and no number should have fewer than 400 effective draws."]
    if found["noted"]:
        words.append(f"{counted(found['noted'], 'fit')} with a note, which is nothing against the draws.")
    if found["taken_over"]:
        words.append(f"Another sampler took over in {counted(found['taken_over'], 'fit')}: see the remarks.")
    if found["missing"]:
        words.append(
            f"There is no fit yet of {counted(len(found['missing']), 'observer')}: {some_of(found['missing'], 10)}."
        )
    return f'<div class="cards">{shown}</div>' + _words(" ".join(words)) + html_table(found["table"])


def _parameters(models: Sequence[Mapping[str, Any]]) -> str:
    if not models:
        return _words("No model has parameters.")
    words = (
        "Posterior mean and interval of 95 %; the line below each shows it on the scale of its column, a logarithmic "
        f"one where that spans more than a factor of {LOGARITHMIC}. Click a column's head to sort."
    )
    parts = [_words(words)]
    for model in models:
        is_open = " open" if len(models) == 1 or len(model["table"]["rows"]) <= OPEN_ROWS else ""
        parts.append(
            f"<details{is_open}><summary>{escape(model['title'])}</summary>{html_table(model['table'])}</details>"
        )
    return "".join(parts)


def _result(section: Mapping[str, Any]) -> str:
    return f"<h3>{escape(section['heading'])}</h3>" + _words(section["words"]) + html_table(section["table"])


def _figures(found: Mapping[str, Any]) -> str:
    shown = "".join(
        f'<figure class="{"wide" if it["wide"] else "narrow"}">{it["svg"]}'
        f"<figcaption>{escape(it['caption'])}</figcaption></figure>"
        for it in found["shown"]
    )
    left = found["left_out"]
    return f'<div class="figures">{shown}</div>' + (
        _words(f"Left out, since the page would be too large or they are no SVG: {some_of(left, 20)}.") if left else ""
    )


def _viewer(payload: Mapping[str, Any]) -> str:
    notes = "".join(_words(it) for it in payload["viewer_notes"])
    return notes if payload["viewer"] is None else asset("viewer.html") + f'<div class="notes">{notes}</div>'


# --- parts -----------------------------------------------------------------------------------------------------------


def _words(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def facts(rows: Sequence[Sequence[str]]) -> str:
    """A list of names and values."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows) + "</dl>"


def html_table(shown: Table) -> str:
    """A table that sorts by the column whose head is clicked."""
    kinds = [column["kind"] for column in shown["columns"]]
    heads = "".join(
        f'<th class="{column["kind"]}" aria-sort="none"><button type="button">{escape(column["name"])}</button></th>'
        for column in shown["columns"]
    )
    rows_of = {scale: [row for row, it in zip(shown["rows"], shown["scales"], strict=True) if it == scale]
               for scale in dict.fromkeys(shown["scales"])}  # fmt: skip
    ends = {
        scale: [_ends([row[place] for row in rows]) if kind == "interval" else None for place, kind in enumerate(kinds)]
        for scale, rows in rows_of.items()
    }
    body = []
    for row, marked, scale in zip(shown["rows"], shown["marked"], shown["scales"], strict=True):
        cells = "".join(_cell(kind, cell, end) for kind, cell, end in zip(kinds, row, ends[scale], strict=True))
        body.append(f'<tr class="wrong">{cells}</tr>' if marked else f"<tr>{cells}</tr>")
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def _cell(kind: str, cell: Any, ends: tuple[float, float] | None) -> str:
    if kind == "text":
        kinds = "text long" if len(cell) > LONG_TEXT else "text"
        return f'<td class="{kinds}">{escape(cell)}</td>'
    if kind == "number":
        value = "" if cell[0] is None else f' data-value="{cell[0]:.9g}"'
        return f'<td class="number"{value}>{escape(cell[1])}</td>'
    middle, low, high, *observed = cell
    if ends is None or not all(map(_finite, cell)):
        return '<td class="interval">–</td>'
    bar = ";".join(f"--{name}:{_percent(it, ends):.1f}" for name, it in (("l", low), ("m", middle), ("h", high)))
    zero = f";--z:{_percent(0.0, ends):.1f}" if ends[0] < 0 < ends[1] else ""
    beside = "".join(f'<i style="--o:{_percent(it, ends):.1f}"></i>' for it in observed)
    return (
        f'<td class="interval" data-value="{middle:.9g}">{short(middle)} <small>{short(low)} to {short(high)}</small>'
        f'<span class="{"bar zero" if zero else "bar"}" style="{bar}{zero}">{beside}</span></td>'
    )


def _finite(value: float) -> bool:
    return abs(value) < float("inf")


def _ends(cells: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    """The scale of some intervals of a column."""
    held = [it for cell in cells if all(map(_finite, cell)) for it in cell]
    return (min(held), max(held)) if held else None


def _percent(value: float, ends: tuple[float, float]) -> float:
    low, high = ends
    if low > 0 and high > LOGARITHMIC * low:
        return 100 * math.log(value / low) / math.log(high / low)
    return 100 * (value - low) / (high - low) if high > low else 50.0


def short(value: float) -> str:
    """A number with about three digits, and a true minus sign."""
    size = abs(value)
    if size >= LARGE:
        digits, power = f"{value:.1e}".split("e+")
        return f"{digits}×10{power.lstrip('0').translate(RAISED)}".replace("-", "−")
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")

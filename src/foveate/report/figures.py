"""Figures of a folder as SVG inside a page: nothing but shapes and text, and ids that belong to one figure alone."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = "figures"
MOST_BYTES = 5_000_000  # of all figures of a page; those that do not fit are named instead

CAPTIONS = {
    "fig1-data": "A scan path over its picture's map, all observers' fixations on the picture, and their density.",
    "fig2-policies": "What each policy, and their mixture, expects at one step of a path.",
    "fig3-scan-paths": "Observed scan paths (above) and simulated ones on the same pictures (below).",
    "fig4-recovery": "Recovery of known parameters: posteriors of one simulated observer, true values marked.",
    "fig5-maps": "Density of fixations on one picture: the data, and the paths that each model simulates.",
    "fig6-amplitudes": "Saccade amplitudes: observed, and simulated by each model (95 % of the draws in the band).",
    "fig7-autocorrelation": "Autocorrelation of successive saccade amplitudes, observed and simulated.",
    "fig8-observers": "Mean and standard deviation of amplitude, observer by observer: observed against simulated.",
    "fig9-directions": "Directions of saccades and turns between them, observed and simulated.",
    "fig10-roc": "ROC curves of the held-out fixations.",
    "ranking": "Differences between models, bits per held-out fixation; intervals are for new observers and pictures.",
    "by-fixation": "Score by the number of the fixation in its path, with intervals of 95 %.",
}  # fmt: skip

SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
SHAPES = ("path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "image", "use")
PAINT = ("defs", "clipPath", "mask", "pattern", "marker", "symbol", "linearGradient", "radialGradient", "stop")
DRAWN = frozenset(("svg", "g", *SHAPES, *PAINT))
OWN = re.compile(r"#[\w.:-]+")
PICTURE = re.compile(r"data:image/(png|jpeg);base64,[\s\w+/=]+")
REFERENCE = re.compile(r"url\(\s*(['\"]?)([^)'\"]*)\1\s*\)")

WIDE_PT = 400.0  # more than one column of a journal's page

# Matplotlib says this of everything in a file; in a page it would be said of everything there.
ROOT_STYLE = "stroke-linejoin: round; stroke-linecap: butt"

ET.register_namespace("", SVG)


def inlined(text: str, prefix: str) -> str | None:
    """A figure's SVG with every id under this prefix, without scripts, styles and links; None if it is no SVG."""
    try:
        root = ET.fromstring(text)
    except ET.ParseError:
        return None
    if root.tag != f"{{{SVG}}}svg":
        return None
    _clean(root, prefix)
    root.set("style", ROOT_STYLE)
    root.set("role", "img")
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, prefix: str) -> None:
    for child in list(element):
        if not isinstance(child.tag, str) or child.tag.removeprefix(f"{{{SVG}}}") not in DRAWN:
            element.remove(child)
        else:
            _clean(child, prefix)
    for name, value in list(element.attrib.items()):
        del element.attrib[name]
        if name == "id":
            element.set(name, f"{prefix}{value}")
        elif name in (LINK, "href"):
            if OWN.fullmatch(value):
                element.set("href", f"#{prefix}{value[1:]}")
            elif PICTURE.fullmatch(value):
                element.set("href", value)
        elif not name.startswith(("on", "{")):
            kept = REFERENCE.sub(lambda it: f"url(#{prefix}{it[2][1:]})" if OWN.fullmatch(it[2]) else "none", value)
            element.set(name, kept)


def _is_wide(svg: str) -> bool:
    """Whether a figure was drawn over both columns of a page."""
    size = re.search(r'viewBox="[\d.]+ [\d.]+ ([\d.]+)', svg)
    return size is not None and float(size[1]) > WIDE_PT


def figures(folder: Path, named: Sequence[str] = (), most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The SVG figures of a folder, {"shown": [{name, caption, svg, wide}], "left_out": [name]}; `named` come first.

    Names are those of files; whatever `named` says, nothing outside of the folder is read.
    """
    there = {file.name: file for place in (folder, folder / FOLDER) for file in sorted(place.glob("*.svg"))}
    first = [Path(name).name for name in named]
    order = [name for name in dict.fromkeys([*first, *there]) if name in there]
    shown, left_out, taken = [], [], 0
    for number, name in enumerate(order, 1):
        text = there[name].read_text(encoding="utf-8", errors="replace")
        svg = inlined(text, f"f{number}-") if taken + len(text) <= most_bytes else None
        stem = name.removesuffix(".svg")
        if svg is None:
            left_out.append(stem)
            continue
        taken += len(svg)
        caption = CAPTIONS.get(stem, f"{stem.replace('-', ' ').replace('_', ' ')}.")
        shown.append({"name": stem, "caption": caption, "svg": svg, "wide": _is_wide(svg)})
    return {"shown": shown, "left_out": left_out}

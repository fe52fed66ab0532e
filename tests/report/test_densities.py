"""Maps that the page works out in JavaScript are those of the model: the very file is run under Node."""

import json
import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest

from foveate import History, Model, Picture, example_data, named_model
from foveate.data.grid import Extent, Grid
from foveate.model.choices import FixedChoice, OnlyPolicy, SaliencyRatioChoice
from foveate.model.description import describe
from foveate.model.policies import Global, Local, PrintedRepelledGlobal, RepelledGlobal
from foveate.model.priors import Beta, LogNormal, Normal

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no Node: the page's JavaScript is not run")

RELATIVE, LEAST = 1e-6, 1e-9  # agreement, of densities above this

SCRIPT = """
const D = require(process.argv[1]);
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const answers = asked.map(({ description, parameters, grid, saliency, positions }) => {
  const map = Float64Array.from(saliency.flat());
  const model = D.withParameters(description, parameters);
  const history = D.historyOf(grid, map, positions);
  const listed = (it) => (it === null ? null : Array.from(it, Math.exp));
  return {
    mixture: listed(D.logDensity(model, history, map, grid)),
    policies: D.policyLogDensities(model, history, map, grid).map(listed),
    choice: listed(D.choiceLogProbabilities(model.choice, history, grid)),
  };
});
console.log(JSON.stringify(answers));
"""


def in_node(cases: list[dict]) -> list[dict]:
    file = str(files("foveate.report").joinpath("densities.js"))
    run = subprocess.run(
        [str(NODE), "-e", SCRIPT, file],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def grid_of(grid: Grid) -> dict:
    return {
        "rows": grid.rows,
        "columns": grid.columns,
        "height_deg": grid.extent.height_deg,
        "width_deg": grid.extent.width_deg,
    }


def case(model: Model, grid: Grid, saliency: np.ndarray, y: np.ndarray, x: np.ndarray) -> dict:
    """One step: the structure of the model from other values, so that it is the parameters which are used."""
    elsewhere = model.from_real(np.asarray(model.to_real()) + 0.3) if model.labels else model
    parameters = {name: np.asarray(value).tolist() for name, value in model.parameters.items()}
    return {"description": describe(elsewhere), "parameters": parameters, "grid": grid_of(grid),
            "saliency": saliency.tolist(), "positions": np.stack([y, x], axis=-1).tolist()}  # fmt: skip


def models() -> dict[str, Model]:
    found = {
        name: named_model(name)
        for name in ("full", "local_choice", "fixed_choice", "local_saliency", "saliency_baseline")
    }
    found["printed"] = named_model("full", repulsion="printed", epsilon=(1.2, 1.8), xi=(30, 55))
    found["plain"] = named_model("local_choice", repulsion="none", b=-0.7, s0=1.4)
    priors = {"epsilon": LogNormal(2.0, 1.0), "xi": LogNormal(30.0, 1.0)}
    # Where the narrow Gaussian is wide on one axis, and where it is tiny.
    found["crossed"] = Model(
        (Local((60, 0.5)), RepelledGlobal((9, 9), (60, 0.5))),
        FixedChoice(0.2),
        priors | {"rho": Beta(1.0, 1.0)},
        "crossed",
    )
    choice = {"b": Normal(0.0, 1.0), "s0": Normal(0.0, 1.0)}
    found["tiny"] = Model(
        (Local((1e-3, 1e-3)), PrintedRepelledGlobal((50, 50), (1e-3, 1e-3))),
        SaliencyRatioChoice(5.0, 1.0),
        priors | choice,
        "tiny",
    )
    return found


def test_maps_agree_with_the_model():
    data = example_data().data
    grid, paths = data.maps.grid, list(data.paths)
    turned = Grid(12, 20, Extent(9.0, 14.0, "top"))
    rng = np.random.default_rng(1)
    weights = rng.gamma(0.3, size=turned.shape) * (rng.random(turned.shape) > 0.2)  # with empty cells
    odd = weights / weights.sum()
    steps = [
        (grid, data.maps[paths[i].picture], paths[i].y_deg[:n], paths[i].x_deg[:n])
        for i, n in ((0, 2), (1, 9), (30, 20))
    ]
    steps += [
        (turned, odd, np.array([0.0, 9.0]), np.array([14.0, 0.0])),
        (turned, odd, np.array([3.0]), np.array([4.0])),
    ]
    catalogue = models()
    plain = ("full", "local_choice", "fixed_choice", "local_saliency", "saliency_baseline")
    asked = [(catalogue[name], *step) for name in plain for step in steps if step[0] == grid]
    asked += [
        (model, *step)
        for name, model in catalogue.items()
        for step in steps
        if step[0] == turned and name not in plain[1:]
    ]
    compared = 0
    for (model, at, saliency, y, x), found in zip(asked, in_node([case(*it) for it in asked]), strict=True):
        picture = Picture.whole(at, saliency)
        history = History.of(picture, y, x)
        expected = [np.exp(model.log_density(history, picture)), *np.exp(model.policy_log_densities(history, picture))]
        for ours, theirs in zip(expected, [found["mixture"], *found["policies"]], strict=True):
            got = np.array(theirs).reshape(at.shape)
            well = ours > LEAST
            np.testing.assert_allclose(got[well], ours[well], rtol=RELATIVE, err_msg=model.name)
            assert got[~well].max(initial=0) < LEAST * (1 + RELATIVE)
            compared += int(well.sum())
        chosen = np.exp(np.asarray(model.choice.log_probabilities(history, picture)))
        np.testing.assert_allclose(found["choice"], chosen, rtol=RELATIVE)
    assert compared > 50_000  # the comparison is not of nothing


def test_parts_of_ones_own_have_no_map():
    grid = Grid(4, 4, Extent(4.0, 4.0))
    known = case(
        Model((Global((2, 3)),), OnlyPolicy(), {"xi": LogNormal(1.0, 1.0)}, "own"),
        grid,
        np.full((4, 4), 1 / 16),
        np.array([1.0, 2.0]),
        np.array([1.0, 2.0]),
    )
    own_policy = json.loads(json.dumps(known).replace('"Global"', '"Momentum"'))
    own_choice = json.loads(json.dumps(known).replace('"OnlyPolicy"', '"constructor"'))
    plain, policy, choice = in_node([known, own_policy, own_choice])
    assert abs(sum(plain["mixture"]) - 1) < 1e-12
    assert policy["mixture"] is None
    assert policy["policies"] == [None]
    assert choice["mixture"] is None
    assert choice["choice"] is None
    assert choice["policies"][0] is not None

"""Maps that the page works out in JavaScript are those of the model: the very files are run under Node."""

import json
import shutil
import subprocess
from dataclasses import dataclass, replace
from importlib.resources import files

import jax
import numpy as np
import pytest
from made_folders import four_policies

from contracts.situations import DURATIONS_S, GRID, maps_on, one_set, parameter_sets, situations
from contracts.table import NUMBER, VARIANCE, Row, rows_of
from foveate import History, Model, Picture, example_data, named_model
from foveate.data.grid import Extent, Grid
from foveate.model.choices import Choice, FixedChoice, OnlyPolicy, SaliencyRatioChoice
from foveate.model.description import describe
from foveate.model.factors import Factor
from foveate.model.mechanisms import CentreBias, Uniform
from foveate.model.policies import Global, Local, Policy, PrintedRepelledGlobal, RepelledGlobal, StaticSaliency
from foveate.model.priors import Beta, LogNormal, Normal

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no Node: the page's JavaScript is not run")

RELATIVE, LEAST = 1e-6, 1e-9  # agreement, of densities above this

# Parts of the package that the page is not meant to know: their names, and the viewer says that it has no maps of them.
WITHOUT_MAPS: set[str] = set()

SCRIPT = """
const D = require(process.argv[1]);
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const answers = asked.map(({ description, parameters, grid, saliency, positions, durations_s }) => {
  const map = Float64Array.from(saliency.flat());
  const model = D.withParameters(description, parameters);
  const history = D.historyOf(grid, map, positions, durations_s);
  const listed = (it) => (it === null ? null : Array.from(it, Math.exp));
  return {
    mixture: listed(D.logDensity(model, history, map, grid)),
    policies: D.policyLogDensities(model, history, map, grid).map(listed),
    choice: listed(D.choiceLogProbabilities(model.choice, history, grid)),
    unknown: D.unknownParts(description),
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


@dataclass(frozen=True, eq=False)
class Step:
    """What was looked at before a fixation, oldest first, in which picture."""

    grid: Grid
    saliency: np.ndarray
    y_deg: np.ndarray
    x_deg: np.ndarray
    duration_s: np.ndarray | None = None

    def case(self, model: Model) -> dict:
        """For the page: the structure of the model from other values, so that it is the parameters which are used."""
        elsewhere = model.from_real(np.asarray(model.to_real()) + 0.3) if model.labels else model
        parameters = {name: np.asarray(value).tolist() for name, value in model.parameters.items()}
        extent = self.grid.extent
        grid = {"rows": self.grid.rows, "columns": self.grid.columns, "up": extent.origin == "bottom",
                "height_deg": extent.height_deg, "width_deg": extent.width_deg}  # fmt: skip
        return {"description": describe(elsewhere), "parameters": parameters, "grid": grid,
                "saliency": self.saliency.tolist(), "positions": np.stack([self.y_deg, self.x_deg], axis=-1).tolist(),
                "durations_s": None if self.duration_s is None else self.duration_s.tolist()}  # fmt: skip


def compared(asked: list[tuple[Model, Step]]) -> int:
    """Hold the page's maps and probabilities to the model's; how many cells were compared."""
    cells = 0
    for (model, step), found in zip(asked, in_node([step.case(model) for model, step in asked]), strict=True):
        assert found["unknown"] == []
        picture = Picture.whole(step.grid, step.saliency)
        history = History.of(picture, step.y_deg, step.x_deg, model.memory, step.duration_s)
        expected = [np.exp(model.log_density(history, picture)), *np.exp(model.policy_log_densities(history, picture))]
        for ours, theirs in zip(expected, [found["mixture"], *found["policies"]], strict=True):
            got = np.array(theirs).reshape(step.grid.shape)
            well = ours > LEAST
            np.testing.assert_allclose(got[well], ours[well], rtol=RELATIVE, err_msg=model.name)
            assert got[~well].max(initial=0) < LEAST * (1 + RELATIVE)
            cells += int(well.sum())
        with jax.enable_x64(True):
            chosen = np.exp(np.asarray(model.choice.log_probabilities(history, picture)))
        np.testing.assert_allclose(found["choice"], chosen, rtol=RELATIVE, atol=1e-300)
    return cells


def contract_steps() -> list[Step]:
    """Every situation of the contract, and one map's also on a grid whose rows run from the top."""
    top = Grid(GRID.rows, GRID.columns, replace(GRID.extent, origin="top"))
    return [
        Step(grid, maps_on(GRID)[name], *np.array(path).T, DURATIONS_S)
        for grid in (GRID, top)
        for path, name in zip(*situations(), strict=True)
        if grid is GRID or name == "lumpy"
    ]


def example_steps(*places: tuple[int, int]) -> list[Step]:
    """After so many fixations of these paths of the example."""
    data = example_data().data
    paths = list(data.paths)
    return [
        Step(
            data.maps.grid, data.maps[paths[i].picture], paths[i].y_deg[:n], paths[i].x_deg[:n], paths[i].duration_s[:n]
        )
        for i, n in places
    ]


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
    turned = Grid(12, 20, Extent(9.0, 14.0, "top"))
    rng = np.random.default_rng(1)
    weights = rng.gamma(0.3, size=turned.shape) * (rng.random(turned.shape) > 0.2)  # with empty cells
    odd = weights / weights.sum()
    edge = Step(turned, odd, np.array([0.0, 9.0]), np.array([14.0, 0.0]))
    single = Step(turned, odd, np.array([3.0]), np.array([4.0]))
    catalogue = models()
    plain = ("full", "local_choice", "fixed_choice", "local_saliency", "saliency_baseline")
    asked = [(catalogue[name], step) for name in plain for step in example_steps((0, 2), (1, 9), (30, 20))]
    asked += [(it, step) for name, it in catalogue.items() if name not in plain[1:] for step in (edge, single)]
    assert compared(asked) > 50_000  # the comparison is not of nothing


def page_knows(model: Model, step: Step) -> bool:
    """Whether the page has maps of the model; it may lack them only where that is on purpose."""
    (found,) = in_node([step.case(model)])
    assert set(found["unknown"]) <= WITHOUT_MAPS, "densities_parts.js does not know these"
    return not found["unknown"]


@pytest.mark.parametrize("row", rows_of(Policy, Factor))
def test_every_policy_and_factor_of_the_contract_has_its_map(row: Row):
    model, steps = row.model(), contract_steps()
    assert row.part.__name__ in json.dumps(describe(model))
    if not page_knows(model, steps[0]):
        return
    sets = parameter_sets(model)
    count = len(next(iter(sets.values()), []))
    extreme = [model.with_parameters(one_set(sets, index)) for index in range(1, count)]
    asked = [(model, step) for step in steps]
    asked += [(it, steps[7 * place % len(steps)]) for place, it in enumerate(extreme)]
    assert compared(asked) > 2_000


@pytest.mark.parametrize("row", rows_of(Choice))
def test_every_choice_of_the_contract_has_its_probabilities(row: Row):
    choice, steps = row.make(), contract_steps()
    priors = {name: Beta(1.0, 1.0) if name == "rho" else NUMBER for name in row.parameters}
    policies = (StaticSaliency(), Uniform(), CentreBias((20.0, 41.0)))[: choice.policies]
    priors |= {"tau": VARIANCE} if len(policies) == 3 else {}
    model = Model(policies, choice, priors, row.name)
    if page_knows(model, steps[0]):
        assert compared([(model, step) for step in steps]) > 2_000


def test_four_modulated_policies_and_their_mixture_agree_with_the_model():
    model = four_policies()
    long = example_steps((0, 2), (1, 9), (30, 20))  # also further back than places are remembered
    unknown = [replace(step, duration_s=None) for step in long[1:]]
    top = [replace(step, grid=replace(step.grid, extent=replace(step.grid.extent, origin="top"))) for step in long[1:]]
    assert len(model.policies) == 4
    assert model.memory == 4
    assert compared([(model, step) for step in [*long, *unknown, *top]]) > 50_000


def test_parts_of_ones_own_have_no_map():
    step = Step(Grid(4, 4, Extent(4.0, 4.0)), np.full((4, 4), 1 / 16), np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    known = Model((Global((2, 3)),), OnlyPolicy(), {"xi": LogNormal(1.0, 1.0)}, "own")

    def renamed(model: Model, *pair: str) -> dict:
        return json.loads(json.dumps(step.case(model)).replace(*(f'"{name}"' for name in pair)))

    plain, policy, choice, factor, inner, feature = in_node(
        [
            step.case(known),
            renamed(known, "Global", "Homewards"),
            renamed(known, "OnlyPolicy", "constructor"),
            renamed(four_policies(), "Turning", "Dizzy"),
            renamed(four_policies(), "Return", "Homewards"),
            renamed(four_policies(), "ratio", "mood"),
        ]
    )
    assert abs(sum(plain["mixture"]) - 1) < 1e-12
    for found, names in ((policy, ["Homewards"]), (choice, ["constructor"]), (factor, ["Dizzy"]), (feature, ["mood"])):
        assert found["mixture"] is None
        assert found["unknown"] == names
    assert policy["policies"] == [None]
    assert choice["choice"] is None
    assert choice["policies"][0] is not None
    assert factor["policies"] == [None] * 4
    assert [it is None for it in inner["policies"]] == [False, False, False, True]
    assert feature["choice"] is None
    assert None not in feature["policies"]

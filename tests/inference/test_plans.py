"""Samplers that ask for densities: answered alone, or many together, they come to the same."""

import jax
import numpy as np
import pytest

import foveate
from foveate.execution import graph
from foveate.execution.places import Here
from foveate.execution.run import Run
from foveate.execution.tasks import FitTask
from foveate.inference import laplace as laplace_module
from foveate.inference import stack
from foveate.inference.fit import fit_together, observer_key
from foveate.inference.plans import Ask, alone, side_by_side
from foveate.inference.stack import Stack, targets_of_one_size, together
from foveate.inference.target import Target, log_densities

MODEL = foveate.named_model("local_saliency")
OBSERVERS = ["ann", "ben", "cleo"]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """A processor works on one vector after another, needed or not."""
    monkeypatch.setattr(stack, "PER_ROW", {False: 8, True: 2})
    monkeypatch.setattr(stack, "ROWS", (4, 2))


@pytest.fixture(scope="module")
def each() -> list[foveate.Dataset]:
    """Of different sizes, so that some have to be padded."""
    whole = foveate.example_data(seed=1).data
    whole = foveate.Dataset(whole.paths, whole.maps.resample(foveate.Grid(12, 16, whole.paths.extent)))
    counts = zip(OBSERVERS, (4, 6, 5), strict=True)
    return [whole.select(observers=[who], pictures=whole.paths.pictures[:count]) for who, count in counts]


def points(count: int, seed: int) -> np.ndarray:
    return np.asarray(MODEL.to_real()) + 0.3 * np.random.default_rng(seed).standard_normal((count, 2))


def test_a_stack_answers_every_question_about_its_own_target(each):
    """Also where questions do not fill rows, rows do not fill batches, and some want slopes."""
    targets = targets_of_one_size(MODEL, each)
    stacked = Stack.of(targets)
    questions = {0: Ask(points(3, 1)), 2: Ask(points(21, 2)), 1: Ask(points(5, 3), slopes=True)}
    answers = stacked.ask(questions)()
    assert set(answers) == {0, 1, 2}
    for place, question in questions.items():
        expected = log_densities(Target.of(MODEL, each[place]), question.vectors)
        np.testing.assert_allclose(answers[place].values, expected, rtol=1e-6)
    step = 1e-4 * np.eye(2)[0]
    ahead, behind = (log_densities(targets[1], questions[1].vectors + sign * step) for sign in (1, -1))
    np.testing.assert_allclose(answers[1].slopes[:, 0], (ahead - behind) / 2e-4, rtol=2e-2, atol=0.05)


def test_a_question_outside_of_what_numbers_can_say_is_answered_with_minus_infinity(each):
    stacked = Stack.of(targets_of_one_size(MODEL, each))
    answer = stacked.ask({1: Ask(np.array([[np.nan, 0.0], *points(1, 4)]))})()[1]
    assert answer.values[0] == -np.inf
    assert np.isfinite(answer.values[1])


def counting(turns: int, seed: int):
    """A plan that asks so many times and adds up what it is told."""
    total = 0.0
    for turn in range(turns):
        total += float((yield Ask(points(2, seed + turn))).values.sum())
    return total


def test_plans_come_to_the_same_alone_side_by_side_and_together(each):
    targets = targets_of_one_size(MODEL, each)
    expected = [alone(counting(turns, seed), targets[0]) for turns, seed in ((1, 10), (4, 20), (2, 30))]
    found = alone(side_by_side([counting(turns, seed) for turns, seed in ((1, 10), (4, 20), (2, 30))]), targets[0])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    alone_each = [alone(counting(place + 1, place), target) for place, target in enumerate(targets)]
    plans = [counting(place + 1, place) for place in range(len(targets))]
    finished = dict(together(plans, Stack.of(targets)))
    assert sorted(finished) == [0, 1, 2]
    np.testing.assert_allclose([finished[place] for place in range(3)], alone_each, rtol=1e-6)


def slopes_at(points: np.ndarray):
    """A plan whose result is the answer to one question."""
    return (yield Ask(points, slopes=True))


def test_slopes_are_the_same_alone_and_together(each):
    targets = targets_of_one_size(MODEL, each)
    finished = dict(together([slopes_at(points(3, place)) for place in range(3)], Stack.of(targets)))
    for place, target in enumerate(targets):
        expected = alone(slopes_at(points(3, place)), target)
        np.testing.assert_allclose(finished[place].values, expected.values, rtol=1e-6)
        np.testing.assert_allclose(finished[place].slopes, expected.slopes, rtol=1e-4, atol=1e-3)


def test_chains_side_by_side_agree_with_those_of_each_alone(each):
    """Jumps and trajectories go through batches as well."""
    keys = [observer_key(jax.random.key(4), who) for who in OBSERVERS[:2]]
    settings = {"moves": 60, "effective_draws": 50}
    never = pytest.MonkeyPatch()
    never.setattr(laplace_module, "_trusted", lambda weighted: False)
    try:
        found = dict(fit_together(MODEL, each[:2], keys, **settings))
        for place in range(2):
            expected = foveate.fit(MODEL, each[place], keys[place], sampler="laplace", **settings)
            assert found[place].samples.facts["moved"]
            mine, theirs = (it.numbers.reshape(-1, 2) for it in (found[place], expected))
            apart = (mine.mean(axis=0) - theirs.mean(axis=0)) / theirs.std(axis=0)
            np.testing.assert_allclose(apart, 0.0, atol=0.5)
    finally:
        never.undo()


def test_a_setting_that_the_sampler_does_not_have_is_refused_side_by_side_too(each):
    with pytest.raises(foveate.InputError, match="no setting 'leaps'"):
        list(fit_together(MODEL, each[:1], [jax.random.key(1)], leaps=3))


def test_tasks_that_go_side_by_side_come_with_all_others(each, monkeypatch):
    """As on a GPU, where only those go side by side whose maps have no empty cells."""
    empty = np.array(each[1].maps.values)
    empty[:, 0, 0] = 0.0
    maps = dict(zip(each[1].maps.pictures, empty / empty.sum(axis=(1, 2), keepdims=True), strict=True))
    holed = foveate.Dataset(each[1].paths, foveate.SaliencyMaps.from_arrays(maps, each[1].maps.grid.extent))
    run = Run.of(MODEL, each[0], 1, sampler="laplace", settings={"effective_draws": 20})
    tasks = [FitTask(run, data, {"observer": data.paths.observers[0]}) for data in (each[0], holed, each[2])]
    posterior, beside = foveate.fit(MODEL, each[0], jax.random.key(1), sampler="laplace", effective_draws=20), []

    def together_as_well(some):
        beside.append([it.observer for it in some])
        return [(it, posterior) for it in some]

    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    monkeypatch.setattr(graph, "perform_together", together_as_well)
    monkeypatch.setattr(graph, "perform", lambda task: posterior)
    with Here(1) as place:
        found = [task.observer for task, _ in graph.completed(tasks, place)]
    assert found == ["ann", "cleo", "ben"]
    assert beside == [["ann", "cleo"]]

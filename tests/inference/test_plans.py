"""Samplers that ask for densities: answered alone, or many together, they come to the same."""

import jax
import numpy as np
import pytest

import foveate
from foveate.inference import stack
from foveate.inference.fit import fit_together, observer_key
from foveate.inference.plans import Answer, Ask, alone, side_by_side
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


def test_a_plan_that_asks_for_slopes_is_given_them():
    def one():
        answer = yield Ask(np.zeros((1, 2)), slopes=True)
        return answer.slopes

    plan = one()
    next(plan)
    with pytest.raises(StopIteration) as done:
        plan.send(Answer(np.zeros(1), np.ones((1, 2))))
    np.testing.assert_array_equal(done.value.value, np.ones((1, 2)))


def test_fits_side_by_side_are_those_of_each_alone(each):
    """The same plans with the same keys: their answers differ in the last digits alone."""
    keys = [observer_key(jax.random.key(3), who) for who in OBSERVERS]
    found = dict(fit_together(MODEL, each, keys, effective_draws=100))
    for place, (data, key) in enumerate(zip(each, keys, strict=True)):
        expected = foveate.fit(MODEL, data, key, sampler="laplace", effective_draws=100)
        assert found[place].observer == expected.observer
        mine, theirs = (it.numbers.reshape(-1, 2) for it in (found[place], expected))
        apart = (mine.mean(axis=0) - theirs.mean(axis=0)) / theirs.std(axis=0)
        np.testing.assert_allclose(apart, 0.0, atol=0.25)  # five standard errors of 400 effective draws
        assert found[place].provenance["steps"] == expected.provenance["steps"]

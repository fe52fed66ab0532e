"""Comparisons: paired by step, and as uncertain as observers and pictures make them."""

import jax
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from foveate.errors import InputError
from foveate.evaluate.compare import best_shares, compare
from foveate.evaluate.paired import StepScores, two_way

KEY = jax.random.key(5)


def table_of(scores: dict[str, np.ndarray], lengths: np.ndarray) -> pd.DataFrame:
    """A tidy table from each model's scores (observer, picture, step), of which the first `lengths` are real."""
    (observer, picture, step) = np.nonzero(np.arange(next(iter(scores.values())).shape[2]) < lengths[..., None])
    names = np.array([f"picture {index}" for index in range(lengths.shape[1])])
    keys = {"observer": observer, "picture": names[picture], "fixation": step + 3}
    return pd.concat(
        [
            pd.DataFrame({"model": model} | keys | {"value": values[observer, picture, step]})
            for model, values in scores.items()
        ],
        ignore_index=True,
    )


@pytest.fixture(scope="module")
def lengths() -> np.ndarray:
    return np.random.default_rng(1).integers(2, 9, size=(7, 5))


@pytest.fixture(scope="module")
def scores() -> dict[str, np.ndarray]:
    """Steps differ much, models by a little: 'good' - 'fair' is 0.3 and 'fair' - 'poor' 0.1 on average."""
    rng = np.random.default_rng(2)
    steps = rng.normal(size=(7, 5, 8)) * 3
    noise = {name: rng.normal(size=(7, 5, 8)) * 0.05 for name in ("fair", "good", "poor")}
    return {"fair": steps + noise["fair"], "good": steps + 0.3 + noise["good"], "poor": steps - 0.1 + noise["poor"]}


@pytest.fixture(scope="module")
def table(scores, lengths) -> pd.DataFrame:
    return table_of(scores, lengths)


def test_the_mean_difference_is_that_of_the_steps(table):
    by_model = table.groupby("model")["value"].mean()
    found = compare(table)
    assert found.models["model"].tolist() == ["good", "fair", "poor"]
    assert found.models["mean"].tolist() == pytest.approx(by_model[["good", "fair", "poor"]].tolist())
    pairs = found.pairs.set_index(["first", "second"])
    assert len(pairs) == 3
    for (first, second), row in pairs.iterrows():
        assert row["difference"] == pytest.approx(by_model[first] - by_model[second])
        assert row["low_all"] < row["low"] < row["difference"] < row["high"] < row["high_all"]
    assert found.best == "good"
    assert found.against_best()["second"].tolist() == ["fair", "poor"]


def test_averaging_by_picture_gives_every_path_the_same_weight(table):
    paths = table.groupby(["model", "observer", "picture"])["value"].mean().groupby("model").mean()
    found = compare(table, average="picture").models.set_index("model")["mean"]
    assert found.to_dict() == pytest.approx(paths.to_dict())


def test_pairing_takes_out_what_makes_steps_hard(table):
    found = compare(table)
    # The means alone are uncertain by more than they differ; the differences are not.
    assert found.models["standard_error"].min() > 0.15
    assert found.pairs["standard_error"].max() < 0.02
    assert (found.pairs["low_all"] > 0).all()


def test_observers_ahead_are_counted(scores, lengths):
    scores = scores | {"odd": scores["fair"] + np.array([1, 1, -1, -1, -1, 1, 1])[:, None, None]}
    pairs = compare(table_of({name: scores[name] for name in ("odd", "fair")}, lengths)).pairs
    ahead = {"odd": 4, "fair": 3}[pairs["first"][0]]
    assert pairs[["observers_ahead", "observers"]].iloc[0].tolist() == [ahead, 7]


def test_the_order_of_rows_and_models_does_not_matter(table):
    shuffled = table.sample(frac=1.0, random_state=3)
    for average in ("fixation", "picture"):
        first, second = compare(table, average=average), compare(shuffled, average=average)
        pd.testing.assert_frame_equal(first.pairs, second.pairs)


def test_equal_models_differ_by_nothing(scores, lengths):
    pairs = compare(table_of({"one": scores["fair"], "two": scores["fair"]}, lengths)).pairs
    assert pairs[["difference", "low", "high", "observers_ahead"]].iloc[0].tolist() == [0, 0, 0, 0]


# --- the interval ----------------------------------------------------------------------------------------------------


def test_the_standard_error_is_that_of_a_crossed_analysis_of_variance():
    rng = np.random.default_rng(3)
    d = rng.normal(size=(6, 1)) + 0.5 * rng.normal(size=(1, 9)) + 0.7 * rng.normal(size=(6, 9))
    rows, columns = d.mean(axis=1), d.mean(axis=0)
    by_observer = 9 * rows.var(ddof=1)
    by_picture = 6 * columns.var(ddof=1)
    left = np.square(d - rows[:, None] - columns + d.mean()).sum() / (5 * 8)
    for count, average in ((1, "picture"), (4, "fixation"), (4, "picture")):
        found = two_way(d * count, np.full(d.shape, float(count)), average)
        assert found.mean == pytest.approx(d.mean())
        assert found.standard_error**2 == pytest.approx((by_observer + by_picture - left) / 54)
        assert 5 < found.degrees_of_freedom < 13


def test_a_single_observer_is_compared_over_pictures():
    d = np.random.default_rng(4).normal(size=(1, 9))
    for sums in (d, d.T):
        found = two_way(sums, np.ones(sums.shape), "fixation")
        assert found.standard_error == pytest.approx(d.std(ddof=1) / 3)
        assert found.degrees_of_freedom == 8
        expected = stats.t.interval(0.9, 8, found.mean, found.standard_error)
        assert found.interval(0.9) == pytest.approx(expected)


REPEATS = 1000


@pytest.mark.parametrize("average", ["fixation", "picture"])
@pytest.mark.parametrize(
    ("observers", "pictures", "by_observer", "by_picture", "left", "missing"),
    [(6, 8, 0.1, 0.05, 0.2, 0.0), (35, 30, 0.1, 0.1, 0.05, 0.0), (35, 30, 0.1, 0.05, 0.2, 0.2), (12, 30, 0, 0, 0.3, 0)],
)
def test_intervals_hold_the_truth_as_often_as_they_say(
    observers, pictures, by_observer, by_picture, left, missing, average
):
    """No difference between two models: how often does the interval of 95 % say so?

    1000 repeats: the share found has a standard error of 0.7 %. Bounds are four of them below 95 %, and 99.5 % above,
    since intervals may be too wide where there are no effects: one false alarm in 30,000 for intervals of exactly 95 %.
    """
    rng = np.random.default_rng(observers)
    held = 0
    for _ in range(REPEATS):
        shape = (observers, pictures)
        counts = rng.integers(3, 45, size=shape) * (rng.random(shape) >= missing)
        noise = rng.standard_t(4, size=shape) / np.sqrt(2) / np.sqrt(np.maximum(counts, 1) / 20)
        d = by_observer * rng.normal(size=(observers, 1)) + by_picture * rng.normal(size=(1, pictures)) + left * noise
        low, high = two_way(d * counts, counts.astype(float), average).interval(0.95)
        held += low <= 0 <= high
    assert 0.95 - 4 * np.sqrt(0.95 * 0.05 / REPEATS) < held / REPEATS < 0.995


@pytest.mark.slow
def test_all_pairs_hold_together():
    """Five models without a difference: some pair's simultaneous interval misses zero in 5 % of cases at most.

    300 repeats: 5 % is exceeded by four standard errors, 5 %, in one of 30,000 runs; ordinary intervals miss in 20 %.
    """
    rng = np.random.default_rng(8)
    missed = {"low": 0, "low_all": 0}
    lengths = np.full((8, 6), 1)
    for _ in range(300):
        effects = rng.normal(size=(5, 8, 1, 1)) + rng.normal(size=(5, 1, 6, 1)) + rng.normal(size=(5, 8, 6, 1))
        pairs = compare(table_of({f"model {index}": it for index, it in enumerate(effects)}, lengths)).pairs
        for name in missed:
            missed[name] += bool((pairs[name] > 0).any())
    assert missed["low_all"] / 300 < 0.10 < missed["low"] / 300


# --- the best for how many? ------------------------------------------------------------------------------------------


def winners_table(best: np.ndarray, margin: float, noise: float, rng: np.random.Generator, models: int = 3):
    """Each observer's best model is ahead of the others by `margin`."""
    shape = (models, len(best), 10, 1)
    scores = noise * rng.normal(size=shape)
    scores[best, np.arange(len(best))] += margin
    return table_of({f"model {index}": it for index, it in enumerate(scores)}, np.ones((len(best), 10), dtype=int))


def test_shares_are_those_of_the_winners():
    best = np.array([0] * 12 + [1] * 6 + [2] * 2)
    found = best_shares(winners_table(best, 5.0, 0.5, np.random.default_rng(1)), KEY)
    assert found.shares["model"].tolist() == ["model 0", "model 1", "model 2"]
    assert found.shares["share"].tolist() == pytest.approx([0.6, 0.3, 0.1])
    # every winner is sure, so the interval is Jeffreys' for so many of twenty observers
    for share, low, high in found.shares[["share", "low", "high"]].to_numpy():
        count = 20 * share
        assert (low, high) == pytest.approx(stats.beta(count + 0.5, 21 - count).ppf([0.025, 0.975]), abs=0.02)
    assert found.by_observer.set_index("observer").to_numpy().argmax(axis=1).tolist() == best.tolist()


def test_intervals_of_a_model_that_is_best_for_all_and_of_one_for_nobody_reach_the_ends():
    best = np.zeros(20, dtype=int)
    first, second = (
        best_shares(winners_table(best, 5.0, 0.5, np.random.default_rng(1), models=2), KEY)
        .shares[["share", "low", "high"]]
        .to_numpy()
    )
    assert (first[0], first[2], second[0], second[1]) == (1.0, 1.0, 0.0, 0.0)
    assert 0.8 < first[1] < 1
    assert 0 < second[2] < 0.2


def test_doubtful_winners_widen_the_interval():
    best = np.array([0] * 30 + [1] * 10)
    sure, doubtful = (
        best_shares(winners_table(best, 1.0, noise, np.random.default_rng(2), models=2), KEY) for noise in (0.1, 2.0)
    )
    widths = [(it.shares["high"] - it.shares["low"]).max() for it in (sure, doubtful)]
    assert widths[1] > 1.15 * widths[0]
    assert doubtful.by_observer[["model 0", "model 1"]].to_numpy().max(axis=1).mean() < 0.95
    assert doubtful.by_observer[["model 0", "model 1"]].sum(axis=1).to_numpy() == pytest.approx(1.0)


def test_a_tie_counts_in_parts(scores, lengths):
    found = best_shares(table_of({"one": scores["fair"], "two": scores["fair"]}, lengths), KEY)
    assert found.shares["share"].tolist() == [0.5, 0.5]


@pytest.mark.slow
def test_intervals_of_shares_hold_the_truth_as_often_as_they_say():
    """Observers' best models are drawn with known shares; winners are mostly clear.

    400 repeats of three intervals: 95 % less four standard errors (1.1 %) is missed in one of 30,000 runs.
    """
    rng = np.random.default_rng(7)
    truth, held = np.array([0.6, 0.3, 0.1]), np.zeros(3)
    for repeat in range(400):
        best = rng.choice(3, size=25, p=truth)
        sums = winners_table(best, 3.0, 1.0, rng)
        shares = best_shares(sums, jax.random.key(repeat), draws=400).shares.set_index("model").sort_index()
        held += (shares["low"] <= truth) & (truth <= shares["high"])
    assert (held / 400 > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 400)).all(), held / 400


# --- mistakes --------------------------------------------------------------------------------------------------------


def test_mistakes_are_named(table, unchecked_types):
    missing_step = table.drop(index=[3])
    infinite = table.assign(value=table["value"].where(table.index != 4, -np.inf))
    for call, message in (
        (lambda: compare(table.drop(columns="picture")), "no column picture"),
        (lambda: compare(table.iloc[:0]), "no rows"),
        (lambda: compare(missing_step), r"observer 0, picture picture \d, fixation \d: model fair has no score there"),
        (lambda: compare(pd.concat([table, table.iloc[:1]])), "more than one row for it"),
        (lambda: compare(infinite), "the score is -inf"),
        (lambda: compare(table[table["model"] == "good"]), "only model good in the table"),
        (lambda: compare(table[(table["observer"] == 0) & (table["picture"] == "picture 1")]), "one observer on one"),
        (lambda: compare(table, average="observer"), "say 'fixation' or 'picture'"),
        (lambda: compare(table, level=95), "level = 95"),
        (lambda: best_shares(table, 1), "randomness needs a JAX key"),
        (lambda: best_shares(table, KEY, draws=10), "draws = 10"),
    ):
        with pytest.raises(InputError, match=message):
            call()


def test_trials_keep_repeated_pictures_apart(table):
    twice = pd.concat([table.assign(trial=1), table.assign(trial=2)])
    assert StepScores.of(twice).counts.sum() == 2 * StepScores.of(table).counts.sum()
    assert compare(twice).pairs["difference"].tolist() == pytest.approx(compare(table).pairs["difference"].tolist())

"""Steps: which transitions are scored, what they may look at, and padding that changes nothing."""

from typing import ClassVar, final

import jax
import numpy as np
import pytest
from samples import GRID, LENGTHS, small_data, small_table

from foveate.errors import InputError
from foveate.inference.pointwise import step_table
from foveate.model import catalogue
from foveate.model.choices import OnlyPolicy
from foveate.model.history import History, Picture
from foveate.model.likelihood import log_likelihood, step_log_likelihoods, value_and_gradient
from foveate.model.model import Model
from foveate.model.packing import packed
from foveate.model.policies import Policy, log_gaussian
from foveate.model.steps import Steps


def test_scoring_starts_with_the_third_fixation():
    steps = Steps.of(small_data())
    assert steps.count == sum(length - 2 for length in LENGTHS.values())
    assert steps.real.sum(axis=1).tolist() == [length - 2 for length in LENGTHS.values()]
    assert steps.real.shape == (4, max(LENGTHS.values()) - 2)


def test_a_step_knows_where_gaze_was_and_which_cell_came_next():
    data = small_data()
    steps = Steps.of(data)
    (path,) = np.flatnonzero((data.paths.observer == "bob") & (data.paths.picture == "wood"))
    y, x = data.paths.y_deg[path], data.paths.x_deg[path]
    np.testing.assert_array_equal(steps.history.position_deg[path, 3], [[y[4], x[4]], [y[3], x[3]]])
    assert steps.history.count[path, 3] == 5
    row, column = int(y[5] // (12 / 14)), int(x[5] // (21 / 11))
    assert (steps.row[path, 3], steps.column[path, 3]) == (row, column)
    map_ = data.maps["wood"]
    before = [map_[int(y[t] // (12 / 14)), int(x[t] // (21 / 11))] for t in (4, 3)]
    np.testing.assert_array_equal(steps.history.saliency[path, 3], before)
    assert steps.target.saliency[path, 3] == map_[row, column]
    assert (steps.target.y_deg[path, 3], steps.target.x_deg[path, 3]) == pytest.approx(
        ((row + 0.5) * 12 / 14, (column + 0.5) * 21 / 11)
    )
    np.testing.assert_array_equal(np.asarray(steps.saliency)[steps.picture[path]], map_)


@pytest.mark.parametrize("name", ["full", "saliency_baseline"])
def test_padding_changes_nothing(name):
    model = catalogue.named_model(name)
    tight, loose = Steps.of(small_data()), Steps.of(small_data(), paths=6, steps=10)
    assert loose.real.shape == (6, 10)
    assert loose.count == tight.count
    expected, found = (np.asarray(step_log_likelihoods(model, steps)) for steps in (tight, loose))
    np.testing.assert_allclose(found[:4, :7], expected, rtol=1e-13)
    assert (found[4:] == 0).all()
    assert (found[:, 7:] == 0).all()
    value, gradient = value_and_gradient(model, tight)
    padded_value, padded_gradient = value_and_gradient(model, loose)
    assert float(padded_value) == pytest.approx(float(value), rel=1e-13)
    for parameter, part in gradient.items():
        np.testing.assert_allclose(padded_gradient[parameter], part, rtol=1e-11)


def test_longer_memory_holds_older_fixations_and_changes_no_likelihood():
    data = small_data()
    steps = Steps.of(data, memory=4)
    assert steps.history.position_deg.shape == (4, 7, 4, 2)
    y = data.paths.y_deg[0]
    np.testing.assert_array_equal(steps.history.position_deg[0, 2, :, 0], y[[3, 2, 1, 0]])
    # fewer fixations than the memory holds: the oldest is repeated, and the count says so
    np.testing.assert_array_equal(steps.history.position_deg[0, 0, :, 0], y[[1, 0, 0, 0]])
    assert steps.history.count[0, :3].tolist() == [2, 3, 4]
    model = catalogue.named_model("full")
    expected = np.asarray(step_log_likelihoods(model, Steps.of(data)))
    np.testing.assert_allclose(step_log_likelihoods(model, steps), expected, rtol=1e-14)


def test_paths_without_a_third_fixation_add_nothing_and_all_of_them_are_an_error():
    table = small_table()
    short = table.query("observer == 'bob' and picture == 'beach' and fixation < 2")
    mixed = small_data(table.query("observer != 'bob' or picture != 'beach'").merge(short, how="outer"))
    assert sorted(mixed.paths.length.tolist()) == [2, 7, 9, 9]
    with pytest.raises(InputError, match=r"the path has 2 fixations, but 3 are needed; leave short paths out"):
        Steps.of(mixed)
    steps = Steps.of(mixed, short="skip")
    assert steps.count == 19
    assert np.isfinite(log_likelihood(catalogue.named_model("full"), steps))
    with pytest.raises(InputError, match=r"no scan path has 3 fixations: the first 2 of each path are given"):
        Steps.of(small_data(table.query("fixation < 2")), short="skip")


# Observer, picture and number (from 0) of fixations that nobody chose: the first of a path, one that would be the first
# to be scored, one amid a path, and two in a row.
FORCED = [("ann", "beach", 0), ("ann", "beach", 2), ("ann", "wood", 4), ("bob", "wood", 5), ("bob", "wood", 6)]


def with_forced(forced: list, table=None):
    table = small_table() if table is None else table
    keys = zip(table["observer"], table["picture"], table["fixation"], strict=True)
    return small_data(table.assign(forced=[key in forced for key in keys]))


@pytest.mark.parametrize("name", ["full", "saliency_baseline"])
def test_forced_fixations_are_no_steps_and_all_others_are_as_before(name):
    model, every = catalogue.named_model(name), step_table(small_data())
    nats = np.asarray(step_log_likelihoods(model, Steps.of(small_data())))[Steps.of(small_data()).real]
    assert len(nats) == len(every) == 20
    expected = {tuple(key): value for key, value in zip(every.drop(columns="trial").to_numpy(), nats, strict=True)}
    data = with_forced(FORCED)
    steps = Steps.of(data)
    assert steps.count == 16
    assert steps.real.sum(axis=1).tolist() == [6, 4, 1, 5]
    found = np.asarray(step_log_likelihoods(model, steps))
    labels = [tuple(key) for key in step_table(data).drop(columns="trial").to_numpy()]
    assert not set(labels) & set(FORCED)
    np.testing.assert_allclose(found[steps.real], [expected[label] for label in labels], rtol=1e-13)
    assert float(log_likelihood(model, packed(steps))) == pytest.approx(found.sum(), rel=1e-13)


def test_a_forced_fixation_is_in_the_histories_of_later_ones():
    data = with_forced(FORCED)
    steps, (path,) = Steps.of(data), np.flatnonzero((data.paths.observer == "bob") & (data.paths.picture == "wood"))
    y, x = data.paths.y_deg[path], data.paths.x_deg[path]
    # The steps are the fixations of index 2, 3, 4, 7 and 8; before the fourth of them stand the two forced ones.
    np.testing.assert_array_equal(steps.history.position_deg[path, 3], [[y[6], x[6]], [y[5], x[5]]])
    assert steps.history.count[path].tolist()[:5] == [2, 3, 4, 7, 8]


def test_a_flag_that_is_nowhere_set_changes_no_bit():
    plain, flagged = small_data(), with_forced([])
    assert plain.fingerprint() == flagged.fingerprint() != with_forced(FORCED[:1]).fingerprint()
    for one, other in zip(*(jax.tree.leaves(Steps.of(data)) for data in (plain, flagged)), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_path_whose_steps_are_all_forced_adds_nothing_and_all_of_them_are_an_error():
    data = with_forced([*FORCED, ("bob", "beach", 2)])
    assert Steps.of(data).real.sum(axis=1).tolist() == [6, 4, 0, 5]
    assert np.isfinite(log_likelihood(catalogue.named_model("full"), Steps.of(data)))
    table = small_table()
    every = list(zip(table["observer"], table["picture"], table["fixation"], strict=True))
    with pytest.raises(InputError, match=r"all fixations from number 3 of their path on are forced"):
        Steps.of(with_forced(every))


def test_too_small_a_padding_is_refused():
    with pytest.raises(InputError, match=r"4 paths of up to 7 steps do not fit into 3 x 7"):
        Steps.of(small_data(), paths=3)
    with pytest.raises(InputError, match=r"4 paths of up to 7 steps do not fit into 4 x 6"):
        Steps.of(small_data(), steps=6)


def test_history_holds_the_last_fixations_most_recent_first():
    picture = Picture.whole(GRID, small_data().maps["wood"])
    y, x = np.array([1.0, 5.0, 11.9]), np.array([20.9, 3.0, 0.0])
    history = History.of(picture, y, x)
    np.testing.assert_array_equal(history.position_deg, [[11.9, 0.0], [5.0, 3.0]])
    np.testing.assert_array_equal(history.gaze, [11.9, 0.0])
    np.testing.assert_allclose(history.last_saccade, [6.9, -3.0])
    np.testing.assert_array_equal(history.saliency, [picture.saliency[13, 0], picture.saliency[5, 1]])
    assert history.count == 3
    longer = History.of(picture, y, x, memory=5)
    np.testing.assert_array_equal(longer.position_deg[:, 0], [11.9, 5.0, 1.0, 1.0, 1.0])
    assert History.of(picture, y[:0], x[:0]).count == 0


def test_single_cell_of_a_picture_is_that_of_the_whole():
    picture = Picture.whole(GRID, small_data().maps["wood"])
    cell = picture.cell(np.array(3), np.array(7))
    assert float(cell.saliency) == pytest.approx(picture.saliency[3, 7], rel=1e-6)
    assert (float(cell.y_deg), float(cell.x_deg)) == pytest.approx((3.5 * 12 / 14, 7.5 * 21 / 11), rel=1e-6)


def test_padding_repeats_a_real_step_of_the_same_picture():
    """So it never sends a whole batch down the slow road of the sums over cells."""
    steps = Steps.of(small_data(), paths=6, steps=10)
    first = next(iter(zip(*np.nonzero(steps.real), strict=True)))
    for path in range(6):
        last = int(steps.real[path].sum()) - 1
        source = (path, last) if last >= 0 else first
        for step in range(last + 1, 10):
            np.testing.assert_array_equal(steps.history.position_deg[path, step], steps.history.position_deg[source])
            assert steps.target.saliency[path, step] == steps.target.saliency[source]
        assert steps.picture[path] == steps.picture[source[0]]


def test_a_model_that_looks_further_back_than_its_steps_is_an_error():
    @final
    class FarBack(Policy):
        """Gaze returns to the third last fixation."""

        memory: ClassVar[int] = 3

        def log_weight(self, history, picture):
            return log_gaussian(picture, history.position_deg[2], np.array([1.0, 1.0]))

    model = Model((FarBack(),), OnlyPolicy(), {}, "far back")
    assert np.isfinite(log_likelihood(model, Steps.of(small_data(), memory=3)))
    with pytest.raises(InputError, match=r"looks 3 fixations back, the steps hold 2.*memory=3"):
        log_likelihood(model, Steps.of(small_data()))
    picture = Picture.whole(small_data().maps.grid, small_data().maps["wood"])
    with pytest.raises(InputError, match=r"looks 3 fixations back, the history holds 2.*memory=3"):
        model.log_density(History.of(picture, np.array([1.0, 2.0]), np.array([1.0, 2.0])), picture)

"""What must not matter does not matter: mirrors, exchanged axes, names and order."""

import numpy as np
import pytest
from samples import GRID, small_data, small_maps, small_table

from contracts.table import Row, rows_of
from foveate.data.dataset import Dataset
from foveate.data.grid import Extent
from foveate.model.likelihood import step_log_likelihoods
from foveate.model.model import Model
from foveate.model.steps import Steps

# Every policy and every choice occurs in one of these; the others are the same parts put together otherwise.
MODELS = ("full-released", "full-printed", "local_choice-none", "local_saliency", "saliency_baseline")
every_part = pytest.mark.parametrize("row", [row for row in rows_of(Model) if row.id in MODELS])


def likelihoods(model: Model, data: Dataset) -> np.ndarray:
    return np.asarray(step_log_likelihoods(model, Steps.of(data)))


@every_part
def test_mirroring_picture_and_path_changes_nothing(row: Row):
    table, maps, model = small_table(), small_maps(), row.make()
    expected = likelihoods(model, small_data())
    upside_down = table.assign(y_deg=GRID.extent.height_deg - table["y_deg"])
    found = likelihoods(model, small_data(upside_down, {name: map_[::-1] for name, map_ in maps.items()}))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    left_to_right = table.assign(x_deg=GRID.extent.width_deg - table["x_deg"])
    found = likelihoods(model, small_data(left_to_right, {name: map_[:, ::-1] for name, map_ in maps.items()}))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    # and a mirrored path on the picture as it was is another one
    assert not np.allclose(likelihoods(model, small_data(left_to_right)), expected, rtol=1e-3)


@every_part
def test_exchanging_the_axes_exchanges_the_variances(row: Row):
    table, maps, model = small_table(), small_maps(), row.make()
    turned = small_data(
        table.rename(columns={"x_deg": "y_deg", "y_deg": "x_deg"}),
        {name: map_.T for name, map_ in maps.items()},
        Extent(GRID.extent.width_deg, GRID.extent.height_deg),
    )
    exchanged = {name: value[::-1] if np.ndim(value) else value for name, value in model.parameters.items()}
    expected = likelihoods(model, small_data())
    np.testing.assert_allclose(likelihoods(model.with_parameters(exchanged), turned), expected, rtol=1e-12)
    if "xi" in model.parameters:
        assert not np.allclose(likelihoods(model, turned), expected, rtol=1e-3)


@every_part
def test_names_of_observers_and_pictures_do_not_matter(row: Row):
    """Other names turn the order of the paths and of the maps round; each path keeps its likelihood."""
    names = {"ann": 9, "bob": 4, "beach": "z", "wood": "a"}
    table = small_table().replace(names)
    renamed = small_data(table, {names[name]: map_ for name, map_ in small_maps().items()})
    model, data = row.make(), small_data()
    expected, found = likelihoods(model, data), likelihoods(model, renamed)
    for path, (observer, picture) in enumerate(zip(data.paths.observer, data.paths.picture, strict=True)):
        (other,) = np.flatnonzero(
            (renamed.paths.observer == names[observer]) & (renamed.paths.picture == names[picture])
        )
        assert other != path
        np.testing.assert_allclose(found[other], expected[path], rtol=1e-12)


@every_part
def test_order_of_rows_and_of_maps_does_not_matter(row: Row):
    table = small_table().sample(frac=1, random_state=3).sort_values("fixation", kind="stable")
    shuffled = small_data(table, dict(reversed(small_maps().items())))
    expected = likelihoods(row.make(), small_data())
    np.testing.assert_allclose(likelihoods(row.make(), shuffled), expected, rtol=1e-12)


@every_part
def test_a_step_depends_on_its_own_path_alone(row: Row):
    """Each path alone, in the same padding, has the likelihood that it has among the others."""
    model, data = row.make(), small_data()
    expected = likelihoods(model, data)
    for path, one in enumerate(data.paths):
        table = small_table().query("observer == @one.observer and picture == @one.picture")
        alone = Steps.of(small_data(table, {one.picture: small_maps()[one.picture]}), paths=4, steps=7)
        np.testing.assert_allclose(np.asarray(step_log_likelihoods(model, alone))[0], expected[path], rtol=1e-12)

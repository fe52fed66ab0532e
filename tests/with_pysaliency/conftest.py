"""The example data as a file that foveate wrote and pysaliency read."""

import pytest
from example_stimuli import HEIGHT_PX, PX_PER_DEGREE, WIDTH_PX, Example, model_of, noise, posterior_around, pysaliency

from foveate.data.grid import PixelFrame
from foveate.data.readers.pysaliency_writing import write_pysaliency
from foveate.example import example_data


@pytest.fixture(scope="session")
def example(tmp_path_factory) -> Example:
    made = example_data(seed=1)
    data = made.data.select(observers=["ann", "dan"], pictures=["beach", "castle", "tower"])
    file = tmp_path_factory.mktemp("pysaliency") / "example.hdf5"
    frame = PixelFrame(WIDTH_PX, HEIGHT_PX, PX_PER_DEGREE, origin="top")
    write_pysaliency(data.paths, file, frame, pictures=data.maps.pictures, kind="FixationTrains")
    models = {name: made.models[name] for name in ("ann", "dan")}
    return Example(data, models, noise(len(data.maps)), pysaliency.read_hdf5(str(file)))


@pytest.fixture(scope="session")
def model(example):
    return model_of(example, example.models)


@pytest.fixture(scope="session")
def posteriors(example) -> dict:
    return {name: posterior_around(it, name, seed) for seed, (name, it) in enumerate(example.models.items())}

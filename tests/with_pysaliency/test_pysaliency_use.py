"""Whose fixations, which stimulus, sampled paths, and what is refused.

The test of sampling has a fixed seed and would raise a false alarm for one seed in ten thousand.
"""

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pysaliency
import pytest
from example_stimuli import (
    HEIGHT_PX,
    PX_PER_DEGREE,
    WIDTH_PX,
    model_of,
    noise,
    on_pixels,
    posterior_around,
)
from PIL import Image
from scipy import stats

import foveate
from foveate.data.grid import Extent
from foveate.data.saliency import SaliencyMaps
from foveate.errors import InputError
from foveate.model.catalogue import full
from foveate.pysaliency import ScanpathModel, pictures_by_file, pictures_in_order

FALSE_ALARM = 1e-4


# --- subjects ------------------------------------------------------------------------------------------------------


def test_each_subject_is_scored_by_their_own_posterior(example, model):
    whole = model.log_likelihoods(example.stimuli, example.fixations)
    for subject, name in enumerate(["ann", "dan"]):
        theirs = example.fixations.subjects == subject
        alone = model_of(example, example.models[name]).log_likelihoods(example.stimuli, example.fixations)
        np.testing.assert_allclose(whole[theirs], alone[theirs], rtol=1e-13)
        assert not np.allclose(whole[~theirs], alone[~theirs])
        of_subject = model.of_subject(name).log_likelihoods(example.stimuli, example.fixations)
        np.testing.assert_array_equal(of_subject, alone)


def test_newer_fixations_and_numbered_subjects_will_do(example):
    """Newer versions call the attribute `subject`, and histories have no padding."""
    old, few = example.fixations, range(1, len(example.fixations), 20)
    newer = SimpleNamespace(
        x=old.x[few], n=old.n[few], x_int=old.x_int[few], y_int=old.y_int[few],
        x_hist=[old.x_hist[index][: old.lengths[index]] for index in few],
        y_hist=[old.y_hist[index][: old.lengths[index]] for index in few],
        subject=old.subjects[few], __attributes__=["subject"],
    )  # fmt: skip
    named, numbered = model_of(example, example.models), model_of(example, dict(enumerate(example.models.values())))
    expected = named.log_likelihoods(example.stimuli, old)[few]
    np.testing.assert_allclose(numbered.log_likelihoods(example.stimuli, newer), expected, rtol=1e-13)


def test_nobodys_fixations_and_strangers_are_refused(example, model):
    stimulus = example.stimuli[0]
    with pytest.raises(InputError, match="do not say whose they are"):
        model.conditional_log_density(stimulus, [], [], [])
    with pytest.raises(InputError, match="no posterior for subject 0; there are posteriors for 'ann', 'dan'"):
        model.conditional_log_density(stimulus, [], [], [], attributes={"subjects": np.int64(0)})
    # The name decides where there is one: a number beside it counts other things.
    numbered = model_of(example, {0: example.models["ann"]})
    with pytest.raises(InputError, match="no posterior for subject 'ann'"):
        numbered.log_likelihoods(example.stimuli, example.fixations)


# --- stimuli -------------------------------------------------------------------------------------------------------


def test_a_stimulus_keeps_its_map_in_every_selection(example, model):
    """The last two in reverse order: their indices are others, their maps are not."""
    some = example.stimuli[[2, 1]]
    for index, name in enumerate(["tower", "castle"]):
        density = model.conditional_log_density(some[index], [], [], [], attributes={"subject": "ann"})
        np.testing.assert_allclose(np.exp(density), on_pixels(example.data.maps[name]), rtol=1e-12)
    as_array = model.conditional_log_density(some.stimuli[0], [], [], [], attributes={"subject": "ann"})
    np.testing.assert_allclose(np.exp(as_array), on_pixels(example.data.maps["tower"]), rtol=1e-12)


@pytest.mark.filterwarnings("ignore")  # pysaliency leaves files open
def test_stimuli_are_known_by_their_files(example, tmp_path):
    maps = example.data.maps
    files = [tmp_path / folder / f"{name}.png" for folder, name in zip("aba", maps.pictures, strict=True)]
    for value, file in enumerate(files):
        file.parent.mkdir(exist_ok=True)
        Image.new("L", (WIDTH_PX, HEIGHT_PX), value).save(file)
    stimuli = pysaliency.FileStimuli([str(file) for file in files])
    pictures = pictures_by_file(stimuli)
    assert list(pictures.values()) == list(maps.pictures)
    model = ScanpathModel(example.models["ann"], maps, pixels_per_degree=PX_PER_DEGREE, pictures=pictures)
    density = model.conditional_log_density(stimuli[1], [], [], [])
    np.testing.assert_allclose(np.exp(density), on_pixels(maps["castle"]), rtol=1e-12)
    twice = tmp_path / "b" / "beach.png"
    Image.new("L", (WIDTH_PX, HEIGHT_PX), 9).save(twice)
    with pytest.raises(InputError, match=r"a/beach.png, .*b/beach.png would be one picture"):
        pictures_by_file(pysaliency.FileStimuli([str(file) for file in (*files, twice)]))
    with pytest.raises(InputError, match="has no files"):
        pictures_by_file(example.stimuli)


def test_stimuli_without_a_map_are_refused(example, model):
    stranger = noise(4)[3]
    with pytest.raises(InputError, match=f"no map for the stimulus {stranger.stimulus_id}"):
        model.conditional_log_density(stranger, [], [], [], attributes={"subject": "ann"})
    by_id = ScanpathModel(example.models["ann"], example.data.maps, pixels_per_degree=PX_PER_DEGREE)
    with pytest.raises(InputError, match=r"there are maps for beach, castle, tower: say which"):
        by_id.conditional_log_density(stranger, [], [], [])
    pictures = pictures_in_order(example.stimuli, ["beach", "castle", "moon"])
    lost = ScanpathModel(example.models["ann"], example.data.maps, pixels_per_degree=PX_PER_DEGREE, pictures=pictures)
    with pytest.raises(InputError, match="no map for picture moon"):
        lost.conditional_log_density(example.stimuli[2], [], [], [])


def test_stimuli_that_cannot_be_told_apart_are_refused():
    same = pysaliency.Stimuli([np.zeros((4, 4)), np.zeros((4, 4))])
    assert len(pictures_in_order(same, ["beach", "beach"])) == 1
    with pytest.raises(InputError, match="stimulus 1 is 'wood', but pixel by pixel the same as that of 'beach'"):
        pictures_in_order(same, ["beach", "wood"])
    with pytest.raises(InputError, match="1 names for 2 stimuli"):
        pictures_in_order(same, ["beach"])


# --- sampling ------------------------------------------------------------------------------------------------------


def test_sampled_paths_are_fixations_of_pysaliency_and_follow_from_the_seed(example, model):
    def sample(rst):
        return model.of_subject("ann").sample(example.stimuli, 2, lengths=4, rst=rst)

    for source in (np.random.default_rng, np.random.RandomState):
        one, again, other = sample(source(5)), sample(source(5)), sample(source(6))
        assert len(one) == 3 * 2 * 4
        np.testing.assert_array_equal(one.train_xs, again.train_xs)
        assert not np.array_equal(one.train_xs, other.train_xs)
        assert ((one.x >= 0) & (one.x < WIDTH_PX) & (one.y >= 0) & (one.y < HEIGHT_PX)).all()
        assert np.isfinite(model.of_subject("ann").log_likelihoods(example.stimuli, one)).all()


def test_fixations_are_sampled_as_often_as_the_density_says(example):
    """Draws from a posterior on pixels that cut cells; 24 blocks of pixels are counted."""
    size = (40, 50)
    stimulus = noise(1, *size)[0]
    maps = SaliencyMaps(example.data.maps.grid, (stimulus.stimulus_id,), example.data.maps.values[:1])
    posterior = posterior_around(full(epsilon=(4.0, 9.0), xi=(30.0, 50.0), b=0.5, s0=2.0), "made up")
    model = ScanpathModel(posterior, maps, pixels_per_degree=(size[0] / 24, size[1] / 32), draws=3)
    before = [8.5, 33.5], [31.0, 12.5]
    density = np.exp(model.conditional_log_density(stimulus, *before, [0, 1]))
    rng, count = np.random.default_rng(8), 3000
    drawn = np.array([model.sample_fixation(stimulus, *before, [0, 1], rst=rng) for _ in range(count)])
    assert (drawn[:, 2] == 2).all()
    seen = np.zeros(size)
    np.add.at(seen, (drawn[:, 1].astype(int), drawn[:, 0].astype(int)), 1)
    seen, expected = (it.reshape(4, 10, 10, 5).sum(axis=(1, 3)).ravel() for it in (seen, count * density))
    rare = expected < 5
    seen, expected = (np.append(it[~rare], it[rare].sum()) for it in (seen, expected))
    assert stats.chisquare(seen, expected).pvalue > FALSE_ALARM


def test_sampling_says_what_it_needs(example, model):
    with pytest.raises(InputError, match="rst = None: sampling needs a source of randomness"):
        model.of_subject("ann").sample(example.stimuli, 1)
    with pytest.raises(InputError, match=r"take one subject's model: model.of_subject"):
        model.sample(example.stimuli, 1, rst=np.random.default_rng(1))


# --- what is refused, and what is said -----------------------------------------------------------------------------


def test_what_does_not_fit_together_is_refused(example, unchecked_types):
    maps, ann = example.data.maps, example.models["ann"]
    for posterior, some_maps, options, said in [
        ({}, maps, {}, "no posteriors given"),
        ([ann], maps, {}, "posterior is a list"),
        ({"ann": ann}, {"dan": maps}, {}, "no maps for observer ann"),
        (ann, {"ann": maps}, {}, "posterior is a single one"),
        (ann, maps, {"draws": 0}, "draws = 0"),
        (ann, maps, {"pixels_per_degree": -1.0}, "px_per_degree = -1"),
        (ann, maps, {"pixels_per_degree": (20.0, 20.0, 1.0)}, "give one positive number, or two"),
    ]:
        with pytest.raises(InputError, match=said):
            ScanpathModel(posterior, some_maps, **{"pixels_per_degree": 20.0, **options})


def test_fixations_that_no_pixel_has_are_refused(example, model):
    for name, value in (("x", WIDTH_PX), ("y", -3.0)):
        moved = example.fixations[:5].copy()
        getattr(moved, name)[3] = value
        with pytest.raises(InputError, match=r"fixation 3 lies in pixel .* outside its stimulus"):
            model.log_likelihoods(example.stimuli, moved)
    with pytest.raises(InputError, match="x and y must be as many"):
        model.conditional_log_density(example.stimuli[0], [1.0], [1.0, 2.0], [0], attributes={"subject": "ann"})


def test_gaze_where_the_map_is_zero_is_refused(example):
    values = np.ones((2, 2)) / 3
    values[0, 0] = 0.0  # the lower left quarter
    stimulus = noise(1, 20, 20)[0]
    maps = SaliencyMaps.from_arrays({stimulus.stimulus_id: values}, Extent(1.0, 1.0))
    model = ScanpathModel(full(), maps, pixels_per_degree=20)
    model.conditional_log_density(stimulus, [5.0, 15.0], [5.0, 5.0], [0, 1])
    with pytest.raises(InputError, match=r"where the map is zero.*with_uniform_share"):
        model.conditional_log_density(stimulus, [5.0, 5.0], [5.0, 15.0], [0, 1])


def test_a_fit_that_has_not_converged_says_so(example, posteriors):
    assert not posteriors["ann"].converged  # sixty made-up draws are too few
    assert "NOT CONVERGED: ann, dan" in repr(model_of(example, posteriors))
    assert repr(model_of(example, example.models)) == "ScanpathModel(full, subjects ann, dan)"


def test_without_pysaliency_a_sentence_says_how_to_install_it():
    code = (
        "import sys; sys.modules['pysaliency'] = None\n"
        "import foveate.pysaliency\n"
        "try: foveate.pysaliency.ScanpathModel\n"
        "except foveate.InputError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert "pip install pysaliency" in done.stdout
    assert done.stdout.count("\n") == 1


def test_the_package_does_not_load_pysaliency_by_itself():
    code = "import sys, foveate.pysaliency; print([name for name in ('pysaliency', 'jax') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[]\n"
    assert set(foveate.pysaliency.__all__) <= set(dir(foveate.pysaliency))

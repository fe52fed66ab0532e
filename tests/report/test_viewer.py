"""The page in a browser: it opens from a file, fetches nothing, plays, steps, sorts, changes colours and prints."""

import base64
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from browsing import opened, pixels, readout, step, wait_until
from made_folders import fit_folder, four_policies
from PIL import Image

from foveate import Dataset, History, Picture, Posterior, ScanPaths, named_model
from foveate.data.dataset import each_observer
from foveate.inference.pointwise import policy_probabilities
from foveate.report.folders import read_results
from foveate.report.make import payload, with_pictures
from foveate.report.page import page as report_page
from foveate.report.viewer import viewer

FORCED = 6  # fixation of every path, in the page with pictures


@pytest.fixture(scope="module")
def report_file(fits, data, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(report_page(payload(read_results(fits), each_observer(data))), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def pictured_file(data, tmp_path_factory) -> Path:
    """Of data with a forced fixation in each path, and with a photograph of one picture: red above, blue below."""
    folder = tmp_path_factory.mktemp("pictured")
    table = data.paths.to_table().assign(forced=lambda it: it["fixation"] == FORCED)
    forced = Dataset(ScanPaths.from_table(table, data.paths.extent), data.maps)
    made = fit_folder(folder / "fits", named_model("full"), forced)
    image = np.zeros((48, 64, 3), dtype=np.uint8)
    image[:24, :, 0], image[24:, :, 2] = 255, 255
    Image.fromarray(image).save(folder / "beach.png")
    found = payload(read_results(made), each_observer(forced))
    file = folder / "report.html"
    file.write_text(report_page(with_pictures(found, {"beach": folder / "beach.png"})), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def several_fits(data, tmp_path_factory) -> Path:
    """Fits of a model with four policies."""
    return fit_folder(tmp_path_factory.mktemp("several") / "fits", four_policies(), data)


@pytest.fixture(scope="module")
def several_file(several_fits, data, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("several") / "report.html"
    file.write_text(report_page(payload(read_results(several_fits), each_observer(data))), encoding="utf-8")
    return file


@pytest.fixture
def page(browser, report_file):
    with opened(browser, report_file) as shown:
        yield shown


def test_a_reader_chooses_steps_plays_and_resizes(page, fits, data):
    assert step(page) == 3
    page.keyboard.press("ArrowRight")
    assert step(page) == 4
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert step(page) == 2
    assert "from the map" in readout(page).values()
    page.select_option("#observer", label="ben")
    page.select_option("#picture", label="castle")
    page.focus("#observer")  # as after a choice: arrows to the side step, and leave the choice alone
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert page.locator("#observer option:checked").inner_text() == "ben"
    own = data.select(observers=["ben"])
    table = policy_probabilities(Posterior.load(fits / "observer-ben.nc"), own, draws=100)
    row = table[(table["picture"] == "castle")].iloc[7 - 3]
    assert step(page) == 7
    assert float(readout(page)["probability local"]) == pytest.approx(row["local"], abs=0.0051)
    page.select_option("#speed", "200")
    page.click("#play")
    wait_until(page, "parseInt(document.querySelector('#readout strong').textContent) >= 9")
    page.click("#play")
    at = step(page)
    page.wait_for_timeout(300)
    assert step(page) == at  # it stands still
    page.keyboard.press("End")
    length = int(own.paths.length[own.paths.picture == "castle"][0])
    assert step(page) == length
    assert page.is_disabled("#next")
    page.set_viewport_size({"width": 480, "height": 800})
    wait_until(page, "document.getElementById('observed').clientWidth < 460")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_local_global_mixture_and_saliency_are_four_maps(page):
    seen, shaded = {}, {}
    for kind in ("mixture", "0", "1", "saliency"):
        page.click(f"#kinds button[data-kind='{kind}']")
        drawn = pixels(page)
        seen[kind] = drawn.tobytes()
        shaded[kind] = float((np.abs(drawn.astype(int) - drawn[0, 0]).max(axis=-1) > 8).mean())
        pressed = page.locator("#kinds button[aria-pressed='true']").all_inner_texts()
        assert len(pressed) == 1
    assert pressed == ["saliency map"]
    assert len(set(seen.values())) == 4
    assert shaded["0"] < 0.5 * shaded["1"]  # local steps end near the gaze, global ones anywhere
    page.click("#kinds-title")  # words beside buttons are not one of them
    assert pixels(page).tobytes() == seen["saliency"]
    page.click("#timeline", position={"x": 400, "y": 60})
    assert step(page) > 4


def test_tables_sort_by_a_click(page):
    heads = page.locator("#parameters th button")
    column = 3
    for sign, word in ((1, "ascending"), (-1, "descending")):
        heads.nth(column).click()
        cells = page.locator(f"#parameters tbody td:nth-child({column + 1})")
        values = [float(it.get_attribute("data-value")) for it in cells.all()]
        assert np.all(sign * np.diff(values) > 0)
        assert page.locator("#parameters th").nth(column).get_attribute("aria-sort") == word
    page.locator("#parameters th button").first.click()
    assert page.locator("#parameters tbody td:first-child").all_inner_texts() == ["ann", "ben"]


def test_colours_follow_the_system_and_the_reader(browser, report_file):
    colour = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, report_file, color_scheme="light") as page:
        light, drawn = page.evaluate(colour), pixels(page)
        page.click("button[data-theme='dark']")
        dark = page.evaluate(colour)
        assert dark != light
        assert not np.array_equal(pixels(page), drawn)  # the canvas is drawn again
    with opened(browser, report_file, color_scheme="dark") as page:
        assert page.evaluate(colour) == dark
        page.click("button[data-theme='light']")
        assert page.evaluate(colour) == light


def test_it_prints_in_light_colours_and_keeps_its_shapes(browser, report_file, data):
    with opened(browser, report_file, color_scheme="dark") as page:
        page.evaluate("""for (const it of document.querySelectorAll('details')) it.open = false;
            window.seen = {};
            matchMedia('print').addEventListener('change', (event) => {
              if (!event.matches) return;
              const canvas = document.getElementById('observed');
              window.seen = {
                ratio: canvas.clientHeight / canvas.clientWidth, wide: canvas.clientWidth,
                folded: document.querySelectorAll('details:not([open])').length,
                colours: [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color],
              };
            })""")
        wide = page.evaluate("document.getElementById('observed').clientWidth")
        printed = page.pdf(format="A4")
        seen = page.evaluate("window.seen")
        assert page.evaluate("document.querySelectorAll('details:not([open])').length") == 1  # folded up again
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 2
    extent = data.paths.extent
    assert seen["wide"] < wide  # paper is narrower than the window
    assert seen["ratio"] == pytest.approx(extent.height_deg / extent.width_deg, abs=0.02)
    assert seen["folded"] == 0
    assert seen["colours"] == ["rgb(255, 255, 255)", "rgb(29, 33, 38)"]


def test_a_photograph_lies_behind_the_path_and_forced_fixations_are_named(browser, pictured_file):
    def warmth(page) -> np.ndarray:
        """How much more red than blue there is above and below."""
        upper, lower = np.array_split(pixels(page).astype(float), 2)
        return np.array([(it[..., 0] - it[..., 2]).mean() for it in (upper, lower)])

    with opened(browser, pictured_file) as page:
        wait_until(page, "document.getElementById('photo').hidden === false")
        page.wait_for_timeout(300)  # until the picture is decoded
        assert np.all(warmth(page) * [1, -1] > 20)
        page.click("#photo")
        assert np.all(np.abs(warmth(page)) < 10)
        page.select_option("#picture", label="bridge")
        assert page.is_hidden("#photo")
        for _ in range(FORCED - step(page)):
            page.keyboard.press("ArrowRight")
        said = readout(page)
        assert said["conditions later ones, is not scored"] == "forced"
        assert "surprise" not in said
        page.keyboard.press("ArrowRight")
        assert readout(page)["surprise"].endswith(" bits")


def test_a_model_of_four_policies_has_all_its_maps_and_probabilities(browser, several_file, several_fits, data):
    at = 9
    own = data.select(observers=["ann"], pictures=["castle"])
    (path,) = own.paths
    picture = Picture.whole(own.maps.grid, own.maps["castle"])
    mean = read_results(several_fits).fit_of("four policies", 0, "ann").mean
    lasted = path.duration_s[: at - 1]
    history = History.of(picture, path.y_deg[: at - 1], path.x_deg[: at - 1], mean.memory, lasted)
    chosen = np.exp(np.asarray(mean.choice.log_probabilities(history, picture)))
    titles = ["salient local", "heavy tailed global", "momentum", "return"]
    with opened(browser, several_file) as page:
        page.select_option("#observer", label="ann")
        page.select_option("#picture", label="castle")
        page.focus("#observed")
        for _ in range(at - step(page)):
            page.keyboard.press("ArrowRight")
        assert page.inner_text("#message") == ""
        kinds = page.locator("#kinds button")
        assert kinds.all_inner_texts() == ["mixture", *titles, "saliency map"]
        seen = set()
        for kind in kinds.all():
            assert kind.is_enabled()
            kind.click()
            seen.add(pixels(page).tobytes())
        assert len(seen) == 6
        said = readout(page)
        made = [float(said[f"probability {it}"]) for it in titles]
        assert sum(made) == pytest.approx(1, abs=0.021)
        before = [
            float(it.removesuffix(" before it was made")) for it in page.locator("#readout small").all_inner_texts()
        ]
        assert before == pytest.approx(chosen, abs=0.0061)
        page.keyboard.press("End")
        page.select_option("#speed", "0")  # as fast as it was
        page.click("#play")
        wait_until(page, "parseInt(document.querySelector('#readout strong').textContent) >= 3")
        page.click("#play")


def test_durations_are_embedded_of_observers_that_have_them(fits, data):
    each = {observer: data.select(observers=[observer], pictures=["castle"]) for observer in ("ann", "ben")}
    lasted = np.array(each["ann"].paths.duration_s)
    lasted[0, :2] = 0.0, 0.0002  # known to be short is not unknown
    each["ann"] = replace(each["ann"], paths=replace(each["ann"].paths, duration_s=lasted))
    each["ben"] = replace(each["ben"], paths=replace(each["ben"].paths, duration_s=None))
    text = viewer(read_results(fits), each)[0]["duration_ms"]
    found = np.frombuffer(base64.b64decode(text), "<u2")
    known = int(each["ann"].paths.length[0])
    assert found[:2].tolist() == [0, 1]
    np.testing.assert_allclose(found[2:known], 1000 * lasted[0, 2:known], atol=0.51)
    assert len(found) == known + each["ben"].paths.length[0]
    assert not found[known:].any()
    each["ann"] = replace(each["ann"], paths=replace(each["ann"].paths, duration_s=None))
    assert viewer(read_results(fits), each)[0]["duration_ms"] is None

"""Tables of fixations: what is read, what is reported, and what is refused in which words."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from foveate.data.grid import Extent, PixelFrame
from foveate.data.readers.table import read_table
from foveate.data.scanpaths import ScanPaths
from foveate.errors import InputError

FRAME = PixelFrame(800.0, 600.0, 40.0, left_px=112.0, near_px=84.0)
PIXELS = {"frame": FRAME, "position_unit": "px"}
DEGREES = {"frame": Extent(15.0, 20.0, "top"), "position_unit": "deg"}

CSV = """observer,picture,fixation,x,y,ms,pupil,note
7,beach,1,512,384,250,3.5,first
7,beach,2,112,84,180,,
7,wood,1,912,684,300,3.25,"two
lines"
7,wood,2,500.5,300,0,3,
9,beach,3,600,400,220,3,x
9,beach,5,610,410,230,3,x
"""


def write(tmp_path, text: str, name: str = "fixations.csv"):
    file = tmp_path / name
    file.write_bytes(text.encode())
    return file


def changed(old: str, new: str) -> str:
    assert CSV.count(old) == 1
    return CSV.replace(old, new)


def test_pixels_become_degrees_and_milliseconds_seconds(tmp_path):
    paths, report = read_table(write(tmp_path, CSV), **PIXELS, duration="ms", duration_unit="ms")
    assert paths.extent == Extent(15.0, 20.0, "top")
    assert paths.observers == [7, 9]
    assert paths.pictures == ["beach", "wood"]
    assert paths.x_deg[0].tolist() == [10.0, 0.0]
    assert paths.y_deg[0].tolist() == [7.5, 0.0]
    assert (paths.x_deg[1, 0], paths.y_deg[1, 0]) == (20.0, 15.0)
    assert paths.duration_s.tolist() == [[0.25, 0.18], [0.3, 0.0], [0.22, 0.23]]
    assert (report.rows, report.fixations, report.paths) == (6, 6, 3)
    assert report.source == "fixations.csv"


def test_degrees_are_measured_from_the_corner_of_the_picture():
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": [1, 2], "x": [-10.0, 0.0], "y": [-7.5, 7.5]})
    paths, _ = read_table(table, **DEGREES, x0_deg=-10.0, y0_deg=-7.5)
    assert paths.x_deg.tolist() == [[0.0, 10.0]]
    assert paths.y_deg.tolist() == [[0.0, 15.0]]
    assert paths.extent == DEGREES["frame"]


def test_all_other_columns_are_kept(tmp_path):
    paths, _ = read_table(write(tmp_path, CSV), **PIXELS)
    assert set(paths.columns) == {"ms", "pupil", "note"}
    assert paths.duration_s is None
    beach, wood, _ = paths
    assert beach.columns["ms"].tolist() == [250, 180]
    np.testing.assert_array_equal(beach.columns["pupil"], [3.5, np.nan])
    assert wood.columns["note"].tolist() == ["two\nlines", ""]


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "feather", "CSV", "frame", "arrow"])
def test_every_kind_of_table_gives_the_same_paths(tmp_path, ending):
    random = np.random.default_rng(3)
    before = pd.DataFrame(
        {
            "observer": np.repeat(["001", "002"], 10),
            "picture": np.tile(np.repeat([3, 11], 5), 2),
            "trial": np.repeat([5, 1, 2, 8], 5),
            "fixation": np.tile(np.arange(1, 6), 4),
            "x_deg": random.uniform(0, 20, 20),
            "y_deg": random.uniform(0, 15, 20),
            "duration_s": random.gamma(2, 0.1, 20),
            "pupil": random.normal(size=20),
            "forced": np.tile([True, False, True, False, False], 4),
        }
    )
    paths = ScanPaths.from_table(before, DEGREES["frame"])
    file = tmp_path / f"fixations.{ending}"
    table = paths.to_table()
    if ending in ("parquet", "feather"):
        getattr(table, f"to_{ending}")(file)
    elif ending not in ("frame", "arrow"):
        table.to_csv(file, index=False, sep="\t" if ending == "tsv" else ",")
    read, report = read_table(
        {"frame": table, "arrow": pa.Table.from_pandas(table)}.get(ending, file),
        **DEGREES,
        x="x_deg",
        y="y_deg",
        duration="duration_s",
        duration_unit="s",
        trial="trial",
        forced="forced",
    )
    assert read.forced.sum() == 8
    pd.testing.assert_frame_equal(read.to_table()[before.columns], before, check_dtype=False, check_exact=True)
    assert report.renamed == {}


def test_a_file_saved_by_a_spreadsheet_is_read(tmp_path):
    text = "\ufeff" + CSV.replace("\n", "\r\n").replace("two\r\nlines", "one line") + "\r\n"
    paths, _ = read_table(write(tmp_path, text), **PIXELS)
    assert paths.fixations == 6
    assert paths.observers == [7, 9]


def test_names_in_the_index_of_a_data_frame_count_as_columns():
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": [1, 2], "x": [1.0, 2.0], "y": [1.0, 2.0]})
    paths, _ = read_table(table.set_index(["observer", "fixation"]), **DEGREES)
    assert paths.fixation.tolist() == [[1, 2]]


def test_the_report_shows_ranges_where_a_wrong_unit_would_show():
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": [1, 2], "x": [1.0, 2.5], "y": [1.0, 2.0]})
    table["t"] = [210.0, 250.0]
    for unit, median in (("ms", "0.23 s"), ("s", "230 s")):
        _, report = read_table(table, duration="t", duration_unit=unit, **DEGREES)
        assert "x from 1 to 2.5 of" in str(report)
        assert f"median duration {median}" in str(report)


def test_gaps_are_kept_flagged_and_reported(tmp_path):
    paths, report = read_table(write(tmp_path, CSV), **PIXELS)
    assert np.argwhere(paths.after_gap).tolist() == [[2, 1]]
    assert report.gaps == ("observer 9, picture 'beach', fixation 5",)
    assert "1 kept, after a gap in the fixation numbers: observer 9, picture 'beach', fixation 5." in str(report)


def test_fixations_outside_are_dropped_on_request_and_counted(tmp_path):
    text = changed("500.5,300", "913,300").replace("9,beach,3,600,400", "9,beach,3,600,-5")
    text = text.replace("9,beach,5,610,410", "9,beach,5,61,410")
    paths, report = read_table(write(tmp_path, text), **PIXELS, outside="drop")
    assert (report.rows, report.fixations, report.paths) == (6, 3, 2)
    assert paths.observers == [7]
    assert report.outside == (
        "fixations.csv, line 6 (observer 7, picture 'wood', fixation 2, x = 913, y = 300)",
        "fixations.csv, line 7 (observer 9, picture 'beach', fixation 3, x = 600, y = -5)",
        "fixations.csv, line 8 (observer 9, picture 'beach', fixation 5, x = 61, y = 410)",
    )
    assert report.lost_paths == ("observer 9, picture 'beach'",)
    assert "3 left out, outside the picture: fixations.csv, line 6" in str(report)
    assert "1 lost altogether" in str(report)


@pytest.mark.parametrize("empty", ["", ".", "NA", "NaN", "nan"])
def test_rows_without_a_position_are_dropped_on_request_and_counted(tmp_path, empty):
    text = changed("7,beach,2,112,84", f"7,beach,2,{empty},84")
    paths, report = read_table(write(tmp_path, text), **PIXELS, missing="drop")
    assert paths.fixations == 5
    words = "observer 7, picture 'beach', fixation 2, x = (empty), y = 84"
    assert report.missing == (f"fixations.csv, line 3 ({words})",)
    assert report.outside == ()


def test_what_was_left_out_is_listed_row_by_row_with_its_reason(tmp_path):
    text = changed("500.5,300", "913.25,300").replace("7,beach,2,112,84", "7,beach,2,,84")
    _, report = read_table(write(tmp_path, text), **PIXELS, outside="drop", missing="drop")
    assert [(it.source, it.kind, it.number, it.why) for it in report.left_out] == [
        ("fixations.csv", "line", 3, "without a position"),
        ("fixations.csv", "line", 6, "outside the picture"),  # a row before it has two lines
    ]
    table = report.left_out_table()
    assert table["number"].tolist() == [3, 6]
    assert table["words"][1] == "observer 7, picture 'wood', fixation 2, x = 913.25, y = 300"
    _, report = read_table(write(tmp_path, CSV), **PIXELS)
    assert report.left_out == ()
    assert len(report.left_out_table()) == 0


def test_rows_of_a_frame_that_were_left_out_are_counted_from_one():
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": [1, 2], "x": [1.0, 25.0], "y": [1.0, 2.0]})
    _, report = read_table(table, **DEGREES, outside="drop")
    (left_out,) = report.left_out
    assert str(left_out) == "the table, row 2 (observer 1, picture 1, fixation 2, x = 25, y = 2)"


def test_a_dropped_fixation_leaves_a_flagged_gap(tmp_path):
    text = changed("7,wood,2,500.5,300,0,3,\n", "7,wood,2,,,0,3,\n7,wood,3,500,300,0,3,\n")
    paths, report = read_table(write(tmp_path, text), **PIXELS, missing="drop")
    assert "observer 7, picture 'wood', fixation 3" in report.gaps
    assert paths.fixation[1, :2].tolist() == [1, 3]


def test_columns_that_would_be_taken_for_ours_are_renamed_and_reported(tmp_path):
    text = CSV.replace("pupil", "x_deg").replace("ms", "trial")
    paths, report = read_table(write(tmp_path, text), **PIXELS)
    assert report.renamed == {"x_deg": "x_deg_read", "trial": "trial_read"}
    assert paths.columns["trial_read"][0].tolist() == [250, 180]
    assert paths.x_deg[0].tolist() == [10.0, 0.0]
    assert (paths.trial == 1).all()
    assert "column 'x_deg' kept as 'x_deg_read'." in str(report)


def test_labels_keep_their_leading_zeros_and_odd_names(tmp_path):
    rows = ["observer,picture,fixation,x,y,code", "007,1e3,1,500,300,010", "NA,1e3,1,500,300,011"]
    paths, _ = read_table(write(tmp_path, "\n".join(rows)), **PIXELS)
    assert paths.observers == ["007", "NA"]
    assert paths.pictures == ["1e3"]
    assert paths.columns["code"][0].tolist() == ["010"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("500.5,300", "913,300", r"fixations.csv, line 6 \(observer 7, picture 'wood', fixation 2\): x = 913 px lies "),
        ("500.5,300", "913,300", r"\(112 to 912 px\).* leave out 1 of 6 fixations with outside=\"drop\""),
        ("500.5,300", "500.5,83", r"line 6 .*: y = 83 px lies outside the picture \(84 to 684 px\)"),
        (
            "512,384",
            ",384",
            r"line 2 \(observer 7, picture 'beach', fixation 1\): x is empty or NaN; .*missing=\"drop\"",
        ),
        ("512,384", "512,nan", r"line 2 .*: y is empty or NaN"),
        ("512,384", "inf,384", r"line 2 .*: x is infinite"),
        ("512,384", "left,384", r"line 2 .*: x is 'left', which is not a number"),
        ("512,384", '"5,5",384', r"line 2 .*: x is '5,5', which is not a number"),
        ("512,384", "1_0,384", r"line 2 .*: x is '1_0', which is not a number"),
        ("384,250", "384,-250", r"line 2 .*: ms = -250: a duration must be zero or positive"),
        ("384,250", "384,", r"line 2 .*: ms = nan: a duration must be zero or positive"),
        ("384,250", "384,long", r"line 2 .*: ms is 'long', which is not a number"),
        ("7,beach,2", "7,beach,1", r"line 3 \(observer 7, picture 'beach', fixation 1\): .* stands twice in one path"),
        ("7,beach,2", "7,beach,0", r"line 3 .*: it comes after fixation 1, but numbers must grow"),
        ("7,beach,2", "7,beach,1.5", r"line 3: fixation = 1.5 must be a whole number"),
        ("7,beach,2", "7,beach,", "line 3: fixation is empty"),
        ("7,beach,2", "7,beach,two", "line 3: fixation is 'two', which is not a number"),
        ("7,beach,2", ",beach,2", "line 3: observer is empty"),
        ("7,beach,2", "7, ,2", "line 3: picture is empty"),
        ("7,wood,2,500.5,300,0,3,\n", "7,wood,2,500.5\n", "line 6 has 4 values, the header has 8"),
        ("pupil", "x", r"fixations.csv, line 1: column x stands more than once"),
        ("observer", "subject", "fixations.csv: column observer missing; it has subject, picture"),
    ],
)
def test_a_bad_row_is_refused_by_line_and_name(tmp_path, old, new, words):
    with pytest.raises(InputError, match=words) as caught:
        read_table(write(tmp_path, changed(old, new)), **PIXELS, duration="ms", duration_unit="ms")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_several_bad_rows_are_counted(tmp_path):
    with pytest.raises(InputError, match=r"line 2 .*\), the first of 2 such rows: x is infinite"):
        read_table(write(tmp_path, CSV.replace("112", "inf").replace("512", "-inf")), **PIXELS)


def test_rows_of_a_data_frame_are_counted_from_one():
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": [1, 2], "x": [1.0, 25.0], "y": [1.0, 2.0]})
    words = r"the table, row 2 \(observer 1, picture 1, fixation 2\): x = 25 deg .*\(0 to 20 deg\)"
    with pytest.raises(InputError, match=words):
        read_table(table, **DEGREES)
    with pytest.raises(InputError, match=r"\(10 to 30 deg\)"):
        read_table(table.iloc[:1], **DEGREES, x0_deg=10.0)
    with pytest.raises(InputError, match="the table: column x stands more than once"):
        read_table(pd.concat([table, table[["x"]]], axis=1), **DEGREES)


def test_nothing_left_is_an_error():
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": [1, 2], "x": [100.0, 250.0], "y": [1.0, 2.0]})
    with pytest.raises(InputError, match="no fixation is left, all 2 were dropped"):
        read_table(table, **DEGREES, outside="drop")


def test_paths_shorter_than_needed_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"observer 7, picture 'beach' .*first of 3.*2 fixations, but 3 are needed"):
        read_table(write(tmp_path, CSV), **PIXELS, shortest=3)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("fixations.csv", "", r"fixations.csv is empty"),
        ("fixations.csv", "\n\n", r"fixations.csv is empty"),
        ("fixations.csv", CSV.splitlines()[0], r"fixations.csv has columns but no rows"),
        ("fixations.csv", CSV.replace(",", ";"), r"separated by semicolons, but .csv means commas"),
        ("fixations.tsv", CSV, r"separated by commas, but .*\.tsv means tabs"),
        ("fixations.csv", CSV + "9,wood," + "x" * 200_000, r"line 9 cannot be read as text \(field larger than"),
        ("fixations.csv", '"unclosed', r"fixations.csv, line 1 cannot be read as text"),
        ("fixations.xlsx", "x", r"fixations.xlsx: the name must end in .csv, .tsv, .parquet or .feather"),
        ("fixations", "x", r"fixations: the name must end in"),
        ("fixations.parquet", "x", r"fixations.parquet cannot be read as Parquet"),
        ("fixations.feather", "x", r"fixations.feather cannot be read as Feather"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path, name, text, words):
    with pytest.raises(InputError, match=words):
        read_table(write(tmp_path, text, name), **PIXELS)


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"gone.csv: there is no such file"):
        read_table(tmp_path / "gone.csv", **PIXELS)
    (tmp_path / "latin.csv").write_bytes("observer,pîcture\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"latin.csv is not UTF-8 text \(byte 10, in line 1\)"):
        read_table(tmp_path / "latin.csv", **PIXELS)
    with pytest.raises(InputError, match="the table has columns but no rows"):
        read_table(pd.DataFrame({"observer": []}), **PIXELS)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_byte_that_is_no_text_is_named_by_its_place_in_the_whole_file(tmp_path, mark):
    rows = [b"observer,picture,fixation,x,y", *(b"1,beach,%d,500,300" % number for number in range(1, 3000))]
    rows[2500] = "1,plage d'été,2500,500,300".encode("latin-1")
    data = mark + b"\r\n".join(rows)
    (tmp_path / "long.csv").write_bytes(data)
    assert data.index(b"\xe9") > 3 * 8192  # far behind the blocks that files are read in
    with pytest.raises(InputError, match=rf"long.csv is not UTF-8 text \(byte {data.index(0xE9)}, in line 2501\)"):
        read_table(tmp_path / "long.csv", **PIXELS)


def test_other_encodings_and_nul_bytes_are_named(tmp_path):
    (tmp_path / "wide.csv").write_bytes(CSV.encode("utf-16"))
    with pytest.raises(InputError, match=r"wide.csv is not UTF-8 text but UTF-16 \(byte 0, in line 1\)"):
        read_table(tmp_path / "wide.csv", **PIXELS)
    with pytest.raises(InputError, match=r"fixations.csv, line 3: there is a NUL byte"):
        read_table(write(tmp_path, changed("7,beach,2", "7,beach\0,2")), **PIXELS)


@pytest.mark.parametrize("name", ["observer", "picture", "trial"])
@pytest.mark.parametrize("value", [["a", "b"], ["a"], [], {"a": 1}, np.zeros(2), b"ann", "ann\0"], ids=repr)
def test_what_is_no_name_is_refused(name, value):
    table = pd.DataFrame({"observer": 1, "picture": 1, "trial": 1, "fixation": [1, 2], "x": 1.0, "y": 1.0})
    table[name] = pd.Series(["a", value], dtype=object)
    with pytest.raises(InputError, match=rf"the table, row 2: {name} is .*, which is not a name"):
        read_table(table, **DEGREES, trial="trial")


@pytest.mark.parametrize(
    "value", [[1.0], [1.0, 2.0], [], {}, 10**400, 1j, pd.Timestamp(0)], ids=lambda it: repr(it)[:9]
)
def test_what_is_no_number_is_refused(value):
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": [1, 2], "y": 1.0})
    table["x"] = pd.Series([1.0, value], dtype=object)
    with pytest.raises(InputError, match=r"the table, row 2 .*: x is .*, which is not a number"):
        read_table(table, **DEGREES)


@pytest.mark.parametrize("name", ["observer", "x"])
def test_a_decimal_that_signals_nan_is_an_empty_cell(name):
    table = pd.DataFrame({"observer": 1, "picture": 1, "fixation": [1, 2], "x": 1.0, "y": 1.0}, dtype=object)
    table[name] = [Decimal(1), Decimal("sNaN")]
    with pytest.raises(InputError, match=rf"the table, row 2.*: {name} is empty"):
        read_table(table, **DEGREES)
    if name == "x":
        _, report = read_table(table, **DEGREES, missing="drop")
        assert "x = (empty)" in report.missing[0]


def test_a_decimal_comma_is_called_one(tmp_path):
    with pytest.raises(InputError, match=r"line 2 .*: x is '5,5', which is not a number; write it with a decimal poin"):
        read_table(write(tmp_path, changed("512,384", '"5,5",384')), **PIXELS)


def test_long_and_unprintable_values_are_cut_and_escaped(tmp_path):
    with pytest.raises(InputError, match=r"x is 'z{59}\.\.\. \(20,002 characters\), which is not a number") as caught:
        read_table(write(tmp_path, changed("512,384", "z" * 20_000 + ",384")), **PIXELS)
    assert len(str(caught.value)) < 300
    with pytest.raises(InputError) as caught:
        read_table(write(tmp_path, CSV.replace("7,wood", '"7\u2028\n",wood').replace("500.5", "x")), **PIXELS)
    assert str(caught.value).isprintable()


def test_codes_that_are_no_measurements_stay_as_they_are_written(tmp_path):
    rows = ["observer,picture,fixation,x,y,code,mixed", "1,1,1,500,300,12345678901234567890,12345678901234567"]
    rows += ["1,1,2,500,300,12345678901234567891,1.5"]
    paths, _ = read_table(write(tmp_path, "\n".join(rows)), **PIXELS)
    assert paths.columns["code"][0].tolist() == ["12345678901234567890", "12345678901234567891"]
    assert paths.columns["mixed"][0].tolist() == ["12345678901234567", "1.5"]


def test_what_is_neither_a_file_nor_a_frame_is_refused():
    for source in (None, 3, b"fixations.csv", [1, 2]):
        with pytest.raises(InputError, match=r"cannot be read as a data frame .* or the name of a file"):
            read_table(source, **PIXELS)


def test_missing_columns_of_parquet_and_frames_are_named(tmp_path):
    table = pd.DataFrame({"observer": [1], "picture": [1], "fixation": [1], "x": [1.0]})
    table.to_parquet(tmp_path / "fixations.parquet")
    with pytest.raises(InputError, match=r"fixations.parquet: column y missing; it has observer, picture, fixation, x"):
        read_table(tmp_path / "fixations.parquet", **DEGREES)
    with pytest.raises(InputError, match="the table: column y, duration missing"):
        read_table(table, **DEGREES, duration="duration", duration_unit="s")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"position_unit": "cm"}, "position_unit = 'cm': say 'px' or 'deg'"),
        ({"position_unit": "deg"}, r"positions in deg need frame=Extent"),
        ({"frame": Extent(1.0, 1.0)}, r"positions in px need frame=PixelFrame"),
        ({"duration": "ms", "duration_unit": "min"}, "duration_unit = 'min': say 'ms' or 's'"),
        ({"duration": "ms"}, "duration = 'ms', duration_unit = None: .*never guessed"),
        ({"duration_unit": "ms"}, "duration = None, duration_unit = 'ms': name both"),
        ({"x0_deg": 1.0}, "x0_deg and y0_deg are for positions in deg"),
        ({"y0_deg": np.nan}, "finite number"),
        ({"outside": "clip"}, "outside = 'clip': say 'error' or 'drop'"),
        ({"missing": "fill"}, "missing = 'fill': say 'error' or 'drop'"),
        ({"x": "y"}, "column 'y' is named for x and y"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path, settings, words):
    with pytest.raises(InputError, match=words):
        read_table(write(tmp_path, CSV), **(PIXELS | settings))


@pytest.mark.parametrize("values", [[b"1.5", b"2", b"50"], [Fraction(3, 2), 2, 50]])
def test_cells_that_are_no_plain_numbers_are_refused_or_shown_as_numbers(values):
    table = pd.DataFrame({"observer": "a", "picture": "p", "fixation": [1, 2, 3], "x": values, "y": 1.0})
    settings = {"frame": Extent(30.0, 20.0), "position_unit": "deg", "outside": "drop"}
    if isinstance(values[0], bytes):
        with pytest.raises(InputError, match="x is"):
            read_table(table, **settings)
    else:
        assert "x = 50" in read_table(table, **settings)[1].left_out[0].words


def test_a_label_beyond_the_largest_whole_number_is_text():
    table = pd.DataFrame({"picture": "p", "fixation": [1, 2, 3], "x": 1.0, "y": 1.0})
    table["observer"] = pd.Series([np.float64(2**63)] * 3, dtype=object)
    paths, _ = read_table(table, frame=Extent(30.0, 20.0), position_unit="deg")
    (observer,) = paths.observers
    assert isinstance(observer, str)
    assert float(observer) == 2**63

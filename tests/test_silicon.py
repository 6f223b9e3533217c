"""The measured tables: what is in them, how they are filtered, what is refused, what they say about the models."""

import csv

import numpy as np
import pytest

from cotune import gemm, silicon
from cotune.chip import chip_named
from cotune.silicon import GEMM_COLUMNS, OPERANDS, Column, gemm_table, read_table

ROWS = {  # per chip: bfloat16, fp8, fp8_block, nvfp4
    "a100": (594, 0, 0, 0),
    "h100": (906, 342, 912, 0),
    "h200": (906, 342, 912, 0),
    "b200": (906, 342, 912, 912),
    "gb200": (906, 342, 912, 912),
    "gb300": (906, 342, 912, 912),
}


def gb300(dtype, **wanted):
    return gemm_table().where(chip="gb300", dtype=dtype, **wanted)


def rate(table):
    """Achieved TFLOP/s of every row."""
    return gemm.flops(table["m"], table["n"], table["k"]) / table["latency"] / 1e12


def latencies(table):
    return dict(zip(zip(*(table[size].tolist() for size in "mnk"), strict=True), table["latency"], strict=True))


# --- what is in the table ---


def test_rows_per_chip_and_dtype():
    counts = {chip: tuple(len(gemm_table().where(chip=chip, dtype=d)) for d in OPERANDS) for chip in ROWS}
    assert counts == ROWS
    assert len(gemm_table()) == sum(map(sum, ROWS.values())) == 14130


@pytest.mark.parametrize(
    "chip, dtype, m, n, k, us",
    [
        ("a100", "bfloat16", 1, 128, 1536, 3.4816),
        ("h200", "bfloat16", 256, 8192, 6144, 37.968),
        ("h100", "fp8_block", 64, 3584, 2560, 9.0542),
        ("b200", "fp8", 512, 3584, 2560, 10.977),
        ("gb300", "nvfp4", 8192, 8192, 8192, 209.98),
        ("h200", "fp8_block", 32768, 65536, 1024, 4181.6),
    ],
)
def test_known_rows(chip, dtype, m, n, k, us):
    row = gemm_table().where(chip=chip, dtype=dtype, m=m, n=n, k=k)
    assert row["latency"].tolist() == pytest.approx([us * 1e-6], rel=1e-12)


def test_every_number_of_the_file_is_in_the_table():
    with (silicon.FOLDER / "gemm.csv").open(newline="") as file:
        raw = list(csv.DictReader(file))
    table = gemm_table()
    assert table["chip"].tolist() == [row["gpu"].removesuffix("_sxm") for row in raw]
    assert table["dtype"].tolist() == [row["dtype"] for row in raw]
    for name, header in (("m", "m_tokens"), ("n", "n_out_features"), ("k", "k_in_features")):
        assert table[name].tolist() == [int(row[header]) for row in raw]
    assert np.array_equal(table["latency"], [float(row["latency_us"]) * 1e-6 for row in raw])


def test_no_shape_is_measured_twice():
    table = gemm_table()
    keys = set(zip(*(table[c].tolist() for c in ("chip", "dtype", "m", "n", "k")), strict=True))
    assert len(keys) == len(table)


def test_the_table_is_read_once_and_cannot_change():
    table = gemm_table()
    assert gemm_table() is table
    for part in (table, table.where(m=1)):
        with pytest.raises(ValueError, match="read-only"):
            part["latency"][0] = 1.0
        with pytest.raises(TypeError):
            part.data["latency"] = np.ones(len(part))


# --- filtering ---


def test_where_takes_a_value_several_values_or_a_function():
    table = gemm_table().where(chip=["b200", "gb300"], dtype="nvfp4", m=range(1, 65), k=lambda k: k > 8192)
    assert set(table["chip"].tolist()) == {"b200", "gb300"} and set(table["dtype"].tolist()) == {"nvfp4"}
    assert set(table["m"].tolist()) == {1, 4, 16, 64} and table["k"].min() > 8192
    expected = sum(
        chip in ("b200", "gb300") and dtype == "nvfp4" and m <= 64 and k > 8192
        for chip, dtype, m, k in zip(*(gemm_table()[c].tolist() for c in ("chip", "dtype", "m", "k")), strict=True)
    )
    assert len(table) == expected > 0


def test_where_knows_a_chip_by_its_other_names():
    assert len(gemm_table().where(chip="b200_sxm")) == len(gemm_table().where(chip=chip_named("b200").id)) == 3072


def test_where_may_find_nothing():
    nothing = gemm_table().where(chip="h200", dtype="nvfp4")
    assert len(nothing) == 0 and nothing["m"].dtype == gemm_table()["m"].dtype
    assert silicon.ideal(nothing).total.shape == (0,)
    assert len(gemm_table().where(m=3)) == 0


@pytest.mark.parametrize(
    "wanted, message",
    [
        ({"chip": "gb301"}, "unknown chip 'gb301'; known: .*gb300"),
        ({"chip": ["gb300", "tpu"]}, "unknown chip 'tpu'"),
        ({"dtype": "fp4"}, "unknown dtype 'fp4'; known: bfloat16, fp8, fp8_block, nvfp4"),
        ({"tokens": 8}, "unknown column 'tokens'; known: chip, dtype, m, n, k, latency"),
    ],
)
def test_where_refuses_a_name_it_does_not_know(wanted, message):
    with pytest.raises(ValueError, match=message):
        gemm_table().where(**wanted)


@pytest.mark.parametrize(
    "wanted, message",
    [
        ({"m": None}, "column m: must be a whole number above 0, got 'None'"),
        ({"m": 1.5}, "column m: must be a whole number above 0, got '1.5'"),
        ({"m": -3}, "column m: must be a whole number above 0, got '-3'"),
        ({"m": True}, "column m: must be a whole number above 0, got 'True'"),
        ({"m": "8.5"}, "column m: must be a whole number above 0, got '8.5'"),
        ({"m": [8, 0]}, "column m: must be a whole number above 0, got '0'"),
        ({"m": np.array([8, -1])}, "column m: must be a whole number above 0, got '-1'"),
        ({"m": 10**30}, r"column m: must be a whole number up to 2\*\*53, got '1000"),
        ({"latency": float("nan")}, "column latency: must be a finite number above 0, got 'nan'"),
        ({"chip": None}, "column chip: unknown chip None; known: "),
        ({"dtype": 8}, "column dtype: unknown dtype 8; known: "),
        ({"m": lambda m: 3}, r"column m: the function must return a mask, .*; got int64 of shape \(\)"),
        ({"m": lambda m: True}, r"column m: the function must return a mask, .*; got bool of shape \(\)"),
        ({"m": lambda m: m}, r"column m: the function must return a mask, .*; got int64 of shape \(14130,\)"),
        ({"m": lambda m: [True, False]}, r"column m: the function must return a mask, .*; got bool of shape \(2,\)"),
        ({"m": lambda m: None}, r"column m: the function must return a mask, .*; got object of shape \(\)"),
    ],
)
def test_where_refuses_what_a_column_cannot_hold(wanted, message):
    with pytest.raises(ValueError, match=message):
        gemm_table().where(**wanted)


def test_where_takes_numpy_values_and_the_units_of_the_table():
    table = gemm_table()
    rows = len(table.where(m=16))
    assert rows == len(table.where(m=np.int64(16))) == len(table.where(m=np.array(16))) == len(table.where(m="16")) > 0
    assert len(table.where(m=np.array([16, 64]))) == rows + len(table.where(m=64))
    assert table["latency"][0] in table.where(latency=table["latency"][0])["latency"]
    assert len(table.where(chip=chip_named("b200"))) == len(table.where(chip="b200"))
    assert len(table.where(m=[])) == 0


def test_a_count_is_exact_up_to_its_limit():
    assert (silicon.count(str(2**53)), silicon.count("007")) == (2**53, 7)
    with pytest.raises(ValueError, match=r"up to 2\*\*53, got '9007199254740993'"):
        silicon.count(str(2**53 + 1))


def test_an_unknown_column_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown column 'latency_us'; known: chip, dtype, m, n, k, latency"):
        gemm_table()["latency_us"]


# --- reading a file ---

HEADER = "gpu,dtype,m_tokens,n_out_features,k_in_features,latency_us\n"
GOOD = "gb300,nvfp4,8,128,256,3.5\n"

REFUSED = [
    ("", "has no rows below its header"),
    (HEADER, "has no rows below its header"),
    (HEADER.replace(",latency_us", "") + GOOD, "line 1: column latency_us is missing; found: gpu, dtype, "),
    (HEADER.replace("k_in", "m_in") + GOOD, "line 1: column k_in_features is missing; found: .*m_in_features"),
    (HEADER.replace("dtype", "gpu") + GOOD, "line 1: column gpu appears twice"),
    (HEADER.replace("\n", ",note\n") + GOOD, "line 1: unknown column 'note'"),
    (HEADER + GOOD + "gb300,nvfp4,8,128,256\n", "line 3: 5 values where the header has 6"),
    (HEADER + GOOD + "gb300,nvfp4,8,128,256,3.5,1\n", "line 3: 7 values where the header has 6"),
    (HEADER + GOOD + "\n" + GOOD, "line 3: 0 values where the header has 6"),
    (HEADER + GOOD + "gb301,nvfp4,8,128,256,3.5\n", "line 3, column gpu: unknown chip 'gb301'; known: .*gb300"),
    (HEADER + GOOD + ",nvfp4,8,128,256,3.5\n", "line 3, column gpu: unknown chip ''"),
    (HEADER + "gb300,int4,8,128,256,3.5\n", "line 2, column dtype: unknown dtype 'int4'; known: bfloat16, fp8"),
    *[
        (HEADER + GOOD + GOOD.replace(",8,", f",{bad},"), f"line 3, column m_tokens: must be .*, got '{bad}'")
        for bad in ("eight", "", "0", "-8", "8.5", "1_000", "nan", "1e3", " 8", "²")
    ],
    (HEADER + "gb300,nvfp4,8,0,256,3.5\n", "line 2, column n_out_features: must be a whole number above 0, got '0'"),
    *[
        (HEADER + GOOD + GOOD.replace(",8,", f",{bad},"), "line 3, column m_tokens: must be a whole number up to 2")
        for bad in ("9" * 16, "1" * 30, "1" * 5000)
    ],
    (HEADER + "gb300,nvfp4,8,128,k,3.5\n", "line 2, column k_in_features: must be a whole number above 0, got 'k'"),
    *[
        (HEADER + GOOD * 4 + GOOD.replace("3.5", bad), f"line 6, column latency_us: must be .*, got '{bad}'")
        for bad in ("fast", "", "0", "0.0", "-3.5", "nan", "inf", "-inf", "3_5", "3.5 us")
    ],
    (HEADER + GOOD + 'gb300,"nvfp4,8,128,256,3.5\n', "is not a CSV file in UTF-8"),
]


@pytest.mark.parametrize("text, message", REFUSED)
def test_a_file_that_cannot_be_used_is_refused_where_it_is_wrong(tmp_path, text, message):
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as error:
        read_table(path, GEMM_COLUMNS)
    assert str(error.value).startswith(str(path))


def test_a_file_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(HEADER.encode() + b"\xff\xfe\n")
    with pytest.raises(ValueError, match="mine.csv is not a CSV file in UTF-8"):
        read_table(path, GEMM_COLUMNS)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="mine.csv"):
        read_table(tmp_path / "mine.csv", GEMM_COLUMNS)


def test_columns_may_come_in_any_order_with_a_byte_order_mark_and_crlf(tmp_path):
    path = tmp_path / "mine.csv"
    header = "latency_us,k_in_features,gpu,dtype,m_tokens,n_out_features"
    path.write_bytes(f"\ufeff{header}\r\n3.5,256,b200_sxm,nvfp4,8,128\r\n7e3,256,h100_sxm,fp8,8,128".encode())
    table = read_table(str(path), GEMM_COLUMNS)
    assert table["chip"].tolist() == ["b200", "h100"] and table["k"].tolist() == [256, 256]
    assert table["latency"].tolist() == pytest.approx([3.5e-6, 7e-3], rel=1e-12)


def test_another_table_is_described_by_its_columns(tmp_path):
    path = tmp_path / "nccl.csv"
    path.write_text("gpu,size_bytes,latency_us\nh100_sxm,1024,9.5\n")
    columns = (
        Column("gpu", "chip", silicon.chip_id),
        Column("size_bytes", "bytes", silicon.count),
        Column("latency_us", "latency", silicon.microseconds),
    )
    table = read_table(path, columns)
    assert len(table.where(chip="h100", bytes=lambda b: b > 1000)) == 1


# --- ideal times ---


def test_ideal_is_the_roofline_of_every_row():
    table = gemm_table().where(m=[1, 257, 8192], n=[768, 8192])
    ideal = silicon.ideal(table)
    assert len(ideal.total) == len(table) > 100
    for i in range(len(table)):
        a, b, c = OPERANDS[table["dtype"][i]]
        time = gemm.time(*(table[s][i] for s in "mnk"), chip_named(table["chip"][i]), a=a, b=b, c=c)
        assert (ideal.math[i], ideal.memory[i], ideal.bound[i]) == (time.math, time.memory, time.bound)


def test_operands_cover_the_dtypes_and_return_bf16():
    assert set(OPERANDS) == set(gemm_table()["dtype"].tolist())
    assert {c for _, _, c in OPERANDS.values()} == {"bf16"}


def test_a_row_in_a_format_that_the_chip_lacks_is_refused(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(HEADER + GOOD.replace("gb300", "h100"))
    with pytest.raises(ValueError, match="h100 has no fp4"):
        silicon.ideal(read_table(path, GEMM_COLUMNS))


# --- what the measurements say: the facts that the course quotes ---


@pytest.mark.parametrize(
    "dtype, n, tflops",
    [
        ("bfloat16", 2048, {256: 1101, 768: 1681, 2048: 1869, 3584: 1929}),
        ("nvfp4", 2048, {256: 924, 768: 1904, 2048: 2875, 3584: 3175}),
        ("bfloat16", 8192, {512: 1654, 2048: 2002}),
        ("nvfp4", 8192, {512: 2374, 2048: 3750}),
    ],
)
def test_a_small_k_is_slow_at_any_number_of_tokens(dtype, n, tflops):
    points = {k: rate(gb300(dtype, m=32768, n=n, k=k)).round().tolist() for k in tflops}
    assert points == {k: [value] for k, value in tflops.items()}


def test_the_roofline_is_too_optimistic_almost_everywhere():
    table = gemm_table()
    faster = silicon.ideal(table).total > table["latency"]
    assert faster.sum() == 5
    assert set(table["n"][faster]) == {128} and set(table["dtype"][faster].tolist()) == {"bfloat16"}
    points = gb300("bfloat16")
    assert round(100 * np.mean(silicon.ideal(points).total < points["latency"]), 1) == 99.8


@pytest.mark.parametrize(
    "dtype, mean, median",
    [("bfloat16", 51.7, 44.8), ("fp8", 73.7, 77.4), ("fp8_block", 70.7, 75.0), ("nvfp4", 80.4, 83.0)],
)
def test_error_of_the_roofline_on_gb300(dtype, mean, median):
    table = gb300(dtype)
    error = 100 * abs(silicon.ideal(table).total / table["latency"] - 1)
    assert [round(error.mean(), 1), round(float(np.median(error)), 1)] == [mean, median]


@pytest.mark.parametrize(
    "dtype, percent",
    [
        ("bfloat16", {128: 7, 256: 14, 512: 10}),
        ("fp8_block", {128: 0, 256: 2, 512: 9}),
        ("nvfp4", {128: 25, 256: 13, 512: 19}),
    ],
)
def test_one_token_past_a_tile_edge(dtype, percent):
    def times(m):
        return latencies(
            gb300(dtype, m=m, n=lambda n: (n >= 2048) & (n <= 16384), k=lambda k: (k >= 2048) & (k <= 16384))
        )

    measured = {}
    for m in percent:
        at, past = times(m), times(m + 1)
        ratios = [past[m + 1, n, k] / at[m, n, k] for m, n, k in at if (m + 1, n, k) in past]
        measured[m] = round(100 * (np.median(ratios) - 1))
    assert measured == percent


@pytest.mark.parametrize(
    "millions, median", [((0, 5), 0.82), ((5, 16), 1.17), ((16, 64), 1.57), ((64, 1e9), 2.14)], ids=str
)
def test_nvfp4_pays_for_large_layers_only(millions, median):
    # Shapes with N, K >= 512 and M <= 8192, the rows one token past a tile edge left out.
    shapes = {
        "m": lambda m: (m <= 8192) & ~np.isin(m, (129, 257, 513)),
        "n": lambda n: n >= 512,
        "k": lambda k: k >= 512,
    }
    wide, narrow = latencies(gb300("bfloat16", **shapes)), latencies(gb300("nvfp4", **shapes))
    low, high = millions
    gains = [wide[s] / narrow[s] for s in wide if s in narrow and low * 1e6 <= s[1] * s[2] < high * 1e6]
    assert np.median(gains) == pytest.approx(median, rel=0.03)

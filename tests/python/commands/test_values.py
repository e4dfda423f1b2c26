"""`msprobe compare` on tensor files: every metric against NumPy, for every dtype."""

from __future__ import annotations

import ast
import json
import math

import numpy as np
import pytest
import torch
from command import compare, tensor_record, write_rank
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import (
    ALL_DTYPES,
    COMPLEX,
    FLOAT4,
    FLOAT8,
    FLOATS,
    INTEGERS,
    logical_bytes,
    logical_values,
    raw_bytes,
)
from tensors import LAYOUTS, VALUE_CLASSES, apply_lazy, cases, lazy_views, make_storage

RTOL, ATOL = 1e-3, 1e-2


def write_tensors(folder, tensors, gather=False):
    """A rank folder with one torch.save file for each tensor; `gather`: of elements in C order."""
    data = {}
    for name, tensor in tensors.items():
        file = f"{name}.0.debug.pt"
        data[f"{name}.0.debug"] = tensor_record(
            tuple(tensor.shape), str(tensor.dtype), Norm=None, data_name=file
        )
        write_rank(folder, {}) if not folder.exists() else None
        torch.save(gathered(tensor) if gather else tensor, folder / "dump_tensor_data" / file)
    top = {"task": "tensor", "level": "debug", "framework": "pytorch", "data": data}
    (folder / "debug.json").write_text(json.dumps(top))
    return folder


def gathered(tensor):
    """The same elements in a storage of their own, in C order, with the signs applied."""
    if tensor.numel() == 0:
        return torch.empty(tensor.shape, dtype=tensor.dtype)
    raw = torch.frombuffer(bytearray(logical_bytes(tensor)), dtype=torch.uint8)
    return raw.view(tensor.dtype).reshape(tensor.shape)


# ---- the metrics by their definitions --------------------------------------------------------


def parts(value):
    return [value.real, value.imag] if isinstance(value, complex) else [value]


def is_nan(value):
    return any(p != p for p in parts(value))


def is_finite(value):
    return all(isinstance(p, int) or math.isfinite(p) for p in parts(value))


def magnitude(value):
    return math.hypot(value.real, value.imag) if isinstance(value, complex) else abs(value)


def infinities(value):
    """The infinite parts, by sign; of complex numbers part by part."""
    return [p if isinstance(p, float) and math.isinf(p) else None for p in parts(value)]


def ordered_codes(tensor):
    """For each part of each element an integer that counts the representable numbers."""
    name = str(tensor.dtype).removeprefix("torch.")
    raw = raw_bytes(tensor.contiguous().clone())
    if name == FLOAT4:
        raw, width = np.stack([raw & 15, raw >> 4], 1).ravel(), 4
    else:
        width = 8 * tensor.element_size() // (2 if name in COMPLEX else 1)
        raw = raw.view(f"u{width // 8}")
    codes = raw.astype(object)
    if name == "float8_e8m0fnu":
        return codes
    sign = 1 << (width - 1)
    return np.array([-(c - sign) if c >= sign else c for c in map(int, codes)], dtype=object)


def wide_sum(values):
    return sum((np.longdouble(v) for v in values), np.longdouble(0))


def expected_metrics(golden, target):
    """The cells of a row for two tensors of one dtype, as numbers."""
    g, t = logical_values(golden), logical_values(target)
    count = len(g)
    shape = (*golden.shape[:-1], golden.shape[-1] * count // golden.numel())  # float4: two an item
    finite = [i for i in range(count) if is_finite(g[i]) and is_finite(t[i])]
    others = set(range(count)) - set(finite)
    same = [i for i in others if (is_nan(g[i]) and is_nan(t[i])) or g[i] == t[i]]
    nan_mismatches = sum(is_nan(a) != is_nan(b) for a, b in zip(g, t, strict=True))
    exact = {i: magnitude(t[i] - g[i]) for i in finite}
    error = {i: float(exact[i]) for i in finite}
    size = {i: float(magnitude(g[i])) for i in finite}

    def relative(i):
        return error[i] / size[i] if size[i] else (math.inf if error[i] else 0.0)

    def share(within):
        return (sum(map(within, finite)) + len(same)) / count

    unequal = len(others) - len(same)
    cells = {
        "NaN mismatches": nan_mismatches,
        "Inf mismatches": sum(
            not is_nan(g[i]) and not is_nan(t[i]) and infinities(g[i]) != infinities(t[i])
            for i in others
        ),
        "Beyond tolerance": sum(error[i] > ATOL + RTOL * size[i] for i in finite) + unequal,
        "One Thousandth Err Ratio": share(lambda i: error[i] == 0 or 1000 * error[i] < size[i]),
        "Five Thousandths Err Ratio": share(lambda i: error[i] == 0 or 200 * error[i] < size[i]),
    }
    flat = [(i, p) for i in finite for p in range(len(parts(g[i])))]
    gp, tp = ([np.longdouble(parts(v[i])[p]) for i, p in flat] for v in (g, t))
    if finite and any(error.values()):
        worst = max(finite, key=lambda i: (exact[i], -i))
        worst_relative = max(finite, key=lambda i: (relative(i), -i))
        cells |= {
            "MaxAbsErr": error[worst],
            "MaxAbsErr at": list(map(int, np.unravel_index(worst, shape))),
            "MaxAbsErr NPU": t[worst],
            "MaxAbsErr Bench": g[worst],
            "MaxRelativeErr": relative(worst_relative),
            "MaxRelativeErr at": list(map(int, np.unravel_index(worst_relative, shape))),
        }
    if finite:
        norms = np.sqrt(wide_sum(a * a for a in gp)), np.sqrt(wide_sum(b * b for b in tp))
        dot = wide_sum(a * b for a, b in zip(gp, tp, strict=True))
        cosine = float(dot / norms[0] / norms[1]) if all(norms) else float(not any(norms))
        cells["Cosine"] = cosine
    distance = np.sqrt(wide_sum((b - a) ** 2 for a, b in zip(gp, tp, strict=True)))
    cells["EucDist"] = float(distance)
    if str(golden.dtype).removeprefix("torch.") in [*FLOATS, *COMPLEX, *FLOAT8, FLOAT4]:
        codes = np.abs(ordered_codes(golden) - ordered_codes(target)).reshape(count, -1).max(1)
        cells["Max ULP"] = max((codes[i] for i in finite), default=0)
        cells["One ULP Ratio"] = share(lambda i: codes[i] <= 1)
    return cells


def number(text):
    if text.startswith("["):
        real, imag = ast.literal_eval(text)
        return complex(real, imag)
    return {"true": True, "false": False}.get(text) if text in ("true", "false") else float(text)


def check_row(row, wanted, where):
    for name, value in wanted.items():
        if name.endswith(" at"):
            assert ast.literal_eval(row[name]) == value, (where, name)
        elif name in ("MaxAbsErr NPU", "MaxAbsErr Bench"):
            found = (
                int(row[name])
                if isinstance(value, int) and value not in (0, 1)
                else number(row[name])
            )
            assert found == value, (where, name)
        elif name == "Max ULP":
            assert int(row[name]) == value, (where, name)
        else:
            # Complex moduli are square roots; sums are good to 1e-12; all else is exact.
            is_sum = name in ("Cosine", "EucDist")
            is_modulus = "complex" in where and "Err" in name and "Ratio" not in name
            rel = 1e-12 if is_sum or is_modulus else 0
            found = number(row[name])
            assert found == pytest.approx(value, rel=rel, abs=1e-12 if name == "Cosine" else 0), (
                where,
                name,
                found,
                value,
            )


def pairs_of_every_dtype():
    for dtype in ALL_DTYPES:
        for kind in VALUE_CLASSES:
            if dtype in (*INTEGERS, "bool") and kind not in ("ordinary", "largest"):
                continue
            golden = make_storage(dtype, kind, 1)
            other = make_storage(dtype, kind, 2)
            target = golden.clone()
            bits, source = (t.view(torch.uint8).view(len(golden), -1) for t in (target, other))
            bits[::3] = source[::3]  # far away
            if dtype not in ("bool",):
                bits[1::3, 0] ^= 1  # one step away, or two parts one step away
            yield f"{dtype}-{kind}", golden.view(20, 24), target.view(20, 24)


def test_every_metric_is_right_for_every_dtype(tmp_path):
    pairs = {name: (golden, target) for name, golden, target in pairs_of_every_dtype()}
    golden = write_tensors(tmp_path / "golden", {n: p[0] for n, p in pairs.items()})
    target = write_tensors(tmp_path / "target", {n: p[1] for n, p in pairs.items()})
    found = compare(
        golden, target, tmp_path / "out", "--rtol", str(RTOL), "--atol", str(ATOL), expect=1
    )
    assert len(found.rows) == len(pairs)
    for name, (a, b) in pairs.items():
        row = found[f"{name}.0.debug"]
        assert row["Compared by"] == "values"
        wanted = expected_metrics(a, b)
        check_row(row, wanted, name)
        equal = np.array_equal(raw_bytes(a), raw_bytes(b))
        verdict = "equal" if equal else "fail" if wanted["Beyond tolerance"] else "pass"
        assert row["Verdict"] == verdict, name


@pytest.mark.parametrize(
    ("golden_dtype", "target_dtype", "narrow"),
    [
        ("float32", "bfloat16", "bfloat16"),
        ("float16", "float32", "float16"),
        ("float64", "float32", "float32"),
        ("float32", "float8_e4m3fn", "float8_e4m3fn"),
        ("complex128", "complex64", "complex64"),
    ],
)
def test_different_dtypes_compare_by_exact_values_and_by_the_narrower_one(
    tmp_path, golden_dtype, target_dtype, narrow
):
    base = torch.linspace(-20, 20, 400, dtype=torch.float64)
    wide = base.to(getattr(torch, golden_dtype))
    rounded = wide.to(getattr(torch, target_dtype))
    off = rounded.clone()
    off.view(torch.uint8).view(400, -1)[7, 0] ^= 2  # two steps of the target's dtype, in one part
    golden = write_tensors(tmp_path / "golden", {"rounded": wide, "off": wide})
    target = write_tensors(tmp_path / "target", {"rounded": rounded, "off": off})
    found = compare(golden, target, tmp_path / "out", "--rtol", "0.2", "--atol", "1")
    row = found["rounded.0.debug"]
    g, t = logical_values(wide), logical_values(rounded)
    assert float(row["MaxAbsErr"]) == pytest.approx(
        max(abs(a - b) for a, b in zip(g, t, strict=True)), rel=1e-15
    )
    assert row["Equal after rounding"] == "true"
    assert row["Max ULP"] == "0"
    assert row["Verdict"] == "pass"
    if narrow == target_dtype:
        row = found["off.0.debug"]
        assert row["Max ULP"] == "2"
        assert float(row["One ULP Ratio"]) == 399 / 400
        assert row["Equal after rounding"] == "false"


def test_integers_beyond_float64_are_told_apart(tmp_path):
    golden = torch.tensor([2**53, 2**62, -(2**63), 5])
    target = torch.tensor([2**53, 2**62 + 1, -(2**63) + 3, 5])
    a = write_tensors(tmp_path / "golden", {"x": golden, "unsigned": golden.to(torch.uint64)})
    b = write_tensors(tmp_path / "target", {"x": target, "unsigned": target.to(torch.uint64)})
    found = compare(a, b, tmp_path / "out", expect=1)
    row = found["x.0.debug"]
    assert [
        row[name] for name in ("MaxAbsErr", "MaxAbsErr at", "MaxAbsErr NPU", "MaxAbsErr Bench")
    ] == [
        "3.0",
        "[2]",
        str(-(2**63) + 3),
        str(-(2**63)),
    ]
    assert row["Beyond tolerance"] == "2"
    assert found["unsigned.0.debug"]["MaxAbsErr NPU"] == str(2**63 + 3)


NARROW_VALUES = {
    "float64": (1e-12, 1 + 5e-13, 1 + 1e-11),
    "float32": (3e-5, 1 + 2e-5, 1 + 1e-4),
    "float16": (2**-9, 1 + 2**-10, 1 + 2**-7),
    "bfloat16": (2**-6, 1 + 2**-7, 1 + 2**-4),
    "float8_e5m2": (2**-2, 1.25, 2.0),
    "int32": (0, 1, 2),
}


def test_default_tolerance_follows_the_dtype(tmp_path):
    golden, within, beyond = {}, {}, {}
    for dtype, (_, near, far) in NARROW_VALUES.items():
        for tensors, value in ((golden, 1.0), (within, near), (beyond, far)):
            tensors[dtype] = torch.full((8,), value, dtype=torch.float64).to(getattr(torch, dtype))
    a = write_tensors(tmp_path / "golden", golden)
    assert set(
        compare(a, write_tensors(tmp_path / "within", within), tmp_path).verdicts.values()
    ) == {"pass", "equal"}
    found = compare(a, write_tensors(tmp_path / "beyond", beyond), tmp_path, expect=1)
    assert set(found.verdicts.values()) == {"fail"}


def test_tolerances_of_the_user_decide(tmp_path):
    golden = torch.tensor([1.0, 0.0, 100.0])
    target = torch.tensor([1.0, 0.01, 101.0])
    a = write_tensors(tmp_path / "golden", {"x": golden})
    b = write_tensors(tmp_path / "target", {"x": target})

    def verdict(*options, expect):
        return compare(a, b, tmp_path / "out", *options, expect=expect)["x.0.debug"]["Verdict"]

    assert verdict("--rtol", "0.011", "--atol", "0.011", expect=0) == "pass"
    assert verdict("--rtol", "0.009", "--atol", "0.011", expect=1) == "fail"
    assert verdict("--rtol", "0.011", "--atol", "0.009", expect=1) == "fail"
    assert verdict("--rtol", "0", "--atol", "1.5", expect=0) == "pass"
    assert verdict("--rtol", "0", "--atol", "0", expect=1) == "fail"
    cosine = torch.nn.functional.cosine_similarity(golden.double(), target.double(), 0).item()
    loose = ["--rtol", "1", "--atol", "1", "--cosine"]
    assert verdict(*loose, str(cosine - 1e-9), expect=0) == "pass"
    assert verdict(*loose, str(cosine + 1e-9), expect=1) == "fail"


def test_different_shapes_are_a_difference_and_nothing_is_cut(tmp_path):
    shapes = {
        "cut": ((4,), (3,)),
        "flat": ((2, 3), (6,)),
        "one": ((3,), (1, 3)),
        "zero": ((1,), ()),
    }
    a = write_tensors(tmp_path / "golden", {n: torch.ones(s[0]) for n, s in shapes.items()})
    b = write_tensors(tmp_path / "target", {n: torch.ones(s[1]) for n, s in shapes.items()})
    found = compare(a, b, tmp_path / "out", expect=1)
    for name in shapes:
        assert found[f"{name}.0.debug"]["Verdict"] == "fail"
        assert "shape" in found[f"{name}.0.debug"]["Err_message"]


def test_zeros_empty_and_single_elements(tmp_path):
    nan, inf = math.nan, math.inf
    pairs = {
        "empty": ([], []),
        "zeros": ([0.0, 0.0], [0.0, -0.0]),
        "from_zero": ([0.0, 1.0], [0.5, 1.0]),
        "to_zero": ([1.0, 2.0], [0.0, 0.0]),
        "nan_both": ([nan, 1.0], [nan, 1.5]),
        "nan_one": ([nan, 1.0], [1.0, 1.0]),
        "inf_signs": ([inf, 1.0], [-inf, 1.0]),
        "inf_both": ([inf, -inf], [inf, -inf]),
        "denormal": ([1e-45, 2.0], [3e-45, 2.0]),
    }
    a = write_tensors(tmp_path / "golden", {n: torch.tensor(p[0]) for n, p in pairs.items()})
    b = write_tensors(tmp_path / "target", {n: torch.tensor(p[1]) for n, p in pairs.items()})
    found = compare(a, b, tmp_path / "out", "--rtol", "1e-3", "--atol", "0", expect=1)
    cells = {
        n: [
            found[f"{n}.0.debug"][c]
            for c in ("Verdict", "Cosine", "MaxAbsErr", "MaxRelativeErr", "Max ULP")
        ]
        for n in pairs
    }
    assert cells["empty"] == ["equal", "1.0", "0.0", "0.0", "0"]
    assert cells["zeros"] == ["pass", "1.0", "0.0", "0.0", "0"]
    assert cells["from_zero"][0::3] == ["fail", "Infinity"]
    assert cells["to_zero"][:4] == ["fail", "0.0", "2.0", "1.0"]
    assert cells["nan_both"][:3] == ["fail", "1.0", "0.5"]
    assert cells["nan_one"][:4] == ["fail", "1.0", "0.0", "0.0"]
    assert cells["inf_signs"][0] == "fail"
    assert cells["inf_both"][0] == "equal"
    assert cells["denormal"][0::4] == ["fail", "1"]
    assert found["nan_one.0.debug"]["NaN mismatches"] == "1"
    assert found["inf_signs.0.debug"]["Inf mismatches"] == "1"


def every_layout():
    for dtype in ALL_DTYPES:
        base = make_storage(dtype, "any_bits", 3)
        for layout, build in LAYOUTS.items():
            for lazy in lazy_views(dtype):
                yield f"{dtype}-{layout}-{lazy}", apply_lazy(build(base), lazy)


def test_views_of_every_dtype_equal_their_elements_in_order(tmp_path):
    tensors = dict(every_layout())
    golden = write_tensors(tmp_path / "golden", tensors)
    target = write_tensors(tmp_path / "target", tensors, gather=True)
    found = compare(golden, target, tmp_path / "out", "--rtol", "0", "--atol", "0")
    assert {row["Compared by"] for row in found.rows} == {"values"}
    assert {row["Verdict"] for row in found.rows} == {"equal"}
    assert len(found.rows) == len(tensors)


def in_npy(folder, tensors):
    """A rank folder with .npy files, bfloat16 widened to float32 as NumPy needs it."""
    write_rank(folder, {})
    data = {}
    for name, tensor in tensors.items():
        np.save(folder / "dump_tensor_data" / f"{name}.npy", tensor.float().numpy())
        data[f"{name}.0.debug"] = tensor_record(
            tuple(tensor.shape), str(tensor.dtype), Norm=None, data_name=f"{name}.npy"
        )
    (folder / "debug.json").write_text(json.dumps({"task": "tensor", "data": data}))
    return folder


def test_bfloat16_in_npy_counts_ulp_as_bfloat16_and_equals_that_in_pt(tmp_path):
    x = torch.linspace(1, 3, 64).bfloat16()
    off = x.clone()
    off.view(torch.int16)[5] += 1
    a = write_tensors(tmp_path / "pt", {"x": x})
    b = in_npy(tmp_path / "npy", {"x": x})
    c = in_npy(tmp_path / "off", {"x": off})
    row = compare(a, b, tmp_path / "out")["x.0.debug"]
    assert [row["MaxAbsErr"], row["Max ULP"], row["Equal after rounding"]] == ["0.0", "0", ""]
    for golden in (a, b):
        assert compare(golden, c, tmp_path / "out")["x.0.debug"]["Max ULP"] == "1"
    assert compare(c, c, tmp_path / "out")["x.0.debug"]["Verdict"] == "equal"


def test_two_tensor_files_compare_without_a_dump(tmp_path):
    torch.save(torch.tensor([1.0, 2.0]), tmp_path / "a.pt")
    np.save(tmp_path / "b.npy", np.array([1.0, 2.5], np.float32))
    np.save(tmp_path / "c.npy", np.array([1.0, 2.0], np.float32))
    row = compare(tmp_path / "a.pt", tmp_path / "b.npy", tmp_path / "out", expect=1)["tensor"]
    assert [row["MaxAbsErr"], row["MaxAbsErr at"]] == ["0.5", "[1]"]
    compare(tmp_path / "a.pt", tmp_path / "c.npy", tmp_path / "out")


@settings(max_examples=5)
@given(tensors=cases())
def test_whatever_it_holds_a_dump_equals_itself(tmp_path_factory, tensors):
    folder = tmp_path_factory.mktemp("same")
    golden = write_tensors(folder / "golden", {str(i): t for i, (_, t) in enumerate(tensors)})
    found = compare(golden, golden, folder / "out", "--rtol", "0", "--atol", "0")
    for row in found.rows:
        assert row["Verdict"] == "equal"
        assert [row[c] for c in ("Cosine", "EucDist", "MaxAbsErr", "NaN mismatches")] == [
            "1.0",
            "0.0",
            "0.0",
            "0",
        ]


SYMMETRIC = ["Cosine", "EucDist", "MaxAbsErr", "MaxAbsErr at", "Max ULP", "One ULP Ratio"]
SYMMETRIC += ["NaN mismatches", "Inf mismatches"]


@settings(max_examples=5)
@given(dtype=st.sampled_from(ALL_DTYPES), seed=st.integers(0, 2**32 - 1))
def test_symmetric_metrics_are_the_same_with_the_sides_exchanged(tmp_path_factory, dtype, seed):
    folder = tmp_path_factory.mktemp("symmetric")
    kinds = range(len(VALUE_CLASSES))
    sides = [
        write_tensors(
            folder / side,
            {str(k): make_storage(dtype, VALUE_CLASSES[k], seed ^ bit) for k in kinds},
        )
        for side, bit in (("a", 0), ("b", 1))
    ]
    options = ["--rtol", "0", "--atol", "0"]
    expect = (
        1
        if len({t.read_bytes() for s in sides for t in [s / "dump_tensor_data/0.0.debug.pt"]}) > 1
        else 0
    )
    there = compare(*sides, folder / "out", *options, expect=expect)
    back = compare(*reversed(sides), folder / "out", *options, expect=expect)
    for one, other in zip(there.rows, back.rows, strict=True):
        assert [one[c] for c in SYMMETRIC] == [other[c] for c in SYMMETRIC]
        assert [one["MaxAbsErr NPU"], one["Beyond tolerance"]] == [
            other["MaxAbsErr Bench"],
            other["Beyond tolerance"],
        ]

"""`msprobe verify`: silent on what is whole, and names every kind of damage."""

from __future__ import annotations

import json
import math
import re
import shutil

import numpy as np
import pytest
import torch
from command import run
from oracles import ALL_DTYPES
from support import read_step, write_config
from tensors import LAYOUTS, apply_lazy, lazy_views, make_storage, numpy_arrays, sparse_tensors

from msprobe.pytorch import PrecisionDebugger

TASKS = {"statistics": {}, "md5": {"summary_mode": "md5"}, "tensor": {"task": "tensor"}}


class Wrapped(torch.Tensor):
    pass


def everything():
    """A name and a value for all that a training could save."""
    for dtype in ALL_DTYPES:
        base = make_storage(dtype, "any_bits", 5)
        yield f"dtype {dtype}", base
        for lazy in lazy_views(dtype):
            yield f"view/{dtype}/{lazy}", apply_lazy(LAYOUTS["permuted"](base), lazy)
    for layout, build in LAYOUTS.items():
        yield f"layout {layout}", build(make_storage("float32", "nan", 6))
    for name, value in sparse_tensors().items():
        yield f"sparse {name}", value
    for name, value in numpy_arrays().items():
        yield f"numpy {name}", value
    x = torch.randn(4, 6)
    yield "quantized", torch.quantize_per_tensor(x, 0.1, 3, torch.qint8)
    yield "nested tensor", torch.nested.nested_tensor([x[0], x[1, :3]])
    yield "parameter", torch.nn.Parameter(x)
    yield "subclass", x.as_subclass(Wrapped)
    yield "meta", torch.empty(3, device="meta")
    yield "nesting", {"a": [x, {"b/c": (x, 3, "s", None, 1.5, math.inf)}], "e": [], "f": {}}
    yield "scalars", [True, 7, 2**70, -0.0, math.nan, 1 + 2j, torch.Size([2]), torch.float32]
    for name in ("梯度 值", "a/b", "..", ".", "x" * 10_000, " ", "a\nb\x1b[0m", "-x", "*?"):
        yield name, x


def save_everything(root, steps=1, **keys):
    debugger = PrecisionDebugger(str(write_config(root / "config.json", root / "dump", **keys)))
    for _ in range(steps):
        for name, value in everything():
            debugger.save(value, name, save_backward=False)
        y = torch.randn(5, requires_grad=True) * 2
        debugger.save(y, "y", save_backward=True)
        y.sum().backward()
        debugger.step()
    PrecisionDebugger.close()
    return root / "dump"


@pytest.mark.parametrize("task", TASKS)
def test_a_whole_dump_of_everything_has_no_damage(tmp_path, task, monkeypatch):
    monkeypatch.setenv("MSPROBE_ON_ERROR", "warn")
    dump = save_everything(tmp_path, steps=2, **TASKS[task])
    finished = run("verify", dump)
    assert "no damage" in finished.stdout
    assert "damaged" not in finished.stdout
    files = list(dump.rglob("dump_tensor_data/*"))
    if task == "tensor":
        good = int(finished.stdout.split(" folders; ")[1].split()[0])
        assert good > 0.7 * len(files)
        assert "files that no record names" not in finished.stdout
    else:
        assert not files


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A small dump, to be copied and damaged."""
    root = tmp_path_factory.mktemp("clean")
    config = write_config(root / "config.json", root / "dump", task="tensor")
    debugger = PrecisionDebugger(str(config))
    debugger.save(torch.arange(1000.0), "x", save_backward=False)
    debugger.save(torch.arange(1000.0) + 1, "y", save_backward=False)
    debugger.save(np.arange(300.0), "array", save_backward=False)
    debugger.save({"n": torch.tensor([1.0, math.nan])}, "nest", save_backward=False)
    PrecisionDebugger.close()
    run("verify", root / "dump")
    return root / "dump"


X, Y, ARRAY = "x.0.debug.pt", "y.0.debug.pt", "array.0.debug.npy"


def flip(path, offset):
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def data_offset(path):
    """Where 1.0f, the second element of x, or 1.0 of the array stands in the file."""
    wanted = np.arange(1.0, 9.0, dtype="<f8" if path.suffix == ".npy" else "<f4").tobytes()
    return path.read_bytes().index(wanted)


def edit(folder, change):
    """Changes debug.json as a person with an editor would."""
    top = json.loads((folder / "debug.json").read_text())
    change(top["data"])
    (folder / "debug.json").write_text(json.dumps(top))


def swap(folder):
    one, other = (folder / "dump_tensor_data" / name for name in (X, Y))
    one.rename(folder / "t")
    other.rename(one)
    (folder / "t").rename(other)


def edit_x(**fields):
    return lambda folder: edit(folder, lambda data: data["x.0.debug"].update(fields))


def replace_in_json(old, new):
    """Changes as few bytes as an accident would: the file stays as long as it was."""

    def damage(folder):
        text = (folder / "debug.json").read_text()
        assert text.count(old) >= 1
        (folder / "debug.json").write_text(text.replace(old, new, 1))

    return damage


def edit_norm(folder):
    text = (folder / "debug.json").read_text()
    norm = re.search(r'"Norm": (\d+\.\d{8})', text)[1]
    other = norm[:-3] + str((int(norm[-3]) + 1) % 10) + norm[-2:]
    replace_in_json(norm, other)(folder)


def on(name, action):
    return lambda folder: action(folder / "dump_tensor_data" / name)


DAMAGES = {
    "byte of the data": (on(X, lambda p: flip(p, data_offset(p))), X),
    "byte of the data of npy": (on(ARRAY, lambda p: flip(p, data_offset(p) + 7)), ARRAY),
    "local header": (on(X, lambda p: flip(p, 0)), X),
    "pickle": (on(X, lambda p: flip(p, p.read_bytes().index(b"_rebuild_tensor") + 3)), X),
    "CRC in the directory": (on(X, lambda p: flip(p, p.read_bytes().rindex(b"PK\1\2") + 16)), X),
    "npy header": (on(ARRAY, lambda p: flip(p, p.read_bytes().index(b"descr"))), ARRAY),
    "npy magic": (on(ARRAY, lambda p: flip(p, 1)), ARRAY),
    "truncated": (on(X, lambda p: p.write_bytes(p.read_bytes()[:-100])), X),
    "truncated npy": (on(ARRAY, lambda p: p.write_bytes(p.read_bytes()[:-8])), ARRAY),
    "empty file": (on(X, lambda p: p.write_bytes(b"")), X),
    "deleted": (on(X, lambda p: p.unlink()), X),
    "a folder": (on(X, lambda p: (p.unlink(), p.mkdir())), X),
    "swapped": (swap, X),
    "Max": (replace_in_json('"Max": 999.0', '"Max": 999.5'), X),
    "Norm in its tenth digit": (edit_norm, X),
    "md5": (edit_x(md5="00000000"), "md5"),
    "shape": (edit_x(shape=[10, 100]), "shape"),
    "dtype": (edit_x(dtype="torch.int32"), "dtype"),
    "no such file": (edit_x(data_name="z.pt"), "z.pt"),
    "parent folder": (edit_x(data_name="../dump_tensor_data/" + X), "leads out of the folder"),
    "absolute path": (edit_x(data_name="/etc/passwd"), "leads out of the folder"),
    "only dots": (edit_x(data_name=".."), "leads out of the folder"),
    "cut JSON": (
        lambda f: (f / "debug.json").write_text((f / "debug.json").read_text()[:900]),
        "debug.json",
    ),
    "empty JSON": (lambda f: (f / "debug.json").write_text(""), "debug.json"),
    "JSON of something else": (lambda f: (f / "debug.json").write_text("[1, 2]"), "debug.json"),
    "zeros in JSON": (replace_in_json('"x.0.debug"', "\x00" * 11), "debug.json"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_and_named(tmp_path, clean, damage):
    dump = tmp_path / "dump"
    shutil.copytree(clean, dump)
    action, named = DAMAGES[damage]
    action(read_step(dump).folder)
    finished = run("verify", dump, expect=1)
    assert named in finished.stdout
    assert finished.stdout.startswith("damaged: ")


def test_a_link_is_damage_only_if_it_leads_out_of_the_folder(tmp_path, clean):
    shutil.copytree(clean, tmp_path / "dump")
    folder = read_step(tmp_path / "dump").folder
    tensors = folder / "dump_tensor_data"
    (tensors / X).rename(tensors / "stored.pt")
    (tensors / X).symlink_to("stored.pt")
    run("verify", tmp_path / "dump")
    tensors.rename(tmp_path / "large_disk")
    tensors.symlink_to(tmp_path / "large_disk")
    run("verify", tmp_path / "dump")
    (tensors / X).unlink()
    (tensors / "stored.pt").rename(tmp_path / "elsewhere.pt")
    (tensors / X).symlink_to(tmp_path / "elsewhere.pt")
    assert "leads out" in run("verify", tmp_path / "dump", expect=1).stdout


def test_every_damage_is_told_not_only_the_first(tmp_path, clean):
    dump = tmp_path / "dump"
    shutil.copytree(clean, dump)
    folder = read_step(dump).folder
    for name in (X, Y, ARRAY):
        (folder / "dump_tensor_data" / name).unlink()
    finished = run("verify", dump, expect=1)
    assert finished.stdout.count("damaged: ") == 4  # and the sum
    assert "damaged: 3" in finished.stdout


def test_files_without_a_record_are_told_but_are_no_damage(tmp_path, clean):
    dump = tmp_path / "dump"
    shutil.copytree(clean, dump)
    shutil.copy(read_step(dump).tensors / X, read_step(dump).tensors / "stray.pt")
    finished = run("verify", dump)
    assert "stray.pt" in finished.stdout


def test_a_part_of_a_dump_can_be_verified(clean):
    folder = read_step(clean).folder
    for path in (folder.parent, folder, folder / "debug.json"):
        assert "4 records in 1 folders" in run("verify", path).stdout


def test_one_tensor_file_can_be_verified(tmp_path, clean):
    file = read_step(clean).tensors / X
    run("verify", file)
    shutil.copy(file, tmp_path / "x.pt")
    flip(tmp_path / "x.pt", data_offset(file))
    run("verify", tmp_path / "x.pt", expect=1)


def test_step_and_rank_limit_what_is_verified(tmp_path):
    dump = save_small(tmp_path, steps=3)
    next((dump / "step1").rglob("*.pt")).unlink()
    run("verify", dump, expect=1)
    run("verify", dump, "--step", "0,2")
    run("verify", dump, "--step", "1-2", "--rank", "0", expect=1)


def save_small(root, steps):
    debugger = PrecisionDebugger(
        str(write_config(root / "config.json", root / "dump", task="tensor"))
    )
    for step in range(steps):
        debugger.save(torch.full((3,), float(step)), "x", save_backward=False)
        debugger.step()
    PrecisionDebugger.close()
    return root / "dump"

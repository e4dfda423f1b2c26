"""Plain values and nestings: every leaf is recorded, none is dropped."""

from __future__ import annotations

import collections
import dataclasses
import enum
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from support import read_step, saved


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Output:
    logits: Any
    loss: Any = None


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 3


class Opaque:
    pass


class Hostile:
    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __repr__

    def __eq__(self, other):
        raise RuntimeError("no eq")

    __hash__ = object.__hash__


def one(value: Any, **keys: Any) -> Any:
    with saved({"x": value}, **keys) as step:
        assert list(step.data) == ["x.0.debug"]
        return step["x"]


def test_seed_nested_example():
    """The nesting by which the seed explains the indexes."""
    record = one({"key1": "value1", "key2": ["value2", "value3"]})
    assert record == {
        "key1": {"type": "str", "value": "value1"},
        "key2": [{"type": "str", "value": "value2"}, {"type": "str", "value": "value3"}],
    }


SCALARS = [
    (3, {"type": "int", "value": 3}),
    (-(2**63), {"type": "int", "value": -(2**63)}),
    (2**64 - 1, {"type": "int", "value": 2**64 - 1}),
    (2**200, {"type": "int", "value": 2**200}),
    (-(2**200), {"type": "int", "value": -(2**200)}),
    (True, {"type": "bool", "value": True}),
    (False, {"type": "bool", "value": False}),
    (2.5, {"type": "float", "value": 2.5}),
    (0.1, {"type": "float", "value": 0.1}),
    (1e300, {"type": "float", "value": 1e300}),
    (5e-324, {"type": "float", "value": 5e-324}),
    (math.inf, {"type": "float", "value": math.inf}),
    (-math.inf, {"type": "float", "value": -math.inf}),
    (1 + 2j, {"type": "complex", "value": [1.0, 2.0]}),
    (complex(0, math.inf), {"type": "complex", "value": [0.0, math.inf]}),
    ("hello", {"type": "str", "value": "hello"}),
    ("", {"type": "str", "value": ""}),
    ('变量\n\t"\\\x00\x1f😀', {"type": "str", "value": '变量\n\t"\\\x00\x1f😀'}),
    ("lone \ud800 surrogate \udfff", {"type": "str", "value": "lone \ud800 surrogate \udfff"}),
    (None, None),
    (torch.Size([1, 2]), {"type": "torch.Size", "value": [1, 2]}),
    (torch.Size([]), {"type": "torch.Size", "value": []}),
    (torch.float32, {"type": "torch.dtype", "value": "torch.float32"}),
    (torch.device("cpu"), {"type": "torch.device", "value": "cpu"}),
    (torch.device("cuda:1"), {"type": "torch.device", "value": "cuda:1"}),
    (np.float32(2.5), {"type": "float32", "value": 2.5}),
    (np.float64(0.1), {"type": "float64", "value": 0.1}),
    (np.float16(1.5), {"type": "float16", "value": 1.5}),
    (np.int64(-3), {"type": "int64", "value": -3}),
    (np.uint64(2**64 - 1), {"type": "uint64", "value": 2**64 - 1}),
    (np.complex64(1 + 2j), {"type": "complex64", "value": [1.0, 2.0]}),
    ([], []),
    ((), []),
    ({}, {}),
]


@pytest.mark.parametrize("async_dump", [False, True])
def test_scalars_are_recorded_with_type_and_value(async_dump):
    with saved([value for value, _ in SCALARS], async_dump=async_dump) as step:
        for i, (value, wanted) in enumerate(SCALARS):
            found = step[str(i)]
            assert found == wanted, repr(value)
            if wanted:
                assert type(found["value"]) is type(wanted["value"]), repr(value)


def test_scalar_nan_negative_zero_and_numpy_bool():
    with saved([math.nan, -0.0, np.bool_(True), np.str_("text")]) as step:
        assert math.isnan(step["0"]["value"])
        assert math.copysign(1.0, step["1"]["value"]) == -1.0
        assert step["2"]["type"].startswith("bool")
        assert step["2"]["value"] is True
        assert step["3"]["value"] == "text"


def test_enumerations_and_subclasses_of_plain_types_are_recorded():
    class Name(str):
        __slots__ = ()

    class Number(float):
        pass

    record = one([Level.HIGH, Name("n"), Number(1.5), Colour.RED])
    assert [leaf["value"] for leaf in record[:3]] == [3, "n", 1.5]
    assert record[3]["type"].endswith("Colour")


def test_none_and_arrays_between_tensors_drop_nothing():
    record = one([torch.ones(2), None, np.ones(3, np.float32), {"a": None}, torch.ones(1)])
    assert [r and r["type"] for r in record[:3]] == ["torch.Tensor", None, "numpy.ndarray"]
    assert record[3] == {"a": None}
    assert record[4]["Max"] == 1.0


def test_containers_keep_their_nesting():
    values = {
        "list": [1, [2]],
        "tuple": (1, (2,)),
        "namedtuple": Pair(1, [2]),
        "dataclass": Output(1, [2]),
        "ordered": collections.OrderedDict(z=1, a=[2]),
        "default": collections.defaultdict(int, a=1),
        "deque": collections.deque([1, 2]),
        "subclass": type("Mine", (list,), {})([1]),
        "in_dict": {"o": Output(torch.ones(1)), "p": Pair(None, {3})},
    }
    two = {"type": "int", "value": 2}
    unit = {"type": "int", "value": 1}
    with saved(values) as step:
        assert step["list"] == [unit, [two]]
        assert step["tuple"] == [unit, [two]]
        assert step["namedtuple"] == {"a": unit, "b": [two]}
        assert step["dataclass"] == {"logits": unit, "loss": [two]}
        assert step["ordered"] == {"z": unit, "a": [two]}
        assert list(step["ordered"]) == ["z", "a"]
        assert step["default"] == {"a": unit}
        assert step["subclass"] == [unit]
        assert step["in_dict"]["o"]["logits"]["Max"] == 1.0
        assert step["in_dict"]["o"]["loss"] is None
        assert step["in_dict"]["p"]["b"] == [{"type": "int", "value": 3}]
        assert step["deque"] == [unit, two] or step["deque"]["value"] is None


def test_sets_become_lists_sorted_by_repr():
    record = one({"s": {"b", "a", 10, 9, None}, "f": frozenset([3, 1, 2])})
    assert [leaf and leaf["value"] for leaf in record["s"]] == ["a", "b", 10, 9, None]
    assert [leaf["value"] for leaf in record["f"]] == [1, 2, 3]


def test_set_of_odd_leaves_drops_nothing():
    record = one({Opaque(), torch.float16, (1, 2), 1j})
    assert len(record) == 4
    assert [0.0, 1.0] in [leaf["value"] for leaf in record if isinstance(leaf, dict)]


def test_dictionary_keys_are_their_str_and_collisions_get_a_number():
    value = {1: "a", "1": "b", 1.5: "c", None: "d", (1, 2): "e", False: "f", b"x": "g"}
    record = one(value)
    found = {key: leaf["value"] for key, leaf in record.items()}
    assert found == {
        "1": "a",
        "1#2": "b",
        "1.5": "c",
        "None": "d",
        "(1, 2)": "e",
        "False": "f",
        "b'x'": "g",
    }


def test_dictionary_keys_that_collide_with_the_number_get_another_one():
    record = one({"1#2": 0, 1: 1, "1": 2, "a": {2: 0, "2": 1}})
    assert len(record) == 4
    assert sorted(leaf["value"] for key, leaf in record.items() if key != "a") == [0, 1, 2]
    assert list(record["a"]) == ["2", "2#2"]


def test_collision_of_keys_warns_once(caplog):
    with saved([{1: 0, "1": 1}] * 5):
        pass
    warnings = [r for r in caplog.records if r.levelname == "WARNING" and "#2" in r.getMessage()]
    assert len(warnings) == 1


def test_dictionary_keys_without_str_are_kept():
    record = one({Hostile(): 1, "b": 2})
    assert len(record) == 2
    assert [leaf["value"] for leaf in record.values()] == [1, 2]


def test_leaf_that_cannot_be_read_becomes_a_placeholder():
    values = [Opaque(), Hostile(), len, int, b"bytes", object(), slice(1, 2), torch.Generator()]
    with saved({"x": [1, *values, 2]}) as step:
        record = step["x"]
    assert [record[0]["value"], record[-1]["value"]] == [1, 2]
    assert len(record) == len(values) + 2
    for leaf, value in zip(record[1:-1], values, strict=True):
        assert leaf["type"].split(".")[-1] == type(value).__name__
        assert "value" in leaf
    assert record[1]["value"] is None
    assert record[2]["value"] is None


class Liar(collections.abc.Mapping):
    """A mapping that fails while it is read."""

    def __getitem__(self, key):
        raise RuntimeError("broken")

    def __iter__(self):
        return iter(["a"])

    def __len__(self):
        return 1


@dataclasses.dataclass
class Broken:
    a: int = 1

    def __getattribute__(self, name):
        if name == "a":
            raise RuntimeError("broken")
        return super().__getattribute__(name)


def test_containers_that_raise_do_not_take_the_rest_along():
    record = one([1, Liar(), Broken(), 2])
    assert len(record) == 4
    assert [record[0]["value"], record[3]["value"]] == [1, 2]


def test_mapping_that_is_no_dict_is_recorded():
    class Mapping(collections.abc.Mapping):
        def __getitem__(self, key):
            return {"a": 1}[key]

        def __iter__(self):
            return iter(["a"])

        def __len__(self):
            return 1

    assert one(Mapping()) == {"a": {"type": "int", "value": 1}}


def test_container_inside_itself_becomes_a_placeholder():
    loop: list = [1]
    loop.append(loop)
    around: dict = {"a": 1}
    around["self"] = [around]
    record = one({"list": loop, "dict": around, "after": 5})
    assert record["list"][0]["value"] == 1
    assert record["list"][1] == {"type": "list", "value": None}
    assert record["dict"]["self"] == [{"type": "dict", "value": None}]
    assert record["after"]["value"] == 5


def test_same_container_twice_is_no_loop():
    shared = [1, torch.ones(1)]
    record = one([shared, shared, {"again": shared}])
    assert record[0] == record[1] == record[2]["again"]
    assert record[0][1]["Max"] == 1.0


@pytest.mark.parametrize("depth", [100, 390, 450, 5000, 100_000])
def test_depth_beyond_400_becomes_a_placeholder(depth):
    value: Any = 7
    for _ in range(depth):
        value = [value]
    record = one({"deep": value, "after": 5})
    assert record["after"]["value"] == 5
    found, levels = record["deep"], 0
    while isinstance(found, list):
        found, levels = found[0], levels + 1
    if depth <= 390:
        assert (levels, found) == (depth, {"type": "int", "value": 7})
    else:
        assert found == {"type": "list", "value": None}
        assert 390 <= levels <= 400


def test_wide_containers_are_complete():
    record = one({"many": list(range(20_000)), "dict": {str(i): i for i in range(5000)}})
    assert [leaf["value"] for leaf in record["many"]] == list(range(20_000))
    assert [leaf["value"] for leaf in record["dict"].values()] == list(range(5000))


def test_long_text_is_complete():
    text = "变量 ab\n" * 50_000
    assert one(text)["value"] == text


def test_model_outputs_and_state_are_recorded():
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    with saved({"model": model.state_dict(), "adam": optimizer.state_dict()}) as step:
        assert step["model"]["weight"]["shape"] == [2, 3]
        assert step["adam"]["state"]["0"]["exp_avg"]["shape"] == [2, 3]
        assert step["adam"]["param_groups"][0]["lr"]["value"] == 0.001


def test_counts_start_at_zero_in_each_step_and_for_each_name(make_debugger, dump_path):
    debugger = make_debugger()
    for name in ["a", "b", "a", "a"]:
        debugger.save(1, name, False)
    debugger.step()
    debugger.save(1, "a", False)
    assert list(read_step(dump_path, 0).data) == [
        "a.0.debug",
        "b.0.debug",
        "a.1.debug",
        "a.2.debug",
    ]
    assert list(read_step(dump_path, 1).data) == ["a.0.debug"]

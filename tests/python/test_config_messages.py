"""Every error of a config.json: which file, where, what was found, what is allowed."""

from __future__ import annotations

import json
import re

import pytest
from support import config, read_step

import msprobe
from msprobe.pytorch import PrecisionDebugger


def message_for(path, **arguments) -> str:
    with pytest.raises(msprobe.ConfigError) as caught:
        PrecisionDebugger(str(path), **arguments)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, msprobe.Error)
    return str(caught.value)


# A wrong value: key path, the value as JSON, what the message must name of it and of the allowed.
WRONG_VALUES = [
    ("task", "overflow_check", "overflow_check", ["statistics", "tensor"]),
    ("task", 3, "3", ["text"]),
    ("level", "L1", "L1", ["debug"]),
    ("level", "mix", "mix", ["debug"]),
    ("level", "nonsense", "nonsense", ["debug"]),
    ("level", 0, "0", ["text"]),
    ("dump_path", 5, "5", ["text"]),
    ("dump_path", "", "", ["dump_path"]),
    ("async_dump", "yes", "yes", ["true", "false"]),
    ("async_dump", 1, "1", ["true", "false"]),
    ("dump_enable", "on", "on", ["true", "false"]),
    ("rank", 0, "0", ["list"]),
    ("step", "0-3", "0-3", ["list"]),
    ("step", {"a": 1}, "object", ["list"]),
    ("statistics", "md5", "md5", ["object"]),
    ("tensor", [], "", ["object"]),
    ("statistics.summary_mode", "crc", "crc", ["statistics", "md5"]),
    ("statistics.summary_mode", 5, "5", ["text"]),
]
WRONG_ITEMS = [  # reversed, negative, bool, float, junk
    ("6-4", "6-4"),
    (-1, "-1"),
    ("-1", "-1"),
    ("-3-4", "-3-4"),
    (True, "true"),
    (False, "false"),
    (1.5, "1.5"),
    ("1.5", "1.5"),
    ("junk", "junk"),
    ("", ""),
    ("3-", "3-"),
    ("3-4-5", "3-4-5"),
    ("٣", "٣"),
    (None, "null"),
    ([1], ""),
    ("99999999999999999999", "99999999999999999999"),
]


def ids(value):
    return json.dumps(value) if not isinstance(value, str) or not value.isascii() else value


@pytest.mark.parametrize(("key", "value", "found", "allowed"), WRONG_VALUES, ids=ids)
def test_wrong_value_names_file_key_found_and_allowed(tmp_path, key, value, found, allowed):
    content = config(tmp_path / "dump")
    target = content
    *parents, last = key.split(".")
    for parent in parents:
        target = target.setdefault(parent, {})
    target[last] = value
    path = tmp_path / "my config.json"
    path.write_text(json.dumps(content))
    message = message_for(path)
    assert str(path) in message
    assert key in message
    rest = message.replace(str(path), "")
    for part in (found, *allowed):
        assert part.lower() in rest.lower(), message
    assert not (tmp_path / "dump").exists()


@pytest.mark.parametrize("key", ["step", "rank"])
@pytest.mark.parametrize(("item", "found"), WRONG_ITEMS, ids=ids)
def test_wrong_step_or_rank_names_its_place_and_what_is_allowed(tmp_path, key, item, found):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config(tmp_path / "dump", **{key: [0, "4-6", item]})))
    message = message_for(path)
    assert str(path) in message
    assert re.search(rf"{key}\[2\]", message), message
    assert found.lower() in message.lower() or found.encode("unicode_escape").decode() in message
    assert "4-6" in message  # the form of a range is part of what is allowed


@pytest.mark.parametrize("item", ["6-4", -1, True, 1.5, "junk"])
def test_wrong_step_argument_names_the_argument(tmp_path, item):
    with pytest.raises(msprobe.ConfigError, match=r"step\[1\]"):
        PrecisionDebugger(dump_path=str(tmp_path / "dump"), step=[0, item])


@pytest.mark.parametrize(
    ("argument", "value"), [("task", "free_benchmark"), ("level", "L0"), ("dump_path", "")]
)
def test_wrong_argument_names_the_argument_and_the_value(tmp_path, argument, value):
    arguments = {"dump_path": str(tmp_path / "dump"), argument: value}
    with pytest.raises(msprobe.ConfigError) as caught:
        PrecisionDebugger(**arguments)
    assert argument in str(caught.value)
    assert value in str(caught.value)


@pytest.mark.parametrize("level", ["L0", "L1", "mix", "L2", "api"])
def test_other_levels_say_that_this_tool_does_single_point_save_only(tmp_path, level):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config(tmp_path / "dump", level=level)))
    if level == "api":  # no level of msProbe at all
        assert "debug" in message_for(path)
    else:
        assert re.search("single-point save", message_for(path), re.IGNORECASE)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{\n  "task": "statistics",\n  "level": debug\n}', 3, 12),
        ('{\n  "task": "statistics"\n  "level": "debug"\n}', 3, 3),
        ('{"task": "statistics",}', 1, None),
        ('{"task": "stat', 1, None),
        ('{\n\n"a": 1} x', 3, None),
    ],
)
def test_broken_json_names_file_line_and_column(tmp_path, text, line, column):
    path = tmp_path / "config.json"
    path.write_text(text)
    message = message_for(path)
    assert str(path) in message
    place = re.search(r"line (\d+),? column (\d+)|:(\d+):(\d+)", message)
    assert place, message
    numbers = [int(group) for group in place.groups() if group is not None]
    assert numbers[0] == line, message
    if column is not None:
        assert abs(numbers[1] - column) <= 1, message


@pytest.mark.parametrize("text", ["[]", "3", '"x"', "null", "", " \n"])
def test_json_that_is_no_object_names_what_it_is(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    message = message_for(path)
    assert str(path) in message
    assert "object" in message


def test_missing_file_and_folder_name_the_path(tmp_path):
    assert str(tmp_path / "none.json") in message_for(tmp_path / "none.json")
    assert str(tmp_path) in message_for(tmp_path)


def test_missing_dump_path_names_it(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"task": "statistics", "level": "debug"}')
    assert "dump_path" in message_for(path)


def test_key_that_stands_twice_is_an_error(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(f'{{"dump_path": "{tmp_path}/a",\n "task": "tensor", "task": "statistics"}}')
    message = message_for(path)
    assert f"{path}:2:" in message
    assert '"task"' in message


def test_null_means_the_same_as_no_key(tmp_path):
    path = tmp_path / "config.json"
    keys = dict.fromkeys(["task", "level", "rank", "step", "async_dump", "statistics", "tensor"])
    path.write_text(json.dumps({"dump_path": str(tmp_path / "dump"), **keys}))
    PrecisionDebugger(str(path)).save(1, "x", False)
    assert read_step(tmp_path / "dump").top["task"] == "statistics"


def test_unknown_key_warns_with_the_nearest_known_one(tmp_path, caplog):
    path = tmp_path / "config.json"
    content = config(tmp_path / "dump", async_dum=True, sumary_mode="md5")
    content["statistics"] = {"summary_mod": "md5"}
    path.write_text(json.dumps(content))
    PrecisionDebugger(str(path)).save(1, "x", False)
    text = "\n".join(record.getMessage() for record in caplog.records)
    for unknown, nearest in [("async_dum", "async_dump"), ("summary_mod", "summary_mode")]:
        assert re.search(rf"{unknown}\b.*{nearest}\b", text), text
    assert "sumary_mode" in text
    assert str(path) in text
    assert "md5" not in read_step(tmp_path / "dump").top


def test_keys_of_the_other_tools_are_accepted_silently(tmp_path, caplog):
    path = tmp_path / "config.json"
    content = config(
        tmp_path / "dump",
        rank=[],
        step=[],
        async_dump=False,
        extra_info=True,
        precision="high",
        risk_level="ALL",
        scope=[],
        list=[],
        acc_check={"white_list": []},
        tensor={"scope": [], "list": [], "data_mode": ["all"], "file_format": "npy"},
    )
    content["statistics"] = {
        "scope": [],
        "list": [],
        "tensor_list": [],
        "data_mode": ["all"],
        "summary_mode": "statistics",
    }
    path.write_text(json.dumps(content))
    PrecisionDebugger(str(path)).save(1, "x", False)
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == []
    assert read_step(tmp_path / "dump")["x"]["value"] == 1


@pytest.mark.parametrize("text", ["12X", "-5", "0", "lots", ""])
def test_wrong_queue_limit_is_a_config_error(tmp_path, monkeypatch, text):
    monkeypatch.setenv("MSPROBE_ASYNC_MEMORY", text)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config(tmp_path / "dump", async_dump=True)))
    if text == "":  # as if it were not set
        PrecisionDebugger(str(path))
    else:
        assert "MSPROBE_ASYNC_MEMORY" in message_for(path)

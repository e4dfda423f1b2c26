"""Tables, targets and the chart, on results made up so that every ratio is known."""

import copy
import xml.etree.ElementTree as ET

import pytest
import report
import text
from chart import chart
from targets import Results, targets
from text import MIB, SMALL

SVG = "{http://www.w3.org/2000/svg}"
LARGE = 64 * MIB


def save_row(task, size, dtype="float32", framework="pytorch", layout="contiguous", **seconds):
    names = {"peer": "peer", "np": "np.save", "torch": "torch.save", "write": "write()"}
    named = {names.get(name, name): value for name, value in seconds.items()}
    return {
        "framework": framework,
        "task": task,
        "size": size,
        "dtype": dtype,
        "layout": layout,
        "rivals": [name for name in named if name != "ours"],
        "seconds": named,
    }


def kernel(name, rate, size=LARGE):
    return {"name": name, "size": size, "bytes_per_second": rate}


def step_row(model, mode, ratio, whose="ours"):
    return {
        "model": model,
        "whose": whose,
        "mode": mode,
        "seconds": 0.01 * ratio,
        "left": 2e-3,
        "ratio": ratio,
    }


def compare_row(work, size, **taken):
    return {
        "work": work,
        "bytes": size,
        "seconds": {name: seconds for name, (seconds, _) in taken.items()},
        "resident_mib": {name: memory for name, (_, memory) in taken.items()},
    }


def growth_row(seconds, resident_mib, **number):
    return {**number, "seconds": seconds, "resident_mib": resident_mib, "descriptors": 9}


@pytest.fixture
def result():
    """Just at every target, so that each is reached and a little less would not be."""
    return {
        "machine": {"date": "2026-01-02", "cpu": "a cpu", "cores": 2, "peer": "peer 1"},
        "end_to_end": [
            save_row("filtered", SMALL, ours=1e-6),
            save_row("statistics", SMALL, ours=4e-6, peer=100e-6),
            save_row("statistics", LARGE, ours=5e-3, peer=20e-3),
            save_row("md5", LARGE, ours=10e-3, peer=50e-3),
            save_row("tensor", SMALL, ours=19.9e-6, peer=300e-6),
            save_row("tensor", LARGE, ours=40e-3, peer=240e-3, np=40e-3, torch=40e-3, write=34e-3),
            save_row("async", LARGE, ours=12e-3, peer=50e-3, memcpy=10e-3),
            save_row("statistics", LARGE, layout="transposed", ours=6e-3, peer=60e-3),
            save_row("graph", SMALL, "bfloat16", "mindspore", ours=30e-6, np=15e-6),
        ],
        "kernels": [
            kernel("limit/read", 10e9),
            kernel("limit/read, all threads", 20e9),
            kernel("statistics/float32, all threads", 18e9),
            kernel("limit/write", 2e9),
            kernel("statistics/float32", 9e9),
            kernel("statistics/float16", 8.1e9),
            kernel("statistics/bfloat16", 8.1e9),
            kernel("pt file", 1e9),
        ],
        "growth": {
            "saves": [
                growth_row(10e-6, 200, saves=1_000),
                growth_row(10.9e-6, 204, saves=1_000_000),
            ],
            "steps": [growth_row(1e-3, 200, task="async", steps=1_000)],
        },
        "training": [
            step_row("digits", "off", 1.0),
            step_row("digits", "tensor async", 1.049),
            step_row("transformer", "off", 1.0),
            step_row("transformer", "tensor async", 1.049),
            step_row("transformer", "tensor", 1.5, whose="peer"),
        ],
        "threads": [
            {"task": "md5", "size": LARGE, "allowed": 2, "one": 10e-3, "two": 5e-3},
            {"task": "md5", "size": SMALL, "allowed": 1, "one": 10e-6, "two": 20e-6},
        ],
        "comparing": [
            compare_row("tensors", 2 << 30, ours=(0.6, 1024), read=(0.4, 12), peer=(6, 9000)),
            compare_row("rows", 64 << 20, ours=(0.999, 400), read=(0.01, 12), peer=(90, 900)),
        ],
    }


def cells(markdown):
    """The rows of a Markdown table, the header first, the dashes left out."""
    lines = [line.strip("|").split("|") for line in markdown.splitlines()]
    return [[cell.strip() for cell in line] for line in lines if not line[0].startswith("---")]


# ---- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (3e-7, "0.3 µs"),
        (1.414e-6, "1.41 µs"),
        (999e-6, "999 µs"),
        (1e-3, "1 ms"),
        (0.0123, "12.3 ms"),
        (2.5, "2.5 s"),
        (123.4, "123 s"),
        (-2e-3, "-2 ms"),
    ],
)
def test_a_duration_has_three_digits_and_its_unit(seconds, shown):
    assert text.duration(seconds) == shown


def test_a_table_has_a_line_of_dashes_for_each_column():
    assert text.table(["a", "b"], [["1", "2"]]) == "| a | b |\n|---|---|\n| 1 | 2 |"


# ---- targets -----------------------------------------------------------------------------------


def test_all_targets_are_reached_by_results_that_just_reach_them(result):
    rows = targets(result)
    assert [row.work for row in rows if not row.reached] == []
    assert len(rows) == 22


MISSES = [
    ("statistics, 1,000 floats", "end_to_end", 1, ("seconds", "ours"), 4.01e-6),
    ("statistics, 64 MiB float32", "end_to_end", 2, ("seconds", "ours"), 5.01e-3),
    ("md5, 64 MiB float32", "end_to_end", 3, ("seconds", "ours"), 10.1e-3),
    ("tensor, 1,000 floats", "end_to_end", 4, ("seconds", "peer"), 298e-6),
    ("a save that is filtered out", "end_to_end", 0, ("seconds", "ours"), 1.01e-6),
    ("tensor, 64 MiB float32", "end_to_end", 5, ("seconds", "write()"), 33e-3),
    ("tensor, 64 MiB float32", "end_to_end", 5, ("seconds", "np.save"), 39e-3),
    ("tensor, 64 MiB float32", "end_to_end", 5, ("seconds", "torch.save"), 39e-3),
    ("async, 64 MiB float32: the caller waits", "end_to_end", 6, ("seconds", "memcpy"), 9e-3),
    ("statistics, 64 MiB float32, one thread", "kernels", 0, ("bytes_per_second",), 10.1e9),
    ("statistics, 64 MiB float32, all threads", "kernels", 1, ("bytes_per_second",), 20.2e9),
    ("statistics, 64 MiB float16, one thread", "kernels", 5, ("bytes_per_second",), 8e9),
    ("statistics, 64 MiB bfloat16, one thread", "kernels", 6, ("bytes_per_second",), 8e9),
    ("training step, digits, tensor async", "training", 1, ("ratio",), 1.06),
    ("training step, transformer, tensor async", "training", 3, ("ratio",), 1.06),
    ("compare, 2 x 1 GiB", "comparing", 0, ("seconds", "read"), 0.39),
    ("compare, 2 x 1 GiB", "comparing", 0, ("seconds", "peer"), 5.9),
    ("compare, 2 x 1 GiB", "comparing", 0, ("resident_mib", "ours"), 1025),
    ("compare, 100,000 rows of statistics", "comparing", 1, ("seconds", "ours"), 1.01),
]


@pytest.mark.parametrize(("work", "part", "row", "path", "value"), MISSES)
def test_a_target_is_missed_by_a_little_less(result, work, part, row, path, value):
    place = result[part][row]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert [row.work for row in targets(result) if not row.reached] == [work]


@pytest.mark.parametrize(("key", "value"), [("seconds", 12e-6), ("resident_mib", 205)])
def test_growth_misses_its_target(result, key, value):
    result["growth"]["saves"][1][key] = value
    assert [row.work for row in targets(result) if not row.reached] == ["save 1,000,000 of a step"]


def test_the_summary_says_target_and_ratio(result):
    result["end_to_end"][3]["seconds"]["ours"] = 20e-3
    table = cells(report.target_table(targets(result)))
    assert table[0] == ["work", "target", "measured", "reached"]
    assert ["md5, 64 MiB float32", "5x the speed of peer", "2.5x", "no"] in table
    assert [
        "statistics, 64 MiB float32, one thread",
        "90 % of a plain read",
        "90 %",
        "yes",
    ] in table
    assert ["tensor, 64 MiB float32", "85 % of a bare write()", "85 %", "yes"] in table


def test_results_are_found_by_the_whole_key(result):
    found = Results(result)
    assert found.seconds("statistics", LARGE) == {"ours": 5e-3, "peer": 20e-3}
    assert found.seconds("statistics", LARGE, layout="transposed")["ours"] == 6e-3


# ---- Markdown ----------------------------------------------------------------------------------


def test_the_table_of_saves_shows_times_and_how_many_times_longer(result):
    rows = cells(report.save_table(result["end_to_end"]))
    assert rows[0] == ["task", "tensor", "ours", "peer", "np.save", "torch.save", "limit"]
    assert rows[1] == ["filtered", "1,000 floats, float32", "1 µs", "", "", "", ""]
    assert rows[6] == [
        "tensor",
        "64 MiB, float32",
        "40 ms",
        "240 ms (6.0x)",
        "40 ms (1.0x)",
        "40 ms (1.0x)",
        "34 ms (0.85x)",
    ]
    assert rows[7][-1] == "10 ms (0.83x)"
    assert rows[8][1] == "64 MiB, float32, transposed"
    assert rows[9][1] == "2,000 floats, bfloat16"


def test_a_table_of_saves_without_limits_has_no_such_column(result):
    rows = cells(report.save_table(result["end_to_end"][-1:]))
    assert rows == [
        ["task", "tensor", "ours", "np.save"],
        ["graph", "2,000 floats, bfloat16", "30 µs", "15 µs (0.50x)"],
    ]


def test_the_table_of_training_steps_shows_what_each_mode_adds(result):
    rows = cells(report.training_table(result["training"]))
    assert rows[1] == ["digits", "off", "10 ms", "", ""]
    assert rows[2] == ["digits", "tensor async", "10.5 ms", "+4.9 %", "2 ms"]
    assert rows[5] == ["transformer", "peer, tensor", "15 ms", "+50.0 %", ""]


def test_the_table_of_threads_compares_saves_per_second(result):
    rows = cells(report.thread_table(result["threads"]))
    assert rows[1] == ["md5", "64 MiB", "2", "100", "200", "2.0x"]
    assert rows[2] == ["md5", "1,000 floats", "1", "100,000", "50,000", "0.50x"]


def test_the_table_of_kernels_gives_the_share_of_their_own_limit(result):
    rows = {row[0]: row for row in cells(report.kernel_table(result["kernels"]))}
    assert rows["limit/read"] == ["limit/read", "64 MiB", "10.00", ""]
    assert rows["statistics/float32"] == ["statistics/float32", "64 MiB", "9.00", "90 % of read"]
    shared = "statistics/float32, all threads"
    assert rows[shared] == [shared, "64 MiB", "18.00", "90 % of read"]
    assert rows["pt file"] == ["pt file", "64 MiB", "1.00", "50 % of write"]


def test_the_report_names_machine_versions_and_date_and_begins_with_the_targets(result):
    written = report.report(result)
    for fact in ("date 2026-01-02", "cpu a cpu", "cores 2", "peer peer 1"):
        assert fact in written
    assert written.index("## The targets") < written.index("## A save, PyTorch")
    assert "(benchmarks.svg)" in written
    assert "| graph | 2,000 floats, bfloat16 |" in written
    assert "| async | 1,000 | 1 ms | 200.0 MiB | 9 |" in written


# ---- the chart ---------------------------------------------------------------------------------


def marks_of(group):
    """Where the marks of a row stand, by contestant."""
    places = {}
    for mark in group.iter():
        if mark.get("class") == "mark":
            points = mark.get("points", f"{mark.get('cx')},0").split()
            across = [float(point.split(",")[0]) for point in points]
            places[mark.get("data-name")] = (min(across) + max(across)) / 2
    return places


def test_the_chart_is_xml_with_a_row_for_each_save_and_a_mark_for_each_time(result):
    rows = result["end_to_end"]
    groups = ET.fromstring(chart(rows)).findall(f"{SVG}g[@class='row']")
    assert [set(marks_of(group)) for group in groups] == [set(row["seconds"]) for row in rows]
    labels = [group.find(f"{SVG}text").text for group in groups]
    assert labels[1] == "statistics: 1,000 floats, float32"
    assert labels[-1] == "MindSpore graph: 2,000 floats, bfloat16"


def test_equal_ratios_are_equal_distances_in_the_chart(result):
    rows = [save_row("md5", LARGE, ours=1e-5, peer=1e-4), save_row("md5", SMALL, ours=1e-3)]
    first, second = ET.fromstring(chart(rows)).findall(f"{SVG}g[@class='row']")
    places = [marks_of(first)["ours"], marks_of(first)["peer"], marks_of(second)["ours"]]
    assert places[1] > places[0]
    assert places[2] - places[1] == pytest.approx(places[1] - places[0], abs=0.2)


def test_the_axis_of_the_chart_names_every_power_of_ten(result):
    rows = [save_row("md5", LARGE, ours=2e-5, peer=3e-3)]
    labels = {element.text for element in ET.fromstring(chart(rows)).findall(f"{SVG}text")}
    assert {"10 µs", "100 µs", "1 ms", "10 ms", "time of one save, log scale"} <= labels
    assert {"ours", "peer"} <= labels
    assert "np.save" not in labels  # the legend has those that appear


def test_everything_in_the_chart_lies_inside_of_it(result):
    root = ET.fromstring(chart(result["end_to_end"]))
    _, _, width, height = map(float, root.get("viewBox").split())
    for element in root.iter():
        for key, limit in (("x", width), ("x1", width), ("cx", width), ("y", height)):
            if element.get(key) is not None:
                assert 0 <= float(element.get(key)) <= limit


def test_the_longest_label_of_the_chart_has_room():
    rows = [
        save_row("statistics", SMALL, "bfloat16", "mindspore", ours=1e-5),
        save_row("statistics", LARGE, layout="transposed", ours=1e-5),
    ]
    for group in ET.fromstring(chart(rows)).findall(f"{SVG}g[@class='row']"):
        label = group.find(f"{SVG}text")
        assert 6.5 * len(label.text) <= float(label.get("x"))  # px of a letter, on average


def test_a_time_below_zero_has_no_mark_and_breaks_nothing(result):
    rows = [save_row("graph", SMALL, ours=-1e-6), save_row("graph", LARGE, ours=1e-3, np=1e-2)]
    first, second = ET.fromstring(chart(rows)).findall(f"{SVG}g[@class='row']")
    assert marks_of(first) == {}
    assert set(marks_of(second)) == {"ours", "np.save"}


def test_a_name_with_markup_in_it_stays_text(result):
    rows = copy.deepcopy(result["end_to_end"])
    rows[0]["task"] = "a<b&c"
    group = ET.fromstring(chart(rows)).find(f"{SVG}g[@class='row']")
    assert group.find(f"{SVG}text").text.startswith("a<b&c:")

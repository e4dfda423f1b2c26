"""The results as Markdown: pure functions of what `./run bench` writes as JSON."""

from targets import targets
from text import SMALL, duration, size, table, tensor, times

GIGA = 1e9
# What the machine does at best, where that is not a plain read.
LIMITS = {"pt file": "limit/write", "pair errors": "limit/read both"}


def report(result):
    """Gives the text of benchmarks.md."""
    facts = ", ".join(f"{key} {value}" for key, value in result["machine"].items())
    of = {
        framework: [row for row in result["end_to_end"] if row["framework"] == framework]
        for framework in ("pytorch", "mindspore")
    }
    return f"""# Benchmarks

Written by `./run bench`. {facts}.
Dumps go to a tmpfs. All contestants of a row run in turn, A B A B, each in a process of its own;
the numbers are medians over the rounds. The same as JSON: [benchmarks.json](benchmarks.json).

## The targets

{target_table(targets(result))}

![Time of one save](benchmarks.svg)

## A save, PyTorch

In brackets how many times longer than ours. For task async the time that the caller waits; else a
record is on disk when the time is taken. `np.save`, `torch.save` and `safetensors` write a file for
each tensor and no statistics. The limit is a bare `write()` of the same bytes, for async one memcpy
into memory that is there already. For float8 the peer records null; its time is that of giving up.

{save_table(of["pytorch"])}

## A save, MindSpore

In PyNative mode; `graph` is the function `save` in a `@ms.jit` function, less the time of the same
function without it. The peer is not here because it cannot save on a CPU: it asks MindSpore for
operators that have no CPU kernel (`LinalgVectorNorm`; for bfloat16 the reduction), and the call or
`step()` raises. `np.save` writes bfloat16 as float32.

{save_table(of["mindspore"])}

## A training step

"more" is the median of the ratios to the step without saves in the same round. "left" is the work
that async mode still had after the last step, for each step. digits: the model of `./run demo`,
three saves (four tensors and a gradient) in a step. transformer: four layers of width 128 on 8 x 64
tokens; five saves of activations of 256 KiB with their gradients, and the loss.

{training_table(result["training"])}

## Threads

Saves per second, PyTorch float32: one user thread, and two that save at the same time.
`MSPROBE_THREADS` is how many threads the library may use for one large tensor.

{thread_table(result["threads"])}

## Growth

Many saves of 100 floats in one step, task statistics:

{growth_table(result["growth"]["saves"], "saves", "save number", "time of a save")}

Many steps of four saves of 1,000 floats with their gradients, forward and backward included; the
median of the last 20 steps (at step 1: that step alone, which creates the folders):

{step_table(result["growth"]["steps"])}

## Comparing

`msprobe compare` from start to end, ours with Python's start, beside a read of the same files from
the page cache (one thread, 1 MiB at a time). tensors: one float32 tensor of 1 GiB on each side, all
elements different. rows: 100,000 records of statistics on each side.

{compare_table(result["comparing"])}

## Kernels

One thread unless the name says more; no files but for "pt file". The limit is what the machine does
with the same bytes and threads in the same run: a plain read, or `write()`.

{kernel_table(result["kernels"])}
"""


def target_table(rows):
    return table(
        ["work", "target", "measured", "reached"],
        [[row.work, row.wanted, row.measured, "yes" if row.reached else "no"] for row in rows],
    )


def save_table(rows):
    """Has a column for each rival that appears; write() and memcpy share one."""
    limits = ("write()", "memcpy")
    names = [name for row in rows for name in row["rivals"]]
    columns = [name for name in dict.fromkeys(names) if name not in limits]
    with_limit = any(name in limits for name in names)

    def cell(row, *names):
        found = [row["seconds"][name] for name in names if name in row["seconds"]]
        if not found:
            return ""
        return f"{duration(found[0])} ({times(found[0] / row['seconds']['ours'])})"

    return table(
        ["task", "tensor", "ours", *columns, *["limit"] * with_limit],
        [
            [
                row["task"],
                tensor(row),
                duration(row["seconds"]["ours"]),
                *(cell(row, name) for name in columns),
                *[cell(row, *limits)] * with_limit,
            ]
            for row in rows
        ],
    )


def training_table(rows):
    def more(row):
        return "" if row["mode"] == "off" else f"{100 * (row['ratio'] - 1):+.1f} %"

    return table(
        ["model", "saving", "step", "more", "left"],
        [
            [
                row["model"],
                row["mode"] if row["whose"] == "ours" else f"{row['whose']}, {row['mode']}",
                duration(row["seconds"]),
                more(row),
                duration(row["left"]) if "async" in row["mode"] and row["whose"] == "ours" else "",
            ]
            for row in rows
        ],
    )


def thread_table(rows):
    return table(
        ["task", "tensor", "`MSPROBE_THREADS`", "one thread", "two threads", "ratio"],
        [
            [
                row["task"],
                size(row["size"]),
                str(row["allowed"]),
                per_second(row["one"]),
                per_second(row["two"]),
                times(row["one"] / row["two"]),
            ]
            for row in rows
        ],
    )


def per_second(seconds):
    rate = 1 / seconds
    return f"{rate:,.0f}" if rate >= SMALL / 40 else f"{rate:.3g}"


def growth_table(rows, key, *header):
    return table(
        [*header, "resident memory", "open descriptors"],
        [[f"{row[key]:,}", duration(row["seconds"]), *usage(row)] for row in rows],
    )


def step_table(rows):
    return table(
        ["task", "step", "time of a step", "resident memory", "open descriptors"],
        [[row["task"], f"{row['steps']:,}", duration(row["seconds"]), *usage(row)] for row in rows],
    )


def compare_table(rows):
    names = ("ours", "read", "peer")
    return table(
        ["work", "bytes", *names, "resident memory, ours", "peer"],
        [
            [
                row["work"],
                f"{row['bytes'] / 2**20:,.0f} MiB",
                *(duration(row["seconds"][name]) for name in names),
                *(f"{row['resident_mib'][name]:,.0f} MiB" for name in ("ours", "peer")),
            ]
            for row in rows
        ],
    )


def usage(row):
    return f"{row['resident_mib']:.1f} MiB", str(row["descriptors"])


def kernel_table(rows):
    limits = {
        (row["name"], row["size"]): row["bytes_per_second"]
        for row in rows
        if row["name"].startswith("limit/")
    }

    def share(row):
        name, comma, threads = row["name"].partition(", ")
        if name.startswith("limit/"):
            return ""
        limit = LIMITS.get(name.partition("/")[0], "limit/read")
        # With the same threads, where that was measured: two do not write a file faster.
        rate = limits.get((limit + comma + threads, row["size"])) or limits[limit, row["size"]]
        return f"{100 * row['bytes_per_second'] / rate:.0f} % of {limit[6:]}"

    return table(
        ["work", "size", "GB/s", "of the limit in the same run"],
        [
            [
                row["name"],
                size(row["size"]),
                f"{row['bytes_per_second'] / GIGA:.2f}",
                share(row),
            ]
            for row in rows
        ],
    )

"""`./run bench`: kernels, end to end beside the peer, growth; writes Markdown and JSON.

Usage: python bench --kernels PROGRAM --peer-python PYTHON --out FOLDER
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import end_to_end
import torch

GIGA = 1e9


def run_kernels(program):
    """Gives the rows of Google Benchmark: name, size in bytes, bytes per second."""
    command = [program, "--benchmark_format=json", "--benchmark_min_time=0.1"]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = []
    for row in json.loads(finished.stdout)["benchmarks"]:
        name, size = row["name"].rsplit("/", 1)
        rows.append({"name": name, "size": int(size), "bytes_per_second": row["bytes_per_second"]})
    return rows


def run_growth():
    script = Path(__file__).with_name("growth.py")
    finished = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    return json.loads(finished.stdout.splitlines()[-1])


def machine():
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "msprobe-save": version("msprobe-save"),
        "peer": "mindstudio-probe 26.2.0",
    }


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def kernel_table(rows):
    limits = {
        (row["name"], row["size"]): row["bytes_per_second"]
        for row in rows
        if row["name"].startswith("limit/")
    }

    def share(row):
        limit = {"pt file": "limit/write"}.get(row["name"], "limit/read")
        return f"{100 * row['bytes_per_second'] / limits[limit, row['size']]:.0f} % of {limit[6:]}"

    return table(
        ["work", "size", "GB/s", "of the limit in the same run"],
        [
            [
                row["name"],
                end_to_end.text_of_size(row["size"]),
                f"{row['bytes_per_second'] / GIGA:.2f}",
                "" if row["name"].startswith("limit/") else share(row),
            ]
            for row in rows
        ],
    )


def end_to_end_table(rows):
    rivals = ["peer", "np.save", "torch.save", "safetensors"]

    def cell(row, rival):
        if rival not in row.seconds:
            return ""
        ratio = row.seconds[rival] / row.seconds["ours"]
        return f"{end_to_end.text_of_time(row.seconds[rival])} ({ratio:.1f}x)"

    return table(
        ["task", "tensor", "ours", *rivals],
        [
            [
                row.task,
                f"{end_to_end.text_of_size(row.size)} {row.dtype}"
                + ("" if row.layout == "contiguous" else f", {row.layout}"),
                end_to_end.text_of_time(row.seconds["ours"]),
                *(cell(row, rival) for rival in rivals),
            ]
            for row in rows
        ],
    )


def growth_table(rows):
    return table(
        ["save number", "time of a save", "resident memory"],
        [
            [
                f"{row['saves']:,}",
                end_to_end.text_of_time(row["seconds"]),
                f"{row['resident_mib']:.0f} MiB",
            ]
            for row in rows
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", required=True, type=Path)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    print("== kernels", flush=True)
    kernels = run_kernels(arguments.kernels)
    print("== end to end", flush=True)
    rows = end_to_end.measure(arguments.peer_python, lambda text: print("  " + text, flush=True))
    print("== growth", flush=True)
    growth = run_growth()

    facts = machine()
    result = {
        "machine": facts,
        "kernels": kernels,
        "end_to_end": [vars(row) for row in rows],
        "growth": growth,
    }
    (arguments.out / "benchmarks.json").write_text(json.dumps(result, indent=1))
    text = f"""# Benchmarks

Written by `./run bench`. {", ".join(f"{key} {value}" for key, value in facts.items())}.
Dumps go to a tmpfs. "Limit" is what the machine does with the same bytes in the same run: a plain
read, or `write()`.

## End to end, in Python

Medians of interleaved rounds; in brackets how many times longer than ours. For task async the time
that the caller waits. A record is on disk when the time is taken; the writers without statistics
(`np.save` ...) write one file for each tensor. For float8 the peer records null; its time is that
of giving up.

{end_to_end_table(rows)}

## Growth: many saves in one step

{growth_table(growth)}

## Kernels

{kernel_table(kernels)}
"""
    (arguments.out / "benchmarks.md").write_text(text)
    print(f"written: {arguments.out}/benchmarks.md and benchmarks.json")


if __name__ == "__main__":
    main()

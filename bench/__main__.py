"""`./run bench`: kernels, saves, training steps, threads, growth, comparing.

Writes Markdown, SVG and JSON.

Usage: python bench --kernels PROGRAM... --peer-python PYTHON --out FOLDER
"""

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

import comparing
import end_to_end
import growth
import threads
import training
from chart import chart
from report import report
from text import duration, tensor


def run_kernels(program):
    """Gives the rows of Google Benchmark: name, size in bytes, the median of bytes per second."""
    options = {
        "format": "json",
        "min_time": "0.02",
        "repetitions": "3",
        "report_aggregates_only": "true",
        "enable_random_interleaving": "true",  # A B A B here too
    }
    command = [program, *(f"--benchmark_{name}={value}" for name, value in options.items())]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return kernel_rows(json.loads(finished.stdout)["benchmarks"])


def kernel_rows(benchmarks):
    rows = []
    for row in benchmarks:
        if row["aggregate_name"] == "median":
            # name/size, and what Google Benchmark adds: /real_time, /threads:2
            name, size = re.fullmatch(r"(.+?)/(\d+)(?:/[a-z_:0-9]+)*", row["run_name"]).groups()
            rate = row["bytes_per_second"]
            rows.append({"name": name, "size": int(size), "bytes_per_second": rate})
    return rows


def machine(peer_python):
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    ask = "from importlib.metadata import version; print(version('mindstudio-probe'))"
    peer = subprocess.run([peer_python, "-c", ask], capture_output=True, text=True, check=True)
    packages = ("torch", "mindspore", "numpy", "safetensors", "msprobe-save")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "cpu": next(models, platform.machine()),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
        "peer": f"mindstudio-probe {peer.stdout.strip()}",
    }


def show_save(row):
    taken = (f"{name} {duration(seconds)}" for name, seconds in row["seconds"].items())
    show(f"{row['framework']}, {row['task']}, {tensor(row)}: {', '.join(taken)}")


def show(row):
    print(f"  {row}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", required=True, type=Path, nargs="+")
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    peer = arguments.peer_python

    parts = {
        "kernels": lambda: [row for program in arguments.kernels for row in run_kernels(program)],
        "end_to_end": lambda: end_to_end.measure(peer, show_save),
        "training": lambda: training.measure(peer, show),
        "threads": lambda: threads.measure(show),
        "growth": growth.measure,
        "comparing": lambda: comparing.measure(peer, show),
    }
    result = {"machine": machine(peer)}
    start = time.monotonic()
    for name, measure in parts.items():
        print(f"== {name} (after {time.monotonic() - start:.0f} s)", flush=True)
        result[name] = measure()

    written = {
        "benchmarks.json": json.dumps(result, indent=1),
        "benchmarks.md": report(result),
        "benchmarks.svg": chart(result["end_to_end"]),
    }
    for name, text in written.items():
        (arguments.out / name).write_text(text, encoding="utf-8")
    print(f"written in {time.monotonic() - start:.0f} s: {arguments.out}/{{{','.join(written)}}}")


if __name__ == "__main__":
    main()

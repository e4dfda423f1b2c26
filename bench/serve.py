"""The contestants' side: a scratch folder, and a loop that answers JSON requests (contestants.py).

Runs on the project's interpreter and on the peer's, whose package has the same name and API.
"""

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def serve(make_handler):
    """Answers each line of stdin with what the handler, made for a scratch folder, returns."""
    os.environ["RANK"] = os.environ["RANK_ID"] = "0"  # as a launcher sets them
    folder = Path(tempfile.mkdtemp(prefix="msprobe-bench-", dir=SCRATCH))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the contestants print is not for the driver
    try:
        handle = make_handler(folder)
        print(json.dumps("ready"), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(handle(json.loads(line))), file=answers, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_config(folder, task, step=()):
    """Writes a config.json for a task as the tables call it; async alone is tensor async."""
    writes_files = task.startswith(("tensor", "async"))
    config = {
        "task": "tensor" if writes_files else "statistics",
        "level": "debug",
        "dump_path": str(folder / "dump"),
        "rank": [],
        "step": list(step),
        "async_dump": task.endswith("async"),
        "statistics": {"summary_mode": "md5" if task == "md5" else "statistics"},
        "tensor": {},
    }
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def wait_for_files(dump, count):
    """Waits until so many tensor files are complete: an async step leaves some to the threads."""
    deadline = time.monotonic() + 120
    while sum(1 for _ in dump.glob("step*/*/dump_tensor_data/*.[pn]*")) < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{dump}: fewer than {count} tensor files")
        time.sleep(0.002)


def remove_steps(dump):
    for folder in dump.glob("step*"):
        shutil.rmtree(folder, ignore_errors=True)

"""Runs clang-tidy on all sources of some folders, in parallel, skipping what was clean before.

Usage: python scripts/clang_tidy.py --build-dir BUILD FOLDER... BUILD holds compile_commands.json
and gets the marks of clean files: a hash of the source, of all project headers that it includes,
of the compile command, of .clang-tidy and of clang-tidy's version.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SEARCH_PATH = (ROOT / "include", ROOT / "src")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@cache
def project_includes(file: Path) -> frozenset[Path]:
    """Returns the project's own headers that `file` names."""
    names = INCLUDE.findall(file.read_text(encoding="utf-8"))
    folders = (file.parent, *SEARCH_PATH)
    return frozenset(
        next(folder / name for folder in folders if (folder / name).is_file())
        for name in names
        if any((folder / name).is_file() for folder in folders)
    )


def with_headers(file: Path) -> list[Path]:
    """Returns `file` and all project headers that it includes, directly or not."""
    found, pending = set[Path](), [file]
    while pending:
        current = pending.pop()
        if current not in found:
            found.add(current)
            pending.extend(project_includes(current))
    return sorted(found)


def clean_mark(file: Path, command: str, tool: str) -> str:
    """Returns the hash of everything that clang-tidy's answer for `file` depends on."""
    digest = hashlib.sha256(f"{tool}\0{command}\0".encode())
    for source in [ROOT / ".clang-tidy", *with_headers(file)]:
        digest.update(f"{source.relative_to(ROOT)}\0".encode())
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    return digest.hexdigest()


def run_clang_tidy(build_dir: Path, file: Path) -> tuple[bool, str, float]:
    """Returns whether `file` is clean, what clang-tidy said and the seconds that it took."""
    started = time.monotonic()
    result = subprocess.run(
        ["clang-tidy", "--quiet", "-p", build_dir, file],
        capture_output=True,
        text=True,
        check=False,
    )
    # stderr only counts suppressed warnings, unless clang-tidy itself failed.
    output = result.stdout if result.returncode == 0 or result.stdout else result.stderr
    return result.returncode == 0, output, time.monotonic() - started


def main() -> int:
    """Returns the exit status: 1 if any file has a finding."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", type=Path, required=True)
    parser.add_argument("folders", nargs="+", type=lambda name: (ROOT / name).resolve())
    arguments = parser.parse_args()

    tool = subprocess.run(
        ["clang-tidy", "--version"], capture_output=True, text=True, check=True
    ).stdout
    commands = json.loads(
        (arguments.build_dir / "compile_commands.json").read_text(encoding="utf-8")
    )
    marks = arguments.build_dir / "clang_tidy_clean"
    marks.mkdir(exist_ok=True)
    pending = {}
    clean_before = 0
    for entry in commands:
        file = Path(entry["file"])
        if not any(file.is_relative_to(folder) for folder in arguments.folders):
            continue
        mark = marks / clean_mark(file, entry["command"], tool)
        if mark.exists():
            clean_before += 1
        else:
            pending[file] = mark

    failures = 0
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs = {pool.submit(run_clang_tidy, arguments.build_dir, file): file for file in pending}
        for number, job in enumerate(as_completed(jobs), start=1):
            file = jobs[job]
            is_clean, output, seconds = job.result()
            verdict = "clean" if is_clean else "FAILED"
            print(
                f"[{number}/{len(jobs)}] {file.relative_to(ROOT)}: {verdict} ({seconds:.1f} s)",
                flush=True,
            )
            if is_clean:
                pending[file].touch()
            else:
                failures += 1
                print(output, flush=True)
    print(f"{len(pending) - failures} clean, {failures} with findings, {clean_before} clean before")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

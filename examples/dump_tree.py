"""Shows what a dump holds. Shared by the demos."""

import json


def step_folders(dump_path):
    return sorted(dump_path.glob("step*"), key=lambda path: int(path.name.removeprefix("step")))


def print_tree(dump_path):
    first, *others = step_folders(dump_path)
    print(f"{dump_path}/")
    for path in (first, *sorted(first.rglob("*"))):
        depth = len(path.relative_to(dump_path).parts)
        size = "/" if path.is_dir() else f"  {path.stat().st_size} bytes"
        print(f"{'  ' * depth}{path.name}{size}")
    names = [path.name for path in others]
    if len(names) > 6:
        names[2:-2] = ["..."]
    print(f"  the same in {', '.join(names)}")


def read_records(step_folder):
    return json.loads((step_folder / "rank0" / "debug.json").read_text())["data"]

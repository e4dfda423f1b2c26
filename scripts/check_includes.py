"""Checks who includes whom, and who touches the file system (the rules of docs/design.md).

Usage: python scripts/check_includes.py [ROOT]. Prints each violation as `file:line: message`; the
exit status is 1 if there is any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD = re.compile(r"[a-z_0-9]+")  # <vector>, <cstdint>: no folder and no .h
PYTHON = re.compile(r"Python\.h|nanobind/.*")
SYSTEM = {"unistd.h", "cxxabi.h"}  # for bindings/: terminals, threads that Python ends
THIRD_PARTY = re.compile(r"(hwy|rapidjson|gtest|gmock|re2|CLI)/.*|(libdeflate|xlsxwriter)\.h")

# Folders of src/ that a folder must not include. What a folder stands on, it may include.
FORBIDDEN_FOLDERS = {
    "tensor": {"statistics", "checksum", "format", "config", "pipeline", "session"},
    "statistics": {"format", "config", "pipeline", "session"},
    "checksum": {"format", "config", "pipeline", "session"},
    "format": {"config", "pipeline", "session"},
    "config": {"pipeline", "session"},
    "pipeline": {"session"},
    "compare": {"session"},
    "cli": {"session"},
}

# Everything that creates, changes or names a file. Reading a file with std::ifstream is free.
FILE_CALL = re.compile(
    r"(?<![\w>.:])(?:::|std::)?"
    r"(openat2?|creat|fopen|freopen|fwrite|pwritev?2?|writev|f?truncate|fallocate|posix_fallocate"
    r"|rename(?:at2?)?|linkat|symlink(?:at)?|unlink(?:at)?|mkdir(?:at)?|mkstemp|mkdtemp)\s*\("
    r"|(?<![\w>.:])::(open|write|link|remove)\s*\("
    r"|std::(o?fstream|filesystem::(?:create|rename|remove|copy|resize)\w*)\b"
)
FILE_IO = "src/format/file_io.cpp"
# Not files: a signal handler wakes the drain through a descriptor made for that.
FILE_CALL_EXCEPTIONS = {"src/pipeline/termination.cpp": {"write"}}

NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/"
    r'|R"(?P<raw>[^(\s]*)\(.*?\)(?P=raw)"'
    r"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)


def blank_comments_and_strings(text: str) -> str:
    """Returns `text` with comments and literals emptied, every line at its place."""
    return NOT_CODE.sub(lambda match: "\n" * match.group().count("\n"), text)


def check_include(path: Path, is_system: bool, header: str) -> str | None:
    """Returns what is wrong with `path` (relative to the root) including `header`, if anything."""
    area = path.parts[0]
    is_standard = is_system and STANDARD.fullmatch(header) is not None
    is_public = header.startswith("msprobe/")
    if PYTHON.fullmatch(header) and area != "bindings":
        return f"{header}: Python and nanobind belong in bindings/"
    if area == "include":
        return (
            None
            if is_standard or is_public
            else f"{header}: a public header includes only the standard library"
        )
    if area == "bindings":
        is_own = not is_system and (path.parts[1:-1] or "/" not in header)
        allowed = is_standard or is_public or is_own or PYTHON.fullmatch(header) or header in SYSTEM
        return None if allowed else f"{header}: bindings/ knows the public headers of the core only"
    if path.suffix == ".h" and not path.name.endswith("-inl.h") and THIRD_PARTY.fullmatch(header):
        return f"{header}: third-party headers belong in .cpp files"
    folder = path.parts[1]
    if not is_system and header.partition("/")[0] in FORBIDDEN_FOLDERS.get(folder, ()):
        return f"{header}: {folder}/ stands below it"
    return None


def check_file(root: Path, path: Path) -> Iterator[str]:
    """Yields the violations in one file, `path` being relative to `root`."""
    text = (root / path).read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        if match := INCLUDE.match(line):
            problem = check_include(path, match[1] == "<", match[2])
            if problem:
                yield f"{path}:{number}: {problem}"
    if path.as_posix() == FILE_IO:
        return
    exceptions = FILE_CALL_EXCEPTIONS.get(path.as_posix(), set())
    for number, line in enumerate(blank_comments_and_strings(text).splitlines(), start=1):
        for match in FILE_CALL.finditer(line):
            name = next(group for group in match.groups() if group)
            if name not in exceptions:
                yield f"{path}:{number}: {name}: files are written through format/file_io.h only"


def main() -> int:
    """Checks the tree; returns the exit status."""
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    files = sorted(
        file.relative_to(root)
        for area in ("include", "src", "bindings")
        for file in (root / area).rglob("*")
        if file.suffix in {".h", ".cpp"}
    )
    violations = [violation for file in files for violation in check_file(root, file)]
    for violation in violations:
        print(violation)
    print(f"{len(files)} files, {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())

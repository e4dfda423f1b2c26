"""How numbers and tables look."""

MIB, GIB = 2**20, 2**30
SMALL = 4000  # bytes: 1,000 float32


def size(count):
    """A size in bytes; the small one by its floats."""
    if count == SMALL:
        return "1,000 floats"
    return f"{count // MIB} MiB" if count < GIB else f"{count // GIB} GiB"


def duration(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if abs(seconds) * factor >= 1:
            value = seconds * factor
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{seconds * 1e6:.2g} µs"


def times(ratio):
    return f"{ratio:.1f}x" if ratio >= 1 else f"{ratio:.2f}x"


def tensor(row):
    """What a row of the end-to-end tables saves."""
    if row["size"] == SMALL:
        what = f"{'1,000' if row['dtype'] == 'float32' else '2,000'} floats, {row['dtype']}"
    else:
        what = f"{size(row['size'])}, {row['dtype']}"
    return what if row["layout"] == "contiguous" else f"{what}, {row['layout']}"


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)

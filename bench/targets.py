"""The project's targets and how far the results are: pure functions of the results."""

from dataclasses import dataclass

from text import MIB, SMALL, duration, times

LARGE = 64 * MIB


@dataclass(frozen=True)
class Target:
    """A row of the summary: `value` is to be at least (or at most) `bound`."""

    work: str
    wanted: str
    measured: str
    value: float
    bound: float
    at_most: bool = False

    @property
    def reached(self):
        return self.value <= self.bound if self.at_most else self.value >= self.bound


class Results:
    """Finds single numbers in the results."""

    def __init__(self, result):
        self.result = result

    def seconds(self, task, size, dtype="float32", framework="pytorch", layout="contiguous"):
        wanted = (framework, task, size, dtype, layout)
        keys = ("framework", "task", "size", "dtype", "layout")
        return next(
            row["seconds"]
            for row in self.result["end_to_end"]
            if tuple(row[key] for key in keys) == wanted
        )

    def ratio(self, rival, task, size):
        """How many times longer than ours the rival takes."""
        seconds = self.seconds(task, size)
        return seconds[rival] / seconds["ours"]

    def rate(self, kernel):
        """Bytes per second for 64 MiB; None if there is no such kernel."""
        rates = {
            (row["name"], row["size"]): row["bytes_per_second"] for row in self.result["kernels"]
        }
        return rates.get((kernel, LARGE))

    def growth(self):
        rows = self.result["growth"]["saves"]
        return rows[0], rows[-1]

    def comparing(self, work):
        return next(row for row in self.result["comparing"] if row["work"] == work)

    def training(self, model, mode):
        return next(
            row["ratio"]
            for row in self.result["training"]
            if (row["model"], row["whose"], row["mode"]) == (model, "ours", mode)
        )


def targets(result):
    """Gives the rows of the summary, in the order of the project's list."""
    found = Results(result)
    return [
        *_against("peer", found, "statistics", SMALL, 25),
        *_share_of_read(found),
        *_against("peer", found, "statistics", LARGE, 4),
        *(_share_of_float32(found, dtype) for dtype in ("float16", "bfloat16")),
        *_against("peer", found, "md5", LARGE, 5),
        *_against("peer", found, "tensor", SMALL, 15),
        _write_share(found),
        *_against("peer", found, "tensor", LARGE, 6),
        *_against("np.save", found, "tensor", LARGE, 1),
        *_against("torch.save", found, "tensor", LARGE, 1),
        _snapshot(found),
        _filtered(found),
        *_growth(found),
        *(_training(found, model) for model in ("digits", "transformer")),
        *_comparing(found),
    ]


def _against(rival, found, task, size, bound):
    ratio = found.ratio(rival, task, size)
    what = "1,000 floats" if size == SMALL else "64 MiB float32"
    wanted = f"{bound}x the speed of {rival}" if bound > 1 else f"faster than {rival}"
    yield Target(f"{task}, {what}", wanted, times(ratio), ratio, bound)


def _share_of_read(found):
    for threads in ("", ", all threads"):
        rate = found.rate(f"statistics/float32{threads}")
        if rate is not None:
            share = 100 * rate / found.rate(f"limit/read{threads}")
            work = f"statistics, 64 MiB float32{threads or ', one thread'}"
            yield Target(work, "90 % of a plain read", f"{share:.0f} %", share, 90)


def _share_of_float32(found, dtype):
    share = 100 * found.rate(f"statistics/{dtype}") / found.rate("statistics/float32")
    work = f"statistics, 64 MiB {dtype}, one thread"
    return Target(work, "90 % of float32's bytes per second", f"{share:.0f} %", share, 90)


def _write_share(found):
    share = 100 * found.ratio("write()", "tensor", LARGE)
    work = "tensor, 64 MiB float32"
    return Target(work, "85 % of a bare write()", f"{share:.0f} %", share, 85)


def _snapshot(found):
    copies = 1 / found.ratio("memcpy", "async", LARGE)
    work = "async, 64 MiB float32: the caller waits"
    return Target(work, "at most 1.2 memcpy", times(copies), copies, 1.2, at_most=True)


def _filtered(found):
    seconds = found.seconds("filtered", SMALL)["ours"]
    work = "a save that is filtered out"
    return Target(work, "less than 1 µs", duration(seconds), seconds, 1e-6, at_most=True)


def _growth(found):
    first, last = found.growth()
    ratio = last["seconds"] / first["seconds"]
    work = f"save {last['saves']:,} of a step"
    wanted = f"costs what save {first['saves']:,} costs (10 % more at most)"
    yield Target(work, wanted, times(ratio), ratio, 1.1, at_most=True)
    grown = last["resident_mib"] - first["resident_mib"]
    wanted = "resident memory flat (4 MiB more at most)"
    yield Target(work, wanted, f"{grown:+.1f} MiB", grown, 4, at_most=True)


def _training(found, model):
    added = 100 * (found.training(model, "tensor async") - 1)
    work = f"training step, {model}, tensor async"
    return Target(work, "5 % longer at most", f"{added:+.1f} %", added, 5, at_most=True)


def _comparing(found):
    row = found.comparing("tensors")
    seconds, memory = row["seconds"], row["resident_mib"]["ours"]
    ratio = seconds["ours"] / seconds["read"]
    work = "compare, 2 x 1 GiB"
    yield Target(work, "at most 1.5 plain reads", times(ratio), ratio, 1.5, at_most=True)
    ratio = seconds["peer"] / seconds["ours"]
    yield Target(work, "10x the speed of peer", times(ratio), ratio, 10)
    wanted = "at most 1 GiB of memory"
    yield Target(work, wanted, f"{memory:,.0f} MiB", memory, 1024, at_most=True)
    seconds = found.comparing("rows")["seconds"]["ours"]
    work = "compare, 100,000 rows of statistics"
    yield Target(work, "less than 1 s", duration(seconds), seconds, 1, at_most=True)

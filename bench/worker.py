"""One contestant of the tables of saves. A request names a tensor; the answer is seconds a save."""

import argparse
import functools
import os
import statistics
import threading
import time

from serve import remove_steps, serve, wait_for_files, write_config


class TorchTensors:
    def __init__(self):
        import torch

        self.torch = torch
        torch.set_num_threads(len(os.sched_getaffinity(0)))

    def make(self, dtype, size, layout):
        torch = self.torch
        kind = getattr(torch, dtype)
        count = max(size // kind.itemsize, 1)
        generator = torch.Generator().manual_seed(1)
        if kind.is_floating_point:
            tensor = torch.randn(count, generator=generator).to(kind)
        else:
            tensor = torch.randint(-1000, 1000, (count,), generator=generator, dtype=kind)
        if layout == "transposed":
            rows = 1024
            tensor = tensor[: count // rows * rows].view(-1, rows).T
        return tensor

    def clone(self, tensor):
        return tensor.clone()

    def to_numpy(self, tensor):
        return tensor.numpy()


class MindSporeTensors:
    def __init__(self):
        import mindspore as ms

        self.ms = ms
        ms.set_device("CPU")
        ms.set_context(mode=ms.PYNATIVE_MODE)

    def make(self, dtype, size, layout):
        import numpy as np

        assert layout == "contiguous"
        count = size // {"float32": 4, "bfloat16": 2}[dtype]
        values = np.random.default_rng(1).standard_normal(count, np.float32)
        return self.ms.Tensor(values).astype(getattr(self.ms, dtype))

    def clone(self, tensor):
        return tensor.copy()

    def to_numpy(self, tensor):
        # NumPy has no bfloat16: what a user does, and what it costs.
        return (tensor.float() if tensor.dtype == self.ms.bfloat16 else tensor).asnumpy()


FRAMEWORKS = {"pytorch": TorchTensors, "mindspore": MindSporeTensors}


class Msprobe:
    """Ours or the peer: the same calls."""

    def __init__(self, folder, framework, task, tensors):
        module = __import__(f"msprobe.{framework}", fromlist=["PrecisionDebugger"])
        self.dump = folder / "dump"
        self.writes_files = task in ("tensor", "async")
        self.debugger = module.PrecisionDebugger(
            str(write_config(folder, task, step=[10**6] if task == "filtered" else []))
        )

    def save(self, tensor):
        self.debugger.save(tensor, "x", False)

    def flush(self):
        self.debugger.step()  # the peer writes its records here

    def clean(self, count):
        if self.writes_files:
            wait_for_files(self.dump, count)
        remove_steps(self.dump)


class Writer:
    """A file for each save, no statistics."""

    def __init__(self, folder, write):
        self.folder = folder / "files"
        self.folder.mkdir()
        self.write = write
        self.next_name = 0
        self.lock = threading.Lock()

    def save(self, tensor):
        with self.lock:
            self.next_name += 1
            path = self.folder / str(self.next_name)
        self.write(tensor, path)

    def flush(self):
        pass

    def clean(self, count):
        for path in self.folder.iterdir():
            path.unlink()


def write_npy(tensors):
    import numpy as np

    return lambda tensor, path: np.save(path.with_suffix(".npy"), tensors.to_numpy(tensor))


def write_pt(tensors):
    return lambda tensor, path: tensors.torch.save(tensor, path.with_suffix(".pt"))


def write_safetensors(_tensors):
    from safetensors.torch import save_file

    return lambda tensor, path: save_file({"x": tensor}, path.with_suffix(".safetensors"))


def write_bare(tensors):
    def write(tensor, path):
        left = memoryview(tensors.to_numpy(tensor)).cast("B")
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        while left:
            left = left[os.write(file, left) :]
        os.close(file)

    return write


def copy_bare(tensors):
    """One memcpy into memory that is there already: what an async save cannot do without."""
    import numpy as np

    copies = {}

    def copy(tensor, _path):
        source = tensors.to_numpy(tensor)
        if source.nbytes not in copies:
            copies.clear()
            copies[source.nbytes] = source.copy()
        np.copyto(copies[source.nbytes], source)

    return copy


WRITERS = {
    "np.save": write_npy,
    "torch.save": write_pt,
    "safetensors": write_safetensors,
    "write()": write_bare,
    "memcpy": copy_bare,
}


class Graph:
    """`save` in a graph of MindSpore; the time of the same graph without it is taken off."""

    def __init__(self, folder, tensors):
        from msprobe.mindspore import save, step

        ms = tensors.ms
        ms.set_context(mode=ms.GRAPH_MODE)
        dump = str(folder / "graph")

        @ms.jit
        def with_save(data):
            save(dump, "x", data)
            return data + 1

        @ms.jit
        def without_save(data):
            return data + 1

        self.with_save, self.without_save, self.step = with_save, without_save, step
        self.dump = folder / "graph"

    def seconds(self, tensor, repeats):
        blocks = max(repeats // 20, 1)
        saving, without = [], []
        for _ in range(blocks):
            saving.append(self._seconds(self.with_save, tensor, repeats // blocks))
            without.append(self._seconds(self.without_save, tensor, repeats // blocks))
        return statistics.median(saving) - statistics.median(without)

    def _seconds(self, call, tensor, repeats):
        start = time.perf_counter()
        for _ in range(repeats):
            call(tensor)
        self.step()  # waits for the graphs
        seconds = (time.perf_counter() - start) / repeats
        remove_steps(self.dump)
        return seconds


def seconds_of_saves(contestant, per_thread, caller_only):
    """Gives the seconds of all saves, a thread for each list, and of ending the step."""
    barrier = threading.Barrier(len(per_thread))

    def save_all(saved):
        barrier.wait()
        for tensor in saved:
            contestant.save(tensor)

    others = [threading.Thread(target=save_all, args=[saved]) for saved in per_thread[1:]]
    for thread in others:
        thread.start()
    while barrier.n_waiting < len(others):
        time.sleep(0.0005)
    start = time.perf_counter()
    barrier.wait()
    for tensor in per_thread[0]:
        contestant.save(tensor)
    for thread in others:
        thread.join()
    waited = time.perf_counter()
    contestant.flush()
    return (waited if caller_only else time.perf_counter()) - start


def make_handler(framework, name, task, folder):
    tensors = FRAMEWORKS[framework]()
    # A tensor of 1 GiB takes seconds to make; the rounds of a row use one.
    make = functools.lru_cache(maxsize=1)(tensors.make)
    if name == "graph":
        graph = Graph(folder, tensors)
        return lambda request: graph.seconds(
            make(request["dtype"], request["size"], request["layout"]), request["repeats"]
        )
    if name == "msprobe":
        contestant = Msprobe(folder, framework, task, tensors)
    else:
        contestant = Writer(folder, WRITERS[name](tensors))

    def handle(request):
        tensor = make(request["dtype"], request["size"], request["layout"])
        threads, repeats = request["threads"], request["repeats"]
        # The peer frees the storage of a float8 tensor that it saves.
        if request["dtype"].startswith("float8"):
            per_thread = [[tensors.clone(tensor) for _ in range(repeats)] for _ in range(threads)]
        else:
            per_thread = [[tensor] * repeats]
            per_thread += [[tensors.clone(tensor)] * repeats for _ in range(threads - 1)]
        seconds = seconds_of_saves(contestant, per_thread, request["caller_only"])
        contestant.clean(threads * repeats)
        return seconds / (threads * repeats)

    return handle


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=["msprobe", "graph", *WRITERS])
    parser.add_argument("--framework", choices=FRAMEWORKS, default="pytorch")
    parser.add_argument("--task", default="statistics")
    arguments = parser.parse_args()
    serve(functools.partial(make_handler, arguments.framework, arguments.name, arguments.task))


if __name__ == "__main__":
    main()

import importlib.util

import pytest
from support import REPOSITORY


@pytest.fixture(scope="module")
def bench():
    path = REPOSITORY / "bench" / "__main__.py"
    specification = importlib.util.spec_from_file_location("bench_main", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("run_name", "name", "size"),
    [
        ("limit/read/4000", "limit/read", 4000),
        (
            "statistics/float32 transposed/67108864/real_time",
            "statistics/float32 transposed",
            2**26,
        ),
        ("pt file/1048576/real_time/threads:2", "pt file", 2**20),
    ],
)
def test_kernel_rows_take_the_median_and_split_name_and_size(bench, run_name, name, size):
    rows = [
        {"run_name": run_name, "aggregate_name": aggregate, "bytes_per_second": rate}
        for aggregate, rate in (("mean", 3.0), ("median", 2.0), ("stddev", 0.5))
    ]
    assert bench.kernel_rows(rows) == [{"name": name, "size": size, "bytes_per_second": 2.0}]

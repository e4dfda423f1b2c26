// Statistics, checksum and files by dtype and size, each beside what the machine can do at all with the same bytes in
// the same run: a plain read, memcpy, write(). `bytes_per_second` of Google Benchmark is the figure.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "checksum/crc32.h"
#include "format/file_io.h"
#include "format/tensor_file.h"
#include "pipeline/resources.h"
#include "pipeline/thread_team.h"
#include "session/value_pass.h"
#include "statistics/statistics.h"
#include "tensor/block_reader.h"

namespace {

using namespace msprobe;  // NOLINT(google-build-using-namespace): a program, not a header

constexpr std::int64_t kSmall = 4000;  // 1,000 float32
constexpr std::int64_t kMiddle = std::int64_t{1} << 20;
constexpr std::int64_t kLarge = std::int64_t{64} << 20;

// Values of a normal distribution as float32, or their bytes taken for another dtype where any bits will do.
std::vector<std::byte> make_bytes(std::int64_t size, DType dtype) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  std::mt19937 random(1);
  if (dtype == DType::kFloat32) {
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
      const float value = normal(random);
      std::memcpy(&bytes[i], &value, sizeof value);
    }
    return bytes;
  }
  // Exponents in the middle: finite in every dtype.
  std::uniform_int_distribution<int> byte(0x20, 0x3F);
  for (std::byte& b : bytes) b = static_cast<std::byte>(byte(random));
  return bytes;
}

// Times `work` by the processor's time of this thread.
template <class Work>
void measure(benchmark::State& state, Work work) {
  for (auto _ : state) work();
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

std::uint64_t sum_words(std::span<const std::byte> bytes) {
  // Sixteen sums of 64-bit words, which the compiler makes vectors of.
  std::array<std::uint64_t, 16> sums{};
  for (; bytes.size() >= sizeof sums; bytes = bytes.subspan(sizeof sums)) {
    std::array<std::uint64_t, 16> block;
    std::memcpy(block.data(), bytes.data(), sizeof block);
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += block[k];
  }
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

void plain_read(benchmark::State& state) {
  const auto bytes = make_bytes(state.range(0), DType::kFloat32);
  measure(state, [&] { benchmark::DoNotOptimize(sum_words(bytes)); });
}

void plain_memcpy(benchmark::State& state) {
  const auto bytes = make_bytes(state.range(0), DType::kFloat32);
  std::vector<std::byte> copy(bytes.size());
  measure(state, [&] {
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    benchmark::DoNotOptimize(copy.data());
    benchmark::ClobberMemory();
  });
}

// ---- all threads that the process may use: the limits, and the pass over the values of a save

// Times `work` by the clock on the wall: it counts the work of all threads once, and what other programs take.
template <class Work>
void measure_shared(benchmark::State& state, Work work) {
  const auto begin = std::chrono::steady_clock::now();
  for (auto _ : state) work();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  const auto bytes = static_cast<double>(state.iterations()) * static_cast<double>(state.range(0));
  state.counters["bytes_per_second"] = bytes / elapsed.count();
}

ThreadTeam& team() {
  static ThreadTeam shared(compute_thread_count());
  return shared;
}

void shared_read(benchmark::State& state) {
  const auto bytes = make_bytes(state.range(0), DType::kFloat32);
  const std::size_t parts = bytes.size() / kSegmentBytes;
  measure_shared(state, [&] {
    team().run(parts, [&](std::size_t i) {
      benchmark::DoNotOptimize(sum_words(std::span(bytes).subspan(i * kSegmentBytes, kSegmentBytes)));
    });
  });
}

Tensor tensor_of(const std::vector<std::byte>& bytes, DType dtype) {
  Tensor tensor;
  tensor.data = bytes.data();
  tensor.dtype = dtype;
  tensor.shape = {static_cast<std::int64_t>(bytes.size() / dtype_info(dtype).item_bytes)};
  tensor.strides = {1};
  return tensor;
}

void shared_pass(benchmark::State& state, DType dtype, const PassPlan& plan) {
  const auto bytes = make_bytes(state.range(0), dtype);
  const std::vector parts{tensor_of(bytes, dtype)};
  measure_shared(state, [&] { benchmark::DoNotOptimize(read_values(parts, plan, {}, &team())); });
}

void shared_copy(benchmark::State& state) {
  const auto bytes = make_bytes(state.range(0), DType::kFloat32);
  const Tensor tensor = tensor_of(bytes, DType::kFloat32);
  std::vector<std::byte> copy(bytes.size());
  measure_shared(state, [&] { copy_stored_shared(tensor.view(), copy, &team()); });
}

std::string scratch() { return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; }

void plain_write(benchmark::State& state) {
  const auto bytes = make_bytes(state.range(0), DType::kFloat32);
  const std::string path = scratch() + "/msprobe-bench-" + std::to_string(getpid());
  measure(state, [&] {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t count = write(fd, &bytes[done], bytes.size() - done);
      if (count <= 0) break;
      done += static_cast<std::size_t>(count);
    }
    close(fd);
    unlink(path.c_str());
  });
}

void statistics_of(benchmark::State& state, DType dtype) {
  const auto bytes = make_bytes(state.range(0), dtype);
  const std::array shape{state.range(0) / dtype_info(dtype).item_bytes};
  const std::array<std::int64_t, 1> strides{1};
  measure(state, [&] { benchmark::DoNotOptimize(compute_statistics({bytes.data(), dtype, shape, strides})); });
}

void statistics_of_transposed(benchmark::State& state) {
  const auto bytes = make_bytes(state.range(0), DType::kFloat32);
  const std::int64_t rows = 1024;
  const std::array shape{state.range(0) / 4 / rows, rows};
  const std::array<std::int64_t, 2> strides{1, shape[0]};
  measure(state, [&] {
    benchmark::DoNotOptimize(compute_statistics({bytes.data(), DType::kFloat32, shape, strides}));
  });
}

void checksum(benchmark::State& state) {
  const auto bytes = make_bytes(state.range(0), DType::kFloat32);
  measure(state, [&] {
    Crc32 crc;
    crc.update(bytes);
    benchmark::DoNotOptimize(crc.value());
  });
}

void statistics_and_checksum(benchmark::State& state) {
  const auto bytes = make_bytes(state.range(0), DType::kFloat32);
  const std::array shape{state.range(0) / 4};
  const std::array<std::int64_t, 1> strides{1};
  measure(state, [&] {
    StatisticsAccumulator statistics(DType::kFloat32);
    Crc32 crc;
    BlockReader reader({bytes.data(), DType::kFloat32, shape, strides}, ReadOrder::kLogical);
    for (auto block = reader.next(); !block.empty(); block = reader.next()) {
      statistics.add(block);
      crc.update(block);
    }
    benchmark::DoNotOptimize(statistics.result());
    benchmark::DoNotOptimize(crc.value());
  });
}

// A whole .pt file with its statistics and checksum.
void pt_file(benchmark::State& state, ThreadTeam* shared) {
  const auto bytes = make_bytes(state.range(0), DType::kFloat32);
  const std::vector parts{tensor_of(bytes, DType::kFloat32)};
  const Directory folder = Directory::create_root(scratch() + "/msprobe-bench-pt-" + std::to_string(getpid()));
  const auto save = [&] {
    NewFile file(folder);
    const auto writer = make_pt_writer(file, DType::kFloat32, parts[0].shape, parts[0].strides);
    const PassResult found = read_values(
        parts, {.order = ReadOrder::kStored, .with_crc = true},
        [&](std::span<const std::byte> block) { writer->write(block); }, shared);
    writer->finish(found.crc);
  };
  if (shared != nullptr) {
    measure_shared(state, save);
  } else {
    measure(state, save);
  }
  rmdir(folder.path().c_str());
}

constexpr std::array kDTypes{DType::kFloat32,      DType::kFloat64,    DType::kFloat16, DType::kBfloat16,
                             DType::kFloat8E4m3fn, DType::kFloat8E5m2, DType::kInt64,   DType::kInt32,
                             DType::kInt8,         DType::kUint8,      DType::kBool,    DType::kComplex64};

void add(const std::string& name, void (*function)(benchmark::State&)) {
  for (const std::int64_t size : {kSmall, kMiddle, kLarge})
    benchmark::RegisterBenchmark(name.c_str(), function)->Arg(size);
}

}  // namespace

int main(int argc, char** argv) {
  add("limit/read", plain_read);
  add("limit/memcpy", plain_memcpy);
  add("limit/write", plain_write);
  for (const DType dtype : kDTypes) {
    for (const std::int64_t size : {kSmall, kMiddle, kLarge}) {
      const std::string name = "statistics/" + std::string(dtype_info(dtype).name);
      benchmark::RegisterBenchmark(name.c_str(), [dtype](benchmark::State& state) {
        statistics_of(state, dtype);
      })->Arg(size);
    }
  }
  benchmark::RegisterBenchmark("statistics/float32 transposed", statistics_of_transposed)->Arg(kLarge);
  add("checksum", checksum);
  add("statistics and checksum", statistics_and_checksum);
  add("pt file", [](benchmark::State& state) { pt_file(state, nullptr); });
  const auto add_large = [](const std::string& name, auto function) {
    benchmark::RegisterBenchmark((name + ", all threads").c_str(), function)->Arg(kLarge);
  };
  add_large("limit/read", shared_read);
  add_large("limit/memcpy", shared_copy);
  for (const DType dtype : {DType::kFloat32, DType::kBfloat16, DType::kFloat8E4m3fn}) {
    add_large("statistics/" + std::string(dtype_info(dtype).name),
              [dtype](benchmark::State& state) { shared_pass(state, dtype, {}); });
  }
  add_large("statistics and checksum", [](benchmark::State& state) {
    shared_pass(state, DType::kFloat32, {.order = ReadOrder::kLogical, .with_crc = true});
  });
  add_large("pt file", [](benchmark::State& state) { pt_file(state, &team()); });
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

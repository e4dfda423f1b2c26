#include "compare/file_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "msprobe/error.h"

namespace msprobe {
namespace {

// Of fixed size, so that no result depends on the number of threads.
constexpr std::int64_t kSegmentValues = std::int64_t{4} << 20;

// Counts in values, of which an item can hold two.
class ValueReader {
 public:
  ValueReader(const TensorFileReader& file, std::int64_t block_values)
      : file_(file), per_item_(dtype_info(file.info().dtype).values_per_item), buffer_(to_bytes(block_values)) {}

  [[nodiscard]] std::span<const std::byte> read(std::int64_t first, std::int64_t count) {
    const std::span<std::byte> block = std::span(buffer_).first(to_bytes(count));
    file_.read(to_bytes(first), block);
    return block;
  }

 private:
  [[nodiscard]] std::size_t to_bytes(std::int64_t values) const {
    return static_cast<std::size_t>(values / per_item_) * dtype_info(file_.info().dtype).item_bytes;
  }

  const TensorFileReader& file_;
  std::int64_t per_item_;
  std::vector<std::byte> buffer_;
};

std::int64_t values_of(const TensorFileReader& file) {
  return file.numel() * dtype_info(file.info().dtype).values_per_item;
}

std::int64_t block_values_of(const TensorFileReader& file) {
  const DTypeInfo& info = dtype_info(file.info().dtype);
  return static_cast<std::int64_t>(file.block_bytes() / info.item_bytes) * info.values_per_item;
}

// Calls part(i) for each segment; alone where there is no team or one segment only.
void for_each_segment(std::size_t segments, ThreadTeam* team, const std::function<void(std::size_t)>& part) {
  if (team != nullptr && segments > 1) return team->run(segments, part);
  for (std::size_t i = 0; i < segments; ++i) part(i);
}

class Comparison {
 public:
  Comparison(const TensorFileReader& golden, const TensorFileReader& target, const FileComparison& how)
      : golden_(golden),
        target_(target),
        how_(how),
        values_(values_of(golden)),
        block_values_(std::min(kSegmentValues, std::max(block_values_of(golden), block_values_of(target)))),
        same_dtype_(golden.info().dtype == target.info().dtype) {
    if (values_of(target) != values_) {
      throw Error("found " + std::to_string(values_of(target)) + " values in the target and " +
                  std::to_string(values_) + " in golden");
    }
    for (std::int64_t first = 0; first < values_; first += kSegmentValues) segments_.emplace_back(new_errors(first));
  }

  PairErrors run(ThreadTeam* team) {
    for_each_segment(segments_.size(), team, [&](std::size_t i) { compare(i); });
    const auto is_skipped = [](const Segment& segment) { return !segment.differs; };
    PairErrors equal;
    equal.count = values_;
    if (same_dtype_ && std::ranges::all_of(segments_, is_skipped)) return equal;
    for_each_segment(segments_.size(), team, [&](std::size_t i) {
      if (is_skipped(segments_[i])) add_equal(segments_[i].errors, begin_of(i), end_of(i));
    });
    PairAccumulator errors = new_errors(0);
    for (const Segment& segment : segments_) errors.merge(segment.errors);
    return errors.result();
  }

 private:
  struct Segment {
    explicit Segment(const PairAccumulator& accumulator) : errors(accumulator) {}
    PairAccumulator errors;
    bool differs = false;  // false: its bits are the same, and nothing is added yet
  };

  [[nodiscard]] PairAccumulator new_errors(std::int64_t first) const {
    return PairAccumulator(golden_.info().dtype, target_.info().dtype, how_.tolerance, first, how_.saved);
  }
  [[nodiscard]] std::int64_t begin_of(std::size_t segment) const {
    return static_cast<std::int64_t>(segment) * kSegmentValues;
  }
  [[nodiscard]] std::int64_t end_of(std::size_t segment) const {
    return std::min(values_, begin_of(segment) + kSegmentValues);
  }

  void compare(std::size_t index) {
    Segment& segment = segments_[index];
    ValueReader golden(golden_, block_values_);
    ValueReader target(target_, block_values_);
    for (std::int64_t first = begin_of(index); first < end_of(index); first += block_values_) {
      const std::int64_t count = std::min(block_values_, end_of(index) - first);
      const auto g = golden.read(first, count);
      const auto t = target.read(first, count);
      if (how_.bytes_done != nullptr) how_.bytes_done->fetch_add(g.size(), std::memory_order_relaxed);
      const bool equal = same_dtype_ && std::memcmp(g.data(), t.data(), g.size()) == 0;
      if (!segment.differs) {
        if (equal) continue;
        add_equal(segment.errors, begin_of(index), first);  // overwrites no block: it has its own buffer
        segment.differs = true;
      }
      equal ? segment.errors.add_equal(g) : segment.errors.add(g, t);
    }
  }

  void add_equal(PairAccumulator& errors, std::int64_t first, std::int64_t end) const {
    if (first == end) return;
    ValueReader golden(golden_, block_values_);
    for (; first < end; first += block_values_)
      errors.add_equal(golden.read(first, std::min(block_values_, end - first)));
  }

  const TensorFileReader& golden_;
  const TensorFileReader& target_;
  const FileComparison& how_;
  std::int64_t values_;
  std::int64_t block_values_;
  bool same_dtype_;
  std::vector<Segment> segments_;
};

}  // namespace

PairErrors compare_files(const TensorFileReader& golden, const TensorFileReader& target, const FileComparison& how,
                         ThreadTeam* team) {
  return Comparison(golden, target, how).run(team);
}

double file_scale(const TensorFileReader& file, ThreadTeam* team) {
  const std::int64_t values = values_of(file);
  const std::int64_t block_values = std::min(kSegmentValues, block_values_of(file));
  const auto segments = static_cast<std::size_t>((values + kSegmentValues - 1) / kSegmentValues);
  const DType dtype = file.info().dtype;
  std::vector<PairAccumulator> parts(segments, PairAccumulator(dtype, dtype, {}));
  for_each_segment(segments, team, [&](std::size_t i) {
    ValueReader reader(file, block_values);
    const std::int64_t begin = static_cast<std::int64_t>(i) * kSegmentValues;
    const std::int64_t end = std::min(values, begin + kSegmentValues);
    for (std::int64_t first = begin; first < end; first += block_values) {
      parts[i].add_equal(reader.read(first, std::min(block_values, end - first)));
    }
  });
  PairAccumulator all(dtype, dtype, {});
  for (const PairAccumulator& part : parts) all.merge(part);
  return values == 0 ? 0.0 : all.result().golden_norm / std::sqrt(static_cast<double>(values));
}

}  // namespace msprobe

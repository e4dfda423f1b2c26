#include "session/value_pass.h"

#include <algorithm>
#include <optional>

#include "checksum/crc32.h"
#include "format/widen.h"

namespace msprobe {
namespace {

// What comes of a stretch of the values.
class Gathered {
 public:
  Gathered(DType dtype, const PassPlan& plan)
      : dtype_(dtype), with_crc_(plan.with_crc), floats_per_item_(plan.crc_of_npy ? floats_per_item(dtype) : 0) {
    if (plan.with_statistics) statistics_.emplace(dtype);
  }

  // `wide`: room for widened elements, which one block leaves to the next.
  void add(std::span<const std::byte> block, std::int64_t repeat, std::vector<float>& wide) {
    if (statistics_) statistics_->add(block, repeat);
    if (!with_crc_) return;
    if (floats_per_item_ == 0) return add_to_crc(block);
    wide.resize(block.size() / dtype_info(dtype_).item_bytes * floats_per_item_);
    widen(dtype_, block, wide);
    add_to_crc(std::as_bytes(std::span(wide)));
  }

  void merge(const Gathered& next) {
    if (statistics_) statistics_->merge(*next.statistics_);
    crc_.append(next.crc_, next.crc_bytes_);
    crc_bytes_ += next.crc_bytes_;
  }

  [[nodiscard]] PassResult result(std::int64_t zeros) {
    if (statistics_) statistics_->add_zeros(zeros);
    return {statistics_ ? statistics_->result() : Statistics{}, crc_.value()};
  }

 private:
  void add_to_crc(std::span<const std::byte> bytes) {
    crc_.update(bytes);
    crc_bytes_ += bytes.size();
  }

  DType dtype_;
  bool with_crc_;
  std::size_t floats_per_item_;
  std::optional<StatisticsAccumulator> statistics_;
  Crc32 crc_;
  std::uint64_t crc_bytes_ = 0;
};

// A number of elements, cut into segments.
struct Segments {
  std::int64_t elements;
  std::int64_t length;  // of all but the last

  Segments(std::int64_t count, DType dtype)
      : elements(count), length(static_cast<std::int64_t>(kSegmentBytes / dtype_info(dtype).item_bytes)) {}
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>((elements + length - 1) / length); }
  [[nodiscard]] ElementRange at(std::size_t index) const {
    const std::int64_t first = static_cast<std::int64_t>(index) * length;
    return {first, std::min(length, elements - first)};
  }
};

// A helper is awake in 13 us, but where all cores are busy the caller may wait some milliseconds for the last part of
// one: as long as it takes to read 16 MiB alone.
constexpr std::size_t kFewestSharedSegments = 4;

bool is_shared(const Segments& segments, const ThreadTeam* team) {
  return team != nullptr && team->threads() > 1 && segments.count() >= kFewestSharedSegments;
}

template <class Visit>
void for_each_block(const TensorView& view, ReadOrder order, ElementRange range, Visit visit) {
  BlockReader reader(view, order, range);
  for (auto block = reader.next(); !block.empty(); block = reader.next()) visit(block, reader.repeat());
}

void read_part(const TensorView& view, const PassPlan& plan, const BlockSink& sink, ThreadTeam* team, Gathered& total) {
  const Segments segments(read_count(view, plan.order), view.dtype);
  const auto read = [&](std::size_t index, const BlockSink& rider) {
    Gathered segment(view.dtype, plan);
    std::vector<float> wide;
    for_each_block(view, plan.order, segments.at(index), [&](std::span<const std::byte> block, std::int64_t repeat) {
      segment.add(block, repeat, wide);
      if (rider) rider(block);
    });
    return segment;
  };
  if (!is_shared(segments, team)) {
    for (std::size_t i = 0; i < segments.count(); ++i) total.merge(read(i, sink));
    return;
  }
  std::vector<Gathered> results(segments.count(), Gathered(view.dtype, plan));
  std::function<void()> write;
  if (sink) {
    write = [&] {
      for_each_block(view, plan.order, {}, [&](std::span<const std::byte> block, std::int64_t) { sink(block); });
    };
  }
  team->run(
      segments.count(), [&](std::size_t i) { results[i] = read(i, {}); }, write);
  for (const Gathered& segment : results) total.merge(segment);
}

}  // namespace

PassResult read_values(const std::vector<Tensor>& parts, const PassPlan& plan, const BlockSink& sink,
                       ThreadTeam* team) {
  if (parts.empty()) return {};
  Gathered total(parts.front().dtype, plan);
  for (const Tensor& part : parts) read_part(part.view(), plan, sink, team, total);
  return total.result(plan.zeros);
}

void copy_stored_shared(const TensorView& view, std::span<std::byte> out, ThreadTeam* team) {
  const std::size_t item_bytes = dtype_info(view.dtype).item_bytes;
  const Segments segments(static_cast<std::int64_t>(out.size() / item_bytes), view.dtype);
  if (!is_shared(segments, team)) return copy_stored(view, out);
  team->run(segments.count(), [&](std::size_t i) {
    const ElementRange range = segments.at(i);
    const std::size_t begin = static_cast<std::size_t>(range.first) * item_bytes;
    copy_stored(view, out.subspan(begin, static_cast<std::size_t>(range.count) * item_bytes), range.first);
  });
}

}  // namespace msprobe

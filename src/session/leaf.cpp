#include "session/leaf.h"

#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "checksum/crc32.h"
#include "format/file_io.h"
#include "format/tensor_file.h"
#include "format/widen.h"
#include "session/naming.h"
#include "tensor/block_reader.h"
#include "tensor/layout.h"

namespace msprobe {
namespace {

std::int64_t element_count(const TensorLeaf& leaf) {
  if (leaf.sparse) return leaf.sparse->dense_numel;
  std::int64_t count = 0;
  for (const Tensor& part : leaf.parts) count += numel(part.view());
  return count;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A file under a temporary name while its bytes stream in. A failure is kept: the statistics go on without the file.
class FileSink {
 public:
  FileSink(const TensorLeaf& leaf, const Directory& folder, const std::string& name) : file_(folder, name) {
    if (leaf.file_content) {
      file_.write(bytes_of(*leaf.file_content));
      return;
    }
    const Tensor& part = leaf.parts.front();
    if (leaf.file_format == FileFormat::kPt) {
      writer_ = make_pt_writer(file_, part.dtype, part.shape, stored_strides(part.view()));
    } else {
      writer_ = make_npy_writer(file_, part.dtype, part.shape);
    }
  }

  void write(std::span<const std::byte> block) noexcept {
    if (failure_ || !writer_) return;
    try {
      writer_->write(block);
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  // Returns the name that the file got. Throws what went wrong.
  std::string commit(const std::string& key, const std::string& indexes, std::string_view suffix, ErrorBook& errors) {
    if (failure_) std::rethrow_exception(failure_);
    if (writer_) writer_->finish();
    for (int attempt = 1;; ++attempt) {
      std::string name = file_name(key, indexes, suffix, attempt);
      if (file_.commit(name)) return name;
      errors.warn_once("file name taken", "two saved tensors have the file name \"" + name +
                                              "\"; the second gets #2 behind it, data_name says which is which");
    }
  }

 private:
  NewFile file_;
  std::unique_ptr<TensorFileWriter> writer_;
  std::exception_ptr failure_;
};

// CRC-32 of the dense bytes of a sparse tensor: the stored runs with zeros between them.
std::uint32_t sparse_checksum(const TensorLeaf& leaf) {
  const SparseLayout& layout = *leaf.sparse;
  const std::size_t item = leaf.parts.empty() ? 1 : dtype_info(leaf.parts.front().dtype).item_bytes;
  const auto bytes_at = [&](std::int64_t elements) { return static_cast<std::uint64_t>(elements) * item; };
  Crc32 crc;
  std::int64_t at = 0;
  std::size_t run = 0;
  const std::size_t run_bytes = bytes_at(layout.run_length);
  for (const Tensor& part : leaf.parts) {
    BlockReader reader(part.view(), ReadOrder::kLogical);
    std::size_t in_run = 0;
    for (auto block = reader.next(); !block.empty(); block = reader.next()) {
      while (!block.empty() && run < layout.starts.size()) {
        if (in_run == 0) {
          crc.update_zeros(bytes_at(layout.starts[run] - at));
          at = layout.starts[run] + layout.run_length;
        }
        const std::size_t count = std::min(block.size(), run_bytes - in_run);
        crc.update(block.first(count));
        block = block.subspan(count);
        in_run += count;
        if (in_run == run_bytes) {
          in_run = 0;
          ++run;
        }
      }
    }
  }
  crc.update_zeros(bytes_at(layout.dense_numel - at));
  return crc.value();
}

bool has_broadcast(const Tensor& part) { return make_layout(part.view(), ReadOrder::kStored).repeat > 1; }

// The checksum of one leaf, over its bytes or over those that a .npy file holds.
class LeafChecksum {
 public:
  explicit LeafChecksum(bool of_npy) noexcept : of_npy_(of_npy) {}

  void update(DType dtype, std::span<const std::byte> block) {
    const std::size_t floats = of_npy_ ? floats_per_item(dtype) : 0;
    if (floats == 0) return crc_.update(block);
    wide_.resize(block.size() / dtype_info(dtype).item_bytes * floats);
    widen(dtype, block, wide_);
    crc_.update(std::as_bytes(std::span(wide_)));
  }
  [[nodiscard]] std::uint32_t value() const noexcept { return crc_.value(); }

 private:
  Crc32 crc_;
  const bool of_npy_;
  std::vector<float> wide_;
};

// The one pass over the values, with what rides on it. `checksum` and `sink` may be null.
Statistics read_values(const TensorLeaf& leaf, ReadOrder order, bool with_statistics, LeafChecksum* checksum,
                       FileSink* sink) {
  std::optional<StatisticsAccumulator> statistics;
  std::int64_t count = 0;
  for (const Tensor& part : leaf.parts) {
    if (with_statistics && !statistics) statistics.emplace(part.dtype);
    const TensorView view = part.view();
    count += numel(view);
    BlockReader reader(view, order);
    for (auto block = reader.next(); !block.empty(); block = reader.next()) {
      if (statistics) statistics->add(block, reader.repeat());
      if (checksum != nullptr) checksum->update(part.dtype, block);
      if (sink != nullptr) sink->write(block);
    }
  }
  if (!statistics) return {};
  if (leaf.sparse) statistics->add_zeros(leaf.sparse->dense_numel - count);
  return statistics->result();
}

std::uint32_t checksum_of(const std::vector<Tensor>& parts, bool of_npy) {
  LeafChecksum checksum(of_npy);
  for (const Tensor& part : parts) {
    BlockReader reader(part.view(), ReadOrder::kLogical);
    for (auto block = reader.next(); !block.empty(); block = reader.next()) checksum.update(part.dtype, block);
  }
  return checksum.value();
}

// The checksum where it does not ride on the pass over the values. Nothing: there are no bytes.
std::optional<std::uint32_t> separate_checksum(const TensorLeaf& leaf) {
  if (!leaf.checksum_parts.empty()) return checksum_of(leaf.checksum_parts, false);
  if (leaf.sparse) return sparse_checksum(leaf);
  if (!leaf.parts.empty()) return checksum_of(leaf.parts, leaf.checksum_of_npy);
  return std::nullopt;
}

// How the values are read: in the fastest order, unless a file or a checksum needs one of its own. A .pt file and a
// checksum agree on the order but where a dimension is broadcast: then the checksum takes a pass of its own.
struct Pass {
  ReadOrder order = ReadOrder::kAny;
  bool crc_rides = false;
};

Pass plan_pass(const TensorLeaf& leaf, bool with_checksum, bool with_file) {
  const bool is_pt = with_file && leaf.file_format == FileFormat::kPt;
  const bool may_ride = with_checksum && leaf.checksum_parts.empty() && !leaf.sparse && !leaf.parts.empty();
  const bool crc_rides = may_ride && !(is_pt && has_broadcast(leaf.parts.front()));
  if (is_pt) return {ReadOrder::kStored, crc_rides};
  return {crc_rides || with_file ? ReadOrder::kLogical : ReadOrder::kAny, crc_rides};
}

}  // namespace

LeafResult process_leaf(const TensorLeaf& leaf, const std::string& key, const std::string& indexes, LeafWork work,
                        StepFolder& folder, ErrorBook& errors, std::vector<LeafFailure>& failures) {
  LeafResult result;
  result.has_checksum_field = work.with_checksum;
  const auto failed = [&] {
    failures.push_back({indexes.empty() ? key : key + "." + indexes, std::current_exception()});
  };

  const std::string_view suffix = leaf.file_format == FileFormat::kPt ? ".pt" : ".npy";
  // A type that only the framework can write comes with its bytes; without them it has no file.
  bool writes_values = false;
  std::optional<FileSink> sink;
  try {
    writes_values = leaf.parts.size() == 1 && !leaf.file_content && !leaf.sparse && leaf.checksum_parts.empty() &&
                    (work.with_empty_file || element_count(leaf) > 0);
    if (work.with_file && (leaf.file_content || writes_values)) {
      sink.emplace(leaf, folder.tensors(), file_name(key, indexes, suffix));
    }
  } catch (...) {
    failed();
  }
  try {
    FileSink* const rider = sink && writes_values ? &*sink : nullptr;
    const Pass pass = plan_pass(leaf, work.with_checksum, rider != nullptr);
    LeafChecksum checksum(leaf.checksum_of_npy);
    result.statistics =
        read_values(leaf, pass.order, work.with_statistics, pass.crc_rides ? &checksum : nullptr, rider);
    if (pass.crc_rides) {
      result.checksum = checksum.value();
    } else if (work.with_checksum) {
      result.checksum = separate_checksum(leaf);
    }
  } catch (...) {
    failed();
    return result;
  }
  if (sink) {
    try {
      result.data_name = sink->commit(key, indexes, suffix, errors);
    } catch (...) {
      failed();
    }
  }
  return result;
}

namespace {

std::size_t stored_bytes(const Tensor& part) {
  const Layout layout = make_layout(part.view(), ReadOrder::kStored);
  return static_cast<std::size_t>(layout.count) * layout.item_bytes;
}

void copy_part(Tensor& part, BufferPool& pool) {
  const std::size_t bytes = stored_bytes(part);
  if (bytes == 0) return;
  const std::shared_ptr<std::byte> buffer = pool.acquire(bytes);
  const TensorView view = part.view();
  copy_stored(view, {buffer.get(), bytes});
  part.strides = stored_strides(view);
  part.data = buffer.get();
  part.negate_real = part.negate_imag = false;
  part.owner = buffer;
}

}  // namespace

std::size_t snapshot_bytes(const TensorLeaf& leaf) {
  std::size_t bytes = leaf.file_content ? leaf.file_content->size() : 0;
  for (const auto* parts : {&leaf.parts, &leaf.checksum_parts}) {
    for (const Tensor& part : *parts) bytes += BufferPool::capacity_for(stored_bytes(part));
  }
  return bytes;
}

void take_snapshot(TensorLeaf& leaf, BufferPool& pool) {
  for (auto* parts : {&leaf.parts, &leaf.checksum_parts}) {
    for (Tensor& part : *parts) copy_part(part, pool);
  }
}

}  // namespace msprobe

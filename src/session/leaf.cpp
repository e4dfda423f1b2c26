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
#include "session/value_pass.h"
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

  // `crc`: of all blocks. Returns the name that the file got. Throws what went wrong.
  std::string commit(const std::string& key, const std::string& indexes, std::string_view suffix, std::uint32_t crc,
                     ErrorBook& errors) {
    if (failure_) std::rethrow_exception(failure_);
    if (writer_) writer_->finish(crc);
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

// The checksum where it does not ride on the pass over the values. Nothing: there are no bytes.
std::optional<std::uint32_t> separate_checksum(const TensorLeaf& leaf, ThreadTeam* team) {
  PassPlan plan{.order = ReadOrder::kLogical, .with_statistics = false, .with_crc = true};
  if (!leaf.checksum_parts.empty()) return read_values(leaf.checksum_parts, plan, {}, team).crc;
  if (leaf.sparse) return sparse_checksum(leaf);
  plan.crc_of_npy = leaf.checksum_of_npy;
  if (!leaf.parts.empty()) return read_values(leaf.parts, plan, {}, team).crc;
  return std::nullopt;
}

// The one pass, and whether its CRC is the checksum of the record too. The values are read in the fastest order, unless
// a file or a checksum needs one of its own. A .pt file and a checksum are of the same bytes but where a dimension is
// broadcast, or where the checksum is of another dtype: then the checksum takes a pass of its own.
struct LeafPass {
  PassPlan plan;
  bool crc_is_checksum = false;
};

LeafPass plan_pass(const TensorLeaf& leaf, const LeafWork& work, bool with_file) {
  LeafPass pass;
  pass.plan.with_statistics = work.with_statistics;
  if (leaf.sparse) {
    pass.plan.zeros = leaf.sparse->dense_numel;
    for (const Tensor& part : leaf.parts) pass.plan.zeros -= numel(part.view());
  }
  const bool may_ride = work.with_checksum && leaf.checksum_parts.empty() && !leaf.sparse && !leaf.parts.empty();
  if (with_file && leaf.file_format == FileFormat::kPt) {
    const Tensor& part = leaf.parts.front();
    pass.crc_is_checksum =
        may_ride && !has_broadcast(part) && !(leaf.checksum_of_npy && floats_per_item(part.dtype) > 0);
    pass.plan.order = ReadOrder::kStored;
    pass.plan.with_crc = true;
    return pass;
  }
  pass.crc_is_checksum = may_ride;
  if (may_ride || with_file) pass.plan.order = ReadOrder::kLogical;
  pass.plan.with_crc = may_ride;
  pass.plan.crc_of_npy = leaf.checksum_of_npy;
  return pass;
}

}  // namespace

LeafResult process_leaf(const TensorLeaf& leaf, const std::string& key, const std::string& indexes,
                        const LeafWork& work, StepFolder& folder, ErrorBook& errors,
                        std::vector<LeafFailure>& failures) {
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
  std::uint32_t crc = 0;
  try {
    BlockSink rider;
    if (sink && writes_values) rider = [&](std::span<const std::byte> block) { sink->write(block); };
    const LeafPass pass = plan_pass(leaf, work, static_cast<bool>(rider));
    const PassResult found = read_values(leaf.parts, pass.plan, rider, work.team);
    result.statistics = found.statistics;
    crc = found.crc;
    if (pass.crc_is_checksum) {
      result.checksum = crc;
    } else if (work.with_checksum) {
      result.checksum = separate_checksum(leaf, work.team);
    }
  } catch (...) {
    failed();
    return result;
  }
  if (sink) {
    try {
      result.data_name = sink->commit(key, indexes, suffix, crc, errors);
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

void copy_part(Tensor& part, BufferPool& pool, ThreadTeam* team) {
  const std::size_t bytes = stored_bytes(part);
  if (bytes == 0) return;
  const std::shared_ptr<std::byte> buffer = pool.acquire(bytes);
  const TensorView view = part.view();
  copy_stored_shared(view, {buffer.get(), bytes}, team);
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

void take_snapshot(TensorLeaf& leaf, BufferPool& pool, ThreadTeam* team) {
  for (auto* parts : {&leaf.parts, &leaf.checksum_parts}) {
    for (Tensor& part : *parts) copy_part(part, pool, team);
  }
}

}  // namespace msprobe

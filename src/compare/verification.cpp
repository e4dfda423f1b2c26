#include "compare/verification.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

#include "checksum/crc32.h"
#include "compare/dump.h"
#include "compare/text.h"
#include "compare/tolerance.h"
#include "format/json_text.h"
#include "format/record.h"
#include "format/tensor_reader.h"
#include "format/widen.h"
#include "msprobe/error.h"
#include "pipeline/resources.h"
#include "pipeline/thread_team.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;

constexpr double kExactSums = 1e-12;  // SPEC.md, section 5

std::string differs(std::string_view what, const std::string& recorded, const std::string& found) {
  return std::string(what) + " is recorded as " + recorded + ", the file has " + found;
}

// What is wrong with a recorded statistic beside the one of the values; nothing: right, or not recorded.
std::optional<std::string> check_statistic(std::string_view name, const Extremum& recorded, const Extremum& found,
                                           double allowed) {
  const auto r = number_value(recorded);
  const auto f = number_value(found);
  if (!r || same_number(recorded, found)) return std::nullopt;
  if (f && std::isfinite(*r) && std::isfinite(*f) && std::abs(*r - *f) <= allowed) return std::nullopt;
  return differs(name, number_text(recorded), number_text(found));
}

Extremum optional_number(const std::optional<double>& number) { return number ? Extremum(*number) : Extremum(); }

std::optional<std::string> check_statistics(const RecordedTensor& recorded, const Statistics& found, DType dtype,
                                            std::int64_t count, bool exact) {
  const double norm = found.norm.value_or(0);
  const double scale = count > 0 && std::isfinite(norm) ? norm / std::sqrt(static_cast<double>(count)) : 0.0;
  const double rtol = exact ? kExactSums : default_rtol(dtype) + 1e-6;
  const double extremes = exact ? 0.0 : rtol * std::abs(number_value(found.max).value_or(0));
  if (auto wrong = check_statistic("Max", recorded.max, found.max, extremes)) return wrong;
  if (auto wrong = check_statistic("Min", recorded.min, found.min, extremes)) return wrong;
  if (auto wrong = check_statistic("Mean", recorded.mean, optional_number(found.mean), rtol * scale)) return wrong;
  if (auto wrong = check_statistic("Norm", recorded.norm, optional_number(found.norm), rtol * norm)) return wrong;
  if (!exact) return std::nullopt;  // the peer has no counts
  if (recorded.nan_count != found.nan_count) {
    return differs("nan_count", std::to_string(recorded.nan_count), std::to_string(found.nan_count));
  }
  if (recorded.pos_inf_count != found.pos_inf_count) {
    return differs("pos_inf_count", std::to_string(recorded.pos_inf_count), std::to_string(found.pos_inf_count));
  }
  if (recorded.neg_inf_count != found.neg_inf_count) {
    return differs("neg_inf_count", std::to_string(recorded.neg_inf_count), std::to_string(found.neg_inf_count));
  }
  return std::nullopt;
}

// A .npy file holds some dtypes in a wider one, and then two values of an item side by side.
std::optional<std::string> check_header(const RecordedTensor& recorded, const TensorFileReader& file) {
  const TensorFileInfo& info = file.info();
  const auto dtype = recorded_dtype(recorded.form->dtype);
  if (dtype && *dtype != info.dtype && !(info.format == FileFormat::kNpy && widened_dtype(*dtype) == info.dtype)) {
    return differs("dtype", recorded.form->dtype, std::string(dtype_info(info.dtype).name));
  }
  std::vector<std::optional<std::int64_t>> shape(info.shape.begin(), info.shape.end());
  const bool is_unpacked = dtype && dtype_info(*dtype).values_per_item != dtype_info(info.dtype).values_per_item;
  if (recorded.form->shape != shape && !is_unpacked) {
    return differs("shape", shape_text(recorded.form->shape), shape_text(info.shape));
  }
  return std::nullopt;
}

class Verifier {
 public:
  explicit Verifier(const VerificationOptions& options) : options_(options), team_(compute_thread_count()) {}

  void verify_folder(const RankFolder& folder) {
    ++result_.folders;
    FolderRecords records;
    try {
      records = read_folder(folder.path);
    } catch (const Error& error) {
      return damage(error.what());
    }
    std::vector<const RecordedTensor*> tensors;
    for (const Record& record : records.records) {
      ++result_.records;
      for (const RecordedLeaf& leaf : record.leaves) {
        const auto* tensor = std::get_if<RecordedTensor>(&leaf.content);
        if (tensor != nullptr && !tensor->data_name.empty()) tensors.push_back(tensor);
      }
    }
    team_.run(tensors.size(), [&](std::size_t i) { verify_tensor(folder.path, *tensors[i], records); });
    note_unrecorded(fs::path(folder.path) / "dump_tensor_data", tensors);
  }

  // A file without a record.
  void verify_file(const std::string& path) {
    check(path, [&] {
      const TensorFileReader file(path);
      file.verify_checksums();
      static_cast<void>(read_content(file, options_.bytes_done));
      return std::optional<std::string>();
    });
  }

  VerificationResult take() { return std::move(result_); }

 private:
  void verify_tensor(const std::string& folder, const RecordedTensor& recorded, const FolderRecords& records) {
    std::string path;
    try {
      path = tensor_path(folder, recorded).value_or("");
    } catch (const Error& error) {
      return damage(error.what());
    }
    check(path, [&]() -> std::optional<std::string> {
      const TensorFileReader file(path);
      file.verify_checksums();
      if (auto wrong = check_header(recorded, file)) return wrong;
      const FileContent content = read_content(file, options_.bytes_done);
      const DType dtype = recorded_dtype(recorded.form->dtype).value_or(file.info().dtype);
      const bool is_of_this_tool = records.exact && !records.debug_json.empty();
      const std::int64_t count = file.numel() * dtype_info(file.info().dtype).values_per_item;
      if (auto wrong = check_statistics(recorded, content.statistics, dtype, count, is_of_this_tool)) return wrong;
      std::string crc;
      append_hex(crc, content.crc, 8);
      const bool is_of_its_bytes = dtype == file.info().dtype;  // and not widened
      if (is_of_its_bytes && !recorded.md5.empty() && recorded.md5 != crc) return differs("md5", recorded.md5, crc);
      return std::nullopt;
    });
  }

  // `read` tells what is wrong; what it throws is damage, too.
  template <class Read>
  void check(const std::string& path, Read read) {
    try {
      const std::optional<std::string> wrong = read();
      if (wrong) return damage(path + ": " + *wrong);
      const std::scoped_lock lock(mutex_);
      ++result_.files;
    } catch (const UnsupportedFile& unsupported) {
      const std::scoped_lock lock(mutex_);
      result_.not_checked.emplace_back(unsupported.what());
    } catch (const Error& error) {
      damage(error.what());
    }
  }

  void damage(const std::string& what) {
    const std::scoped_lock lock(mutex_);
    ++result_.damages;
    if (options_.on_damage) options_.on_damage(what);
  }

  void note_unrecorded(const fs::path& folder, const std::vector<const RecordedTensor*>& tensors) {
    std::unordered_set<std::string_view> named;
    for (const RecordedTensor* tensor : tensors) named.insert(tensor->data_name);
    std::error_code ignored;
    for (fs::directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
      const std::string name = at->path().filename();
      if (!named.contains(name)) result_.unrecorded.push_back(at->path());
    }
  }

  const VerificationOptions& options_;
  ThreadTeam team_;
  std::mutex mutex_;
  VerificationResult result_;  // guarded by mutex_ while the team is at work
};

}  // namespace

FileContent read_content(const TensorFileReader& file, std::atomic<std::uint64_t>* bytes_done) {
  StatisticsAccumulator statistics(file.info().dtype);
  Crc32 crc;
  std::vector<std::byte> buffer(file.block_bytes());
  for (std::uint64_t offset = 0; offset < file.total_bytes(); offset += buffer.size()) {
    const auto block = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), file.total_bytes() - offset));
    file.read(offset, block);
    statistics.add(block);
    crc.update(block);
    if (bytes_done != nullptr) bytes_done->fetch_add(block.size(), std::memory_order_relaxed);
  }
  return {statistics.result(), crc.value()};
}

VerificationResult verify_dump(const std::string& path, const VerificationOptions& options) {
  const Dump dump = open_dump(path);
  Verifier verifier(options);
  if (dump.kind == PathKind::kTensorFile) verifier.verify_file(path);
  for (const RankFolder& folder : selected_folders(dump.folders, options.step, options.rank)) {
    verifier.verify_folder(folder);
  }
  return verifier.take();
}

}  // namespace msprobe

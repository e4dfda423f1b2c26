#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "format/read_error.h"
#include "format/stored_tensor.h"
#include "format/unpickle.h"

namespace msprobe {
namespace {

constexpr std::string_view kPickleName = "data.pkl";

// The entry with the pickle: it stands in the archive's only folder, or in none if someone packed the files again.
const ZipMember& pickle_member(const InputFile& file, const ZipReader& zip) {
  const ZipMember* pickle = nullptr;
  for (const ZipMember& member : zip.members()) {
    const std::size_t folder_end = member.name.find('/');
    const std::size_t begin = folder_end == std::string::npos ? 0 : folder_end + 1;
    if (std::string_view(member.name).substr(begin) != kPickleName) continue;
    if (pickle != nullptr) {
      throw FormatError(read_message(file.path(), "two entries \"data.pkl\"", "the archive of one torch.save"));
    }
    pickle = &member;
  }
  if (pickle != nullptr) return *pickle;
  const auto is_npy = [](const ZipMember& member) { return member.name.ends_with(".npy"); };
  if (std::ranges::any_of(zip.members(), is_npy)) {
    throw UnsupportedFile(read_message(file.path(), "an .npz archive of NumPy", "one tensor (.pt or .npy)"));
  }
  throw FormatError(read_message(file.path(), "a zip archive without an entry \"data.pkl\"", "one of torch.save"));
}

void check_byte_order(const InputFile& file, const ZipReader& zip, const std::string& folder) {
  const ZipMember* member = zip.find(folder + "byteorder");
  if (member == nullptr) return;  // PyTorch before 2.1
  constexpr std::uint64_t kLongest = 16;
  const std::vector<std::byte> bytes = zip.content(*member, kLongest);
  const std::string order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (order == "little") return;
  if (order == "big") throw UnsupportedFile(read_message(file.path(), "numbers in big-endian byte order", "little"));
  throw FormatError(read_message(file.path(), "an unknown byte order", "\"little\" or \"big\""));
}

}  // namespace

StoredTensor read_pt_description(const InputFile& file) {
  StoredTensor result;
  result.zip = std::make_unique<const ZipReader>(file);
  const ZipReader& zip = *result.zip;
  const ZipMember& pickle = pickle_member(file, zip);
  if (pickle.size > kMaxPickleBytes) {
    throw UnsupportedFile(read_message(file.path(), "a pickle of " + std::to_string(pickle.size) + " bytes",
                                       "that of one tensor, " + std::to_string(kMaxPickleBytes) + " at most"));
  }
  const std::string folder = pickle.name.substr(0, pickle.name.size() - kPickleName.size());
  PickledTensor tensor = unpickle_tensor(zip.content(pickle, kMaxPickleBytes), file.path());
  check_byte_order(file, zip, folder);

  const std::string name = folder + "data/" + tensor.storage.key;
  const ZipMember* storage = zip.find(name);
  if (storage == nullptr) {
    throw FormatError(read_message(file.path(), "no entry \"" + name + "\"", "it, as the pickle says"));
  }
  // A storage of bytes that is seen as one of elements can have a few bytes more than the last whole one.
  const std::uint64_t item_bytes = tensor.storage.dtype ? dtype_info(*tensor.storage.dtype).item_bytes : 1;
  if (storage->size / item_bytes != static_cast<std::uint64_t>(tensor.storage.numel)) {
    throw FormatError(
        read_message(file.path(), "entry \"" + name + "\" of " + std::to_string(storage->size) + " bytes",
                     std::to_string(tensor.storage.numel) + " elements of " + std::to_string(item_bytes) + " bytes"));
  }

  if (storage->deflated && storage->size > kMaxInflatedBytes) {
    throw UnsupportedFile(
        read_message(file.path(), "entry \"" + name + "\" deflated, of " + std::to_string(storage->size) + " bytes",
                     std::to_string(kMaxInflatedBytes) + " at most, or stored without compression"));
  }

  result.info.format = FileFormat::kPt;
  result.info.dtype = tensor.dtype;
  result.info.shape = std::move(tensor.shape);
  result.info.strides = std::move(tensor.strides);
  result.info.first_element = tensor.offset;
  result.storage_offset = storage->data_offset;
  result.info.stored_bytes = storage->size;
  result.deflated = storage->deflated ? storage : nullptr;
  result.info.negate_real = tensor.is_negated;
  result.info.negate_imag = tensor.is_negated != tensor.is_conjugated;
  result.info.requires_grad = tensor.requires_grad;
  result.info.device = std::move(tensor.storage.device);
  return result;
}

}  // namespace msprobe

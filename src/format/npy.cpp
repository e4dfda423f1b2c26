#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "format/little_endian.h"
#include "format/tensor_file.h"
#include "format/widen.h"
#include "format/write_buffer.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

constexpr std::size_t kDataAlignment = 64;

// The array-protocol type string; `dtype` is not one that is widened.
std::string descr(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  const std::string bytes = std::to_string(info.item_bytes);
  const std::string order = info.item_bytes == 1 ? "|" : "<";
  switch (info.kind) {
    case DTypeKind::kBool:
      return order + "b" + bytes;
    case DTypeKind::kSigned:
      return order + "i" + bytes;
    case DTypeKind::kUnsigned:
      return order + "u" + bytes;
    case DTypeKind::kFloat:
      return order + "f" + bytes;
    case DTypeKind::kComplex:
      return order + "c" + bytes;
  }
  throw UnsupportedDtype("write_npy: found dtype " + std::string(info.name) + ", which has no NumPy type");
}

// As Python writes a tuple: (), (3,), (3, 4).
std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

// Source: numpy.lib.format, versions 1.0 and 2.0.
std::string header(DType dtype, std::span<const std::int64_t> shape) {
  std::string dictionary =
      "{'descr': '" + descr(dtype) + "', 'fortran_order': False, 'shape': " + shape_text(shape) + ", }";
  const auto padded = [&](std::size_t prefix) {
    const std::size_t used = prefix + dictionary.size() + 1;  // 1: the newline
    return dictionary.size() + (kDataAlignment - used % kDataAlignment) % kDataAlignment;
  };
  constexpr std::size_t kPrefix1 = 10;
  constexpr std::size_t kPrefix2 = 12;
  std::string out = "\x93NUMPY";
  const bool fits_version_1 = padded(kPrefix1) + 1 <= std::numeric_limits<std::uint16_t>::max();
  out += fits_version_1 ? '\x01' : '\x02';
  out += '\0';
  dictionary.resize(padded(fits_version_1 ? kPrefix1 : kPrefix2), ' ');
  dictionary += '\n';
  if (fits_version_1) {
    append_little_endian(out, static_cast<std::uint16_t>(dictionary.size()));
  } else {
    append_little_endian(out, static_cast<std::uint32_t>(dictionary.size()));
  }
  return out + dictionary;
}

class NpyWriter final : public TensorFileWriter {
 public:
  NpyWriter(NewFile& file, DType dtype, std::span<const std::int64_t> shape) : out_(file), dtype_(dtype) {
    std::vector<std::int64_t> npy_shape(shape.begin(), shape.end());
    if (dtype_info(dtype).values_per_item == 2) {
      if (npy_shape.empty()) npy_shape.push_back(1);
      npy_shape.back() *= 2;
    }
    out_.write(header(widened_dtype(dtype), npy_shape));
  }

  void write(std::span<const std::byte> block) override {
    if (floats_per_item(dtype_) == 0) {
      out_.write(block);
      return;
    }
    constexpr std::size_t kItemsAtOnce = 8 * 1024;
    const std::size_t item_bytes = dtype_info(dtype_).item_bytes;
    while (!block.empty()) {
      const auto part = block.first(std::min(block.size(), kItemsAtOnce * item_bytes));
      widened_.resize(part.size() / item_bytes * floats_per_item(dtype_));
      widen(dtype_, part, widened_);
      out_.write(std::as_bytes(std::span(widened_)));
      block = block.subspan(part.size());
    }
  }

  void finish(std::uint32_t /*crc*/) override { out_.flush(); }

 private:
  WriteBuffer out_;
  DType dtype_;
  std::vector<float> widened_;
};

}  // namespace

std::unique_ptr<TensorFileWriter> make_npy_writer(NewFile& file, DType dtype, std::span<const std::int64_t> shape) {
  return std::make_unique<NpyWriter>(file, dtype, shape);
}

}  // namespace msprobe

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "format/byte_parser.h"
#include "format/read_error.h"
#include "format/stored_tensor.h"

namespace msprobe {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// Long enough for any dtype but those of a record with thousands of fields.
constexpr std::uint32_t kMaxHeaderBytes = 1U << 20U;
constexpr std::size_t kMaxDimensions = 64;  // of NumPy 2; NumPy 1 has 32

// Parses the header: the literal of a Python dictionary with exactly three keys, in any order and spacing.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  void parse() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = text_literal();
      expect(':');
      if (key == "descr" && !descr_) {
        parse_descr();
      } else if (key == "fortran_order" && !fortran_order_) {
        fortran_order_ = boolean();
      } else if (key == "shape" && !shape_) {
        shape_ = tuple();
      } else {
        fail("the key \"" + std::string(key) + "\"");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("more text after it");
    if (!descr_ || !fortran_order_ || !shape_) fail("a key missing");
  }

  [[nodiscard]] const std::string& descr() const { return *descr_; }
  [[nodiscard]] bool fortran_order() const { return *fortran_order_; }
  [[nodiscard]] std::vector<std::int64_t> take_shape() { return *std::move(shape_); }

 private:
  [[noreturn]] void fail(const std::string& found) const {
    throw FormatError(read_message(path_, "a header with " + found + " at its byte " + std::to_string(at_),
                                   "{'descr': ..., 'fortran_order': ..., 'shape': ...}"));
  }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  [[nodiscard]] char next() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char wanted) {
    if (next() != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(std::string("no '") + wanted + "'");
  }
  bool accept(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  std::string_view text_literal() {
    const char quote = next();
    if (quote != '\'' && quote != '"') fail("no text");
    const std::size_t begin = ++at_;
    const std::size_t end = text_.find(quote, begin);
    if (end == std::string_view::npos) fail("a text without an end");
    at_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  void parse_descr() {
    // The fields of a structured dtype.
    if (next() == '[' || next() == '(') {
      throw UnsupportedFile(read_message(path_, "an array of records", "an array of numbers"));
    }
    descr_ = text_literal();
  }

  bool boolean() {
    if (accept(std::string_view("True"))) return true;
    if (!accept(std::string_view("False"))) fail("neither True nor False");
    return false;
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t size = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail("no size from 0 to 2^63 - 1");
      at_ += static_cast<std::size_t>(end - begin);
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // NumPy on Python 2
      sizes.push_back(size);
      if (sizes.size() > kMaxDimensions) fail("more than 64 dimensions");
      if (accept(',')) continue;
      if (sizes.size() == 1) fail("a size that is no tuple");
      expect(')');
      break;
    }
    return sizes;
  }

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_order_;
  std::optional<std::vector<std::int64_t>> shape_;
};

// Source: the array interface of NumPy, version 3, "typestr".
DType parse_dtype(const std::string& descr, const std::string& path) {
  struct Row {
    std::string_view code;
    DType dtype;
  };
  constexpr std::array<Row, 14> kTypes{{
      {"b1", DType::kBool},
      {"u1", DType::kUint8},
      {"i1", DType::kInt8},
      {"u2", DType::kUint16},
      {"i2", DType::kInt16},
      {"u4", DType::kUint32},
      {"i4", DType::kInt32},
      {"u8", DType::kUint64},
      {"i8", DType::kInt64},
      {"f2", DType::kFloat16},
      {"f4", DType::kFloat32},
      {"f8", DType::kFloat64},
      {"c8", DType::kComplex64},
      {"c16", DType::kComplex128},
  }};
  constexpr std::string_view kOrders = "<>|=";
  constexpr std::string_view kOtherKinds = "OSaUVMmtbuifc";  // objects, text, records, times, numbers of other sizes
  const bool has_order = descr.size() >= 2 && kOrders.find(descr[0]) != std::string_view::npos;
  if (!has_order || kOtherKinds.find(descr[1]) == std::string_view::npos) {
    throw FormatError(read_message(path, "the dtype '" + descr + "'", "one of NumPy, such as '<f4'"));
  }
  const auto* row = std::ranges::find(kTypes, std::string_view(descr).substr(1), &Row::code);
  const std::string wanted = "numbers, little-endian, of a size from 1 to 8 bytes (complex: 16)";
  if (row == kTypes.end()) throw UnsupportedFile(read_message(path, "elements of dtype '" + descr + "'", wanted));
  if (descr[0] == '>' && dtype_info(row->dtype).item_bytes > 1) {
    throw UnsupportedFile(read_message(path, "big-endian elements of dtype '" + descr + "'", wanted));
  }
  return row->dtype;
}

}  // namespace

StoredTensor read_npy_description(const InputFile& file) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(file.size(), 12)));
  file.read_at(0, bytes);
  ByteParser prefix(bytes, file.path(), "a .npy file");
  if (prefix.text(kMagic.size()) != kMagic) {
    throw FormatError(read_message(file.path(), "another beginning", "that of a .npy file"));
  }
  const auto major = prefix.number<std::uint8_t>();
  const auto minor = prefix.number<std::uint8_t>();
  if (major < 1 || major > 3 || minor != 0) {
    throw FormatError(
        read_message(file.path(), "version " + std::to_string(major) + "." + std::to_string(minor), "1.0, 2.0 or 3.0"));
  }
  const std::uint32_t header_bytes = major == 1 ? prefix.number<std::uint16_t>() : prefix.number<std::uint32_t>();
  if (header_bytes > kMaxHeaderBytes) {
    throw FormatError(read_message(file.path(), "a header of " + std::to_string(header_bytes) + " bytes",
                                   std::to_string(kMaxHeaderBytes) + " at most"));
  }
  std::string text(header_bytes, '\0');
  file.read_at(prefix.position(), std::as_writable_bytes(std::span(text)));
  HeaderParser header(text, file.path());
  header.parse();

  StoredTensor result;
  result.info.format = FileFormat::kNpy;
  result.info.dtype = parse_dtype(header.descr(), file.path());
  result.info.shape = header.take_shape();
  result.storage_offset = prefix.position() + header_bytes;
  result.info.stored_bytes = file.size() - result.storage_offset;  // the header was read

  // Sizes are multiplied as unsigned: what wraps round is refused by the check of the caller, which counts elements.
  result.info.strides.resize(result.info.shape.size());
  std::uint64_t stride = 1;
  for (std::size_t i = 0; i < result.info.shape.size(); ++i) {
    const std::size_t dim = header.fortran_order() ? i : result.info.shape.size() - 1 - i;
    result.info.strides[dim] = static_cast<std::int64_t>(stride);
    stride *= static_cast<std::uint64_t>(std::max<std::int64_t>(result.info.shape[dim], 1));
  }
  return result;
}

}  // namespace msprobe

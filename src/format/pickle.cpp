#include "format/pickle.h"

#include <bit>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "format/little_endian.h"
#include "format/storage_class.h"

namespace msprobe {
namespace {

// Writes opcodes and numbers what they leave in the memo, in the order in which Python's pickler does.
class Pickler {
 public:
  Pickler() { out_ += "\x80\x02"; }  // PROTO 2

  void global(std::string_view module, std::string_view name) {
    out_ += 'c';
    out_.append(module).append("\n").append(name).append("\n");
    memoize();
  }
  void text(std::string_view value) {
    out_ += 'X';
    append_little_endian(out_, static_cast<std::uint32_t>(value.size()));
    out_ += value;
    memoize();
  }
  void integer(std::int64_t value);
  void integers(std::span<const std::int64_t> values);  // as a tuple
  void false_value() { out_ += '\x89'; }
  void mark() { out_ += '('; }
  void tuple_since_mark() { opcode_with_result('t'); }
  void empty_tuple() { out_ += ')'; }
  void persistent_load() { out_ += 'Q'; }
  void call() { opcode_with_result('R'); }
  [[nodiscard]] std::string take() {
    out_ += '.';
    return std::move(out_);
  }

 private:
  void opcode_with_result(char opcode) {
    out_ += opcode;
    memoize();
  }
  void memoize() {
    out_ += 'q';
    out_ += static_cast<char>(memo_++);
  }

  std::string out_;
  unsigned char memo_ = 0;
};

void Pickler::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (bits <= std::numeric_limits<std::uint8_t>::max()) {
    out_ += 'K';
    append_little_endian(out_, static_cast<std::uint8_t>(bits));
  } else if (bits <= std::numeric_limits<std::uint16_t>::max()) {
    out_ += 'M';
    append_little_endian(out_, static_cast<std::uint16_t>(bits));
  } else if (bits <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max())) {
    out_ += 'J';
    append_little_endian(out_, static_cast<std::uint32_t>(bits));
  } else {
    std::string bytes;
    append_little_endian(bytes, bits);
    const auto length = static_cast<std::size_t>(std::bit_width(bits)) / 8 + 1;  // one bit for the sign
    out_ += '\x8A';
    out_ += static_cast<char>(length);
    out_ += bytes.substr(0, length);
  }
}

void Pickler::integers(std::span<const std::int64_t> values) {
  if (values.empty()) return empty_tuple();
  const bool has_short_form = values.size() <= 3;
  if (!has_short_form) mark();
  for (const std::int64_t value : values) integer(value);
  // TUPLE1, TUPLE2, TUPLE3 are consecutive opcodes.
  opcode_with_result(has_short_form ? static_cast<char>(0x84 + values.size()) : 't');
}

}  // namespace

std::string pickle_tensor(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                          std::int64_t storage_numel) {
  const std::string_view storage = storage_class(dtype);
  const bool typed = !storage.empty();
  const DTypeInfo& info = dtype_info(dtype);

  Pickler pickler;
  pickler.global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
  pickler.mark();

  pickler.mark();
  pickler.text("storage");
  if (typed) {
    pickler.global("torch", storage);
  } else {
    pickler.global("torch.storage", "UntypedStorage");
  }
  pickler.text("0");
  pickler.text("cpu");
  pickler.integer(typed ? storage_numel : storage_numel * info.item_bytes);
  pickler.tuple_since_mark();
  pickler.persistent_load();

  pickler.integer(0);  // offset in the storage
  pickler.integers(shape);
  pickler.integers(strides);
  pickler.false_value();                         // requires_grad
  pickler.global("collections", "OrderedDict");  // backward hooks
  pickler.empty_tuple();
  pickler.call();
  if (!typed) pickler.global("torch", info.name);
  pickler.tuple_since_mark();
  pickler.call();
  return pickler.take();
}

}  // namespace msprobe

#include "msprobe/tensor_view.h"

#include <algorithm>
#include <string>

#include "msprobe/error.h"

namespace msprobe {
namespace {

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + ")";
}

}  // namespace

std::int64_t numel(const TensorView& view) {
  if (std::ranges::find(view.shape, 0) != view.shape.end()) return 0;
  const DTypeInfo& info = dtype_info(view.dtype);
  std::int64_t count = 1;
  std::int64_t values = 0;
  bool overflow = false;
  for (const std::int64_t size : view.shape) overflow |= __builtin_mul_overflow(count, size, &count);
  overflow |= __builtin_mul_overflow(count, std::int64_t{info.values_per_item}, &values);
  if (overflow) {
    throw Error("numel: shape " + shape_text(view.shape) + " of " + std::string(info.name) +
                ": found more than 2^63 - 1 elements, wanted a number that fits in an int64");
  }
  return count;
}

}  // namespace msprobe

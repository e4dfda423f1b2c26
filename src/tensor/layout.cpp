#include "tensor/layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "msprobe/error.h"

namespace msprobe {
namespace {

// Appends `outer`, or widens the last dimension where both together are one. `dims` is innermost first.
void append_merged(std::vector<Dim>& dims, const Dim& outer) {
  if (!dims.empty() && outer.stride_bytes == dims.back().stride_bytes * dims.back().size) {
    dims.back().size *= outer.size;
  } else {
    dims.push_back(outer);
  }
}

void sort_for_memory(Layout& layout) {
  for (Dim& dim : layout.dims) {
    if (dim.stride_bytes >= 0) continue;
    layout.data += (dim.size - 1) * dim.stride_bytes;
    dim.stride_bytes = -dim.stride_bytes;
  }
  std::ranges::sort(layout.dims, {}, &Dim::stride_bytes);
  std::vector<Dim> merged;
  merged.reserve(layout.dims.size());
  for (const Dim& dim : layout.dims) append_merged(merged, dim);
  layout.dims = std::move(merged);
}

}  // namespace

bool is_contiguous(const TensorView& view) noexcept {
  std::int64_t expected = 1;
  for (std::size_t i = view.shape.size(); i-- > 0;) {
    if (view.shape[i] != 1 && view.strides[i] != expected) return false;
    expected *= view.shape[i];
  }
  return true;
}

std::int64_t byte_size(std::int64_t elements, DType dtype) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, std::int64_t{dtype_info(dtype).item_bytes}, &bytes)) {
    throw Error("byte size: found " + std::to_string(elements) + " elements of " + std::string(dtype_info(dtype).name) +
                ", wanted a size that fits in an int64");
  }
  return bytes;
}

Layout make_layout(const TensorView& view, ReadOrder order) {
  Layout layout;
  layout.data = view.data;
  layout.item_bytes = dtype_info(view.dtype).item_bytes;
  layout.count = numel(view);
  if (layout.count == 0) return layout;

  layout.dims.reserve(view.shape.size());
  for (std::size_t i = view.shape.size(); i-- > 0;) {
    if (view.shape[i] == 1) continue;
    if (view.strides[i] == 0 && order != ReadOrder::kLogical) {
      layout.repeat *= view.shape[i];
      continue;
    }
    append_merged(layout.dims, {view.shape[i], view.strides[i] * static_cast<std::int64_t>(layout.item_bytes)});
  }
  layout.count /= layout.repeat;
  static_cast<void>(byte_size(layout.count, view.dtype));  // that every offset fits
  if (order == ReadOrder::kAny && !layout.dims.empty()) sort_for_memory(layout);
  return layout;
}

}  // namespace msprobe

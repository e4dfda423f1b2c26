#include "format/storage_class.h"

namespace msprobe {

std::string_view storage_class(DType dtype) noexcept {
  switch (dtype) {
    case DType::kBool:
      return "BoolStorage";
    case DType::kUint8:
      return "ByteStorage";
    case DType::kInt8:
      return "CharStorage";
    case DType::kInt16:
      return "ShortStorage";
    case DType::kInt32:
      return "IntStorage";
    case DType::kInt64:
      return "LongStorage";
    case DType::kFloat16:
      return "HalfStorage";
    case DType::kBfloat16:
      return "BFloat16Storage";
    case DType::kFloat32:
      return "FloatStorage";
    case DType::kFloat64:
      return "DoubleStorage";
    case DType::kComplex64:
      return "ComplexFloatStorage";
    case DType::kComplex128:
      return "ComplexDoubleStorage";
    default:
      return {};
  }
}

std::optional<DType> dtype_of_storage_class(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!name.empty() && storage_class(dtype) == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace msprobe

#pragma once
// The classes of PyTorch's typed storages, which name a dtype in a pickle.

#include <optional>
#include <string_view>

#include "msprobe/dtype.h"

namespace msprobe {

// Returns the class of the typed storage of `dtype` ("FloatStorage"); empty: the dtype has none.
[[nodiscard]] std::string_view storage_class(DType dtype) noexcept;
// Returns the dtype whose typed storage is `name`, or nothing.
[[nodiscard]] std::optional<DType> dtype_of_storage_class(std::string_view name) noexcept;

}  // namespace msprobe

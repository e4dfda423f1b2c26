#pragma once
// The binary interface of DLPack that we read: https://dmlc.github.io/dlpack/latest/c_api.html. Only what we use, in
// our own words; field order and sizes are the contract.

#include <cstdint>

namespace msprobe::dlpack {

struct Device {
  std::int32_t type;
  std::int32_t id;
};
inline constexpr std::int32_t kCpu = 1;

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

// A borrowed array. `strides` is in elements and may be null for C order before DLPack 1.2.
struct Array {
  void* data;
  Device device;
  std::int32_t ndim;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

// What a "dltensor" capsule holds.
struct ManagedArray {
  Array array;
  void* context;
  void (*deleter)(ManagedArray*);
};

struct Version {
  std::uint32_t major;
  std::uint32_t minor;
};

// What the capsule `type(tensor).__dlpack_c_exchange_api__` holds (DLPack 1.3). `borrow` fills an Array that is valid
// while the Python object is; it returns 0, or -1 with a Python error set.
struct ExchangeApi {
  Version version;
  ExchangeApi* previous;
  void* allocate;
  void* managed_from_object;
  void* managed_to_object;
  int (*borrow)(void* object, Array* out);
  void* current_stream;
};
inline constexpr const char* kExchangeCapsule = "dlpack_exchange_api";
inline constexpr const char* kArrayCapsule = "dltensor";

}  // namespace msprobe::dlpack

// Reads any bytes as a tensor file; to be started with the .npy files of make_corpus.py.

#include "read_tensor_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  msprobe::fuzz::read_tensor_file(std::as_bytes(std::span(data, size)));
  return 0;
}

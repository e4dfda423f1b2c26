// Reads any bytes that begin with "PK" as a .pt file, all others as the pickle in a sound one: a change inside an
// archive hardly gets past its checksums. To be started with the files of make_corpus.py.

#include <string>
#include <string_view>

#include "checksum/crc32.h"
#include "format/zip.h"
#include "read_tensor_file.h"

namespace {

using namespace msprobe;

std::string archive_around(std::string_view pickle) {
  const std::string storage(256, 'x');
  std::vector<ZipEntry> entries;
  std::string file;
  const auto add = [&](const char* name, std::string_view content) {
    Crc32 crc;
    crc.update(std::as_bytes(std::span(content)));
    entries.push_back({name, content.size(), crc.value(), file.size()});
    file += zip_local_header(entries.back());
    file += content;
  };
  add("a/data.pkl", pickle);
  add("a/data/0", storage);
  return file + zip_directory(entries, file.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with("PK")) {
    fuzz::read_tensor_file(std::as_bytes(std::span(input)));
  } else {
    const std::string file = archive_around(input);
    fuzz::read_tensor_file(std::as_bytes(std::span(file)));
  }
  return 0;
}

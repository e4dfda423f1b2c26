// Reads any bytes as a debug.json; to be started with DIR/records of make_corpus.py. Aborts if a leaf that was
// read cannot be written and read again.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "format/record_reader.h"
#include "msprobe/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  RecordFile file;
  try {
    file = parse_records(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  } catch (const FormatError&) {
    return 0;
  }
  for (const Record& record : file.records) {
    for (const RecordedLeaf& leaf : record.leaves) {
      static_cast<void>(leaf_name(record, leaf));
      std::string json;
      append_leaf(json, leaf);
      const RecordFile again = parse_records(R"({"data": {"x": )" + json + "}}", "fuzz");
      if (again.records.size() != 1 || again.records[0].leaves.empty()) std::abort();
    }
  }
  return 0;
}

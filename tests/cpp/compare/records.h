#pragma once
// Records for tests, as short as they can be written.

#include <string>
#include <string_view>
#include <vector>

#include "compare/row.h"
#include "format/record_reader.h"

namespace msprobe::test {

// Those of a debug.json whose "data" has these members.
inline std::vector<Record> records_of(const std::string& data) {
  return parse_records("{\"data\": {" + data + "}}", "debug.json").records;
}

// The JSON of a tensor: `tensor_json("torch.float32", "[4]", "2.0, 1.0, 1.5, 3.0")`; `more` follows, with its comma.
inline std::string tensor_json(std::string_view dtype, std::string_view shape, const std::vector<std::string>& numbers,
                               std::string_view more = "") {
  std::string json =
      R"({"type": "torch.Tensor", "dtype": ")" + std::string(dtype) + R"(", "shape": )" + std::string(shape);
  for (std::size_t i = 0; i < kStatistics.size(); ++i) {
    json += ", \"" + std::string(statistic_text(kStatistics[i])) + "\": " + numbers.at(i);
  }
  return json + std::string(more) + "}";
}

// The names of both sides of each pair, "-" for a missing one.
inline std::vector<std::pair<std::string, std::string>> names_of(const std::vector<LeafPair>& pairs) {
  std::vector<std::pair<std::string, std::string>> names;
  const auto name = [](const LeafRef& ref) { return ref.is_there() ? ref.name() : "-"; };
  for (const LeafPair& pair : pairs) names.emplace_back(name(pair.golden), name(pair.target));
  return names;
}

}  // namespace msprobe::test

#pragma once
// Which leaf of the golden side belongs to which of the target.

#include <optional>
#include <vector>

#include "compare/dump.h"
#include "compare/pattern.h"

namespace msprobe {

struct LeafRef {
  const Record* record = nullptr;
  const RecordedLeaf* leaf = nullptr;

  [[nodiscard]] bool is_there() const noexcept { return leaf != nullptr; }
  [[nodiscard]] std::string name() const { return leaf_name(*record, *leaf); }
};

// One side may be missing, not both.
struct LeafPair {
  LeafRef golden;
  LeafRef target;
};

struct MatchOptions {
  NameMap map;
  std::optional<Pattern> name;    // only pairs with it in the name of a side
  std::optional<Pattern> ignore;  // no pairs with it in the name of a side
};

// Returns every leaf of both sides, paired by name, gradient, count and place in the nesting ("x.a" may be a name, or
// the place "a" of "x": a graph writes both the same). Among several that read the same, by their order. In golden's
// order; a leaf of the target alone follows the one that it follows there. Borrows both sides.
[[nodiscard]] std::vector<LeafPair> match(const std::vector<Record>& golden, const std::vector<Record>& target,
                                          const MatchOptions& options);

}  // namespace msprobe

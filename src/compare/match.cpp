#include "compare/match.h"

#include <string>
#include <unordered_map>
#include <utility>

namespace msprobe {
namespace {

std::string identity(const Record& record, const std::string& name, const RecordedLeaf& leaf) {
  std::string key = name;
  if (!leaf.index.empty()) key += '.' + leaf.index;
  key += record.is_gradient ? "\ng" : "\nf";  // a name that has this in it would have to be made for it
  return key += std::to_string(record.count);
}

std::vector<LeafRef> leaves_of(const std::vector<Record>& records) {
  std::vector<LeafRef> leaves;
  for (const Record& record : records) {
    for (const RecordedLeaf& leaf : record.leaves) leaves.push_back({&record, &leaf});
  }
  return leaves;
}

bool is_wanted(const LeafPair& pair, const MatchOptions& options) {
  const auto is_in_a_name = [&](const Pattern& pattern) {
    return (pair.golden.is_there() && pattern.is_in(pair.golden.name())) ||
           (pair.target.is_there() && pattern.is_in(pair.target.name()));
  };
  return (!options.name || is_in_a_name(*options.name)) && !(options.ignore && is_in_a_name(*options.ignore));
}

}  // namespace

std::vector<LeafPair> match(const std::vector<Record>& golden, const std::vector<Record>& target,
                            const MatchOptions& options) {
  const std::vector<LeafRef> golden_leaves = leaves_of(golden);
  const std::vector<LeafRef> target_leaves = leaves_of(target);

  // Of the target: where each identity stands, the earliest last.
  std::unordered_map<std::string, std::vector<std::size_t>> places;
  places.reserve(target_leaves.size());
  for (std::size_t i = target_leaves.size(); i-- > 0;) {
    const LeafRef& ref = target_leaves[i];
    places[identity(*ref.record, ref.record->name, *ref.leaf)].push_back(i);
  }
  constexpr auto kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> partner(golden_leaves.size(), kNone);
  std::vector<bool> taken(target_leaves.size());
  const Record* mapped_record = nullptr;
  std::string mapped_name;
  for (std::size_t i = 0; i < golden_leaves.size(); ++i) {
    const LeafRef& ref = golden_leaves[i];
    if (ref.record != mapped_record) {
      mapped_record = ref.record;
      mapped_name = options.map.target_name(ref.record->name);
    }
    const auto found = places.find(identity(*ref.record, mapped_name, *ref.leaf));
    if (found == places.end() || found->second.empty()) continue;
    partner[i] = found->second.back();
    found->second.pop_back();
    taken[partner[i]] = true;
  }

  std::vector<LeafPair> pairs;
  pairs.reserve(golden_leaves.size());
  const auto add_alone_from = [&](std::size_t i) {
    for (; i < target_leaves.size() && !taken[i]; ++i) pairs.push_back({{}, target_leaves[i]});
  };
  add_alone_from(0);
  for (std::size_t i = 0; i < golden_leaves.size(); ++i) {
    if (partner[i] == kNone) {
      pairs.push_back({golden_leaves[i], {}});
    } else {
      pairs.push_back({golden_leaves[i], target_leaves[partner[i]]});
      add_alone_from(partner[i] + 1);
    }
  }
  if (options.name || options.ignore)
    std::erase_if(pairs, [&](const LeafPair& pair) { return !is_wanted(pair, options); });
  return pairs;
}

}  // namespace msprobe

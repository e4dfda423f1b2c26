#include "compare/match.h"

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace msprobe {
namespace {

// What makes two leaves one pair. Of millions of leaves: borrows name and index.
struct Identity {
  std::string_view name;
  std::string_view index;
  std::int64_t count;
  bool is_gradient;

  Identity(std::string_view record_name, const LeafRef& ref)
      : name(record_name), index(ref.leaf->index), count(ref.record->count), is_gradient(ref.record->is_gradient) {}

  [[nodiscard]] std::string place() const {
    return index.empty() ? std::string(name) : std::string(name) + '.' + std::string(index);
  }

  bool operator==(const Identity& other) const {
    if (count != other.count || is_gradient != other.is_gradient) return false;
    return (name == other.name && index == other.index) ||
           (index.size() != other.index.size() && place() == other.place());
  }
};

struct IdentityHash {
  std::size_t operator()(const Identity& identity) const {
    const std::hash<std::string_view> hash;
    const std::size_t place = identity.index.empty() ? hash(identity.name) : hash(identity.place());
    return place + 2 * static_cast<std::size_t>(identity.count) + (identity.is_gradient ? 1 : 0);
  }
};

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

  // Of the target: where each identity is first, and for each leaf where its identity is next.
  constexpr auto kNone = static_cast<std::size_t>(-1);
  std::unordered_map<Identity, std::size_t, IdentityHash> first;
  std::vector<std::size_t> next(target_leaves.size(), kNone);
  first.reserve(target_leaves.size());
  for (std::size_t i = target_leaves.size(); i-- > 0;) {
    const LeafRef& ref = target_leaves[i];
    next[i] = std::exchange(first.try_emplace({ref.record->name(), ref}, kNone).first->second, i);
  }
  std::vector<std::size_t> partner(golden_leaves.size(), kNone);
  std::vector<bool> taken(target_leaves.size());
  std::size_t i = 0;
  for (const Record& record : golden) {
    const std::string name = options.map.target_name(std::string(record.name()));
    for (const RecordedLeaf& leaf : record.leaves) {
      const auto found = first.find({name, {&record, &leaf}});
      if (found != first.end() && found->second != kNone) {
        partner[i] = found->second;
        found->second = next[partner[i]];
        taken[partner[i]] = true;
      }
      ++i;
    }
  }

  std::vector<LeafPair> pairs;
  pairs.reserve(golden_leaves.size());
  const auto add_alone_from = [&](std::size_t i) {
    for (; i < target_leaves.size() && !taken[i]; ++i) pairs.push_back({{}, target_leaves[i]});
  };
  add_alone_from(0);
  for (std::size_t j = 0; j < golden_leaves.size(); ++j) {
    if (partner[j] == kNone) {
      pairs.push_back({golden_leaves[j], {}});
    } else {
      pairs.push_back({golden_leaves[j], target_leaves[partner[j]]});
      add_alone_from(partner[j] + 1);
    }
  }
  if (options.name || options.ignore) {
    std::erase_if(pairs, [&](const LeafPair& pair) { return !is_wanted(pair, options); });
  }
  return pairs;
}

}  // namespace msprobe

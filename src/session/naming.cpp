#include "session/naming.h"

#include <algorithm>
#include <array>
#include <variant>

#include "session/utf8.h"

namespace msprobe {
namespace {

// FNV-1a, 64 bit: http://www.isthe.com/chongo/tech/comp/fnv/
std::uint64_t fnv1a(std::string_view text) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3U;
  }
  return hash;
}

void append_percent(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  const auto byte = static_cast<unsigned char>(c);
  out += '%';
  out += kDigits[byte >> 4U];
  out += kDigits[byte & 15U];
}

bool needs_escape(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f || c == '/' || c == '%';
}

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    if (length == 0 || (length == 1 && needs_escape(text.front()))) {
      append_percent(out, text.front());
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

// Cuts at a character, and never inside %XX.
std::string_view cut(std::string_view text, std::size_t bytes) noexcept {
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U) --bytes;
  for (const std::size_t back : {1U, 2U}) {
    if (bytes >= back && text[bytes - back] == '%') return text.substr(0, bytes - back);
  }
  return text.substr(0, bytes);
}

std::string hex(std::uint64_t number) {
  std::string out(16, '0');
  for (auto digit = out.rbegin(); digit != out.rend(); ++digit, number >>= 4U)
    *digit = "0123456789abcdef"[number & 15U];
  return out;
}

void collect_leaves(Value& value, std::string& path, std::vector<LeafPlace>& out);

void collect_child(Value& child, std::string_view index, std::string& path, std::vector<LeafPlace>& out) {
  const std::size_t length = path.size();
  if (length > 0) path += '.';
  path += index;
  collect_leaves(child, path, out);
  path.resize(length);
}

void collect_leaves(Value& value, std::string& path, std::vector<LeafPlace>& out) {
  if (auto* leaf = std::get_if<TensorLeaf>(&value.node)) {
    out.push_back({leaf, path});
  } else if (auto* list = std::get_if<List>(&value.node)) {
    for (std::size_t i = 0; i < list->size(); ++i) collect_child((*list)[i], std::to_string(i), path, out);
  } else if (auto* map = std::get_if<Map>(&value.node)) {
    for (auto& [key, child] : *map) collect_child(child, key, path, out);
  }
}

}  // namespace

std::string NameRegistry::claim(const std::string& base, bool& collided) {
  if (claimed_.insert(base).second) return base;
  collided = true;
  for (int number = 2;; ++number) {
    std::string candidate = base + '#' + std::to_string(number);
    if (claimed_.insert(candidate).second) return candidate;
  }
}

SaveName NameRegistry::next(std::string_view name, bool with_gradient) {
  SaveName result;
  const std::string key(name);
  Entry& entry = entries_[key];
  if (entry.forward.empty() && entry.count == 0) entry.forward = claim(key, result.collided);
  if (with_gradient && entry.gradient.empty()) entry.gradient = claim(key + "_grad", result.collided);
  result.forward = entry.forward;
  if (with_gradient) result.gradient = entry.gradient;
  result.count = entry.count++;
  return result;
}

std::string record_key(std::string_view name, std::int64_t count) {
  std::string key(name);
  key += '.';
  key += std::to_string(count);
  key += ".debug";
  return key;
}

bool make_keys_unique(Value& value) {
  bool found = false;
  if (auto* list = std::get_if<List>(&value.node)) {
    for (Value& child : *list) found |= make_keys_unique(child);
  } else if (auto* map = std::get_if<Map>(&value.node)) {
    std::unordered_set<std::string> seen;
    for (auto& [key, child] : *map) {
      found |= make_keys_unique(child);
      if (map->size() < 2 || seen.insert(key).second) continue;
      found = true;
      const std::string base = key;
      for (int number = 2; !seen.insert(key).second; ++number) key = base + '#' + std::to_string(number);
    }
  }
  return found;
}

std::vector<LeafPlace> tensor_leaves(Value& value) {
  std::vector<LeafPlace> leaves;
  std::string path;
  collect_leaves(value, path, leaves);
  return leaves;
}

std::string file_name(std::string_view key, std::string_view indexes, std::string_view suffix, int attempt) {
  std::string full(key);
  if (!indexes.empty()) {
    full += '.';
    full += indexes;
  }
  std::string tail = attempt > 1 ? '#' + std::to_string(attempt) : std::string();
  tail += suffix;
  std::string name = escaped(full);
  if (name.size() + tail.size() > kMaxFileNameBytes) {
    tail = '~' + hex(fnv1a(full)) + tail;
    name = cut(name, kMaxFileNameBytes - tail.size());
  }
  return name + tail;
}

}  // namespace msprobe

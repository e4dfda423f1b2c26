#include "compare/text.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <type_traits>
#include <utility>

#include "compare/dump.h"
#include "format/record.h"

namespace msprobe {
namespace {

template <class Size, class Append>
std::string list_text(std::span<const Size> items, Append append) {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append(out, items[i]);
  }
  return out + "]";
}

// Nothing for complex numbers.
Extremum to_extremum(const Number& number) {
  return std::visit(
      []<class Value>(const Value& value) {
        if constexpr (std::is_same_v<Value, std::complex<double>>) {
          return Extremum();
        } else {
          return Extremum(value);
        }
      },
      number);
}

}  // namespace

std::string short_number(double number) {
  std::array<char, 32> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.6g", number);
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string short_number(const Extremum& number) {
  if (const auto* real = std::get_if<double>(&number)) return short_number(*real);
  return number_text(number);
}

std::string short_number(const Number& number) {
  if (const auto* complex = std::get_if<std::complex<double>>(&number)) {
    const std::string imag = short_number(complex->imag());
    return short_number(complex->real()) + (imag.starts_with('-') ? "" : "+") + imag + "i";
  }
  return short_number(to_extremum(number));
}

std::string exact_text(const Number& number) {
  if (const auto* complex = std::get_if<std::complex<double>>(&number)) {
    return "[" + number_text(complex->real()) + ", " + number_text(complex->imag()) + "]";
  }
  return number_text(to_extremum(number));
}

std::string shape_text(const std::vector<std::optional<std::int64_t>>& shape) {
  return list_text(std::span(shape), [](std::string& out, const std::optional<std::int64_t>& size) {
    out += size ? std::to_string(*size) : "null";
  });
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return list_text(shape, [](std::string& out, std::int64_t size) { out += std::to_string(size); });
}

std::string non_finite_text(const RecordedTensor& tensor, std::string_view separator) {
  std::string text;
  const auto add = [&](std::string_view what, std::int64_t count) {
    if (count <= 0) return;
    if (!text.empty()) text += separator;
    text += std::to_string(count) + " " + std::string(what);
  };
  add("NaN", tensor.nan_count);
  add("+Inf", tensor.pos_inf_count);
  add("-Inf", tensor.neg_inf_count);
  return text;
}

std::optional<std::int64_t> numel_of(const std::vector<std::optional<std::int64_t>>& shape) {
  std::int64_t count = 1;
  for (const auto& size : shape) {
    if (!size || *size < 0 || __builtin_mul_overflow(count, *size, &count)) return std::nullopt;
  }
  return count;
}

std::string place_text(std::int64_t index, std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    place[i] = index % shape[i];
    index /= shape[i];
  }
  return shape_text(place);
}

std::string rank_list_text(std::vector<std::string> ranks) {
  constexpr std::string_view kRank = "rank";
  std::set<std::int64_t> numbers;
  std::set<std::string> others;
  for (std::string& rank : ranks) {
    const auto number = number_after(kRank, rank);
    if (number) {
      numbers.insert(*number);
    } else {
      others.insert(std::move(rank));
    }
  }
  std::string text;
  const auto add = [&](std::string_view item) { (text += text.empty() ? "" : ", ") += item; };
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::int64_t first = *at;
    std::int64_t last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    add(std::string(kRank) + std::to_string(first));
    if (last > first) text += (last == first + 1 ? ", " : "-") + std::string(kRank) + std::to_string(last);
  }
  for (const std::string& other : others) add(other);
  return text;
}

}  // namespace msprobe

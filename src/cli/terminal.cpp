#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <ostream>
#include <utility>

namespace msprobe {
namespace {

struct CodePoint {
  std::uint32_t code;
  std::size_t bytes;  // 0: no valid UTF-8 here
};

CodePoint code_point_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (bytes == 0 || first > 0xF4 || text.size() < bytes) return {0, 0};
  std::uint32_t code = first & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {0, 0};
    code = code << 6U | (byte(i) & 0x3FU);
  }
  return {code, bytes};
}

// Source: Unicode 15, EastAsianWidth (W and F) and general categories Mn, Me, Cf; the ranges that names are made of.
constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 9> kWide{{{0x1100, 0x115F},
                                                                        {0x2E80, 0x303E},
                                                                        {0x3041, 0xA4CF},
                                                                        {0xAC00, 0xD7A3},
                                                                        {0xF900, 0xFAFF},
                                                                        {0xFE30, 0xFE6F},
                                                                        {0xFF00, 0xFF60},
                                                                        {0x1F300, 0x1FAFF},
                                                                        {0x20000, 0x3FFFD}}};
constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 4> kZero{
    {{0x0300, 0x036F}, {0x200B, 0x200F}, {0x20D0, 0x20F0}, {0xFE00, 0xFE0F}}};

// What breaks a line or turns the direction of what follows.
constexpr std::array<std::pair<std::uint32_t, std::uint32_t>, 2> kLayout{{{0x2028, 0x202E}, {0x2066, 0x2069}}};

template <std::size_t size>
bool is_within(const std::array<std::pair<std::uint32_t, std::uint32_t>, size>& ranges, std::uint32_t code) {
  return std::ranges::any_of(ranges, [&](const auto& range) { return range.first <= code && code <= range.second; });
}

void append_escaped(std::string& out, unsigned char byte) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += "\\x";
  out += kHex[byte / 16U];
  out += kHex[byte % 16U];
}

}  // namespace

std::string Output::paint(std::string_view text, Colour colour) const {
  if (!out_is_terminal || text.empty() || colour == Colour::kNone) return std::string(text);
  constexpr std::array<std::string_view, 6> kCodes = {"0", "31", "32", "33", "1", "2"};
  return "\x1b[" + std::string(kCodes[static_cast<std::size_t>(colour)]) + "m" + std::string(text) + "\x1b[0m";
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const CodePoint point = code_point_at(text);
    text.remove_prefix(std::max<std::size_t>(point.bytes, 1));
    if (is_within(kZero, point.code)) continue;
    width += is_within(kWide, point.code) ? 2 : 1;
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint point = code_point_at(text);
    const std::size_t bytes = std::max<std::size_t>(point.bytes, 1);
    const bool is_control = point.bytes == 0 || point.code < 0x20 || (point.code >= 0x7F && point.code < 0xA0) ||
                            is_within(kLayout, point.code);
    if (is_control) {
      for (const char byte : text.substr(0, bytes)) append_escaped(out, static_cast<unsigned char>(byte));
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

Table::Table(std::vector<std::pair<std::string, Align>> columns) : columns_(std::move(columns)) {}

void Table::add(std::vector<TableCell> row) {
  for (TableCell& cell : row) cell.text = printable(cell.text);
  rows_.push_back(std::move(row));
}

void Table::print(const Output& output) const {
  std::vector<std::size_t> widths;
  for (const auto& [title, align] : columns_) widths.push_back(display_width(title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i].text));
  }
  const auto print_line = [&](const auto& text_at, const auto& colour_at) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& text = text_at(i);
      const std::string padding(widths[i] - display_width(text), ' ');
      if (i > 0) line += "  ";
      if (columns_[i].second == Align::kRight) line += padding;
      line += output.paint(text, colour_at(i));
      if (columns_[i].second == Align::kLeft && i + 1 < columns_.size()) line += padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    output.out << line << '\n';
  };
  print_line([&](std::size_t i) -> const std::string& { return columns_[i].first; },
             [](std::size_t) { return Colour::kFaint; });
  for (const auto& row : rows_) {
    print_line([&](std::size_t i) -> const std::string& { return row[i].text; },
               [&](std::size_t i) { return row[i].colour; });
  }
}

ProgressBar::ProgressBar(const Output& output, std::string label, std::function<double()> fraction) {
  if (!output.err_is_terminal) return;
  thread_ =
      std::jthread([&err = output.err, label = std::move(label), fraction = std::move(fraction)](std::stop_token stop) {
        constexpr auto kInterval = std::chrono::milliseconds(200);
        constexpr std::size_t kWidth = 40;
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock(mutex);
        bool is_shown = false;
        for (int tick = 0; !stopped.wait_for(lock, stop, kInterval, [&] { return stop.stop_requested(); }); ++tick) {
          if (tick < 2) continue;
          const double share = std::clamp(fraction(), 0.0, 1.0);
          const auto filled = static_cast<std::size_t>(share * kWidth);
          err << '\r' << label << " [" << std::string(filled, '#') << std::string(kWidth - filled, '.') << "] "
              << static_cast<int>(100 * share) << " %" << std::flush;
          is_shown = true;
        }
        if (is_shown) err << "\r\x1b[K" << std::flush;
      });
}

ProgressBar::~ProgressBar() = default;

}  // namespace msprobe

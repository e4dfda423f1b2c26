#pragma once
// What a terminal is told: colours, tables, a progress bar.

#include <atomic>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace msprobe {

enum class Colour : std::uint8_t { kNone, kRed, kGreen, kYellow, kBold, kFaint };

// Where a command writes. Colours appear on terminals only, and not with NO_COLOR set (https://no-color.org).
struct Output {
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool err_is_terminal = false;

  [[nodiscard]] std::string paint(std::string_view text, Colour colour) const;
};

// Columns that `text` (UTF-8) takes on a terminal: two for a Chinese character, none for a combining one.
[[nodiscard]] std::size_t display_width(std::string_view text);

// `text` (UTF-8) with control characters as \xNN: a name in a dump must not steer the terminal.
[[nodiscard]] std::string printable(std::string_view text);

struct TableCell {
  std::string text;
  Colour colour = Colour::kNone;
};

// Gathers rows, then prints them in columns of equal width; numbers to the right.
class Table {
 public:
  enum class Align : std::uint8_t { kLeft, kRight };
  explicit Table(std::vector<std::pair<std::string, Align>> columns);
  // As many cells as columns.
  void add(std::vector<TableCell> row);
  void print(const Output& output) const;
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

 private:
  std::vector<std::pair<std::string, Align>> columns_;
  std::vector<std::vector<TableCell>> rows_;
};

// A bar on stderr while it lives, from the second half second on; nothing where stderr is no terminal.
class ProgressBar {
 public:
  // `fraction` (0 to 1) is asked from another thread. Borrows both.
  ProgressBar(const Output& output, std::string label, std::function<double()> fraction);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

 private:
  std::jthread thread_;
};

}  // namespace msprobe

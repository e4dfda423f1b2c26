#include "cli/terminal.h"

#include <gtest/gtest.h>

#include <sstream>

namespace msprobe {
namespace {

TEST(DisplayWidth, CountsColumnsOfATerminal) {
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("é"), 1U);
  EXPECT_EQ(display_width("梯度"), 4U);
  EXPECT_EQ(display_width("e\xCC\x81"), 1U);  // combining acute accent
}

TEST(Printable, LetsNoNameSteerTheTerminal) {
  EXPECT_EQ(printable("梯度 é"), "梯度 é");
  EXPECT_EQ(printable("a\x1b[2Jb\r\n\x7f"), "a\\x1b[2Jb\\x0d\\x0a\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "2J"),
            "\\xc2\\x9b2J");                                // CSI in one code point
  EXPECT_EQ(printable("\xFF\xE6\xA2"), "\\xff\\xe6\\xa2");  // no UTF-8
}

std::string printed(const Table& table, bool terminal) {
  std::ostringstream out;
  table.print({out, out, terminal, false});
  return out.str();
}

TEST(Table, AlignsColumns) {
  Table table({{"name", Table::Align::kLeft}, {"n", Table::Align::kRight}, {"also", Table::Align::kLeft}});
  EXPECT_TRUE(table.empty());
  table.add({{"梯"}, {"10"}, {""}});
  table.add({{"abcdef"}, {"5"}, {"x\ny", Colour::kRed}});
  EXPECT_EQ(printed(table, false),
            "name     n  also\n"
            "梯      10\n"
            "abcdef   5  x\\x0ay\n");
}

TEST(Table, PaintsOnTerminalsOnly) {
  Table table({{"a", Table::Align::kLeft}});
  table.add({{"x", Colour::kRed}});
  EXPECT_EQ(printed(table, false).find('\x1b'), std::string::npos);
  EXPECT_NE(printed(table, true).find("\x1b[31mx\x1b[0m"), std::string::npos);
}

TEST(ProgressBar, IsSilentWhereThereIsNoTerminal) {
  std::ostringstream out;
  {
    const ProgressBar bar({out, out, true, false}, "x", [] { return 0.5; });
  }
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace msprobe

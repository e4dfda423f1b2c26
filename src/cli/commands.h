#pragma once
// The commands of `msprobe`, each a struct of what the user asked for and a function that does it.

#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "compare/tolerance.h"
#include "msprobe/config.h"

namespace msprobe {

// Source of the numbers: SPEC.md, section 11.
inline constexpr int kExitFine = 0;
inline constexpr int kExitDifferences = 1;  // or damage
inline constexpr int kExitUnusable = 2;     // wrong usage, unreadable input

struct ShowRequest {
  std::string path;
  Filter step, rank;
  std::string name;  // regular expression; empty: all
  bool only_non_finite = false;
  bool diff_steps = false;
  bool all = false;  // every row, also where a terminal would get a line a step
  bool json = false;
};

struct CompareRequest {
  std::string golden, target;
  std::string out = ".";
  Filter step, rank;
  std::string name, ignore;  // regular expressions; empty: none
  std::string map;           // path; empty: none
  ToleranceOptions tolerance;
  bool xlsx = false;
  bool jsonl = false;
  bool all = false;  // list every difference, not only the first ones
};

struct VerifyRequest {
  std::string path;
  Filter step, rank;
};

// Each returns the exit status. They throw Error for what kExitUnusable stands for.
[[nodiscard]] int show(const ShowRequest& request, const Output& output);
[[nodiscard]] int compare(const CompareRequest& request, const Output& output);
[[nodiscard]] int verify(const VerifyRequest& request, const Output& output);

}  // namespace msprobe

#include "msprobe/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "config/setting.h"
#include "msprobe/error.h"

namespace msprobe {
namespace {

// "3,5-7" on the command line, as in config.json.
Filter filter_of(const std::string& option, const std::vector<std::string>& items) {
  return parse_filter("option " + option, std::vector<FilterItem>(items.begin(), items.end()));
}

// Options that several commands have.
struct Selection {
  std::vector<std::string> steps, ranks;
  std::string name;

  void add_to(CLI::App& app, bool with_name) {
    app.add_option("--step", steps, "Only these steps: 3 or 4-6; several with commas")->delimiter(',');
    app.add_option("--rank", ranks, "Only these ranks, likewise")->delimiter(',');
    if (with_name) app.add_option("--name", name, "Only names in which this regular expression (RE2) matches");
  }
  [[nodiscard]] Filter step_filter() const { return filter_of("--step", steps); }
  [[nodiscard]] Filter rank_filter() const { return filter_of("--rank", ranks); }
};

// CLI11's own checks let NaN through, and tell the user what the greatest double is.
CLI::Validator number_from(double low, double high, const std::string& wanted) {
  const auto check = [=](const std::string& text) -> std::string {
    double number = 0;
    const bool fits = CLI::detail::lexical_cast(text, number) && low <= number && number <= high;
    return fits ? "" : "found \"" + text + "\", expected " + wanted;
  };
  return {check, ""};
}

bool is_terminal(int fd) {
  const char* terminal = std::getenv("TERM");
  return isatty(fd) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

int run(CLI::App& app, const std::vector<std::string>& arguments, const Output& output) {
  app.require_subcommand(1);
  app.set_version_flag("--version", MSPROBE_VERSION);
  app.footer("Exit status: 0 fine, 1 differences or damage found, 2 wrong usage or unreadable input.");

  ShowRequest show_request;
  Selection show_selection;
  CLI::App* show_app = app.add_subcommand("show", "Show what a dump, a step, a rank folder or a tensor file holds");
  show_app->add_option("PATH", show_request.path, "Dump, step{N}, rank{R}, debug.json, or a .pt or .npy file")
      ->required();
  show_selection.add_to(*show_app, true);
  show_app->add_flag("--nan", show_request.only_non_finite, "Only what has NaN or infinities in it");
  show_app->add_flag("--diff-steps", show_request.diff_steps, "One line a name: its Norm along the steps");
  show_app->add_flag("--all", show_request.all, "Every record of many folders, where a terminal gets a line a step");
  show_app->add_flag("--json", show_request.json, "As one JSON array");

  CompareRequest compare_request;
  Selection compare_selection;
  const CLI::Validator tolerance = number_from(0, std::numeric_limits<double>::max(), "a finite number, 0 or greater");
  CLI::App* compare_app = app.add_subcommand("compare", "Compare two dumps and find where they part first");
  compare_app->add_option("GOLDEN", compare_request.golden, "The run that is right")->required();
  compare_app->add_option("TARGET", compare_request.target, "The run in question")->required();
  compare_app->add_option("-o,--out", compare_request.out,
                          "Folder for compare.csv (created; files there are replaced)");
  compare_app->add_flag("--xlsx", compare_request.xlsx, "Write compare.xlsx, too");
  compare_app->add_flag("--jsonl", compare_request.jsonl, "Write compare.jsonl, too");
  compare_selection.add_to(*compare_app, true);
  compare_app->add_option("--ignore", compare_request.ignore, "No names in which this regular expression matches");
  compare_app->add_option("--map", compare_request.map,
                          R"(JSON file {"golden name": "target name"}; a name may be a regular expression, with \1)");
  compare_app->add_option("--rtol", compare_request.tolerance.rtol, "Relative tolerance (default: by dtype)")
      ->check(tolerance);
  compare_app
      ->add_option("--atol", compare_request.tolerance.atol,
                   "Absolute tolerance (default: rtol times the root mean square of golden)")
      ->check(tolerance);
  compare_app->add_option("--cosine", compare_request.tolerance.cosine, "Least cosine of two tensors (default: none)")
      ->check(number_from(-1, 1, "a number from -1 to 1"));
  compare_app->add_flag("--all", compare_request.all, "List every difference, not only the first 20");

  VerifyRequest verify_request;
  Selection verify_selection;
  CLI::App* verify_app = app.add_subcommand("verify", "Check that a dump is whole: JSON, files, checksums, statistics");
  verify_app->add_option("PATH", verify_request.path, "Dump, step{N}, rank{R}, debug.json, or a .pt or .npy file")
      ->required();
  verify_selection.add_to(*verify_app, false);

  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants it
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return app.exit(error, output.out, output.err) == 0 ? kExitFine : kExitUnusable;
  }
  if (show_app->parsed()) {
    show_request.step = show_selection.step_filter();
    show_request.rank = show_selection.rank_filter();
    show_request.name = show_selection.name;
    return show(show_request, output);
  }
  if (compare_app->parsed()) {
    compare_request.step = compare_selection.step_filter();
    compare_request.rank = compare_selection.rank_filter();
    compare_request.name = compare_selection.name;
    return compare(compare_request, output);
  }
  verify_request.step = verify_selection.step_filter();
  verify_request.rank = verify_selection.rank_filter();
  return verify(verify_request, output);
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments) {
  const bool coloured = std::getenv("NO_COLOR") == nullptr;
  const Output output{std::cout, std::cerr, coloured && is_terminal(STDOUT_FILENO), is_terminal(STDERR_FILENO)};
  CLI::App app("msprobe: what a person does with the dumps of a training run", "msprobe");
  int status = kExitUnusable;
  try {
    status = run(app, arguments, output);
  } catch (const std::bad_alloc&) {
    output.err << "msprobe: out of memory\n";
  } catch (const std::exception& error) {
    output.err << "msprobe: " << printable(error.what()) << '\n';
  }
  output.out.flush();
  return output.out.good() ? status : kExitUnusable;  // a closed pipe or a full disk
}

}  // namespace msprobe

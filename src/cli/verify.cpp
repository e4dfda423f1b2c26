#include <atomic>
#include <cstdint>
#include <filesystem>
#include <ostream>

#include "cli/commands.h"
#include "compare/verification.h"

namespace msprobe {
namespace {

void print_some(const std::vector<std::string>& lines, std::string_view what, const Output& output) {
  constexpr std::size_t kShown = 10;
  if (lines.empty()) return;
  output.out << lines.size() << ' ' << what << ":\n";
  for (std::size_t i = 0; i < lines.size() && i < kShown; ++i) output.out << "  " << printable(lines[i]) << '\n';
  if (lines.size() > kShown) output.out << "  ... and " << lines.size() - kShown << " more\n";
}

// Bytes of all files below `path`, for the bar.
std::uint64_t bytes_below(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::uint64_t bytes = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) bytes += at->file_size(ignored);
  }
  return bytes;
}

}  // namespace

int verify(const VerifyRequest& request, const Output& output) {
  std::atomic<std::uint64_t> done = 0;
  VerificationOptions options;
  options.step = request.step;
  options.rank = request.rank;
  options.bytes_done = &done;
  std::vector<std::string> damages;
  options.on_damage = [&](const std::string& what) { damages.push_back(what); };
  VerificationResult result;
  {
    const double all = output.err_is_terminal ? static_cast<double>(bytes_below(request.path)) : 0;
    const ProgressBar bar(output, "verifying", [&] { return all > 0 ? static_cast<double>(done) / all : 0; });
    result = verify_dump(request.path, options);
  }
  if (result.folders == 0 && result.files == 0 && result.damages == 0 && result.not_checked.empty()) {
    output.err << "msprobe verify: nothing to verify: " << printable(request.path)
               << " has no folders that the options let through\n";
    return kExitUnusable;
  }
  for (const std::string& damage : damages) {
    output.out << output.paint("damaged: " + printable(damage), Colour::kRed) << '\n';
  }
  output.out << result.records << " records in " << result.folders << " folders; " << result.files
             << " tensor files are as recorded";
  output.out << (result.damages == 0 ? "; no damage" : "; damaged: " + std::to_string(result.damages)) << '\n';
  print_some(result.not_checked, "files could not be checked here", output);
  print_some(result.unrecorded, "files that no record names", output);
  return result.damages == 0 ? kExitFine : kExitDifferences;
}

}  // namespace msprobe

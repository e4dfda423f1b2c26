#include "progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

namespace msprobe {
namespace {

constexpr int kBarCells = 30;
constexpr std::chrono::seconds kLineInterval{3};

}  // namespace

void show_drain_progress(std::uint64_t done, std::uint64_t total) noexcept {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point last_line{};
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const bool finished = done >= total;
  if (!terminal && !finished && Clock::now() - last_line < kLineInterval) return;
  last_line = Clock::now();
  const int filled = total == 0 ? kBarCells : static_cast<int>(done * kBarCells / total);
  const std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                          std::string(static_cast<std::size_t>(kBarCells - filled), '.');
  std::fprintf(stderr, "%smsprobe: writing what is queued [%s] %llu/%llu%s", terminal ? "\r" : "", bar.c_str(),
               static_cast<unsigned long long>(done), static_cast<unsigned long long>(total),
               terminal && !finished ? "" : "\n");
  std::fflush(stderr);
}

}  // namespace msprobe

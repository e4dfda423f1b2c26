#pragma once
// The floating-point mode of the calling thread, which is the user's: torch.set_flush_denormal(True) sets
// flush-to-zero, other libraries set rounding modes or unmask exceptions.

#include <cfenv>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace msprobe {

// Round to nearest, subnormals kept, no traps, until the end of the scope; then the mode and the exception flags are
// again what they were.
class ScopedDefaultFloatMode {
 public:
#if defined(__SSE2__)
  // Only SSE arithmetic is used, and its control register alone is ten times faster than the whole environment.
  ScopedDefaultFloatMode() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(kPowerOnDefault); }
  ~ScopedDefaultFloatMode() { _mm_setcsr(saved_); }
#else
  ScopedDefaultFloatMode() noexcept {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~ScopedDefaultFloatMode() { std::fesetenv(&saved_); }
#endif
  ScopedDefaultFloatMode(const ScopedDefaultFloatMode&) = delete;
  ScopedDefaultFloatMode& operator=(const ScopedDefaultFloatMode&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr unsigned kPowerOnDefault = 0x1F80;  // Source: Intel SDM, volume 1, 10.2.3
  unsigned saved_;
#else
  std::fenv_t saved_;
#endif
};

}  // namespace msprobe

#include "msprobe/error.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace msprobe {
namespace {

TEST(IoError, NamesOperationPathAndReason) {
  const IoError error("write_npy", "x2.0.debug.npy", ENOSPC);
  EXPECT_STREQ(error.what(), "write_npy: \"x2.0.debug.npy\": No space left on device");
  EXPECT_EQ(error.error_number(), ENOSPC);
}

}  // namespace
}  // namespace msprobe

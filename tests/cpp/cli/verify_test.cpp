#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../compare/dump_folder.h"
#include "command.h"
#include "config/setting.h"

namespace msprobe {
namespace {

using test::Ran;
using test::run;
using test::ScratchFolder;
using testing::HasSubstr;

TEST(Verify, SaysWhatIsDamaged) {
  const ScratchFolder scratch;
  test::write_records(scratch / "step0/rank0", R"("x.0.debug": 1)");
  VerifyRequest request;
  request.path = scratch.path();
  EXPECT_EQ(run(verify, request).status, kExitFine);
  test::write_text(scratch / "step0/rank1/debug.json", "{\"data\": ");
  const Ran ran = run(verify, request);
  EXPECT_EQ(ran.status, kExitDifferences);
  EXPECT_THAT(ran.out, HasSubstr("damaged: "));
  EXPECT_THAT(ran.out, HasSubstr("rank1/debug.json"));
}

TEST(Verify, OfNothingIsUnusable) {
  const ScratchFolder scratch;
  test::write_records(scratch / "step0/rank0", R"("x.0.debug": 1)");
  VerifyRequest request;
  request.path = scratch.path();
  request.step = parse_filter("step", {std::string("7")});
  const Ran ran = run(verify, request);
  EXPECT_EQ(ran.status, kExitUnusable);
  EXPECT_THAT(ran.err, HasSubstr("nothing to verify"));
}

}  // namespace
}  // namespace msprobe

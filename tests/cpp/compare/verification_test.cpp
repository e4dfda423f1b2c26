#include "compare/verification.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dump_folder.h"
#include "msprobe/error.h"
#include "records.h"

namespace msprobe {
namespace {

using test::ScratchFolder;
using test::tensor_json;
using test::write_npy;
using test::write_text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class VerifyDump : public testing::Test {
 protected:
  // A rank folder with one tensor, x.npy of {3, 4}; `padded`: as this tool writes debug.json.
  void write(const std::string& dtype, const std::string& shape, const std::vector<std::string>& numbers,
             const std::string& more = "", bool padded = true) const {
    std::string text =
        R"({"data": {"x.0.debug": )" + tensor_json(dtype, shape, numbers, more + R"(, "data_name": "x.npy")");
    const std::string end = "\n }\n}\n";
    if (padded) text.resize(4096 - end.size(), ' ');
    write_text(rank() / "debug.json", text + end);
  }
  void write_file() const { write_npy(rank() / "dump_tensor_data/x.npy", {3, 4}); }
  [[nodiscard]] std::filesystem::path rank() const { return scratch_ / "step0/rank0"; }

  VerificationResult verify() {
    damages_.clear();
    VerificationOptions options;
    options.on_damage = [&](const std::string& what) { damages_.push_back(what); };
    return verify_dump(scratch_.path(), options);
  }

  ScratchFolder scratch_;
  std::vector<std::string> damages_;
};

TEST_F(VerifyDump, FindsNothingWrongWithWhatIsWhole) {
  write("torch.float32", "[2]", {"4.0", "3.0", "3.5", "5.0"});
  write_file();
  const VerificationResult result = verify();
  EXPECT_THAT(damages_, IsEmpty());
  EXPECT_EQ(result.folders, 1);
  EXPECT_EQ(result.records, 1);
  EXPECT_EQ(result.files, 1);
}

TEST_F(VerifyDump, TellsWhichStatisticIsNotThatOfTheFile) {
  write_file();
  write("torch.float32", "[2]", {"4.0", "3.0", "3.5", "5.000001"});
  EXPECT_EQ(verify().damages, 1);
  EXPECT_THAT(damages_, ElementsAre(HasSubstr("x.npy: Norm is recorded as 5.000001, the file has 5.0")));
  // Another writer's sums are less exact.
  write("torch.float32", "[2]", {"4.0", "3.0", "3.5", "5.000001"}, "", false);
  EXPECT_EQ(verify().damages, 0);
  write("torch.float32", "[2]", {"4.0", "3.0", "3.5", "5.0"}, R"(, "nan_count": 1)");
  static_cast<void>(verify());
  EXPECT_THAT(damages_, ElementsAre(HasSubstr("nan_count is recorded as 1, the file has 0")));
}

TEST_F(VerifyDump, TellsOfAnotherShapeOrDtype) {
  write_file();
  write("torch.float32", "[2, 1]", {"4.0", "3.0", "3.5", "5.0"});
  static_cast<void>(verify());
  EXPECT_THAT(damages_, ElementsAre(HasSubstr("shape is recorded as [2, 1], the file has [2]")));
  write("torch.float64", "[2]", {"4.0", "3.0", "3.5", "5.0"});
  static_cast<void>(verify());
  EXPECT_THAT(damages_, ElementsAre(HasSubstr("dtype is recorded as torch.float64, the file has float32")));
  write("torch.bfloat16", "[2]", {"4.0", "3.0", "3.5", "5.0"});  // widened by .npy
  EXPECT_EQ(verify().damages, 0);
}

TEST_F(VerifyDump, TakesTheChecksumForThatOfTheDtypeItIsOf) {
  write_file();
  write("torch.float32", "[2]", {"4.0", "3.0", "3.5", "5.0"}, R"(, "md5": "00000000")");
  static_cast<void>(verify());
  EXPECT_THAT(damages_, ElementsAre(HasSubstr("md5 is recorded as 00000000")));
  write("torch.bfloat16", "[2]", {"4.0", "3.0", "3.5", "5.0"}, R"(, "md5": "00000000")");  // of the narrow bytes
  EXPECT_EQ(verify().damages, 0);
}

TEST_F(VerifyDump, TellsOfFilesThatAreMissingShortOrElsewhere) {
  write("torch.float32", "[2]", {"4.0", "3.0", "3.5", "5.0"});
  EXPECT_EQ(verify().damages, 1);
  write_file();
  std::filesystem::resize_file(rank() / "dump_tensor_data/x.npy", 130);
  EXPECT_EQ(verify().damages, 1);
  EXPECT_THAT(damages_, ElementsAre(HasSubstr("x.npy")));
  write_text(rank() / "debug.json", R"({"data": {"x.0.debug": )" +
                                        tensor_json("torch.float32", "[2]", {"4.0", "3.0", "3.5", "5.0"},
                                                    R"(, "data_name": "../../../secret")") +
                                        "}}");
  EXPECT_EQ(verify().damages, 1);
  EXPECT_THAT(damages_, ElementsAre(HasSubstr("leads out of the folder")));
  write_text(rank() / "debug.json", R"({"data": {)");
  EXPECT_EQ(verify().damages, 1);
}

TEST_F(VerifyDump, MentionsFilesThatNoRecordNames) {
  write("torch.float32", "[2]", {"4.0", "3.0", "3.5", "5.0"});
  write_file();
  write_npy(rank() / "dump_tensor_data/y.npy", {1});
  const VerificationResult result = verify();
  EXPECT_EQ(result.damages, 0);
  EXPECT_THAT(result.unrecorded, ElementsAre(HasSubstr("y.npy")));
}

}  // namespace
}  // namespace msprobe

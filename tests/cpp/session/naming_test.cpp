#include "session/naming.h"

#include <gmock/gmock.h>

#include <fstream>

#include "temporary_folder.h"

namespace msprobe {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

TEST(NameRegistry, CountsEachNameFromZero) {
  NameRegistry names;
  EXPECT_EQ(names.next("x", false).count, 0);
  EXPECT_EQ(names.next("y", false).count, 0);
  EXPECT_EQ(names.next("x", true).count, 1);
  EXPECT_EQ(names.next("x", false).count, 2);
}

TEST(NameRegistry, GradientTakesTheSuffixGrad) {
  NameRegistry names;
  const SaveName name = names.next("x", true);
  EXPECT_EQ(name.forward, "x");
  EXPECT_EQ(name.gradient, "x_grad");
  EXPECT_FALSE(name.collided);
}

TEST(NameRegistry, AVariableNamedLikeAGradientComesSecond) {
  NameRegistry names;
  static_cast<void>(names.next("x", true));
  const SaveName user = names.next("x_grad", false);
  EXPECT_EQ(user.forward, "x_grad#2");
  EXPECT_TRUE(user.collided);
  const SaveName again = names.next("x_grad", false);
  EXPECT_EQ(again.forward, "x_grad#2");
  EXPECT_EQ(again.count, 1);
  EXPECT_FALSE(again.collided);
}

TEST(NameRegistry, AGradientNamedLikeAVariableComesSecond) {
  NameRegistry names;
  EXPECT_EQ(names.next("x_grad", false).forward, "x_grad");
  const SaveName x = names.next("x", true);
  EXPECT_EQ(x.forward, "x");
  EXPECT_EQ(x.gradient, "x_grad#2");
}

TEST(NameRegistry, AVariableWithTheSuffixItselfIsAnotherName) {
  NameRegistry names;
  static_cast<void>(names.next("x", true));
  static_cast<void>(names.next("x_grad", false));
  EXPECT_EQ(names.next("x_grad#2", false).forward, "x_grad#2#2");
}

TEST(NameRegistry, TheEmptyNameIsAName) {
  NameRegistry names;
  EXPECT_EQ(names.next("", false).forward, "");
  const SaveName second = names.next("", false);
  EXPECT_EQ(second.forward, "");
  EXPECT_EQ(second.count, 1);
  EXPECT_FALSE(second.collided);
}

TEST(FileName, JoinsKeyIndexesAndSuffix) {
  EXPECT_EQ(file_name("x.0.debug", "", ".pt"), "x.0.debug.pt");
  EXPECT_EQ(file_name("x.0.debug", "key2.0", ".npy"), "x.0.debug.key2.0.npy");
  EXPECT_EQ(file_name("x.0.debug", "a", ".pt", 3), "x.0.debug.a#3.pt");
}

TEST(FileName, KeepsSpacesAndOtherScripts) { EXPECT_EQ(file_name("层 1.0.debug", "", ".pt"), "层 1.0.debug.pt"); }

TEST(FileName, EncodesWhatAFileSystemCannotHold) {
  EXPECT_EQ(file_name("a/b", "", ".pt"), "a%2Fb.pt");
  EXPECT_EQ(file_name("../../etc", "", ".pt"), "..%2F..%2Fetc.pt");
  EXPECT_EQ(file_name(std::string_view("a\0b\n", 4), "", ".pt"), "a%00b%0A.pt");
  EXPECT_EQ(file_name("50%", "", ".pt"), "50%25.pt");
  EXPECT_EQ(file_name("\xED\xA0\x80", "", ".pt"), "%ED%A0%80.pt");  // a lone surrogate
  EXPECT_EQ(file_name("\xC3", "", ".pt"), "%C3.pt");
}

TEST(FileName, CutsLongNamesAtACharacterAndKeepsThemApart) {
  const std::string long_name(10'000, 'x');
  const std::string first = file_name(long_name + "1.0.debug", "", ".pt");
  const std::string second = file_name(long_name + "2.0.debug", "", ".pt");
  EXPECT_EQ(first.size(), kMaxFileNameBytes);
  EXPECT_NE(first, second);
  EXPECT_THAT(first, StartsWith("xxxx"));
  EXPECT_THAT(first, EndsWith(".pt"));
  const TemporaryFolder folder;
  for (int pad = 0; pad < 4; ++pad) {
    std::string wide(static_cast<std::size_t>(pad), 'a');
    for (int i = 0; i < 200; ++i) wide += "层";
    const std::string name = file_name(wide, "", ".pt");
    EXPECT_LE(name.size(), kMaxFileNameBytes);
    EXPECT_TRUE(std::ofstream(folder.path() / name).good()) << name;
    const std::string slashes =
        file_name(std::string(static_cast<std::size_t>(pad), 'a') + std::string(300, '/'), "", ".pt");
    EXPECT_LE(slashes.size(), kMaxFileNameBytes);
    EXPECT_EQ((slashes.find('~') - static_cast<std::size_t>(pad)) % 3, 0U) << "cut inside %2F: " << slashes;
  }
}

Value leaf() { return {TensorLeaf{}}; }

TEST(TensorLeaves, AreListedDepthFirstWithTheirIndexes) {
  Value value{Map{{"key1", leaf()}, {"key2", {List{leaf(), {Scalar{"int", std::int64_t{1}}}, {List{leaf()}}}}}}};
  std::vector<std::string> places;
  for (const LeafPlace& place : tensor_leaves(value)) places.push_back(place.indexes);
  EXPECT_THAT(places, ElementsAre("key1", "key2.0", "key2.2.0"));
}

TEST(TensorLeaves, ATensorAtTheTopHasNoIndexes) {
  Value value = leaf();
  const auto places = tensor_leaves(value);
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places.front().indexes, "");
}

TEST(MakeKeysUnique, TheSecondOfTwoEqualKeysGetsANumber) {
  Value value{List{{Map{{"1", leaf()}, {"1", leaf()}, {"1#2", leaf()}, {"1", leaf()}}}}};
  EXPECT_TRUE(make_keys_unique(value));
  std::vector<std::string> keys;
  for (const auto& [key, child] : std::get<Map>(std::get<List>(value.node).front().node)) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("1", "1#2", "1#2#2", "1#3"));
  EXPECT_FALSE(make_keys_unique(value));
}

}  // namespace
}  // namespace msprobe

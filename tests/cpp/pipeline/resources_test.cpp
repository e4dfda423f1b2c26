#include "pipeline/resources.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <cstdlib>
#include <string>

#include "msprobe/error.h"

namespace msprobe {
namespace {

// Sets an environment variable for one test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

TEST(ParseByteSize, TakesPlainNumbersAndUnits) {
  EXPECT_EQ(parse_byte_size("1"), 1U);
  EXPECT_EQ(parse_byte_size("64M"), 64U << 20);
  EXPECT_EQ(parse_byte_size("2k"), 2048U);
  EXPECT_EQ(parse_byte_size("3G"), std::size_t{3} << 30);
  EXPECT_EQ(parse_byte_size("1T"), std::size_t{1} << 40);
}

TEST(ParseByteSize, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", "M", "0", "-1", "1.5G", "64MB", " 64M", "99999999999999999999", "18446744073709551615K"}) {
    EXPECT_EQ(parse_byte_size(text), std::nullopt) << text;
  }
}

TEST(AsyncMemoryLimit, VariableWins) {
  const ScopedVariable limit("MSPROBE_ASYNC_MEMORY", "48M");
  EXPECT_EQ(async_memory_limit_bytes(), 48U << 20);
}

TEST(AsyncMemoryLimit, BadVariableIsAConfigErrorThatNamesIt) {
  const ScopedVariable limit("MSPROBE_ASYNC_MEMORY", "lots");
  try {
    static_cast<void>(async_memory_limit_bytes());
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("MSPROBE_ASYNC_MEMORY"));
    EXPECT_THAT(error.what(), testing::HasSubstr("\"lots\""));
  }
}

TEST(AsyncMemoryLimit, IsSharedBetweenTheProcessesOfAMachine) {
  const std::size_t alone = async_memory_limit_bytes();
  const ScopedVariable world("LOCAL_WORLD_SIZE", "4");
  const std::size_t shared = async_memory_limit_bytes();
  EXPECT_NEAR(static_cast<double>(shared), static_cast<double>(alone) / 4, static_cast<double>(alone) / 20);
}

TEST(UsableCores, FollowsTheAffinity) {
  cpu_set_t before;
  CPU_ZERO(&before);
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_LE(usable_cores(), static_cast<unsigned>(CPU_COUNT(&before)));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1U);
  sched_setaffinity(0, sizeof before, &before);
}

TEST(ComputeThreads, VariableWinsAndIsChecked) {
  {
    const ScopedVariable threads("MSPROBE_THREADS", "7");
    EXPECT_EQ(compute_thread_count(), 7U);
  }
  for (const char* text : {"0", "-1", "two", "1.5", "1025"}) {
    const ScopedVariable threads("MSPROBE_THREADS", text);
    EXPECT_THROW(static_cast<void>(compute_thread_count()), ConfigError) << text;
  }
}

TEST(ComputeThreads, DefaultIsTheShareOfTheUsableCores) {
  EXPECT_EQ(compute_thread_count(), usable_cores());
  const ScopedVariable world("LOCAL_WORLD_SIZE", "4294967296");
  EXPECT_EQ(compute_thread_count(), 1U);
}

TEST(AsyncThreads, VariableWinsAndIsChecked) {
  {
    const ScopedVariable threads("MSPROBE_ASYNC_THREADS", "3");
    EXPECT_EQ(async_thread_count(), 3U);
  }
  const ScopedVariable threads("MSPROBE_ASYNC_THREADS", "0");
  EXPECT_THROW(static_cast<void>(async_thread_count()), ConfigError);
}

TEST(AsyncThreads, DefaultIsFromOneToFour) {
  EXPECT_GE(async_thread_count(), 1U);
  EXPECT_LE(async_thread_count(), 4U);
}

}  // namespace
}  // namespace msprobe

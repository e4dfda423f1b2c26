#include "session/error_book.h"

#include <gmock/gmock.h>

#include <cerrno>

#include "msprobe/error.h"

namespace msprobe {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::exception_ptr disk_full(const std::string& path) {
  return std::make_exception_ptr(IoError("write", path, ENOSPC));
}

TEST(ErrorBook, FirstFailureOfAKindIsAWarningWithPathAndReason) {
  ErrorBook book(false);
  EXPECT_FALSE(book.has_messages());
  book.add_failure("x.0.debug", disk_full("/dump/x.pt"));
  ASSERT_TRUE(book.has_messages());
  const auto messages = book.take_messages();
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].level, Message::Level::kWarning);
  EXPECT_THAT(messages[0].text, HasSubstr("x.0.debug"));
  EXPECT_THAT(messages[0].text, HasSubstr("/dump/x.pt"));
  EXPECT_THAT(messages[0].text, HasSubstr("No space left on device"));
  EXPECT_FALSE(book.has_messages());
}

TEST(ErrorBook, AThousandFailuresAreFourMessagesAndAllCounted) {
  ErrorBook book(false);
  for (int i = 0; i < 1000; ++i) book.add_failure("x", disk_full("/dump/" + std::to_string(i)));
  EXPECT_THAT(book.take_messages(), SizeIs(4));
  const Summary summary = book.summary();
  EXPECT_EQ(summary.failures, 1000U);
  EXPECT_THAT(summary.text(), HasSubstr("1000 NOT saved: No space left on device (1000)"));
}

TEST(ErrorBook, OtherReasonsAreOtherKinds) {
  ErrorBook book(false);
  book.add_failure("x", disk_full("/a"));
  book.add_failure("x", std::make_exception_ptr(IoError("open", "/a", EACCES)));
  EXPECT_THAT(book.take_messages(), SizeIs(2));
  EXPECT_THAT(book.summary().reasons, SizeIs(2));
}

TEST(ErrorBook, ManyKindsDoNotGrowWithoutBound) {
  ErrorBook book(false);
  for (int i = 0; i < 5000; ++i) book.add_failure("x", std::make_exception_ptr(Error("reason " + std::to_string(i))));
  EXPECT_LE(book.summary().reasons.size(), 65U);
  EXPECT_EQ(book.summary().failures, 5000U);
}

TEST(ErrorBook, WarnOnceWarnsOnceForEachKind) {
  ErrorBook book(false);
  book.warn_once("a", "first");
  book.warn_once("a", "second");
  book.warn_once("b", "third");
  const auto messages = book.take_messages();
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_EQ(messages[0].text, "first");
  EXPECT_EQ(messages[1].text, "third");
}

TEST(ErrorBook, KeepsTheFirstErrorForRaisingOnlyWhenAsked) {
  ErrorBook silent(false);
  silent.add_failure("x", disk_full("/a"));
  EXPECT_NO_THROW(silent.throw_first());
  ErrorBook raising(true);
  EXPECT_NO_THROW(raising.throw_first());
  raising.add_failure("x", disk_full("/first"));
  raising.add_failure("x", disk_full("/second"));
  try {
    raising.throw_first();
    FAIL();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/first"));
  }
  EXPECT_NO_THROW(raising.throw_first());
}

TEST(Summary, SaysThatNothingWasLost) {
  ErrorBook book(false);
  book.count_saves(3);
  book.count_gradients();
  EXPECT_EQ(book.summary().text(), "3 saved, 1 gradients, none lost");
}

}  // namespace
}  // namespace msprobe

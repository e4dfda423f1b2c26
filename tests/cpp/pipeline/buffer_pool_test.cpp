#include "pipeline/buffer_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace msprobe {
namespace {

TEST(BufferPool, ReusesTheBufferThatCameBack) {
  const auto pool = BufferPool::create(1 << 20);
  auto first = pool->acquire(10'000);
  const std::byte* address = first.get();
  first.reset();
  const auto second = pool->acquire(10'000);
  EXPECT_EQ(second.get(), address);
}

TEST(BufferPool, BuffersAreAlignedForVectorCode) {
  const auto pool = BufferPool::create(1 << 20);
  for (const std::size_t bytes : {1U, 513U, 70'000U}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool->acquire(bytes).get()) % 64, 0U) << bytes;
  }
}

TEST(BufferPool, LargeBuffersBeginAtAHugePage) {
  constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
  const auto pool = BufferPool::create(64 << 20);
  auto buffer = pool->acquire(9'000'000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.get()) % kHugePageBytes, 0U);
  const std::byte* address = buffer.get();
  std::fill_n(buffer.get(), 9'000'000, std::byte{1});
  buffer.reset();
  EXPECT_EQ(pool->acquire(9'000'000).get(), address);
}

TEST(BufferPool, CapacityIsAtMostAnEighthOverTheNeed) {
  for (std::size_t bytes = 513; bytes < 3'000'000; bytes = bytes * 9 / 8 + 1) {
    const std::size_t capacity = BufferPool::capacity_for(bytes);
    EXPECT_GE(capacity, bytes);
    EXPECT_LE(capacity, bytes + bytes / 8 + 1) << bytes;
    EXPECT_EQ(BufferPool::capacity_for(capacity), capacity);
  }
}

TEST(BufferPool, AFreeBufferOfAnotherSizeMakesRoomForANewOne) {
  constexpr std::size_t kLimit = 64 * 1024;
  const auto pool = BufferPool::create(kLimit);
  pool->acquire(kLimit).reset();  // fills the pool with one free buffer
  const auto small = pool->acquire(1000);
  const auto rest = pool->acquire(kLimit / 2);
  EXPECT_NE(small, nullptr);
  EXPECT_NE(rest, nullptr);
}

TEST(BufferPool, ABufferMayOutliveThePool) {
  auto pool = BufferPool::create(1 << 20);
  auto buffer = pool->acquire(1000);
  pool.reset();
  buffer.get()[999] = std::byte{1};
  buffer.reset();
}

}  // namespace
}  // namespace msprobe

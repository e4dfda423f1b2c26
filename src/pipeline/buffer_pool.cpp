#include "pipeline/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace msprobe {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

void BufferPool::AlignedDelete::operator()(std::byte* memory) const noexcept { ::operator delete(memory, kAlignment); }

std::shared_ptr<BufferPool> BufferPool::create(std::size_t limit_bytes) {
  return std::shared_ptr<BufferPool>(new BufferPool(limit_bytes));
}

// An eighth of a power of two: at most 12.5 % more than asked for, and tensors of similar size share buffers.
std::size_t BufferPool::capacity_for(std::size_t bytes) noexcept {
  constexpr std::size_t kSmallest = 512;
  if (bytes <= kSmallest) return kSmallest;
  const std::size_t mask = (std::bit_floor(bytes) >> 3U) - 1;
  return (bytes + mask) & ~mask;
}

std::shared_ptr<std::byte> BufferPool::acquire(std::size_t bytes) {
  const std::size_t capacity = capacity_for(bytes);
  Memory memory;
  {
    const std::lock_guard lock(mutex_);
    const auto found = free_.find(capacity);
    if (found != free_.end()) {
      memory = std::move(found->second);
      free_.erase(found);
    } else {
      while (!free_.empty() && total_bytes_ + capacity > limit_bytes_) {
        const auto largest = std::prev(free_.end());
        total_bytes_ -= largest->first;
        free_.erase(largest);
      }
      total_bytes_ += capacity;
    }
  }
  if (!memory) {
    try {
      memory.reset(static_cast<std::byte*>(::operator new(capacity, kAlignment)));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      total_bytes_ -= capacity;
      throw;
    }
  }
  return {memory.release(),
          [pool = shared_from_this(), capacity](std::byte* returned) { pool->give_back(capacity, returned); }};
}

void BufferPool::give_back(std::size_t capacity, std::byte* memory) noexcept {
  Memory owned(memory);
  const std::lock_guard lock(mutex_);
  if (total_bytes_ > limit_bytes_) {
    total_bytes_ -= capacity;
    return;
  }
  try {
    free_.emplace(capacity, std::move(owned));
  } catch (const std::bad_alloc&) {
    total_bytes_ -= capacity;  // no room for the map's node: `owned` frees the memory
  }
}

}  // namespace msprobe

#include "pipeline/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

namespace msprobe {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
constexpr std::size_t kFewestHugePages = 2;  // below, what alignment wastes is more than what it saves

}  // namespace

void BufferPool::AlignedDelete::operator()(std::byte* memory) const noexcept {
  ::operator delete (memory, std::align_val_t{alignment});
}

BufferPool::Memory BufferPool::allocate(std::size_t capacity) {
  const bool huge = capacity >= kFewestHugePages * kHugePageBytes;
  const std::size_t alignment = huge ? kHugePageBytes : kAlignment;
  Memory memory(static_cast<std::byte*>(::operator new (capacity, std::align_val_t{alignment})),
                AlignedDelete{alignment});
  // Only where a page is used as a whole, so that no more memory is taken than was counted. It fails on a system
  // without huge pages; then they are small.
  if (huge) madvise(memory.get(), capacity / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
  return memory;
}

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
  Memory memory(nullptr, AlignedDelete{kAlignment});
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
      memory = allocate(capacity);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      total_bytes_ -= capacity;
      throw;
    }
  }
  const AlignedDelete deleter = memory.get_deleter();
  return {memory.release(), [pool = shared_from_this(), capacity, deleter](std::byte* returned) {
            pool->give_back(Memory(returned, deleter), capacity);
          }};
}

void BufferPool::give_back(Memory memory, std::size_t capacity) noexcept {
  const std::lock_guard lock(mutex_);
  if (total_bytes_ > limit_bytes_) {
    total_bytes_ -= capacity;
    return;
  }
  try {
    free_.emplace(capacity, std::move(memory));
  } catch (const std::bad_alloc&) {
    total_bytes_ -= capacity;  // no room for the map's node: the memory is freed
  }
}

}  // namespace msprobe

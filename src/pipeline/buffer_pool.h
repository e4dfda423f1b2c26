#pragma once
// Buffers for snapshots, kept for reuse so that a training loop faults no new pages after its first steps. Large ones
// are of huge pages where the system has them: the first copy into 64 MiB then takes 32 page faults, not 16,384.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <span>

namespace msprobe {

// Thread: any. Buffers may outlive the pool.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  // `limit_bytes`: what free and handed-out buffers may have together; free ones are given up to stay below it.
  [[nodiscard]] static std::shared_ptr<BufferPool> create(std::size_t limit_bytes);

  // Returns 64-byte-aligned, uninitialised memory of `bytes` bytes, which goes back to the pool with its last owner.
  // Throws: std::bad_alloc.
  [[nodiscard]] std::shared_ptr<std::byte> acquire(std::size_t bytes);

  // Capacity that a buffer of `bytes` really takes.
  [[nodiscard]] static std::size_t capacity_for(std::size_t bytes) noexcept;

 private:
  struct AlignedDelete {
    std::size_t alignment;
    void operator()(std::byte* memory) const noexcept;
  };
  using Memory = std::unique_ptr<std::byte, AlignedDelete>;

  explicit BufferPool(std::size_t limit_bytes) noexcept : limit_bytes_(limit_bytes) {}
  static Memory allocate(std::size_t capacity);
  void give_back(Memory memory, std::size_t capacity) noexcept;

  const std::size_t limit_bytes_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::multimap<std::size_t, Memory> free_;  // by capacity
  std::size_t total_bytes_ = 0;              // free and handed out
};

}  // namespace msprobe

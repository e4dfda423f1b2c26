#pragma once
// How much memory and how many cores this process may use, cgroups and affinity included.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace msprobe {

// The queue limit in bytes: MSPROBE_ASYNC_MEMORY (bytes, or with K, M, G, T) if set, else a quarter of the memory
// available to the process divided by LOCAL_WORLD_SIZE.
// Throws: ConfigError if MSPROBE_ASYNC_MEMORY is no such size.
[[nodiscard]] std::size_t async_memory_limit_bytes();

// Cores that this process may use at once: its affinity, and the CPU quota of its cgroups, rounded down. At least 1.
[[nodiscard]] unsigned usable_cores();

// Threads that may share the work on one large tensor, the caller included: MSPROBE_THREADS if set (1: the caller
// alone), else usable_cores() divided by LOCAL_WORLD_SIZE, at least 1.
// Throws: ConfigError if MSPROBE_THREADS is no whole number from 1 to 1024.
[[nodiscard]] unsigned compute_thread_count();

// Worker threads of the pipeline: MSPROBE_ASYNC_THREADS if set, else half of the usable cores, at least 1, at most 4.
// Throws: ConfigError if MSPROBE_ASYNC_THREADS is no positive number.
[[nodiscard]] unsigned async_thread_count();

// "64M" -> 67108864. Nothing if `text` is no positive size.
[[nodiscard]] std::optional<std::size_t> parse_byte_size(std::string_view text) noexcept;

}  // namespace msprobe

#pragma once
// The only file that calls open, write, rename and their kin. Every other part of the tool goes through it.
//
// Folders are opened relative to their parent's descriptor and never through a symbolic link, so that nothing outside
// the dump is ever touched. Files appear under their name only when they are complete:
//
//   create  ->  .tmp.{pid}.{n} in the same folder  ->  write...  ->  commit: rename to the final name, never over
//                                                                     an existing file; destroy: unlink
//
// Nothing is synced to the device: what is promised survives the death of the process, not that of the machine.

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msprobe/error.h"

namespace msprobe {

// Owns a file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor();

  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  // Closes and checks. Throws: IoError with `path` in its message; the descriptor is closed all the same.
  void close(const std::string& path);

 private:
  int fd_ = -1;
};

// An open folder. All names given to it are single path components. Copies share one descriptor. Thread: any.
class Directory {
 public:
  Directory() = default;
  // Creates `path` with its parents (0750) where missing, resolves links once, opens it.
  // Throws: IoError.
  [[nodiscard]] static Directory create_root(const std::string& path);

  // Opens the sub-folder `name`, creating it (0750) if it is missing. Never follows a link.
  // Throws: IoError (a link or a file of that name: ENOTDIR or ELOOP).
  [[nodiscard]] Directory create_subdirectory(const std::string& name) const;
  // As above, but returns nothing where there is no such folder.
  [[nodiscard]] std::optional<Directory> open_subdirectory(const std::string& name) const;

  // Names of the entries, in no order, without "." and "..". Throws: IoError.
  [[nodiscard]] std::vector<std::string> entries() const;
  // Whether there is an entry `name`, a dangling link included. Throws: IoError.
  [[nodiscard]] bool contains(const std::string& name) const;
  // Renames an entry; never over an existing one. Returns false if `to` exists. Throws: IoError.
  // Two processes can race only for a folder, and only on a file system without RENAME_NOREPLACE.
  bool rename_entry(const std::string& from, const std::string& to) const;

  // Absolute, links resolved at the time of opening. For messages and for `dump_data_dir`.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  // The descriptor, which stays open as long as the result is held. Throws: IoError if it was released and the folder
  // is gone or is another one now (ESTALE).
  [[nodiscard]] std::shared_ptr<const FileDescriptor> descriptor() const;
  // Closes the descriptors of a sub-folder and its parents below the root until they are needed again, in all copies.
  void release() const noexcept;

 private:
  struct State;
  Directory(FileDescriptor fd, std::string path, const Directory* parent, std::string name);

  std::shared_ptr<State> state_;
  std::string path_;
};

// A file that is being written and appears only when it is committed. One thread at a time.
class NewFile {
 public:
  // Creates the temporary file (0640) in `directory`. `name` stands in the messages of errors before commit(); without
  // it the folder does. Throws: IoError.
  explicit NewFile(const Directory& directory, const std::string& name = {});
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  // Unlinks the temporary file if it was not committed (not in a forked child: the file is the parent's).
  ~NewFile();

  // Appends all bytes (loops on short writes and EINTR). Throws: IoError; then only destruction is allowed.
  void write(std::span<const std::byte> bytes);
  // Overwrites bytes that were written before, at `offset`. Throws: as write().
  void overwrite(std::uint64_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  // Where the file is for now, for a library that opens and writes it by its path.
  [[nodiscard]] std::string temporary_path() const;

  // Closes the file and gives it its name. If `name` exists and `replace` is false, returns false and the file can be
  // committed again under another name. Throws: IoError.
  bool commit(const std::string& name, bool replace = false);

 private:
  void discard() noexcept;

  Directory directory_;
  std::string label_;           // path for messages
  std::string temporary_name_;  // empty: committed or moved away
  FileDescriptor fd_;
  pid_t owner_ = 0;
  std::uint64_t size_ = 0;
};

// An existing file that is changed in place. One thread at a time.
class OpenFile {
 public:
  OpenFile() = default;
  // Opens `name` in `directory` for reading and writing; never follows a link. Throws: IoError.
  OpenFile(const Directory& directory, const std::string& name);

  [[nodiscard]] bool is_open() const noexcept { return fd_.is_open(); }
  // Whether the file has no name any more: what is written to it is lost.
  [[nodiscard]] bool is_deleted() const noexcept;
  // Throws: IoError.
  [[nodiscard]] std::uint64_t size() const;
  // Fills all of `bytes`. Throws: IoError; ESTALE if the file ends before.
  void read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
  // Writes all of `bytes` in ascending order, with a single pwrite unless that one comes back short.
  // Throws: IoError; then any number of them may have been written.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);

 private:
  FileDescriptor fd_;
  std::string path_;
};

// An existing file that is only read. Thread: any.
class InputFile {
 public:
  // Opens the regular file `path`, which comes from the user: links are followed. Never waits, not even for a FIFO.
  // Throws: IoError (EINVAL if it is no regular file, EISDIR if it is a folder).
  explicit InputFile(std::string path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // Bytes when the file was opened.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  // Fills all of `bytes`. Throws: IoError; FormatError if the file ends before.
  void read_at(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  std::string path_;
  FileDescriptor fd_;
  std::uint64_t size_ = 0;
};

// Opens or creates the lock file `name` in `directory` and takes an exclusive, non-blocking flock.
// Returns nothing if another process holds it; the lock lives as long as the descriptor.
// Throws: IoError.
[[nodiscard]] std::optional<FileDescriptor> try_lock_file(const Directory& directory, const std::string& name);

}  // namespace msprobe

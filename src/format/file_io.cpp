#include "format/file_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

namespace msprobe {

namespace {

constexpr mode_t kFolderMode = 0750;
constexpr mode_t kFileMode = 0640;

// Repeats a system call that a signal interrupted before it did anything.
template <typename Call>
auto retry(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

int open_at(int folder, const char* name, int flags, mode_t mode = 0) {
  return retry([&] { return openat(folder, name, flags | O_CLOEXEC | O_NOFOLLOW, mode); });
}

std::string join(const Directory& directory, const std::string& name) { return directory.path() + "/" + name; }

// Writes everything or returns the errno. `offset` < 0: at the descriptor's own position.
int write_all(int fd, off_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = retry([&] {
      return offset < 0 ? write(fd, bytes.data(), bytes.size()) : pwrite(fd, bytes.data(), bytes.size(), offset);
    });
    if (written < 0) return errno;
    if (written == 0) return EIO;  // no progress would loop for ever
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    if (offset >= 0) offset += written;
  }
  return 0;
}

bool entry_exists(int folder, const char* name) {
  struct stat status {};
  return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

// For file systems without RENAME_NOREPLACE. A hard link never replaces anything; what cannot have one (a folder, any
// file on some network file systems) is looked at before it is renamed.
int rename_new_by_link(int folder, const char* from, const char* to) {
  if (linkat(folder, from, folder, to, 0) == 0) return unlinkat(folder, from, 0) == 0 ? 0 : errno;
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  if (entry_exists(folder, to)) return EEXIST;
  return renameat(folder, from, folder, to) == 0 ? 0 : errno;
}

// Returns 0, EEXIST if there is an entry `to`, or another errno.
int rename_new(int folder, const char* from, const char* to) {
  if (retry([&] { return renameat2(folder, from, folder, to, RENAME_NOREPLACE); }) == 0) return 0;
  return errno == EINVAL || errno == ENOSYS ? rename_new_by_link(folder, from, to) : errno;
}

// Creates `path` with the parents that are missing; existing ones are not touched.
void create_folders(const std::string& path) {
  if (mkdir(path.c_str(), kFolderMode) == 0 || errno == EEXIST) return;
  const int error = errno;
  const std::size_t name_end = path.find_last_not_of('/');
  const std::size_t slash = name_end == std::string::npos ? name_end : path.find_last_of('/', name_end);
  if (error != ENOENT || slash == std::string::npos || slash == 0) throw IoError("create folder", path, error);
  create_folders(path.substr(0, slash));
  if (mkdir(path.c_str(), kFolderMode) != 0 && errno != EEXIST) throw IoError("create folder", path, errno);
}

struct Free {
  void operator()(char* text) const noexcept { std::free(text); }  // NOLINT(cppcoreguidelines-no-malloc): realpath's
};
struct CloseStream {
  void operator()(DIR* stream) const noexcept { closedir(stream); }
};

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  FileDescriptor taken(std::move(other));
  std::swap(fd_, taken.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

void FileDescriptor::close(const std::string& path) {
  // Linux frees the descriptor whatever close() returns; after EINTR a second try could hit someone else's.
  if (is_open() && ::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) throw IoError("close", path, errno);
}

struct Directory::State {
  Directory parent;  // without a state: of a root
  std::string name;
  dev_t device = 0;
  ino_t inode = 0;
  std::mutex mutex;
  std::shared_ptr<const FileDescriptor> fd;  // guarded by mutex, but of a root
};

Directory::Directory(FileDescriptor fd, std::string path, const Directory* parent, std::string name)
    : state_(std::make_shared<State>()), path_(std::move(path)) {
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) throw IoError("open folder", path_, errno);
  if (parent != nullptr) state_->parent = *parent;
  state_->name = std::move(name);
  state_->device = status.st_dev;
  state_->inode = status.st_ino;
  state_->fd = std::make_shared<const FileDescriptor>(std::move(fd));
}

std::shared_ptr<const FileDescriptor> Directory::descriptor() const {
  // A root's never changes. No lock: a forked child asks too, where the mutex may be locked for ever.
  if (!state_->parent.state_) return state_->fd;
  const std::lock_guard lock(state_->mutex);
  if (state_->fd) return state_->fd;
  const auto parent = state_->parent.descriptor();
  FileDescriptor fd(open_at(parent->get(), state_->name.c_str(), O_RDONLY | O_DIRECTORY));
  struct stat status {};
  if (!fd.is_open() || fstat(fd.get(), &status) != 0) throw IoError("open folder", path_, errno);
  if (status.st_dev != state_->device || status.st_ino != state_->inode) throw IoError("open folder", path_, ESTALE);
  state_->fd = std::make_shared<const FileDescriptor>(std::move(fd));
  return state_->fd;
}

void Directory::release() const noexcept {
  if (!state_ || !state_->parent.state_) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->fd.reset();
  }
  state_->parent.release();
}

Directory Directory::create_root(const std::string& path) {
  create_folders(path);
  const std::unique_ptr<char, Free> resolved(realpath(path.c_str(), nullptr));
  if (!resolved) throw IoError("open folder", path, errno);
  FileDescriptor fd(open_at(AT_FDCWD, resolved.get(), O_RDONLY | O_DIRECTORY));
  if (!fd.is_open()) throw IoError("open folder", path, errno);
  return {std::move(fd), resolved.get(), nullptr, {}};
}

Directory Directory::create_subdirectory(const std::string& name) const {
  if (mkdirat(descriptor()->get(), name.c_str(), kFolderMode) != 0 && errno != EEXIST) {
    throw IoError("create folder", join(*this, name), errno);
  }
  auto folder = open_subdirectory(name);
  if (!folder) throw IoError("open folder", join(*this, name), ENOENT);
  return *std::move(folder);
}

std::optional<Directory> Directory::open_subdirectory(const std::string& name) const {
  FileDescriptor fd(open_at(descriptor()->get(), name.c_str(), O_RDONLY | O_DIRECTORY));
  if (fd.is_open()) return Directory(std::move(fd), join(*this, name), this, name);
  if (errno == ENOENT) return std::nullopt;
  throw IoError("open folder", join(*this, name), errno);
}

std::vector<std::string> Directory::entries() const {
  // A descriptor of its own: the read position is not to be shared.
  const int fd = open_at(descriptor()->get(), ".", O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, CloseStream> stream(fd < 0 ? nullptr : fdopendir(fd));
  if (!stream) {
    const FileDescriptor unused(fd);
    throw IoError("list folder", path_, errno);
  }
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = readdir(stream.get());  // NOLINT(concurrency-mt-unsafe): no other thread has this stream
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) throw IoError("list folder", path_, errno);
  return names;
}

bool Directory::contains(const std::string& name) const {
  if (entry_exists(descriptor()->get(), name.c_str())) return true;
  if (errno == ENOENT) return false;
  throw IoError("look for", join(*this, name), errno);
}

bool Directory::rename_entry(const std::string& from, const std::string& to) const {
  const int error = rename_new(descriptor()->get(), from.c_str(), to.c_str());
  if (error != 0 && error != EEXIST) throw IoError("rename to " + to, join(*this, from), error);
  return error == 0;
}

NewFile::NewFile(const Directory& directory, const std::string& name)
    : directory_(directory), label_(name.empty() ? directory.path() : join(directory, name)), owner_(getpid()) {
  static std::atomic<std::uint64_t> counter = 0;
  const auto folder = directory_.descriptor();
  do {  // EEXIST: left by a killed process that had the same id
    temporary_name_ = ".tmp." + std::to_string(owner_) + "." + std::to_string(counter++);
    fd_ = FileDescriptor(open_at(folder->get(), temporary_name_.c_str(), O_RDWR | O_CREAT | O_EXCL, kFileMode));
  } while (!fd_.is_open() && errno == EEXIST);
  if (!fd_.is_open()) throw IoError("create file", label_, errno);
}

NewFile::NewFile(NewFile&& other) noexcept
    : directory_(std::move(other.directory_)),
      label_(std::move(other.label_)),
      temporary_name_(std::exchange(other.temporary_name_, {})),
      fd_(std::move(other.fd_)),
      owner_(other.owner_),
      size_(other.size_) {}

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  directory_ = std::move(other.directory_);
  label_ = std::move(other.label_);
  temporary_name_ = std::exchange(other.temporary_name_, {});
  fd_ = std::move(other.fd_);
  owner_ = other.owner_;
  size_ = other.size_;
  return *this;
}

NewFile::~NewFile() { discard(); }

void NewFile::discard() noexcept {
  if (temporary_name_.empty() || owner_ != getpid()) return;
  try {
    unlinkat(directory_.descriptor()->get(), temporary_name_.c_str(), 0);
  } catch (const std::exception&) {
    // The folder is gone, and the file with it; or there is no memory to open it.
    return;
  }
  temporary_name_.clear();
}

void NewFile::write(std::span<const std::byte> bytes) {
  if (const int error = write_all(fd_.get(), -1, bytes); error != 0) throw IoError("write", label_, error);
  size_ += bytes.size();
}

void NewFile::overwrite(std::uint64_t offset, std::span<const std::byte> bytes) {
  const int error = write_all(fd_.get(), static_cast<off_t>(offset), bytes);
  if (error != 0) throw IoError("write", label_, error);
}

std::string NewFile::temporary_path() const { return join(directory_, temporary_name_); }

bool NewFile::commit(const std::string& name, bool replace) {
  const std::string path = join(directory_, name);
  fd_.close(path);
  const auto held = directory_.descriptor();
  const int folder = held->get();
  const char* from = temporary_name_.c_str();
  int error = 0;
  if (!replace) {
    error = rename_new(folder, from, name.c_str());
  } else if (retry([&] { return renameat(folder, from, folder, name.c_str()); }) != 0) {
    error = errno;
  }
  if (!replace && error == EEXIST) return false;
  if (error != 0) throw IoError("commit file", path, error);
  temporary_name_.clear();
  return true;
}

OpenFile::OpenFile(const Directory& directory, const std::string& name)
    : fd_(open_at(directory.descriptor()->get(), name.c_str(), O_RDWR)), path_(join(directory, name)) {
  if (!fd_.is_open()) throw IoError("open file", path_, errno);
}

bool OpenFile::is_deleted() const noexcept {
  struct stat status {};
  return fstat(fd_.get(), &status) == 0 && status.st_nlink == 0;
}

std::uint64_t OpenFile::size() const {
  struct stat status {};
  if (fstat(fd_.get(), &status) != 0) throw IoError("read size", path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

void OpenFile::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count =
        retry([&] { return pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (count <= 0) throw IoError("read", path_, count < 0 ? errno : ESTALE);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void OpenFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  const int error = write_all(fd_.get(), static_cast<off_t>(offset), bytes);
  if (error != 0) throw IoError("write", path_, error);
}

InputFile::InputFile(std::string path)
    : path_(std::move(path)),
      // Without O_NONBLOCK the open of a FIFO waits for a writer; a regular file is read as without it.
      fd_(retry([&] { return open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); })) {
  struct stat status {};
  if (!fd_.is_open() || fstat(fd_.get(), &status) != 0) throw IoError("open file", path_, errno);
  if (S_ISDIR(status.st_mode)) throw IoError("open file", path_, EISDIR);
  if (!S_ISREG(status.st_mode)) throw IoError("open file that is not a regular one", path_, EINVAL);
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void InputFile::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  const std::uint64_t wanted = offset + bytes.size();
  while (!bytes.empty()) {
    const ssize_t count =
        retry([&] { return pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (count < 0) throw IoError("read", path_, errno);
    if (count == 0) {
      throw FormatError("read: \"" + path_ + "\": found the end of the file at byte " + std::to_string(offset) +
                        ", wanted at least " + std::to_string(wanted) + " bytes");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

std::optional<FileDescriptor> try_lock_file(const Directory& directory, const std::string& name) {
  FileDescriptor fd(open_at(directory.descriptor()->get(), name.c_str(), O_RDWR | O_CREAT, kFileMode));
  if (!fd.is_open()) throw IoError("open lock file", join(directory, name), errno);
  if (retry([&] { return flock(fd.get(), LOCK_EX | LOCK_NB); }) == 0) return fd;
  if (errno == EWOULDBLOCK) return std::nullopt;
  throw IoError("lock", join(directory, name), errno);
}

}  // namespace msprobe

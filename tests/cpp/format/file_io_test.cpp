#include "format/file_io.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <utility>

#include "scratch.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;
using test::bytes_of;
using test::count_entries;
using test::error_of;
using test::read_file;
using test::run_in_child;
using test::ScratchFolder;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class ZeroUmask {
 public:
  ZeroUmask() : old_(umask(0)) {}
  ZeroUmask(const ZeroUmask&) = delete;
  ZeroUmask& operator=(const ZeroUmask&) = delete;
  ~ZeroUmask() { umask(old_); }

 private:
  mode_t old_;
};

unsigned mode_of(const fs::path& path) { return static_cast<unsigned>(fs::status(path).permissions()); }

void create(const Directory& directory, const std::string& name, std::string_view content = "x") {
  NewFile file(directory);
  file.write(bytes_of(content));
  ASSERT_TRUE(file.commit(name));
}

// From now on renameat2 fails in this process as it does on a file system that has no RENAME_NOREPLACE.
bool forbid_renameat2() {
  std::array<sock_filter, 4> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(FileDescriptor, MovesOwnership) {
  FileDescriptor a(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int number = a.get();
  FileDescriptor b(std::move(a));
  EXPECT_FALSE(a.is_open());  // NOLINT(bugprone-use-after-move)
  FileDescriptor c;
  c = std::move(b);
  EXPECT_EQ(c.get(), number);
  c = FileDescriptor();
  EXPECT_EQ(fcntl(number, F_GETFD), -1) << "assignment must close the old descriptor";
}

TEST(FileDescriptor, CloseReportsErrorWithPath) {
  FileDescriptor fd(1'000'000);
  std::string message;
  EXPECT_EQ(error_of([&] { fd.close("/some/file"); }, &message), EBADF);
  EXPECT_EQ(message, "close: \"/some/file\": Bad file descriptor");
  EXPECT_FALSE(fd.is_open());
}

TEST(Directory, CreateRootMakesParentsWithMode0750) {
  const ScratchFolder scratch;
  const ZeroUmask umask_zero;
  const Directory root = Directory::create_root(scratch / "a/b//c/");
  EXPECT_EQ(root.path(), scratch / "a/b/c");
  for (const char* name : {"a", "a/b", "a/b/c"}) EXPECT_EQ(mode_of(scratch / name), 0750U) << name;
}

TEST(Directory, CreateRootTakesRelativePath) {
  const ScratchFolder scratch;
  const fs::path before = fs::current_path();
  fs::current_path(scratch.path());
  const Directory root = Directory::create_root("dump/x");
  fs::current_path(before);
  EXPECT_EQ(root.path(), scratch / "dump/x");
}

TEST(Directory, CreateRootResolvesLinksOnce) {
  const ScratchFolder scratch;
  fs::create_directory(scratch / "real");
  fs::create_directory(scratch / "other");
  fs::create_directory_symlink(scratch / "real", scratch / "link");
  const Directory root = Directory::create_root(scratch / "link");
  EXPECT_EQ(root.path(), scratch / "real");
  fs::remove(scratch / "link");
  fs::create_directory_symlink(scratch / "other", scratch / "link");
  create(root, "file");
  EXPECT_TRUE(fs::exists(scratch / "real/file"));
  EXPECT_EQ(count_entries(scratch / "other"), 0U);
}

TEST(Directory, CreateRootNamesWhatIsInTheWay) {
  const ScratchFolder scratch;
  create(scratch.open(), "file");
  std::string message;
  EXPECT_EQ(error_of([&] { (void)Directory::create_root(scratch / "file"); }, &message), ENOTDIR);
  EXPECT_THAT(message, HasSubstr((scratch / "file").string() + "\": Not a directory"));
  EXPECT_EQ(error_of([&] { (void)Directory::create_root(scratch / "file/below"); }), ENOTDIR);
  EXPECT_EQ(error_of([&] { (void)Directory::create_root(""); }), ENOENT);
}

TEST(Directory, SubdirectoryIsCreatedWithMode0750AndReused) {
  const ScratchFolder scratch;
  const ZeroUmask umask_zero;
  const Directory root = scratch.open();
  EXPECT_FALSE(root.open_subdirectory("sub"));
  const Directory sub = root.create_subdirectory("sub");
  EXPECT_EQ(sub.path(), scratch / "sub");
  EXPECT_EQ(mode_of(sub.path()), 0750U);
  create(sub, "file");
  EXPECT_TRUE(root.create_subdirectory("sub").contains("file"));
  EXPECT_TRUE(root.open_subdirectory("sub").value().contains("file"));
}

TEST(Directory, SubdirectoryRefusesLinkAndFile) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  fs::create_directory(scratch / "target");
  fs::create_directory_symlink(scratch / "target", scratch / "link");
  create(root, "file");
  for (const char* name : {"link", "file"}) {
    std::string message;
    EXPECT_THAT(error_of([&] { (void)root.create_subdirectory(name); }, &message), AnyOf(ELOOP, ENOTDIR)) << name;
    EXPECT_THAT(message, HasSubstr((scratch / name).string()));
    EXPECT_THAT(error_of([&] { (void)root.open_subdirectory(name); }), AnyOf(ELOOP, ENOTDIR)) << name;
  }
}

TEST(Directory, EntriesListsEverythingEachTime) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  EXPECT_TRUE(root.entries().empty());
  create(root, "a");
  (void)root.create_subdirectory(".b");
  for (int i = 0; i < 2; ++i) EXPECT_THAT(root.entries(), UnorderedElementsAre("a", ".b"));
}

TEST(Directory, CopiesShareTheDescriptor) {
  const ScratchFolder scratch;
  auto root = std::make_unique<Directory>(scratch.open());
  const Directory copy = *root;
  EXPECT_EQ(copy.descriptor()->get(), root->descriptor()->get());
  EXPECT_NE(fcntl(copy.descriptor()->get(), F_GETFD) & FD_CLOEXEC, 0);
  root.reset();
  create(copy, "file");
  EXPECT_TRUE(copy.contains("file"));
}

TEST(Directory, AReleasedDescriptorIsOpenedAgainWhenNeeded) {
  const ScratchFolder scratch;
  const Directory folder = scratch.open().create_subdirectory("a").create_subdirectory("b");
  folder.release();
  create(folder, "file");
  EXPECT_TRUE(folder.contains("file"));
  EXPECT_TRUE(std::filesystem::exists(scratch.path() / "a" / "b" / "file"));
}

TEST(Directory, AnotherFolderInTheReleasedOnesPlaceIsRefused) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  const Directory folder = root.create_subdirectory("a");
  folder.release();
  ASSERT_TRUE(root.rename_entry("a", "moved"));
  (void)root.create_subdirectory("a");
  try {
    (void)folder.entries();
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.error_number(), ESTALE);
  }
}

TEST(Directory, RenameEntryNeverReplaces) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  create(root, "a", "A");
  create(root, "b", "B");
  (void)root.create_subdirectory("folder");
  (void)root.create_subdirectory("empty");
  EXPECT_FALSE(root.rename_entry("a", "b"));
  EXPECT_FALSE(root.rename_entry("folder", "empty"));
  EXPECT_EQ(read_file(scratch / "b"), "B");
  EXPECT_TRUE(root.rename_entry("a", "c"));
  EXPECT_TRUE(root.rename_entry("folder", "moved"));
  EXPECT_THAT(root.entries(), UnorderedElementsAre("b", "c", "empty", "moved"));
  std::string message;
  EXPECT_EQ(error_of([&] { root.rename_entry("missing", "d"); }, &message), ENOENT);
  EXPECT_THAT(message, HasSubstr((scratch / "missing").string()));
}

TEST(Directory, NeverReplacesWithoutRenameNoreplace) {
  const ScratchFolder scratch;
  const int status = run_in_child([&] {
    const Directory root = scratch.open();
    if (!forbid_renameat2()) return 77;
    create(root, "a", "A");
    (void)root.create_subdirectory("folder");
    (void)root.create_subdirectory("empty");
    NewFile file(root);
    file.write(bytes_of("B"));
    if (file.commit("a")) return 1;
    if (root.rename_entry("folder", "empty")) return 2;
    if (!root.rename_entry("folder", "moved")) return 3;
    if (!file.commit("b")) return 4;
    return 0;
  });
  if (status == 77) GTEST_SKIP() << "this machine does not allow seccomp filters";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_file(scratch / "a"), "A");
  EXPECT_EQ(read_file(scratch / "b"), "B");
  EXPECT_THAT(scratch.open().entries(), UnorderedElementsAre("a", "b", "empty", "moved"));
}

TEST(NewFile, AppearsCompleteWithMode0640) {
  const ScratchFolder scratch;
  const ZeroUmask umask_zero;
  const Directory root = scratch.open();
  NewFile file(root);
  file.write(bytes_of("hello "));
  file.write(bytes_of("world"));
  file.overwrite(0, bytes_of("J"));
  EXPECT_EQ(file.size(), 11U);
  EXPECT_FALSE(root.contains("greeting"));
  EXPECT_TRUE(file.commit("greeting"));
  EXPECT_EQ(read_file(scratch / "greeting"), "Jello world");
  EXPECT_EQ(mode_of(scratch / "greeting"), 0640U);
  EXPECT_EQ(count_entries(scratch.path()), 1U);
}

TEST(NewFile, CommitNeverReplacesAndCanBeRepeated) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  create(root, "x", "first");
  fs::create_symlink(scratch / "nowhere", scratch / "link");
  NewFile file(root);
  file.write(bytes_of("second"));
  EXPECT_FALSE(file.commit("x"));
  EXPECT_FALSE(file.commit("link"));
  EXPECT_TRUE(file.commit("x#2"));
  EXPECT_EQ(read_file(scratch / "x"), "first");
  EXPECT_EQ(read_file(scratch / "x#2"), "second");
}

TEST(NewFile, CommitReplacesOnlyTheEntryWhenAskedTo) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  create(root, "target", "untouched");
  fs::create_symlink(scratch / "target", scratch / "x");
  NewFile file(root);
  file.write(bytes_of("new"));
  EXPECT_TRUE(file.commit("x", /*replace=*/true));
  EXPECT_FALSE(fs::is_symlink(scratch / "x"));
  EXPECT_EQ(read_file(scratch / "x"), "new");
  EXPECT_EQ(read_file(scratch / "target"), "untouched");
}

TEST(NewFile, VanishesIfNotCommitted) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  {
    NewFile file(root);
    NewFile moved(std::move(file));
    NewFile assigned(root);
    assigned = std::move(moved);
    EXPECT_EQ(count_entries(scratch.path()), 1U);
  }
  EXPECT_EQ(count_entries(scratch.path()), 0U);
}

TEST(NewFile, SurvivesDestructionInForkedChild) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  std::optional<NewFile> file(std::in_place, root);
  file->write(bytes_of("parent"));
  EXPECT_EQ(run_in_child([&] {
              file.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(file->commit("x"));
  EXPECT_EQ(read_file(scratch / "x"), "parent");
}

TEST(NewFile, FailedWriteNamesTheFile) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  const std::string bytes(100, 'x');
  const auto write = [&](const std::string& name) {
    const test::FileSizeLimit limit(50);
    NewFile file(root, name);
    file.write(bytes_of(bytes));
  };
  std::string message;
  EXPECT_EQ(error_of([&] { write("x.pt"); }, &message), EFBIG);
  EXPECT_EQ(message, "write: \"" + (scratch / "x.pt").string() + "\": File too large");
  EXPECT_EQ(error_of([&] { write(""); }, &message), EFBIG);
  EXPECT_EQ(message, "write: \"" + scratch.path().string() + "\": File too large");
  EXPECT_EQ(count_entries(scratch.path()), 0U);
}

TEST(NewFile, FailedCommitNamesTheFinalPath) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  const std::string name(300, 'n');
  NewFile file(root);
  std::string message;
  EXPECT_EQ(error_of([&] { file.commit(name); }, &message), ENAMETOOLONG);
  EXPECT_THAT(message, HasSubstr((scratch / name).string()));
}

TEST(OpenFile, ReadsAndWritesInPlace) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  create(root, "x", "0123456789");
  OpenFile file(root, "x");
  EXPECT_EQ(file.size(), 10U);
  file.write_at(2, bytes_of("ab"));
  std::array<std::byte, 4> buffer{};
  file.read_at(1, buffer);
  EXPECT_TRUE(std::ranges::equal(buffer, bytes_of("1ab4")));
  EXPECT_EQ(error_of([&] { file.read_at(8, buffer); }), ESTALE);
}

TEST(OpenFile, RefusesLinkAndMissingFile) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  create(root, "target");
  fs::create_symlink(scratch / "target", scratch / "link");
  EXPECT_EQ(error_of([&] { OpenFile(root, "link"); }), ELOOP);
  EXPECT_EQ(error_of([&] { OpenFile(root, "missing"); }), ENOENT);
}

TEST(InputFile, ReadsAnywhereThroughALink) {
  const ScratchFolder scratch;
  create(scratch.open(), "target", "0123456789");
  fs::create_symlink(scratch / "target", scratch / "link");
  const InputFile file((scratch / "link").string());
  EXPECT_EQ(file.size(), 10U);
  EXPECT_EQ(file.path(), (scratch / "link").string());
  std::array<std::byte, 3> buffer{};
  file.read_at(7, buffer);
  EXPECT_TRUE(std::ranges::equal(buffer, bytes_of("789")));
}

TEST(InputFile, SaysWhereTheFileEndsTooEarly) {
  const ScratchFolder scratch;
  create(scratch.open(), "x", "0123456789");
  const InputFile file((scratch / "x").string());
  std::array<std::byte, 3> buffer{};
  try {
    file.read_at(8, buffer);
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the end of the file at byte 10, wanted at least 11 bytes"));
    EXPECT_THAT(error.what(), HasSubstr(file.path()));
  }
}

TEST(InputFile, RefusesWhatIsNoRegularFileWithoutWaiting) {
  const ScratchFolder scratch;
  const std::string fifo = (scratch / "fifo").string();
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { const InputFile file(fifo); }), EINVAL);
  EXPECT_EQ(error_of([&] { const InputFile file("/dev/zero"); }), EINVAL);
  EXPECT_EQ(error_of([&] { const InputFile file(scratch.path().string()); }), EISDIR);
  EXPECT_EQ(error_of([&] { const InputFile file((scratch / "missing").string()); }), ENOENT);
}

TEST(LockFile, IsHeldByOneUntilReleased) {
  const ScratchFolder scratch;
  const Directory root = scratch.open();
  auto lock = try_lock_file(root, ".rank0.lock");
  ASSERT_TRUE(lock);
  const auto other_process_gets_it = [&] {
    return run_in_child([&] { return try_lock_file(scratch.open(), ".rank0.lock").has_value() ? 1 : 0; });
  };
  EXPECT_EQ(other_process_gets_it(), 0);
  lock.reset();
  EXPECT_EQ(other_process_gets_it(), 1);
}

TEST(LockFile, RefusesLink) {
  const ScratchFolder scratch;
  fs::create_symlink(scratch / "outside", scratch / "lock");
  EXPECT_EQ(error_of([&] { (void)try_lock_file(scratch.open(), "lock"); }), ELOOP);
  EXPECT_FALSE(fs::exists(scratch / "outside"));
}

}  // namespace
}  // namespace msprobe

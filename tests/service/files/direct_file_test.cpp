// Tests the writer of large files: every byte at its place on a disk and on a file system without
// direct writes, few of them in the page cache, and a full disk.

#include "proto/wire/transfer/direct_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <system_error>

#include "tests/support/temporary_directory.hpp"

namespace quasi::wire {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = DirectWriter::kBlockBytes;

/// An open file that closes itself.
struct OpenFile {
  explicit OpenFile(const fs::path& path)
      : descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
  ~OpenFile() { ::close(descriptor); }
  int descriptor;
};

std::string random_bytes(std::size_t size) {
  std::mt19937_64 random(size);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// Writes `bytes` behind the first `begun` of them in pieces of several sizes.
void write_behind(const fs::path& path, const std::string& bytes, std::size_t begun) {
  std::ofstream(path, std::ios::binary) << bytes.substr(0, begun);
  const OpenFile file(path);
  DirectWriter writer(file.descriptor, begun);
  std::mt19937 random(3);
  for (std::size_t at = begun; at < bytes.size();) {
    const std::size_t size = std::min<std::size_t>(bytes.size() - at, 1 + random() % 700'000);
    writer.append(bytes.data() + at, size);
    at += size;
  }
  writer.flush();
}

void expect_every_byte_in(const fs::path& directory) {
  const std::string bytes = random_bytes(2 * kBlock + 12'345);
  for (const std::size_t begun : {std::size_t{0}, std::size_t{1}, std::size_t{4095},
                                  std::size_t{4096}, kBlock + 7, bytes.size()}) {
    write_behind(directory / "file", bytes, begun);
    EXPECT_TRUE(text_of(directory / "file") == bytes) << "from byte " << begun;
    fs::remove(directory / "file");
  }
}

TEST(DirectWriter, EveryByteIsAtItsPlace) {
  const quasi::test::TemporaryDirectory directory;
  expect_every_byte_in(directory.path());
}

// tmpfs has no direct writes.
TEST(DirectWriter, AFileSystemWithoutDirectWritesGetsEveryByte) {
  if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "there is no tmpfs at /dev/shm";
  const fs::path directory = "/dev/shm/quasi-direct-" + std::to_string(::getpid());
  fs::create_directory(directory);
  expect_every_byte_in(directory);
  fs::remove_all(directory);
}

// Whole blocks are not in the page cache; bytes that do not fill a block are.
TEST(DirectWriter, WholeBlocksGoPastTheCache) {
  const quasi::test::TemporaryDirectory directory;
  const fs::path path = directory.path() / "file";
  const int probe = ::open(path.c_str(), O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
  if (probe < 0) GTEST_SKIP() << "this file system has no direct writes";
  ::close(probe);
  const std::size_t size = 3 * kBlock + 100;
  write_behind(path, random_bytes(size), 0);
  const OpenFile file(path);
  void* const map = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.descriptor, 0);
  ASSERT_NE(map, MAP_FAILED);
  std::vector<unsigned char> resident((size + 4095) / 4096);
  ASSERT_EQ(::mincore(map, size, resident.data()), 0);
  ::munmap(map, size);
  std::size_t n_resident = 0;
  for (const unsigned char page : resident) n_resident += page & 1U;
  // The last page, and what the kernel reads ahead around it.
  EXPECT_LT(n_resident, resident.size() / 10);
}

TEST(DirectWriter, AFileThatMayNotGrowIsAnError) {
  const quasi::test::TemporaryDirectory directory;
  const auto former = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{.rlim_cur = kBlock, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(write_behind(directory.path() / "file", random_bytes(2 * kBlock + 1), 0),
               std::system_error);
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, former);
}

}  // namespace
}  // namespace quasi::wire

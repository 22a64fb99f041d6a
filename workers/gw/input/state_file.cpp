#include "workers/gw/input/state_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/checkpoint/synced_file.hpp"
#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

constexpr const char* kSuffix = ".states";
constexpr std::size_t kHeader_bytes = 4096;
constexpr std::int64_t kReport_bytes = std::int64_t{16} << 20;
/// Largest number of bytes after which bands are counted as written. A killed job reads about as
/// many again.
constexpr std::int64_t kCommit_bytes = std::int64_t{256} << 20;
constexpr double kMib = 1048576.0;

/// First bytes of the file. The rest of the first page is 0.
struct FileHeader {
  char magic[8] = {'Q', 'S', 'T', 'A', 'T', 'E', 'S', '2'};
  std::uint64_t digest = 0;
  std::int64_t finished = 0;  ///< complete k-points
  std::int64_t bands = 0;     ///< bands of the next one, of every spin
};

std::uint64_t digest_of(const std::filesystem::path& source, const Wavefunctions& waves,
                        const std::vector<std::int64_t>& n_pw) {
  ProblemDigest d;
  struct stat about {};
  if (stat(source.c_str(), &about) == 0)
    for (const std::int64_t value :
         {std::int64_t{about.st_size}, std::int64_t{about.st_mtim.tv_sec},
          std::int64_t{about.st_mtim.tv_nsec}})
      d.add(&value, sizeof value);
  d.add(n_pw);
  d.add(waves.energy_ry);
  return d.value();
}

std::string mib(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g MiB", static_cast<double>(bytes) / kMib);
  return text;
}

}  // namespace

std::unique_ptr<StateFile> state_file_for(const StateStorage& storage,
                                          const std::filesystem::path& source,
                                          const Wavefunctions& waves,
                                          const std::vector<std::int64_t>& n_pw) {
  std::int64_t numbers = 0;
  for (const std::int64_t n : n_pw) numbers += n * waves.n_bands * waves.header.n_spins;
  if (storage.memory_bytes <= 0 || 16 * numbers <= storage.memory_bytes) return nullptr;
  return std::make_unique<StateFile>(storage, source, waves, n_pw);
}

void remove_state_files(const std::filesystem::path& directory) {
  std::error_code gone;
  for (const char* name : {"WFN", "WFNq"})
    if (!directory.empty())
      std::filesystem::remove(directory / (std::string(name) + kSuffix), gone);
}

StateFile::StateFile(const StateStorage& storage, const std::filesystem::path& source,
                     const Wavefunctions& waves, std::vector<std::int64_t> n_pw)
    : storage_(storage),
      n_bands_(static_cast<std::size_t>(waves.n_bands)),
      n_spins_(static_cast<std::size_t>(waves.header.n_spins)),
      n_pw_(std::move(n_pw)) {
  std::size_t first = 0;
  for (const std::int64_t n : n_pw_) {
    first_.push_back(first);
    first += n_bands_ * n_spins_ * static_cast<std::size_t>(n);
  }
  first_.push_back(first);
  const auto bytes = static_cast<off_t>(kHeader_bytes + first * sizeof(Cplx));
  if (storage.forget) {
    // A file without a name and without data: every part of it reads as 0.
    descriptor_ = memfd_create(storage_.name.c_str(), MFD_CLOEXEC);
    if (descriptor_ < 0 || ftruncate(descriptor_, bytes) != 0)
      throw StorageError("the states of " + storage_.name +
                         " cannot be left out: " + std::strerror(errno));
    path_ = "/proc/self/fd/" + std::to_string(descriptor_);
    return;
  }
  open_on_disk(bytes);
  const FileHeader wanted{.digest = digest_of(source, waves, n_pw_)};
  FileHeader found;
  if (pread(descriptor_, &found, sizeof found, 0) == sizeof found &&
      std::memcmp(found.magic, wanted.magic, sizeof found.magic) == 0 &&
      found.digest == wanted.digest) {
    finished_before_ = finished_ = found.finished;
    bands_before_ = bands_ = found.bands;
  } else {
    put(&wanted, sizeof wanted, 0);
  }
  if (storage_.progress == nullptr) return;
  storage_.progress->log(storage_.name + ": its states need " + mib(bytes) + "; " +
                         mib(storage_.memory_bytes) +
                         " of them stay in memory, the rest is read in pieces");
  if (finished_ + bands_ > 0)
    storage_.progress->log(
        storage_.name + ": the states of " + std::to_string(finished_) + " of " +
        std::to_string(n_pw_.size()) + " k-points" +
        (bands_ > 0 ? " and " + std::to_string(bands_) + " bands of the next" : std::string()) +
        " were read by an earlier attempt");
}

void StateFile::open_on_disk(off_t bytes) {
  const bool temporary = storage_.directory.empty();
  path_ = (temporary ? std::filesystem::temp_directory_path() : storage_.directory) /
          (storage_.name + (temporary ? "." + std::to_string(getpid()) : "") + kSuffix);
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int failure = descriptor_ < 0 ? errno : posix_fallocate(descriptor_, 0, bytes);
  if (failure == 0) return;
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
  std::error_code gone;
  std::filesystem::remove(path_, gone);
  throw StorageError("the states of " + storage_.name + " need " + mib(bytes) + ", more than the " +
                     mib(storage_.memory_bytes) +
                     " of meanfield.state_memory_mib, and there is no room for them in '" +
                     path_.string() + "': " + std::strerror(failure) +
                     "; free the disk or raise that limit");
}

StateFile::~StateFile() {
  if (descriptor_ >= 0) close(descriptor_);
  std::error_code gone;
  if (descriptor_ >= 0 && storage_.directory.empty() && !storage_.forget)
    std::filesystem::remove(path_, gone);
}

std::size_t StateFile::first_of(int ik, int spin) const {
  const auto at = static_cast<std::size_t>(ik);
  return first_[at] +
         static_cast<std::size_t>(spin) * n_bands_ * static_cast<std::size_t>(n_pw_[at]);
}

void StateFile::put(const void* data, std::size_t bytes, std::size_t at) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t done = pwrite(descriptor_, from, bytes, static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0)
      throw StorageError("cannot write '" + path_.string() + "': " + std::strerror(errno));
    from += done;
    at += static_cast<std::size_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
}

std::int64_t StateFile::bands_written(int ik) const {
  if (ik < finished_before_) return bands_of_point();
  return ik == finished_before_ ? bands_before_ : 0;
}

void StateFile::write(int ik, int spin, int band, std::span<const Cplx> values) {
  if (storage_.forget) return;
  const auto n_pw = static_cast<std::size_t>(n_pw_[static_cast<std::size_t>(ik)]);
  put(values.data(), values.size_bytes(),
      kHeader_bytes + (first_of(ik, spin) + static_cast<std::size_t>(band) * n_pw) * sizeof(Cplx));
  written_bytes_ += static_cast<std::int64_t>(values.size_bytes());
  bands_ += static_cast<std::int64_t>(values.size() / n_pw);
  // Binary files hold the spins of a band together, and an attempt begins with a whole band.
  const std::int64_t most = std::min(kCommit_bytes, storage_.memory_bytes);
  if (written_bytes_ - committed_bytes_ >= most &&
      bands_ % static_cast<std::int64_t>(n_spins_) == 0)
    commit(finished_, bands_);
  if (written_bytes_ - reported_bytes_ >= kReport_bytes) report();
}

void StateFile::report() {
  reported_bytes_ = written_bytes_;
  if (storage_.progress == nullptr) return;
  const auto next = static_cast<std::size_t>(finished_before_);
  const std::int64_t in_next = next < n_pw_.size() ? bands_before_ * n_pw_[next] : 0,
                     before = 16 * (static_cast<std::int64_t>(first_[next]) + in_next);
  storage_.progress->metric("reading_mib_per_s", static_cast<double>(written_bytes_) / kMib /
                                                     std::max(1e-3, since_.seconds()));
  storage_.progress->report("reading " + storage_.name, (before + written_bytes_) >> 10,
                            static_cast<std::int64_t>(first_.back() * 16) >> 10);
}

void StateFile::commit(std::int64_t points, std::int64_t bands) {
  sync_for_resumption(path_);
  const std::int64_t counts[] = {points, bands};
  static_assert(offsetof(FileHeader, bands) == offsetof(FileHeader, finished) + 8);
  put(counts, sizeof counts, offsetof(FileHeader, finished));
  committed_bytes_ = written_bytes_;
}

void StateFile::finish_point(int ik) {
  if (storage_.forget) return;
  finished_ = ik + 1;
  bands_ = 0;
  commit(finished_, 0);
  report();
}

std::vector<std::vector<StateCoefficients>> StateFile::map() {
  const auto file = std::make_shared<const MappedStates>(path_, kHeader_bytes, first_.back(),
                                                         storage_.memory_bytes);
  close(descriptor_);
  descriptor_ = -1;
  std::error_code gone;
  if (storage_.directory.empty() && !storage_.forget) std::filesystem::remove(path_, gone);
  if (storage_.progress != nullptr && written_bytes_ > 0)
    storage_.progress->log(storage_.name + ": " + mib(written_bytes_) + " of states read in " +
                           std::to_string(since_.seconds()) + " s, " +
                           mib(static_cast<std::int64_t>(static_cast<double>(written_bytes_) /
                                                         std::max(1e-3, since_.seconds()))) +
                           "/s");
  std::vector<std::vector<StateCoefficients>> states(n_pw_.size());
  for (std::size_t ik = 0; ik < n_pw_.size(); ++ik)
    for (std::size_t spin = 0; spin < n_spins_; ++spin)
      states[ik].emplace_back(file, first_of(static_cast<int>(ik), static_cast<int>(spin)),
                              n_bands_ * static_cast<std::size_t>(n_pw_[ik]));
  return states;
}

void take_mapped(StateFile& states, Wavefunctions& waves) {
  auto mapped = states.map();
  for (std::size_t ik = 0; ik < mapped.size(); ++ik)
    waves.waves[ik].coefficients = std::move(mapped[ik]);
}

}  // namespace quasi::gw

#include "workers/backend/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include "workers/backend/error.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'q', 's', 'i', 'c', 'k', 'p', '0', '1'};
constexpr std::uint64_t kMaxName = 256, kMaxValues = std::uint64_t{1} << 40;

/// Reads the pieces of one file. Returns nothing if the file belongs to another problem or is
/// incomplete.
std::optional<std::map<std::string, Piece>> read_file(const fs::path& path, std::uint64_t digest) {
  std::ifstream in(path, std::ios::binary);
  char magic[8];
  std::uint64_t header[2];
  if (!in.read(magic, sizeof magic) || std::memcmp(magic, kMagic, sizeof magic) != 0) return {};
  if (!in.read(reinterpret_cast<char*>(header), sizeof header) || header[0] != digest) return {};
  std::map<std::string, Piece> pieces;
  ProblemDigest sum;
  for (std::uint64_t i = 0; i < header[1]; ++i) {
    std::uint64_t sizes[2];
    if (!in.read(reinterpret_cast<char*>(sizes), sizeof sizes) || sizes[0] > kMaxName ||
        sizes[1] > kMaxValues)
      return {};
    std::string name(sizes[0], '\0');
    // The size of the file limits the count, so that a damaged count causes no huge allocation.
    std::error_code none;
    if (sizes[1] * sizeof(double) > fs::file_size(path, none)) return {};
    std::vector<double> values(sizes[1]);
    if (!in.read(name.data(), static_cast<std::streamsize>(name.size()))) return {};
    if (!in.read(reinterpret_cast<char*>(values.data()),
                 static_cast<std::streamsize>(values.size() * sizeof(double))))
      return {};
    sum.add(name.data(), name.size());
    sum.add(values);
    pieces.emplace(std::move(name),
                   piece_of(std::make_shared<const std::vector<double>>(std::move(values))));
  }
  std::uint64_t stored = 0;
  if (!in.read(reinterpret_cast<char*>(&stored), sizeof stored) || stored != sum.value()) return {};
  return pieces;
}

/// Files that this process has written. A later step of the process reads them without resuming.
class WrittenFiles {
 public:
  void add(const fs::path& path) {
    const std::lock_guard lock(mutex_);
    paths_.insert(fs::absolute(path));
  }
  bool contains(const fs::path& path) const {
    const std::lock_guard lock(mutex_);
    return paths_.contains(fs::absolute(path));
  }

 private:
  mutable std::mutex mutex_;
  std::set<fs::path> paths_;
};

WrittenFiles& written_files() {
  static WrittenFiles files;
  return files;
}

}  // namespace

void ProblemDigest::add(const void* data, std::size_t size) {
  const auto* byte = static_cast<const unsigned char*>(data);
  const auto mix = [this](std::uint64_t word) {
    value_ = (value_ ^ word) * 0x100000001b3ull;
    value_ ^= value_ >> 29;
  };
  for (; size >= 8; size -= 8, byte += 8) {
    std::uint64_t word;
    std::memcpy(&word, byte, 8);
    mix(word);
  }
  for (std::size_t i = 0; i < size; ++i) mix(byte[i]);
}

Checkpoint::Checkpoint(fs::path directory, std::uint64_t digest, double interval_s,
                       Progress& progress)
    : files_(std::move(directory)), digest_(digest), interval_s_(interval_s), progress_(&progress) {
  for (const auto& path : files_.newest_first()) {
    if (!pieces_.empty()) break;
    if (auto pieces = read_file(path, digest)) {
      pieces_ = std::move(*pieces);
      if (written_files().contains(path)) continue;
      progress.log("resumed from " + path.filename().string() + ": " +
                   std::to_string(pieces_.size()) + " finished pieces");
    } else {
      progress.log("checkpoint " + path.filename().string() +
                   " belongs to other input or is damaged; it is not used");
    }
  }
}

std::optional<Piece> Checkpoint::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = pieces_.find(scope_ + key);
  if (found == pieces_.end()) return {};
  return found->second;
}

void Checkpoint::put(const std::string& key, Piece piece) {
  if (!keeps()) return;
  const std::lock_guard lock(mutex_);
  pieces_[scope_ + key] = std::move(piece);
  if (due()) write();
}

void Checkpoint::put_if_due(const std::string& key,
                            const std::function<std::vector<double>()>& values) {
  if (!keeps()) return;
  const std::lock_guard lock(mutex_);
  if (!due()) return;
  pieces_[scope_ + key] = piece_of(std::make_shared<const std::vector<double>>(values()));
  write();
}

void Checkpoint::grow_if_due(const std::string& prefix, const std::string& key,
                             const std::function<std::vector<double>()>& values) {
  if (!keeps()) return;
  const std::lock_guard lock(mutex_);
  if (!due()) return;
  erase(prefix);
  pieces_[scope_ + key] = piece_of(std::make_shared<const std::vector<double>>(values()));
  write();
}

std::optional<std::pair<std::string, Piece>> Checkpoint::find_by_prefix(
    const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  const std::string whole = scope_ + prefix;
  const auto found = pieces_.lower_bound(whole);
  if (found == pieces_.end() || !found->first.starts_with(whole)) return {};
  return std::pair{found->first.substr(whole.size()), found->second};
}

void Checkpoint::forget(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  erase(prefix);
}

void Checkpoint::erase(const std::string& prefix) {
  const std::string whole = scope_ + prefix;
  for (auto old = pieces_.lower_bound(whole);
       old != pieces_.end() && old->first.starts_with(whole);)
    old = pieces_.erase(old);
}

void Checkpoint::replace(const std::string& prefix, const std::string& key, Piece piece) {
  if (!keeps()) return;
  const std::lock_guard lock(mutex_);
  erase(prefix);
  pieces_[scope_ + key] = std::move(piece);
  if (due()) write();
}

bool Checkpoint::is_turn(Turn& turn) {
  if (!keeps()) return false;
  const std::lock_guard lock(mutex_);
  if (progress_->checkpoint_wanted()) ++drains_;
  const auto now = std::chrono::steady_clock::now();
  turn.draining = turn.drains != drains_;
  if (!turn.draining && std::chrono::duration<double>(now - turn.last).count() < interval_s_)
    return false;
  turn.last = now;
  turn.drains = drains_;
  return true;
}

void Checkpoint::exchange(const std::vector<std::string>& old,
                          std::vector<std::pair<std::string, Piece>> fresh, bool at_once) {
  if (!keeps()) return;
  const std::lock_guard lock(mutex_);
  for (const std::string& name : old) pieces_.erase(scope_ + name);
  for (auto& [name, piece] : fresh) pieces_[scope_ + name] = std::move(piece);
  if (at_once || due()) write();
}

std::vector<std::string> Checkpoint::names(const std::string& prefix) const {
  const std::lock_guard lock(mutex_);
  const std::string whole = scope_ + prefix;
  std::vector<std::string> found;
  for (auto at = pieces_.lower_bound(whole); at != pieces_.end() && at->first.starts_with(whole);
       ++at)
    found.push_back(at->first.substr(scope_.size()));
  return found;
}

bool Checkpoint::due() const {
  const double elapsed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - written_).count();
  constexpr double kLongWrite_s = 1.0;  // for shorter times the interval alone counts
  const double least_s =
      last_write_s_ > kLongWrite_s ? std::max(interval_s_, 9.0 * last_write_s_) : interval_s_;
  return elapsed_s >= least_s || progress_->checkpoint_wanted();
}

void Checkpoint::write() {
  const auto began = std::chrono::steady_clock::now();
  files_.add(
      [this](const fs::path& path) {
        std::ofstream out(path, std::ios::binary);
        const auto write = [&](const void* data, std::size_t size) {
          out.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
        };
        const std::uint64_t header[2] = {digest_, pieces_.size()};
        write(kMagic, sizeof kMagic);
        write(header, sizeof header);
        ProblemDigest sum;
        for (const auto& [name, piece] : pieces_) {
          const std::uint64_t sizes[2] = {name.size(), piece.count};
          write(sizes, sizeof sizes);
          write(name.data(), name.size());
          write(piece.data, piece.count * sizeof(double));
          sum.add(name.data(), name.size());
          sum.add(piece.data, piece.count * sizeof(double));
        }
        const std::uint64_t check = sum.value();
        write(&check, sizeof check);
        if (!out.flush())
          throw StorageError("cannot write checkpoint '" + path.string() + "'; is the disk full?");
      },
      *progress_);
  if (const auto files = files_.newest_first(); !files.empty()) written_files().add(files.front());
  written_ = std::chrono::steady_clock::now();
  last_write_s_ = std::chrono::duration<double>(written_ - began).count();
}

void Checkpoint::finish() {
  if (!keeps()) return;
  const std::lock_guard lock(mutex_);
  files_.remove_all();
  pieces_.clear();
}

}  // namespace quasi

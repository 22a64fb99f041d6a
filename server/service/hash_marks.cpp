#include "server/service/hash_marks.hpp"

#include <algorithm>
#include <iterator>

namespace quasi::server {
namespace {

constexpr std::size_t kBlobs = 64;  // about a mebibyte of hash states
constexpr std::uint64_t kMarksOfABlob = 64;
constexpr std::uint64_t kLeastSpacingBytes = 1U << 20;

}  // namespace

std::uint64_t HashMarks::spacing(std::uint64_t size_bytes) {
  return std::max(kLeastSpacingBytes, size_bytes / kMarksOfABlob + 1);
}

std::optional<HashMarks::Mark> HashMarks::before(const std::string& digest, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto found = by_digest_.find(digest);
  if (found == by_digest_.end()) return std::nullopt;
  blobs_.splice(blobs_.begin(), blobs_, found->second);
  const auto& marks = found->second->marks;
  const auto after = marks.upper_bound(offset);
  if (after == marks.begin()) return std::nullopt;
  const auto& [bytes, state] = *std::prev(after);
  return Mark{bytes, state.copy()};
}

void HashMarks::put(const std::string& digest, std::uint64_t bytes, const wire::Sha256& state,
                    std::uint64_t spacing) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = by_digest_.try_emplace(digest);
  if (is_new) {
    blobs_.push_front({digest, {}});
    found->second = blobs_.begin();
  }
  auto& marks = found->second->marks;
  const auto after = marks.upper_bound(bytes);
  if (after == marks.begin() || bytes - std::prev(after)->first >= spacing)
    marks.emplace(bytes, state.copy());
  if (blobs_.size() <= kBlobs) return;
  by_digest_.erase(blobs_.back().digest);
  blobs_.pop_back();
}

void HashMarks::forget(const std::string& digest) {
  const std::lock_guard lock(mutex_);
  const auto found = by_digest_.find(digest);
  if (found == by_digest_.end()) return;
  blobs_.erase(found->second);
  by_digest_.erase(found);
}

}  // namespace quasi::server

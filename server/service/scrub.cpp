#include "server/service/scrub.hpp"

#include <algorithm>
#include <vector>

#include "server/service/log.hpp"

namespace quasi::server {
namespace {

constexpr std::int64_t kStepBytes = 1 << 20;

}  // namespace

bool condemn_blob(SqliteStore& store, BlobStore& blobs, const std::string& digest,
                  std::int64_t created_ms) {
  // An upload that renames its file just now finds none after this, and is refused.
  if (store.blob_created_ms(digest) != created_ms) return false;
  store.set_blob_state(digest, BlobState::kCorrupt);
  try {
    blobs.put_aside(digest);
  } catch (const FileError& error) {
    log(Level::kError, "blob_not_put_aside", {{"digest", digest}, {"what", error.what()}});
  }
  return true;
}

void Scrub::tick(Now now) {
  bool reading = false;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t elapsed_ms = std::max<std::int64_t>(0, now.monotonic_ms - last_tick_ms_);
    last_tick_ms_ = now.monotonic_ms;
    allowance_bytes_ =
        std::min(allowance_bytes_ +
                     options_.bytes_per_second * std::min<std::int64_t>(elapsed_ms, 1'000) / 1'000,
                 std::max(options_.bytes_per_second, kStepBytes));
    if (busy_) return;
    reading = !digest_.empty();
    if (reading ? allowance_bytes_ < kStepBytes : finished_.empty() && now.wall_ms < next_pass_ms_)
      return;
    busy_ = true;
  }
  const bool posted = reading
                          ? files_.post([this] { read_on(); })
                          : writer_.post({.body = [this](WriteContext& write) { choose(write); },
                                          .done = [this](const std::exception_ptr&) { rest(); }});
  if (!posted) rest();
}

void Scrub::rest() {
  const std::lock_guard lock(mutex_);
  busy_ = false;
}

/// Runs on the writer's thread: records the finished blob and chooses the next one.
void Scrub::choose(WriteContext& write) {
  const std::lock_guard lock(mutex_);
  const std::string passed = write.store.meta("scrub_passed_ms");
  std::string place = write.store.meta("scrub_place");
  if (place.empty() && finished_.empty() && !passed.empty()) {
    next_pass_ms_ = std::stoll(passed) + options_.period_ms;
    if (write.now.wall_ms < next_pass_ms_) return;
  }
  if (!finished_.empty()) place = std::exchange(finished_, "");
  const auto blob = write.store.next_blob(place);
  if (!blob) {
    write.store.set_meta("scrub_place", "");
    write.store.set_meta("scrub_passed_ms", std::to_string(write.now.wall_ms));
    next_pass_ms_ = write.now.wall_ms + options_.period_ms;
    return;
  }
  if (!place.empty()) write.store.set_meta("scrub_place", place);
  digest_ = blob->first;
  size_bytes_ = static_cast<std::uint64_t>(blob->second);
  created_ms_ = write.store.blob_created_ms(digest_).value_or(0);
  offset_ = 0;
  hash_ = wire::Sha256();
}

void Scrub::read_on() {
  std::string damaged;
  try {
    const std::lock_guard lock(mutex_);
    if (!file_) file_ = blobs_.open(digest_);
    std::vector<char> buffer(static_cast<std::size_t>(kStepBytes));
    const std::size_t got = file_->read(offset_, buffer.data(), buffer.size());
    allowance_bytes_ -= kStepBytes;
    hash_.update(buffer.data(), got);
    offset_ += got;
    if (got < buffer.size()) {  // the file ended, at the expected size or earlier
      if (offset_ != size_bytes_ || hash_.finish_hex() != digest_) damaged = digest_;
      finished_ = std::exchange(digest_, "");
      file_.reset();
    }
  } catch (const FileError& error) {
    const std::lock_guard lock(mutex_);
    if (error.is_missing())
      damaged = digest_;  // the row tells if garbage collection removed the file just now
    else
      log(Level::kWarning, "scrub_failed", {{"digest", digest_}, {"what", error.what()}});
    finished_ = std::exchange(digest_, "");
    file_.reset();
  }
  if (!damaged.empty()) condemn(damaged);
  rest();
}

void Scrub::condemn(const std::string& digest) {
  writer_.post(
      {.body =
           [this, digest, created_ms = created_ms_](WriteContext& write) {
             if (condemn_blob(write.store, blobs_, digest, created_ms))
               log(Level::kError, "blob_corrupt", {{"digest", digest}, {"found_by", "scrub"}});
           },
       .done = [](const std::exception_ptr&) {}});
}

}  // namespace quasi::server

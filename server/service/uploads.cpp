#include "server/service/uploads.hpp"

#include <algorithm>
#include <vector>

#include "proto/wire/limits.hpp"
#include "server/queue/refused.hpp"
#include "server/service/log.hpp"

namespace quasi::server {

void UploadSession::append(std::uint64_t at, std::string_view data) {
  if (at != offset)
    throw Refused(Refusal::kAborted, "OFFSET_MISMATCH",
                  "the upload stands at " + std::to_string(offset) + ", the data begin at " +
                      std::to_string(at) + "; ask QueryUpload and continue from there")
        .with("committed", std::to_string(offset));
  if (data.size() > size_bytes - offset)
    throw Refused(Refusal::kInvalidArgument, "SIZE_MISMATCH",
                  "data.data: the blob was announced with " + std::to_string(size_bytes) +
                      " bytes, but more follow");
  file->write(offset, data);
  hash.update(data);
  offset += data.size();
}

bool UploadSession::sync() {
  if (synced == offset) return false;
  file->sync();
  synced = offset;
  return true;
}

std::shared_ptr<UploadSession> Uploads::open(const Announced& upload, std::int64_t room_bytes,
                                             const void* owner) {
  if (upload.known &&
      (upload.known->digest != upload.digest || upload.known->size_bytes != upload.size_bytes))
    throw Refused(Refusal::kInvalidArgument, "FIELD_INVALID",
                  "header.upload_id: this upload was begun for another blob; take a new id");
  const auto session = claim(upload, room_bytes, owner);
  try {
    prepare(*session, upload, owner);
  } catch (...) {
    close(session, owner);
    throw;
  }
  return session;
}

std::uint64_t Uploads::promised_bytes_except(const std::string& upload_id) const {
  std::uint64_t promised = 0;
  for (const auto& [id, session] : sessions_)
    if (id != upload_id)
      promised +=
          session->announced_bytes - std::min(session->announced_bytes, session->offset.load());
  return promised;
}

std::shared_ptr<UploadSession> Uploads::claim(const Announced& upload, std::int64_t room_bytes,
                                              const void* owner) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t staged = upload.known ? upload.known->committed_bytes : 0;
  const std::uint64_t needed = upload.size_bytes - std::min(upload.size_bytes, staged) +
                               promised_bytes_except(upload.upload_id);
  if (room_bytes < 0 || needed > static_cast<std::uint64_t>(room_bytes))
    throw Refused(Refusal::kResourceExhausted, "STORAGE_LOW",
                  "header.size_bytes: the server's disk has room for " +
                      std::to_string(std::max<std::int64_t>(room_bytes, 0)) +
                      " bytes; this upload and those under way need " + std::to_string(needed))
        .retry_in(60'000);
  auto& entry = sessions_[upload.upload_id];
  if (!entry) {
    if (sessions_.size() > limits::kUploads) {
      sessions_.erase(upload.upload_id);
      throw Refused(
          Refusal::kResourceExhausted, "RATE_LIMITED",
          "there are " + std::to_string(limits::kUploads) + " uploads in progress; try again later")
          .retry_in(2'000);
    }
    entry = std::make_shared<UploadSession>();
  }
  entry->claimant = owner;
  entry->announced_bytes = upload.size_bytes;
  return entry;
}

void Uploads::prepare(UploadSession& session, const Announced& upload, const void* owner) {
  const std::lock_guard lock(session.mutex);
  // The earlier writer has lost the upload. Bytes that it did not sync are cut away.
  session.owner = owner;
  session.upload_id = upload.upload_id;
  session.digest = upload.digest;
  session.size_bytes = upload.size_bytes;
  session.is_recorded = session.is_recorded || upload.known.has_value();
  session.file = blobs_.open_staging(upload.upload_id);
  // If the disk lacks bytes that the row records, the upload starts again at 0 and they are sent
  // again.
  std::uint64_t start = upload.known ? upload.known->committed_bytes : 0;
  if (session.file->size() < start) start = 0;
  session.file->truncate(start);
  session.hash = wire::Sha256();
  // A new upload has no bytes to read again, and clearing a whole buffer would cost more than the
  // rest of a small one.
  std::vector<char> buffer(std::min<std::uint64_t>(limits::kUploadChunkBytes, start));
  for (std::uint64_t done = 0; done < start;) {
    const std::size_t got = session.file->read(
        done, buffer.data(), std::min<std::uint64_t>(buffer.size(), start - done));
    if (got == 0) break;
    session.hash.update(buffer.data(), got);
    done += got;
  }
  session.offset = start;
  session.synced = start;
}

std::shared_ptr<UploadSession> Uploads::find(const std::string& upload_id) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(upload_id);
  return found == sessions_.end() ? nullptr : found->second;
}

void Uploads::publish(UploadSession& session) {
  session.sync();
  const std::string digest = session.hash.finish_hex();
  session.file.reset();
  if (digest != session.digest) {
    blobs_.remove_staging(session.upload_id);
    throw Refused(Refusal::kInvalidArgument, "DIGEST_MISMATCH",
                  "header.digest: the bytes hash to " + digest + ", not to " + session.digest +
                      "; the upload was dropped");
  }
  blobs_.publish(session.upload_id, session.digest);
}

void Uploads::close(const std::shared_ptr<UploadSession>& session, const void* owner) {
  const std::lock_guard lock(mutex_);
  if (session->claimant != owner) return;  // another stream has opened it since
  const std::lock_guard session_lock(session->mutex);
  session->owner = nullptr;
  session->file.reset();
  if (!session->is_recorded) {
    try {
      blobs_.remove_staging(session->upload_id);
    } catch (const FileError& error) {
      log(Level::kWarning, "staged_bytes_not_removed",
          {{"upload", session->upload_id}, {"what", error.what()}});
    }
  }
  sessions_.erase(session->upload_id);
}

}  // namespace quasi::server

#include "server/service/uploads.hpp"

#include <algorithm>
#include <vector>

#include "proto/wire/limits.hpp"
#include "server/queue/refused.hpp"

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

std::shared_ptr<UploadSession> Uploads::open(const std::string& upload_id,
                                             const std::string& digest, std::uint64_t size_bytes,
                                             const std::optional<Known>& known, const void* owner) {
  if (known && (known->digest != digest || known->size_bytes != size_bytes))
    throw Refused(Refusal::kInvalidArgument, "FIELD_INVALID",
                  "header.upload_id: this upload was begun for another blob; take a new id");
  std::shared_ptr<UploadSession> session;
  {
    const std::lock_guard lock(mutex_);
    auto& entry = sessions_[upload_id];
    if (!entry) {
      if (sessions_.size() > limits::kUploads) {
        sessions_.erase(upload_id);
        throw Refused(Refusal::kResourceExhausted, "RATE_LIMITED",
                      "there are " + std::to_string(limits::kUploads) +
                          " uploads in progress; try again later")
            .retry_in(2'000);
      }
      entry = std::make_shared<UploadSession>();
    }
    session = entry;
    session->claimant = owner;
  }
  const std::lock_guard lock(session->mutex);
  // Whoever wrote before us has lost the upload; what it did not sync is cut away.
  session->owner = owner;
  session->upload_id = upload_id;
  session->digest = digest;
  session->size_bytes = size_bytes;
  const std::uint64_t start = known ? known->committed_bytes : 0;
  session->file = blobs_.open_staging(upload_id);
  if (session->file->size() < start)
    throw Refused(Refusal::kAborted, "OFFSET_MISMATCH",
                  "the staged bytes of this upload are gone; begin again with a new upload_id")
        .with("committed", "0");
  session->file->truncate(start);
  session->hash = wire::Sha256();
  std::vector<char> buffer(limits::kUploadChunkBytes);
  for (std::uint64_t done = 0; done < start;) {
    const std::size_t got = session->file->read(
        done, buffer.data(), std::min<std::uint64_t>(buffer.size(), start - done));
    if (got == 0) break;
    session->hash.update(buffer.data(), got);
    done += got;
  }
  session->offset = start;
  session->synced = start;
  return session;
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
  if (session->claimant != owner) return;  // Another stream has opened it since.
  const std::lock_guard session_lock(session->mutex);
  session->owner = nullptr;
  session->file.reset();
  sessions_.erase(session->upload_id);
}

}  // namespace quasi::server

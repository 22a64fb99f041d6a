#include "proto/wire/chunks.hpp"

#include <fcntl.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "proto/wire/digest.hpp"
#include "proto/wire/limits.hpp"
#include "proto/wire/status.hpp"
#include "proto/wire/transfer/chunk_queue.hpp"
#include "proto/wire/transfer/direct_file.hpp"
#include "quasi/v1/blob_service.grpc.pb.h"
#include "workers/files/durable_file.hpp"

namespace quasi::wire {
namespace {

/// A descriptor that closes itself.
class File {
 public:
  File(const std::filesystem::path& path, int flags, mode_t mode = 0)
      : descriptor_(open(path.c_str(), flags | O_CLOEXEC, mode)) {
    if (descriptor_ < 0)
      throw std::system_error(errno, std::generic_category(), "open " + path.string());
  }
  ~File() { close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

std::size_t read_at(const File& file, char* data, std::size_t size, std::uint64_t offset) {
  for (;;) {
    const ssize_t got = pread(file.get(), data, size, static_cast<off_t>(offset));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "read");
  }
}

bool wants_stop(const TransferOptions& options) { return options.cancelled && options.cancelled(); }

grpc::Status stopped() {
  return grpc::Status(grpc::StatusCode::CANCELLED, "the transfer was stopped; it can be continued");
}

grpc::Status local_failure(const std::exception& error) {
  return make_status(grpc::StatusCode::UNKNOWN, error.what(),
                     {.reason = "LOCAL_FILE", .metadata = {{"local", "true"}}});
}

bool worth_repeating(const grpc::Status& status) {
  const std::string reason = reason_of(status);
  return status.error_code() == grpc::StatusCode::UNAVAILABLE || reason == reason::kSlowReader ||
         reason == reason::kOffsetMismatch || reason == reason::kServerBusy ||
         reason == reason::kRateLimited || token_ran_out(status) ||
         // A connection that breaks under a stream gives one of these codes, without details.
         (reason.empty() && (status.error_code() == grpc::StatusCode::CANCELLED ||
                             status.error_code() == grpc::StatusCode::INTERNAL ||
                             status.error_code() == grpc::StatusCode::UNKNOWN));
}

/// Sleeps before another try: for the time that the server asks for, else 0.2 s × 2 up to 5 s.
/// @return false if there shall be no other try.
class Patience {
 public:
  explicit Patience(const TransferOptions& options) : options_(options) {}

  void progressed() { failures_ = 0; }

  bool wait(const grpc::Status& status) {
    if (!worth_repeating(status) || ++failures_ >= options_.attempts) return false;
    auto delay = std::chrono::milliseconds(200 << std::min(failures_ - 1, 5));
    delay = std::min(delay, std::chrono::milliseconds(5'000));
    if (const auto asked = parse_details(status).retry_after) delay = *asked;
    const auto end = std::chrono::steady_clock::now() + delay;
    while (std::chrono::steady_clock::now() < end) {
      if (wants_stop(options_)) return false;
      std::this_thread::sleep_for(std::min(delay, std::chrono::milliseconds(50)));
    }
    return true;
  }

 private:
  const TransferOptions& options_;
  int failures_ = 0;
};

std::uint64_t committed_bytes(v1::BlobService::Stub& stub, const std::string& upload_id,
                              grpc::Status& status) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(15));
  v1::QueryUploadRequest request;
  request.set_upload_id(upload_id);
  v1::QueryUploadResponse response;
  status = stub.QueryUpload(&context, request, &response);
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) {
    status = grpc::Status::OK;
    return 0;
  }
  return response.committed_bytes();
}

grpc::Status upload_once(v1::BlobService::Stub& stub, const File& file,
                         const v1::WriteBlobRequest::Header& header, const TransferOptions& options,
                         Patience& patience) {
  grpc::Status status;
  std::uint64_t offset = committed_bytes(stub, header.upload_id(), status);
  if (!status.ok()) return status;

  grpc::ClientContext context;
  v1::WriteBlobResponse response;
  const auto writer = stub.WriteBlob(&context, &response);
  v1::WriteBlobRequest request;
  *request.mutable_header() = header;
  bool open = writer->Write(request);
  std::string& data = *request.mutable_data()->mutable_data();
  bool local_end = false;
  while (open && offset < header.size_bytes()) {
    if (wants_stop(options)) {
      context.TryCancel();
      (void)writer->Finish();
      return stopped();
    }
    data.resize(std::min<std::uint64_t>(limits::kChunkBytes, header.size_bytes() - offset));
    const std::size_t got = read_at(file, data.data(), data.size(), offset);
    if (got == 0) {
      local_end = true;
      context.TryCancel();
      break;
    }
    data.resize(got);
    request.mutable_data()->set_offset(offset);
    open = writer->Write(request);
    if (!open) break;
    offset += got;
    patience.progressed();
    if (options.on_progress) options.on_progress(offset, header.size_bytes());
  }
  writer->WritesDone();
  status = writer->Finish();
  if (local_end)
    return local_failure(std::runtime_error("the file became shorter while it was uploaded"));
  return status;
}

/// A blob of which a file holds the beginning.
struct PartialBlob {
  std::uint64_t offset = 0;  ///< bytes of the file
  Sha256 hash;               ///< of these bytes
};

/// Reads how much of a blob is in `file`. The bytes are hashed anew: who wrote them is unknown.
PartialBlob continue_blob(const File& file, const std::filesystem::path& path,
                          std::uint64_t size_bytes) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0)
    throw std::system_error(errno, std::generic_category(), "stat " + path.string());
  PartialBlob blob;
  const auto length = static_cast<std::uint64_t>(info.st_size);
  // A longer file is part of another blob. A shorter one of another blob fails at the digest.
  if (length > size_bytes) return blob;
  std::vector<char> buffer(1U << 20);
  while (blob.offset < length) {
    const std::size_t got =
        read_at(file, buffer.data(), std::min<std::uint64_t>(buffer.size(), length - blob.offset),
                blob.offset);
    if (got == 0) throw std::system_error(EIO, std::generic_category(), path.string());
    blob.hash.update(buffer.data(), got);
    blob.offset += got;
  }
  return blob;
}

/// Writes the arriving bytes of a blob to its file and hashes them, in a thread beside the one that
/// receives them.
class ArrivingBlob {
 public:
  ArrivingBlob(const File& file, PartialBlob begun)
      : arrived_(begun.offset),
        writer_(file.get(), begun.offset),
        hash_(std::move(begun.hash)),
        queue_([this](const std::string& bytes) {
          writer_.append(bytes.data(), bytes.size());
          hash_.update(bytes);
        }) {}
  /// Keeps what has arrived, so that a later download continues there.
  ~ArrivingBlob() {
    try {
      queue_.finish();
      writer_.flush();
    } catch (const std::exception&) {
      // The file ends earlier then, and a later download asks for more.
    }
  }

  /// Number of bytes that have arrived.
  std::uint64_t offset() const { return arrived_; }

  /// Takes the next bytes and leaves a buffer in their place.
  void append(std::string& bytes) {
    const std::size_t size = bytes.size();
    queue_.append(bytes);
    arrived_ += size;
  }

  /// Waits until all bytes are in the file, and returns their digest.
  std::string finish() {
    queue_.finish();
    writer_.flush();
    return hash_.finish_hex();
  }

 private:
  std::uint64_t arrived_;
  DirectWriter writer_;  ///< used by the queue's thread until finish(), as is the next
  Sha256 hash_;
  ChunkQueue queue_;
};

/// Names the blob that a download asks for.
struct WantedBlob {
  const std::string& digest;
  std::uint64_t size_bytes;
};

/// Receives bytes from `blob.offset()` on until the stream ends or breaks.
grpc::Status download_once(v1::BlobService::Stub& stub, const WantedBlob& wanted,
                           ArrivingBlob& blob, const TransferOptions& options, Patience& patience) {
  grpc::ClientContext context;
  v1::ReadBlobRequest request;
  request.set_digest(wanted.digest);
  request.set_offset(blob.offset());
  const auto reader = stub.ReadBlob(&context, request);
  v1::ReadBlobResponse response;
  while (reader->Read(&response)) {
    if (wants_stop(options)) {
      context.TryCancel();
      (void)reader->Finish();
      return stopped();
    }
    if (response.offset() != blob.offset() ||
        response.data().size() > wanted.size_bytes - blob.offset()) {
      context.TryCancel();
      (void)reader->Finish();
      return make_status(grpc::StatusCode::DATA_LOSS, "the server sent bytes at a wrong offset",
                         {.reason = std::string(reason::kBlobCorrupt)});
    }
    try {
      blob.append(*response.mutable_data());
    } catch (...) {
      context.TryCancel();
      (void)reader->Finish();
      throw;
    }
    patience.progressed();
    if (options.on_progress) options.on_progress(blob.offset(), wanted.size_bytes);
  }
  return reader->Finish();
}

}  // namespace

grpc::Status upload_file(const std::shared_ptr<grpc::Channel>& channel,
                         const std::filesystem::path& path, const std::string& digest,
                         std::uint64_t size_bytes, const TransferOptions& options) {
  try {
    const auto stub = v1::BlobService::NewStub(channel);
    const File file(path, O_RDONLY);
    v1::WriteBlobRequest::Header header;
    header.set_digest(digest);
    header.set_size_bytes(size_bytes);
    header.set_upload_id(options.upload_id.empty() ? make_uuid() : options.upload_id);
    Patience patience(options);
    for (;;) {
      const grpc::Status status = upload_once(*stub, file, header, options, patience);
      if (status.ok() || !patience.wait(status)) return status;
    }
  } catch (const std::system_error& error) {
    return local_failure(error);
  }
}

grpc::Status download_file(const std::shared_ptr<grpc::Channel>& channel, const std::string& digest,
                           std::uint64_t size_bytes, const std::filesystem::path& path,
                           const TransferOptions& options) {
  try {
    const auto stub = v1::BlobService::NewStub(channel);
    const std::filesystem::path part_path = path.string() + ".part";
    // The program never makes links. A link at this path could lead to any file, so it is not
    // followed.
    const File part(part_path, O_RDWR | O_CREAT | O_NOFOLLOW, 0644);
    ArrivingBlob blob(part, continue_blob(part, part_path, size_bytes));
    const WantedBlob wanted{.digest = digest, .size_bytes = size_bytes};
    Patience patience(options);
    for (;;) {
      const grpc::Status status = download_once(*stub, wanted, blob, options, patience);
      if (status.ok() && blob.offset() == size_bytes) break;
      if (status.ok())
        return make_status(grpc::StatusCode::DATA_LOSS,
                           "the blob ends after " + std::to_string(blob.offset()) + " of " +
                               std::to_string(size_bytes) + " bytes",
                           {.reason = std::string(reason::kBlobCorrupt)});
      if (patience.wait(status)) continue;
      if (status.error_code() == grpc::StatusCode::DATA_LOSS) std::filesystem::remove(part_path);
      return status;
    }
    const std::string found = blob.finish();
    if (ftruncate(part.get(), static_cast<off_t>(size_bytes)) != 0)
      throw std::system_error(errno, std::generic_category(), "truncate " + part_path.string());
    files::sync_file(part_path);
    if (found != digest) {
      std::filesystem::remove(part_path);
      return make_status(grpc::StatusCode::DATA_LOSS,
                         "the bytes received do not hash to " + digest + "; fetch again",
                         {.reason = std::string(reason::kBlobCorrupt)});
    }
    files::publish(part_path, path);
    return grpc::Status::OK;
  } catch (const std::system_error& error) {  // includes filesystem_error
    return local_failure(error);
  }
}

std::string make_uuid() {
  std::array<std::uint8_t, 16> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw std::runtime_error("RAND_bytes: OpenSSL provides no random bytes");
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0F) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3F) | 0x80);
  std::string text = to_hex(bytes);
  for (const std::size_t dash : {8U, 13U, 18U, 23U}) text.insert(dash, 1, '-');
  return text;
}

bool is_uuid(const std::string& text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? c != '-'
             : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')))
      return false;
  }
  return true;
}

}  // namespace quasi::wire

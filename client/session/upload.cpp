#include "client/session/upload.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <system_error>

#include "client/views/readable.hpp"
#include "client/views/transfer_bar.hpp"
#include "proto/wire/chunks.hpp"
#include "proto/wire/digest.hpp"
#include "proto/wire/limits.hpp"

namespace quasi::client {
namespace {

/// The id of an upload. It depends on the digest and on this machine's file, so a second process
/// continues the upload of the first, and another machine's upload of equal bytes has another id.
/// Any 128 bits have the form of a UUID.
std::string upload_id_of(const std::string& digest, const std::filesystem::path& path) {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  std::error_code ignored;
  const std::string seed =
      digest + '\n' + host.data() + '\n' + std::filesystem::absolute(path, ignored).string();
  const std::string hex = wire::sha256_hex(seed);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20, 12);
}

std::set<std::string> missing_digests(Session& session, const std::vector<std::string>& digests) {
  std::set<std::string> missing;
  for (std::size_t start = 0; start < digests.size(); start += limits::kDigestsPerCall) {
    v1::FindMissingBlobsRequest request;
    for (std::size_t i = start;
         i < std::min<std::size_t>(start + limits::kDigestsPerCall, digests.size()); ++i)
      request.add_digests(digests[i]);
    const auto response = session.server.call(&Blobs::FindMissingBlobs, request);
    missing.insert(response.missing().begin(), response.missing().end());
  }
  return missing;
}

struct Source {
  std::string slot;
  std::filesystem::path path;
  std::uint64_t size_bytes = 0;
};

}  // namespace

void hash_inputs(std::vector<JobRequest>& requests) {
  std::map<std::string, wire::FileDigest> known;  // by path: decks of many jobs are often one file
  for (JobRequest& request : requests) {
    for (const LocalInput& file : request.files) {
      if (interrupt::requested())
        throw Failure(static_cast<ExitStatus>(interrupt::exit_status()),
                      "interrupted; nothing was submitted");
      auto entry = known.find(file.path.string());
      if (entry == known.end()) {
        try {
          entry = known.emplace(file.path.string(), wire::digest_file(file.path)).first;
        } catch (const std::system_error& error) {
          throw Failure(ExitStatus::kLocalFile, error.what(), "check that the file can be read");
        }
      }
      v1::Input& input = *request.spec.add_inputs();
      input.set_slot(file.slot);
      input.set_digest(entry->second.digest);
      input.set_size_bytes(entry->second.size_bytes);
    }
  }
}

std::vector<UploadedFile> upload_inputs(Session& session, const std::vector<JobRequest>& requests) {
  std::map<std::string, Source> sources;  // by digest
  std::vector<std::string> order;
  for (const JobRequest& request : requests) {
    // The local files are the last inputs, in their own order.
    const int given = request.spec.inputs_size() - static_cast<int>(request.files.size());
    for (std::size_t i = 0; i < request.files.size(); ++i) {
      const v1::Input& input = request.spec.inputs(given + static_cast<int>(i));
      if (sources
              .emplace(input.digest(),
                       Source{input.slot(), request.files[i].path, input.size_bytes()})
              .second)
        order.push_back(input.digest());
    }
  }
  if (order.empty()) return {};
  const std::set<std::string> missing = missing_digests(session, order);
  std::vector<UploadedFile> files;
  for (const std::string& digest : order) {
    const Source& source = sources.at(digest);
    UploadedFile file{source.slot, digest, source.size_bytes, missing.contains(digest)};
    if (file.sent) {
      TransferBar bar(session.console, "uploading", source.slot);
      wire::TransferOptions options;
      options.on_progress = [&](std::uint64_t done, std::uint64_t total) { bar.show(done, total); };
      options.cancelled = [] { return interrupt::requested(); };
      options.upload_id = upload_id_of(digest, source.path);
      const grpc::Status status = wire::upload_file(session.server.channel(), source.path, digest,
                                                    source.size_bytes, options);
      bar.clear();
      if (interrupt::requested())
        throw Failure(static_cast<ExitStatus>(interrupt::exit_status()),
                      "interrupted; nothing was submitted",
                      "the uploaded bytes are kept; the same command continues");
      if (!status.ok()) throw session.server.refused(status);
      session.console.note("uploaded  " + source.slot + "  " + readable_bytes(source.size_bytes) +
                           "  sha256:" + digest.substr(0, 8) + "…" + bar.pace(source.size_bytes));
    }
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace quasi::client

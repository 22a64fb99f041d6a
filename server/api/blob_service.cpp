#include "server/api/blob_service.hpp"

#include <memory>
#include <set>

#include "server/api/calls.hpp"

namespace quasi::server {

grpc::ServerUnaryReactor* BlobServiceApi::FindMissingBlobs(
    grpc::CallbackServerContext* context, const v1::FindMissingBlobsRequest* request,
    v1::FindMissingBlobsResponse* response) {
  return read_call(services_, context, violations_of(*request), "FindMissingBlobs",
                   [request, response](ReadStore& store, const Caller& caller) {
                     const Scope scope = scope_of(caller);
                     std::set<std::string> asked;
                     for (const std::string& digest : request->digests())
                       if (asked.insert(digest).second && !store.blob_size(scope, digest))
                         response->add_missing(digest);
                   });
}

grpc::ServerReadReactor<v1::WriteBlobRequest>* BlobServiceApi::WriteBlob(
    grpc::CallbackServerContext* context, v1::WriteBlobResponse* response) {
  const Admission admission = stream_admission_of(services_, *context, "WriteBlob");
  if (!admission.caller)
    return new RefusedStream<grpc::ServerReadReactor<v1::WriteBlobRequest>>(admission.refusal);
  return write_blob(services_, context, response, admission);
}

grpc::ServerUnaryReactor* BlobServiceApi::QueryUpload(grpc::CallbackServerContext* context,
                                                      const v1::QueryUploadRequest* request,
                                                      v1::QueryUploadResponse* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto caller =
      begin_call(services_, context, reactor, violations_of(*request), "QueryUpload");
  if (!caller) return reactor;
  const std::string upload_id = upload_key(*caller, request->upload_id());
  Services& services = services_;
  // The server may not have noticed yet that the earlier stream broke. The bytes that this stream
  // wrote so far are synced and count, and it may write no more.
  const auto answer_from_store = [&services, reactor, context, request, response, upload_id] {
    const bool read = services.readers.read([reactor, context, request, response,
                                             upload_id](ReadStore& store) {
      const auto upload = store.upload(upload_id);
      if (!upload)
        return finish(reactor, context,
                      to_status(Refused(Refusal::kNotFound, wire::reason::kUpload,
                                        "no bytes are kept of upload " + request->upload_id())));
      response->set_committed_bytes(static_cast<std::uint64_t>(upload->committed_bytes));
      finish(reactor, context, grpc::Status::OK);
    });
    if (!read) finish(reactor, context, busy_status(services.draining));
  };
  const bool posted =
      services_.files.post([&services, reactor, context, upload_id, answer_from_store] {
        const auto session = services.uploads.find(upload_id);
        if (!session) return answer_from_store();
        UploadRow row;
        try {
          const std::lock_guard lock(session->mutex);
          session->owner = nullptr;
          if (!session->file) return answer_from_store();
          session->sync();
          row = {.upload_id = session->upload_id,
                 .digest = session->digest,
                 .size_bytes = static_cast<std::int64_t>(session->size_bytes),
                 .committed_bytes = static_cast<std::int64_t>(session->synced)};
        } catch (...) {
          return finish(reactor, context, to_status(std::current_exception(), "QueryUpload"));
        }
        const bool written = services.writer.post(
            {.body =
                 [row](WriteContext& write) mutable {
                   row.touched_ms = write.now.wall_ms;
                   write.store.save_upload(row);
                 },
             .done =
                 [reactor, context, answer_from_store](const std::exception_ptr& error) {
                   if (error) return finish(reactor, context, to_status(error, "QueryUpload"));
                   answer_from_store();
                 }});
        if (!written) finish(reactor, context, busy_status(services.draining));
      });
  if (!posted) finish(reactor, context, busy_status(services_.draining));
  return reactor;
}

grpc::ServerWriteReactor<v1::ReadBlobResponse>* BlobServiceApi::ReadBlob(
    grpc::CallbackServerContext* context, const v1::ReadBlobRequest* request) {
  const Admission admission = stream_admission_of(services_, *context, "ReadBlob");
  if (!admission.caller)
    return new RefusedStream<grpc::ServerWriteReactor<v1::ReadBlobResponse>>(admission.refusal);
  return read_blob(services_, context, *request, admission);
}

}  // namespace quasi::server

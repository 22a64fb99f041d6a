#pragma once

#include "quasi/v1/blob_service.grpc.pb.h"
#include "server/api/access/admit.hpp"
#include "server/api/services.hpp"

namespace quasi::server {

/// Implements quasi.v1.BlobService. The folder streams/ holds the two streaming calls.
class BlobServiceApi : public v1::BlobService::CallbackService {
 public:
  explicit BlobServiceApi(Services& services) : services_(services) {}

  grpc::ServerUnaryReactor* FindMissingBlobs(grpc::CallbackServerContext*,
                                             const v1::FindMissingBlobsRequest*,
                                             v1::FindMissingBlobsResponse*) override;
  grpc::ServerReadReactor<v1::WriteBlobRequest>* WriteBlob(grpc::CallbackServerContext*,
                                                           v1::WriteBlobResponse*) override;
  grpc::ServerUnaryReactor* QueryUpload(grpc::CallbackServerContext*, const v1::QueryUploadRequest*,
                                        v1::QueryUploadResponse*) override;
  grpc::ServerWriteReactor<v1::ReadBlobResponse>* ReadBlob(grpc::CallbackServerContext*,
                                                           const v1::ReadBlobRequest*) override;

 private:
  Services& services_;
};

/// These functions create the streams. Each stream has a file of its own in streams/.
grpc::ServerReadReactor<v1::WriteBlobRequest>* write_blob(Services&, grpc::CallbackServerContext*,
                                                          v1::WriteBlobResponse*, const Admission&);
grpc::ServerWriteReactor<v1::ReadBlobResponse>* read_blob(Services&, grpc::CallbackServerContext*,
                                                          const v1::ReadBlobRequest&,
                                                          const Admission&);

}  // namespace quasi::server

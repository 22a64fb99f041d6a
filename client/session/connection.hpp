#pragma once

#include <grpcpp/client_context.h>

#include <chrono>
#include <memory>
#include <string>

#include "client/engine/interrupt.hpp"
#include "client/failure.hpp"
#include "client/input/config.hpp"
#include "quasi/v1/access_service.grpc.pb.h"
#include "quasi/v1/admin_service.grpc.pb.h"
#include "quasi/v1/blob_service.grpc.pb.h"
#include "quasi/v1/job_service.grpc.pb.h"

namespace quasi::client {

/// Converts a status of the server to a failure with reason and remedy. No other function does.
Failure failure_of(const grpc::Status& status, const std::string& address);

/// True if the call may be repeated unchanged: the server is unreachable or busy and refused
/// nothing.
bool is_transient(const grpc::Status& status);

/// The files that open a connection by TCP.
struct Credentials {
  std::string token_file;  ///< with the caller's token; "": none, or the one of a Unix socket
  std::string ca_file;     ///< with the CA that signed the server's certificate; "": plain text
};

/// The channel to the server of a command. It is created at its first use. Thread-safe once
/// `channel()` has been called.
class Connection {
 public:
  Connection(std::string address, double timeout_s, Credentials credentials = {})
      : address_(std::move(address)), timeout_s_(timeout_s), credentials_(std::move(credentials)) {}

  const std::string& address() const { return address_; }
  std::shared_ptr<grpc::Channel> channel();
  v1::JobService::Stub& jobs();
  v1::BlobService::Stub& blobs();
  v1::AdminService::Stub& admin();
  v1::AccessService::Stub& codes();

  /// Makes one unary call with the configured time limit. Ctrl-C cancels it.
  /// @throws Failure for every status but OK.
  template <typename Stub, typename Request, typename Response>
  Response call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                const Request& request) {
    Response response;
    const grpc::Status status = try_call(method, request, response, timeout_s_);
    if (!status.ok()) throw refused(status);
    return response;
  }

  template <typename Stub, typename Request, typename Response>
  grpc::Status try_call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                     Response*),
                        const Request& request, Response& response, double timeout_s) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3)));
    const interrupt::Scope cancel([&context] { context.TryCancel(); });
    return (stub<Stub>().*method)(&context, request, &response);
  }

  /// The failure of a call of this connection. If no TLS connection can be made, it names the
  /// reason: another CA, another name, a certificate out of its time.
  Failure refused(const grpc::Status& status) const;

  double timeout_s() const { return timeout_s_; }

 private:
  template <typename Stub>
  Stub& stub() {
    if constexpr (std::is_same_v<Stub, v1::JobService::Stub>)
      return jobs();
    else if constexpr (std::is_same_v<Stub, v1::AdminService::Stub>)
      return admin();
    else if constexpr (std::is_same_v<Stub, v1::AccessService::Stub>)
      return codes();
    else
      return blobs();
  }

  std::string address_;
  double timeout_s_;
  Credentials credentials_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::BlobService::Stub> blobs_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
  std::unique_ptr<v1::AccessService::Stub> codes_;
};

using Jobs = v1::JobService::Stub;
using Blobs = v1::BlobService::Stub;
using Admin = v1::AdminService::Stub;
using Codes = v1::AccessService::Stub;

}  // namespace quasi::client

#pragma once

#include <optional>
#include <string_view>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

#include "server/access/principal.hpp"
#include "server/api/services.hpp"
#include "server/queue/refused.hpp"

/// Begin here: server/api/access is the door of the server. Every call passes `admit` before
/// anything is done for it. identities.hpp knows the users of this machine, and admin_service.hpp
/// changes who may come in.
namespace quasi::server {

/// Finds the caller of a call by its token and checks that its role may call the method and that
/// a scope of the token opens it.
/// @param method  name of the method without its service
/// A valid token is admitted even if its peer has failed too often, because many people may share
/// an address. A call without a token waits for its peer.
/// @throws Refused UNAUTHENTICATED, PERMISSION_DENIED, or RESOURCE_EXHAUSTED / RATE_LIMITED.
Caller admit(Services& services, const grpc::CallbackServerContext& context,
             std::string_view method);

/// Counts a login that was refused, and writes it into the log and the audit. A login of a peer
/// that has failed too often is not written into the audit, and the log has at most one such line a
/// second, so that a caller cannot fill the disk.
/// @return the refusal for the caller: `refused`, or RESOURCE_EXHAUSTED / RATE_LIMITED with the
///         time to wait if its peer has failed more often than `failed_logins_per_minute`.
Refused refuse_login(Services& services, const grpc::CallbackServerContext& context,
                     const Refused& refused, std::string_view method);

/// The jobs and files of which the caller may learn.
Scope scope_of(const Caller& caller);

/// Name of an upload on the server. Each principal has upload ids of its own.
std::string upload_key(const Caller& caller, const std::string& upload_id);

/// Holds the caller of a stream or a long call, or the status with which `admit` refuses it.
struct Admission {
  std::optional<Caller> caller;
  grpc::Status refusal;
  StreamPlace place = nullptr;  ///< a stream keeps it until its end
};
Admission admission_of(Services& services, const grpc::CallbackServerContext& context,
                       const char* method);
/// Does the same for a stream, which needs a place among the open streams of its caller.
Admission stream_admission_of(Services& services, const grpc::CallbackServerContext& context,
                              const char* method);

/// Time that the reader of a stream has to take the status with which the stream ends early. The
/// status cannot overtake messages that the reader does not take; such a call is cancelled.
inline constexpr std::int64_t kStatusPatienceMs = 1'000;

/// Looks up whether the token of an admitted call still opens the method. Streams and long calls
/// ask before they send or take anything, and while they wait. It reads no database.
/// @return the status that ends the call, or nothing if it may go on
std::optional<grpc::Status> lost_right(const Services& services, const Caller& caller,
                                       const char* method);

/// A stream that is refused before its first message.
template <class Reactor>
class RefusedStream : public Reactor {
 public:
  explicit RefusedStream(const grpc::Status& status) { this->Finish(status); }
  void OnDone() override { delete this; }
};

}  // namespace quasi::server

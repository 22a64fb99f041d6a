#include "workers/daemon/ports/transient.hpp"

#include "proto/wire/status.hpp"

namespace quasi {

bool did_not_get_through(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
    // An administrator gives the worker a token or its role; until then its work waits.
    case grpc::StatusCode::UNAUTHENTICATED:
    case grpc::StatusCode::PERMISSION_DENIED:
      return true;
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:
      return wire::reason_of(status).empty();  // an answer of a server contains its reason
    default:
      return false;
  }
}

bool is_transient(const grpc::Status& status) {
  return did_not_get_through(status) || status.error_code() == grpc::StatusCode::INTERNAL;
}

}  // namespace quasi

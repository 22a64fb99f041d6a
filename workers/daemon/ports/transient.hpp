#pragma once

#include <grpcpp/support/status.h>

namespace quasi {

/// Returns true if a call or transfer did not get through: no answer, a full server, a connection
/// that broke, or a server that does not (yet) accept the worker's token. A repetition may succeed
/// without any change.
bool did_not_get_through(const grpc::Status& status);

/// Returns true if did_not_get_through() does, or if the server failed by an internal error;
/// results wait for its repair. A local file that cannot be read or written is not transient.
bool is_transient(const grpc::Status& status);

}  // namespace quasi

#pragma once

#include <grpcpp/support/status.h>

namespace quasi {

/// The call or transfer did not get through: no answer, no room, or a connection that died under
/// it. Another try may succeed without anybody having changed anything.
bool did_not_get_through(const grpc::Status& status);

/// The same, or a server that failed by a bug of its own: results wait for one that is repaired. A
/// file of this machine that cannot be read or written is neither.
bool is_transient(const grpc::Status& status);

}  // namespace quasi

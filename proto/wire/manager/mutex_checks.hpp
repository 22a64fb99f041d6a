#pragma once

namespace quasi::wire {

/// Turns off the search for deadlocks in the mutexes of gRPC. Debian builds their library with it,
/// and it keeps a graph of all locks: 5 % of the processor time of a busy server. Programs call it
/// once, before their first use of gRPC.
void skip_mutex_checks();

}  // namespace quasi::wire

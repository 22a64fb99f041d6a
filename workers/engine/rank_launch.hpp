#pragma once

#include <string>

#include "proto/wire/packet_socket.hpp"
#include "quasi/v1/engine.pb.h"

namespace quasi {

/// Objects that rank 0 of an attempt receives: the daemon's socket and the daemon's first message.
struct DaemonContact {
  PacketSocket daemon;
  v1::EngineStart start;
};

/// Starts this program start.ranks() times under the MPI launcher, passes the daemon's socket to
/// rank 0, and waits for the end of all ranks. The ranks and their launcher die with this process,
/// and SIGTERM is passed on to them. All their files lie in the working directory, which belongs to
/// the attempt.
/// @param daemon  remains open in this process only if the ranks could not be started
/// @return the exit status of the contract. A signal that killed a rank kills this process too.
// rank_launch.cpp and rank_launch_absent.cpp define this function, one for each build.
int launch_ranks(PacketSocket& daemon, const v1::EngineStart& start);

/// Takes in rank 0 the objects that launch_ranks offers. @throws InvalidInput if no launcher offers
/// them.
DaemonContact receive_contact(const std::string& socket_path);

}  // namespace quasi

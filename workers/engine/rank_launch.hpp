#pragma once

#include <string>

#include "proto/wire/packet_socket.hpp"
#include "quasi/v1/engine.pb.h"

namespace quasi {

/// What rank 0 of an attempt is handed: the daemon's socket and what the daemon said first.
struct HandedOver {
  PacketSocket daemon;
  v1::EngineStart start;
};

/// Starts this program start.ranks() times under the MPI launcher, hands the daemon's socket to
/// rank 0, and waits for the end of all. The ranks and their launcher die with this process;
/// SIGTERM reaches them as it reaches this one. Whatever they put down lies in the working
/// directory, which is the attempt's own.
/// @param daemon  in this process's hands again only where ranks could not be started
/// @return the exit status of the contract; what killed a rank kills this process too.
// One body for each build: rank_launch.cpp and rank_launch_absent.cpp.
int launch_ranks(PacketSocket& daemon, const v1::EngineStart& start);

/// Rank 0: takes what launch_ranks holds ready. @throws InvalidInput where nobody does
HandedOver take_over(const std::string& socket_path);

}  // namespace quasi

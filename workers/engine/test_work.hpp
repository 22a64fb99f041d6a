#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "proto/wire/packet_socket.hpp"
#include "quasi/v1/job.pb.h"
#include "workers/backend/progress.hpp"

namespace quasi {

/// Where test work happens.
struct TestWorkSite {
  std::filesystem::path output_directory;
  std::filesystem::path checkpoint_directory;
  std::uint32_t attempt_number = 1;
  PacketSocket& daemon;  ///< for work that misbehaves on it
};

/// Work without physics: waits, burns, writes, dies and misbehaves as `work` says, so that
/// everything around an engine can be tested with no GPU and no deck.
/// @return the summary.
/// @throws Cancelled, InvalidInput (no action set), StorageError.
nlohmann::json run_test_work(const v1::TestWork& work, const TestWorkSite& site,
                             Progress& progress);

}  // namespace quasi

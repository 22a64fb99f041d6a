#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "proto/wire/packet_socket.hpp"
#include "quasi/v1/job.pb.h"
#include "workers/backend/progress.hpp"

namespace quasi {

/// Environment of test work.
struct TestWorkSite {
  std::filesystem::path output_directory;
  std::filesystem::path checkpoint_directory;
  std::uint32_t attempt_number = 1;
  PacketSocket& daemon;  ///< used by test work that violates the protocol
};

/// Runs work without physics: it waits, burns time, writes, dies or violates the protocol as `work`
/// asks. Everything around an engine can thus be tested with no GPU and no deck. @return the
/// summary. @throws Cancelled, InvalidInput (no action set), StorageError.
nlohmann::json run_test_work(const v1::TestWork& work, const TestWorkSite& site,
                             Progress& progress);

}  // namespace quasi

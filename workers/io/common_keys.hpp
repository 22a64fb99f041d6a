#pragma once

#include <cstdint>

#include "workers/backend/device/device.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi {

/// Keys that mean the same in the deck of every kind. In a TOML deck they stand at the top.
struct CommonKeys {
  /// Least time between two checkpoints. 0: a checkpoint after every finished part.
  double checkpoint_interval_s = 30.0;
  /// Memory that the job may plan with on one device. 0: by device_memory_fraction.
  double memory_budget_mib = 0.0;
  /// Share of the memory of a device that the job may plan with, whoever else uses the device, so
  /// that bits do not depend on other users. 0: the kind's own rule.
  double device_memory_fraction = 0.0;
  /// OpenMP threads of the process. 0: OMP_NUM_THREADS or the number of cores.
  int threads = 0;
};

/// Reads the common keys from the top table of a deck; absent keys keep their values.
void read_common_keys(TableReader& reader, CommonKeys* keys);

/// The memory budget of one device. The deck's memory_budget_mib comes first, then its
/// device_memory_fraction, then `job_bytes`.
/// @param job_bytes  budget of the job's own settings; 0: none
/// @return 0 where nobody set a budget, and the kind's own rule holds
std::int64_t memory_budget_bytes(const CommonKeys& keys, const Device& device,
                                 std::int64_t job_bytes);

/// Applies `threads` to this process.
void use_threads(const CommonKeys& keys);

}  // namespace quasi

#pragma once

#include <cstdint>

#include "workers/backend/device/device.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi {

/// Deck keys with the same meaning for every kind. In a TOML deck they stand in the top table.
struct CommonKeys {
  /// Least time between two checkpoints. 0 means a checkpoint after every finished part.
  double checkpoint_interval_s = 30.0;
  /// Memory that the job may use on one device. 0 means that device_memory_fraction decides.
  double memory_budget_mib = 0.0;
  /// Share of a device's memory that the job may use. It does not depend on other users of the
  /// device, so that bits do not depend on them. 0 means that the kind's own rule decides.
  double device_memory_fraction = 0.0;
  /// OpenMP threads of the process. 0 means OMP_NUM_THREADS or the number of cores.
  int threads = 0;
};

/// Reads the common keys from the top table of a deck; absent keys keep their values.
void read_common_keys(TableReader& reader, CommonKeys* keys);

/// Returns the memory budget of one device. The deck's memory_budget_mib comes first, then its
/// device_memory_fraction, then `job_bytes`. @param job_bytes  budget of the job's own settings; 0:
/// none @return 0 if no budget is set, so that the kind's own rule decides
std::int64_t memory_budget_bytes(const CommonKeys& keys, const Device& device,
                                 std::int64_t job_bytes);

/// Sets the number of OpenMP threads of this process.
void use_threads(const CommonKeys& keys);

}  // namespace quasi

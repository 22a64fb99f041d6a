#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "workers/thermal/solver/four_phonon/four_phonon_run.hpp"

namespace quasi::thermal {

/// Makes what the sums of four phonons need first: the problem, the kernels of all devices, and
/// tables and buffers on the devices. Where all devices are GPUs, a thread of its own does so while
/// the caller sums three phonons. Four phonons then wait neither for the host nor for transfers,
/// which more GPUs do not shorten. Else everything is made in finish().
///
/// Three phonons size their buffers by the free memory of a GPU. Four phonons therefore load early
/// only if they need at most kEarlyShare of it, which is less than the others leave free.
class FourPhononStart {
 public:
  /// Largest share of a GPU's free memory that is taken while three phonons are summed.
  static constexpr double kEarlyShare = 1.0 / 16.0;

  /// Returns true if all devices are GPUs, so that the host has time beside three phonons.
  static bool may_begin_early(const std::vector<Device>& devices);

  /// @param transport, fourth_order  must outlive the object and the result of finish()
  /// @param early  begins in a thread of its own, not in finish()
  FourPhononStart(const Transport& transport, const SparseForceConstants& fourth_order,
                  const FourPhononOptions& options, std::vector<Device> devices, bool early);

  /// Waits until all is made, and returns it. It may be called once.
  /// @throws what make_problem_4ph and the kernels throw
  std::unique_ptr<FourPhononRun> finish();

 private:
  void make();

  const Transport& transport_;
  const SparseForceConstants& fourth_order_;
  std::vector<Device> devices_;
  bool early_;
  int host_threads_;
  std::unique_ptr<FourPhononRun> result_;
  std::future<void> made_;  ///< last, so that it ends before the other members are destroyed
};

/// Makes kernels for every device, all at the same time.
std::vector<std::unique_ptr<ScatteringKernels4ph>> kernels_of(const std::vector<Device>& devices,
                                                              std::int64_t memory_budget_bytes);

/// Returns the kernels as Team4ph takes them.
std::vector<ScatteringKernels4ph*> pointers_to(
    const std::vector<std::unique_ptr<ScatteringKernels4ph>>& kernels);

}  // namespace quasi::thermal

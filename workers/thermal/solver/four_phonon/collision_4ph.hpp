#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/progress.hpp"
#include "workers/thermal/physics/physical_constants.hpp"
#include "workers/thermal/solver/four_phonon/scattering_4ph.hpp"
#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"

namespace quasi::thermal {

/// Bytes of the operator as a matrix and in a checkpoint.
double collision_bytes(std::int64_t n_rows, std::int64_t n_modes);

/// The part of four phonons in the collision operator, as FurtherScattering passes it to solve_bte.
///
/// The in-scattering is a matrix [n_rows][n_modes], whatever the number of processes. One pass over
/// the processes builds it at each temperature, and its application costs little. Points are shared
/// out among the devices of all ranks. Where their matrices do not fit the memory budgets, chunks
/// of points are built again at every application. All ranks make every call but recomputes() at
/// the same time.
class Collision4ph {
 public:
  /// @param problem, team  must outlive this; the kernels have the problem loaded
  /// @param rates          of the problem, all temperatures
  Collision4ph(const Problem4ph& problem, const PhysicalConstants& constants, const Team4ph& team,
               const Rates4ph& rates, bool symmetric, Progress& progress);

  /// Σ Γ (± F of the partners) at temperature t of a field on the full mesh: [n_modes][3] →
  /// [n_rows][3].
  std::vector<double> in_scattering(std::size_t t, const std::vector<double>& f);
  /// The rates that belong to in_scattering, [n_rows] in 1/ps.
  std::vector<double> out_scattering(std::size_t t);
  /// Keeps the operator in a checkpoint from now on, and resumes from it. While the operator is no
  /// larger than `limit_bytes` and fits memory and disk, its sums are kept tile by tile. Otherwise
  /// the log says so, and the result of every application is kept, one chunk of points at a time.
  /// All ranks call it at the same time, and rank 0 keeps the sums of all. Where every application
  /// computes all processes again, nothing is kept here: the iteration keeps the applications.
  void keep_in(Checkpoint& checkpoint, double limit_bytes);
  /// True if every application computes all processes again.
  bool recomputes() const { return recomputes_; }

 private:
  struct Chunk {
    std::int32_t first_point, last_point;
    std::size_t device;  ///< among those of all ranks
  };
  /// Calls work(chunk, kernels) for the chunks of this rank's devices, a thread a device.
  template <typename Work>
  void on_own_chunks(const Work& work);
  /// Gathers the rows of every chunk from the rank that has them; `width` values a row.
  void exchange_rows(std::vector<double>& values, std::int64_t width) const;
  void build(std::size_t t, const Chunk& chunk, ScatteringKernels4ph& kernels);
  std::vector<double> apply(std::size_t t, const Chunk& chunk, ScatteringKernels4ph& kernels,
                            const std::vector<double>& f);
  void report(const Chunk& chunk, std::int64_t place);
  /// Beginning of the names under which pieces of a chunk are kept, at any temperature. The name of
  /// a piece goes on with the digest and ends with the number of tiles that it holds.
  static std::string name_of(const Chunk& chunk) {
    return "collision 4ph of " + std::to_string(chunk.first_point) + " ";
  }
  std::string sums_of(std::size_t t, const Chunk& chunk) const {
    return name_of(chunk) + std::to_string(digest(t, chunk)) + " after ";
  }
  /// The rank that holds a chunk.
  std::size_t rank_of(const Chunk& chunk) const;
  int device_of(const Chunk& chunk) const {
    return static_cast<int>(chunk.device - first_device_[rank_of(chunk)]);
  }
  // Rank 0 has the checkpoint: it sends sums of earlier attempts to the ranks that hold the chunks,
  // and keeps the sums that they send.
  void send_what_is_kept(std::size_t t);
  void keep_what_is_sent(std::size_t t);
  void wait_for_what_is_sent(std::size_t t);
  /// Digest of the operator of a chunk at a temperature.
  std::uint64_t digest(std::size_t t, const Chunk& chunk) const;
  void prepare(std::size_t t);

  const Problem4ph& problem_;
  double rate_constant_;  ///< C4/Nq²
  Team4ph team_;
  const Rates4ph& rates_;
  bool symmetric_;
  Progress& progress_;
  std::atomic<bool> stop_{false};
  bool recomputes_ = false;
  std::vector<Chunk> chunks_;
  std::vector<std::size_t> first_device_;  ///< [ranks + 1] among those of all ranks
  TilePlan4ph plan_;
  Checkpoint* checkpoint_ = nullptr;
  bool keeps_sums_ = false;  ///< the same on all ranks
  std::mutex remote_mutex_;
  std::size_t remote_left_ = 0;  ///< chunks of other ranks that are not finished
  Checkpoint::Turn remote_turn_;
  std::uint64_t problem_digest_ = 0;
  std::size_t temperature_;         ///< of what follows; n_temperatures: nothing yet
  std::vector<double> out_per_ps_;  ///< [n_rows]
};

}  // namespace quasi::thermal

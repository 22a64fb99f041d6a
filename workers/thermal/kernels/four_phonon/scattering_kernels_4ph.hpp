#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/thermal/kernels/four_phonon/sample_4ph.hpp"
#include "workers/thermal/model/problem_4ph.hpp"

namespace quasi::thermal {

/// The heavy steps of four-phonon scattering on one device. The work is cut by total momentum
/// Q = q + q' (for --: q − q'): all processes with the same Q share one sorted table of last pairs.
///
/// `load` moves the problem to where the device can read it; later calls use it until the next
/// `load`. Not thread-safe: one solve, one instance.
class ScatteringKernels4ph {
 public:
  virtual ~ScatteringKernels4ph() = default;

  virtual void load(const Problem4ph& problem) = 0;

  // Total momenta are named by their positions in Problem4ph::totals, [first, last).

  /// Sums over the processes with these total momenta: [n_rows][3 channels][SumLayout4ph],
  /// each the sum in rising position of one value per Q, added to zero. The same bits for any
  /// device of one back end and any number of threads.
  virtual std::vector<double> sums(std::int32_t first_total, std::int32_t last_total) = 0;

  /// The range of which `sums` is wanted after the next one: a device may begin with it. Changes no
  /// result.
  virtual void expect(std::int32_t /*first_total*/, std::int32_t /*last_total*/) {}

  /// Sums over draws [first, last) of the published estimator: [n_rows][3
  /// channels][UniformLayout4ph]. `elements`: false leaves the matrix elements out.
  virtual std::vector<double> sample_uniform(std::uint64_t seed, std::int64_t first_draw,
                                             std::int64_t last_draw, bool elements) = 0;

  /// As `sums`, with matrix elements of the processes that are drawn only:
  /// [n_rows][3][ThinnedLayout4ph].
  /// @param thinning  its weight_sum on the host
  virtual std::vector<double> thinned_sums(const Thinning4ph& thinning, std::int32_t first_total,
                                           std::int32_t last_total) = 0;

  // The in-scattering of some rows as a matrix on all modes, however many processes there are:
  //   M[row][mode] = Σ ± m W|V|² over the processes of the row and their partners that are this
  //   mode.
  // begin, add every total momentum in rising order, finish, then apply as often as wanted. The
  // same bits for any device of one back end, number of threads, and division of the points.

  /// Points whose matrix fits the memory budget at once.
  /// @throws OutOfMemory if not even one does.
  virtual std::int64_t collision_points_that_fit() const = 0;
  virtual void begin_collision(const CollisionRequest4ph& request) = 0;
  virtual void add_collision(std::int32_t first_total, std::int32_t last_total) = 0;
  /// The sums added so far, for a checkpoint; restore takes them up again after begin_collision of
  /// the same request.
  /// @return false, and nothing is changed, if they are not such sums of this back end.
  virtual std::vector<double> collision_state() const = 0;
  virtual bool restore_collision(const double* state, std::size_t count) = 0;
  /// @return [rows] Σ m W|V|², the rate that belongs to the matrix; empty if the guess of the rows'
  /// size
  ///         was too low: add everything again.
  virtual std::vector<double> finish_collision() = 0;
  /// M f: [n_modes][3] → [rows][3].
  virtual std::vector<double> apply_collision(const std::vector<double>& f) const = 0;

  /// Complex multiply-adds of one matrix element once λ and λ' are contracted, as this back end
  /// does it.
  virtual std::int64_t multiply_adds_per_process() const = 0;

  /// Bytes on the device that `load` would take, the tables of one batch included.
  virtual std::int64_t memory_bytes(const Problem4ph& problem) const = 0;
};

std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph(const Device& device,
                                                                  std::int64_t memory_budget_bytes);
// One body for each build: scattering_kernels_4ph_cuda.cu and …_absent.cpp.
std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph_cuda(
    const Device& device, std::int64_t memory_budget_bytes);
std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph_cpu(
    std::int64_t memory_budget_bytes = 0);

}  // namespace quasi::thermal

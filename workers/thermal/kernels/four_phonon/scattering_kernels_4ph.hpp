#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/thermal/kernels/four_phonon/sample_4ph.hpp"
#include "workers/thermal/model/precision.hpp"
#include "workers/thermal/model/problem_4ph.hpp"

namespace quasi::thermal {

/// Begin here: sums over four-phonon processes on one device. The work is divided by total momentum
/// Q = q + q' (for --: q − q'): all processes with the same Q share one sorted table of last pairs
/// (pair_key_4ph.hpp). scattering_kernels_4ph_cpu.cpp and, in scatter/, the CUDA kernels compute
/// the sums from the formulas of physics/scattering_4ph.hpp.
///
/// `load` copies the problem to the device; later calls use it until the next `load`. An instance
/// is not thread-safe. See docs/theory/thermal.md 7 for the equations.
class ScatteringKernels4ph {
 public:
  virtual ~ScatteringKernels4ph() = default;

  /// Makes the device ready for the exact sums of problems of one kind: what `load` and the first
  /// sums would do once for each device. `load` takes any problem afterwards.
  /// @param outline  of outline_problem_4ph(); its mesh, points and stars size the buffers
  virtual void prepare(const Problem4ph& /*outline*/) {}

  virtual void load(const Problem4ph& problem) = 0;

  /// Returns the name of the rule by which `sums` assigns a process to one total momentum. A
  /// checkpoint holds this name, because tiles of different rules cannot be added.
  virtual std::string sums_form(const Problem4ph& problem) const = 0;

  // Total momenta are named by their positions in Problem4ph::totals, [first, last).

  /// Sums over the processes with these total momenta, [n_rows][3 channels][SumLayout4ph]. Where
  /// phonons share a visit (exchange_4ph.hpp), all rows of a process get it at the Q of the visit.
  /// Each sum starts at zero and adds one value per Q in rising position, so that any device of one
  /// back end and any number of threads give the same bits.
  virtual std::vector<double> sums(std::int32_t first_total, std::int32_t last_total) = 0;

  /// Announces the range that follows the next call of `sums`, with which a device may begin early.
  /// It changes no result.
  virtual void expect(std::int32_t /*first_total*/, std::int32_t /*last_total*/) {}

  /// Sums over the uniform draws [first, last), [n_rows][3 channels][UniformLayout4ph].
  /// @param elements  false leaves the matrix elements out
  virtual std::vector<double> sample_uniform(std::uint64_t seed, std::int64_t first_draw,
                                             std::int64_t last_draw, bool elements) = 0;

  /// Sums like `sums`, with the matrix elements of drawn processes only,
  /// [n_rows][3][ThinnedLayout4ph].
  /// @param thinning  its weight_sum on the host
  virtual std::vector<double> thinned_sums(const Thinning4ph& thinning, std::int32_t first_total,
                                           std::int32_t last_total) = 0;

  // The in-scattering of some rows is a matrix on all modes, whatever the number of processes:
  //   M[row][mode] = Σ ± m W|V|² over the processes of the row with this mode as a partner.
  // A caller begins, adds every total momentum in rising order, finishes, and then applies the
  // matrix. Any device of one back end, any number of threads and any division of the points give
  // the same bits.

  /// Number of points whose matrix fits the memory budget at once.
  /// @throws OutOfMemory if not even one point fits.
  virtual std::int64_t collision_points_that_fit() const = 0;
  virtual void begin_collision(const CollisionRequest4ph& request) = 0;
  virtual void add_collision(std::int32_t first_total, std::int32_t last_total) = 0;
  /// The sums added so far, for a checkpoint. restore_collision puts them back after
  /// begin_collision of the same request.
  /// @return false, without a change, if the state is not one of this back end
  virtual std::vector<double> collision_state() const = 0;
  virtual bool restore_collision(const double* state, std::size_t count) = 0;
  /// Ends the sums.
  /// @return [rows] Σ m W|V|², the rate that belongs to the matrix; empty if
  ///         CollisionRequest4ph::row_size was too low and everything must be added again
  virtual std::vector<double> finish_collision() = 0;
  /// M f: [n_modes][3] → [rows][3].
  virtual std::vector<double> apply_collision(const std::vector<double>& f) const = 0;

  /// Complex multiply-adds of one matrix element on this back end, with λ and λ' contracted.
  virtual std::int64_t multiply_adds_per_process() const = 0;

  /// Bytes on the device that `load` would take, the tables of one batch included.
  virtual std::int64_t memory_bytes(const Problem4ph& problem) const = 0;
};

std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph(const Device& device,
                                                                  std::int64_t memory_budget_bytes);
// A build has one body: that of scattering_kernels_4ph_cuda.cu, or without CUDA that of
// scattering_kernels_4ph_cuda_absent.cpp.
std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph_cuda(
    const Device& device, std::int64_t memory_budget_bytes);
std::unique_ptr<ScatteringKernels4ph> make_scattering_kernels_4ph_cpu(
    std::int64_t memory_budget_bytes = 0);

}  // namespace quasi::thermal

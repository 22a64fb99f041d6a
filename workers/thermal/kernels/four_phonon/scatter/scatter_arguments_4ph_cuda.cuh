#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/collision_operator_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/exchange_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/sample_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/scatter/matrix_element_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/pair_tables_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/scatter/partner_point_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/shared_list_4ph_cuda.cuh"

/// Arguments of the scattering kernel and the sizes of its arrays in shared memory.
namespace quasi::thermal::cuda4ph {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kGroup = 6;  ///< branches s' whose A a block holds at once, at most
static_assert(kThreads >= kGroup * 2 * PairKeys4ph::kClasses,
              "a thread for each range of candidates");

static_assert(kContractionSlots * 9 <= kThreads, "a thread for each element of a slot");

/// Processes that a thread evaluates at once; it tests as many candidates at once.
constexpr int processes_of_thread(Form4ph form) { return form == Form4ph::kSwapped ? 2 : 1; }
/// Bytes of SwappedElements::slot for all threads of a block.
constexpr int slot_bytes(Form4ph form) {
  return form == Form4ph::kSwapped ? kThreads * processes_of_thread(form) * 48 : 0;
}

static_assert(kContractionSlots * kGroup * 9 * 16 <= slot_bytes(Form4ph::kSwapped),
              "slots of the contraction share the memory of the processes");

/// Result that is computed from the processes.
enum class Use {
  kRates,      ///< SumLayout4ph of each row and channel, where each row visits its processes
  kShared,     ///< SumLayout4ph, where all four phonons of a process share its visit
  kCollision,  ///< rows of the collision operator
  kThinned,    ///< ThinnedLayout4ph of each row and channel; only drawn processes are evaluated
};

constexpr bool sums_rates(Use use) { return use == Use::kRates || use == Use::kShared; }

struct ScatterArguments {
  Tables4ph tables;
  PairKeys4ph keys;
  CellPath4ph path;
  const std::int32_t* path_order;  ///< [n_pairs] the plan's number of each pair along the path
  PairTables kind[2];              ///< by PairKind4ph
  const PartnerPoint4ph* partner_point;  ///< [places][n_points][2 signs]
  /// [n_modes] 1/ω (0 where the rules call λ too slow for a partner) and n at the first
  /// temperature, read together.
  const double2* energy_number;
  double per_window_norm;  ///< 1/Rules4ph::window_norm
  std::int64_t n_pairs_table;
  std::int32_t first_total;  ///< place in the order of total momenta
  std::int32_t first_star;   ///< of the tables
  int group;                 ///< s' held at once, ≤ kGroup
  std::int64_t
      first_row;  ///< rows of this launch, [first, first + n); x of the grid, places are its y
  std::int64_t n_rows;
  /// [places][n_rows][channels][layout]; for the collision operator [places][n_rows][2 signs][2]:
  /// the sums of Γ and of |Γ|.
  double* partial;
  double* exchanged;  ///< AddExchanged4ph::exchanged; Use::kShared only
  CollisionTarget collision;
  Thinning4ph thinning;  ///< weight_sum on the device
  SharedSums4ph shared;  ///< of Use::kShared
  SharedList list;       ///< of Use::kShared
};

/// A of the branches s' that a block holds at once.
template <typename Real>
inline __host__ __device__ int elements_bytes(int group, int n_pairs) {
  return (group * n_pairs * 9 * static_cast<int>(sizeof(Complex<Real>)) + 15) / 16 * 16;
}

/// Values of a channel, and of all that a block sums.
inline __host__ __device__ int values_of(Use use, int n_temperatures) {
  return use == Use::kThinned ? ThinnedLayout4ph{n_temperatures}.size()
                              : SumLayout4ph{n_temperatures}.size();
}
inline __host__ __device__ int sums_in_shared(Use use, int channels, int n_temperatures) {
  return use == Use::kCollision ? kGroup + 2 : channels * values_of(use, n_temperatures);
}

/// Sums for λ' of the branches s' that a block holds at once, where λ and λ' are exchangeable.
inline __host__ __device__ int exchanged_in_shared(Use use, int group, int n_temperatures) {
  return use == Use::kShared ? group * kExchanged * values_of(use, n_temperatures) : 0;
}

}  // namespace quasi::thermal::cuda4ph

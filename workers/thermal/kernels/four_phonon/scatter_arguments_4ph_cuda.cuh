#pragma once

#include <cstdint>

#include "workers/thermal/kernels/four_phonon/collision_operator_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/evaluate_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/exchange_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/meeting_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/pair_tables_4ph_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/sample_4ph.hpp"

/// What the scattering kernel takes, and what a block of it keeps in shared memory.
namespace quasi::thermal::cuda4ph {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kGroup = 6;  ///< branches s' whose A a block holds at once, at most
static_assert(kThreads >= kGroup * 2 * PairKeys4ph::kClasses,
              "a thread for each range of candidates");

/// Processes that a thread evaluates at once; it tests as many candidates at once.
constexpr int processes_of_thread(Form4ph form) { return form == Form4ph::kSwapped ? 2 : 1; }
/// For the turns of the processes of a block, three each (squared_elements_swapped).
constexpr int slot_bytes(Form4ph form) {
  return form == Form4ph::kSwapped ? kThreads * processes_of_thread(form) * 48 : 0;
}

/// What is made of the processes that are found.
enum class Use {
  kRates,      ///< SumLayout4ph of each row and channel
  kCollision,  ///< rows of the collision operator
  kThinned,    ///< ThinnedLayout4ph of each row and channel; only drawn processes are evaluated
};

struct ScatterArguments {
  Tables4ph tables;
  PairKeys4ph keys;
  Walk4ph walk;
  const std::int32_t* walk_order;  ///< [n_pairs] the plan's number of each pair in walking order
  PairTables kind[2];              ///< by PairKind4ph
  const Meeting4ph* meeting;       ///< [places][n_points][2 signs]
  const double2* energy_number;    ///< [n_modes] ω and n at the first temperature, read together
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
  double* exchanged;  ///< AddExchanged4ph::exchanged; rates only
  CollisionTarget collision;
  Thinning4ph thinning;  ///< weight_sum on the device
};

/// Accepted candidates of a warp, in the order of the table: what was left over, what is found
/// next, and an empty place wherever s' changes.
constexpr int queue_length(Form4ph form) { return 64 * processes_of_thread(form) + 8; }
static_assert(kGroup < 8);
struct Queue {
  double2* test;       ///< Δω, (σ/sb)²
  int2* modes;         ///< λ'' and λ''', points as the star's leader has them
  std::int32_t* what;  ///< s' within the group · 4 + channel; −1: an empty place
};
constexpr int queue_bytes(Form4ph form) {
  return queue_length(form) *
         static_cast<int>(sizeof(double2) + sizeof(int2) + sizeof(std::int32_t));
}
static_assert(queue_bytes(Form4ph::kSwapped) % 16 == 0 && queue_bytes(Form4ph::kPairs) % 16 == 0);

/// What testing candidates needs of λ and one λ'.
struct Query {
  double energy;  ///< ω ± ω'
  SpreadSums spread;
};

/// A process that a thread evaluates.
struct InHand {
  int channel = -1;  ///< −1: none
  int branch = 0;    ///< s' within the group
  std::int32_t mode1 = 0, mode2 = 0, mode3 = 0;
  double multiplicity = 0.0;  ///< with the weight of q'
  double delta = 0.0;         ///< multiplicity · δ
  double density = 0.0;       ///< delta/(ωω'ω''ω''')
  double probability = 0.0;
  double squared = 0.0;  ///< |V|²
  bool normal = false;
  double number2 = 0.0, number3 = 0.0;  ///< n'' and n''' at the first temperature
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

/// Sums for λ' of one s' and channel, of all that a block holds at once.
inline __host__ __device__ int exchanged_in_shared(const Tables4ph& t, Use use, int sign,
                                                   int group) {
  return use == Use::kRates && sign > 0 && t.star != nullptr
             ? group * kExchanged * values_of(use, t.n_temperatures)
             : 0;
}

}  // namespace quasi::thermal::cuda4ph

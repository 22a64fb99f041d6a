#pragma once

#include <cstdint>
#include <optional>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"
#include "workers/thermal/model/problem_4ph.hpp"
#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/thermal/physics/scattering_4ph.hpp"

namespace quasi::thermal {

/// Arrays over the modes of the mesh. A mode's number is point·n_branches + branch.
struct ModeArrays4ph {
  const double* omega;                 ///< [n_modes] rad/ps; 0 for modes that take no part
  const std::int32_t* set;             ///< [n_modes] first mode of the degenerate set
  const double* spread;                ///< [n_modes][3] rad/ps, without sb
  const double* occupation;            ///< [n_temperatures][n_modes]
  const Complex<double>* eigenvector;  ///< [n_modes][n_branches]
  const std::int16_t* zone;            ///< [n_q][3] mesh coordinates in the first zone
};

/// The points whose rates are wanted.
struct RowArrays4ph {
  std::int32_t n_points;
  const std::int32_t* point;            ///< [n_points]
  const std::uint16_t* partner_weight;  ///< [n_points][n_q] points that q' stands for; 0: an image
};

/// Arrays of ContractionPlan4ph, and its phases.
struct ContractionArrays4ph {
  int n_triples;
  int n_pairs;
  int n_cells;
  bool real_elements;  ///< V is the real part of the sum over these pairs
  const double* tensor;
  const std::int32_t* block_atom;
  const std::int32_t* block_cell;
  const std::int32_t* triple_begin;
  const std::int32_t* triple_atom;
  const std::int32_t* triple_cell;
  const std::int32_t* pair_begin;
  const std::int32_t* pair_third;
  const std::int32_t* pair_fourth;
  const std::int32_t* pair_cell;
  const Complex<double>* phase;  ///< [n_q][n_cells] e^{iq·R}
};

/// Stars and precedence where λ and λ' are exchangeable (exchange_4ph.hpp).
struct ExchangeArrays4ph {
  const std::int32_t* star;        ///< [n_q] number of the star's point among the points
  const std::int32_t* star_size;   ///< [n_points]
  const std::int32_t* precedence;  ///< [n_modes]
};

/// Arrays of TotalOrder4ph.
struct TotalOrderArrays4ph {
  const std::int32_t* total;
  const std::int32_t* star;
  const std::int32_t* representative;
  const std::int32_t* operation;
  const std::int32_t* rotated;
  const std::int32_t* rotated_back;
};

/// Everything that a four-phonon kernel reads, as views of arrays on its own device.
struct Tables4ph : ModeArrays4ph, RowArrays4ph, ContractionArrays4ph {
  QMesh mesh;
  int n_branches;
  int n_atoms;
  int n_temperatures;
  Rules4ph rules;
  std::optional<ExchangeArrays4ph> exchange;  ///< without: every row sums all its processes itself
  std::optional<TotalOrderArrays4ph> order;   ///< without: by number, each with a table of its own
  /// C: [n_points][n_branches][n_triples][27]. ScatteringKernels4ph::load sets it.
  const Complex<double>* contracted;

  QUASI_HD std::int64_t n_modes() const { return mesh.size() * n_branches; }
  QUASI_HD std::int64_t n_rows() const { return static_cast<std::int64_t>(n_points) * n_branches; }
  /// Q at a position of the order of total momenta, and its star.
  QUASI_HD std::int32_t total_at(std::int32_t position) const {
    return order ? order->total[position] : position;
  }
  QUASI_HD std::int32_t star_at(std::int32_t position) const {
    return order ? order->star[position] : position;
  }
  /// The Q whose last pairs serve a star.
  QUASI_HD std::int32_t representative_of(std::int32_t of_star) const {
    return order ? order->representative[of_star] : of_star;
  }
  /// R q and R⁻¹ q of the operation R that takes the representative to the Q of the position.
  QUASI_HD std::int32_t rotate(std::int32_t position, std::int32_t q) const {
    return order ? order->rotated[order->operation[position] * mesh.size() + q] : q;
  }
  QUASI_HD std::int32_t rotate_back(std::int32_t position, std::int32_t q) const {
    return order ? order->rotated_back[order->operation[position] * mesh.size() + q] : q;
  }
  /// These tables without exchanges.
  QUASI_HD Tables4ph without_exchange() const {
    Tables4ph t = *this;
    t.exchange.reset();
    return t;
  }
  QUASI_HD const double* p(std::int32_t mode) const {
    return spread + 3 * static_cast<std::int64_t>(mode);
  }
};

/// Views of the arrays of a problem on the host, without `contracted`.
Tables4ph host_tables(const Problem4ph& problem);

/// |V|² from the sum over the plan's pairs.
QUASI_HD inline double squared_of_sum_4ph(const Tables4ph& t, Complex<double> v) {
  return v.re * v.re + (t.real_elements ? 0.0 : v.im * v.im);
}

/// Step 1 of ContractionPlan4ph for one output element: index = (row·n_triples + t)·27 + βγδ.
struct ContractFirst4ph {
  Tables4ph tables;
  Complex<double>* contracted;  ///< out, as Tables4ph::contracted

  QUASI_HD void operator()(std::int64_t index) const {
    const int element = static_cast<int>(index % 27);
    const std::int64_t triple = index / 27 % tables.n_triples;
    const std::int64_t row = index / 27 / tables.n_triples;
    const std::int32_t q = tables.point[row / tables.n_branches];
    const std::int64_t mode =
        static_cast<std::int64_t>(q) * tables.n_branches + row % tables.n_branches;
    Complex<double> sum;
    for (std::int32_t b = tables.triple_begin[triple]; b < tables.triple_begin[triple + 1]; ++b) {
      const Complex<double>* e =
          tables.eigenvector + mode * tables.n_branches + 3 * tables.block_atom[b];
      const double* psi = tables.tensor + 81 * static_cast<std::int64_t>(b) + element;
      const Complex<double> inner = psi[0] * e[0] + psi[27] * e[1] + psi[54] * e[2];
      sum += tables.phase[static_cast<std::int64_t>(q) * tables.n_cells + tables.block_cell[b]] *
             inner;
    }
    contracted[index] = sum;
  }
};

/// Sums of one row (a mode λ) and channel, in this order: for each temperature the normal and the
/// Umklapp part of Σ m W|V|² and Σ m W; then Σ m δ, 6 Σ m and the matrix elements evaluated (whole
/// numbers; m the multiplicity times the weight of q').
struct SumLayout4ph {
  int n_temperatures;
  QUASI_HD int normal(int t) const { return 3 * t; }
  QUASI_HD int umklapp(int t) const { return 3 * t + 1; }
  QUASI_HD int weighted_phase_space(int t) const { return 3 * t + 2; }
  QUASI_HD int phase_space() const { return 3 * n_temperatures; }
  QUASI_HD int six_count() const { return 3 * n_temperatures + 1; }
  QUASI_HD int evaluations() const { return 3 * n_temperatures + 2; }
  QUASI_HD int size() const { return 3 * n_temperatures + 3; }
};

/// One accepted process as the evaluation needs it.
struct Found4ph {
  std::int32_t mode2;
  std::int32_t mode3;
  double multiplicity;  ///< with the weight of q'
  double delta_ps;      ///< δ_σ(Δω)
};

/// Contribution of a process to its row of the in-scattering: Γ F of each partner, with + for
/// partners that the decay of λ creates and − for those destroyed with λ (docs/theory/thermal.md
/// 8).
struct CollisionForm4ph {
  const double* occupation;  ///< [n_modes] at the temperature
  bool symmetric;

  /// Bose factor of Γ.
  QUASI_HD double bose(Channel4ph channel, std::int32_t mode0, std::int32_t mode1,
                       std::int32_t mode2, std::int32_t mode3) const {
    const double* n = occupation;
    return symmetric ? symmetric_bose_factor_4ph(n[mode0], n[mode1], n[mode2], n[mode3])
                     : bose_factor_4ph(channel, n[mode1], n[mode2], n[mode3]);
  }
  QUASI_HD static double sign_of_second(Channel4ph channel) { return -sign_second(channel); }
  QUASI_HD static double sign_of_third(Channel4ph channel) { return -sign_third(channel); }
};

/// True if q + sign' q' + sign'' q'' = q''' without a reciprocal vector, all in the first zone.
QUASI_HD inline bool is_normal_4ph(const Tables4ph& tables, Channel4ph channel, std::int32_t q0,
                                   std::int32_t q1, std::int32_t q2, std::int32_t q3) {
  for (int i = 0; i < 3; ++i)
    if (tables.zone[3 * static_cast<std::int64_t>(q0) + i] +
            sign_second(channel) * tables.zone[3 * static_cast<std::int64_t>(q1) + i] +
            sign_third(channel) * tables.zone[3 * static_cast<std::int64_t>(q2) + i] -
            tables.zone[3 * static_cast<std::int64_t>(q3) + i] !=
        0)
      return false;
  return true;
}

/// The exact test of one candidate tuple; multiplicity 0 if it is no process.
QUASI_HD inline Process4ph test_candidate_4ph(const Tables4ph& tables, Channel4ph channel,
                                              std::int32_t mode0, std::int32_t mode1,
                                              std::int32_t mode2, std::int32_t mode3) {
  if (channel == Channel4ph::kRedistribution &&
      exchanges_nothing(tables.set[mode0], tables.set[mode1], tables.set[mode2], tables.set[mode3]))
    return {};
  const double multiplicity =
      multiplicity_4ph(channel, tables.rules.exact_weights, mode1, mode2, mode3);
  return find_process_4ph(
      channel, tables.rules, multiplicity,
      {.omega_rad_ps = {tables.omega[mode0], tables.omega[mode1], tables.omega[mode2],
                        tables.omega[mode3]},
       .spread_rad_ps = {tables.p(mode0), tables.p(mode1), tables.p(mode2), tables.p(mode3)}});
}

}  // namespace quasi::thermal

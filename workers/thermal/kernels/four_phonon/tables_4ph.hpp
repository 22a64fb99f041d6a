#pragma once

#include <cstdint>

#include "workers/backend/complex.hpp"
#include "workers/backend/host_device.hpp"
#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/thermal/physics/scattering_4ph.hpp"

namespace quasi::thermal {

/// What every four-phonon kernel reads: pointers to arrays that live on the device it runs on.
/// A mode's number is point·n_branches + branch. Energies in rad/ps.
struct Tables4ph {
  QMesh mesh;
  int n_branches = 0;
  int n_atoms = 0;
  int n_temperatures = 0;
  Rules4ph rules;

  const double* omega = nullptr;                 ///< [n_modes]; 0 for modes that take no part
  const std::int32_t* set = nullptr;             ///< [n_modes] first mode of the degenerate set
  const double* spread = nullptr;                ///< [n_modes][3], without sb
  const double* occupation = nullptr;            ///< [n_temperatures][n_modes]
  const Complex<double>* eigenvector = nullptr;  ///< [n_modes][n_branches]
  const std::int16_t* zone = nullptr;            ///< [n_q][3] mesh coordinates in the first zone

  // The points whose rates are wanted, and how often each q' stands for its images.
  std::int32_t n_points = 0;
  const std::int32_t* point = nullptr;            ///< [n_points]
  const std::uint16_t* partner_weight = nullptr;  ///< [n_points][n_q]; 0: an image of another q'
  // Where λ and λ' may change places (exchange_4ph.hpp); else null.
  const std::int32_t* star = nullptr;       ///< [n_q] place of the star's point among the points
  const std::int32_t* star_size = nullptr;  ///< [n_points]
  // Where λ', λ'' and λ''' of -- may change places (exchange_4ph.hpp); null where λ and λ' may not.
  const std::int32_t* precedence = nullptr;  ///< [n_modes]
  double precedence_slack_rad_ps = 0.0;

  // TotalOrder4ph; null: total momenta by number, every one with a table of its own.
  const std::int32_t* total = nullptr;
  const std::int32_t* total_star = nullptr;
  const std::int32_t* total_leader = nullptr;
  const std::int32_t* total_turn = nullptr;
  const std::int32_t* turned = nullptr;
  const std::int32_t* turned_back = nullptr;

  // ContractionPlan4ph.
  int n_triples = 0;
  int n_pairs = 0;
  int n_cells = 0;
  bool real_elements = false;  ///< V is the real part of the sum over these pairs
  const double* tensor = nullptr;
  const std::int32_t* block_atom = nullptr;
  const std::int32_t* block_cell = nullptr;
  const std::int32_t* triple_begin = nullptr;
  const std::int32_t* triple_atom = nullptr;
  const std::int32_t* triple_cell = nullptr;
  const std::int32_t* pair_begin = nullptr;
  const std::int32_t* pair_third = nullptr;
  const std::int32_t* pair_fourth = nullptr;
  const std::int32_t* pair_cell = nullptr;
  const Complex<double>* phase = nullptr;  ///< [n_q][n_cells] e^{iq·R}

  const Complex<double>* contracted = nullptr;  ///< C: [n_points][n_branches][n_triples][27]

  QUASI_HD std::int64_t n_modes() const { return mesh.size() * n_branches; }
  QUASI_HD std::int64_t n_rows() const { return static_cast<std::int64_t>(n_points) * n_branches; }
  /// Q at a place of the order, and its star.
  QUASI_HD std::int32_t total_at(std::int32_t place) const {
    return total != nullptr ? total[place] : place;
  }
  QUASI_HD std::int32_t star_at(std::int32_t place) const {
    return total != nullptr ? total_star[place] : place;
  }
  /// The Q whose last pairs serve a star.
  QUASI_HD std::int32_t leader_of(std::int32_t of_star) const {
    return total != nullptr ? total_leader[of_star] : of_star;
  }
  /// R q and R⁻¹ q of the operation R that takes the leader to the place's Q.
  QUASI_HD std::int32_t turn(std::int32_t place, std::int32_t q) const {
    return total != nullptr ? turned[total_turn[place] * mesh.size() + q] : q;
  }
  QUASI_HD std::int32_t turn_back(std::int32_t place, std::int32_t q) const {
    return total != nullptr ? turned_back[total_turn[place] * mesh.size() + q] : q;
  }
  /// The same without exchanges: every row visits all that it takes part in.
  QUASI_HD Tables4ph without_exchange() const {
    Tables4ph t = *this;
    t.star = nullptr;
    t.precedence = nullptr;
    return t;
  }
  QUASI_HD const double* p(std::int32_t mode) const {
    return spread + 3 * static_cast<std::int64_t>(mode);
  }
};

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

/// What a process adds to its row of the in-scattering: Γ F of each partner, + for those created
/// with λ's decay, − for those destroyed with λ (thermal.md 8).
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
  const double omega[4] = {tables.omega[mode0], tables.omega[mode1], tables.omega[mode2],
                           tables.omega[mode3]};
  const double multiplicity =
      multiplicity_4ph(channel, tables.rules.exact_weights, mode1, mode2, mode3);
  return find_process_4ph(channel, tables.rules, multiplicity, omega, tables.p(mode0),
                          tables.p(mode1), tables.p(mode2), tables.p(mode3));
}

}  // namespace quasi::thermal

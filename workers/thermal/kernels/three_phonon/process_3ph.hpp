#pragma once

#include <cstdint>

#include "workers/backend/host_device.hpp"
#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/physics/matrix_element.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

namespace quasi::thermal {

/// One allowed process of a row, as kept for the collision operator: 16 bytes. Emission is marked
/// by a complemented first partner.
struct Process3 {
  std::int32_t first;    ///< mode λ', or ~λ' for emission
  std::int32_t second;   ///< mode λ''
  double weight_per_ps;  ///< (C3/Nq) |V|² δ/(ω ω' ω''); times a Bose factor it is Γ

  QUASI_HD bool emission() const { return first < 0; }
  QUASI_HD std::int32_t partner() const { return first < 0 ? ~first : first; }
};

/// Mode data and rules by which a triple (λ, λ', λ'') is accepted and weighed: one formula for
/// every strategy and device. Views of arrays that somebody else owns.
struct ProcessRules3 {
  const double* omega_rad_ps = nullptr;   ///< [n_modes]; inactive modes hold kInactive
  const double* spread_rad_ps = nullptr;  ///< [n_modes][3]
  Broadening broadening = Broadening::kSymmetric;
  double scale_broad = 1.0;
  double window = 0.0;  ///< (cut·sb)²
  double delta_norm = 1.0;
  double prefactor = 0.0;  ///< C3/Nq

  /// Frequency that stands for "takes no part": no window is ever that wide.
  static constexpr double kInactive = 1e30;

  QUASI_HD bool active(std::int64_t mode) const { return omega_rad_ps[mode] < kInactive; }
  QUASI_HD static double mismatch(Channel3 channel, double w0, double w1, double w2) {
    return (channel == Channel3::kAbsorption ? w0 + w1 : w0 - w1) - w2;
  }
  /// |Δω| ≤ cut·σ, without a square root; a process of zero width is none.
  QUASI_HD bool in_window(double mismatch_rad_ps, double width_squared) const {
    return mismatch_rad_ps * mismatch_rad_ps <= window * width_squared && width_squared > 0.0;
  }
  QUASI_HD double delta_ps(double mismatch_rad_ps, double width_squared) const {
    return delta_norm * gaussian_delta_ps(mismatch_rad_ps, scale_broad * std::sqrt(width_squared));
  }
  /// Tests one triple; fills Δω and (σ/sb)².
  QUASI_HD bool allowed(Channel3 channel, std::int64_t m0, std::int64_t m1, std::int64_t m2,
                        double& mismatch_rad_ps, double& width_squared) const {
    if (!active(m1) || !active(m2)) return false;
    mismatch_rad_ps = mismatch(channel, omega_rad_ps[m0], omega_rad_ps[m1], omega_rad_ps[m2]);
    width_squared =
        width_squared_3ph(broadening, spread_at(spread_rad_ps + 3 * m0),
                          spread_at(spread_rad_ps + 3 * m1), spread_at(spread_rad_ps + 3 * m2));
    return in_window(mismatch_rad_ps, width_squared);
  }
};

/// Normal if the three wave vectors, each taken as its shortest image, balance without a reciprocal
/// vector; else Umklapp.
QUASI_HD inline bool is_normal_3ph(Channel3 channel, const int* q0, const int* q1, const int* q2) {
  const int sign = static_cast<int>(channel);
  return q0[0] + sign * q1[0] == q2[0] && q0[1] + sign * q1[1] == q2[1] &&
         q0[2] + sign * q1[2] == q2[2];
}

/// Bose factor of W: n' − n'' for absorption, 1 + n' + n'' for emission (docs/theory/thermal.md 6).
QUASI_HD inline double occupation_factor_3ph(bool emission, double n1, double n2) {
  return emission ? 1.0 + n1 + n2 : n1 - n2;
}

/// Sums of one row at one temperature.
struct RowSums3 {
  double absorption = 0.0, emission = 0.0;  ///< Γ, 1/ps; emission without its ½ yet
  double normal_absorption = 0.0,
         normal_emission = 0.0;  ///< their share without a reciprocal vector
  double weighted_absorption = 0.0, weighted_emission = 0.0;  ///< W, ps⁴
};

/// Adds one process at one temperature.
QUASI_HD inline void add_process(RowSums3& sums, bool emission, bool normal, double occupation,
                                 double weight_per_ps, double phase_space_ps4) {
  const double rate = occupation * weight_per_ps;
  const double weighted = occupation * phase_space_ps4;
  if (emission) {
    sums.emission += rate;
    sums.weighted_emission += weighted;
    if (normal) sums.normal_emission += rate;
  } else {
    sums.absorption += rate;
    sums.weighted_absorption += weighted;
    if (normal) sums.normal_absorption += rate;
  }
}

/// What one process adds to a row of the collision operator, and the rate that goes with it.
struct CollisionTerm3 {
  double gamma_per_ps;  ///< Γ+ or ½Γ−
  double sign;          ///< of F': −1 for absorption, +1 for emission
};
/// @param s0, s1, s2  √(n(n+1)) of the three modes; used by the symmetric form only
QUASI_HD inline CollisionTerm3 collision_term_3ph(const Process3& process, bool symmetric,
                                                  double n1, double n2, double s0, double s1,
                                                  double s2) {
  const bool emission = process.emission();
  const double occupation = symmetric ? s1 * s2 / s0 : occupation_factor_3ph(emission, n1, n2);
  const double gamma = occupation * process.weight_per_ps;
  return emission ? CollisionTerm3{0.5 * gamma, 1.0} : CollisionTerm3{gamma, -1.0};
}

}  // namespace quasi::thermal

#pragma once

#include <cstdint>

#include "workers/backend/host_device.hpp"
#include "workers/thermal/physics/broadening.hpp"
#include "workers/thermal/physics/matrix_element.hpp"
#include "workers/thermal/physics/q_mesh.hpp"

namespace quasi::thermal {

/// One process of a mode λ, in the 16 bytes that the collision operator keeps. A negative `first`
/// marks emission.
struct Process3 {
  std::int32_t first;    ///< mode λ' for absorption, ~λ' for emission
  std::int32_t second;   ///< mode λ''
  double weight_per_ps;  ///< (C3/Nq) |V|² δ/(ω ω' ω''); times a Bose factor it is Γ

  QUASI_HD bool emission() const { return first < 0; }
  QUASI_HD Channel3 channel() const {
    return first < 0 ? Channel3::kEmission : Channel3::kAbsorption;
  }
  QUASI_HD std::int32_t partner() const { return first < 0 ? ~first : first; }
};

/// Rules by which a triple (λ, λ', λ'') is accepted and weighed (docs/theory/thermal.md 4 and 6),
/// with views of the mode data that they need. All kernels share these formulas.
struct ProcessRules3 {
  const double* omega_rad_ps = nullptr;   ///< [n_modes] kInactive for inactive modes
  const double* spread_rad_ps = nullptr;  ///< [n_modes][3]
  Broadening broadening = Broadening::kSymmetric;
  double scale_broad = 1.0;
  double window = 0.0;  ///< (cut·sb)²
  double delta_norm = 1.0;
  double prefactor = 0.0;  ///< C3/Nq

  /// Frequency of an inactive mode. No energy window is wide enough to admit it.
  static constexpr double kInactive = 1e30;

  QUASI_HD bool active(std::int64_t mode) const { return omega_rad_ps[mode] < kInactive; }
  /// Returns the energy mismatch Δω = ω ± ω' − ω''.
  QUASI_HD static double mismatch(Channel3 channel, double w0, double w1, double w2) {
    return (channel == Channel3::kAbsorption ? w0 + w1 : w0 - w1) - w2;
  }
  /// Tests |Δω| ≤ cut·σ without a square root. A triple of zero width is not a process.
  QUASI_HD bool in_window(double mismatch_rad_ps, double width_squared) const {
    return mismatch_rad_ps * mismatch_rad_ps <= window * width_squared && width_squared > 0.0;
  }
  /// Returns the Gaussian δ(Δω) of width scale_broad·√width_squared.
  QUASI_HD double delta_ps(double mismatch_rad_ps, double width_squared) const {
    return delta_norm * gaussian_delta_ps(mismatch_rad_ps, scale_broad * std::sqrt(width_squared));
  }
  /// Tests one triple of modes.
  /// @param mismatch_rad_ps  receives Δω
  /// @param width_squared    receives (σ/scale_broad)²
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

/// Returns true for a normal process: the shortest images of the three wave vectors balance without
/// a reciprocal lattice vector. An Umklapp process needs one.
/// @param q0, q1, q2  mesh coordinates of the shortest images
QUASI_HD inline bool is_normal_3ph(Channel3 channel, const int* q0, const int* q1, const int* q2) {
  const int sign = static_cast<int>(channel);
  return q0[0] + sign * q1[0] == q2[0] && q0[1] + sign * q1[1] == q2[1] &&
         q0[2] + sign * q1[2] == q2[2];
}

/// Returns the Bose factor of a process (docs/theory/thermal.md 6): n' − n'' for absorption,
/// 1 + n' + n'' for emission.
QUASI_HD inline double occupation_factor_3ph(bool emission, double n1, double n2) {
  return emission ? 1.0 + n1 + n2 : n1 - n2;
}

/// Sums over the processes of one mode at one temperature. Emission lacks its factor ½.
struct RowSums3 {
  double absorption = 0.0, emission = 0.0;                    ///< Σ Γ, 1/ps
  double normal_absorption = 0.0, normal_emission = 0.0;      ///< Σ Γ of normal processes, 1/ps
  double weighted_absorption = 0.0, weighted_emission = 0.0;  ///< Σ W, ps⁴
};

/// Adds one process at one temperature to the sums of its mode.
/// @param occupation       its Bose factor
/// @param weight_per_ps    Process3::weight_per_ps
/// @param phase_space_ps4  δ/(ω ω' ω'')
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

/// Views of the occupations of all modes at one temperature, from which the collision operator
/// takes the Bose factor of a process.
struct CollisionOccupations3 {
  bool symmetric;   ///< the form of the Bose factor: OccupationForm::kSymmetric
  const double* n;  ///< [n_modes] Bose–Einstein occupation, 0 for inactive modes
  const double* s;  ///< [n_modes] √(n(n+1))

  /// Returns s's''/s in the symmetric form, else n' − n'' or 1 + n' + n''.
  QUASI_HD double factor(std::int64_t mode0, const Process3& process) const {
    const std::int64_t mode1 = process.partner();
    const std::int64_t mode2 = process.second;
    return symmetric ? s[mode1] * s[mode2] / s[mode0]
                     : occupation_factor_3ph(process.emission(), n[mode1], n[mode2]);
  }
};

/// The contribution of one process to a row of the collision operator:
/// gamma_per_ps (F'' + sign F'), where F' and F'' are the vectors of λ' and λ''.
struct CollisionTerm3 {
  double gamma_per_ps;  ///< Γ+ or ½Γ−
  double sign;          ///< −1 for absorption, +1 for emission
};

/// Computes the contribution of a process of mode0 (docs/theory/thermal.md 8).
QUASI_HD inline CollisionTerm3 collision_term_3ph(const CollisionOccupations3& occupations,
                                                  std::int64_t mode0, const Process3& process) {
  const double gamma = occupations.factor(mode0, process) * process.weight_per_ps;
  return process.emission() ? CollisionTerm3{0.5 * gamma, 1.0} : CollisionTerm3{gamma, -1.0};
}

}  // namespace quasi::thermal

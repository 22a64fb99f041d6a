#pragma once

#include <cstdint>
#include <vector>

#include "workers/thermal/kernels/three_phonon/three_phonon_kernels.hpp"

namespace quasi::thermal {

/// A process whose matrix element is not known yet. See docs/theory/thermal.md 6 for the equations.
struct Found3 {
  Process3 process;        ///< its weight is zero
  double mismatch_rad_ps;  ///< Δω
  double width_squared;    ///< (σ/scale_broad)²
  double tetrahedra_ps;    ///< weight of kTetrahedra in place of δ_σ(Δω); 0 for other widths
};

/// Finds the processes of a mode on one CPU thread. All partners at one mesh point are tested at
/// once, in the lanes of vector registers. Any number of threads may share a finder.
class ProcessFinder3phCpu {
 public:
  ProcessFinder3phCpu() = default;
  /// @param problem  must outlive the finder
  explicit ProcessFinder3phCpu(const ThreePhononProblem& problem);
  // The rules and the tetrahedra hold views of the arrays, which a copy would not own.
  ProcessFinder3phCpu(ProcessFinder3phCpu&&) = default;
  ProcessFinder3phCpu& operator=(ProcessFinder3phCpu&&) = default;

  const ProcessRules3& rules() const { return rules_; }
  /// Returns δ(Δω) of a process, in ps.
  double delta_ps(const Found3& found) const {
    return rules_.broadening == Broadening::kTetrahedra
               ? found.tetrahedra_ps
               : rules_.delta_ps(found.mismatch_rad_ps, found.width_squared);
  }
  /// [n_modes] frequencies in rad/ps, ProcessRules3::kInactive for inactive modes.
  const std::vector<double>& omega_rad_ps() const { return omega_rad_ps_; }

  /// Appends the processes of mode0 with q'' = q + p: absorption with q' = p, then emission with
  /// q' = −p.
  void add_at_point(std::int64_t mode0, std::int64_t p, std::vector<Found3>& found) const;

  /// Replaces `found` by all processes of mode0, in rising order of p.
  void find_all(std::int64_t mode0, std::vector<Found3>& found) const;

 private:
  static constexpr int kLanes = 4;  ///< branch rows are padded to a multiple, for vector loads

  template <Broadening kKind>
  void add_at_point(std::int64_t mode0, std::int64_t p, std::vector<Found3>& found) const;
  void add_tetrahedra_at_point(std::int64_t mode0, std::int64_t p,
                               std::vector<Found3>& found) const;

  QMesh mesh_;
  int nb_ = 0;
  int padded_ = 0;                    ///< nb_ rounded up to a multiple of kLanes
  std::vector<double> omega_rad_ps_;  ///< [n_modes]
  std::vector<double> lanes_;         ///< [n_q][4: ω, p_x, p_y, p_z][padded]
  ProcessRules3 rules_;
  std::vector<std::int32_t> neighbours_;  ///< MeshTetrahedra::neighbours, with kTetrahedra
  std::vector<std::int32_t> tied_;        ///< tied_branches, with kTetrahedra
  TetrahedraView3 tetrahedra_;
};

}  // namespace quasi::thermal

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "workers/gw/solver/device_team.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

/// Pair products M_vc(q → 0; G = 0) by k·p (docs/theory/gw.md 4.1), for q of the length of q₀ along
/// x, y and z:
///
///   M_vc = ⟨v| q·∂H/∂k |c⟩/(E_v − E_c),  [3][n_v][n_c]
///
/// The empty bands are calculated in blocks that do not depend on the number of devices.
class LongWaveDipoles {
 public:
  /// @param empty  empty bands, counted from 0; those that a spin occupies are left out
  LongWaveDipoles(const MeanField& field, const Vec3& q0, const BandRange& empty)
      : field_(field), q0_(q0), empty_(empty) {}

  /// Calculates the dipoles of all pairs at the representative of an orbit.
  std::vector<Cplx> calculate(const Orbit& orbit, int spin, GwKernels& kernels) const;

  /// Calculates and keeps the dipoles of all orbits. The devices of this rank share the blocks of
  /// each orbit.
  void share(const std::vector<Orbit>& orbits, DeviceTeam& team);

  /// The dipoles that share() has kept; null if there are none.
  /// @param orbit  index into the list given to share()
  const std::vector<Cplx>* shared(std::size_t orbit, int spin) const;

 private:
  std::int64_t n_occupied(int spin) const;
  std::int64_t first_empty(int spin) const { return std::max(n_occupied(spin), empty_.begin); }
  std::int64_t n_empty(int spin) const { return empty_.end - first_empty(spin); }
  std::int64_t n_blocks(int spin) const;
  /// Adds the spin–orbit part of q·∂H/∂k to matrices[direction of q][left][right].
  void add_spin_orbit(const BandPairs& pairs, const std::vector<Vec3>& directions,
                      std::vector<Cplx>& matrices) const;
  void add_block(const Orbit& orbit, int spin, std::int64_t block, GwKernels& kernels,
                 std::vector<Cplx>& to) const;

  const MeanField& field_;
  Vec3 q0_{};
  BandRange empty_;
  std::map<std::pair<std::size_t, int>, std::vector<Cplx>> shared_;  ///< of (orbit, spin)
};

}  // namespace quasi::gw

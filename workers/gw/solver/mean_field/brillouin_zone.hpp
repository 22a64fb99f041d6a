#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/model/mean_field.hpp"
#include "workers/gw/physics/crystal.hpp"

namespace quasi::gw {

/// A point of the full zone as an operation on an irreducible one: k ≡ S k_r modulo G.
struct ZonePoint {
  Vec3 k{};             ///< folded into [0, 1)
  int irreducible = 0;  ///< index of k_r
  int operation = 0;    ///< index of {S|τ}
};

/// A point f as the image of an irreducible point: f = S k_r + g₀.
struct Rotation {
  int irreducible = 0;
  int operation = 0;
  IVec3 umklapp{};  ///< g₀
};

/// The full zone that a list of irreducible points and a group span (docs/theory/gw.md 2).
class BrillouinZone {
 public:
  /// @param expected  number of points of the full grid; 0: unknown
  /// @throws InvalidInput if the count differs: the file's operations do not complete its grid.
  BrillouinZone(std::vector<Vec3> irreducible, std::vector<SymmetryOperation> operations,
                std::int64_t expected, const std::string& what);

  const std::vector<ZonePoint>& points() const { return points_; }
  const std::vector<Vec3>& irreducible() const { return irreducible_; }
  const std::vector<SymmetryOperation>& operations() const { return operations_; }
  std::int64_t size() const { return static_cast<std::int64_t>(points_.size()); }

  /// Index of the point ≡ f modulo G, or −1.
  std::int64_t index_of(const Vec3& f) const;
  /// @throws InvalidInput if the zone has no point ≡ f.
  Rotation rotation_to(const Vec3& f) const;

 private:
  std::string what_;
  std::vector<Vec3> irreducible_;
  std::vector<SymmetryOperation> operations_;
  std::vector<ZonePoint> points_;
};

/// Operations with S q ≡ q modulo G; with `exact`, S q = q (the point q₀ beside Γ).
std::vector<int> little_group(const std::vector<SymmetryOperation>& operations, const Vec3& q,
                              bool exact);

/// Irreducible points of a Γ-centred grid (shifted by q₀, reduced), in order of their index, with
/// weights.
void irreducible_points(const IVec3& grid, const Vec3& shift,
                        const std::vector<SymmetryOperation>& group, std::vector<Vec3>* points,
                        std::vector<double>* weights);

/// One orbit of zone points under a group: a representative and how many points it stands for.
struct Orbit {
  std::int64_t representative = 0;
  std::int64_t size = 1;
};
/// Orbits of all points under the given operations. Where an orbit holds points marked preferred,
/// the first of those represents it, else its first point.
std::vector<Orbit> orbits(const BrillouinZone& zone, const std::vector<int>& group,
                          const std::vector<char>& preferred = {});

/// Coefficients at a rotated point: c_f(G) = e^{−i(G+g₀)·τ} c_{k_r}(S⁻¹(G+g₀)), as lists
/// G = S G_r − g₀ with factors e^{−i(S G_r)·τ}. The components of spinors are multiplied by
/// U(S) of physics/spinor.hpp.
struct RotatedWaves {
  std::vector<IVec3> g;
  View<const std::complex<double>, 2> coefficients;  ///< [n_bands][n_spinor · n_pw]; those of
                                                     ///< `waves` themselves where every factor is 1
  std::vector<std::complex<double>> own;             ///< the memory of `coefficients` elsewhere

  RotatedWaves() = default;
  RotatedWaves(RotatedWaves&&) = default;
  RotatedWaves& operator=(RotatedWaves&&) = default;
};
RotatedWaves rotated_waves(const Wavefunctions& waves,
                           const std::vector<SymmetryOperation>& operations,
                           const Rotation& rotation, int spin, int band_begin, int band_end);

/// Largest |component| of any plane wave of any rotated point: bounds the FFT box.
IVec3 rotated_extent(const Wavefunctions& waves, const BrillouinZone& zone);

}  // namespace quasi::gw

#pragma once

#include <array>
#include <vector>

#include "workers/gw/solver/sigma.hpp"

/// Steps that every form of the self-energy's zone sum shares.
namespace quasi::gw {

/// Where products at a rotated q are found so that they belong to the matrices of the irreducible
/// one: for f = S q_r + g₀ and G₁ of the listed sphere, G = S G₁ − g₀ with factor e^{−i(SG₁)·τ}.
struct SphereAtPoint {
  std::vector<std::int32_t> box_index;
  std::vector<Cplx> factor;
  IVec3 g1_of_zero{};  ///< the listed G₁ that G = 0 of the rotated point corresponds to
};
SphereAtPoint rotated_sphere(const MeanField& field, const Vec3& q, const GSphere& sphere, const std::array<int, 3>& box);

struct WavesAtPoint {
  Rotation rotation;
  RotatedWaves waves;
  std::vector<std::int32_t> box_index;
};
WavesAtPoint waves_at(const MeanField& field, const Vec3& k, int spin, int begin, int end, const std::array<int, 3>& box);
void load(GwKernels& kernels, Side side, const WavesAtPoint& at);

/// FFT box for sums over the zone that keep the plane waves `kept` of an irreducible q.
std::array<int, 3> sum_box(const MeanField& field, const std::vector<IVec3>& kept);

/// ⟨l| e^{iGr} |l⟩ of outer states for all G that differences of a sphere can reach.
struct ChargeTable {
  GSphere sphere;
  std::vector<Cplx> values;  ///< [n_l][n_g]
};
/// @param cutoff_ry  of the sphere whose differences are wanted; the table reaches four times as far
ChargeTable charge_table(const MeanField& field, int k_index, int spin, int begin, int end, double cutoff_ry,
                         GwKernels& kernels);

/// Static CH with the band sum completed by closure (spec 6.1), added to ch[l]:
///   −½ w Σ_GG' I_GG' v̄(G') ⟨l| e^{i(G−G')r} |l⟩
/// G = S G₁ − g₀ for the listed plane waves G₁.
void add_exact_static_ch(const ChargeTable& charge, const GSphere& sphere, const SymmetryOperation& operation,
                         const std::vector<Cplx>& static_w, double weight, std::vector<Cplx>& ch);

}  // namespace quasi::gw

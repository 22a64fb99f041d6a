#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "workers/gw/solver/self_energy/sigma_matrix.hpp"

/// Steps that every form of the self-energy's zone sum shares.
namespace quasi::gw {

/// Where products at a rotated q are found so that they belong to the matrices of the irreducible
/// one: for f = S q_r + g₀ and G₁ of the listed sphere, G = S G₁ − g₀ with factor e^{−i(SG₁)·τ}.
struct SphereAtPoint {
  std::vector<std::int32_t> box_index;
  std::vector<Cplx> factor;
};
SphereAtPoint rotated_sphere(const MeanField& field, const Vec3& q, const GSphere& sphere,
                             const std::array<int, 3>& box);

struct WavesAtPoint {
  Rotation rotation;
  RotatedWaves waves;
  FftBox box{};
  std::vector<std::int32_t> box_index;
};
WavesAtPoint waves_at(const MeanField& field, const Vec3& k, int spin, int begin, int end,
                      const std::array<int, 3>& box);
std::unique_ptr<const LoadedBands> load(GwKernels& kernels, const WavesAtPoint& at);

/// Weighted q-points of one outer k that belong to one irreducible q.
struct StarMember {
  Vec3 q{};
  double multiplicity = 1.0;
};
/// All q of the zone by irreducible q; with `reduce`, one of each orbit of the little group of k.
std::map<int, std::vector<StarMember>> q_points_by_star(const MeanField& field, const Vec3& k,
                                                        bool reduce);

/// ε⁻¹ as Σ uses it at one irreducible q, and the sphere of the screened cut-off. Except with the
/// wing rule of BerkeleyGW, W is Hermitian with the averaged interaction too and has the
/// crystal's symmetry:
///
///   W_GG' = (ε̃⁻¹ − 1)_GG' ⟨v^½(q+G)⟩ ⟨v^½(q+G')⟩  (G ≠ G'),   W_GG = (ε̃⁻¹ − 1)_GG v̄(q+G)
///
/// with the Hermitian ε̃⁻¹, the slowly varying factor, held at q; wings are elements like others. At
/// q → 0 the wings vanish; head ⟨8π/(pᵀ ε_M p)⟩ and body are averages over the mini-zone where k·p
/// has told every direction. Else the body, which depends on the direction of q₀, is averaged over
/// the group, and the head is ε⁻¹_00(q₀) v̄₀.
struct ScreeningAtQ {
  DielectricMatrix epsilon;
  GSphere sphere;
  std::vector<double> coulomb;  ///< v̄(q+G)
};
/// @param frequencies  those wanted, in the order that they then have; empty: all
ScreeningAtQ screening_at(const MeanField& field, const DielectricMatrix& epsilon,
                          double screened_cutoff_ry, const CoulombInteraction& coulomb,
                          const std::vector<std::size_t>& frequencies = {});

/// c(q+G) with W_GG' = −c_G (ε̃⁻¹ − 1)_GG' c_G' off the diagonal, [n of ε]: ⟨v^½⟩, or v^½ where v is
/// not averaged.
std::vector<double> roots_of_coulomb(const DielectricMatrix& epsilon,
                                     const std::vector<double>& average,
                                     const CoulombInteraction& coulomb);

/// The pole model of an irreducible q, by the method and policy of the options.
PlasmonPoleModel plasmon_poles(const MeanField& field, const ScreeningAtQ& at,
                               const SigmaOptions& options, const CoulombInteraction& coulomb,
                               const WingFactors& wings);

/// I_GG' v̄(G') of one frequency, wings scaled.
UnsetVector<Cplx> screened_matrix(const ScreeningAtQ& at, std::size_t frequency,
                                  const WingFactors& wings);

/// One block of inner bands at one q beside the outer states of one k.
struct BandBlock {
  std::int64_t n_l = 0, n_b = 0;
  std::vector<double> outer_ry;    ///< E_l, [n_l]
  std::vector<double> inner_ry;    ///< E_n, [n_b]
  std::vector<double> occupation;  ///< f_n, [n_b]
  double midgap_ry = 0.0;          ///< μ of the full-frequency methods
  double weight = 1.0;             ///< of the q-point: its multiplicity over Ω N_k
};

struct SubspaceOfW;
/// W(ω) of one q for the full-frequency methods.
struct FrequencyDependentW {
  const ScreeningAtQ& at;
  const WingFactors& wings;
  const SubspaceOfW& subspace;  ///< not used(): W is that of `at` and `wings`
};
/// Adds one block of pair products to Σ_c by contour deformation, on the real axis, or at points of
/// the imaginary axis (SelfEnergyAtK::axis_ry). A subspace projects the products.
/// @throws InvalidInput where a residue lies beyond the real-axis grid
void add_full_frequency(const FrequencyDependentW& w, const SigmaOptions& options,
                        const BandBlock& block, PairBlock& products, SelfEnergyAtK& sum);
/// Adds one block of pair products to Σ_lm(E) by contour deformation. S_lm(ω) of every frequency is
/// formed once for all energies. A subspace projects the products.
/// @throws InvalidInput where a residue lies beyond the real-axis grid
void add_contour_matrix(const FrequencyDependentW& w, const ContourGrid& grid,
                        const BandBlock& block, PairBlock& products, SigmaMatrixAtK& sum);
/// Continues the values on the imaginary axis to the real energies wanted.
void continue_to_real_energies(const std::vector<double>& outer_ry, double midgap_ry,
                               const SigmaOptions& options, SelfEnergyAtK& sum);
/// Middle between the highest occupied and the lowest empty energy of the whole zone.
double midgap_ry(const MeanField& field, int spin);

/// FFT box for sums over the zone that keep the plane waves `kept` of an irreducible q.
std::array<int, 3> sum_box(const MeanField& field, const std::vector<IVec3>& kept);

/// ⟨l| e^{iGr} |l⟩ of outer states for all differences G of plane waves of a sphere.
struct ChargeTable {
  GSphere sphere;
  std::vector<Cplx> values;  ///< [n_l][n_g]
};
/// Calculates the table for bands of one k.
/// @param cutoff_ry  cut-off of the sphere whose differences are wanted; the cut-off of the table
/// is four times as high
ChargeTable charge_table(const MeanField& field, const BandsAtK& bands, double cutoff_ry,
                         GwKernels& kernels);

/// Adds static CH with the band sum completed by closure (docs/theory/gw.md 6.1) to ch[l]:
///   −½ w Σ_GG' I_GG' v̄(G') ⟨l| e^{i(G−G')r} |l⟩
/// G = S G₁ − g₀ for the listed plane waves G₁.
void add_exact_static_ch(const ChargeTable& charge, const GSphere& sphere,
                         const SymmetryOperation& operation, const UnsetVector<Cplx>& static_w,
                         double weight, std::vector<Cplx>& ch);

}  // namespace quasi::gw

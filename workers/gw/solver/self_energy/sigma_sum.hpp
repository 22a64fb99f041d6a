#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "workers/gw/solver/self_energy/sigma_matrix.hpp"

// W of one q, and steps that all sums over the zone share. Begin with sigma.hpp.
namespace quasi::gw {

/// Plane waves of an irreducible q_r, rotated to q = S q_r + g₀, so that products at q belong to
/// the matrices of q_r: G₁ of the listed sphere becomes G = S G₁ − g₀ with the factor
/// e^{−i(SG₁)·τ}.
struct SphereAtPoint {
  std::vector<std::int32_t> box_index;  ///< position of each G in the box of the transforms
  std::vector<Cplx> factor;
};
SphereAtPoint rotated_sphere(const MeanField& field, const Vec3& q, const GSphere& sphere,
                             const std::array<int, 3>& box);

/// Wavefunctions of some bands at any k of the zone, rotated from the irreducible k.
struct WavesAtPoint {
  Rotation rotation;
  RotatedWaves waves;
  FftBox box{};
  std::vector<std::int32_t> box_index;  ///< position of each plane wave in the box
};
/// Rotates the wavefunctions of bands [begin, end) to k.
WavesAtPoint waves_at(const MeanField& field, const Vec3& k, int spin, int begin, int end,
                      const std::array<int, 3>& box);
/// Rotates inner states [begin, end) of Σ to k. They are those of MeanField::inner if it is set.
WavesAtPoint inner_waves_at(const MeanField& field, const Vec3& k, int spin, int begin, int end,
                            const std::array<int, 3>& box);
/// Returns the list of states from which inner_waves_at() rotates.
const Wavefunctions& inner_states(const MeanField& field);
/// Brings the wavefunctions to the device of `kernels`.
std::unique_ptr<const LoadedBands> load(GwKernels& kernels, const WavesAtPoint& at);

/// One weighted q-point of the star of an irreducible q.
struct StarMember {
  Vec3 q{};
  double multiplicity = 1.0;
};
/// Lists all q of the zone by irreducible q; with `reduce`, one q of each orbit of the little group
/// of the outer k.
std::map<int, std::vector<StarMember>> q_points_by_star(const MeanField& field, const Vec3& k,
                                                        bool reduce);

/// ε⁻¹ for W at one irreducible q, and the sphere of the screened cut-off. Except with the wing
/// rule of BerkeleyGW, W with the averaged interaction is Hermitian and has the symmetry of the
/// crystal:
///
///   W_GG' = (ε̃⁻¹ − 1)_GG' ⟨v^½(q+G)⟩ ⟨v^½(q+G')⟩  (G ≠ G'),   W_GG = (ε̃⁻¹ − 1)_GG v̄(q+G)
///
/// The Hermitian ε̃⁻¹ varies slowly and is held at q. At q → 0 the wings vanish. If k·p gives
/// ε⁻¹ in every direction, the head ⟨8π/(pᵀ ε_M p)⟩ and the body are averages over the mini-zone.
/// Without k·p the body depends on the direction of q₀; it is averaged over the group, and the head
/// is ε⁻¹_00(q₀) v̄₀.
struct ScreeningAtQ {
  DielectricMatrix epsilon;
  GSphere sphere;
  std::vector<double> coulomb;  ///< v̄(q+G)
};
/// Makes ε⁻¹ for W from a stored ε⁻¹.
/// @param frequencies  positions of the frequencies wanted, in the order of the result; empty: all
ScreeningAtQ screening_at(const MeanField& field, const DielectricMatrix& epsilon,
                          double screened_cutoff_ry, const CoulombInteraction& coulomb,
                          const std::vector<std::size_t>& frequencies = {});

/// Calculates c(q+G) of W_GG' = −c_G (ε̃⁻¹ − 1)_GG' c_G' off the diagonal: ⟨v^½⟩, or v^½ where v is
/// not averaged. One value for each plane wave of ε.
/// @param average  v̄(q+G) of the same plane waves
std::vector<double> roots_of_coulomb(const DielectricMatrix& epsilon,
                                     const std::vector<double>& average,
                                     const CoulombInteraction& coulomb);

/// Makes the pole model of an irreducible q by the method and policy of the options.
PlasmonPoleModel plasmon_poles(const MeanField& field, const ScreeningAtQ& at,
                               const SigmaOptions& options, const CoulombInteraction& coulomb,
                               const WingFactors& wings);

/// Calculates W's form I_GG' v̄(G') at one frequency with scaled wings, [n_g][n_g].
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
/// Continues Σ_c from the imaginary axis to E_l + offset for every offset of the options, and adds
/// it to CH.
void continue_to_real_energies(const std::vector<double>& outer_ry, double midgap_ry,
                               const SigmaOptions& options, SelfEnergyAtK& sum);
/// Middle μ between the highest occupied and the lowest empty energy of the whole zone, Ry.
double midgap_ry(const MeanField& field, int spin);

/// Finds the box of transforms for sums over the zone that keep the plane waves `kept` of an
/// irreducible q.
std::array<int, 3> sum_box(const MeanField& field, const std::vector<IVec3>& kept);

/// Returns random vectors [first, second) of field.complement at any k of the zone, rotated
/// likewise.
WavesAtPoint complement_at(const MeanField& field, const Vec3& k, int spin,
                           const std::pair<int, int>& vectors, const std::array<int, 3>& box);
/// Finds the box of transforms for products of states of `field` with vectors of its complement.
std::array<int, 3> complement_box(const MeanField& field, const std::vector<IVec3>& kept);

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
///
///   −½ w Σ_GG' I_GG' v̄(G') ⟨l| e^{i(G−G')r} |l⟩
///
/// G = S G₁ − g₀ for the listed plane waves G₁.
void add_exact_static_ch(const ChargeTable& charge, const GSphere& sphere,
                         const SymmetryOperation& operation, const UnsetVector<Cplx>& static_w,
                         double weight, std::vector<Cplx>& ch);

}  // namespace quasi::gw

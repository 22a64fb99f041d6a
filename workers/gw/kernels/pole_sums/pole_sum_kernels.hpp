#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"
#include "workers/gw/kernels/pole_sums/first_order_kernels.hpp"
#include "workers/gw/model/column_slices.hpp"
#include "workers/gw/model/pole_options.hpp"

namespace quasi::gw {

struct DifferenceBox;

/// This ω̃ marks an element that acts statically (ω̃ → ∞). It is so large that ω̃/(x ± ω̃) = ±1 in
/// double precision for every x of a calculation. It is so small that A = ½ I ω̃ v̄ cannot
/// overflow.
inline constexpr double kStaticPole_ry = 1e18;

/// The screened interaction of one q-point as a plasmon-pole model. With x = E − E_n,
///
///   occupied n:  F_GG'(x) v̄(G') = A_GG' / (x + ω̃_GG')        (SX − X and CH, already summed)
///   empty n:     F_GG'(x) v̄(G') = A_GG' / (x − ω̃_GG')        (CH alone)
///
/// (docs/theory/gw.md 6.2 [hybertsen1986]). Elements that are skipped have A = 0 and
/// ω̃ = kStaticPole_ry; static elements have ω̃ = kStaticPole_ry and A = ½ I v̄ · kStaticPole_ry.
struct PlasmonPoleView {
  View<const Cplx, 2> strength;   ///< A_GG' = ½ I_GG' ω̃_GG' v̄(q+G'), Ry² Bohr³; [n_g][n_g]
  View<const double, 2> pole_ry;  ///< ω̃_GG' > 0; [n_g][n_g]
  bool hermitian = false;  ///< the model is Hermitian to the last bit; false: kernels test it
  bool real = false;       ///< no A has an imaginary part; false: it may have
};

/// One element whose ω̃ is imaginary (a policy for invalid modes). It is kept apart because the
/// poles of the matrices are real.
struct ImaginaryPole {
  std::int32_t g = 0, h = 0;
  double pole_ry = 0.0;  ///< ω̃ = i · pole_ry
  Cplx half_i_v;         ///< ½ I v̄(G'), Bohr³ Ry
};

/// Energies and occupations of a diagonal sum.
struct DiagonalTerms {
  View<const double, 3> x_ry;        ///< x = E − E_n, [n_left][n_right][n_energies]
  View<const double, 1> occupation;  ///< f_n in [0, 1], [n_right]; F_n = f F_occ + (1 − f) F_empty
  double weight = 1.0;  ///< w, for example 1/(Ω N_k) times the multiplicity of the q-point
};
/// Diagonal sums to which a kernel adds.
struct DiagonalSums {
  View<Cplx, 2> total;  ///< [n_left][n_energies]
  View<Cplx, 2> sx;  ///< SX − X of occupied bands, so that CH = total − sx; no data: not wanted
};
/// Sums at one energy an outer state together with the slope in energy, [n_left] each.
struct SlopeSums {
  View<Cplx, 1> total;
  View<Cplx, 1> sx;  ///< no data: not wanted
  View<Cplx, 1> slope;
};

/// Energies and occupations of a full-matrix sum.
struct OffDiagonalTerms {
  View<const double, 1> energies_ry;  ///< E, common to all (l, m), [n_energies]
  View<const double, 1> band_ry;      ///< E_n, [n_right]
  View<const double, 1> occupation;   ///< f_n, [n_right]
  double weight = 1.0;
};
/// Counts and errors that LoadedPoleModel::add_offdiagonal reports.
struct OffDiagonalReport {
  std::int64_t pairs = 0;           ///< number of (n, E)
  std::int64_t direct_pairs = 0;    ///< pairs treated by the two products
  std::int64_t terms = 0;           ///< K of the separable sums
  double fit_error_relative = 0.0;  ///< largest error found on the fitted range
  double fit_seconds = 0.0;         ///< time of the host for the fit, which is remembered
  double zgemm_flops = 0.0;         ///< flops of the products issued, 8 m n k each
  double residual = 0.0;   ///< ‖(T − M P) v‖/‖T v‖ of products that are not native
  bool hermitian = false;  ///< the model is Hermitian and products were folded where possible
};

/// A plasmon-pole model on one device, until the object is destroyed, and its sums over blocks of
/// pair products of the same device (left: outer states l, right: inner bands n).
class LoadedPoleModel {
 public:
  virtual ~LoadedPoleModel() = default;
  /// Returns true if the device has all rows of the model, and false after
  /// PoleSumKernels::load_rows().
  virtual bool is_whole() const { return true; }

  /// Diagonal Σ:
  ///
  ///   total[l][e] += w Σ_n Σ_GG' M_ln(G) F_n,GG'(x_lne) v̄(G') M*_ln(G')
  ///
  /// and the part SX − X of occupied bands into sx.
  virtual void add_diagonal(const PairBlock& block, const DiagonalTerms& terms,
                            const DiagonalSums& sums) const = 0;
  /// add_diagonal at one energy an outer state, and its analytic derivative
  ///
  ///   slope[l] += w Σ_n Σ_GG' M_ln(G) (d/dx) F_n,GG'(x_ln) v̄(G') M*_ln(G')
  ///
  /// in which terms that the rules near poles replace or drop count as they stand.
  /// @param terms  n_energies = 1
  virtual void add_diagonal_slope(const PairBlock& block, const DiagonalTerms& terms,
                                  const SlopeSums& sums) const = 0;
  /// Full Σ matrix as products:
  ///
  ///   sigma[e][l][m] += w Σ_n Σ_GG' M_ln(G) F_n,GG'(E_e − E_n) v̄(G') M*_mn(G')
  ///
  /// For a Hermitian model Σ = S + S†, where S is made with one triangle of P at half the flops.
  /// @param sigma  [n_energies][n_left][n_left]
  virtual OffDiagonalReport add_offdiagonal(const PairBlock& block, const OffDiagonalTerms& terms,
                                            const OffDiagonalOptions& options,
                                            View<Cplx, 3> sigma) const = 0;
  /// Full matrix between two sets of pair products with the same inner bands, for first orders of
  /// Σ (docs/theory/gw.md 14.7):
  ///
  ///   sigma[e][l][m] += w Σ_n Σ_GG' M_ln(G) F_n,GG'(E_e − E_n) v̄(G') M'*_mn(G')
  ///
  /// Outer states of several perturbations may stand in one set M', so that they share M F. The
  /// triangle of a Hermitian model saves nothing here.
  /// @param bra  M, [n_l][n][n_g];  ket  M', [n_m][n][n_g]
  /// @param sigma  [n_energies][n_l][n_m]
  virtual OffDiagonalReport add_offdiagonal_between(const PairBlock& bra, const PairBlock& ket,
                                                    const OffDiagonalTerms& terms,
                                                    const OffDiagonalOptions& options,
                                                    View<Cplx, 3> sigma) const = 0;
  /// First order of Σ_c by divided differences (docs/theory/gw.md 14.2), the part of F_n of each
  /// ket n, and the close pairs:
  ///
  ///   quotients += w Σ_n'n V_n'n Σ_GG' M_ln'(G) F_n,GG'(E − E_n) v̄(G') M*_mn(G')/(E_n −
  ///   E_n')
  ///
  /// The part of F_n' follows from a call with bra and ket exchanged, V† and F†: it is the
  /// adjoint in (l, m) of that result.
  virtual void add_first_order(const FirstOrderProducts& products, const FirstOrderPairs& pairs,
                               const FirstOrderTerms& terms, const FirstOrderSums& sums) const = 0;
  /// Calculates the closed sum of every pair (docs/theory/gw.md 9.4),
  ///
  ///   form[l][n] = Σ_GG' M_ln(G) W*_GG' M*_ln(G'),   W*_GG' = F_GG'(x) v̄(G') of an empty band.
  ///
  /// W* is made on this device.
  /// @param x_ry  x < 0, where no rule near poles acts
  virtual void closed_forms(const PairBlock& block, double x_ry, View<Cplx, 2> form) const = 0;
  /// Returns w(D) = Σ_{G−G'=D} W*_GG' for all D of the box. The known closed sum of a state is
  /// Σ_D w(D) ρ_ll(D) (docs/theory/gw.md 9.4).
  virtual std::vector<Cplx> sums_by_difference(double x_ry, const DifferenceBox& box) const = 0;
};

/// Elements with imaginary poles on one device, until the object is destroyed.
class LoadedImaginaryPoles {
 public:
  virtual ~LoadedImaginaryPoles() = default;
  /// Their part of the diagonal Σ (imaginary_pole_terms in physics/plasmon_pole.hpp):
  /// total[l][e] += CH + f (SX − X), sx[l][e] += f (SX − X), slope[l] += d total/dx at the first
  /// energy. @param slope  [n_left]; no data: not wanted
  virtual void add_diagonal(const PairBlock& block, const DiagonalTerms& terms,
                            const DiagonalSums& sums, View<Cplx, 1> slope) const = 0;
};

struct PoleChange;
class LoadedPoleChanges;
class DielectricInverse;
struct ScreenedElements;

/// Brings plasmon-pole models to one device.
class PoleSumKernels {
 public:
  virtual ~PoleSumKernels() = default;
  virtual std::shared_ptr<const LoadedPoleModel> load(const PlasmonPoleView& model,
                                                      const PoleRules& rules) = 0;
  /// Brings a model to this device for changes (load_changes, change_of_poles) and closed sums
  /// alone. A device may keep only one triangle of a real Hermitian model, which takes a third of
  /// the memory.
  virtual std::shared_ptr<const LoadedPoleModel> load_for_changes(const PlasmonPoleView& model,
                                                                  const PoleRules& rules) {
    return load(model, rules);
  }
  /// Brings some rows G of the matrices W_GG' of a model to this device. The sums of the result run
  /// over G in these rows and over all G'. If the model is Hermitian, an element GG' also stands
  /// for G'G. Devices can share a model by disjoint ranges of rows: their sums add up to the sum of
  /// the whole model. The result supports add_diagonal, add_diagonal_slope, sums_by_difference and
  /// load_changes. Its other functions throw std::logic_error.
  /// @param rows  range whose begin is a multiple of kRowsOfRange
  virtual std::shared_ptr<const LoadedPoleModel> load_rows(const PlasmonPoleView& model,
                                                           const PoleRules& rules,
                                                           const ElementRows& rows) = 0;
  /// The model on this device, copied from another device of the same back end. Where the devices
  /// share memory, both objects share the model.
  virtual std::shared_ptr<const LoadedPoleModel> copy_of(
      const std::shared_ptr<const LoadedPoleModel>& model) = 0;
  virtual std::unique_ptr<const LoadedImaginaryPoles> load_imaginary(
      View<const ImaginaryPole, 1> poles, const PoleRules& rules) = 0;
  /// Brings changes of a model of this device (pole_change_kernels.hpp) beside it. The caller
  /// keeps the changes until the object is destroyed.
  virtual std::unique_ptr<const LoadedPoleChanges> load_changes(
      const std::shared_ptr<const LoadedPoleModel>& model,
      const std::vector<const PoleChange*>& changes) = 0;
  /// First order of the exchange: K = −(f_n − f_n')/(E_n − E_n') v̄(G) δ_GG' of all n' and
  /// the kets of the part. @param coulomb  v̄(q+G), [n_g]; sum  Ry/Bohr, [n_p][n_l][n_m]
  virtual void add_first_order_exchange(const FirstOrderProducts& products,
                                        View<const double, 1> coulomb, const FirstOrderPairs& pairs,
                                        View<Cplx, 3> sum) = 0;
  /// Returns the change of a Hermitian model of this device to the model that another ε̃⁻¹ of
  /// this device gives (changes/screened_elements.hpp).
  virtual PoleChange change_of_poles(const LoadedPoleModel& model, const DielectricInverse& inverse,
                                     const ScreenedElements& elements) = 0;
};

}  // namespace quasi::gw

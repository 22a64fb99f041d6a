#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <memory>

#include "workers/backend/device/device.hpp"
#include "workers/backend/view.hpp"
#include "workers/gw/kernels/polarizability/partial_chi.hpp"
#include "workers/gw/model/pole_options.hpp"

namespace quasi::gw {

/// ω̃ of an element that is to act statically (ω̃ → ∞): large enough that ω̃/(x ± ω̃) = ±1 in double
/// precision for every x of a calculation, small enough that A = ½ I ω̃ v̄ cannot overflow.
inline constexpr double kStaticPole_ry = 1e18;

/// The screened interaction of one q-point as a plasmon-pole model. With x = E − E_n,
///
///   occupied n:  F_GG'(x) v̄(G') = A_GG' / (x + ω̃_GG')        (SX − X and CH, already summed)
///   empty n:     F_GG'(x) v̄(G') = A_GG' / (x − ω̃_GG')        (CH alone)
///
/// Elements that are skipped have A = 0 and ω̃ = kStaticPole_ry; static elements have
/// ω̃ = kStaticPole_ry and A = ½ I v̄ · kStaticPole_ry.
struct PlasmonPoleView {
  View<const Cplx, 2> strength;   ///< A_GG' = ½ I_GG' ω̃_GG' v̄(q+G'), Ry² Bohr³; [n_g][n_g]
  View<const double, 2> pole_ry;  ///< ω̃_GG' > 0; [n_g][n_g]
  bool hermitian = false;         ///< known to be, to the last bit; false: kernels look
};

/// One element whose ω̃ is imaginary (a policy for invalid modes): kept apart, because poles of the
/// matrices are real.
struct ImaginaryPole {
  std::int32_t g = 0, h = 0;
  double pole_ry = 0.0;  ///< ω̃ = i · pole_ry
  Cplx half_i_v;         ///< ½ I v̄(G'), Bohr³ Ry
};

/// A pole model as one device has it; whoever holds it keeps it there.
class LoadedPoleModel {
 public:
  virtual ~LoadedPoleModel() = default;
};

/// Half-open range of bands [begin, end), counted within what load_bands was given.
struct BandRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

/// Which factor of a pair product: M_ln(G) = 1/N_r Σ_r conj(u_left(r)) u_right(r) e^{+iGr}.
enum class Side { kLeft, kRight };

/// The heavy steps of GW, on one device.
///
/// What a call loads stays resident until the same thing is loaded again: wavefunctions of both
/// sides, the sphere, the block of pair products M[left][right][G], the pole model, χ. Matrices are
/// row-major, index G before G'. Results do not depend on the number of threads. Not thread-safe:
/// one instance belongs to one solve.
class GwKernels {
 public:
  virtual ~GwKernels() = default;
  virtual const Device& device() const = 0;

  // ---- pair products -----------------------------------------------------------------------

  /// FFT box of everything that follows. Forgets bands, sphere and pair products.
  virtual void set_box(std::array<int, 3> box) = 0;
  /// Changes whenever set_box or load_sphere is called: whoever remembers it knows whether what it
  /// left here is still there.
  std::int64_t epoch() const { return epoch_; }
  /// Bands of one side. Index into the box: (i·n1 + j)·n2 + k for FFT frequency (i, j, k) mod box.
  /// @param coefficients  c_n(G), [n_bands][n_pw]
  /// @param box_index     [n_pw]
  virtual void load_bands(Side side, View<const Cplx, 2> coefficients,
                          View<const std::int32_t, 1> box_index) = 0;
  /// The plane waves at which products are kept: box indices of +G, [n_g], and factors that each
  /// kept product is multiplied by, [n_g]. The factors e^{−i(G+g₀)·τ} of a symmetry operation turn
  /// products at a rotated q into those that belong to the matrices of the irreducible one, so that
  /// the matrices are loaded once per irreducible q. Extent 0: no factors.
  virtual void load_sphere(View<const std::int32_t, 1> box_index, View<const Cplx, 1> factor) = 0;
  /// Fills the resident block M[l][n][G] for l in left, n in right.
  virtual void pair_products(BandRange left, BandRange right) = 0;
  /// Replaces the resident block by the host's, [n_left][n_right][n_g] (tests, bands off the grid).
  virtual void load_pair_products(View<const Cplx, 3> products) = 0;
  virtual void read_pair_products(View<Cplx, 3> products) const = 0;
  /// M[l][n][g] ← values[l][n] for one plane wave g (the limit q → 0 of G = 0 by k·p).
  virtual void replace_plane_wave(std::int64_t g, View<const Cplx, 2> values) = 0;
  /// M ← M·B, B [n_g][n_basis]: the block becomes [n_left][n_right][n_basis] (static subspace).
  virtual void project_pair_products(View<const Cplx, 2> basis) = 0;

  // ---- polarizability ----------------------------------------------------------------------

  /// χ ← 0, [n_g][n_g]; no other frequencies are there until start_chi_frequencies.
  virtual void start_chi(std::int64_t n_g) = 0;
  /// χ_GG' += Σ_p w_p M*_p(G) M_p(G'), p over the resident block. Hermitian product: all w must
  /// have one sign (they are ≤ 0 for a ground state); the sign may differ from call to call.
  /// @param weight  [n_left][n_right]
  virtual void accumulate_chi(View<const double, 2> weight) = 0;
  /// How add_pairs_to_chi works; both choices exist so that each can be checked against the other.
  struct PairsToChiOptions {
    bool use_real = true;  ///< real arithmetic where every factor is real
    bool overlapped =
        true;  ///< transforms of one block beside the product of the block before (CUDA)
    std::int64_t block_bytes = 0;  ///< of M made at once; 0: what suits the device
  };
  struct PairsToChiReport {
    bool real = false;               ///< both sides, the sphere's factors and `head` were real
    double transform_seconds = 0.0;  ///< making the pair products
    double product_seconds = 0.0;    ///< adding them to χ; the two may run at the same time
  };
  /// χ_GG' += Σ_ln w_ln M*_ln(G) M_ln(G') over all of left × right: pair_products and
  /// accumulate_chi in blocks whose M is made, used and forgotten. The resident block is undefined
  /// afterwards.
  ///
  /// Where the coefficients of both sides and the factors are real (a k-point that is its own
  /// inverse in a crystal with inversion), M is: two products share one transform, and the matrix
  /// product is a real one of a quarter of the flops.
  /// @param weight  [n_left][n_right], of one sign
  /// @param head    M_ln of the first plane waves, in place of the transform's (k·p),
  /// [n_heads][n_left][n_right]; no data: none
  virtual PairsToChiReport add_pairs_to_chi(BandRange left, BandRange right,
                                            View<const double, 2> weight, View<const Cplx, 3> head,
                                            const PairsToChiOptions& options) = 0;

  /// χ(ω_i) ← 0, [n_frequencies][n][n].
  virtual void start_chi_frequencies(std::int64_t n_frequencies, std::int64_t n) = 0;
  /// χ_GG'(ω_i) += Σ_p w_p(ω_i) M*_p(G) M_p(G'), complex w; [n_frequencies][n_left][n_right].
  virtual void accumulate_chi_frequencies(View<const Cplx, 3> weight) = 0;

  /// Hands over what has been added since start_chi and start_chi_frequencies, without copying it;
  /// both are over then.
  virtual std::unique_ptr<PartialChi> take_chi() = 0;
  /// χ as PartialChi::read gave it, on this device again. [shape.size()]
  virtual std::unique_ptr<PartialChi> load_chi(const ChiShape& shape, const Cplx* values) = 0;

  /// How ε is made of χ and inverted (physics/dielectric.hpp).
  struct Inversion {
    View<const double, 1> coulomb;  ///< v(q+G), [n]
    bool positive = true;           ///< v > 0 everywhere
    bool definite = true;           ///< ε̃ is Hermitian and positive definite: Cholesky; else LU
  };
  /// ε⁻¹ of one matrix of χ: 0 is χ(0), i + 1 is χ(ω_i), all of one edge. [n][n]
  /// @throws NotConverged naming the leading minor where ε̃ should be positive definite and is not
  virtual void invert_dielectric(const PartialChi& chi, std::int64_t frequency,
                                 const Inversion& how, View<Cplx, 2> inverse) = 0;

  // ---- self-energy -------------------------------------------------------------------------

  virtual void load_plasmon_pole(const PlasmonPoleView& model, const PoleRules& rules) = 0;
  /// What is loaded, for take_plasmon_pole of others.
  virtual std::shared_ptr<const LoadedPoleModel> plasmon_pole() const = 0;
  /// The same as load_plasmon_pole of the same model, by what kernels of the same back end have
  /// loaded: from device to device.
  virtual void take_plasmon_pole(const std::shared_ptr<const LoadedPoleModel>& model) = 0;

  /// Diagonal plasmon-pole Σ from the resident block (left: outer states l, right: inner bands n):
  ///
  ///   total[l][e] += w Σ_n Σ_GG' M_ln(G) F_n,GG'(x_lne) v̄(G') M*_ln(G')
  ///   sx[l][e]    += the same with the SX − X part of occupied bands alone, so CH = total − sx
  ///
  /// @param x_ry        E − E_n, [n_left][n_right][n_energies]
  /// @param occupation  f_n in [0, 1], [n_right]; F_n = f F_occupied + (1 − f) F_empty
  /// @param weight      w, e.g. 1/(Ω N_k) times the q-point's multiplicity
  /// @param sx          no data if only the total is wanted, which saves the second sum
  virtual void sigma_diagonal(View<const double, 3> x_ry, View<const double, 1> occupation,
                              double weight, View<Cplx, 2> total, View<Cplx, 2> sx) = 0;

  /// Σ at one energy an outer state together with its analytic slope; total and sx as
  /// sigma_diagonal,
  ///
  ///   slope[l] += w Σ_n Σ_GG' M_ln(G) (d/dx) F_n,GG'(x_ln) v̄(G') M*_ln(G')
  ///
  /// where terms that the rules near poles replace or drop count as they stand.
  /// @param x_ry  E_l − E_n, [n_left][n_right]
  virtual void sigma_diagonal_slope(View<const double, 2> x_ry, View<const double, 1> occupation,
                                    double weight, View<Cplx, 1> total, View<Cplx, 1> sx,
                                    View<Cplx, 1> slope) = 0;

  /// Elements with imaginary poles beside those of load_plasmon_pole, which forgets them.
  virtual void load_imaginary_poles(View<const ImaginaryPole, 1> poles) = 0;
  /// Their part of the diagonal Σ (imaginary_pole_terms in physics/plasmon_pole.hpp): total[l][e]
  /// += CH + f (SX − X), sx[l][e] += f (SX − X), slope[l] += d total/dx at the first energy.
  /// @param x_ry   [n_left][n_right][n_energies];  slope  no data: not wanted
  virtual void sigma_diagonal_imaginary(View<const double, 3> x_ry,
                                        View<const double, 1> occupation, double weight,
                                        View<Cplx, 2> total, View<Cplx, 2> sx,
                                        View<Cplx, 1> slope) = 0;

  using OffDiagonalOptions = gw::OffDiagonalOptions;
  struct OffDiagonalReport {
    std::int64_t pairs = 0;           ///< (n, E)
    std::int64_t direct_pairs = 0;    ///< of them treated by the two products
    std::int64_t terms = 0;           ///< K of the separable sums
    double fit_error_relative = 0.0;  ///< largest found on the fitted range
    double fit_seconds = 0.0;         ///< of the host; a fit once made is remembered
    double zgemm_flops = 0.0;         ///< of the products issued, 8 m n k each
    double residual = 0.0;   ///< ‖(T − M P) v‖/‖T v‖ of products that are not native
    bool hermitian = false;  ///< the model is, and the products were folded where they can be
  };
  /// Full plasmon-pole matrix on a list of energies common to all (l, m), as products (spec 7):
  ///
  ///   sigma[e][l][m] += w Σ_n Σ_GG' M_ln(G) F_n,GG'(E_e − E_n) v̄(G') M*_mn(G')
  ///
  /// Of a Hermitian model Σ = S + S† where S is made with one triangle of P: half the flops.
  ///
  /// @param band_ry  E_n, [n_right];  energies_ry [n_energies]
  virtual OffDiagonalReport sigma_offdiagonal(View<const double, 1> energies_ry,
                                              View<const double, 1> band_ry,
                                              View<const double, 1> occupation, double weight,
                                              const OffDiagonalOptions& options,
                                              View<Cplx, 3> sigma) = 0;

  /// sum[l][n] = Σ_G |M_ln(G)|² v(G): bare exchange. [n_left][n_right]
  virtual void weighted_norms(View<const double, 1> v, View<double, 2> sum) = 0;
  /// form[l][n] = Σ_GG' M_ln(G) W_GG' M*_ln(G'): COHSEX and contour deformation.
  virtual void quadratic_forms(View<const Cplx, 2> matrix, View<Cplx, 2> form) = 0;
  /// sum[e][l][m] += Σ_n w_en Σ_GG' M_ln(G) W_GG' M*_mn(G'), w [n_energies][n_right]: the full
  /// matrix of COHSEX and of contour deformation.
  virtual void quadratic_form_matrix(View<const Cplx, 2> matrix, View<const double, 2> weight,
                                     View<Cplx, 3> sum) = 0;
  /// sum[e][l][m] += Σ_fn w_nfe Σ_G M_ln(G) d_f(G) M*_mn(G): the same of diagonal matrices.
  /// @param diagonal  [n_frequencies][n_g];  weight  [n_right][n_frequencies][n_energies]
  virtual void diagonal_form_matrix(View<const Cplx, 2> diagonal, View<const double, 3> weight,
                                    View<Cplx, 3> sum) = 0;

  // ---- dense -------------------------------------------------------------------------------

  /// product[m][n] = Σ_k a[m][k] b[n][k], host to host; without imaginary parts it has none.
  /// (Matrix elements of the velocity.)
  virtual void multiply_transposed(View<const Cplx, 2> a, View<const Cplx, 2> b,
                                   View<Cplx, 2> product) = 0;
  /// Inverse of a Hermitian positive definite matrix in place (Cholesky), both triangles filled.
  /// @throws NotConverged naming the leading minor if it is not positive definite.
  virtual void invert_positive_definite(View<Cplx, 2> matrix) = 0;
  /// Inverse of a general matrix in place (LU).
  virtual void invert_general(View<Cplx, 2> matrix) = 0;
  /// Hermitian eigenproblem: the n_lowest lowest pairs, ascending. On return row i of `vectors`
  /// [n_lowest][n] holds eigenvector i (not conjugated): Σ_G' H_GG' c_i(G') = λ_i c_i(G).
  /// A matrix without imaginary parts gets real eigenvectors.
  virtual void eigen_hermitian(View<const Cplx, 2> matrix, View<double, 1> values,
                               View<Cplx, 2> vectors) = 0;

 protected:
  std::int64_t epoch_ = 0;
};

/// @throws BackendAbsent in a build without CUDA, for a CUDA device.
std::unique_ptr<GwKernels> make_gw_kernels(const Device& device);
/// Runs every step of a static calculation with poles once, on data of no account: a device loads
/// code when it is first asked for it, and may do so while another is busy.
void warm_up(GwKernels& kernels);
std::unique_ptr<GwKernels> make_gw_kernels_cpu(const Device& device);
std::unique_ptr<GwKernels> make_gw_kernels_cuda(const Device& device);

}  // namespace quasi::gw

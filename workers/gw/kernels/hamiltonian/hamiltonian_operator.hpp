#pragma once

#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "workers/backend/view.hpp"
#include "workers/gw/kernels/pair_products/fft_cpu.hpp"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"

namespace quasi::gw {

/// Holds the elements D_rc ≠ 0 of a matrix row by row. Row r has the elements begin[r] to
/// begin[r + 1] − 1.
struct SparseMatrix {
  std::vector<std::int32_t> begin;   ///< first element of each row, [n_rows + 1], or empty
  std::vector<std::int32_t> column;  ///< column c of each element
  std::vector<Cplx> value;           ///< D_rc of each element

  std::int64_t n_rows() const { return std::ssize(begin) - 1; }
  /// Computes y[v] = D x[v] for `count` vectors; both [count][n_rows()]. @pre D is square
  void apply(const Cplx* x, std::int64_t count, Cplx* y) const;
};

/// Holds the parts of the mean-field Hamiltonian at one k, Ry, on the plane waves of its sphere
/// (docs/theory/gw.md 9.1). Kinetic energy and local potential act on each component of a spinor
/// alone. The projectors couple both components (docs/theory/gw.md 15.1).
struct HamiltonianParts {
  int n_spinor = 1;                     ///< components of a state; spinors have 2
  FftBox box{};                         ///< holds G and all differences G − G' without wrapping
  std::vector<std::int32_t> box_index;  ///< position of each G, [n_pw]
  std::vector<double> kinetic_ry;       ///< |k+G|², [n_pw]
  /// Positions of the plane waves of the local potential and V(G), where it is not 0.
  std::vector<std::pair<std::int32_t, Cplx>> potential_ry;
  std::vector<Cplx> beta;  ///< projectors β_p(k+G), [n_projectors][n_pw]
  /// Σ_q D_pq β*_q(k+G) of states with one component, β*_p(k+G) of spinors;
  /// [n_projectors][n_pw].
  std::vector<Cplx> right;
  /// D_pq^{σσ'} of spinors, Ry. Its row is σ n_projectors + p and its column σ' n_projectors +
  /// q. The components are σ, σ' = 0 (↑) and 1 (↓).
  SparseMatrix coupling;
};

/// Polynomial of H that enlarges states below an interval against those inside it.
struct ChebyshevFilter {
  double lower_ry = 0.0;   ///< lower end of the interval
  double upper_ry = 0.0;   ///< upper end, not below the largest eigenvalue of H
  double lowest_ry = 0.0;  ///< estimate of the lowest eigenvalue, below `lower_ry`
  int degree = 20;
};

/// Holds functions of H as Chebyshev series f_k(H) = Σ_l c_kl T_l((H − centre)/half).
struct ChebyshevSeries {
  double centre_ry = 0.0, half_ry = 1.0;  ///< of an interval that holds the spectrum of H
  View<const double, 2> coefficients;     ///< c_kl, [n_functions][degree + 1]
};

/// Applies the mean-field Hamiltonian to blocks of states on the processor, without storing its
/// matrix (docs/theory/gw.md 9.1):
///
///   H c = |k+G|² c + FFT[V(r) FFT⁻¹ c] + Σ_pq β_p D_pq ⟨β_q|c⟩.
///
/// A spinor c = (c_↑, c_↓) has the coefficients of ↑ for all plane waves, followed by those
/// of ↓. Each component is transformed by itself, and the last term is Σ_σ'pq β_p D_pq^{σσ'}
/// ⟨β_q|c_σ'⟩. Results do not depend on the number of threads. Each thread takes batches of
/// states, whose size is fixed.
class HamiltonianOperator {
 public:
  /// @throws InvalidInput if V(−G) differs from V*(G), so that H is not Hermitian.
  explicit HamiltonianOperator(HamiltonianParts parts);

  /// Returns the order of H: plane waves times components.
  std::int64_t size() const { return static_cast<std::int64_t>(kinetic_ry_.size()); }
  /// Returns |k+G|² of each coefficient of a state, [size()].
  const std::vector<double>& kinetic_ry() const { return kinetic_ry_; }
  const HamiltonianParts& parts() const { return parts_; }
  /// Returns V(−r)/N_r on the box; empty if V = 0.
  const std::vector<double>& potential() const { return potential_; }
  /// True if all matrix elements are real: V(G) is real and there is no projector. Two real states
  /// then share each complex transform.
  bool is_real() const { return is_real_; }

  /// Calculates result[n] = H states[n], Ry; both [n_states][size()]. @pre is_real() for real
  /// states
  void apply(View<const Cplx, 2> states, View<Cplx, 2> result) const;
  void apply(View<const double, 2> states, View<double, 2> result) const;

  /// Replaces each state by p(H) of it; [n_states][size()]. p is the Chebyshev polynomial of the
  /// first kind on the interval of the filter [zhou2006], scaled so that p = 1 at `lowest_ry`.
  /// @pre is_real() for real states
  void filter(const ChebyshevFilter& filter, View<Cplx, 2> states) const;
  void filter(const ChebyshevFilter& filter, View<double, 2> states) const;

  /// Calculates result[k][n] = f_k(H) states[n]; [n_functions][n_states][size()]. All functions
  /// share the recursion of T_l(H) states[n]. @pre is_real() for real states
  /// @return the largest ‖T_l x‖/‖x‖, which exceeds 1 only if the interval lacks an eigenvalue
  double expand(const ChebyshevSeries& series, View<const Cplx, 2> states,
                View<Cplx, 3> result) const;
  double expand(const ChebyshevSeries& series, View<const double, 2> states,
                View<double, 3> result) const;

 private:
  class Worker;
  HamiltonianParts parts_;
  std::vector<double> kinetic_ry_;  ///< [size()]
  bool is_real_ = false;
  std::vector<double> potential_;
  SphereTransform to_box_, to_sphere_;

  template <typename T>
  void apply_in_batches(View<const T, 2> states, View<T, 2> result) const;
  template <typename T>
  void filter_in_batches(const ChebyshevFilter& filter, View<T, 2> states) const;
  template <typename T>
  double expand_in_batches(const ChebyshevSeries& series, View<const T, 2> states,
                           View<T, 3> result) const;
};

}  // namespace quasi::gw

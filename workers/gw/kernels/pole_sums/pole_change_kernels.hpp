#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "workers/backend/unset_vector.hpp"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

struct DifferenceBox;

/// Base of the arrays of a PoleChange that stay in the memory of a device.
class KeptPoleChange {
 public:
  virtual ~KeptPoleChange() = default;
};

/// A small change of a plasmon-pole model: of B = ½ I v̄ (Bohr³ Ry) and of τ = 1/ω̃ (1/Ry). A
/// Hermitian model has the elements of its lower triangle, row by row; other models have all of
/// them. Single precision suffices for a difference.
struct PoleChange {
  UnsetVector<std::complex<float>> strength;
  UnsetVector<float> tau_per_ry;
  /// Real parts of δB in place of `strength`, as a device makes them of a real model and a real
  /// ε̃⁻¹.
  UnsetVector<float> real_strength = {};
  /// A device keeps the arrays, which are empty here. Null: it does not.
  std::shared_ptr<const KeptPoleChange> kept = nullptr;
  /// Returns the number of elements in host memory.
  std::size_t size() const { return tau_per_ry.size(); }
};
/// Returns the number of elements of the first rows of a PoleChange.
inline std::int64_t elements_of_rows(std::int64_t rows, std::int64_t n_g, bool hermitian) {
  return hermitian ? rows * (rows + 1) / 2 : rows * n_g;
}
/// Returns the number of elements of a PoleChange.
inline std::int64_t elements_of_change(std::int64_t n_g, bool hermitian) {
  return elements_of_rows(n_g, n_g, hermitian);
}

/// Terms whose response is summed.
struct ResponseTerms {
  View<const double, 2> x_ry;        ///< x = E − E_n, [n_left][n_right]
  View<const double, 1> occupation;  ///< 0 or 1, [n_right]
  double weight = 1.0;
  double closed_x_ry = 0.0;  ///< x* < 0 of the closed sum that is subtracted; 0: none is
  bool only_closed = false;  ///< vectors of the complement: F = 0
  /// x of the bands at another energy, which empty bands alone may have; [n_left][n_right]. A band
  /// whose value is not a number has none. No data: no band has one.
  View<const double, 2> other_x_ry = {};
  /// Ends of the segments of bands whose own sums are kept apart, ascending; empty: one segment.
  std::vector<std::int64_t> segment_end = {};
  /// Ends of groups of outer states, ascending. Each state of a group gets the mean of its sums,
  /// which is what the energies of a multiplet need. Empty: every state has a group of its own.
  std::vector<std::int64_t> group_end = {};
  /// If true, the sums of the unchanged model contain SX − X of occupied bands.
  bool screened_exchange = false;
};
/// Lists the sums over bands that a response also gives for the unchanged model. Each is the real
/// part of a part of the diagonal Σ, or its slope.
enum class OwnSum {
  kTotal,
  kSlope,   ///< dΣ/dx
  kClosed,  ///< the closed sum Σ M W* M†
  kSecond,  ///< SX − X of occupied bands, and the total of empty bands at their other energies
  kSecondSlope  ///< slope of empty bands at their other energies
};
inline constexpr std::int64_t kOwnSums = 5;
/// Responses to which a kernel adds.
struct ResponseSums {
  View<double, 2> total;     ///< Ry, [n_changes][n_left]
  View<double, 2> slope;     ///< [n_changes][n_left]; no data: not wanted, kSecondSlope neither
  View<double, 3> own = {};  ///< [n_segments][kOwnSums][n_left]; no data: not wanted
};

/// Several changes of one plasmon-pole model on one device, until the object is destroyed. Sums run
/// over all rows of the model, or over those of of_rows().
class LoadedPoleChanges {
 public:
  virtual ~LoadedPoleChanges() = default;
  /// Brings some rows of changes of the same model to this device, where not all of them have room.
  /// The sums of several ranges add up to those of all rows. The caller keeps the changes.
  virtual std::unique_ptr<const LoadedPoleChanges> of_rows(
      const std::vector<const PoleChange*>& changes, const ElementRows& rows) const = 0;
  /// First order of the real part of the diagonal Σ in a change c (docs/theory/gw.md 9.3),
  ///
  ///   total[c][l] += w Re Σ_GG' [P_GG' δB_GG' + P'_GG' (B + δB)_GG' δτ_GG'],
  ///   P_GG' = Σ_n M_ln(G) M*_ln(G') (f_n − f*),   P' = ∂P/∂τ
  ///
  /// with f of physics/pole_response.hpp and f* that of an empty band at x*. The slope has
  /// ∂f/∂x in place of f − f*. All changes share the sums over n.
  ///
  /// The sums over n give Σ of the model itself, too: own = w Re Σ_GG' P_GG' B_GG' for each
  /// segment of bands, with the f of OwnSum in P.
  virtual void add_response(const PairBlock& block, const ResponseTerms& terms,
                            const ResponseSums& sums) const = 0;
  /// Returns w(D) = Σ_{G−G'=D} of the first order of F_GG'(x) v̄(G') of an empty band in one
  /// change, for all D of the box, 1/Ry. The known closed sum of a state is Σ_D w(D) ρ_ll(D)
  /// (docs/theory/gw.md 9.4).
  /// @param x_ry  x = E − E_n < 0, where no rule near poles acts
  virtual std::vector<Cplx> sums_by_difference(std::int64_t change, double x_ry,
                                               const DifferenceBox& box) const = 0;
};

}  // namespace quasi::gw

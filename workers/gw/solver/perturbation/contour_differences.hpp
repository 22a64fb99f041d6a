#pragma once

#include <span>
#include <vector>

#include "workers/gw/kernels/pole_sums/first_order_kernels.hpp"
#include "workers/gw/model/sigma_options.hpp"

namespace quasi::gw {

/// F(x) of one band by contour deformation as a sum over the frequencies of W (docs/theory/gw.md
/// 6.5), F(x) = Σ_f s_f(x) W(ω_f), in the order of DielectricMatrix::inverse.
class ContourShares {
 public:
  explicit ContourShares(const ContourGrid& grid) : grid_(grid) {}
  std::size_t size() const { return grid_.imaginary_ry.size() + grid_.real_ry.size(); }
  /// Returns s_f(x). @throws InvalidInput where a residue lies beyond the real-axis grid
  std::vector<double> at(double x_ry, bool occupied) const;
  /// Returns [s_f(x_a) − s_f(x_b)]/(x_a − x_b) of two bands of one occupation with close
  /// energies. W at ω = 0 of the real axis counts as W(0), so that F is continuous at x = 0. At a
  /// kink of F between both it is the mean of the slopes on either side.
  std::vector<double> difference(double x_a_ry, double x_b_ry, bool occupied) const;

 private:
  std::vector<double> slope(double x_ry, bool occupied) const;
  /// Adds `factor` times the slope of the residue S(|x|) on the given side of x = 0.
  void add_residue_slope(double x_ry, double factor, std::vector<double>& slope) const;
  void join_zeros(std::vector<double>& shares) const;

  const ContourGrid& grid_;
};

/// Divided differences (s_f(x_n) − s_f(x_n'))/(E_n − E_n') of all pairs of a part
/// (docs/theory/gw.md 14.8).
class ContourDifferences {
 public:
  ContourDifferences(const ContourGrid& grid, const FirstOrderPairs& pairs,
                     std::span<const double> energies_ry);

  std::size_t n_frequencies() const { return n_frequencies_; }
  /// Returns true if any state or pair has a share of this frequency.
  bool uses(std::size_t frequency) const { return used_[frequency] != 0; }
  /// Returns the differences of Σ_f weight_f s_f. The first n_energies hold all pairs but those of
  /// one multiplet, the others the multiplets alone. @return [2 n_energies][n_bra][part.size()]
  std::vector<double> of(const std::vector<double>& weight) const;

 private:
  /// A pair whose difference is no quotient.
  struct ClosePair {
    std::size_t bra = 0, ket = 0, energy = 0;
    bool multiplet = false;
    std::vector<double> difference;  ///< [frequency]
  };
  void note_used(const std::vector<double>& shares);

  const FirstOrderPairs& pairs_;
  std::size_t n_energies_, n_frequencies_;
  std::vector<std::vector<double>> of_bras_, of_kets_;  ///< s_f, [energy · state][frequency]
  std::vector<ClosePair> close_;
  std::vector<char> used_;
};

}  // namespace quasi::gw

#pragma once

#include <span>
#include <vector>

#include "workers/gw/kernels/pole_sums/first_order_kernels.hpp"
#include "workers/gw/model/sigma_options.hpp"

namespace quasi::gw {

/// Writes the factor F(x) of one band by contour deformation as a sum over the frequencies of W,
/// F(x) = Σ_f s_f(x) W(ω_f), with x = E − E_n (docs/theory/gw.md 6.5). The shares s_f have no
/// unit. Their order is that of DielectricMatrix::inverse.
class ContourShares {
 public:
  /// Keeps a reference to the grid.
  explicit ContourShares(const ContourGrid& grid) : grid_(grid) {}
  /// Returns the number of frequencies.
  std::size_t size() const { return grid_.imaginary_ry.size() + grid_.real_ry.size(); }
  /// Returns s_f(x), [frequency]. @throws InvalidInput if a residue lies beyond the real-axis grid
  std::vector<double> at(double x_ry, bool occupied) const;
  /// Returns [s_f(x_a) − s_f(x_b)]/(x_a − x_b) in 1/Ry of two bands of one occupation with
  /// close energies, [frequency]. W at ω = 0 of the real axis counts as W(0), so that F is
  /// continuous at x = 0. At a kink of F between x_a and x_b the result is the mean of the slopes
  /// on either side.
  /// @throws InvalidInput if a residue lies beyond the real-axis grid
  std::vector<double> difference(double x_a_ry, double x_b_ry, bool occupied) const;

 private:
  std::vector<double> slope(double x_ry, bool occupied) const;
  /// Adds `factor` times the slope of the residue S(|x|) on the given side of x = 0.
  void add_residue_slope(double x_ry, double factor, std::vector<double>& slope) const;
  void join_zeros(std::vector<double>& shares) const;

  const ContourGrid& grid_;
};

/// Holds the divided differences (s_f(x_n) − s_f(x_n'))/(E_n − E_n') of all pairs (n', n) of a
/// part (docs/theory/gw.md 14.8), 1/Ry.
class ContourDifferences {
 public:
  /// Calculates the shares of all bands and the differences of close pairs. It keeps a reference to
  /// `pairs`.
  /// @param energies_ry  E, [n_energies]
  /// @throws InvalidInput if a residue lies beyond the real-axis grid
  ContourDifferences(const ContourGrid& grid, const FirstOrderPairs& pairs,
                     std::span<const double> energies_ry);

  /// Returns the number of frequencies of W.
  std::size_t n_frequencies() const { return n_frequencies_; }
  /// Returns true if any state or pair has a share of this frequency.
  bool uses(std::size_t frequency) const { return used_[frequency] != 0; }
  /// Returns the differences of Σ_f weight_f s_f, 1/Ry, [2 n_energies][n_bra][part.size()]. The
  /// first n_energies hold all pairs except those of one multiplet. The others hold the pairs of
  /// one multiplet alone.
  /// @param weight  [frequency]
  std::vector<double> of(const std::vector<double>& weight) const;

 private:
  /// Holds a pair of close energies, whose difference is no quotient.
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

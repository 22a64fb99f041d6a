#include "workers/gw/solver/perturbation/contour_differences.hpp"

#include <cmath>

#include "workers/gw/physics/contour_residues.hpp"

namespace quasi::gw {
namespace {

/// Distance of two energies below which the slope between them replaces their difference. The
/// difference would lose more than eleven digits; the slope errs by the square of the distance.
constexpr double kSlopeEnergies_ry = 1e-5;

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

std::vector<double> ContourShares::at(double x_ry, bool occupied) const {
  std::vector<double> shares = contour_weights<double>(grid_.imaginary_ry, x_ry, grid_.rule);
  shares.resize(size());
  for_each_residue_point(grid_.real_ry, x_ry, occupied, [&](std::size_t i, double factor) {
    shares[grid_.imaginary_ry.size() + i] += factor;
  });
  return shares;
}

std::vector<double> ContourShares::difference(double x_a_ry, double x_b_ry, bool occupied) const {
  if (std::abs(x_a_ry - x_b_ry) <= kSlopeEnergies_ry) {
    const double a = snapped(x_a_ry), b = snapped(x_b_ry);
    return slope(a * b <= 0.0 ? 0.0 : 0.5 * (a + b), occupied);
  }
  std::vector<double> shares = at(x_a_ry, occupied);
  const std::vector<double> of_b = at(x_b_ry, occupied);
  for (std::size_t f = 0; f < shares.size(); ++f)
    shares[f] = (shares[f] - of_b[f]) / (x_a_ry - x_b_ry);
  join_zeros(shares);
  return shares;
}

std::vector<double> ContourShares::slope(double x_ry, bool occupied) const {
  std::vector<double> slopes = contour_slopes(grid_.imaginary_ry, x_ry, grid_.rule);
  slopes.resize(size());
  // The residue is −S(x) of an empty band at x > 0 and S(−x) of an occupied band at x < 0. Both
  // have the slope −S'.
  if (x_ry == 0.0)
    add_residue_slope(0.0, -0.5, slopes);
  else if (residue_sign(x_ry, occupied) != 0.0)
    add_residue_slope(std::abs(x_ry), -1.0, slopes);
  join_zeros(slopes);
  return slopes;
}

void ContourShares::add_residue_slope(double x_ry, double factor,
                                      std::vector<double>& slope) const {
  const RealSegment segment = real_segment(grid_.real_ry, x_ry);
  const std::size_t first = grid_.imaginary_ry.size() + segment.first;
  slope[first] -= factor / segment.width_ry;
  slope[first + 1] += factor / segment.width_ry;
}

void ContourShares::join_zeros(std::vector<double>& shares) const {
  shares[0] += shares[grid_.imaginary_ry.size()];
  shares[grid_.imaginary_ry.size()] = 0.0;
}

ContourDifferences::ContourDifferences(const ContourGrid& grid, const FirstOrderPairs& pairs,
                                       std::span<const double> energies_ry)
    : pairs_(pairs), n_energies_(energies_ry.size()) {
  const ContourShares shares(grid);
  n_frequencies_ = shares.size();
  used_.assign(n_frequencies_, 0);
  const auto x_of = [](double energy_ry, const CoupledBands& bands, std::int64_t n) {
    return energy_ry - bands.energy_ry[static_cast<std::size_t>(n)];
  };
  const auto occupied = [](const CoupledBands& bands, std::int64_t n) {
    return bands.occupation[static_cast<std::size_t>(n)] > 0.5;
  };
  const BandRange kets = pairs.part;
  for (std::size_t e = 0; e < n_energies_; ++e) {
    const double energy_ry = energies_ry[e];
    for (std::int64_t n = 0; n < pairs.bra.size(); ++n)
      note_used(
          of_bras_.emplace_back(shares.at(x_of(energy_ry, pairs.bra, n), occupied(pairs.bra, n))));
    for (std::int64_t n = kets.begin; n < kets.end; ++n)
      note_used(
          of_kets_.emplace_back(shares.at(x_of(energy_ry, pairs.ket, n), occupied(pairs.ket, n))));
    for (std::int64_t n = kets.begin; n < kets.end; ++n)
      for (std::int64_t bra = 0; bra < pairs.bra.size(); ++bra) {
        const PairKind kind = pair_kind(pairs.bra, bra, pairs.ket, n);
        if (kind == PairKind::kQuotient) continue;
        // x falls as the energy of the state rises.
        std::vector<double> difference = shares.difference(
            x_of(energy_ry, pairs.ket, n), x_of(energy_ry, pairs.bra, bra), occupied(pairs.ket, n));
        for (double& value : difference) value = -value;
        note_used(difference);
        close_.push_back({static_cast<std::size_t>(bra), static_cast<std::size_t>(n - kets.begin),
                          e, kind == PairKind::kMultiplet, std::move(difference)});
      }
  }
}

void ContourDifferences::note_used(const std::vector<double>& shares) {
  for (std::size_t f = 0; f < shares.size(); ++f)
    if (shares[f] != 0.0) used_[f] = 1;
}

std::vector<double> ContourDifferences::of(const std::vector<double>& weight) const {
  const auto n_bra = static_cast<std::size_t>(pairs_.bra.size()),
             n_part = static_cast<std::size_t>(pairs_.part.size()), size = n_bra * n_part;
  std::vector<double> factor(2 * n_energies_ * size);
  for (std::size_t e = 0; e < n_energies_; ++e) {
    std::vector<double> of_kets;
    for (std::size_t n = 0; n < n_part; ++n)
      of_kets.push_back(dot(weight, of_kets_[e * n_part + n]));
    for (std::size_t bra = 0; bra < n_bra; ++bra) {
      const double of_bra = dot(weight, of_bras_[e * n_bra + bra]);
      for (std::size_t n = 0; n < n_part; ++n) {
        const std::int64_t ket = pairs_.part.begin + static_cast<std::int64_t>(n);
        if (pair_kind(pairs_.bra, static_cast<std::int64_t>(bra), pairs_.ket, ket) !=
            PairKind::kQuotient)
          continue;
        factor[e * size + bra * n_part + n] =
            (of_kets[n] - of_bra) /
            (pairs_.ket.energy_ry[static_cast<std::size_t>(ket)] - pairs_.bra.energy_ry[bra]);
      }
    }
  }
  for (const ClosePair& pair : close_)
    factor[((pair.multiplet ? n_energies_ : 0) + pair.energy) * size + pair.bra * n_part +
           pair.ket] = dot(weight, pair.difference);
  return factor;
}

}  // namespace quasi::gw

#include "workers/gw/kernels/pole_sums/diagonal/pole_groups.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw {
namespace {

/// Calculates the coefficients of Π_k (1 + a_k τ), lowest power first. The product runs over all k
/// except `without`; −1 leaves out no k.
std::array<double, kMaxEnergiesPerGroup + 1> product_of_factors(const double* a, int n,
                                                                int without) {
  std::array<double, kMaxEnergiesPerGroup + 1> polynomial{1.0};
  for (int k = 0, degree = 0; k < n; ++k) {
    if (k == without) continue;
    ++degree;
    for (int m = degree; m >= 1; --m) polynomial[m] += a[k] * polynomial[m - 1];
  }
  return polynomial;
}

void append_smooth_row(PoleGroup& group, const double* x_ry, double factor) {
  const int n = group.n_energies;
  double a[kMaxEnergiesPerGroup];
  for (int k = 0; k < n; ++k) a[k] = std::abs(x_ry[k]);
  const auto denominator = product_of_factors(a, n, -1);
  group.smooth_row.insert(group.smooth_row.end(), denominator.begin() + 1,
                          denominator.begin() + 1 + n);
  for (int j = 0; j < n; ++j) {
    const auto numerator = product_of_factors(a, n, j);
    for (int m = 0; m < n; ++m) group.smooth_row.push_back(factor * numerator[m]);
  }
}

void append_direct_row(PoleGroup& group, const double* x_ry, double occupied, double empty,
                       double screened_exchange) {
  group.direct_row.insert(group.direct_row.end(), x_ry, x_ry + group.n_energies);
  for (double w : {occupied, empty, screened_exchange}) group.direct_row.push_back(w);
}

void append_split_row(PoleGroup& group, const double* x_ry, double weight, const PoleRules& rules) {
  const int n = group.n_energies;
  std::vector<double>& row = group.split_row;
  row.insert(row.end(), x_ry, x_ry + n);
  for (int k = 0; k < n; ++k)
    row.push_back(1.0 / dropped_empty(x_ry[k], rules.half_width_ry, rules.max_ratio).high);
  for (int k = 0; k < n; ++k)
    row.push_back(1.0 / dropped_empty(x_ry[k], rules.half_width_ry, rules.max_ratio).low);
  row.push_back(weight);
}

/// Ends the lists of one outer state and begins those of the next.
void end_left(PoleGroup& group) {
  group.smooth_begin.push_back(static_cast<std::int32_t>(group.smooth_band.size()));
  group.split_begin.push_back(static_cast<std::int32_t>(group.split_band.size()));
  group.direct_begin.push_back(static_cast<std::int32_t>(group.direct_band.size()));
}

void check_pairs(View<const double, 3> x_ry, View<const double, 1> occupation) {
  const std::int64_t n_right = x_ry.extent[1];
  const std::int64_t n_energies = x_ry.extent[2];
  for (std::int64_t n = 0; n < n_right; ++n)
    if (!(occupation(n) >= 0.0 && occupation(n) <= 1.0))
      throw InvalidInput("occupation of band " + std::to_string(n) + " is " +
                         std::to_string(occupation(n)) + "; it must lie in [0, 1]");
  for (std::int64_t i = 0; i < x_ry.size(); ++i)
    if (!std::isfinite(x_ry.data[i]))
      throw InvalidInput("E − E_n of outer state " + std::to_string(i / (n_right * n_energies)) +
                         " and band " + std::to_string(i / n_energies % n_right) +
                         " is not finite");
}

}  // namespace

PoleGroup make_slope_group(View<const double, 2> x_ry, View<const double, 1> occupation,
                           double weight, const PoleRules& rules,
                           ScreenedExchange screened_exchange) {
  const std::int64_t n_left = x_ry.extent[0];
  const std::int64_t n_right = x_ry.extent[1];
  check_pairs({x_ry.data, {n_left, n_right, 1}}, occupation);
  PoleGroup group;
  group.n_energies = 2;
  group.second_is_slope = true;
  end_left(group);
  for (std::int64_t l = 0; l < n_left; ++l) {
    for (std::int64_t n = 0; n < n_right; ++n) {
      const double x = x_ry(l, n);
      const double f = occupation(n);
      const bool smooth = crosses_no_pole(x, f, rules);
      const bool apart = f > 0.0 && screened_exchange == ScreenedExchange::kWanted;
      const double both[] = {x, x};
      if (smooth && apart) {
        append_split_row(group, both, weight, rules);
        group.split_band.push_back(static_cast<std::int32_t>(n));
      } else if (smooth) {
        const double a = std::abs(x), factor = f == 1.0 ? weight : -weight;
        for (double number : {2.0 * a, a * a, factor, factor * a, 0.0, -weight})
          group.smooth_row.push_back(number);
        group.smooth_band.push_back(static_cast<std::int32_t>(n));
      }
      if (!smooth) {
        append_direct_row(group, both, weight * f, weight * (1.0 - f), apart ? weight * f : 0.0);
        group.direct_band.push_back(static_cast<std::int32_t>(n));
      }
    }
    end_left(group);
  }
  return group;
}

std::vector<PoleGroup> make_pole_groups(View<const double, 3> x_ry,
                                        View<const double, 1> occupation, double weight,
                                        const PoleRules& rules,
                                        ScreenedExchange screened_exchange) {
  check_pairs(x_ry, occupation);
  const std::int64_t n_left = x_ry.extent[0];
  const std::int64_t n_right = x_ry.extent[1];
  const std::int64_t n_energies = x_ry.extent[2];

  // The sizes of groups differ by at most one: 5 energies are 3 + 2 instead of 4 + 1.
  const std::int64_t n_groups = (n_energies + kMaxEnergiesPerGroup - 1) / kMaxEnergiesPerGroup;
  std::vector<PoleGroup> groups(n_groups);
  for (std::int64_t g = 0; g < n_groups; ++g) {
    PoleGroup& group = groups[g];
    group.first_energy = g * n_energies / n_groups;
    group.n_energies = static_cast<int>((g + 1) * n_energies / n_groups - group.first_energy);
    end_left(group);
    for (std::int64_t l = 0; l < n_left; ++l) {
      for (std::int64_t n = 0; n < n_right; ++n) {
        const double* x = &x_ry(l, n, group.first_energy);
        const double f = occupation(n);
        const bool smooth = std::all_of(x, x + group.n_energies,
                                        [&](double one) { return crosses_no_pole(one, f, rules); });
        const bool apart = f > 0.0 && screened_exchange == ScreenedExchange::kWanted;
        if (smooth && apart) {
          append_split_row(group, x, weight, rules);
          group.split_band.push_back(static_cast<std::int32_t>(n));
        } else if (smooth) {
          append_smooth_row(group, x, f == 1.0 ? weight : -weight);
          group.smooth_band.push_back(static_cast<std::int32_t>(n));
        }
        if (!smooth) {
          append_direct_row(group, x, weight * f, weight * (1.0 - f), apart ? weight * f : 0.0);
          group.direct_band.push_back(static_cast<std::int32_t>(n));
        }
      }
      end_left(group);
    }
  }
  return groups;
}

}  // namespace quasi::gw

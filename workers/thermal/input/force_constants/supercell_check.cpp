#include "workers/thermal/input/force_constants/supercell_check.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

constexpr double kWrong = 0.05;   // exchange of the wrong divisions, of the largest element
constexpr double kRight = 0.005;  // and of the right ones

/// Returns the largest |Φ(κ, κ'; R) − Φ(κ', κ; −R)ᵀ| over the largest |element|, with the cells of
/// the file divided among three axes as `n` says.
double exchange_violation(const SecondOrder& constants, const Index3& n) {
  SecondOrder other = constants;
  other.supercell = n;
  double worst = 0.0, largest = 0.0;
  for (int a = 0; a < other.n_atoms; ++a)
    for (int b = 0; b <= a; ++b)
      for (int k = 0; k < n[2]; ++k)
        for (int j = 0; j < n[1]; ++j)
          for (int i = 0; i < n[0]; ++i) {
            const double* here = other.block(a, b, {i, j, k});
            const double* there = other.block(b, a, {-i, -j, -k});
            for (int x = 0; x < 3; ++x)
              for (int y = 0; y < 3; ++y) {
                largest = std::max(largest, std::fabs(here[3 * x + y]));
                worst = std::max(worst, std::fabs(here[3 * x + y] - there[3 * y + x]));
              }
          }
  return largest > 0.0 ? worst / largest : 0.0;
}

std::string text_of(const Index3& n) {
  return std::to_string(n[0]) + " " + std::to_string(n[1]) + " " + std::to_string(n[2]);
}

}  // namespace

void check_supercell(const SecondOrder& constants, const std::string& location) {
  if (exchange_violation(constants, constants.supercell) < kWrong) return;
  const auto n_cells = static_cast<int>(constants.n_cells());
  std::string fitting;
  for (int i = 1; i <= n_cells; ++i)
    for (int j = 1; i * j <= n_cells && n_cells % i == 0; ++j) {
      if (n_cells % (i * j) != 0) continue;
      const Index3 n{i, j, n_cells / (i * j)};
      if (exchange_violation(constants, n) < kRight)
        fitting += (fitting.empty() ? "" : " or ") + text_of(n);
    }
  if (fitting.empty()) return;  // broken otherwise; the checks of the modes say so
  throw InvalidInput(location + ": with 'scell' = " + text_of(constants.supercell) +
                     " the second-order constants change when two atoms are exchanged; their "
                     "supercell is " +
                     fitting + "; correct 'scell'");
}

}  // namespace quasi::thermal

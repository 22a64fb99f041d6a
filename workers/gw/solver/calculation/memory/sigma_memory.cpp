#include "workers/gw/solver/calculation/memory/sigma_memory.hpp"

#include <cmath>

#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/calculation/memory/band_memory.hpp"
#include "workers/gw/solver/calculation/slices/slices_plan.hpp"

namespace quasi::gw {
namespace {

/// Returns the number of inner bands that a device has at a time (parts_of_sigma(),
/// DiagonalPart::bands_that_fit()).
/// @param matrices  bytes of the poles or of W
/// @param of_band  bytes of a band and its products
double bands_at_once(const SigmaOptions& s, double n_q, double matrices, double of_band) {
  constexpr double kParts = 32.0, kSmallestBlock = 64.0, kLeastItems = 64.0;
  const auto n_k = static_cast<double>(s.kpoints.size());
  const double sharing = n_q * n_k * std::max(1, s.column_slices),
               wanted = std::max(1.0, std::floor(kParts / sharing)),
               parts = std::clamp(std::floor(s.bands / kSmallestBlock), 1.0, wanted),
               room = (static_cast<double>(s.memory_budget_bytes) - matrices) / of_band;
  return std::min(std::ceil(s.bands / parts), std::max(kLeastItems, std::floor(room)));
}

/// Returns the bytes of A and ω̃, or of one slice of them. A CPU has them beside the host's own,
/// with four planes of a kernel, and is counted there.
double bytes_of_poles(const Plan& plan, double n_g, double n_w) {
  if (!uses_plasmon_poles(plan.sigma.method)) return 0.0;
  if (plan.sigma.column_slices == 0) return 24.0 * n_w * n_w;
  return bytes_of_slices(n_g, n_w, plan.sigma.column_slices, plan.real_states).poles;
}

}  // namespace

SigmaBytes bytes_of_sigma(const MeanField& field, const Plan& plan, double n_q) {
  const SigmaOptions& s = plan.sigma;
  const Mat3& bdot = field.crystal().bdot;
  const GSphere bare = make_g_sphere(bdot, {}, s.bare_cutoff_ry),
                screened = make_g_sphere(bdot, {}, s.screened_cutoff_ry);
  const double n_l = s.band_max - s.band_min + 1, n_w = static_cast<double>(screened.size()),
               n_g = field.crystal().volume_bohr3 * std::pow(plan.epsilon.epsilon_cutoff_ry, 1.5) /
                     (6.0 * kPi * kPi);
  const BandArrays of_bare = band_arrays(field, bare.g, plan.on_cpu),
                   arrays = band_arrays(field, screened.g, plan.on_cpu);
  // A quadratic form of the products has a matrix, its real part, and rows as large as they are.
  const bool has_forms = !uses_plasmon_poles(s.method) || s.exact_static_ch ||
                         (s.closed_sum_x_ry && s.column_slices == 0);
  SigmaBytes bytes{.matrices = bytes_of_poles(plan, n_g, n_w)};
  if (has_forms && !plan.on_cpu) bytes.matrices += (plan.real_states ? 24.0 : 16.0) * n_w * n_w;
  const double of_band = 32.0 * n_l * n_w + 16.0 * arrays.points * arrays.n_spinor,
               bands = bands_at_once(s, n_q, bytes.matrices, of_band);
  bytes.products =
      bytes_of_products(arrays, {.left = n_l, .right = bands, .n_g = n_w}, has_forms ? 2.0 : 1.0);
  bytes.exchange = bytes_of_exchange(
      of_bare,
      {.left = n_l, .right = 1.0 * field.n_occupied, .n_g = static_cast<double>(bare.size())},
      s.memory_budget_bytes);
  return bytes;
}

}  // namespace quasi::gw

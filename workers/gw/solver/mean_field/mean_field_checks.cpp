#include "workers/gw/solver/mean_field/mean_field_checks.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

constexpr double kEqualEnergies_ry = 1e-4;  // converged occupied bands differ by 1e-6 Ry at most
constexpr double kSphereChange_ry = 1e-3;
constexpr double kSlopes = 10.0;

/// Appends copies of some rows of each spin to a list [spin][n_k][width].
template <typename T>
std::vector<T> with_rows(const std::vector<T>& list, const std::vector<std::size_t>& rows,
                         std::size_t n_k, std::size_t n_spins) {
  const std::size_t width = list.size() / (n_k * n_spins);
  std::vector<T> result;
  const auto append = [&](std::size_t row) {
    const auto first = list.begin() + static_cast<std::ptrdiff_t>(row * width);
    result.insert(result.end(), first, first + static_cast<std::ptrdiff_t>(width));
  };
  for (std::size_t spin = 0; spin < n_spins; ++spin) {
    for (std::size_t ik = 0; ik < n_k; ++ik) append(spin * n_k + ik);
    for (const std::size_t ik : rows) append(spin * n_k + ik);
  }
  return result;
}

/// Returns the states at −k of those at k, c*(−G) or, of spinors, iσ_y c*(−G).
KPointWaves time_reversed(const KPointWaves& waves, int n_spinor) {
  KPointWaves result = waves;
  for (IVec3& g : result.g) g = -g;
  const auto n_pw = static_cast<std::ptrdiff_t>(result.g.size());
  for (auto& spin : result.coefficients) {
    for (Cplx& c : spin) c = std::conj(c);
    if (n_spinor == 1) continue;
    for (auto up = spin.begin(); up != spin.end(); up += 2 * n_pw) {
      const auto down = up + n_pw;
      std::swap_ranges(up, down, down);  // (↑, ↓) → (↓, −↑)
      std::transform(down, down + n_pw, down, [](const Cplx& c) { return -c; });
    }
  }
  return result;
}

/// Returns ⟨n|k + G|²|n⟩, Ry.
double kinetic_energy_ry(const Wavefunctions& waves, int spin, int ik, int band) {
  const KPointWaves& at = waves.waves[static_cast<std::size_t>(ik)];
  const std::size_t n = at.g.size() * static_cast<std::size_t>(waves.header.n_spinor);
  const Cplx* c =
      at.coefficients[static_cast<std::size_t>(spin)].part(static_cast<std::size_t>(band) * n, n);
  double sum = 0.0;
  for (std::size_t g = 0; g < n; ++g) {
    const Vec3 k = waves.k[static_cast<std::size_t>(ik)] + to_real(at.g[g % at.g.size()]);
    sum += std::norm(c[g]) * metric_dot(waves.header.crystal.bdot, k, k);
  }
  return sum;
}

}  // namespace

int complete_by_time_reversal(Wavefunctions& waves, std::int64_t expected) {
  const auto& operations = waves.header.crystal.symmetries;
  const BrillouinZone listed(waves.k, operations, 0, "WFN");
  if (listed.size() >= expected) return 0;
  std::vector<std::size_t> rows;
  std::vector<Vec3> k = waves.k;
  for (std::size_t ik = 0; ik < waves.k.size(); ++ik)
    if (listed.index_of(-1.0 * waves.k[ik]) < 0) {
      rows.push_back(ik);
      k.push_back(-1.0 * waves.k[ik]);
    }
  const BrillouinZone completed(k, operations, 0, "WFN");
  if (completed.size() != expected) return 0;
  const auto n_spins = static_cast<std::size_t>(waves.header.n_spins);
  const std::size_t n_k = waves.k.size();
  waves.energy_ry = with_rows(waves.energy_ry, rows, n_k, n_spins);
  waves.occupation = with_rows(waves.occupation, rows, n_k, n_spins);
  waves.first_occupied = with_rows(waves.first_occupied, rows, n_k, n_spins);
  waves.last_occupied = with_rows(waves.last_occupied, rows, n_k, n_spins);
  for (const std::size_t ik : rows)
    waves.waves.push_back(time_reversed(waves.waves[ik], waves.header.n_spinor));
  waves.k = std::move(k);
  waves.weight.assign(waves.k.size(), 0.0);
  for (const ZonePoint& point : completed.points())
    waves.weight[static_cast<std::size_t>(point.irreducible)] +=
        1.0 / static_cast<double>(expected);
  return static_cast<int>(rows.size());
}

namespace {

/// Occupied levels of spinors at k ≡ −k come in Kramers pairs unless the crystal is magnetic.
/// @throws InvalidInput with band, k-point and both energies
void check_kramers_pairs(const Wavefunctions& waves, int n_occupied) {
  for (int ik = 0; ik < waves.n_k(); ++ik) {
    IVec3 g{};
    if (!nearest_lattice_point(2.0 * waves.k[static_cast<std::size_t>(ik)], &g)) continue;
    for (int band = 0; band < n_occupied; band += 2) {
      const double a = waves.energy(0, ik, band);
      const bool paired = band + 1 < n_occupied;
      if (paired && std::abs(waves.energy(0, ik, band + 1) - a) <= kEqualEnergies_ry) continue;
      throw InvalidInput("WFN: band " + std::to_string(band + 1) + " of spinors at k-point " +
                         std::to_string(ik + 1) + " has the energy " + shown(a) +
                         " Ry and no partner by time reversal within 1e-4 Ry: non-collinear "
                         "magnetism is not supported; rerun the mean field without magnetisation");
    }
  }
}

}  // namespace

void check_time_reversal(const Wavefunctions& waves, const BrillouinZone& zone,
                         const std::vector<int>& n_occupied) {
  if (waves.header.n_spinor == 2) check_kramers_pairs(waves, n_occupied[0]);
  for (int ik = 0; ik < waves.n_k(); ++ik) {
    const std::int64_t at = zone.index_of(-1.0 * waves.k[static_cast<std::size_t>(ik)]);
    if (at < 0) continue;
    const int other = zone.points()[static_cast<std::size_t>(at)].irreducible;
    for (int spin = 0; other > ik && spin < waves.header.n_spins; ++spin)
      for (int band = 0; band < n_occupied[static_cast<std::size_t>(spin)]; ++band) {
        const double a = waves.energy(spin, ik, band), b = waves.energy(spin, other, band);
        if (std::abs(a - b) > kEqualEnergies_ry)
          throw InvalidInput("WFN: band " + std::to_string(band + 1) + " has the energy " +
                             shown(a) + " Ry at k-point " + std::to_string(ik + 1) + " and " +
                             shown(b) + " Ry at k-point " + std::to_string(other + 1) +
                             ", which time reversal maps onto each other (limit 1e-4 Ry); are "
                             "k-points exchanged? Rewrite WFN from the mean field");
      }
  }
}

void check_shifted_energies(const MeanField& field) {
  const Wavefunctions& shifted = *field.shifted;
  const double q0_per_bohr = std::sqrt(metric_dot(field.crystal().bdot, field.q0, field.q0));
  for (int ik = 0; ik < shifted.n_k(); ++ik) {
    const int from =
        field.zone.rotation_to(shifted.k[static_cast<std::size_t>(ik)] - field.q0).irreducible;
    for (int spin = 0; spin < field.n_spins(); ++spin)
      for (int band = 0; band < field.n_occupied_of_spin[static_cast<std::size_t>(spin)]; ++band) {
        const double slope = 2.0 * std::sqrt(kinetic_energy_ry(field.waves, spin, from, band));
        const double limit_ry = kSlopes * slope * q0_per_bohr + kSphereChange_ry;
        const double change_ry =
            shifted.energy(spin, ik, band) - field.waves.energy(spin, from, band);
        if (std::abs(change_ry) > limit_ry)
          throw InvalidInput("WFNq: the energy of band " + std::to_string(band + 1) +
                             " at k-point " + std::to_string(ik + 1) + " differs by " +
                             shown(change_ry) + " Ry from that of WFN at k; the shift q₀ allows " +
                             shown(limit_ry) +
                             " Ry. Make both files from one density, with one zero of energy and "
                             "energies in Ry");
      }
  }
}

}  // namespace quasi::gw

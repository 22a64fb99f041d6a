#include "workers/thermal/solver/renormalisation/site_map.hpp"

#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal {
namespace {

Vec3 rotated(const IntMat3& rotation, const Vec3& position) {
  Vec3 result{};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) result[i] += rotation[i][j] * position[j];
  return result;
}

IntMat3 negative(const IntMat3& rotation) {
  IntMat3 result = rotation;
  for (Index3& row : result)
    for (int& x : row) x = -x;
  return result;
}

/// Returns the sites under {rotation|translation}, or nothing if an atom has no image.
std::optional<SiteMap> sites_under(const Crystal& crystal, const IntMat3& rotation,
                                   const Vec3& translation, double tolerance_nm) {
  SiteMap map;
  for (int atom = 0; atom < crystal.n_atoms(); ++atom) {
    const Vec3 moved = rotated(rotation, crystal.position[atom]) + translation;
    for (int other = 0; other < crystal.n_atoms(); ++other) {
      if (crystal.type[other] != crystal.type[atom]) continue;
      const Vec3 away = moved - crystal.position[other];
      Index3 cell{};
      for (int d = 0; d < 3; ++d) cell[d] = static_cast<int>(std::lround(away[d]));
      const Vec3 rest{away[0] - cell[0], away[1] - cell[1], away[2] - cell[2]};
      if (length(crystal.cartesian_nm(rest)) > tolerance_nm) continue;
      map.image.push_back(other);
      map.shift.push_back(cell);
      break;
    }
    if (static_cast<int>(map.image.size()) != atom + 1) return std::nullopt;
  }
  return map;
}

}  // namespace

std::optional<SiteMap> find_site_map(const Crystal& crystal, const IntMat3& rotation,
                                     double tolerance_nm) {
  for (int target = 0; target < crystal.n_atoms(); ++target) {
    if (crystal.type[target] != crystal.type[0]) continue;
    const Vec3 translation = crystal.position[target] - rotated(rotation, crystal.position[0]);
    if (auto map = sites_under(crystal, rotation, translation, tolerance_nm)) return map;
  }
  return std::nullopt;
}

WaveMatrixImages::WaveMatrixImages(const Crystal& crystal, const Symmetry& symmetry,
                                   double tolerance_nm)
    : symmetry_(symmetry), n_atoms_(crystal.n_atoms()) {
  for (const Operation& operation : symmetry.operations) {
    Image image;
    auto sites = find_site_map(crystal, operation.rotation, tolerance_nm);
    image.reversed = !sites;
    if (!sites) sites = find_site_map(crystal, negative(operation.rotation), tolerance_nm);
    if (!sites)
      throw InvalidInput(
          "an operation of the space group moves an atom to a site that has none; lower 'symprec' "
          "or correct the positions");
    image.sites = std::move(*sites);
    image_.push_back(std::move(image));
  }
}

std::vector<std::complex<double>> WaveMatrixImages::at(
    std::int64_t point, const std::complex<double>* irreducible) const {
  const auto nb = static_cast<std::size_t>(3 * n_atoms_);
  const auto number = static_cast<std::size_t>(symmetry_.operation_to[point]);
  const Image& image = image_[number];
  const Mat3& rotation = symmetry_.operations[number].cartesian;
  int c[3];
  symmetry_.mesh.coordinates(point, c);
  std::vector<std::complex<double>> result(nb * nb);
  for (int atom = 0; atom < n_atoms_; ++atom)
    for (int other = 0; other < n_atoms_; ++other) {
      double turns = 0.0;  // q̃·(L_κ' − L_κ) / 2π
      for (int d = 0; d < 3; ++d)
        turns += static_cast<double>(c[d]) / symmetry_.mesh.n[d] *
                 (image.sites.shift[other][d] - image.sites.shift[atom][d]);
      const std::complex<double> phase = std::polar(1.0, 2.0 * units::kPi * turns);
      for (std::size_t a = 0; a < 3; ++a)
        for (std::size_t b = 0; b < 3; ++b) {
          std::complex<double> sum = 0.0;
          for (std::size_t i = 0; i < 3; ++i)
            for (std::size_t j = 0; j < 3; ++j) {
              const std::complex<double> d =
                  irreducible[(3 * static_cast<std::size_t>(atom) + i) * nb +
                              3 * static_cast<std::size_t>(other) + j];
              sum += rotation[a][i] * rotation[b][j] * (image.reversed ? std::conj(d) : d);
            }
          result[(3 * static_cast<std::size_t>(image.sites.image[atom]) + a) * nb +
                 3 * static_cast<std::size_t>(image.sites.image[other]) + b] = phase * sum;
        }
    }
  return result;
}

}  // namespace quasi::thermal

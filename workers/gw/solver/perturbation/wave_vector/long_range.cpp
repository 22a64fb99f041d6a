#include "workers/gw/solver/perturbation/wave_vector/long_range.hpp"

#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/perturbation/coupling_parts.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

constexpr double kLargestSum_e = 0.1;
/// Largest exponent K·ε∞·K/4α of a plane wave K that the sum keeps. exp(−40) is 4e-18.
constexpr double kLargestExponent = 40.0;

/// Returns K = q + G in Cartesian coordinates, 1/Bohr.
Vec3 wave_per_bohr(const Crystal& crystal, const Vec3& q, const IVec3& g) {
  Vec3 k{};
  for (std::size_t j = 0; j < 3; ++j) k = k + (q[j] + g[j]) * crystal.bvec[j];
  return crystal.blat_per_bohr * k;
}

/// Returns a positive lower bound of the smallest eigenvalue of a symmetric positive tensor. It is
/// the determinant over the largest product that the other two eigenvalues can have.
double lower_bound(const Mat3& t) {
  const double trace = t[0][0] + t[1][1] + t[2][2], determinant = dot(t[0], cross(t[1], t[2]));
  return 4.0 * determinant / (trace * trace);
}

}  // namespace

std::vector<Perturbation> long_range_parts(const PerturbationRequest& request,
                                           const std::vector<Displacement>& list,
                                           const Crystal& crystal, const Vec3& q) {
  std::vector<Perturbation> parts;
  if (request.born_charges.empty()) return parts;
  const Mat3& epsilon = request.dielectric_tensor;
  const double alpha = std::pow(2.0 * kPi / crystal.alat_bohr, 2);
  const GSphere sphere =
      make_g_sphere(crystal.bdot, q, 4.0 * alpha * kLargestExponent / lower_bound(epsilon));
  for (const Displacement& displacement : list) {
    const auto atom = static_cast<std::size_t>(displacement.atom - 1);
    const Vec3 tau = crystal.alat_bohr * crystal.atoms[atom].position_alat,
               direction = unit_vector(displacement.direction);
    PotentialElements elements;
    for (const IVec3& g : sphere.g) {
      const Vec3 k = wave_per_bohr(crystal, q, g);
      const double screened = dot(k, multiply(epsilon, k)), exponent = screened / (4.0 * alpha);
      if (exponent > kLargestExponent) continue;
      const double size = 8.0 * kPi / crystal.volume_bohr3 *
                          dot(k, multiply(request.born_charges[atom], direction)) / screened *
                          std::exp(-exponent);
      elements.emplace_back(g, Cplx(0.0, size) * std::polar(1.0, -dot(k, tau)));
    }
    parts.push_back(local_perturbation(displacement.name() + ", long range", q, elements));
  }
  return parts;
}

void check_born_charges(const PerturbationRequest& request, const Crystal& crystal) {
  const auto& charges = request.born_charges;
  if (charges.empty()) return;
  if (charges.size() != crystal.atoms.size())
    throw InvalidInput("perturbation.born_charges holds " + std::to_string(charges.size()) +
                       " tensors, but the cell has " + std::to_string(crystal.atoms.size()) +
                       " atoms; give nine numbers for each atom, in the order of the cell");
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      double sum = 0.0;
      for (const Mat3& charge : charges) sum += charge[i][j];
      if (std::abs(sum) > kLargestSum_e)
        throw InvalidInput("perturbation.born_charges add up to " + shown(sum) + " e at row " +
                           std::to_string(i + 1) + ", column " + std::to_string(j + 1) +
                           ", above the limit of 0.1 e of a neutral cell; correct them");
    }
}

}  // namespace quasi::gw

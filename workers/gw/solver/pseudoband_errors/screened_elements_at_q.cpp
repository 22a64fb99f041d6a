#include "workers/gw/solver/pseudoband_errors/screened_elements_at_q.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "workers/gw/solver/screening/long_wave_tensor.hpp"
#include "workers/gw/solver/screening/polarizability/polarizability.hpp"
#include "workers/gw/solver/screening/polarizability/symmetry_of_chi.hpp"

namespace quasi::gw {
namespace {

constexpr double kFallbackPole_ry = 2.0;

bool all_positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return v > 0.0; });
}

/// True if a group averages ε̃⁻¹ of q → 0 in screening_at().
bool averages_over_group(const MeanField& field, const ScreeningAtQ& at) {
  if (!at.epsilon.at_gamma) return false;
  const std::vector<SymmetryOperation>& operations = field.transfers().operations();
  return !is_identity_alone(operations, little_group(operations, {}, false));
}

/// Returns ω̃ of an element with ω̃² < 0; 0: it is left out.
double invalid_pole_ry(InvalidMode policy) {
  switch (policy) {
    case InvalidMode::kTwoRydberg:
      return kFallbackPole_ry;
    case InvalidMode::kStatic:
      return kStaticPole_ry;
    default:
      return 0.0;
  }
}

}  // namespace

std::optional<ScreenedElements> screened_elements_at(const MeanField& field, const ScreeningAtQ& at,
                                                     const SigmaOptions& options,
                                                     const CoulombInteraction& coulomb) {
  if (options.method != SigmaMethod::kHybertsenLouie ||
      options.invalid == InvalidMode::kImaginary ||
      coulomb.options().wing_rule != WingRule::kShortest || !coulomb.averages() ||
      !all_positive(at.coulomb) || !all_positive(at.epsilon.coulomb) ||
      averages_over_group(field, at))
    return std::nullopt;
  ScreenedElements elements;
  elements.n_heads = head_count(field, at.epsilon.at_gamma);
  elements.at_zero = at.epsilon.at_gamma;
  elements.invalid_pole_ry = invalid_pole_ry(options.invalid);
  const Mat3& bdot = field.crystal().bdot;
  const Vec3 q = elements.at_zero ? Vec3{} : at.epsilon.q;
  const std::vector<double> roots = roots_of_coulomb(
      at.epsilon, averaged_coulomb(at.epsilon, at.epsilon.sphere, coulomb), coulomb);
  for (std::size_t g = 0; g < at.sphere.g.size(); ++g) {
    ScreenedWave& wave = elements.waves.emplace_back();
    wave.root = std::sqrt(at.coulomb[g]);
    wave.ratio = roots[g] / wave.root;
    const Vec3 k = q + to_real(at.sphere.g[g]);
    for (std::size_t i = 0; i < 3; ++i) {
      wave.wave[i] = k[i];
      wave.dual[i] = dot(bdot[i], k);
      wave.g[i] = at.sphere.g[g][i];
    }
  }
  PlasmaDensity density = plasma_density(field, at.sphere.g);
  elements.plasma2_ry2 = density.plasma2_ry2;
  elements.extent = density.extent;
  elements.density = std::move(density.values);
  return elements;
}

void set_limit_of_small_q(const MeanField& field, const CoulombInteraction& coulomb,
                          const std::vector<Cplx>& rows, ScreenedElements& elements) {
  elements.head = rows.front().real();
  if (elements.n_heads != 3) return;
  const std::size_t edge = rows.size() / 3;
  CMat3 corner{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) corner[i][j] = rows[i * edge + j];
  const CMat3 epsilon = inverse(corner);
  const AverageAtZero average = average_at_zero(
      coulomb, with_symmetry_of(field.crystal(), field.transfers().operations(), epsilon));
  elements.head = average.head.real();
  elements.averages_directions = true;
  // body += Σ_ij l_i (average − corner)_ij r_j with the wings l and r of LongWaveLimit.
  for (std::size_t g = 1; g < elements.waves.size(); ++g) {
    std::array<Cplx, 3> l{}, r{}, left{};
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        l[i] += std::conj(rows[j * edge + g + 2]) * epsilon[j][i];
        r[i] += epsilon[i][j] * rows[j * edge + g + 2];
      }
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        left[j] += l[i] * (average.directions[i][j] - corner[i][j]);
    for (std::size_t i = 0; i < 3; ++i) {
      elements.waves[g].left[i] = {left[i].real(), left[i].imag()};
      elements.waves[g].right[i] = {r[i].real(), r[i].imag()};
    }
  }
}

}  // namespace quasi::gw

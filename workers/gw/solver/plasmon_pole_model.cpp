#include "workers/gw/solver/plasmon_pole_model.hpp"

#include <algorithm>
#include <cmath>
#include <exception>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/coulomb.hpp"

namespace quasi::gw {
namespace {

// Below these an element is left out (spec 6.2; thresholds are in eV² in the field's programs).
constexpr double kNegligible = 1e-6;
constexpr double kNegligible_ry2 = 1e-6 / (kRydberg_ev * kRydberg_ev);
constexpr double kFallbackPole_ry = 2.0;

/// What one row of elements adds to the model's lists: rows are filled side by side and noted in order.
struct RowNotes {
  std::int64_t skipped = 0, invalid = 0;
  std::vector<ImaginaryPole> imaginary;
};

void take(PlasmonPoleModel& model, const std::vector<RowNotes>& rows) {
  for (const RowNotes& row : rows) {
    model.skipped += row.skipped;
    model.invalid += row.invalid;
    model.imaginary.insert(model.imaginary.end(), row.imaginary.begin(), row.imaginary.end());
  }
}

/// Fills one element from I and ω̃², real; below 0 the policy decides.
void set_pole(PlasmonPoleModel& model, RowNotes& row, std::int64_t g, std::int64_t h, Cplx i, double pole2, double coulomb, InvalidMode policy) {
  const auto at = static_cast<std::size_t>(g * model.n + h);
  model.strength[at] = Cplx{};
  model.pole_ry[at] = kStaticPole_ry;
  double pole = 0.0;
  if (pole2 >= 0.0) {
    pole = std::min(std::sqrt(pole2), kStaticPole_ry);
  } else {
    ++row.invalid;
    switch (policy) {
      case InvalidMode::kSkip:
        return;
      case InvalidMode::kImaginary:
        row.imaginary.push_back({static_cast<std::int32_t>(g), static_cast<std::int32_t>(h), std::sqrt(-pole2), 0.5 * i * coulomb});
        return;
      case InvalidMode::kTwoRydberg:
        pole = kFallbackPole_ry;
        break;
      case InvalidMode::kStatic:
        pole = kStaticPole_ry;
        break;
    }
  }
  if (pole == 0.0) return;
  model.strength[at] = 0.5 * pole * coulomb * i;
  model.pole_ry[at] = pole;
}

/// Fills one element from I and the squared frequency ω̃'² (complex).
void set_element(PlasmonPoleModel& model, RowNotes& row, std::int64_t g, std::int64_t h, Cplx i, Cplx squared, double coulomb,
                 InvalidMode policy) {
  const auto at = static_cast<std::size_t>(g * model.n + h);
  model.strength[at] = Cplx{};
  model.pole_ry[at] = kStaticPole_ry;
  const double lambda = std::abs(squared);
  const double cosine = lambda > 0.0 ? squared.real() / lambda : 0.0;
  if (std::abs(i) < kNegligible || lambda < kNegligible_ry2 || std::abs(cosine) < kNegligible) {
    ++row.skipped;
    return;
  }
  set_pole(model, row, g, h, i, lambda / cosine, coulomb, policy);
}

PlasmonPoleModel empty_model(std::int64_t n) {
  PlasmonPoleModel model;
  model.n = n;
  model.strength.resize(static_cast<std::size_t>(n * n));
  model.pole_ry.resize(model.strength.size());
  return model;
}

}  // namespace

WingFactors wing_factors(const DielectricMatrix& epsilon) {
  if (epsilon.at_gamma) return {{0}, 0.0, 0.0};
  return {};
}

WingFactors wing_factors_of_listed_point(const DielectricMatrix& epsilon, const CoulombInteraction& coulomb,
                                         const Mat3& bdot, const Vec3& q) {
  if (epsilon.at_gamma) return {{0}, 0.0, 0.0};
  if (!coulomb.averages()) return {};
  const auto found = std::find(epsilon.sphere.g.begin(), epsilon.sphere.g.end(), IVec3{});
  if (found == epsilon.sphere.g.end()) return {};
  const double length = std::sqrt(metric_dot(bdot, q, q));
  const double average = coulomb.averaged_inverse(q);
  return {{found - epsilon.sphere.g.begin()}, average * length / kEightPi,
          average / (coulomb.averaged(epsilon.q, epsilon.sphere.g[0]) * length)};
}

UnsetVector<Cplx> screening_part(const DielectricMatrix& epsilon, std::size_t frequency, std::int64_t n,
                                 const WingFactors& wings) {
  const std::int64_t edge = epsilon.size();
  const auto& inverse = epsilon.inverse.at(frequency);
  UnsetVector<Cplx> part(static_cast<std::size_t>(n * n));
  std::vector<char> is_wing(static_cast<std::size_t>(edge), 0);
  for (const std::int64_t g : wings.wings) is_wing[static_cast<std::size_t>(g)] = 1;
#pragma omp parallel for schedule(static)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < n; ++h) {
      const bool row = is_wing[static_cast<std::size_t>(g)] != 0, column = is_wing[static_cast<std::size_t>(h)] != 0;
      const double factor = row == column ? 1.0 : row ? wings.row : wings.column;
      part[static_cast<std::size_t>(g * n + h)] = (g == h ? 1.0 : 0.0) - factor * inverse[static_cast<std::size_t>(g * edge + h)];
    }
  return part;
}

std::vector<double> averaged_coulomb(const DielectricMatrix& epsilon, const GSphere& sphere, const CoulombInteraction& coulomb) {
  const Vec3 q = epsilon.at_gamma ? Vec3{} : epsilon.q;
  std::vector<double> values(sphere.g.size());
  std::exception_ptr failure;  // an exception must not leave a parallel region by itself
#pragma omp parallel for schedule(dynamic, 8)
  for (std::size_t g = 0; g < values.size(); ++g) {
    try {
      values[g] = coulomb.averaged(q, sphere.g[g]);
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  return values;
}

PlasmonPoleModel hybertsen_louie(const MeanField& field, const DielectricMatrix& epsilon, std::int64_t n,
                                 const CoulombInteraction& coulomb, const WingFactors& wings, InvalidMode policy) {
  const Mat3& bdot = field.crystal().bdot;
  const GIndex index(field.density.header.g);
  const auto rho = [&](const IVec3& g) {
    const std::int32_t at = index.find(g);
    Cplx sum;
    if (at >= 0)
      for (const auto& spin : field.density.values) sum += spin[static_cast<std::size_t>(at)];
    return sum;
  };
  const double electrons = rho({}).real();
  const double plasma2 = 16.0 * kPi * electrons / field.crystal().volume_bohr3;
  const UnsetVector<Cplx> part = screening_part(epsilon, 0, n, wings);
  const std::vector<double> v = averaged_coulomb(epsilon, epsilon.sphere, coulomb);
  const Vec3 q = epsilon.at_gamma ? Vec3{} : epsilon.q;
  PlasmonPoleModel model = empty_model(n);
  std::vector<RowNotes> rows(static_cast<std::size_t>(n));
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < n; ++h) {
      const IVec3& gg = epsilon.sphere.g[static_cast<std::size_t>(g)];
      const IVec3& gh = epsilon.sphere.g[static_cast<std::size_t>(h)];
      Cplx omega2;
      if (epsilon.at_gamma && (gg == IVec3{} || gh == IVec3{}))
        omega2 = gg == gh ? plasma2 : 0.0;
      else
        omega2 = plasma2 / electrons * rho(gg - gh) * metric_dot(bdot, q + to_real(gg), q + to_real(gh)) *
                 v[static_cast<std::size_t>(g)] / kEightPi;
      const Cplx i = part[static_cast<std::size_t>(g * n + h)];
      const bool negligible = std::abs(i) < kNegligible || std::abs(omega2) < kNegligible_ry2;
      set_element(model, rows[static_cast<std::size_t>(g)], g, h, negligible ? Cplx{} : i, negligible ? Cplx{} : omega2 / i, v[static_cast<std::size_t>(h)], policy);
    }
  take(model, rows);
  return model;
}

PlasmonPoleModel godby_needs(const DielectricMatrix& epsilon, std::int64_t n,
                             const CoulombInteraction& coulomb, const WingFactors& wings, InvalidMode policy, double frequency_ry) {
  const UnsetVector<Cplx> at_zero = screening_part(epsilon, 0, n, wings);
  const UnsetVector<Cplx> at_imaginary = screening_part(epsilon, 1, n, wings);
  const std::vector<double> v = averaged_coulomb(epsilon, epsilon.sphere, coulomb);
  PlasmonPoleModel model = empty_model(n);
  std::vector<RowNotes> rows(static_cast<std::size_t>(n));
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < n; ++h) {
      const auto at = static_cast<std::size_t>(g * n + h);
      // Left out only where both matrices vanish: an element that hardly changes up to iω_a has a distant pole
      // and acts statically, which is not nothing.
      if (std::abs(at_zero[at]) < kNegligible && std::abs(at_imaginary[at]) < kNegligible) {
        set_element(model, rows[static_cast<std::size_t>(g)], g, h, {}, {}, 0.0, policy);
        continue;
      }
      const Cplx difference = at_zero[at] - at_imaginary[at];
      const double squared = frequency_ry * frequency_ry * (at_imaginary[at] / difference).real();
      // No change at all: ω̃ is infinite.
      set_pole(model, rows[static_cast<std::size_t>(g)], g, h, at_zero[at], difference == Cplx{} ? kStaticPole_ry * kStaticPole_ry : squared, v[static_cast<std::size_t>(h)],
               policy);
    }
  take(model, rows);
  return model;
}

}  // namespace quasi::gw

#include "workers/gw/solver/self_energy/plasmon_pole_model.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/backend/ranks/parallel_failure.hpp"
#include "workers/gw/kernels/pole_sums/changes/screened_elements.hpp"
#include "workers/gw/physics/coulomb.hpp"

namespace quasi::gw {
namespace {

constexpr double kFallbackPole_ry = 2.0;

/// Counts and imaginary poles that one row of elements adds to the model. Threads fill the rows
/// side by side; take() adds the notes in the order of the rows.
struct RowNotes {
  std::int64_t skipped = 0, invalid = 0;
  bool real = true;  ///< no strength of the row has an imaginary part
  std::vector<ImaginaryPole> imaginary;
};

/// One element of the model to be made: row G, column G'.
struct PoleElement {
  std::int64_t g = 0, h = 0;
  Cplx screening;           ///< I_GG' = δ_GG' − ε⁻¹_GG'(ω = 0)
  double coulomb_ry = 0.0;  ///< interaction that follows I_GG' in W
};

void take(PlasmonPoleModel& model, const std::vector<RowNotes>& rows) {
  model.real = true;
  for (const RowNotes& row : rows) {
    model.skipped += row.skipped;
    model.invalid += row.invalid;
    model.real = model.real && row.real;
    model.imaginary.insert(model.imaginary.end(), row.imaginary.begin(), row.imaginary.end());
  }
}

/// Fills one element of the model from I and the real ω̃² (`pole2`, Ry²). `policy` decides where
/// ω̃² is negative.
void set_pole(PlasmonPoleModel& model, RowNotes& row, const PoleElement& element, double pole2,
              InvalidMode policy) {
  const auto at = static_cast<std::size_t>(element.g * model.n + element.h);
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
        row.imaginary.push_back({static_cast<std::int32_t>(element.g),
                                 static_cast<std::int32_t>(element.h), std::sqrt(-pole2),
                                 0.5 * element.screening * element.coulomb_ry});
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
  model.strength[at] = 0.5 * pole * element.coulomb_ry * element.screening;
  model.pole_ry[at] = pole;
}

/// Gives an element the strength 0 and counts it as negligible.
void leave_out(PlasmonPoleModel& model, RowNotes& row, std::int64_t g, std::int64_t h) {
  const auto at = static_cast<std::size_t>(g * model.n + h);
  model.strength[at] = Cplx{};
  model.pole_ry[at] = kStaticPole_ry;
  ++row.skipped;
}

/// Returns δ − ε⁻¹ of one element, with scaled wings.
inline Cplx screening_element(const UnsetVector<Cplx>& inverse, std::int64_t edge,
                              const WingFactors& wings, const std::vector<char>& is_wing,
                              std::int64_t g, std::int64_t h) {
  const bool row = is_wing[static_cast<std::size_t>(g)] != 0,
             column = is_wing[static_cast<std::size_t>(h)] != 0;
  const double factor = row == column ? 1.0 : row ? wings.row : wings.column;
  return (g == h ? 1.0 : 0.0) - factor * inverse[static_cast<std::size_t>(g * edge + h)];
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

WingFactors wing_factors_of_listed_point(const DielectricMatrix& epsilon,
                                         const CoulombInteraction& coulomb, const Mat3& bdot,
                                         const Vec3& q) {
  if (epsilon.at_gamma) return {{0}, 0.0, 0.0};
  if (!coulomb.averages()) return {};
  const auto found = std::find(epsilon.sphere.g.begin(), epsilon.sphere.g.end(), IVec3{});
  if (found == epsilon.sphere.g.end()) return {};
  const double length = std::sqrt(metric_dot(bdot, q, q));
  const double average = coulomb.averaged_inverse(q);
  return {{found - epsilon.sphere.g.begin()},
          average * length / kEightPi,
          average / (coulomb.averaged(epsilon.q, epsilon.sphere.g[0]) * length)};
}

UnsetVector<Cplx> screening_part(const DielectricMatrix& epsilon, std::size_t frequency,
                                 std::int64_t n, const WingFactors& wings) {
  const std::int64_t edge = epsilon.size();
  const auto& inverse = epsilon.inverse.at(frequency);
  UnsetVector<Cplx> part(static_cast<std::size_t>(n * n));
  std::vector<char> is_wing(static_cast<std::size_t>(edge), 0);
  for (const std::int64_t g : wings.wings) is_wing[static_cast<std::size_t>(g)] = 1;
#pragma omp parallel for schedule(static)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < n; ++h)
      part[static_cast<std::size_t>(g * n + h)] =
          screening_element(inverse, edge, wings, is_wing, g, h);
  return part;
}

std::vector<double> averaged_coulomb(const DielectricMatrix& epsilon, const GSphere& sphere,
                                     const CoulombInteraction& coulomb) {
  const Vec3 q = epsilon.at_gamma ? Vec3{} : epsilon.q;
  std::vector<double> values(sphere.g.size());
  ParallelFailure failure;
#pragma omp parallel for schedule(dynamic, 8)
  for (std::size_t g = 0; g < values.size(); ++g)
    failure.guard([&] { values[g] = coulomb.averaged(q, sphere.g[g]); });
  failure.rethrow();
  return values;
}

namespace {

/// The elements δ − ε⁻¹ and the interactions from which the poles of a model are made.
///
/// If W is Hermitian (all interactions averaged alike), the model is Hermitian to the last bit:
/// the lower triangle is made of both triangles of I, Ĩ = ½ (r_G' I_GG'/r_G + h.c.) with r = v̄^½,
/// and mirrored. Without that, rounding could put an element and its mirror image on different
/// sides of a threshold, and sums over a model that is not Hermitian take twice the time.
/// Elsewhere (the wing rule of BerkeleyGW, interactions that vanish or change sign) every element
/// is made independently.
class Elements {
 public:
  Elements(const DielectricMatrix& epsilon, std::int64_t n, const WingFactors& wings,
           const CoulombInteraction& coulomb)
      : epsilon_(epsilon),
        edge_(epsilon.size()),
        n_(n),
        wings_(wings),
        coulomb_(averaged_coulomb(epsilon, epsilon.sphere, coulomb)),
        is_wing_(static_cast<std::size_t>(edge_), 0) {
    for (const std::int64_t g : wings.wings) is_wing_[static_cast<std::size_t>(g)] = 1;
    // An interaction that is not averaged changes between q₀, where ε⁻¹ was made, and q = 0.
    hermitian_ =
        coulomb.options().wing_rule == WingRule::kShortest &&
        (coulomb.averages() || !epsilon.at_gamma) &&
        std::all_of(coulomb_.begin(), coulomb_.begin() + n, [](double v) { return v > 0.0; });
    for (std::int64_t g = 0; g < n && hermitian_; ++g)
      root_.push_back(std::sqrt(coulomb_[static_cast<std::size_t>(g)]));
  }

  /// δ − ε⁻¹, symmetrised to Ĩ where W is Hermitian.
  Cplx screening(std::size_t frequency, std::int64_t g, std::int64_t h) const {
    if (!hermitian_) return plain(frequency, g, h);
    const double ratio = root_[static_cast<std::size_t>(h)] / root_[static_cast<std::size_t>(g)];
    return 0.5 * (ratio * plain(frequency, g, h) + std::conj(plain(frequency, h, g)) / ratio);
  }
  /// Interaction in the squared strength Ω²_GG': r_G r_G' where W is Hermitian, else v̄_G.
  double plasma_coulomb(std::int64_t g, std::int64_t h) const {
    return hermitian_ ? root_[static_cast<std::size_t>(g)] * root_[static_cast<std::size_t>(h)]
                      : coulomb_[static_cast<std::size_t>(g)];
  }
  /// Interaction that follows I_GG' in W: r_G r_G' where W is Hermitian, else v̄_G'.
  double screening_coulomb(std::int64_t g, std::int64_t h) const {
    return hermitian_ ? plasma_coulomb(g, h) : coulomb_[static_cast<std::size_t>(h)];
  }

  /// Makes a model by fill(model, notes, g, h) for every element, or for those of the lower
  /// triangle where the model is Hermitian.
  template <typename Fill>
  PlasmonPoleModel model(const Fill& fill) const {
    constexpr std::int64_t kTile =
        64;  // rows and columns at a time, so that both triangles stay in cache
    PlasmonPoleModel model = empty_model(n_);
    model.hermitian = hermitian_;
    std::vector<RowNotes> rows(static_cast<std::size_t>(n_));
    const std::int64_t n_tiles = (n_ + kTile - 1) / kTile;
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t i = 0; i < n_tiles; ++i) {
      const std::int64_t tile = n_tiles - 1 - i;  // the longest go first
      for (std::int64_t first = 0; first <= (hermitian_ ? tile * kTile : n_ - 1); first += kTile)
        for (std::int64_t g = tile * kTile; g < std::min(n_, (tile + 1) * kTile); ++g)
          for (std::int64_t h = first; h < std::min(hermitian_ ? g + 1 : n_, first + kTile); ++h) {
            RowNotes& notes = rows[static_cast<std::size_t>(g)];
            const std::int64_t skipped = notes.skipped, invalid = notes.invalid;
            const std::size_t poles = notes.imaginary.size();
            fill(model, notes, g, h);
            const auto at = static_cast<std::size_t>(g * n_ + h),
                       mirrored = static_cast<std::size_t>(h * n_ + g);
            notes.real = notes.real && model.strength[at].imag() == 0.0;
            if (!hermitian_ || g == h) continue;
            model.strength[mirrored] = std::conj(model.strength[at]);
            model.pole_ry[mirrored] = model.pole_ry[at];
            notes.skipped += notes.skipped - skipped;
            notes.invalid += notes.invalid - invalid;
            if (notes.imaginary.size() == poles) continue;
            const ImaginaryPole pole = notes.imaginary.back();
            notes.imaginary.push_back({pole.h, pole.g, pole.pole_ry, std::conj(pole.half_i_v)});
          }
    }
    take(model, rows);
    return model;
  }

 private:
  Cplx plain(std::size_t frequency, std::int64_t g, std::int64_t h) const {
    return screening_element(epsilon_.inverse[frequency], edge_, wings_, is_wing_, g, h);
  }
  const DielectricMatrix& epsilon_;
  std::int64_t edge_, n_;
  const WingFactors& wings_;
  std::vector<double> coulomb_, root_;
  std::vector<char> is_wing_;
  bool hermitian_ = false;
};

}  // namespace

PlasmaDensity plasma_density(const MeanField& field, const std::vector<IVec3>& waves) {
  const GIndex index(field.density.header.g);
  const auto rho = [&](const IVec3& g) {
    const std::int32_t at = index.find(g);
    Cplx sum;
    if (at >= 0)
      for (const auto& spin : field.density.values) sum += spin[static_cast<std::size_t>(at)];
    return sum;
  };
  const double electrons = rho({}).real();
  PlasmaDensity density{.plasma2_ry2 = 16.0 * kPi * electrons / field.crystal().volume_bohr3,
                        .extent = {},
                        .values = {}};
  for (const IVec3& g : waves)
    for (std::size_t i = 0; i < 3; ++i)
      density.extent[i] = std::max(density.extent[i], 2 * std::abs(g[i]));
  const auto [x, y, z] = density.extent;
  for (int i = -x; i <= x; ++i)
    for (int j = -y; j <= y; ++j)
      for (int k = -z; k <= z; ++k)
        density.values.push_back(density.plasma2_ry2 / electrons * rho({i, j, k}));
  return density;
}

PlasmonPoleModel hybertsen_louie(const MeanField& field, const DielectricMatrix& epsilon,
                                 std::int64_t n, const CoulombInteraction& coulomb,
                                 const WingFactors& wings, InvalidMode policy) {
  const Mat3& bdot = field.crystal().bdot;
  const PlasmaDensity density = plasma_density(
      field, {epsilon.sphere.g.begin(), epsilon.sphere.g.begin() + static_cast<std::ptrdiff_t>(n)});
  const Vec3 q = epsilon.at_gamma ? Vec3{} : epsilon.q;
  const Elements elements(epsilon, n, wings, coulomb);
  return elements.model(
      [&](PlasmonPoleModel& model, RowNotes& notes, std::int64_t g, std::int64_t h) {
        const IVec3& gg = epsilon.sphere.g[static_cast<std::size_t>(g)];
        const IVec3& gh = epsilon.sphere.g[static_cast<std::size_t>(h)];
        Complex<double> square;
        if (epsilon.at_gamma && (gg == IVec3{} || gh == IVec3{})) {
          square.re = gg == gh ? density.plasma2_ry2 : 0.0;
        } else {
          const Cplx of_difference = density.at(gg - gh);
          const double factor = metric_dot(bdot, q + to_real(gg), q + to_real(gh)) *
                                elements.plasma_coulomb(g, h) / kEightPi;
          square = {factor * of_difference.real(), factor * of_difference.imag()};
        }
        const Cplx i = elements.screening(0, g, h);
        const double pole2 = hybertsen_louie_square({i.real(), i.imag()}, square);
        if (pole2 == 0.0)
          leave_out(model, notes, g, h);
        else
          set_pole(model, notes,
                   {.g = g, .h = h, .screening = i, .coulomb_ry = elements.screening_coulomb(g, h)},
                   pole2, policy);
      });
}

PlasmonPoleModel godby_needs(const DielectricMatrix& epsilon, std::int64_t n,
                             const CoulombInteraction& coulomb, const WingFactors& wings,
                             InvalidMode policy, double frequency_ry) {
  const Elements elements(epsilon, n, wings, coulomb);
  return elements.model([&](PlasmonPoleModel& model, RowNotes& notes, std::int64_t g,
                            std::int64_t h) {
    const Cplx at_zero = elements.screening(0, g, h), at_imaginary = elements.screening(1, g, h);
    // An element is left out only where both matrices vanish. An element that hardly changes up to
    // iω_a has a distant pole and acts statically.
    if (std::abs(at_zero) < kNegligible && std::abs(at_imaginary) < kNegligible) {
      leave_out(model, notes, g, h);
      return;
    }
    const Cplx difference = at_zero - at_imaginary;
    const double squared = frequency_ry * frequency_ry * (at_imaginary / difference).real();
    // Without any change up to iω_a, ω̃ is infinite.
    set_pole(model, notes,
             {.g = g, .h = h, .screening = at_zero, .coulomb_ry = elements.screening_coulomb(g, h)},
             difference == Cplx{} ? kStaticPole_ry * kStaticPole_ry : squared, policy);
  });
}

}  // namespace quasi::gw

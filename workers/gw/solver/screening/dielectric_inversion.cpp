#include "workers/gw/solver/screening/dielectric_inversion.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/dielectric.hpp"
#include "workers/gw/solver/ordered_sum.hpp"
#include "workers/gw/solver/screening/polarizability/packed_chi.hpp"
#include "workers/gw/solver/screening/polarizability/symmetry_of_chi.hpp"
#include "workers/gw/solver/screening/slices/sliced_inversion.hpp"
#include "workers/gw/solver/screening/static_subspace.hpp"

namespace quasi::gw {
namespace {

/// Copies an empty matrix into one in which several plane waves stand for G = 0, as in χ for q → 0.
/// v is repeated for each of them.
DielectricMatrix widened(const DielectricMatrix& m, std::int64_t n_heads) {
  DielectricMatrix wide{.q = m.q,
                        .at_gamma = m.at_gamma,
                        .sphere = m.sphere,
                        .coulomb = m.coulomb,
                        .inverse = {},
                        .frequencies_ry = m.frequencies_ry,
                        .n_real = m.n_real,
                        .epsilon_diagonal = {},
                        .long_wave = {}};
  wide.coulomb = widened_coulomb(std::move(wide.coulomb), n_heads);
  return wide;
}

/// Inverts ε at every frequency of `chi` and keeps the diagonal of ε(0).
void invert_frequencies(const PartialChi& chi, const EpsilonOptions& options, GwKernels& kernels,
                        DielectricMatrix& matrix) {
  const auto n = static_cast<std::int64_t>(matrix.coulomb.size());
  // An interaction truncated to a box or wire may be negative at some q+G. Then ε is inverted
  // instead of ε̃.
  const bool positive = *std::min_element(matrix.coulomb.begin(), matrix.coulomb.end()) > 0.0;
  const std::vector<Cplx> diagonal = chi.diagonal();
  for (std::size_t g = 0; g < diagonal.size(); ++g)
    matrix.epsilon_diagonal.push_back(1.0 - matrix.coulomb[g] * diagonal[g]);
  for (std::int64_t f = 0; f <= chi.shape().n_frequencies; ++f) {
    auto& inverse = matrix.inverse.emplace_back(static_cast<std::size_t>(n * n));
    kernels.polarizability().invert_dielectric(
        chi, f,
        {.coulomb = view<const double>(matrix.coulomb, n),
         .positive = positive,
         .definite = positive && options.frequencies_ry[static_cast<std::size_t>(f)].real() == 0.0},
        view<Cplx>(inverse, n, n));
  }
}

/// Inverts the Hermitian ε̃ = 1 − v^½ χ v^½ in slices and appends ε⁻¹ to matrix.inverse.
/// @param chi  χ(0), [n][n]; the triangle G ≤ G' alone is read
template <typename T>
void invert_triangle(UnsetVector<T> chi, std::int64_t slices, DeviceTeam& team,
                     DielectricMatrix& matrix) {
  const auto n = static_cast<std::int64_t>(matrix.coulomb.size());
  const double* const v = matrix.coulomb.data();
  const View<T, 2> a = view<T>(chi, n, n);
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = g; h < n; ++h)
      a(g, h) = (g == h ? 1.0 : 0.0) - dielectric_factor(v[g], v[h], true) * a(g, h);
  invert_in_slices(a, slices, team);
  auto& inverse = matrix.inverse.emplace_back(static_cast<std::size_t>(n * n));
#pragma omp parallel for schedule(dynamic, 16)
  for (std::int64_t g = 0; g < n; ++g)
    for (std::int64_t h = 0; h < n; ++h) {
      const Cplx element = g <= h ? Cplx(a(g, h)) : std::conj(Cplx(a(h, g)));
      inverse[static_cast<std::size_t>(g * n + h)] = element * inverse_factor(v[g], v[h], true);
    }
}

/// Inverts ε(0) of χ in slices and stores the diagonal of ε(0) in matrix.epsilon_diagonal.
void invert_static_in_slices(std::unique_ptr<PartialChi> chi, std::int64_t slices, DeviceTeam& team,
                             DielectricMatrix& matrix) {
  if (*std::min_element(matrix.coulomb.begin(), matrix.coulomb.end()) <= 0.0)
    throw InvalidInput(
        "slices of ε need a Coulomb interaction that is positive everywhere; leave "
        "epsilon.column_slices out with this truncation");
  const std::vector<Cplx> diagonal = chi->diagonal();
  for (std::size_t g = 0; g < diagonal.size(); ++g)
    matrix.epsilon_diagonal.push_back(1.0 - matrix.coulomb[g] * diagonal[g]);
  const auto n = static_cast<std::int64_t>(matrix.coulomb.size());
  if (const auto* packed = dynamic_cast<const PackedSum*>(chi.get());
      packed != nullptr && packed->is_real()) {
    UnsetVector<double> values(static_cast<std::size_t>(n * n));
    const double* const from = packed->values().data() + 1;
#pragma omp parallel for schedule(dynamic, 16)
    for (std::int64_t g = 0; g < n; ++g)
      std::copy_n(from + g * n - g * (g - 1) / 2, n - g, values.data() + g * n + g);
    chi = {};
    invert_triangle(std::move(values), slices, team, matrix);
    return;
  }
  UnsetVector<Cplx> values(static_cast<std::size_t>(n * n));
  chi->read(values.data());
  chi = {};
  invert_triangle(std::move(values), slices, team, matrix);
}

/// Calculates ε⁻¹ in two sweeps over the pairs: χ(0) in full, then the other frequencies between
/// its leading eigenvectors.
/// @return χ(0) between the first n_heads plane waves, [n_heads][n_heads]
std::vector<Cplx> invert_in_two_sweeps(DielectricMatrix& m, Polarizability& sum,
                                       const EpsilonOptions& options, std::int64_t n_heads,
                                       GwKernels& kernels, Progress& progress) {
  if (*std::min_element(m.coulomb.begin(), m.coulomb.end()) <= 0.0)
    throw InvalidInput(
        "a static subspace needs a Coulomb interaction that is positive everywhere; leave "
        "epsilon.subspace_tolerance out with this truncation");
  const auto total = [&] {
    std::vector<ChiNode> nodes;
    for (std::int64_t index = 0; index < sum.portions(); ++index)
      push_node(nodes, {index, 1, sum.portion(index, kernels, progress)});
    return unpacked(closed(std::move(nodes)), kernels.polarizability());
  };
  const auto values_of = [](const PartialChi& chi) {
    std::vector<Cplx> values(static_cast<std::size_t>(chi.shape().size()));
    chi.read(values.data());
    return values;
  };
  std::vector<Cplx> chi, chi_corner;
  {
    const auto whole = total();
    invert_frequencies(*whole, options, kernels, m);
    chi = values_of(*whole);
    chi_corner = whole->corner(n_heads);
  }
  const std::size_t n = m.coulomb.size();
  fill_lower_triangle(view<Cplx>(chi, n, n));
  const std::vector<Cplx> basis =
      subspace_of(m, chi, options.subspace, static_cast<std::size_t>(n_heads), kernels);
  const std::size_t n_b = basis.size() / n;
  std::vector<Cplx> weighted = basis;
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t b = 0; b < n_b; ++b) weighted[g * n_b + b] *= std::sqrt(m.coulomb[g]);
  sum.project_on(std::move(weighted));
  add_subspace_frequencies(m, chi, basis, values_of(*total()), options, kernels);
  return chi_corner;
}

}  // namespace

DielectricMatrix DielectricInversion::empty_matrix(const Vec3& q) const {
  DielectricMatrix matrix;
  matrix.q = q;
  matrix.at_gamma = is_small(field_, q);
  if (matrix.at_gamma && !field_.shifted && !field_.by_velocity)
    throw InvalidInput(
        "the point q → 0 needs wavefunctions on a slightly shifted grid (meanfield.wfnq), or the "
        "Hamiltonian (meanfield.vsc and meanfield.vkb)");
  matrix.sphere = make_g_sphere(field_.crystal().bdot, matrix.at_gamma ? Vec3{} : q,
                                options_.epsilon_cutoff_ry);
  matrix.coulomb.resize(matrix.sphere.g.size());
  // By k·p the matrix is the limit itself. q₀ gives the direction and length of the head alone.
  // Elsewhere v(G) is used, so that q₀ does not break the symmetry of the crystal.
  const bool limit = matrix.at_gamma && field_.by_velocity;
#pragma omp parallel for schedule(dynamic, 8)
  for (std::size_t g = 0; g < matrix.coulomb.size(); ++g)
    matrix.coulomb[g] = coulomb_.plain(limit && g > 0 ? Vec3{} : q, matrix.sphere.g[g]);
  matrix.frequencies_ry = options_.frequencies_ry;
  matrix.n_real = options_.n_real;
  return matrix;
}

void DielectricInversion::fold(DielectricMatrix wide, const std::vector<Cplx>& chi_corner,
                               DielectricMatrix& m) const {
  const bool averages = coulomb_.averages();
  const Vec3 direction = unit_direction(field_.crystal(), m.q);
  for (UnsetVector<Cplx>& inverse : wide.inverse) {
    LongWaveLimit wave;
    fold_directions(inverse, m.coulomb, direction, m.inverse.emplace_back(),
                    averages ? &wave : nullptr);
    inverse = {};
    if (averages) m.long_wave.push_back(std::move(wave));
  }
  if (wide.reduced.used()) {
    for (std::size_t f = 1; f < wide.reduced.inner.size() && averages; ++f) {
      UnsetVector<Cplx> not_kept;
      fold_directions(expanded_inverse(wide.reduced, f, wide.coulomb), m.coulomb, direction,
                      not_kept, &m.long_wave.emplace_back());
    }
    m.reduced = std::move(wide.reduced);
    m.reduced.direction = direction;
  }
  double head = 0.0;  // q̂ᵀ χ q̂ from the triangle i ≤ j that PartialChi holds
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = i; j < 3; ++j)
      head += (i == j ? 1.0 : 2.0) * direction[i] * direction[j] * chi_corner[3 * i + j].real();
  m.epsilon_diagonal.assign(wide.epsilon_diagonal.begin() + 2, wide.epsilon_diagonal.end());
  m.epsilon_diagonal[0] = 1.0 - m.coulomb[0] * head;
  m.subspace_vectors = wide.subspace_vectors - 2;  // G = 0 counts once
  m.subspace_error = wide.subspace_error;
}

void DielectricInversion::invert(const PartialChi& chi, GwKernels& kernels,
                                 DielectricMatrix& m) const {
  const std::int64_t n_heads = head_count(field_, m.at_gamma);
  if (n_heads == 1) {
    invert_frequencies(chi, options_, kernels, m);
    return;
  }
  DielectricMatrix wide = widened(m, n_heads);
  invert_frequencies(chi, options_, kernels, wide);
  fold(std::move(wide), chi.corner(n_heads), m);
}

void DielectricInversion::invert_in_slices(std::unique_ptr<PartialChi> chi, DeviceTeam& team,
                                           DielectricMatrix& m) const {
  const std::int64_t n_heads = head_count(field_, m.at_gamma), slices = options_.column_slices;
  if (n_heads == 1) {
    invert_static_in_slices(std::move(chi), slices, team, m);
    return;
  }
  DielectricMatrix wide = widened(m, n_heads);
  const std::vector<Cplx> corner = chi->corner(n_heads);
  invert_static_in_slices(std::move(chi), slices, team, wide);
  fold(std::move(wide), corner, m);
}

std::unique_ptr<const DielectricInverse> DielectricInversion::invert_definite(
    std::unique_ptr<PartialChi> chi, GwKernels& kernels, const DielectricMatrix& m) const {
  const std::vector<double> coulomb = widened_coulomb(m.coulomb, head_count(field_, m.at_gamma));
  return kernels.polarizability().invert_definite(std::move(chi),
                                                  view<const double>(coulomb, coulomb.size()));
}

void DielectricInversion::invert_in_subspace(Polarizability& sum, GwKernels& kernels,
                                             Progress& progress, DielectricMatrix& m) const {
  const std::int64_t n_heads = head_count(field_, m.at_gamma);
  DielectricMatrix wide = widened(m, n_heads);
  const std::vector<Cplx> corner =
      invert_in_two_sweeps(wide, sum, options_, n_heads, kernels, progress);
  sum.release();
  if (n_heads == 1)
    m = std::move(wide);
  else
    fold(std::move(wide), corner, m);
}

}  // namespace quasi::gw

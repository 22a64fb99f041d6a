#include "workers/gw/solver/epsilon.hpp"

#include <cblas.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/backend/memory_budget.hpp"
#include "workers/gw/solver/ordered_sum.hpp"

namespace quasi::gw {
namespace {

/// Portions of one q: what one device works at between two sums. Fixed, so that bits do not depend on how many
/// devices there are; each costs one transfer of χ.
constexpr std::int64_t kPortions = 8;

View<const Cplx, 2> bands_view(const RotatedWaves& waves) {
  const auto n_pw = static_cast<std::int64_t>(waves.g.size());
  return {waves.coefficients.data(), {static_cast<std::int64_t>(waves.coefficients.size()) / n_pw, n_pw}};
}

/// Adds the time from its making, or from the step before, to one step of a profile.
class StepClock {
 public:
  explicit StepClock(EpsilonProfile* profile) : profile_(profile) {}
  void step(const char* name) {
    const auto now = std::chrono::steady_clock::now();
    if (profile_ != nullptr) profile_->add(name, std::chrono::duration<double>(now - last_).count());
    last_ = now;
  }

 private:
  EpsilonProfile* profile_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

std::vector<std::int32_t> positions(const std::vector<IVec3>& g, const std::array<int, 3>& box) {
  std::vector<std::int32_t> at(g.size());
  for (std::size_t i = 0; i < g.size(); ++i) at[i] = box_position(g[i], box);
  return at;
}

}  // namespace

std::vector<Cplx> summed_over_group(std::vector<Cplx> chi, const GSphere& sphere,
                                    const std::vector<SymmetryOperation>& operations,
                                    const std::vector<int>& group, bool at_gamma) {
  if (group.size() == 1 && operations[static_cast<std::size_t>(group[0])].rotation == IMat3{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}} &&
      operations[static_cast<std::size_t>(group[0])].translation == Vec3{})
    return chi;
  const auto n = static_cast<std::size_t>(sphere.size());
  const GIndex index(sphere.g);
  std::vector<Cplx> sum(n * n, Cplx{});
  std::vector<std::size_t> from(n);
  std::vector<Cplx> phase(n);
  for (const int s : group) {
    const SymmetryOperation& operation = operations[static_cast<std::size_t>(s)];
    const IMat3 back = inverse(operation.rotation);
    IVec3 g0{};
    if (!at_gamma) nearest_lattice_point(sphere.q - multiply(operation.rotation, sphere.q), &g0, 1e-4);
    for (std::size_t g = 0; g < n; ++g) {
      const IVec3 shifted = sphere.g[g] + g0;
      const std::int32_t found = index.find(multiply(back, shifted));
      if (found < 0)
        throw InvalidInput("the ε sphere is not closed under the crystal's symmetry: a shell of plane waves lies on the "
                           "cut-off; change epsilon.cutoff_ry a little");
      from[g] = static_cast<std::size_t>(found);
      phase[g] = std::polar(1.0, -dot(to_real(shifted), operation.translation));
    }
#pragma omp parallel for schedule(static)
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) sum[g * n + h] += phase[g] * std::conj(phase[h]) * chi[from[g] * n + from[h]];
  }
  const double scale = 1.0 / static_cast<double>(group.size());
  for (Cplx& value : sum) value *= scale;
  return sum;
}

std::vector<Vec3> screening_points(const MeanField& field) {
  std::vector<Vec3> points;
  for (const Vec3& k : field.waves.k) {
    IVec3 g;
    points.push_back(nearest_lattice_point(k, &g) ? field.q0 : k);
  }
  return points;
}

namespace {

/// Operations by whose wedge of k the sum goes. At q₀ the matrix elements are O(q₀) and inherit the states' own symmetry error divided by q₀ (4e-6 of
/// the wings in a typical file), so the full zone is summed there. So it is with a subspace, whose vectors need not be closed under the group.
std::vector<int> group_of_sum(const MeanField& field, const Vec3& q, bool at_gamma, const EpsilonOptions& options) {
  if (at_gamma || (options.subspace.wanted() && options.frequencies_ry.size() > 1)) return {0};
  return little_group(field.zone.operations(), q, false);
}

bool is_small(const MeanField& field, const Vec3& q) { return metric_dot(field.crystal().bdot, q, q) < 1e-3; }

}  // namespace

std::int64_t polarizability_pairs(const MeanField& field, const Vec3& q, const EpsilonOptions& options) {
  const auto wedge = static_cast<std::int64_t>(orbits(field.zone, group_of_sum(field, q, is_small(field, q), options)).size());
  std::int64_t pairs = 0;
  for (const int n_v : field.n_occupied_of_spin) pairs += wedge * n_v * (options.bands - n_v);
  return pairs;
}

Polarizability::Polarizability(const MeanField& field, const DielectricMatrix& at, const EpsilonOptions& options, EpsilonProfile* profile)
    : field_(field), at_(at), options_(options), profile_(profile) {
  group_ = group_of_sum(field, at.q, at.at_gamma, options);
  wedge_ = orbits(field.zone, group_);
  const std::int64_t n_g = at.size();
  const auto n_other = static_cast<std::int64_t>(options.frequencies_ry.size()) - 1;
  for (int spin = 0; spin < field.n_spins(); ++spin) {
    const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    const int n_c = options.bands - n_v;
    if (n_v == 0) continue;
    // A static χ alone takes its pairs in blocks of the kernels' own, so only other frequencies bound the block here.
    const std::int64_t fits = items_that_fit(options.memory_budget_bytes, 16 * n_g * n_g * (2 + 2 * n_other), 48 * n_c * n_g, "polarizability");
    std::int64_t block = n_other == 0 ? n_v : std::min<std::int64_t>(n_v, fits);
    // Few k-points: blocks enough for every portion.
    const auto n_wedge = static_cast<std::int64_t>(wedge_.size());
    const auto blocks_wanted = (kPortions + n_wedge - 1) / n_wedge;
    if (static_cast<std::int64_t>(wedge_.size()) < kPortions) block = std::max<std::int64_t>(1, std::min(block, (n_v + blocks_wanted - 1) / blocks_wanted));
    for (std::size_t orbit = 0; orbit < wedge_.size(); ++orbit)
      for (std::int64_t v = 0; v < n_v; v += block) units_.push_back({spin, orbit, {v, std::min<std::int64_t>(n_v, v + block)}});
  }
  portions_ = std::min<std::int64_t>(kPortions, static_cast<std::int64_t>(units_.size()));
}

Polarizability::Resident& Polarizability::resident(GwKernels& kernels) const {
  const std::lock_guard lock(residents_->mutex);
  return residents_->of[&kernels];
}

std::vector<Cplx> Polarizability::portion(std::int64_t index, GwKernels& kernels, Progress& progress) const {
  StepClock clock(profile_);
  const bool by_velocity = at_.at_gamma && field_.by_velocity;
  const bool shifted = at_.at_gamma && !by_velocity;
  const Wavefunctions& left_waves = shifted ? *field_.shifted : field_.waves;
  const BrillouinZone& left_zone = shifted ? *field_.shifted_zone : field_.zone;
  const auto& operations = field_.zone.operations();
  const std::int64_t n_g = at_.size();
  const bool projected = !basis_.empty();
  const std::int64_t n_basis = projected ? static_cast<std::int64_t>(basis_.size()) / n_g : n_g;
  // With a subspace the first sweep is static, the second all else.
  const auto n_other = options_.subspace.wanted() && !projected ? 0 : static_cast<std::int64_t>(options_.frequencies_ry.size()) - 1;

  IVec3 extent_left = rotated_extent(left_waves, left_zone);
  for (int& x : extent_left) ++x;  // k+q may differ from its folded image by one reciprocal vector.
  const std::array<int, 3> box = product_box(extent_left, rotated_extent(field_.waves, field_.zone), component_extent(at_.sphere.g));
  Resident& left_behind = resident(kernels);
  bool right_is_there = left_behind.epoch == kernels.epoch();
  if (!right_is_there) {
    kernels.set_box(box);
    const auto sphere_index = positions(at_.sphere.g, box);
    kernels.load_sphere(view<const std::int32_t>(sphere_index, n_g), {});
    left_behind.epoch = kernels.epoch();
  }
  if (!projected) kernels.start_chi(n_g);
  if (n_other > 0) kernels.start_chi_frequencies(n_other, n_basis);

  const double prefactor = 4.0 / (field_.n_spins() * field_.zone_volume_bohr3());
  const auto n_units = static_cast<std::int64_t>(units_.size());
  clock.step("prepare");
  for (std::int64_t u = index * n_units / portions_; u < (index + 1) * n_units / portions_; ++u) {
    const Unit& unit = units_[static_cast<std::size_t>(u)];
    const Orbit& orbit = wedge_[unit.orbit];
    const int spin = unit.spin;
    const int n_v = field_.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    const int n_c = options_.bands - n_v;
    const Vec3& k = field_.zone.points()[static_cast<std::size_t>(orbit.representative)].k;
    const Rotation right_rotation = field_.zone.rotation_to(k);
    const Rotation left_rotation = left_zone.rotation_to(by_velocity ? k : k + at_.q);
    const auto n_block = unit.valence.size();
    const RotatedWaves left = rotated_waves(left_waves, left_zone.operations(), left_rotation, spin, static_cast<int>(unit.valence.begin),
                                            static_cast<int>(unit.valence.end));
    const auto left_index = positions(left.g, box);
    kernels.load_bands(Side::kLeft, bands_view(left), view<const std::int32_t>(left_index, left_index.size()));
    if (!right_is_there || left_behind.orbit != unit.orbit || left_behind.spin != spin) {
      const RotatedWaves right = rotated_waves(field_.waves, operations, right_rotation, spin, n_v, options_.bands);
      const auto right_index = positions(right.g, box);
      kernels.load_bands(Side::kRight, bands_view(right), view<const std::int32_t>(right_index, right_index.size()));
      left_behind.orbit = unit.orbit;
      left_behind.spin = spin;
      right_is_there = true;
    }
    clock.step("wavefunctions");
    const bool kept = projected || n_other > 0;  // M is used more than once
    if (kept) kernels.pair_products({0, n_block}, {0, n_c});
    clock.step("pair_products");
    std::vector<Cplx> head;
    if (by_velocity) {
      // k·p: M_vc(q → 0; 0) = ⟨v| q·∂H/∂k |c⟩/(E_v − E_c), at S k_r with the direction S⁻¹ q.
      const SymmetryOperation& s = operations[static_cast<std::size_t>(right_rotation.operation)];
      head = velocity_matrix(field_.waves, right_rotation.irreducible, spin, unit.valence, {n_v, options_.bands},
                                  multiply(inverse(s.rotation), at_.q), field_.nonlocal.get());
      for (std::int64_t i = 0; i < n_block; ++i)
        for (int c = 0; c < n_c; ++c)
          head[static_cast<std::size_t>(i * n_c + c)] /= field_.dipole_energy(spin, right_rotation.irreducible, static_cast<int>(unit.valence.begin + i)) -
                                                         field_.dipole_energy(spin, right_rotation.irreducible, n_v + c);
      if (kept) kernels.replace_plane_wave(0, view<const Cplx>(head, n_block, n_c));
    }
    clock.step("velocity");
    std::vector<double> weight(static_cast<std::size_t>(n_block * n_c));
    std::vector<Cplx> weights(weight.size() * static_cast<std::size_t>(n_other));
    for (std::int64_t i = 0; i < n_block; ++i)
      for (std::int64_t c = 0; c < n_c; ++c) {
        const double delta = left_waves.energy(spin, left_rotation.irreducible, static_cast<int>(unit.valence.begin + i)) -
                             field_.waves.energy(spin, right_rotation.irreducible, n_v + static_cast<int>(c));
        const double scale = prefactor * static_cast<double>(orbit.size);
        const auto pair = static_cast<std::size_t>(i * n_c + c);
        weight[pair] = scale / delta;
        for (std::int64_t f = 0; f < n_other; ++f) {
          const Cplx omega = options_.frequencies_ry[static_cast<std::size_t>(f + 1)];
          weights[static_cast<std::size_t>(f) * weight.size() + pair] = 0.5 * scale * (1.0 / (delta - omega) + 1.0 / (delta + omega));
        }
      }
    const View<const double, 2> static_weight = view<const double>(weight, n_block, n_c);
    if (!kept) {
      const auto report = kernels.add_pairs_to_chi({0, n_block}, {0, n_c}, static_weight,
                                                   by_velocity ? view<const Cplx>(head, n_block, n_c) : View<const Cplx, 2>{}, {});
      if (profile_ != nullptr) {
        profile_->add("transforms_on_device", report.transform_seconds);
        profile_->add("products_on_device", report.product_seconds);
        profile_->count(n_block * n_c, report.real);
      }
    } else if (projected) {
      kernels.project_pair_products(view<const Cplx>(basis_, n_g, n_basis));
    } else {
      kernels.accumulate_chi(static_weight);
    }
    if (n_other > 0) kernels.accumulate_chi_frequencies(view<const Cplx>(weights, n_other, n_block, n_c));
    clock.step("polarizability");
    progress.throw_if_cancelled();
  }
  if (projected) {
    std::vector<Cplx> chi(static_cast<std::size_t>(n_other * n_basis * n_basis));
    kernels.read_chi_frequencies(view<Cplx>(chi, n_other, n_basis, n_basis));
    return chi;
  }
  const std::int64_t size = n_g * n_g;
  std::vector<Cplx> chi(static_cast<std::size_t>(size * (1 + n_other)));
  kernels.read_chi(View<Cplx, 2>{chi.data(), {n_g, n_g}});
  if (n_other > 0) kernels.read_chi_frequencies(View<Cplx, 3>{chi.data() + size, {n_other, n_g, n_g}});
  clock.step("read");
  return chi;
}

std::vector<std::vector<Cplx>> Polarizability::complete(std::vector<Cplx> sum) const {
  const std::int64_t size = at_.size() * at_.size();
  std::vector<std::vector<Cplx>> chi;
  if (static_cast<std::int64_t>(sum.size()) == size)
    chi.push_back(std::move(sum));
  else
    for (auto from = sum.begin(); from != sum.end(); from += size) chi.emplace_back(from, from + size);
  for (auto& matrix : chi) matrix = summed_over_group(std::move(matrix), at_.sphere, field_.zone.operations(), group_, at_.at_gamma);
  return chi;
}

namespace {

DielectricMatrix empty_matrix(const MeanField& field, const Vec3& q, const EpsilonOptions& options, const CoulombInteraction& coulomb) {
  DielectricMatrix matrix;
  matrix.q = q;
  matrix.at_gamma = is_small(field, q);
  if (matrix.at_gamma && !field.shifted && !field.by_velocity)
    throw InvalidInput("the point q → 0 needs wavefunctions on a slightly shifted grid (meanfield.wfnq), or the Hamiltonian "
                       "(meanfield.vsc and meanfield.vkb)");
  matrix.sphere = make_g_sphere(field.crystal().bdot, matrix.at_gamma ? Vec3{} : q, options.cutoff_ry);
  matrix.coulomb.resize(matrix.sphere.g.size());
#pragma omp parallel for schedule(dynamic, 8)
  for (std::size_t g = 0; g < matrix.coulomb.size(); ++g) matrix.coulomb[g] = coulomb.plain(q, matrix.sphere.g[g]);
  matrix.frequencies_ry = options.frequencies_ry;
  matrix.n_real = options.n_real;
  return matrix;
}

/// ε⁻¹ in place of χ.
void invert(DielectricMatrix& matrix, std::vector<std::vector<Cplx>> chi, const EpsilonOptions& options, GwKernels& kernels) {
  const auto n = static_cast<std::size_t>(matrix.size());
  // An interaction cut to a box or wire may be negative at some k: ε is then inverted as it is, not as ε̃.
  const bool positive = *std::min_element(matrix.coulomb.begin(), matrix.coulomb.end()) > 0.0;
  std::vector<double> left(n), right(n);
  for (std::size_t g = 0; g < n; ++g) {
    left[g] = positive ? std::sqrt(matrix.coulomb[g]) : matrix.coulomb[g];
    right[g] = positive ? left[g] : 1.0;
  }
  for (std::size_t g = 0; g < n; ++g) matrix.epsilon_diagonal.push_back(1.0 - matrix.coulomb[g] * chi[0][g * n + g]);
  for (std::size_t f = 0; f < chi.size(); ++f) {
    auto& m = chi[f];
#pragma omp parallel for schedule(static)
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) m[g * n + h] = (g == h ? 1.0 : 0.0) - left[g] * m[g * n + h] * right[h];
    const View<Cplx, 2> whole = view<Cplx>(m, n, n);
    if (positive && options.frequencies_ry[f].real() == 0.0)
      kernels.invert_positive_definite(whole);
    else
      kernels.invert_general(whole);
    if (!positive) continue;
#pragma omp parallel for schedule(static)
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h) m[g * n + h] *= left[g] / left[h];
  }
  matrix.inverse = std::move(chi);
}

/// ε⁻¹ and the diagonal of ε in one row.
std::vector<Cplx> packed(const DielectricMatrix& m) {
  std::vector<Cplx> values;
  values.reserve(m.inverse.size() * m.inverse[0].size() + m.epsilon_diagonal.size());
  for (const auto& inverse : m.inverse) values.insert(values.end(), inverse.begin(), inverse.end());
  values.insert(values.end(), m.epsilon_diagonal.begin(), m.epsilon_diagonal.end());
  return values;
}

void unpack(const Piece& piece, DielectricMatrix& m) {
  const auto n = static_cast<std::size_t>(m.size());
  const auto* values = reinterpret_cast<const Cplx*>(piece.data);
  for (std::size_t f = 0; f < m.frequencies_ry.size(); ++f) m.inverse.emplace_back(values + f * n * n, values + (f + 1) * n * n);
  values += m.frequencies_ry.size() * n * n;
  m.epsilon_diagonal.assign(values, values + n);
}

}  // namespace

namespace {

/// Eigenvectors of χ̃(0) that are kept, as columns [n][n_basis]; with q → 0 the plane wave G = 0 is kept exactly.
std::vector<Cplx> subspace_of(const DielectricMatrix& m, const std::vector<Cplx>& chi, const SubspaceOptions& options, GwKernels& kernels) {
  const auto n = static_cast<std::size_t>(m.size());
  std::vector<Cplx> symmetric(n * n);
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h) symmetric[g * n + h] = std::sqrt(m.coulomb[g] * m.coulomb[h]) * 0.5 * (chi[g * n + h] + std::conj(chi[h * n + g]));
  std::vector<double> values(n);
  std::vector<Cplx> vectors(n * n);
  kernels.eigen_hermitian(view<const Cplx>(symmetric, n, n), view<double>(values, n), view<Cplx>(vectors, n, n));
  std::size_t kept = 0;  // eigenvalues ascend from the most negative
  while (kept < n && (options.vectors > 0 ? kept < static_cast<std::size_t>(options.vectors) : -values[kept] / (1.0 - values[kept]) > options.tolerance)) ++kept;
  kept = std::max<std::size_t>(kept, 1);
  std::vector<std::vector<Cplx>> columns;
  for (std::size_t i = 0; i < kept; ++i) columns.emplace_back(vectors.begin() + static_cast<std::ptrdiff_t>(i * n), vectors.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
  if (m.at_gamma && kept < n) {
    std::vector<Cplx> head(n);
    head[0] = 1.0;
    for (int pass = 0; pass < 2; ++pass)  // twice: Gram–Schmidt loses digits once
      for (const auto& c : columns) {
        Cplx overlap;
        for (std::size_t g = 0; g < n; ++g) overlap += std::conj(c[g]) * head[g];
        for (std::size_t g = 0; g < n; ++g) head[g] -= overlap * c[g];
      }
    double norm = 0.0;
    for (const Cplx& value : head) norm += std::norm(value);
    if (norm > 1e-16) {
      for (Cplx& value : head) value /= std::sqrt(norm);
      columns.push_back(std::move(head));
    }
  }
  std::vector<Cplx> basis(n * columns.size());
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t b = 0; b < columns.size(); ++b) basis[g * columns.size() + b] = columns[b][g];
  return basis;
}

/// c [rows][columns] = a [rows][inner] · op(b).
void product(CBLAS_TRANSPOSE transpose_b, std::size_t rows, std::size_t columns, std::size_t inner, const Cplx* a, std::size_t lda, const Cplx* b,
             std::size_t ldb, Cplx* c) {
  const Cplx one{1.0, 0.0}, zero{};
  cblas_zgemm(CblasRowMajor, CblasNoTrans, transpose_b, static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(inner), &one, a,
              static_cast<int>(lda), b, static_cast<int>(ldb), &zero, c, static_cast<int>(columns));
}

/// C (…) C^H, [n][n], for C [n][n_b].
std::vector<Cplx> expanded(const std::vector<Cplx>& basis, const std::vector<Cplx>& inner, std::size_t n, std::size_t n_b) {
  std::vector<Cplx> left(n * n_b), result(n * n);
  product(CblasNoTrans, n, n_b, n_b, basis.data(), n_b, inner.data(), n_b, left.data());
  product(CblasConjTrans, n, n, n_b, left.data(), n_b, basis.data(), n_b, result.data());
  return result;
}

/// ε̃⁻¹ − 1 within the subspace, (1 − χ̃_BB)⁻¹ − 1.
std::vector<Cplx> inner_inverse(std::vector<Cplx> chi, std::size_t n_b, GwKernels& kernels) {
  for (std::size_t a = 0; a < n_b; ++a)
    for (std::size_t b = 0; b < n_b; ++b) chi[a * n_b + b] = (a == b ? 1.0 : 0.0) - chi[a * n_b + b];
  kernels.invert_general(view<Cplx>(chi, n_b, n_b));
  for (std::size_t b = 0; b < n_b; ++b) chi[b * n_b + b] -= 1.0;
  return chi;
}

/// Appends ε⁻¹ at the frequencies other than 0 to a matrix that holds ε⁻¹(0).
/// @param chi_static  χ(0), [n][n];  projected  χ̃_BB'(ω), [n_frequencies − 1][n_b][n_b]
void add_subspace_frequencies(DielectricMatrix& m, const std::vector<Cplx>& chi_static, const std::vector<Cplx>& basis, const std::vector<Cplx>& projected,
                              const EpsilonOptions& options, GwKernels& kernels) {
  const auto n = static_cast<std::size_t>(m.size()), n_b = basis.size() / n;
  const auto& v = m.coulomb;
  // C^H χ̃(0) C, with the transposed basis as rows.
  std::vector<Cplx> weighted(n_b * n), right(n_b * n), static_inner(n_b * n_b), symmetric(n * n);
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h) symmetric[g * n + h] = std::sqrt(v[g] * v[h]) * chi_static[g * n + h];
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t b = 0; b < n_b; ++b) weighted[b * n + g] = std::conj(basis[g * n_b + b]);
  product(CblasNoTrans, n_b, n, n, weighted.data(), n, symmetric.data(), n, right.data());
  product(CblasConjTrans, n_b, n_b, n, right.data(), n, weighted.data(), n, static_inner.data());
  const std::vector<Cplx> static_part = expanded(basis, inner_inverse(static_inner, n_b, kernels), n, n_b);
  std::vector<Cplx> rest(n * n);  // ε̃⁻¹(0) − 1 − its subspace part
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h)
      rest[g * n + h] = m.inverse[0][g * n + h] * std::sqrt(v[h] / v[g]) - (g == h ? 1.0 : 0.0) - static_part[g * n + h];
  std::vector<double> values(n);
  std::vector<Cplx> vectors(n * n);
  kernels.eigen_hermitian(view<const Cplx>(rest, n, n), view<double>(values, n), view<Cplx>(vectors, n, n));
  m.subspace_vectors = static_cast<int>(n_b);
  m.subspace_error = std::max(std::abs(values.front()), std::abs(values.back()));
  const double w2 = options.subspace.complement_ry * options.subspace.complement_ry;
  for (std::size_t f = 1; f < options.frequencies_ry.size(); ++f) {
    const auto from = projected.begin() + static_cast<std::ptrdiff_t>((f - 1) * n_b * n_b);
    std::vector<Cplx> full = expanded(basis, inner_inverse({from, from + static_cast<std::ptrdiff_t>(n_b * n_b)}, n_b, kernels), n, n_b);
    const Cplx share = options.subspace.complement ? w2 / (w2 - options.frequencies_ry[f] * options.frequencies_ry[f]) : 0.0;
    for (std::size_t g = 0; g < n; ++g)
      for (std::size_t h = 0; h < n; ++h)
        full[g * n + h] = ((g == h ? 1.0 : 0.0) + full[g * n + h] + share * rest[g * n + h]) * std::sqrt(v[g] / v[h]);
    m.inverse.push_back(std::move(full));
  }
}

/// ε⁻¹ of one q in two sweeps: χ(0) in full, then the other frequencies between its leading eigenvectors.
void invert_in_subspace(DielectricMatrix& m, Polarizability& sum, const EpsilonOptions& options, GwKernels& kernels, Progress& progress) {
  if (*std::min_element(m.coulomb.begin(), m.coulomb.end()) <= 0.0)
    throw InvalidInput("a static subspace needs a Coulomb interaction that is positive everywhere; leave epsilon.subspace_tolerance out with this truncation");
  const auto total = [&] {
    std::vector<Cplx> all;
    for (std::int64_t index = 0; index < sum.portions(); ++index) {
      const std::vector<Cplx> part = sum.portion(index, kernels, progress);
      if (all.empty()) all.resize(part.size());
      for (std::size_t i = 0; i < part.size(); ++i) all[i] += part[i];
    }
    return all;
  };
  const std::vector<Cplx> chi = total();
  EpsilonOptions only_static = options;
  only_static.frequencies_ry.resize(1);
  invert(m, {chi}, only_static, kernels);
  const std::vector<Cplx> basis = subspace_of(m, chi, options.subspace, kernels);
  const auto n = static_cast<std::size_t>(m.size()), n_b = basis.size() / n;
  std::vector<Cplx> weighted = basis;
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t b = 0; b < n_b; ++b) weighted[g * n_b + b] *= std::sqrt(m.coulomb[g]);
  sum.project_on(std::move(weighted));
  add_subspace_frequencies(m, chi, basis, total(), options, kernels);
}

}  // namespace

std::vector<DielectricMatrix> dielectric_matrices(const MeanField& field, const std::vector<Vec3>& points, const EpsilonOptions& options,
                                                  const CoulombInteraction& coulomb, DeviceTeam& team, Checkpoint& checkpoint, Progress& progress,
                                                  EpsilonProfile* profile) {
  std::vector<DielectricMatrix> matrices;
  std::vector<Polarizability> sums;
  matrices.reserve(points.size());  // `sums` refer to them
  std::int64_t total = 0;
  for (const Vec3& q : points) {
    matrices.push_back(empty_matrix(field, q, options, coulomb));
    sums.emplace_back(field, matrices.back(), options, profile);
    total += sums.back().portions();
  }
  std::atomic<std::int64_t> done{0};
  const auto portion_of = [&](std::size_t iq, std::int64_t index, GwKernels& kernels) -> Piece {
    const std::string key = "chi/" + std::to_string(iq) + "/" + std::to_string(index);
    auto kept = checkpoint.find(key);
    const Piece piece = kept ? *kept : piece_of(std::make_shared<const std::vector<Cplx>>(sums[iq].portion(index, kernels, progress)));
    if (!kept) checkpoint.put(key, piece);
    progress.report("polarizability", ++done, total);
    return piece;
  };
  const auto add = [&](std::vector<Cplx>& sum, const Piece& part) {
    StepClock clock(profile);
    const auto* values = reinterpret_cast<const Cplx*>(part.data);
    if (sum.empty()) {
      sum.assign(values, values + part.count / 2);
      clock.step("sum");
      return;
    }
#pragma omp parallel for schedule(static)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
    clock.step("sum");
  };
  const bool subspace = options.subspace.wanted() && options.frequencies_ry.size() > 1;
  const auto keep = [&](std::size_t iq) {
    StepClock clock(profile);
    if (checkpoint.keeps())
      checkpoint.replace("chi/" + std::to_string(iq) + "/", "epsilon/" + std::to_string(iq),
                         piece_of(std::make_shared<const std::vector<Cplx>>(packed(matrices[iq]))));
    clock.step("checkpoint");
  };
  const auto finish = [&](std::size_t iq, std::vector<Cplx> sum, GwKernels& kernels) {
    StepClock clock(profile);
    auto chi = sums[iq].complete(std::move(sum));
    clock.step("symmetrise");
    invert(matrices[iq], std::move(chi), options, kernels);
    clock.step("invert");
    keep(iq);
  };
  const auto take_finished = [&](std::size_t iq) {
    const auto kept = checkpoint.find("epsilon/" + std::to_string(iq));
    if (!kept) return false;
    unpack(*kept, matrices[iq]);
    progress.report("polarizability", done += sums[iq].portions(), total);
    return true;
  };
  Ranks& ranks = team.ranks();
  // ε⁻¹ of a q from the rank that has made it.
  const auto exchange = [&](std::size_t iq, int owner) {
    DielectricMatrix& m = matrices[iq];
    std::vector<double> values;
    if (ranks.rank() == owner) {
      const std::vector<Cplx> whole = packed(m);
      values.assign(reinterpret_cast<const double*>(whole.data()), reinterpret_cast<const double*>(whole.data() + whole.size()));
      values.insert(values.end(), {static_cast<double>(m.subspace_vectors), m.subspace_error});
    }
    ranks.broadcast(values, owner);
    if (ranks.rank() == owner || !m.inverse.empty()) return;
    m.subspace_vectors = static_cast<int>(values[values.size() - 2]);
    m.subspace_error = values.back();
    values.resize(values.size() - 2);
    unpack(piece_of(std::make_shared<const std::vector<double>>(std::move(values))), m);
    keep(iq);
    progress.report("polarizability", done += sums[iq].portions(), total);
  };
  // What rank 0's checkpoint holds is known to all, and what other ranks finish is known to rank 0 after every round.
  if (ranks.size() > 1)
    for (std::size_t iq = 0; iq < points.size(); ++iq)
      if (const Piece kept = kept_pieces(ranks, checkpoint, {"epsilon/" + std::to_string(iq)})[0]; kept.data != nullptr && !ranks.leads())
        unpack(kept, matrices[iq]);
  if (subspace || static_cast<int>(points.size()) >= team.size()) {
    const auto n_points = static_cast<std::int64_t>(points.size());
    const std::int64_t step = ranks.size() > 1 ? team.size() : n_points;
    for (std::int64_t begin = 0; begin < n_points; begin += step) {
      const std::int64_t count = std::min(step, n_points - begin);
      team.run(count, [&](std::int64_t task, GwKernels& kernels) {
        const auto iq = static_cast<std::size_t>(begin + task);
        if (!matrices[iq].inverse.empty() || take_finished(iq)) return;
        if (subspace) {
          invert_in_subspace(matrices[iq], sums[iq], options, kernels, progress);
          keep(iq);
          progress.report("polarizability", done += sums[iq].portions(), total);
          return;
        }
        std::vector<Cplx> sum;
        for (std::int64_t index = 0; index < sums[iq].portions(); ++index) add(sum, portion_of(iq, index, kernels));
        finish(iq, std::move(sum), kernels);
      });
      for (std::int64_t task = 0; task < count && ranks.size() > 1; ++task) exchange(static_cast<std::size_t>(begin + task), team.owner(task, count));
    }
    return matrices;
  }
  for (std::size_t iq = 0; iq < points.size(); ++iq) {
    if (!matrices[iq].inverse.empty() || take_finished(iq)) continue;
    const std::int64_t n_portions = sums[iq].portions();
    std::vector<std::string> names;
    for (std::int64_t index = 0; index < n_portions; ++index) names.push_back("chi/" + std::to_string(iq) + "/" + std::to_string(index));
    std::vector<Piece> parts = ranks.size() > 1 ? kept_pieces(ranks, checkpoint, names) : std::vector<Piece>(names.size());
    team.run(n_portions, [&](std::int64_t index, GwKernels& kernels) {
      auto& part = parts[static_cast<std::size_t>(index)];
      if (part.data == nullptr) part = portion_of(iq, index, kernels);
    });
    if (ranks.size() > 1) {
      std::vector<Piece> own;
      for (std::int64_t index = 0; index < n_portions; ++index)
        if (team.owns(index, n_portions)) own.push_back(std::move(parts[static_cast<std::size_t>(index)]));
      parts.clear();
      progress.report("polarizability", done += n_portions - static_cast<std::int64_t>(own.size()), total);
      finish(iq, ordered_sum(ranks, own), team.first());
      continue;
    }
    std::vector<Cplx> sum;
    for (Piece& part : parts) {
      add(sum, part);
      part = {};
    }
    finish(iq, std::move(sum), team.first());
  }
  return matrices;
}

DielectricMatrix dielectric_matrix(const MeanField& field, const Vec3& q, const EpsilonOptions& options,
                                   const CoulombInteraction& coulomb, GwKernels& kernels, Progress& progress) {
  DeviceTeam alone(kernels);
  Checkpoint none;
  return std::move(dielectric_matrices(field, {q}, options, coulomb, alone, none, progress)[0]);
}

}  // namespace quasi::gw

#include "workers/gw/solver/self_energy/sigma_subspace.hpp"

#include <cblas.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workers/backend/error.hpp"
#include "workers/backend/team/blas_threads.hpp"
#include "workers/gw/solver/screening/polarizability/symmetry_of_chi.hpp"

namespace quasi::gw {
namespace {

double frobenius(const UnsetVector<Cplx>& a) {
  double sum = 0.0;
  for (const Cplx& value : a) sum += std::norm(value);
  return std::sqrt(sum);
}

/// a [rows][n] · basis [n][n_b] on the device, as a block of pair products.
std::vector<Cplx> times_basis(const Cplx* a, std::int64_t rows, const SubspaceOfW& s,
                              GwKernels& kernels) {
  const auto block = kernels.pair_products().make_block();
  block->load({a, {1, rows, s.n}});
  block->project(view<const Cplx>(s.basis, s.n, s.n_b));
  std::vector<Cplx> result(static_cast<std::size_t>(rows * s.n_b));
  block->read(view<Cplx>(result, std::int64_t{1}, rows, s.n_b));
  return result;
}

std::vector<Cplx> adjoint(const std::vector<Cplx>& a, std::int64_t rows, std::int64_t columns) {
  std::vector<Cplx> b(a.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      b[static_cast<std::size_t>(j * rows + i)] =
          std::conj(a[static_cast<std::size_t>(i * columns + j)]);
  return b;
}

/// C inner C†, [n][n].
std::vector<Cplx> expanded(const std::vector<Cplx>& inner, const SubspaceOfW& s,
                           GwKernels& kernels) {
  // (C inner) C† by rows. C† is the adjoint of the projection, so that n and n_b change places.
  SubspaceOfW back, within;
  back.n = within.n = within.n_b = s.n_b;
  back.n_b = s.n;
  back.basis = adjoint(s.basis, s.n, s.n_b);
  within.basis = inner;
  return times_basis(times_basis(s.basis.data(), s.n, within, kernels).data(), s.n, back, kernels);
}

/// Number of eigenvectors, in descending order of |λ|, that are kept.
std::int64_t kept_vectors(const std::vector<double>& magnitude,
                          const SigmaSubspaceOptions& options) {
  const auto n = static_cast<std::int64_t>(magnitude.size());
  if (options.vectors > 0) return std::min<std::int64_t>(options.vectors, n);
  double left = std::accumulate(magnitude.begin(), magnitude.end(), 0.0);
  const double allowed = options.tolerance * left;
  std::int64_t kept = 0;
  while (kept < n && left > allowed) left -= magnitude[static_cast<std::size_t>(kept++)];
  return std::max<std::int64_t>(kept, 1);
}

}  // namespace

SubspaceOfW subspace_of_w(const MatrixOfFrequency& w_of, std::size_t n_frequencies,
                          const SigmaSubspaceOptions& options, GwKernels& kernels) {
  constexpr double kHermitian = 1e-6;  // of ‖W‖, as of the self-test
  SubspaceOfW s;
  const UnsetVector<Cplx> at_zero = w_of(0);
  const auto n =
      static_cast<std::size_t>(std::llround(std::sqrt(static_cast<double>(at_zero.size()))));
  s.n = static_cast<std::int64_t>(n);
  std::vector<Cplx> hermitian(n * n);
  double departure = 0.0;
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h) {
      hermitian[g * n + h] = 0.5 * (at_zero[g * n + h] + std::conj(at_zero[h * n + g]));
      departure += std::norm(at_zero[g * n + h] - hermitian[g * n + h]);
    }
  if (std::sqrt(departure) > kHermitian * frobenius(at_zero))
    throw InvalidInput(
        "sigma.subspace_tolerance and sigma.subspace_vectors need a Hermitian W(0), which compat = "
        "\"bgw\" and its wing rule do not give; leave one of them out");
  std::vector<double> values(n);
  std::vector<Cplx> vectors(n * n);
  kernels.dense().eigen_hermitian(view<const Cplx>(hermitian, s.n, s.n), view<double>(values, s.n),
                                  view<Cplx>(vectors, s.n, s.n));
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(values[a]) > std::abs(values[b]);
  });
  std::vector<double> magnitude;
  for (const std::size_t i : order) magnitude.push_back(std::abs(values[i]));
  s.n_b = kept_vectors(magnitude, options);
  const auto n_b = static_cast<std::size_t>(s.n_b);
  s.basis.resize(n * n_b);
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t b = 0; b < n_b; ++b) s.basis[g * n_b + b] = vectors[order[b] * n + g];
  for (std::size_t f = 0; f < n_frequencies; ++f) {
    UnsetVector<Cplx> w = f == 0 ? at_zero : w_of(f);
    const UnsetVector<Cplx> whole = w;
    const double size = frobenius(w);
    const std::vector<Cplx> left =
        adjoint(times_basis(w.data(), s.n, s, kernels), s.n, s.n_b);  // (W C)†
    s.inner.push_back(adjoint(times_basis(left.data(), s.n_b, s, kernels), s.n_b, s.n_b));
    const std::vector<Cplx> inside = expanded(s.inner.back(), s, kernels);
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= inside[i];
    if (f == 0) s.rest = w;
    Cplx overlap;
    double square = 0.0;
    for (std::size_t i = 0; i < w.size(); ++i) {
      overlap += std::conj(s.rest[i]) * w[i];
      square += std::norm(s.rest[i]);
    }
    s.share.push_back(f == 0 ? Cplx(1.0) : square > 0.0 ? overlap / square : Cplx());
    double left_out = 0.0;
    for (std::size_t i = 0; i < w.size(); ++i)
      left_out += std::norm(w[i] - s.share.back() * s.rest[i]);
    s.residual.push_back(std::sqrt(left_out) / size);
    if (f > 0 && s.residual[f] <= s.residual[s.worst]) continue;
    s.worst = f;
    s.at_worst = whole;
  }
  return s;
}

namespace {

/// c_ik = Σ_j a_ij b_jk.
void multiply(View<const Cplx, 2> a, View<const Cplx, 2> b, std::vector<Cplx>& c) {
  const Cplx one{1.0, 0.0}, zero{};
  const auto rows = static_cast<int>(a.extent[0]), inner = static_cast<int>(a.extent[1]);
  const auto columns = static_cast<int>(b.extent[1]);
  const ThreadedBlas threads(8.0 * static_cast<double>(a.size()) * columns);
  cblas_zgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows, columns, inner, &one, a.data, inner,
              b.data, columns, &zero, c.data(), columns);
}

CMat3 times(const CMat3& a, const CMat3& b) {
  CMat3 c{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 3; ++k) c[i][j] += a[i][k] * b[k][j];
  return c;
}

/// The body of ε̃⁻¹ − 1 − share · rest at q → 0 by k·p, between the columns of C beside the heads
/// and the three columns of `rest` that belong to them, as W has it: with the wings u_i (columns)
/// and w_j (rows) of the heads, whose corner is ε_M⁻¹,
///
///   body → body + Σ_ij u_i [ε_M P ε_M − ε_M]_ij w_j,   P = ⟨p_i p_j/(pᵀ ε_M p)⟩, or q̂_i q̂_j/(q̂ᵀ
///   ε_M q̂) where v is not averaged
///
/// @return [n_b + 3][n_b + 3];  @param head  ε⁻¹_00 as W has it
std::vector<Cplx> folded(const MeanField& field, const CoulombInteraction& coulomb,
                         const ReducedFrequencies& r, std::size_t frequency, Cplx* head) {
  const CMat3 corner = corner_of(r, frequency), epsilon = inverse(corner);
  CMat3 directions = along(epsilon, r.direction);
  *head = directions[0][0] + directions[1][1] + directions[2][2];
  if (coulomb.averages()) {
    const CMat3 symmetric =
        with_symmetry_of(field.crystal(), field.transfers().operations(), epsilon);
    const AverageAtZero average = average_at_zero(coulomb, symmetric);
    directions = average.directions;
    *head = average.head;
  }
  CMat3 weight = times(epsilon, times(directions, epsilon));
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) weight[i][j] -= epsilon[i][j];
  const auto n_b = static_cast<std::size_t>(r.n_b), edge = n_b + 3;
  const std::vector<Cplx>& inner = r.inner[frequency];
  std::vector<Cplx> columns(edge * 3), rows(3 * edge), weighted(edge * 3), result(edge * edge);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t a = 0; a < n_b; ++a)
      for (std::size_t b = 0; b < n_b; ++b) {
        columns[a * 3 + i] += inner[a * n_b + b] * std::conj(r.basis[i * n_b + b]);
        rows[i * edge + b] += r.basis[i * n_b + a] * inner[a * n_b + b];
      }
    columns[(n_b + i) * 3 + i] = rows[i * edge + n_b + i] = r.share[frequency];
  }
  for (std::size_t a = 0; a < edge; ++a)
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) weighted[a * 3 + j] += columns[a * 3 + i] * weight[i][j];
  multiply(view<const Cplx>(weighted, edge, 3), view<const Cplx>(rows, 3, edge), result);
  for (std::size_t a = 0; a < n_b; ++a)
    for (std::size_t b = 0; b < n_b; ++b) result[a * edge + b] += inner[a * n_b + b];
  return result;
}

}  // namespace

SubspaceOfW subspace_of_epsilon(const MeanField& field, const DielectricMatrix& epsilon,
                                const ScreeningAtQ& at, UnsetVector<Cplx> at_zero,
                                const CoulombInteraction& coulomb) {
  const ReducedFrequencies& r = epsilon.reduced;
  const bool averaged_by_group = epsilon.at_gamma && coulomb.averages() &&
                                 little_group(field.transfers().operations(), {}, false).size() > 1;
  if (!r.used() || coulomb.options().wing_rule == WingRule::kListedPoint || averaged_by_group)
    return {};
  const std::vector<double> average = averaged_coulomb(epsilon, epsilon.sphere, coulomb),
                            root = roots_of_coulomb(epsilon, average, coulomb);
  const std::size_t n = static_cast<std::size_t>(at.sphere.size()),
                    first = epsilon.at_gamma ? 1 : 0;
  constexpr double kSame =
      1e-13;  // v at q₀ + G is not that at G: without averages W is then not Hermitian
  for (std::size_t g = first; !coulomb.averages() && g < n; ++g)
    if (std::abs(average[g] - epsilon.coulomb[g]) > kSame * average[g]) return {};
  const auto n_heads = static_cast<std::size_t>(r.n - epsilon.size()) + 1,
             n_b = static_cast<std::size_t>(r.n_b);
  const bool folds = n_heads > 1;
  const std::size_t edge = folds ? n_b + 3 : n_b, n_f = r.inner.size();
  SubspaceOfW s;
  s.n = at.sphere.size();
  s.n_b = static_cast<std::int64_t>(edge);
  s.basis.resize(n * edge);
  for (std::size_t g = first; g < n; ++g) {
    const std::size_t row = g + n_heads - 1;
    for (std::size_t b = 0; b < n_b; ++b) s.basis[g * edge + b] = root[g] * r.basis[row * n_b + b];
    for (std::size_t i = 0; i < 3 && folds; ++i)
      s.basis[g * edge + n_b + i] = root[g] * r.rest[row * static_cast<std::size_t>(r.n) + i];
  }
  s.share = r.share;
  s.rest = std::move(at_zero);
  s.inner.resize(n_f);
  s.diagonal.resize(n_f);
  std::vector<Cplx> of_zero, left(n * edge);
  Cplx head_of_zero;
  for (std::size_t f = 0; f < n_f; ++f) {
    Cplx head;
    std::vector<Cplx> inner = folds ? folded(field, coulomb, r, f, &head) : r.inner[f];
    if (!folds && epsilon.at_gamma) head = head_of(epsilon, f);
    if (!coulomb.averages() && epsilon.at_gamma)
      head = coulomb.head_at_zero(head, epsilon.q, epsilon.samples_of(f));
    if (f == 0) {
      of_zero = std::move(inner);
      head_of_zero = head;
      continue;
    }
    for (std::size_t i = 0; i < inner.size(); ++i) inner[i] = r.share[f] * of_zero[i] - inner[i];
    // (ε̃⁻¹ − 1)_GG stands before v̄, and what the product gives before c².
    std::vector<Cplx>& diagonal = s.diagonal[f];
    diagonal.resize(n);
    multiply(view<const Cplx>(s.basis, n, edge), view<const Cplx>(inner, edge, edge), left);
#pragma omp parallel for schedule(static)
    for (std::size_t g = first; g < n; ++g) {
      Cplx sum;
      for (std::size_t b = 0; b < edge; ++b)
        sum += left[g * edge + b] * std::conj(s.basis[g * edge + b]);
      diagonal[g] = sum * (average[g] / (root[g] * root[g]) - 1.0);
    }
    if (epsilon.at_gamma)
      diagonal[0] = (r.share[f] * (head_of_zero - 1.0) - (head - 1.0)) * average[0];
    s.inner[f] = std::move(inner);
  }
  return s;
}

FullFrequencyW full_frequency_w(const MeanField& field, const DielectricMatrix& epsilon,
                                const SigmaOptions& options, const CoulombInteraction& coulomb,
                                GwKernels& kernels) {
  const auto of = [&](const std::vector<std::size_t>& frequencies) {
    return screening_at(field, epsilon, options.screened_cutoff_ry, coulomb, frequencies);
  };
  FullFrequencyW made;
  if (options.subspace.wanted()) {
    const auto w = [&](std::size_t frequency) {
      const ScreeningAtQ at = of({frequency});
      return screened_matrix(at, 0, wing_factors(at.epsilon));
    };
    made.at = of({0});
    made.subspace = subspace_of_w(w, epsilon.n_frequencies(), options.subspace, kernels);
    return made;
  }
  if (epsilon.reduced.used()) {
    made.at = of({0});
    made.subspace =
        subspace_of_epsilon(field, epsilon, made.at,
                            screened_matrix(made.at, 0, wing_factors(made.at.epsilon)), coulomb);
    if (made.subspace.used()) return made;
  }
  made.at = of({});
  return made;
}

FormsOfBlock::FormsOfBlock(const FrequencyDependentW& w, double weight, PairBlock& products,
                           std::vector<double>* error_ry)
    : w_(w), products_(products) {
  const SubspaceOfW& subspace = w.subspace;
  if (!subspace.used()) return;
  of_rest_ = forms_of(subspace.rest.data(), subspace.n);
  for (const std::vector<Cplx>& diagonal : subspace.diagonal) {
    std::vector<Cplx>& forms = of_diagonal_.emplace_back();
    if (diagonal.empty()) continue;
    forms.resize(of_rest_.size());
    std::vector<double> part(diagonal.size()), sum(forms.size());
    for (const bool imaginary : {false, true}) {
      for (std::size_t g = 0; g < part.size(); ++g)
        part[g] = imaginary ? diagonal[g].imag() : diagonal[g].real();
      if (std::all_of(part.begin(), part.end(), [](double value) { return value == 0.0; }))
        continue;
      products.weighted_norms(view<const double>(part, subspace.n),
                              view<double>(sum, products.n_left(), products.n_right()));
      for (std::size_t p = 0; p < forms.size(); ++p)
        forms[p] += imaginary ? Cplx(0.0, sum[p]) : Cplx(sum[p]);
    }
  }
  std::vector<Cplx> exact;
  if (!subspace.at_worst.empty()) exact = forms_of(subspace.at_worst.data(), subspace.n);
  products.project(view<const Cplx>(subspace.basis, subspace.n, subspace.n_b));
  if (exact.empty()) return;
  const std::vector<Cplx> found = this->at(subspace.worst);
  for (std::size_t p = 0; p < exact.size(); ++p)
    (*error_ry)[p / static_cast<std::size_t>(products.n_right())] +=
        0.5 * weight * std::abs(exact[p] - found[p]);
}

std::vector<Cplx> FormsOfBlock::forms_of(const Cplx* matrix, std::int64_t n) const {
  std::vector<Cplx> forms(static_cast<std::size_t>(products_.n_pairs()));
  products_.quadratic_forms({matrix, {n, n}},
                            view<Cplx>(forms, products_.n_left(), products_.n_right()));
  return forms;
}

std::vector<Cplx> FormsOfBlock::at(std::size_t frequency) const {
  const SubspaceOfW& subspace = w_.subspace;
  if (!subspace.used())
    return forms_of(screened_matrix(w_.at, frequency, w_.wings).data(), w_.at.sphere.size());
  const std::vector<Cplx>& inner = subspace.inner[frequency];
  std::vector<Cplx> forms =
      inner.empty() ? std::vector<Cplx>(of_rest_.size()) : forms_of(inner.data(), subspace.n_b);
  for (std::size_t p = 0; p < forms.size(); ++p)
    forms[p] += subspace.share[frequency] * of_rest_[p];
  if (!of_diagonal_.empty() && !of_diagonal_[frequency].empty())
    for (std::size_t p = 0; p < forms.size(); ++p) forms[p] += of_diagonal_[frequency][p];
  return forms;
}

namespace {

/// Sets the number of threads of this thread's parallel regions while the object lives.
class AllThreads {
 public:
  explicit AllThreads(int threads) : before_(omp_get_max_threads()) {
    omp_set_num_threads(threads);
  }
  ~AllThreads() { omp_set_num_threads(before_); }
  AllThreads(const AllThreads&) = delete;
  AllThreads& operator=(const AllThreads&) = delete;

 private:
  int before_;
};

}  // namespace

SharedScreening::SharedScreening() : threads_(omp_get_max_threads()) {}

std::shared_ptr<const PreparedScreening> SharedScreening::get(
    std::size_t iq, const std::function<PreparedScreening()>& make) {
  const std::lock_guard lock(mutex_);  // other devices wait for this screening or for the threads
  auto& made = made_[iq];
  if (auto there = made.lock()) return there;
  const AllThreads all(threads_);
  StepClock clock(&times_);
  auto fresh = std::make_shared<const PreparedScreening>(make());
  clock.step("screening");
  made = fresh;
  return fresh;
}

std::shared_ptr<const LoadedPoleModel> SharedScreening::load_poles(const PreparedScreening& made,
                                                                   const PoleRules& rules,
                                                                   GwKernels& kernels) {
  StepClock clock(&times_);
  std::shared_ptr<const LoadedPoleModel> there, here;
  {
    const std::lock_guard lock(mutex_);
    there = made.loaded.lock();
    clock.step("wait_for_screening");
    if (there == nullptr) {
      const AllThreads all(threads_);
      here = kernels.pole_sums().load(made.model.view(), rules);
      made.loaded = here;
    }
  }
  if (there != nullptr) here = kernels.pole_sums().copy_of(there);
  clock.step("poles_to_device");
  return here;
}

}  // namespace quasi::gw

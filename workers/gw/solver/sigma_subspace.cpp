#include "workers/gw/solver/sigma_subspace.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

double frobenius(const UnsetVector<Cplx>& a) {
  double sum = 0.0;
  for (const Cplx& value : a) sum += std::norm(value);
  return std::sqrt(sum);
}

/// a [rows][n] · basis [n][n_b] on the device, by way of the resident products.
std::vector<Cplx> times_basis(const Cplx* a, std::int64_t rows, const SubspaceOfW& s, GwKernels& kernels) {
  kernels.load_pair_products({a, {1, rows, s.n}});
  kernels.project_pair_products(view<const Cplx>(s.basis, s.n, s.n_b));
  std::vector<Cplx> result(static_cast<std::size_t>(rows * s.n_b));
  kernels.read_pair_products(view<Cplx>(result, std::int64_t{1}, rows, s.n_b));
  return result;
}

std::vector<Cplx> adjoint(const std::vector<Cplx>& a, std::int64_t rows, std::int64_t columns) {
  std::vector<Cplx> b(a.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) b[static_cast<std::size_t>(j * rows + i)] = std::conj(a[static_cast<std::size_t>(i * columns + j)]);
  return b;
}

/// C (…) C†, [n][n].
std::vector<Cplx> expanded(const std::vector<Cplx>& inner, const SubspaceOfW& s, GwKernels& kernels) {
  // (C inner) C† by rows: C† is the adjoint of what projects, so that the roles of n and n_b change places.
  const SubspaceOfW back{.n = s.n_b, .n_b = s.n, .basis = adjoint(s.basis, s.n, s.n_b), .inner = {}, .share = {}, .rest = {}, .residual = {}};
  const SubspaceOfW within{.n = s.n_b, .n_b = s.n_b, .basis = inner, .inner = {}, .share = {}, .rest = {}, .residual = {}};
  return times_basis(times_basis(s.basis.data(), s.n, within, kernels).data(), s.n, back, kernels);
}

/// How many of the eigenvectors, in order of |λ|, are kept.
std::int64_t kept_vectors(const std::vector<double>& magnitude, const SigmaSubspaceOptions& options) {
  const auto n = static_cast<std::int64_t>(magnitude.size());
  if (options.vectors > 0) return std::min<std::int64_t>(options.vectors, n);
  double left = std::accumulate(magnitude.begin(), magnitude.end(), 0.0);
  const double allowed = options.tolerance * left;
  std::int64_t kept = 0;
  while (kept < n && left > allowed) left -= magnitude[static_cast<std::size_t>(kept++)];
  return std::max<std::int64_t>(kept, 1);
}

}  // namespace

SubspaceOfW subspace_of_w(const ScreeningAtQ& at, const WingFactors& wings, const SigmaSubspaceOptions& options, GwKernels& kernels) {
  constexpr double kHermitian = 1e-6;  // of ‖W‖, as of the self-test
  SubspaceOfW s;
  s.n = at.sphere.size();
  const auto n = static_cast<std::size_t>(s.n);
  const UnsetVector<Cplx> at_zero = screened_matrix(at, 0, wings);
  std::vector<Cplx> hermitian(n * n);
  double departure = 0.0;
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t h = 0; h < n; ++h) {
      hermitian[g * n + h] = 0.5 * (at_zero[g * n + h] + std::conj(at_zero[h * n + g]));
      departure += std::norm(at_zero[g * n + h] - hermitian[g * n + h]);
    }
  if (std::sqrt(departure) > kHermitian * frobenius(at_zero))
    throw InvalidInput("sigma.subspace_tolerance and sigma.subspace_vectors need a Hermitian W(0), which compat = \"bgw\" and its wing rule do not give; leave one of them out");
  std::vector<double> values(n);
  std::vector<Cplx> vectors(n * n);
  kernels.eigen_hermitian(view<const Cplx>(hermitian, s.n, s.n), view<double>(values, s.n), view<Cplx>(vectors, s.n, s.n));
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return std::abs(values[a]) > std::abs(values[b]); });
  std::vector<double> magnitude;
  for (const std::size_t i : order) magnitude.push_back(std::abs(values[i]));
  s.n_b = kept_vectors(magnitude, options);
  const auto n_b = static_cast<std::size_t>(s.n_b);
  s.basis.resize(n * n_b);
  for (std::size_t g = 0; g < n; ++g)
    for (std::size_t b = 0; b < n_b; ++b) s.basis[g * n_b + b] = vectors[order[b] * n + g];
  for (std::size_t f = 0; f < at.epsilon.inverse.size(); ++f) {
    UnsetVector<Cplx> w = f == 0 ? at_zero : screened_matrix(at, f, wings);
    const double size = frobenius(w);
    const std::vector<Cplx> left = adjoint(times_basis(w.data(), s.n, s, kernels), s.n, s.n_b);  // (W C)†
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
    for (std::size_t i = 0; i < w.size(); ++i) left_out += std::norm(w[i] - s.share.back() * s.rest[i]);
    s.residual.push_back(std::sqrt(left_out) / size);
    if (s.residual[f] > s.residual[s.worst]) s.worst = f;
  }
  return s;
}

FormsOfBlock::FormsOfBlock(const ScreeningAtQ& at, const WingFactors& wings, const SubspaceOfW& subspace, std::int64_t n_l, std::int64_t n_b,
                           double weight, GwKernels& kernels, std::vector<double>* error_ry)
    : at_(at), wings_(wings), subspace_(subspace), n_l_(n_l), n_b_(n_b), kernels_(kernels) {
  if (!subspace.used()) return;
  of_rest_ = forms_of(subspace.rest.data(), subspace.n);
  const std::vector<Cplx> exact = forms_of(screened_matrix(at, subspace.worst, wings).data(), subspace.n);
  kernels.project_pair_products(view<const Cplx>(subspace.basis, subspace.n, subspace.n_b));
  const std::vector<Cplx> found = this->at(subspace.worst);
  for (std::size_t p = 0; p < exact.size(); ++p) (*error_ry)[p / static_cast<std::size_t>(n_b)] += 0.5 * weight * std::abs(exact[p] - found[p]);
}

std::vector<Cplx> FormsOfBlock::forms_of(const Cplx* matrix, std::int64_t n) const {
  std::vector<Cplx> forms(static_cast<std::size_t>(n_l_ * n_b_));
  kernels_.quadratic_forms({matrix, {n, n}}, view<Cplx>(forms, n_l_, n_b_));
  return forms;
}

std::vector<Cplx> FormsOfBlock::at(std::size_t frequency) const {
  if (!subspace_.used()) return forms_of(screened_matrix(at_, frequency, wings_).data(), at_.sphere.size());
  std::vector<Cplx> forms = forms_of(subspace_.inner[frequency].data(), subspace_.n_b);
  for (std::size_t p = 0; p < forms.size(); ++p) forms[p] += subspace_.share[frequency] * of_rest_[p];
  return forms;
}

namespace {

/// While it lives a parallel region of this thread gets so many threads.
class AllThreads {
 public:
  explicit AllThreads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~AllThreads() { omp_set_num_threads(before_); }
  AllThreads(const AllThreads&) = delete;
  AllThreads& operator=(const AllThreads&) = delete;

 private:
  int before_;
};

}  // namespace

SharedScreening::SharedScreening() : threads_(omp_get_max_threads()) {}

std::shared_ptr<const PreparedScreening> SharedScreening::of(std::size_t iq, const std::function<PreparedScreening()>& make) {
  const std::lock_guard lock(mutex_);  // others wait: they need the same thing, or the threads
  auto& made = made_[iq];
  if (auto there = made.lock()) return there;
  const AllThreads all(threads_);
  StepClock clock(&times_);
  auto fresh = std::make_shared<const PreparedScreening>(make());
  clock.step("screening");
  made = fresh;
  return fresh;
}

void SharedScreening::load_poles(const PreparedScreening& made, const PoleRules& rules, GwKernels& kernels) {
  StepClock clock(&times_);
  std::shared_ptr<const LoadedPoleModel> there;
  {
    const std::lock_guard lock(mutex_);
    there = made.loaded.lock();
    clock.step("wait_for_screening");
    if (there == nullptr) {
      const AllThreads all(threads_);
      kernels.load_plasmon_pole(made.model.view(), rules);
      made.loaded = kernels.plasmon_pole();
    }
  }
  if (there != nullptr) kernels.take_plasmon_pole(there);
  clock.step("poles_to_device");
}

}  // namespace quasi::gw

#include "workers/gw/kernels/hamiltonian/hamiltonian_operator.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/dense/zgemm_cpu.hpp"

namespace quasi::gw {
namespace {

/// Complex states that one thread handles at a time.
constexpr std::int64_t kBatch = 8;

/// Number of states of type T that one complex vector holds.
template <typename T>
constexpr std::int64_t kStatesPerVector = std::is_same_v<T, double> ? 2 : 1;

/// Copies the states [first, first + count) into complex vectors, [vectors][n]. Two real states
/// a, b become a + ib, because a real H maps both parts apart.
void load(View<const Cplx, 2> states, std::int64_t first, std::int64_t count, Cplx* to) {
  std::copy_n(states.data + first * states.extent[1], count * states.extent[1], to);
}

void load(View<const double, 2> states, std::int64_t first, std::int64_t count, Cplx* to) {
  const std::int64_t n = states.extent[1];
  for (std::int64_t v = 0; 2 * v < count; ++v)
    for (std::int64_t i = 0; i < n; ++i)
      to[v * n + i] = {states(first + 2 * v, i),
                       2 * v + 1 < count ? states(first + 2 * v + 1, i) : 0.0};
}

void store(const Cplx* from, std::int64_t first, std::int64_t count, View<Cplx, 2> states) {
  std::copy_n(from, count * states.extent[1], states.data + first * states.extent[1]);
}

void store(const Cplx* from, std::int64_t first, std::int64_t count, View<double, 2> states) {
  const std::int64_t n = states.extent[1];
  for (std::int64_t s = 0; s < count; ++s)
    for (std::int64_t i = 0; i < n; ++i) {
      const Cplx& c = from[s / 2 * n + i];
      states(first + s, i) = s % 2 == 0 ? c.real() : c.imag();
    }
}

}  // namespace

void SparseMatrix::apply(const Cplx* x, std::int64_t count, Cplx* y) const {
  const auto n = static_cast<std::size_t>(n_rows());
  for (std::size_t v = 0; v < static_cast<std::size_t>(count); ++v)
    for (std::size_t row = 0; row < n; ++row) {
      Cplx sum;
      for (std::int32_t e = begin[row]; e < begin[row + 1]; ++e) {
        const auto at = static_cast<std::size_t>(e);
        sum += value[at] * x[v * n + static_cast<std::size_t>(column[at])];
      }
      y[v * n + row] = sum;
    }
}

/// Applies H to one batch of complex vectors on one thread, with the thread's own work space.
class HamiltonianOperator::Worker {
 public:
  explicit Worker(const HamiltonianOperator& h)
      : h_(h),
        n_(static_cast<std::int64_t>(h.parts_.kinetic_ry.size())),
        n_projectors_(n_ > 0 ? static_cast<std::int64_t>(h.parts_.beta.size()) / n_ : 0),
        box_(static_cast<std::int64_t>(h.potential_.size())),
        overlap_(static_cast<std::size_t>(kBatch * h.parts_.n_spinor * n_projectors_)),
        coupled_(h.parts_.coupling.begin.empty() ? 0 : overlap_.size()) {}

  /// Computes y = H x; both [count][n_spinor][n_pw].
  void apply(const Cplx* x, Cplx* y, std::int64_t count) {
    const std::int64_t rows = count * h_.parts_.n_spinor;
    for (std::int64_t v = 0; v < rows; ++v) apply_local(x + v * n_, y + v * n_);
    if (n_projectors_ == 0) return;
    const HamiltonianParts& p = h_.parts_;
    zgemm({CblasTrans, rows, n_projectors_, n_}, {x, n_}, {p.right.data(), n_},
          {overlap_.data(), n_projectors_});
    if (!coupled_.empty()) p.coupling.apply(overlap_.data(), count, coupled_.data());
    zgemm({.transpose_b = CblasNoTrans, .m = rows, .n = n_, .k = n_projectors_, .beta = 1.0},
          {coupled_.empty() ? overlap_.data() : coupled_.data(), n_projectors_},
          {p.beta.data(), n_}, {y, n_});
  }

 private:
  void apply_local(const Cplx* x, Cplx* y) {
    const HamiltonianParts& p = h_.parts_;
    const auto n = static_cast<std::size_t>(n_);
    for (std::size_t i = 0; i < n; ++i) y[i] = p.kinetic_ry[i] * x[i];
    if (h_.potential_.empty()) return;
    Cplx* box = box_.data();
    std::fill_n(box, box_.size(), Cplx{});
    for (std::size_t i = 0; i < n; ++i) box[p.box_index[i]] = x[i];
    h_.to_box_.run(box);
    for (std::int64_t r = 0; r < box_.size(); ++r)
      box[r] *= h_.potential_[static_cast<std::size_t>(r)];
    h_.to_sphere_.run(box);
    for (std::size_t i = 0; i < n; ++i) y[i] += box[p.box_index[i]];
  }

  const HamiltonianOperator& h_;
  std::int64_t n_, n_projectors_;  ///< plane waves and projectors of one component
  FftArray box_;
  /// Products with the projectors, [kBatch][n_spinor][n_projectors]. They are Σ_q D_pq
  /// ⟨β_q|x⟩ of one component, and ⟨β_p|x_σ⟩ of spinors.
  std::vector<Cplx> overlap_;
  std::vector<Cplx> coupled_;  ///< D times `overlap_` of spinors; else empty
};

HamiltonianOperator::HamiltonianOperator(HamiltonianParts parts) : parts_(std::move(parts)) {
  for (int component = 0; component < parts_.n_spinor; ++component)
    kinetic_ry_.insert(kinetic_ry_.end(), parts_.kinetic_ry.begin(), parts_.kinetic_ry.end());
  is_real_ = parts_.beta.empty();
  for (const auto& [position, value] : parts_.potential_ry)
    is_real_ = is_real_ && value.imag() == 0.0;
  if (parts_.potential_ry.empty()) return;
  FftArray box(std::int64_t{1} * parts_.box[0] * parts_.box[1] * parts_.box[2]);
  std::fill_n(box.data(), box.size(), Cplx{});
  for (const auto& [position, value] : parts_.potential_ry) box.data()[position] = value;
  // Both transforms of a state go to −r, so that both leave out empty lines.
  FftPlan(parts_.box, FftPlan::Sign::kMinus).run(box.data());
  double largest = 0.0, imaginary = 0.0;
  for (std::int64_t r = 0; r < box.size(); ++r) {
    largest = std::max(largest, std::abs(box.data()[r]));
    imaginary = std::max(imaginary, std::abs(box.data()[r].imag()));
    potential_.push_back(box.data()[r].real() / static_cast<double>(box.size()));
  }
  if (imaginary > 1e-8 * largest)
    throw InvalidInput("the local potential has an imaginary part of " + std::to_string(imaginary) +
                       " Ry in real space, so that V(−G) differs from V*(G); is the file whole?");
  to_box_ = {parts_.box, parts_.box_index, SphereTransform::Direction::kFromSphere};
  to_sphere_ = {parts_.box, parts_.box_index, SphereTransform::Direction::kToSphere};
}

template <typename T>
void HamiltonianOperator::apply_in_batches(View<const T, 2> states, View<T, 2> result) const {
  const std::int64_t per_batch = kBatch * kStatesPerVector<T>, n_states = states.extent[0];
  const auto work = static_cast<std::size_t>(kBatch * size());
#pragma omp parallel
  {
    Worker worker(*this);
    std::vector<Cplx> x(work), y(work);
#pragma omp for schedule(dynamic)
    for (std::int64_t first = 0; first < n_states; first += per_batch) {
      const std::int64_t count = std::min(per_batch, n_states - first);
      load(states, first, count, x.data());
      worker.apply(x.data(), y.data(), (count - 1) / kStatesPerVector<T> + 1);
      store(y.data(), first, count, result);
    }
  }
}

template <typename T>
void HamiltonianOperator::filter_in_batches(const ChebyshevFilter& filter,
                                            View<T, 2> states) const {
  const std::int64_t per_batch = kBatch * kStatesPerVector<T>, n_states = states.extent[0];
  const auto work = static_cast<std::size_t>(kBatch * size());
  const double half = (filter.upper_ry - filter.lower_ry) / 2.0;
  const double centre = (filter.upper_ry + filter.lower_ry) / 2.0;
  const double first_scale = half / (filter.lowest_ry - centre);
#pragma omp parallel
  {
    Worker worker(*this);
    std::vector<Cplx> x(work), y(work), hy(work);
#pragma omp for schedule(dynamic)
    for (std::int64_t first = 0; first < n_states; first += per_batch) {
      const std::int64_t count = std::min(per_batch, n_states - first);
      const std::int64_t vectors = (count - 1) / kStatesPerVector<T> + 1;
      const auto values = static_cast<std::size_t>(vectors * size());
      load(View<const T, 2>{states.data, {n_states, size()}}, first, count, x.data());
      // The scaled three-term recursion: x = p_(l−1), y = p_l.
      worker.apply(x.data(), y.data(), vectors);
      double scale = first_scale;
      for (std::size_t i = 0; i < values; ++i) y[i] = (y[i] - centre * x[i]) * (scale / half);
      for (int l = 1; l < filter.degree; ++l) {
        const double next = 1.0 / (2.0 / first_scale - scale);
        worker.apply(y.data(), hy.data(), vectors);
        for (std::size_t i = 0; i < values; ++i)
          x[i] = (hy[i] - centre * y[i]) * (2.0 * next / half) - scale * next * x[i];
        std::swap(x, y);
        scale = next;
      }
      store(y.data(), first, count, states);
    }
  }
}

namespace {

/// Complex vectors whose series one thread adds up at a time, and terms added in one product.
constexpr std::int64_t kSeriesBatch = 2, kTermsPerProduct = 16;

double norm_of(const Cplx* x, std::int64_t n) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::norm(x[i]);
  return std::sqrt(sum);
}

/// Terms T_l x of one batch of vectors, and the sums of the series over them.
class SeriesOfBatch {
 public:
  SeriesOfBatch(const ChebyshevSeries& series, std::int64_t n)
      : series_(series),
        n_(n),
        terms_(static_cast<std::size_t>(kSeriesBatch * kTermsPerProduct * n)),
        sums_(static_cast<std::size_t>(kSeriesBatch * series.coefficients.extent[0] * n)) {}

  void begin() { std::fill(sums_.begin(), sums_.end(), Cplx{}); }
  /// Takes T_l x of all vectors of the batch, [count][n], and adds the terms when enough are there.
  void take(std::int64_t l, const Cplx* x, std::int64_t count) {
    const std::int64_t slot = l % kTermsPerProduct, last = series_.coefficients.extent[1] - 1;
    for (std::int64_t v = 0; v < count; ++v)
      std::copy_n(x + v * n_, n_, terms_.data() + (v * kTermsPerProduct + slot) * n_);
    if (slot + 1 == kTermsPerProduct || l == last) add(l - slot, slot + 1, count);
  }
  /// Returns f_k(H) of vector v.
  const Cplx* sum(std::int64_t v, std::int64_t k) const {
    return sums_.data() + (v * series_.coefficients.extent[0] + k) * n_;
  }

 private:
  /// Adds `terms` terms from T_first on. Coefficients are real, so that the product is one of real
  /// matrices with twice the columns.
  void add(std::int64_t first, std::int64_t terms, std::int64_t count) {
    const std::int64_t functions = series_.coefficients.extent[0];
    for (std::int64_t v = 0; v < count; ++v)
      cblas_dgemm(
          CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(functions),
          static_cast<int>(2 * n_), static_cast<int>(terms), 1.0, series_.coefficients.data + first,
          static_cast<int>(series_.coefficients.extent[1]),
          reinterpret_cast<const double*>(terms_.data() + v * kTermsPerProduct * n_),
          static_cast<int>(2 * n_), 1.0,
          reinterpret_cast<double*>(sums_.data() + v * functions * n_), static_cast<int>(2 * n_));
  }

  const ChebyshevSeries& series_;
  std::int64_t n_;
  std::vector<Cplx> terms_, sums_;
};

}  // namespace

template <typename T>
double HamiltonianOperator::expand_in_batches(const ChebyshevSeries& series,
                                              View<const T, 2> states, View<T, 3> result) const {
  const std::int64_t per_batch = kSeriesBatch * kStatesPerVector<T>, n_states = states.extent[0],
                     functions = series.coefficients.extent[0],
                     degree = series.coefficients.extent[1] - 1;
  const auto work = static_cast<std::size_t>(kSeriesBatch * size());
  double growth = 0.0;
#pragma omp parallel reduction(max : growth)
  {
    Worker worker(*this);
    SeriesOfBatch sums(series, size());
    std::vector<Cplx> before(work), now(work), image(work);
#pragma omp for schedule(dynamic)
    for (std::int64_t first = 0; first < n_states; first += per_batch) {
      const std::int64_t count = std::min(per_batch, n_states - first);
      const std::int64_t vectors = (count - 1) / kStatesPerVector<T> + 1;
      const auto values = static_cast<std::size_t>(vectors * size());
      sums.begin();
      load(states, first, count, now.data());
      const double start = norm_of(now.data(), vectors * size());
      for (std::int64_t l = 0; l <= degree; ++l) {
        sums.take(l, now.data(), vectors);
        growth = std::max(growth, norm_of(now.data(), vectors * size()) / start);
        if (l == degree) break;
        worker.apply(now.data(), image.data(), vectors);
        const double factor = (l == 0 ? 1.0 : 2.0) / series.half_ry;
        for (std::size_t i = 0; i < values; ++i)
          before[i] =
              (image[i] - series.centre_ry * now[i]) * factor - (l == 0 ? Cplx{} : before[i]);
        std::swap(before, now);
      }
      std::vector<Cplx> of_function(values);
      for (std::int64_t k = 0; k < functions; ++k) {
        for (std::int64_t v = 0; v < vectors; ++v)
          std::copy_n(sums.sum(v, k), size(), of_function.data() + v * size());
        store(of_function.data(), first, count,
              View<T, 2>{result.data + k * n_states * size(), {n_states, size()}});
      }
    }
  }
  return growth;
}

double HamiltonianOperator::expand(const ChebyshevSeries& series, View<const Cplx, 2> states,
                                   View<Cplx, 3> result) const {
  return expand_in_batches(series, states, result);
}
double HamiltonianOperator::expand(const ChebyshevSeries& series, View<const double, 2> states,
                                   View<double, 3> result) const {
  return expand_in_batches(series, states, result);
}
void HamiltonianOperator::apply(View<const Cplx, 2> states, View<Cplx, 2> result) const {
  apply_in_batches(states, result);
}
void HamiltonianOperator::apply(View<const double, 2> states, View<double, 2> result) const {
  apply_in_batches(states, result);
}
void HamiltonianOperator::filter(const ChebyshevFilter& filter, View<Cplx, 2> states) const {
  filter_in_batches(filter, states);
}
void HamiltonianOperator::filter(const ChebyshevFilter& filter, View<double, 2> states) const {
  filter_in_batches(filter, states);
}

}  // namespace quasi::gw

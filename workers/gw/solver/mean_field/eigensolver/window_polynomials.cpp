#include "workers/gw/solver/mean_field/eigensolver/window_polynomials.hpp"

#include <fftw3.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pair_products/fft_cpu.hpp"
#include "workers/gw/physics/crystal.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

constexpr int kHighestDegree = 100000;
constexpr double kDegreeGrowth = 1.2;

/// Transforms values at Chebyshev nodes cos(π(j + ½)/N) into coefficients, and back.
class CosineTransform {
 public:
  explicit CosineTransform(std::size_t n) : data_(static_cast<std::int64_t>(n / 2 + 1)), n_(n) {
    const std::lock_guard lock(fftw_planner());
    const auto make = [&](fftw_r2r_kind kind) {
      return fftw_plan_r2r_1d(static_cast<int>(n_), data(), data(), kind, FFTW_ESTIMATE);
    };
    to_coefficients_ = make(FFTW_REDFT10);
    to_values_ = make(FFTW_REDFT01);
  }
  ~CosineTransform() {
    const std::lock_guard lock(fftw_planner());
    fftw_destroy_plan(to_coefficients_);
    fftw_destroy_plan(to_values_);
  }
  CosineTransform(const CosineTransform&) = delete;
  CosineTransform& operator=(const CosineTransform&) = delete;

  std::size_t size() const { return n_; }
  /// Returns the array that both transforms change.
  double* data() { return reinterpret_cast<double*>(data_.data()); }
  void values_to_coefficients() {
    fftw_execute(to_coefficients_);
    for (std::size_t l = 0; l < n_; ++l) data()[l] /= static_cast<double>(l == 0 ? 2 * n_ : n_);
  }
  void coefficients_to_values() {
    for (std::size_t l = 1; l < n_; ++l) data()[l] *= 0.5;
    fftw_execute(to_values_);
  }

 private:
  FftArray data_;
  std::size_t n_;
  fftw_plan to_coefficients_, to_values_;
};

/// Returns a number of nodes that resolves polynomials of a degree well.
std::size_t nodes_for(int degree) {
  std::size_t n = 32768;
  while (n < 16 * static_cast<std::size_t>(degree)) n *= 2;
  return n;
}

double node_of(std::size_t j, std::size_t n) {
  return std::cos(kPi * (static_cast<double>(j) + 0.5) / static_cast<double>(n));
}

/// Returns Jackson's damping factor of T_l in a series up to `degree` [weisse2006].
double jackson_factor(int l, int degree) {
  const double n = degree + 1.0, angle = kPi / (n + 1.0);
  return ((n - l + 1.0) * std::cos(angle * l) + std::sin(angle * l) / std::tan(angle)) / (n + 1.0);
}

/// Returns the number of slices between `first` and `last` that grow by the factor 1 + ratio.
std::size_t slices_between(double first, double last, double ratio) {
  return static_cast<std::size_t>(
      std::max(1.0, std::ceil(std::log(last / first) / std::log1p(ratio))));
}

/// Returns the lower edge of slice k, as a distance from midgap.
double lower_edge(double first, double ratio, std::size_t k) {
  return first * std::pow(1.0 + ratio, static_cast<double>(k));
}

}  // namespace

WindowPolynomials::WindowPolynomials(const PseudobandOptions& options, const WindowRange& range) {
  const double margin = 0.01 * (range.highest_ry - range.lowest_ry);
  const double low = range.lowest_ry - margin, high = range.highest_ry;
  centre_ry_ = 0.5 * (low + high);
  half_ry_ = 0.5 * (high - low);
  const double last = range.highest_ry - range.midgap_ry;
  const EnergyWindows windows(range.first_ry, last, options.ratio);
  const bool splines = options.windows == WindowForm::kSplines;
  const std::size_t n =
      splines ? windows.size() : slices_between(range.first_ry, last, options.ratio);
  for (std::size_t k = 0; k < n; ++k) {
    node_.push_back(splines ? windows.node(k)
                            : 0.5 * (lower_edge(range.first_ry, options.ratio, k) +
                                     lower_edge(range.first_ry, options.ratio, k + 1)));
    width_.push_back(splines ? windows.width(k) : 0.0);
  }
  const double narrowest = options.ratio * range.first_ry;
  degree_ = options.degree > 0
                ? options.degree
                : static_cast<int>(std::ceil((splines ? 2.0 : 3.5) * 2.0 * half_ry_ / narrowest));
  while (true) {
    if (degree_ > kHighestDegree)
      throw InvalidInput("the windows of the pseudobands need polynomials of a degree above " +
                         std::to_string(kHighestDegree) +
                         "; raise pseudobands.ratio or pseudobands.protected_ry");
    expand(options, windows, range);
    measure(range);
    if (!splines || identity_error_ <= options.max_identity_error) return;
    if (options.degree > 0)
      throw InvalidInput("pseudobands.degree = " + std::to_string(degree_) +
                         " leaves windows that add up to 1 only within " + shown(identity_error_) +
                         ", more than pseudobands.max_identity_error = " +
                         shown(options.max_identity_error) + "; leave pseudobands.degree out");
    degree_ = static_cast<int>(std::ceil(kDegreeGrowth * degree_));
  }
}

void WindowPolynomials::expand(const PseudobandOptions& options, const EnergyWindows& windows,
                               const WindowRange& range) {
  const WindowForm form = options.windows;
  const double ratio = options.ratio;
  const auto terms = static_cast<std::size_t>(degree_) + 1;
  coefficients_.assign((size() + 1) * terms, 0.0);
  const auto window_value = [&](std::size_t k, double x) {
    if (form == WindowForm::kJackson) {
      if (k == size()) return x < range.first_ry ? 1.0 : 0.0;
      const double lower = lower_edge(range.first_ry, ratio, k);
      return x >= lower && x < lower_edge(range.first_ry, ratio, k + 1) ? 1.0 : 0.0;
    }
    if (k < size()) return std::sqrt(std::max(0.0, windows.weight(k, x)));
    double sum = 0.0;
    if (x < range.first_ry)
      for (std::size_t j = 0; j < size(); ++j) sum += windows.weight(j, x);
    return x < range.first_ry ? std::sqrt(std::max(0.0, 1.0 - sum)) : 0.0;
  };
#pragma omp parallel for schedule(dynamic)
  for (std::size_t k = 0; k <= size(); ++k) {
    CosineTransform transform(nodes_for(degree_));
    for (std::size_t j = 0; j < transform.size(); ++j)
      transform.data()[j] =
          window_value(k, centre_ry_ + half_ry_ * node_of(j, transform.size()) - range.midgap_ry);
    transform.values_to_coefficients();
    for (std::size_t l = 0; l < terms; ++l)
      coefficients_[k * terms + l] =
          transform.data()[l] *
          (form == WindowForm::kJackson ? jackson_factor(static_cast<int>(l), degree_) : 1.0);
  }
}

void WindowPolynomials::measure(const WindowRange& range) {
  const auto terms = static_cast<std::size_t>(degree_) + 1;
  const std::size_t nodes = nodes_for(degree_);
  const double first = range.midgap_ry + range.first_ry;
  std::vector<double> energy(nodes), sum(nodes);
  for (std::size_t j = 0; j < nodes; ++j) energy[j] = centre_ry_ + half_ry_ * node_of(j, nodes);
  std::vector<std::vector<double>> values(size() + 1);
#pragma omp parallel for schedule(dynamic)
  for (std::size_t k = 0; k <= size(); ++k) {
    CosineTransform transform(nodes);
    std::fill_n(transform.data(), nodes, 0.0);
    std::copy_n(coefficients_.data() + k * terms, terms, transform.data());
    transform.coefficients_to_values();
    values[k].assign(transform.data(), transform.data() + nodes);
  }
  leak_ = 0.0;
  for (std::size_t j = 0; j < nodes; ++j) {
    for (std::size_t k = 0; k < size(); ++k) sum[j] += values[k][j] * values[k][j];
    if (energy[j] >= first) leak_ = std::max(leak_, std::abs(values[size()][j]));
  }
  identity_error_ = lost_weight_ = 0.0;
  double weights = 0.0;
  for (std::size_t j = 0; j < sum.size(); ++j) {
    if (energy[j] < first) continue;
    identity_error_ = std::max(identity_error_, std::abs(sum[j] - 1.0));
    // Nodes lie at equal angles, so that dE is proportional to sin θ.
    const double x = node_of(j, sum.size());
    const double weight = std::sqrt(energy[j] - range.lowest_ry) * std::sqrt(1.0 - x * x);
    lost_weight_ += weight * (1.0 - sum[j]);
    weights += weight;
  }
  lost_weight_ /= weights;
}

double WindowPolynomials::value(std::size_t k, double energy_ry) const {
  const double x = (energy_ry - centre_ry_) / half_ry_;
  const double* const c = coefficients_.data() + k * static_cast<std::size_t>(degree_ + 1);
  double next = 0.0, after = 0.0;  // Clenshaw's recursion
  for (int l = degree_; l > 0; --l) {
    const double now = c[l] + 2.0 * x * next - after;
    after = next;
    next = now;
  }
  return c[0] + x * next - after;
}

double WindowPolynomials::energy(std::size_t k, double pole_ry) const {
  return moved_node(node_[k], width_[k], pole_ry);
}

}  // namespace quasi::gw

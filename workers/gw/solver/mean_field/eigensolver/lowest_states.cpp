#include "workers/gw/solver/mean_field/eigensolver/lowest_states.hpp"

#include <array>
#include <cstdio>

#include "workers/backend/error.hpp"
#include "workers/backend/philox.hpp"
#include "workers/gw/solver/mean_field/eigensolver/block_algebra.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {
namespace {

constexpr int kDegree = 20;
constexpr int kLanczosSteps = 12;
/// Iterations after which estimates of energies show how far the guard states reach, and the least
/// distance from the last wanted state to the last guard state, Ry.
constexpr int kSettlingIterations = 3;
constexpr double kClear_ry = 0.01;
/// Row number of the start vector of Lanczos. No state of a block has it.
constexpr std::uint32_t kLanczosRow = 0xffffffffu;

/// Fills `row` with seeded random numbers that fall with the kinetic energy.
template <typename T>
void fill_start(const std::vector<double>& kinetic_ry, std::uint32_t row_number, T* row) {
  for (std::size_t i = 0; i < kinetic_ry.size(); ++i)
    row[i] = (Philox::at(static_cast<std::uint32_t>(i), row_number, 0, 0, 26, 18).unit() - 0.5) /
             (1.0 + std::max(0.0, kinetic_ry[i]));
}

/// Returns a bound of the largest eigenvalue of H after a few Lanczos steps: the largest Ritz value
/// plus the norm of the last residual [zhou2006].
template <typename T>
double upper_bound(const HamiltonianOperator& h, std::int64_t* applications) {
  const std::int64_t n = h.size();
  const auto length = static_cast<std::size_t>(n);
  std::vector<T> v(length), before(length), w(length);
  for (std::size_t i = 0; i < length; ++i)
    v[i] = Philox::at(static_cast<std::uint32_t>(i), kLanczosRow, 0, 0, 26, 18).unit() - 0.5;
  const auto norm_of = [](const std::vector<T>& x) {
    double sum = 0.0;
    for (const T& value : x) sum += std::norm(value);
    return std::sqrt(sum);
  };
  std::vector<double> diagonal, off;
  double beta = norm_of(v);
  for (int step = 0; step < std::min<std::int64_t>(kLanczosSteps, n) && beta > 1e-10; ++step) {
    if (step > 0) off.push_back(beta);
    for (T& value : v) value /= beta;
    h.apply(view<const T>(v, 1, n), view<T>(w, 1, n));
    ++*applications;
    double alpha = 0.0;
    for (std::size_t i = 0; i < length; ++i) {
      if constexpr (std::is_same_v<T, double>)
        alpha += v[i] * w[i];
      else
        alpha += std::real(std::conj(v[i]) * w[i]);
    }
    diagonal.push_back(alpha);
    for (std::size_t i = 0; i < length; ++i)
      w[i] -= alpha * v[i] + (step > 0 ? beta * before[i] : T{});
    beta = norm_of(w);
    std::swap(before, v);
    std::swap(v, w);
  }
  if (LAPACKE_dsterf(static_cast<lapack_int>(diagonal.size()), diagonal.data(), off.data()) != 0)
    throw NotConverged("the bound of the spectrum of H could not be calculated");
  return diagonal.back() + beta;
}

/// One run of the iteration for real or complex states.
template <typename T>
class SubspaceIteration {
 public:
  SubspaceIteration(const HamiltonianOperator& h, int wanted, const EigensolverOptions& options)
      : h_(h), wanted_(wanted), options_(options), n_(h.size()) {
    upper_ry_ = upper_bound<T>(h, &result_.applications);
    grow(wanted + guard());
    orthonormalise(rows<const T>(0, 0), rows<T>(0, states_));
  }

  LowestStates run() {
    while (true) {
      project();
      lock();
      if (n_locked_ >= wanted_) return finish();
      if (++result_.iterations > options_.max_iterations) fail();
      ChebyshevFilter filter{.lower_ry = energy_ry_.back(),
                             .upper_ry = std::max(upper_ry_, energy_ry_.back() + 1.0),
                             .lowest_ry = energy_ry_[static_cast<std::size_t>(n_locked_)],
                             .degree = kDegree};
      if (filter.lower_ry - filter.lowest_ry < 1e-6) filter.lower_ry = filter.lowest_ry + 1e-6;
      if (multiplet_fills_guard()) grow(states_ + guard());
      h_.filter(filter, rows<T>(n_locked_, states_));
      result_.applications += kDegree * (states_ - n_locked_);
      orthonormalise(rows<const T>(0, n_locked_), rows<T>(n_locked_, states_));
    }
  }

 private:
  /// Number of states that the block holds above the wanted ones.
  std::int64_t guard() const { return std::max(8, wanted_ / 8); }

  /// The states [begin, end) of the block.
  template <typename U>
  View<U, 2> rows(std::int64_t begin, std::int64_t end) {
    return {block_.data() + begin * n_, {end - begin, n_}};
  }

  /// Adds random states until the block holds `count`, or the whole space.
  void grow(std::int64_t count) {
    const std::int64_t before = states_;
    states_ = std::min(n_, count);
    block_.resize(static_cast<std::size_t>(states_ * n_));
    for (std::int64_t row = before; row < states_; ++row)
      fill_start(h_.kinetic_ry(), static_cast<std::uint32_t>(row), block_.data() + row * n_);
  }

  /// Makes the states above the locked ones eigenstates of H within their space (Rayleigh–Ritz).
  void project() {
    const std::int64_t active = states_ - n_locked_;
    const auto x = rows<T>(n_locked_, states_);
    const auto x_const = rows<const T>(n_locked_, states_);
    std::vector<T> image(static_cast<std::size_t>(active * n_));
    const auto hx = view<T>(image, active, n_);
    h_.apply(x_const, hx);
    result_.applications += active;
    std::vector<T> small = overlaps(view<const T>(image, active, n_), x_const);
    const std::vector<double> values = diagonalise(small, active);
    rotate(small, x);
    rotate(small, hx);
    energy_ry_.resize(static_cast<std::size_t>(n_locked_));
    energy_ry_.insert(energy_ry_.end(), values.begin(), values.end());
    residual_ry_.resize(static_cast<std::size_t>(states_));
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < active; ++i) {
      double sum = 0.0;
      for (std::int64_t g = 0; g < n_; ++g)
        sum += std::norm(hx(i, g) - values[static_cast<std::size_t>(i)] * x(i, g));
      residual_ry_[static_cast<std::size_t>(n_locked_ + i)] = std::sqrt(sum);
    }
  }

  /// True if the states below `count` certainly hold no part of a multiplet that goes on above: an
  /// eigenvalue lies within the residual of its estimate.
  bool ends_multiplet(std::int64_t count) const {
    if (count == states_) return states_ == n_;
    const auto above = static_cast<std::size_t>(count);
    return energy_ry_[above] - residual_ry_[above] - energy_ry_[above - 1] > kDegenerate_ry;
  }

  /// Locks the converged states from below, in whole multiplets.
  void lock() {
    std::int64_t converged = n_locked_;
    while (converged < states_ &&
           residual_ry_[static_cast<std::size_t>(converged)] <= options_.residual_ry)
      ++converged;
    for (std::int64_t count = converged; count > n_locked_; --count)
      if (ends_multiplet(count)) {
        n_locked_ = count;
        return;
      }
  }

  /// True if the guard states are not clear of the last wanted state. The filter then hardly
  /// separates them, as in a multiplet that is larger than the guard.
  bool multiplet_fills_guard() const {
    return states_ < n_ && result_.iterations > kSettlingIterations &&
           energy_ry_.back() - energy_ry_[static_cast<std::size_t>(wanted_ - 1)] < kClear_ry;
  }

  /// Returns the locked states, at least the wanted ones, up to the end of their multiplet.
  LowestStates finish() {
    std::int64_t count = wanted_;
    while (count < n_locked_ && !ends_multiplet(count)) ++count;
    result_.energy_ry.assign(energy_ry_.begin(), energy_ry_.begin() + count);
    result_.coefficients.assign(block_.begin(), block_.begin() + count * n_);
    result_.largest_residual_ry =
        *std::max_element(residual_ry_.begin(), residual_ry_.begin() + count);
    return std::move(result_);
  }

  [[noreturn]] void fail() const {
    const auto last = static_cast<std::size_t>(n_locked_);
    std::array<char, 32> residual{}, limit{};
    std::snprintf(residual.data(), residual.size(), "%.2e", residual_ry_[last]);
    std::snprintf(limit.data(), limit.size(), "%.2e", options_.residual_ry);
    throw NotConverged("state " + std::to_string(n_locked_ + 1) + " of " + std::to_string(wanted_) +
                       " has a residual of " + residual.data() + " Ry after " +
                       std::to_string(options_.max_iterations) +
                       " iterations, above meanfield.residual_ry = " + limit.data() +
                       "; raise that limit or set meanfield.solver = \"dense\"");
  }

  const HamiltonianOperator& h_;
  int wanted_;
  EigensolverOptions options_;
  std::int64_t n_;
  double upper_ry_ = 0.0;
  std::int64_t states_ = 0;    ///< of the block
  std::int64_t n_locked_ = 0;  ///< converged states, the first of the block
  std::vector<T> block_;       ///< [states_][n_]
  std::vector<double> energy_ry_, residual_ry_;
  LowestStates result_;
};

}  // namespace

LowestStates lowest_states(const HamiltonianOperator& h, int wanted,
                           const EigensolverOptions& options) {
  if (wanted < 1 || wanted > h.size())
    throw InvalidInput(std::to_string(wanted) + " states are wanted, but H has " +
                       std::to_string(h.size()) + "; lower the number of bands");
  const SingleThreadedBlas guard;
  if (h.is_real()) return SubspaceIteration<double>(h, wanted, options).run();
  return SubspaceIteration<Cplx>(h, wanted, options).run();
}

double spectrum_bound_ry(const HamiltonianOperator& h) {
  const SingleThreadedBlas guard;
  std::int64_t applications = 0;
  return h.is_real() ? upper_bound<double>(h, &applications) : upper_bound<Cplx>(h, &applications);
}

}  // namespace quasi::gw

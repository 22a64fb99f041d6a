#include "workers/gw/solver/mean_field/eigensolver/lowest_states.hpp"

#include <array>
#include <cstdio>

#include "workers/backend/error.hpp"
#include "workers/backend/philox.hpp"
#include "workers/gw/kernels/hamiltonian/block_algebra.hpp"
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
void fill_start(const std::vector<double>& kinetic_ry, std::uint32_t row_number, double* row) {
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

/// One run of the iteration on one device.
class SubspaceIteration {
 public:
  SubspaceIteration(const HamiltonianOperator& h, HamiltonianKernels& kernels, int wanted,
                    const EigensolverOptions& options)
      : h_(h),
        loaded_(kernels.load(h)),
        block_(loaded_->make_block()),
        wanted_(wanted),
        options_(options) {
    upper_ry_ = h.is_real() ? upper_bound<double>(h, &result_.applications)
                            : upper_bound<Cplx>(h, &result_.applications);
    grow(wanted + guard());
    block_->orthonormalise(0);
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
      if (multiplet_fills_guard()) grow(block_->size() + guard());
      block_->filter(filter, n_locked_);
      result_.applications += kDegree * (block_->size() - n_locked_);
      block_->orthonormalise(n_locked_);
    }
  }

 private:
  /// Number of states that the block holds above the wanted ones.
  std::int64_t guard() const { return guard_states(wanted_); }

  /// Adds random states until the block holds `count`, or the whole space.
  void grow(std::int64_t count) {
    const std::int64_t n = h_.size(), before = block_->size(), after = std::min(n, count);
    std::vector<double> added(static_cast<std::size_t>((after - before) * n));
#pragma omp parallel for schedule(static)
    for (std::int64_t row = before; row < after; ++row)
      fill_start(h_.kinetic_ry(), static_cast<std::uint32_t>(row),
                 added.data() + (row - before) * n);
    block_->append(view<const double>(added, after - before, n));
  }

  /// Replaces the states above the locked ones by estimates of eigenstates.
  void project() {
    const RitzPairs pairs = block_->project(n_locked_);
    result_.applications += block_->size() - n_locked_;
    const auto locked = static_cast<std::size_t>(n_locked_);
    energy_ry_.resize(locked);
    residual_ry_.resize(locked);
    energy_ry_.insert(energy_ry_.end(), pairs.energy_ry.begin(), pairs.energy_ry.end());
    residual_ry_.insert(residual_ry_.end(), pairs.residual_ry.begin(), pairs.residual_ry.end());
  }

  /// True if the states below `count` certainly hold no part of a multiplet that goes on above: an
  /// eigenvalue lies within the residual of its estimate.
  bool ends_multiplet(std::int64_t count) const {
    if (count == block_->size()) return block_->size() == h_.size();
    const auto above = static_cast<std::size_t>(count);
    return energy_ry_[above] - residual_ry_[above] - energy_ry_[above - 1] > kDegenerate_ry;
  }

  /// Locks the converged states from below, in whole multiplets.
  void lock() {
    std::int64_t converged = n_locked_;
    while (converged < block_->size() &&
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
    return block_->size() < h_.size() && result_.iterations > kSettlingIterations &&
           energy_ry_.back() - energy_ry_[static_cast<std::size_t>(wanted_ - 1)] < kClear_ry;
  }

  /// Returns the locked states, at least the wanted ones, up to the end of their multiplet.
  LowestStates finish() {
    std::int64_t count = wanted_;
    while (count < n_locked_ && !ends_multiplet(count)) ++count;
    result_.energy_ry.assign(energy_ry_.begin(), energy_ry_.begin() + count);
    result_.coefficients = block_->read(count);
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
  std::unique_ptr<LoadedHamiltonian> loaded_;
  std::unique_ptr<StateBlock> block_;
  int wanted_;
  EigensolverOptions options_;
  double upper_ry_ = 0.0;
  std::int64_t n_locked_ = 0;  ///< converged states, the first of the block
  std::vector<double> energy_ry_, residual_ry_;
  LowestStates result_;
};

}  // namespace

LowestStates lowest_states(const HamiltonianOperator& h, HamiltonianKernels& kernels, int wanted,
                           const EigensolverOptions& options) {
  if (wanted < 1 || wanted > h.size())
    throw InvalidInput(std::to_string(wanted) + " states are wanted, but H has " +
                       std::to_string(h.size()) + "; lower the number of bands");
  return SubspaceIteration(h, kernels, wanted, options).run();
}

double spectrum_bound_ry(const HamiltonianOperator& h) {
  const SingleThreadedBlas guard;
  std::int64_t applications = 0;
  return h.is_real() ? upper_bound<double>(h, &applications) : upper_bound<Cplx>(h, &applications);
}

}  // namespace quasi::gw

#include "workers/gw/solver/mean_field/filtered_pseudobands.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/gw/kernels/hamiltonian/block_algebra.hpp"
#include "workers/gw/solver/mean_field/eigensolver/lowest_states.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

/// A missing state adds about 1 to the squared norm of what a vector has below the windows.
constexpr double kMissingState = 0.1;
constexpr double kLargestGrowth = 1.01;

HamiltonianOperator operator_at(const MeanField& field, int spin, int ik) {
  return HamiltonianOperator(field.hamiltonian(field.waves, spin, ik));
}

/// Throws if the states of some k end below the energy at which windows begin.
void require_reach(const Wavefunctions& waves, const PseudobandPlan& plan, double end_ry) {
  for_each_point(waves, [&](int spin, int ik) {
    const double top = waves.energy(spin, ik, waves.n_bands - 1) - plan.midgap_ry;
    if (top < end_ry)
      throw InvalidInput("the " + std::to_string(waves.n_bands) + " bands of k-point " +
                         std::to_string(ik + 1) + " end " + shown(top) +
                         " Ry above midgap, below pseudobands.protected_ry = " + shown(end_ry) +
                         "; take more bands (meanfield.bands or WFN) or lower that energy");
  });
}

/// Returns a number as one of the kind in which H is applied.
template <typename T>
T as(const Cplx& value) {
  if constexpr (std::is_same_v<T, double>)
    return value.real();
  else
    return value;
}

/// Copies coefficients, dropping imaginary parts where T is real.
template <typename T>
std::vector<T> converted(const Cplx* from, std::size_t count) {
  std::vector<T> to(count);
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < count; ++i) to[i] = as<T>(from[i]);
  return to;
}

/// Makes pseudobands of one spin and k-point with real or complex vectors.
template <typename T>
class FilteredVectors {
 public:
  /// @param order  order of H: plane waves times components
  FilteredVectors(LoadedHamiltonian& h, std::int64_t order, const PseudobandPlan& plan,
                  const Cplx* states)
      : h_(h),
        plan_(plan),
        n_(order),
        n_vectors_(static_cast<std::int64_t>(plan.chosen.size())),
        kept_(converted<T>(states, static_cast<std::size_t>(plan.kept * n_))) {}

  /// Returns the random vectors N_ξ^−½ θ_r, [vectors][order]. With this factor a sum over the
  /// vectors is a mean.
  std::vector<T> scaled(const RandomFactors& factors) const {
    std::vector<T> x(static_cast<std::size_t>(n_vectors_ * n_));
    const double scale = 1.0 / std::sqrt(static_cast<double>(n_vectors_));
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t r = 0; r < n_vectors_; ++r)
        x[static_cast<std::size_t>(r * n_ + i)] =
            as<T>(factors.at(plan_.chosen[static_cast<std::size_t>(r)], static_cast<int>(i))) *
            scale;
    return x;
  }

  /// Returns the windows of random vectors, [windows][vectors][order].
  /// @param x  vectors of scaled()
  std::vector<T> make(std::vector<T> x) const {
    remove_kept(view<T>(x, n_vectors_, n_));
    const WindowPolynomials& filter = *plan_.filter;
    const auto windows = static_cast<std::int64_t>(filter.size());
    std::vector<T> made(static_cast<std::size_t>((windows + 1) * n_vectors_ * n_));
    const double growth =
        h_.expand({filter.centre_ry(), filter.half_ry(),
                   view<const double>(filter.coefficients(), windows + 1, filter.degree() + 1)},
                  view<const T>(x, n_vectors_, n_), view<T>(made, windows + 1, n_vectors_, n_));
    if (growth > kLargestGrowth)
      throw NotConverged("the spectrum of H exceeds its bound of " +
                         shown(filter.centre_ry() + filter.half_ry()) +
                         " Ry by Lanczos steps; set meanfield.solver = \"dense\"");
    remove_kept(view<T>(made, (windows + 1) * n_vectors_, n_));
    require_nothing_below(made.data() + windows * n_vectors_ * n_);
    made.resize(static_cast<std::size_t>(windows * n_vectors_ * n_));
    return made;
  }

 private:
  /// Makes vectors orthogonal to the protected states.
  void remove_kept(View<T, 2> x) const { h_.remove(view<const T>(kept_, plan_.kept, n_), x); }
  /// Checks that the vectors have no part below the windows.
  /// @param below  part of each vector below the windows, [vectors][order]
  void require_nothing_below(const T* below) const {
    double sum = 0.0;
    for (std::int64_t i = 0; i < n_vectors_ * n_; ++i) sum += std::norm(below[i]);
    const double leak = plan_.filter->leak();
    if (sum > kMissingState + leak * leak * static_cast<double>(n_))
      throw NotConverged(
          "a state of H below the windows of the pseudobands is missing among the protected bands "
          "(squared norm " +
          shown(sum) + "); lower meanfield.residual_ry or take more bands");
  }

  LoadedHamiltonian& h_;
  const PseudobandPlan& plan_;
  std::int64_t n_, n_vectors_;
  std::vector<T> kept_;
};

/// Copies the windows of FilteredVectors::make() in the order of PseudobandPlan::place_of().
template <typename T>
void copy_windows(const std::vector<T>& vectors, const PseudobandPlan& plan, std::ptrdiff_t row,
                  std::vector<Cplx>::iterator to) {
  const auto n_vectors = static_cast<std::ptrdiff_t>(plan.chosen.size());
#pragma omp parallel for schedule(static)
  for (int band = plan.kept; band < plan.bands(); ++band) {
    const PseudobandPlan::Place place = plan.place_of(band - plan.kept);
    const auto first = vectors.begin() + (static_cast<std::ptrdiff_t>(place.window) * n_vectors +
                                          static_cast<std::ptrdiff_t>(place.vector)) *
                                             row;
    std::copy_n(first, row, to + (band - plan.kept) * row);
  }
}

/// Returns the states of a plan at one spin and k-point, [bands][n_spinor][n_pw].
std::vector<Cplx> states_at(const MeanField& field, const PseudobandPlan& plan, PseudobandUse use,
                            int spin, int ik, HamiltonianKernels& kernels) {
  const StateCoefficients& states =
      field.waves.waves[static_cast<std::size_t>(ik)].coefficients[static_cast<std::size_t>(spin)];
  const HamiltonianOperator h = operator_at(field, spin, ik);
  const auto loaded = kernels.load(h);
  const bool real = h.is_real() && is_real(states);
  const RandomFactors factors(plan.seed, static_cast<std::uint32_t>(use), spin, ik, real);
  const auto row = static_cast<std::ptrdiff_t>(h.size());
  std::vector<Cplx> made(static_cast<std::size_t>(plan.bands() * row));
#pragma omp parallel for schedule(static)
  for (int band = 0; band < plan.kept; ++band)
    std::copy_n(states.begin() + band * row, row, made.begin() + band * row);
  const auto add = [&](const auto& filtered) {
    copy_windows(filtered.make(filtered.scaled(factors)), plan, row,
                 made.begin() + plan.kept * row);
  };
  if (real)
    add(FilteredVectors<double>(*loaded, h.size(), plan, states.data()));
  else
    add(FilteredVectors<Cplx>(*loaded, h.size(), plan, states.data()));
  return made;
}

}  // namespace

std::vector<Cplx> windows_of_vectors(const PseudobandPlan& plan, View<const Cplx, 2> kept,
                                     View<const Cplx, 2> factors, LoadedHamiltonian& h) {
  const SingleThreadedBlas guard;
  const std::int64_t n_pw = factors.extent[1];
  std::vector<Cplx> made(static_cast<std::size_t>((plan.bands() - plan.kept) * n_pw));
  copy_windows(FilteredVectors<Cplx>(h, n_pw, plan, kept.data)
                   .make({factors.data, factors.data + factors.size()}),
               plan, n_pw, made.begin());
  return made;
}

PseudobandPlan plan_filtered_pseudobands(const MeanField& field, const PseudobandOptions& options,
                                         bool top_is_whole) {
  const Wavefunctions& waves = field.waves;
  PseudobandPlan plan = begin_plan(field, options, top_is_whole);
  const double end = options.protected_ry;
  require_reach(waves, plan, end);
  const int below = largest_count_below(waves, plan.midgap_ry + end, plan.given);
  const auto whole = whole_band_counts(waves, std::max(below, field.n_occupied + 1), plan.given);
  if (whole.empty())
    throw InvalidInput("a multiplet at pseudobands.protected_ry = " + shown(end) + " exceeds the " +
                       std::to_string(waves.n_bands) +
                       " bands; take more bands (meanfield.bands or WFN)");
  plan.kept = whole.front();
  WindowRange range{.lowest_ry = 1e300, .midgap_ry = plan.midgap_ry, .first_ry = end};
  for_each_point(waves, [&](int spin, int ik) {
    range.lowest_ry = std::min(range.lowest_ry, waves.energy(spin, ik, 0));
    range.highest_ry = std::max(range.highest_ry, spectrum_bound_ry(operator_at(field, spin, ik)));
  });
  plan.filter = std::make_shared<const WindowPolynomials>(options, range);
  for (std::size_t k = 0; k < plan.filter->size(); ++k) plan.used.push_back(k);
  plan.identity_error = plan.filter->identity_error();
  return plan;
}

Wavefunctions filtered_pseudobands(const MeanField& field, const PseudobandPlan& plan,
                                   PseudobandUse use, HamiltonianKernels& kernels) {
  const Wavefunctions& given = field.waves;
  const SingleThreadedBlas guard;
  Wavefunctions made = without_states(given, plan.bands());
  for (const KPointWaves& at : given.waves) made.waves.push_back({.g = at.g, .coefficients = {}});
  set_energies(given, plan, use, made);
  for_each_point(given, [&](int spin, int ik) {
    made.waves[static_cast<std::size_t>(ik)].coefficients.push_back(
        states_at(field, plan, use, spin, ik, kernels));
  });
  return made;
}

}  // namespace quasi::gw

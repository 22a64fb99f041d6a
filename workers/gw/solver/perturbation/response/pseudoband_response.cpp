#include "workers/gw/solver/perturbation/response/pseudoband_response.hpp"

#include <cmath>
#include <utility>

#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"
#include "workers/gw/solver/perturbation/spinors/spin_orbit_displacement.hpp"

namespace quasi::gw {
namespace {

std::vector<Cplx> conjugated(const Cplx* values, std::int64_t count) {
  std::vector<Cplx> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(std::conj(values[i]));
  return result;
}

/// Subtracts Σ_n a_n ⟨b_n|x⟩ from `to`.
/// @param a, b  [n_states][n_pw]; x, to  [n_vectors][n_pw]
void subtract_projection(View<const Cplx, 2> a, View<const Cplx, 2> b, View<const Cplx, 2> x,
                         std::vector<Cplx>& to) {
  const std::int64_t n = a.extent[0], n_pw = a.extent[1], n_x = x.extent[0];
  const std::vector<Cplx> bra = conjugated(b.data, b.size());
  std::vector<Cplx> overlap(static_cast<std::size_t>(n_x * n));
  zgemm({.transpose_b = CblasTrans, .m = n_x, .n = n, .k = n_pw}, {x.data, n_pw},
        {bra.data(), n_pw}, {overlap.data(), n});
  zgemm({.transpose_b = CblasNoTrans, .m = n_x, .n = n_pw, .k = n, .alpha = -1.0, .beta = 1.0},
        {overlap.data(), n}, {a.data, n_pw}, {to.data(), n_pw});
}

/// Applies one perturbation to the coefficients of several vectors.
class AppliedPerturbation {
 public:
  AppliedPerturbation(const Perturbation& perturbation, const FilteredStates& states,
                      const GIndex& index)
      : states_(states),
        n_pw_(std::ssize(states.g)),
        n_(states.factors.extent[1]),
        spin_orbit_(perturbation.spin_orbit) {
    for (const auto& [difference, value] : perturbation.elements) {
      value_.push_back(value);
      for (const IVec3& at : states.g) source_.push_back(index.find(at - difference));
    }
  }

  /// Adds factor · ∂H x to `to`. @param x, to  [n_x][n]
  void add(double factor, const Cplx* x, std::int64_t n_x, Cplx* to) const {
    const std::int64_t components = n_x * n_ / n_pw_;
#pragma omp parallel for schedule(static)
    for (std::int64_t n = 0; n < components; ++n)
      for (std::size_t d = 0; d < value_.size(); ++d) {
        const Cplx value = factor * value_[d];
        const std::int32_t* const source = source_.data() + static_cast<std::int64_t>(d) * n_pw_;
        for (std::int64_t i = 0; i < n_pw_; ++i)
          if (source[i] >= 0) to[n * n_pw_ + i] += value * x[n * n_pw_ + source[i]];
      }
    if (spin_orbit_ != nullptr)
      spin_orbit_->add_applied(factor, {states_.k, states_.g, {x, {n_x, n_}}}, to);
  }

 private:
  const FilteredStates& states_;
  std::int64_t n_pw_, n_;
  std::shared_ptr<const SpinOrbitDisplacement> spin_orbit_;  ///< null: ∂H acts on no spin
  std::vector<Cplx> value_;                                  ///< ∂V(ΔG), [n_d]
  std::vector<std::int32_t> source_;  ///< position of G − ΔG, or −1; [n_d][n_pw]
};

/// Calculates T_l(H̃) x and its first orders in n_p perturbations by their recursion. An array of
/// the recursion holds T_l x, followed by ∂(T_l x) of every perturbation, [1 +
/// n_p][vectors][n].
class DifferentiatedRecursion {
 public:
  DifferentiatedRecursion(const FilteredStates& states, LoadedHamiltonian& h,
                          std::span<const Perturbation> perturbations)
      : filter_(*states.plan.filter),
        h_(h),
        n_x_(states.factors.extent[0]),
        n_pw_(states.factors.extent[1]) {
    const GIndex index(states.g);
    for (const Perturbation& perturbation : perturbations)
      perturbations_.emplace_back(perturbation, states, index);
  }

  /// Runs the recursion from (1 − P) θ and its first orders.
  /// @param now  (1 − P) θ, followed by its first order in every perturbation
  /// @return Σ_l c_kl ∂T_l of every window, [windows][n_p][vectors][n]
  std::vector<Cplx> run(std::vector<Cplx> now) const {
    const auto windows = filter_.size(), degree = static_cast<std::size_t>(filter_.degree());
    const auto n = static_cast<std::int64_t>(now.size()), first = n_x_ * n_pw_;
    std::vector<Cplx> sum(windows * static_cast<std::size_t>(n - first)), before = now;
    for (std::size_t l = 0; l <= degree; ++l) {
#pragma omp parallel for schedule(static)
      for (std::int64_t i = first; i < n; ++i)
        for (std::size_t k = 0; k < windows; ++k)
          sum[k * static_cast<std::size_t>(n - first) + static_cast<std::size_t>(i - first)] +=
              filter_.coefficients()[k * (degree + 1) + l] * now[static_cast<std::size_t>(i)];
      if (l == degree) break;
      before = std::exchange(now, next(now, before, l == 0));
    }
    return sum;
  }

 private:
  /// Returns T_{l+1} x and its first orders.
  /// @param now, before  arrays of l and of l − 1
  /// @param is_first     true for l = 0
  std::vector<Cplx> next(const std::vector<Cplx>& now, const std::vector<Cplx>& before,
                         bool is_first) const {
    const auto n = static_cast<std::int64_t>(now.size()), of_set = n_x_ * n_pw_;
    const double factor = (is_first ? 1.0 : 2.0) / filter_.half_ry(), kept = is_first ? 0.0 : 1.0;
    std::vector<Cplx> image(now.size());
    h_.apply({now.data(), {n / n_pw_, n_pw_}}, {image.data(), {n / n_pw_, n_pw_}});
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i)
      image[static_cast<std::size_t>(i)] =
          factor * (image[static_cast<std::size_t>(i)] -
                    filter_.centre_ry() * now[static_cast<std::size_t>(i)]) -
          kept * before[static_cast<std::size_t>(i)];
    for (std::size_t p = 0; p < perturbations_.size(); ++p)
      perturbations_[p].add(factor, now.data(), n_x_,
                            image.data() + static_cast<std::int64_t>(p + 1) * of_set);
    return image;
  }

  const WindowPolynomials& filter_;
  LoadedHamiltonian& h_;
  std::vector<AppliedPerturbation> perturbations_;
  std::int64_t n_x_, n_pw_;
};

}  // namespace

Wavefunctions vectors_of_filter(const MeanField& field, const PseudobandPlan& plan,
                                PseudobandUse use) {
  const Wavefunctions& given = field.waves;
  const auto n_vectors = static_cast<int>(plan.chosen.size());
  Wavefunctions made = without_states(given, n_vectors);
  for (const KPointWaves& at : given.waves) made.waves.push_back({.g = at.g, .coefficients = {}});
  for_each_point(given, [&](int spin, int ik) {
    KPointWaves& at = made.waves[static_cast<std::size_t>(ik)];
    const StateCoefficients& states =
        given.waves[static_cast<std::size_t>(ik)].coefficients[static_cast<std::size_t>(spin)];
    const bool real =
        HamiltonianOperator(field.hamiltonian(given, spin, ik)).is_real() && is_real(states);
    const RandomFactors factors(plan.seed, static_cast<std::uint32_t>(use), spin, ik, real);
    const std::size_t row = at.g.size() * static_cast<std::size_t>(field.n_spinor());
    std::vector<Cplx> vectors;
    for (const int r : plan.chosen)
      for (std::size_t i = 0; i < row; ++i)
        vectors.push_back(factors.at(r, static_cast<int>(i)) /
                          std::sqrt(static_cast<double>(n_vectors)));
    at.coefficients.push_back(std::move(vectors));
  });
  return made;
}

std::vector<Cplx> pseudoband_response(const FilteredStates& states, LoadedHamiltonian& h,
                                      std::span<const Perturbation> perturbations,
                                      const std::vector<Cplx>& responses) {
  const View<const Cplx, 2> theta = states.factors;
  const std::int64_t n_pw = theta.extent[1], kept = states.plan.kept,
                     n_p = std::ssize(perturbations);
  std::vector<Cplx> sets(theta.data, theta.data + theta.size());
  subtract_projection(states.kept, states.kept, theta, sets);
  for (std::int64_t p = 0; p < n_p; ++p) {
    const View<const Cplx, 2> prime{responses.data() + p * kept * n_pw, {kept, n_pw}};
    std::vector<Cplx> dx(static_cast<std::size_t>(theta.size()));
    subtract_projection(prime, states.kept, theta, dx);
    subtract_projection(states.kept, prime, theta, dx);
    sets.insert(sets.end(), dx.begin(), dx.end());
  }
  const std::vector<Cplx> of_windows =
      DifferentiatedRecursion(states, h, perturbations).run(std::move(sets));
  const PseudobandPlan& plan = states.plan;
  const auto n_x = static_cast<std::int64_t>(plan.chosen.size());
  std::vector<Cplx> made;
  for (std::int64_t p = 0; p < n_p; ++p)
    for (int band = plan.kept; band < plan.bands(); ++band) {
      const PseudobandPlan::Place place = plan.place_of(band - plan.kept);
      const auto at = (static_cast<std::int64_t>(place.window) * n_p + p) * n_x +
                      static_cast<std::int64_t>(place.vector);
      made.insert(made.end(), of_windows.begin() + at * n_pw, of_windows.begin() + (at + 1) * n_pw);
    }
  return made;
}

}  // namespace quasi::gw

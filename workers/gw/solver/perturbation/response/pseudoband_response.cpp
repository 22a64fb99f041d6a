#include "workers/gw/solver/perturbation/response/pseudoband_response.hpp"

#include <cmath>
#include <utility>

#include "workers/gw/kernels/dense/zgemm_cpu.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"

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

/// Calculates T_l(H̃) x and its first order by their recursion.
class DifferentiatedRecursion {
 public:
  DifferentiatedRecursion(const FilteredStates& states, LoadedHamiltonian& h,
                          const PotentialElements& potential)
      : states_(states),
        h_(h),
        n_d_(std::ssize(potential)),
        n_x_(states.factors.extent[0]),
        n_pw_(states.factors.extent[1]) {
    const GIndex index(states.g);
    for (const auto& [difference, value] : potential) {
      value_.push_back(value);
      for (const IVec3& at : states.g) source_.push_back(index.find(at - difference));
    }
  }

  /// @param x, dx  θ outside of P, and its first order
  /// @return Σ_l c_kl ∂T_l of every window, [windows][vectors][n_pw]
  std::vector<Cplx> run(std::vector<Cplx> x, std::vector<Cplx> dx) const {
    const WindowPolynomials& filter = *states_.plan.filter;
    const auto windows = filter.size(), degree = static_cast<std::size_t>(filter.degree());
    std::vector<Cplx> sum(windows * x.size());
    std::vector<Cplx> before = x, d_before = dx;
    for (std::size_t l = 0; l <= degree; ++l) {
      for (std::size_t k = 0; k < windows; ++k) {
        const double c = filter.coefficients()[k * (degree + 1) + l];
        for (std::size_t i = 0; i < dx.size(); ++i) sum[k * dx.size() + i] += c * dx[i];
      }
      std::vector<Cplx> next = scaled(x), d_next = scaled(dx);
      const std::vector<Cplx> forced = pushed(x);
      const double factor = l == 0 ? 1.0 : 2.0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        next[i] = factor * next[i] - (l == 0 ? Cplx{} : before[i]);
        d_next[i] =
            factor * (d_next[i] + forced[i] / filter.half_ry()) - (l == 0 ? Cplx{} : d_before[i]);
      }
      before = std::exchange(x, std::move(next));
      d_before = std::exchange(dx, std::move(d_next));
    }
    return sum;
  }

 private:
  /// Returns H̃ x = (H − centre) x/half.
  std::vector<Cplx> scaled(const std::vector<Cplx>& x) const {
    const WindowPolynomials& filter = *states_.plan.filter;
    std::vector<Cplx> image(x.size());
    h_.apply({x.data(), {n_x_, n_pw_}}, {image.data(), {n_x_, n_pw_}});
    for (std::size_t i = 0; i < x.size(); ++i)
      image[i] = (image[i] - filter.centre_ry() * x[i]) / filter.half_ry();
    return image;
  }

  /// Returns ∂V x.
  std::vector<Cplx> pushed(const std::vector<Cplx>& x) const {
    std::vector<Cplx> image(x.size());
#pragma omp parallel for schedule(static)
    for (std::int64_t n = 0; n < n_x_; ++n)
      for (std::int64_t d = 0; d < n_d_; ++d)
        for (std::int64_t i = 0; i < n_pw_; ++i)
          if (const std::int32_t from = source_[static_cast<std::size_t>(d * n_pw_ + i)]; from >= 0)
            image[static_cast<std::size_t>(n * n_pw_ + i)] +=
                value_[static_cast<std::size_t>(d)] * x[static_cast<std::size_t>(n * n_pw_ + from)];
    return image;
  }

  const FilteredStates& states_;
  LoadedHamiltonian& h_;
  std::vector<Cplx> value_;           ///< ∂V(ΔG), [n_d]
  std::vector<std::int32_t> source_;  ///< position of G − ΔG, or −1; [n_d][n_pw]
  std::int64_t n_d_, n_x_, n_pw_;
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
    std::vector<Cplx> vectors;
    for (const int r : plan.chosen)
      for (std::size_t i = 0; i < at.g.size(); ++i)
        vectors.push_back(factors.at(r, static_cast<int>(i)) /
                          std::sqrt(static_cast<double>(n_vectors)));
    at.coefficients.push_back(std::move(vectors));
  });
  return made;
}

std::vector<Cplx> pseudoband_response(const FilteredStates& states, LoadedHamiltonian& h,
                                      const PotentialElements& potential,
                                      const std::vector<Cplx>& response) {
  const View<const Cplx, 2> theta = states.factors;
  const std::int64_t n_pw = theta.extent[1];
  const View<const Cplx, 2> prime{response.data(), {states.plan.kept, n_pw}};
  std::vector<Cplx> x(theta.data, theta.data + theta.size()), dx(x.size());
  subtract_projection(states.kept, states.kept, theta, x);
  subtract_projection(prime, states.kept, theta, dx);
  subtract_projection(states.kept, prime, theta, dx);
  const std::vector<Cplx> of_windows =
      DifferentiatedRecursion(states, h, potential).run(std::move(x), std::move(dx));
  const PseudobandPlan& plan = states.plan;
  std::vector<Cplx> made;
  for (int band = plan.kept; band < plan.bands(); ++band) {
    const PseudobandPlan::Place place = plan.place_of(band - plan.kept);
    const auto first =
        of_windows.begin() +
        static_cast<std::ptrdiff_t>((place.window * plan.chosen.size() + place.vector)) * n_pw;
    made.insert(made.end(), first, first + n_pw);
  }
  return made;
}

}  // namespace quasi::gw

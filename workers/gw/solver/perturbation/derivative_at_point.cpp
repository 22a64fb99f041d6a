#include "workers/gw/solver/perturbation/derivative_at_point.hpp"

#include <optional>
#include <utility>

#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cpu.hpp"
#include "workers/gw/physics/pole_difference.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {

static_assert(kMultipletEnergies_ry == kDegenerate_ry);

GSphere DerivativeProblem::bare_sphere(std::size_t iq) const {
  return make_g_sphere(field.crystal().bdot, epsilon[iq].at_gamma ? Vec3{} : epsilon[iq].q,
                       options.bare_cutoff_ry);
}

WavesAtPoint DerivativeProblem::outer_waves(const Vec3& k) const {
  return waves_at(field, k, 0, options.band_min - 1, options.band_max, box);
}

DerivativeAtPoint::DerivativeAtPoint(const DerivativeProblem& problem, const DerivativePoint& point,
                                     const CoulombInteraction& coulomb, GwKernels& kernels,
                                     StepTimes* times)
    : problem_(problem),
      point_(point),
      interaction_(coulomb),
      kernels_(kernels),
      times_(times),
      weight_(1.0 / problem.field.zone_volume_bohr3()),
      n_p_(std::ssize(problem.perturbations)),
      n_e_(std::ssize(problem.energies_ry)),
      n_(problem.n_outer()) {
  StepClock clock(times_);
  const MeanField& field = problem.field;
  const Vec3 k = field.waves.k[static_cast<std::size_t>(point.k_index)];
  const BraPoint bra = bra_point(k, problem.perturbations.front().p);
  one_side_ = bra.k == k && bra.umklapp == IVec3{};
  const Inner ket_states = inner(k - point.q, problem.n_paired());
  std::optional<Inner> other;
  if (!one_side_) other.emplace(inner(bra.k - point.q, problem.n_paired()));
  const Inner& bra_states = other ? *other : ket_states;
  const WavesAtPoint ket_outer = problem.outer_waves(k), bra_outer = problem.outer_waves(bra.k);
  bra_ = bra_states.bands;
  ket_ = ket_states.bands;
  couplings_ = coupling_parts(problem.perturbations, k - point.q, bra_states.waves, bra.umklapp,
                              ket_states.waves, kernels);
  of_kets_ = kernels.hamiltonian().make_couplings();
  of_bras_ = kernels.hamiltonian().make_couplings();
  clock.step("states");
  load_screening(0);
  const GSphere bare = problem.bare_sphere(point.iq);
  coulomb_ = averaged_coulomb(problem.epsilon[point.iq], bare, coulomb);
  clock.step("screening");
  const auto load_sphere = [&](const GSphere& sphere, bool with_phases) {
    const SphereAtPoint rotated = rotated_sphere(field, point.q, sphere, problem.box);
    const auto n_g = std::ssize(rotated.box_index);
    return kernels.pair_products().load_sphere(
        problem.box, view<const std::int32_t>(rotated.box_index, n_g),
        with_phases ? view<const Cplx>(rotated.factor, n_g) : View<const Cplx, 1>{});
  };
  auto screened = load_sphere(sphere_, true), unscreened = load_sphere(bare, false);
  const auto fill = [&](const WavesAtPoint& outer, const Inner& inner,
                        std::unique_ptr<PairBlock>& with_w, std::unique_ptr<PairBlock>& projected,
                        std::unique_ptr<PairBlock>& bare_one) {
    const auto left = load(kernels_, outer), right = load(kernels_, inner.waves);
    with_w = products(*left, *right, *screened);
    bare_one = products(*left, *right, *unscreened);
    if (contour_ == nullptr || !contour_->at_q().subspace.used()) return;
    const SubspaceOfW& subspace = contour_->at_q().subspace;
    projected = products(*left, *right, *screened);
    projected->project(view<const Cplx>(subspace.basis, subspace.n, subspace.n_b));
  };
  fill(bra_outer, bra_states, screened_bra_, projected_bra_, bare_bra_);
  if (!one_side_) fill(ket_outer, ket_states, screened_ket_, projected_ket_, bare_ket_);
  if (problem.response != nullptr) {
    StatesOfPoint states = states_beyond(k - point.q, ket_outer);
    states.screened = std::move(screened);
    states.bare = std::move(unscreened);
    beyond_ = std::make_unique<const TermsBeyondBands>(problem.perturbations, *problem.response,
                                                       field.crystal(), std::move(states), kernels);
  }
  clock.step("products");
}

void DerivativeAtPoint::load_screening(std::size_t screening) {
  const MeanField& field = problem_.field;
  const DielectricMatrix& epsilon = problem_.epsilon_of(screening, point_.iq);
  const SigmaOptions& options = problem_.options;
  screening_ = screening;
  mirrored_ = false;
  poles_.reset();  // The memory of a device may be too small for two interactions.
  contour_.reset();
  if (options.method == SigmaMethod::kContour) {
    auto made = std::make_unique<ContourScreening>(field, epsilon, options, interaction_, kernels_);
    made->move_to(point_.q, interaction_, field.crystal().bdot);
    sphere_ = made->sphere();
    contour_ = std::move(made);
    return;
  }
  ScreenedPoles w(field, epsilon, options, interaction_);
  const PlasmonPoleView poles = w.at_point(point_.q).view();
  poles_ = kernels_.pole_sums().load(poles, options.rules);
  mirrored_ =
      one_side_ && are_local(problem_.perturbations) && (poles.hermitian || is_hermitian(poles));
  sphere_ = w.sphere();
}

StatesOfPoint DerivativeAtPoint::states_beyond(const Vec3& k, const WavesAtPoint& outer) const {
  Inner all = inner(k, problem_.options.bands);
  StatesOfPoint states{.k = k,
                       .box = problem_.box,
                       .inner = std::move(all.waves),
                       .bands = std::move(all.bands),
                       .outer = load(kernels_, outer),
                       .n_outer = n_,
                       .weight = weight_};
  if (problem_.pseudobands == nullptr) return states;
  const auto& [plan, factors, without] = *problem_.pseudobands;
  states.pseudobands = &plan;
  states.closed_x_ry = closed_x_ry(problem_.options, problem_.pseudobands);
  states.kept = waves_at(problem_.field, k, 0, 0, plan.kept, problem_.box);
  states.factors.waves = rotated_waves(factors, problem_.field.zone.operations(),
                                       states.inner.rotation, 0, 0, factors.n_bands);
  return states;
}

DerivativeAtPoint::Inner DerivativeAtPoint::inner(const Vec3& k, int n_bands) const {
  const MeanField& field = problem_.field;
  Inner states{.waves = waves_at(field, k, 0, 0, n_bands, problem_.box), .bands = {}};
  for (int n = 0; n < n_bands; ++n) {
    states.bands.energy_ry.push_back(field.waves.energy(0, states.waves.rotation.irreducible, n));
    states.bands.occupation.push_back(n < field.n_occupied ? 1.0 : 0.0);
  }
  return states;
}

std::unique_ptr<PairBlock> DerivativeAtPoint::products(const LoadedBands& outer,
                                                       const LoadedBands& inner,
                                                       const LoadedSphere& sphere) const {
  auto block = kernels_.pair_products().make_block();
  kernels_.pair_products().fill({outer, {0, n_}}, {inner, {0, problem_.n_paired()}}, sphere,
                                *block);
  return block;
}

void DerivativeAtPoint::add_poles(BandRange bands, std::span<DerivativeSums> sums) const {
  const auto size = static_cast<std::size_t>(n_e_ * n_ * n_);
  const auto n_sums = static_cast<std::size_t>(n_p_) * size;
  const auto shaped = [&](std::vector<Cplx>& values) {
    return view<Cplx>(values, n_p_, n_e_, n_, n_);
  };
  const View<const double, 1> energies = view<const double>(problem_.energies_ry, n_e_);
  const PairBlock &bra = *screened_bra_, &ket = ket_block(screened_bra_, screened_ket_);
  std::vector<Cplx> forth(n_sums), closed(n_sums), multiplets(n_sums), exchanged;
  poles_->add_first_order({bra, ket}, {bra_, ket_, bands, *of_kets_, weight_},
                          {energies, false, true, mirrored_},
                          {shaped(forth), shaped(closed), shaped(multiplets)});
  if (!mirrored_) {
    exchanged.resize(n_sums);
    couplings_->of_bras(bands, *of_bras_);
    poles_->add_first_order({ket, bra}, {ket_, bra_, bands, *of_bras_, weight_},
                            {energies, true, false}, {shaped(exchanged), {}, {}});
  }
  const std::vector<Cplx>& back = mirrored_ ? forth : exchanged;
  for (std::int64_t p = 0; p < n_p_; ++p)
    for (std::int64_t e = 0; e < n_e_; ++e)
      for (std::int64_t l = 0; l < n_; ++l)
        for (std::int64_t m = 0; m < n_; ++m) {
          const std::int64_t first = (p * n_e_ + e) * n_ * n_;
          const auto at = static_cast<std::size_t>(first + l * n_ + m),
                     adjoint = static_cast<std::size_t>(first + m * n_ + l),
                     to = static_cast<std::size_t>((e * n_ + l) * n_ + m);
          Cplx fixed = forth[at] + std::conj(back[adjoint]) + closed[at],
               of_multiplets = multiplets[at];
          if (mirrored_) {
            fixed += std::conj(closed[adjoint]);
            of_multiplets += std::conj(multiplets[adjoint]);
          }
          DerivativeSums& sum = sums[static_cast<std::size_t>(p)];
          sum.fixed_energies[to] += fixed;
          sum.correlation[to] += fixed + of_multiplets;
        }
}

void DerivativeAtPoint::add_contour(BandRange bands, std::span<DerivativeSums> sums) const {
  const auto size = static_cast<std::size_t>(n_e_ * n_ * n_);
  std::vector<Cplx> found(2 * static_cast<std::size_t>(n_p_) * size);
  std::optional<FirstOrderProducts> projected;
  if (projected_bra_ != nullptr)
    projected.emplace(*projected_bra_, ket_block(projected_bra_, projected_ket_));
  add_contour_first_order(*contour_,
                          {{*screened_bra_, ket_block(screened_bra_, screened_ket_)},
                           projected ? &*projected : nullptr},
                          {bra_, ket_, bands, *of_kets_, weight_}, problem_.energies_ry,
                          kernels_.device(), view<Cplx>(found, n_p_, 2 * n_e_, n_, n_));
  for (std::size_t p = 0; p < sums.size(); ++p)
    for (std::size_t i = 0; i < size; ++i) {
      const Cplx fixed = found[2 * p * size + i];
      sums[p].fixed_energies[i] += fixed;
      sums[p].correlation[i] += fixed + found[(2 * p + 1) * size + i];
    }
}

void DerivativeAtPoint::add_exchange(BandRange bands, std::span<DerivativeSums> sums) const {
  const auto size = static_cast<std::size_t>(n_ * n_);
  std::vector<Cplx> found(static_cast<std::size_t>(n_p_) * size);
  kernels_.pole_sums().add_first_order_exchange({*bare_bra_, ket_block(bare_bra_, bare_ket_)},
                                                view<const double>(coulomb_, std::ssize(coulomb_)),
                                                {bra_, ket_, bands, *of_kets_, weight_},
                                                view<Cplx>(found, n_p_, n_, n_));
  for (std::size_t p = 0; p < sums.size(); ++p)
    for (std::size_t i = 0; i < size; ++i) sums[p].exchange[i] += found[p * size + i];
}

std::vector<DerivativeSums> DerivativeAtPoint::part(const DerivativeRange& range) {
  StepClock clock(times_);
  const BandRange bands = range.bands;
  const auto size = static_cast<std::size_t>(n_ * n_), all = size * static_cast<std::size_t>(n_e_),
             n_p = static_cast<std::size_t>(range.perturbations.size()),
             n_screenings = problem_.n_screenings();
  std::vector<DerivativeSums> sums(
      n_screenings * n_p,
      {std::vector<Cplx>(all), std::vector<Cplx>(all), std::vector<Cplx>(size)});
  const auto sums_of = [&](std::size_t screening) {
    return std::span(sums).subspan(screening * n_p, n_p);
  };
  const auto load = [&](std::size_t screening) {
    if (screening != screening_) load_screening(screening);
  };
  if (bands.begin < problem_.n_paired()) {
    couplings_->of_kets(bands, *of_kets_);
    clock.step("couplings");
    for (std::size_t screening = 0; screening < n_screenings; ++screening) {
      load(screening);
      if (contour_ != nullptr)
        add_contour(bands, sums_of(screening));
      else
        add_poles(bands, sums_of(screening));
    }
    clock.step("correlation");
    add_exchange(bands, sums_of(0));
    clock.step("exchange");
  }
  if (beyond_ != nullptr) {
    const InteractionsOfPoint interactions{n_screenings, [&](std::size_t screening) {
                                             load(screening);
                                             return InteractionOfPoint{poles_.get(), contour_.get(),
                                                                       mirrored_, coulomb_,
                                                                       problem_.energies_ry};
                                           }};
    beyond_->add(bands, range.perturbations, interactions, sums);
    clock.step("states_beyond");
  }
  for (std::size_t i = n_p; i < sums.size(); ++i) sums[i].exchange = sums[i % n_p].exchange;
  return sums;
}

}  // namespace quasi::gw

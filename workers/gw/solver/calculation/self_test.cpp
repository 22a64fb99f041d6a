#include "workers/gw/solver/calculation/self_test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/mean_field/density.hpp"
#include "workers/gw/solver/screening/dielectric_spectrum.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"

namespace quasi::gw {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Non-local potentials move the f-sum by tenths. Energies in eV multiply a sum of 0.1 or more by
/// 13.6.
constexpr double kLargestFSum = 1.3;

/// Returns the largest sound departure from RHO, per electron. RHO may come from a finer grid; the
/// density of a grid errs by e^{−L/6 Bohr}, L the shortest edge of its supercell.
double largest_density_error(const MeanField& field) {
  double shortest_bohr = kInfinity;
  for (std::size_t i = 0; i < 3; ++i)
    shortest_bohr = std::min(
        shortest_bohr, std::max(1, field.waves.k_grid[i]) * std::sqrt(field.crystal().adot[i][i]));
  return std::max(0.01, 0.5 * std::exp(-shortest_bohr / 6.0));
}

/// The multiplet that is checked: the largest one among the outer states and, of several, the one
/// nearest to the gap.
struct Chosen {
  int k_index = 0, begin = 0, end = 0;
};
Chosen choose(const MeanField& field, const SigmaOptions& options) {
  Chosen best;
  double best_distance = kInfinity;
  for (const int ik : options.kpoints)
    for (const auto& [begin, end] :
         multiplets(field.waves, 0, ik, options.band_min - 1, options.band_max)) {
      const double distance = std::abs(begin + 0.5 - field.n_occupied_of_spin[0]);
      if (end - begin < best.end - best.begin ||
          (end - begin == best.end - best.begin && distance >= best_distance))
        continue;
      best = {ik, begin, end};
      best_distance = distance;
    }
  return best;
}

/// Checks from pair products at q = 0 that the chosen multiplet and the lowest one are orthonormal,
/// and the f-sum of the lowest one. All transitions from the lowest states lead up in energy, so
/// that the sum grows with the number of bands.
void check_pair_products(const MeanField& field, const Chosen& at, const SigmaOptions& options,
                         GwKernels& kernels, std::vector<SelfCheck>& list) {
  const int bands = options.bands;
  const Mat3& bdot = field.crystal().bdot;
  // The shortest G ≠ 0 and their opposites.
  double shortest = kInfinity;
  for (const IVec3& g : field.density.header.g)
    if (g != IVec3{}) shortest = std::min(shortest, metric_dot(bdot, to_real(g), to_real(g)));
  std::vector<IVec3> kept{{0, 0, 0}};
  for (const IVec3& g : field.density.header.g) {
    const double length2 = metric_dot(bdot, to_real(g), to_real(g));
    if (g == IVec3{} || length2 > shortest * (1.0 + 1e-6)) continue;
    kept.push_back(g);
    kept.push_back(-g);
  }
  const auto n_g = static_cast<std::int64_t>(kept.size());
  const auto box = sum_box(field, kept);
  std::vector<std::int32_t> index;
  for (const IVec3& g : kept) index.push_back(box_position(g, box));
  const auto sphere =
      kernels.pair_products().load_sphere(box, view<const std::int32_t>(index, n_g), {});
  const auto block = kernels.pair_products().make_block();
  const Vec3& k = field.waves.k[static_cast<std::size_t>(at.k_index)];
  double overlap = 0.0, f_sum = 0.0;
  const int lowest = multiplets(field.waves, 0, at.k_index, 0, bands).front().second;
  for (const auto& [begin, end] : {std::pair(0, lowest), std::pair(at.begin, at.end)}) {
    const auto n_l = static_cast<std::int64_t>(end - begin);
    const auto left = load(kernels, waves_at(field, k, 0, begin, end, box));
    const std::int64_t box_bytes = std::int64_t{16} * box[0] * box[1] * box[2] * field.n_spinor();
    const auto step = static_cast<int>(
        std::min<std::int64_t>(bands, items_that_fit(options.memory_budget_bytes, box_bytes * n_l,
                                                     box_bytes + 16 * n_l * n_g, "self-test")));
    double sum = 0.0;
    for (int first = 0; first < bands; first += step) {
      const int count = std::min(step, bands - first);
      const auto right = load(kernels, waves_at(field, k, 0, first, first + count, box));
      kernels.pair_products().fill({*left, {0, n_l}}, {*right, {0, count}}, *sphere, *block);
      std::vector<Cplx> m(static_cast<std::size_t>(n_l * count * n_g));
      block->read(view<Cplx>(m, n_l, count, n_g));
      for (std::int64_t l = 0; l < n_l; ++l)
        for (int i = 0; i < count; ++i) {
          const int n = first + i;
          const Cplx* of_pair = m.data() + (l * count + i) * n_g;
          overlap = std::max(overlap, std::abs(of_pair[0] - (n == begin + l ? 1.0 : 0.0)));
          const double transition = field.waves.energy(0, at.k_index, n) -
                                    field.waves.energy(0, at.k_index, begin + static_cast<int>(l));
          for (std::int64_t g = 1; g < n_g; ++g) sum += transition * std::norm(of_pair[g]);
        }
    }
    if (begin == 0) f_sum = sum / (shortest * static_cast<double>(n_l * (n_g - 1)));
  }
  list.push_back({"orthonormality", overlap, 0.0, 1e-5, "1",
                  "the states of WFN are not orthonormal: it is damaged, or from another cell"});
  list.push_back({"f_sum", f_sum, 0.1, kLargestFSum, "1",
                  "the energies do not belong to the states, or are in other units"});
}

void check_density(const MeanField& field, GwKernels& kernels, std::vector<SelfCheck>& list) {
  const auto rho = summed_density(field.waves, field.zone, field.n_occupied_of_spin,
                                  field.density.header.g, kernels);
  double difference = 0.0;
  for (std::size_t s = 0; s < rho.size(); ++s)
    for (std::size_t i = 0; i < rho[s].size(); ++i)
      difference = std::max(difference, std::abs(rho[s][i] - field.density.values[s][i]));
  list.push_back(
      {"density", difference / field.n_electrons(), 0.0, largest_density_error(field), "1",
       "RHO is not the density of these states: another crystal, or another number of electrons"});
}

/// Static COHSEX of one multiplet, with W loaded once on each device of this rank.
class MultipletCohsex {
 public:
  MultipletCohsex(const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
                  const SigmaOptions& options, const Chosen& at, const StepContext& context)
      : field_(field),
        epsilon_(epsilon),
        options_(options),
        context_(context),
        n_members_(static_cast<std::size_t>(at.end - at.begin)) {
    options_.method = SigmaMethod::kCohsex;
    options_.kpoints = {at.k_index};
    options_.band_min = at.begin + 1;
    options_.band_max = at.end;
    options_.offsets_ry = {0.0};
    options_.slope = false;
    for (GwKernels* member : context.team.members()) screening_[member].shared = &shared_;
  }

  /// Static CH by the bands used less its closed form, averaged over the multiplet, eV.
  double missing_ch_ev(GwKernels& kernels) {
    SigmaOptions o = options_;
    o.closure = true;
    const SelfEnergyAtK sum = solve(o, kernels);
    return kRydberg_ev * mean_and_spread([&](std::size_t l) {
                           return sum.ch_static_ry[l].real() - sum.ch_exact_ry[l].real();
                         }).first;
  }

  /// Largest departure of X + SX of a member from the mean of its multiplet, eV; absent for a
  /// single state.
  std::optional<double> spread_of_exchange_ev(GwKernels& kernels) {
    if (n_members_ < 2) return std::nullopt;
    SigmaOptions o = options_;
    // Sums over a wedge may differ between members, so whole stars are summed. X and SX need the
    // occupied bands alone.
    o.reduce_q = o.closure = false;
    o.bands = field_.n_occupied_of_spin[0];
    const SelfEnergyAtK s = solve(o, kernels);
    return kRydberg_ev *
           mean_and_spread([&](std::size_t l) { return s.x_ry[l] + s.sx_ry[0][l].real(); }).second;
  }

  StepTimes& times() { return shared_.times(); }

 private:
  SelfEnergyAtK solve(const SigmaOptions& o, GwKernels& kernels) {
    auto sums =
        self_energy_part(field_, epsilon_, o, {0, epsilon_.size(), 0, o.bands},
                         {context_.coulomb, kernels, context_.progress}, screening_.at(&kernels))
            .sums;
    finish_self_energy(field_, o, sums);
    return std::move(sums.front());
  }
  template <typename OfState>
  std::pair<double, double> mean_and_spread(const OfState& of_state) const {
    double mean = 0.0, spread = 0.0;
    for (std::size_t l = 0; l < n_members_; ++l)
      mean += of_state(l) / static_cast<double>(n_members_);
    for (std::size_t l = 0; l < n_members_; ++l)
      spread = std::max(spread, std::abs(of_state(l) - mean));
    return {mean, spread};
  }

  const MeanField& field_;
  const std::vector<DielectricMatrix>& epsilon_;
  SigmaOptions options_;
  const StepContext context_;
  std::size_t n_members_;
  SharedScreening shared_;
  std::map<const GwKernels*, ScreeningOnDevice> screening_;
};

}  // namespace

std::vector<SelfCheck> check_screening(const std::vector<DielectricMatrix>& epsilon) {
  double asymmetry = 0.0, least = kInfinity, largest = 0.0;
  bool positive = true;
  for (const DielectricMatrix& m : epsilon) {
    positive = positive &&
               std::all_of(m.coulomb.begin(), m.coulomb.end(), [](double v) { return v > 0.0; });
    if (!positive) break;
    const DielectricSpectrum found = dielectric_spectrum(m);
    asymmetry = std::max(asymmetry, found.asymmetry);
    least = std::min(least, 1.0 / found.highest);
    largest = found.lowest > 0.0 ? std::max(largest, 1.0 / found.lowest) : kInfinity;
  }
  const auto value = [&](double x) { return positive ? std::optional(x) : std::nullopt; };
  // ε⁻¹ from files carries the rounding of its program, up to 1e-6. Our own stays below 1e-12.
  return {
      {"hermiticity", value(asymmetry), 0.0, 1e-6, "1",
       "ε⁻¹ is not that of a ground state without magnetic field, or its file is damaged"},
      {"smallest_epsilon", value(least), 1.0 - 1e-6, kInfinity, "1",
       "ε⁻¹ enhances an interaction: energies or states of χ are wrong, or its file is damaged"},
      {"largest_epsilon", value(largest), 1.0 - 1e-6, 1e8, "1",
       "ε is singular: a metal, or states below and above the gap are mixed up"}};
}

std::vector<SelfCheck> check_mean_field(const MeanField& field, const SigmaOptions& options,
                                        GwKernels& kernels, StepTimes* times) {
  StepClock clock(times);
  std::vector<SelfCheck> list;
  check_pair_products(field, choose(field, options), options, kernels, list);
  clock.step("pair_products");
  check_density(field, kernels, list);
  clock.step("density");
  return list;
}

std::vector<SelfCheck> check_states(const MeanField& field,
                                    const std::vector<DielectricMatrix>& epsilon,
                                    const SigmaOptions& options, const StepContext& context,
                                    StepTimes* times) {
  const Chosen at = choose(field, options);
  MultipletCohsex cohsex(field, epsilon, options, at, context);
  // The averages of BerkeleyGW have the symmetry of the crystal only to this accuracy.
  const CoulombOptions& averages = context.coulomb.options();
  const double accuracy_ev =
      averages.wing_rule == WingRule::kShortest && averages.average_file.empty() ? 1e-3 : 2e-2;
  // The sum over all bands takes longest and is the first task, so that its device builds W first.
  enum Task { kChTruncation, kMultiplets, kTasks };
  std::vector<SelfCheck> found[kTasks];
  context.team.run_here(kTasks, [&](std::int64_t task, GwKernels& kernels) {
    StepClock clock(times);
    std::vector<SelfCheck>& list = found[task];
    if (task == kChTruncation) {
      list.push_back({"ch_truncation", cohsex.missing_ch_ev(kernels), -accuracy_ev, kInfinity, "eV",
                      "the band sum exceeds the sum over all bands: states are not "
                      "orthonormal, or ε⁻¹ is wrong"});
      clock.step("ch_truncation");
    } else {
      list.push_back({"multiplets", cohsex.spread_of_exchange_ev(kernels), 0.0, accuracy_ev, "eV",
                      "states or ε⁻¹ lack the symmetry of the crystal that WFN states"});
      clock.step("multiplets");
    }
  });
  if (times != nullptr)
    for (const auto& [step, seconds] : cohsex.times().seconds())
      times->add("cohsex_" + step, seconds);
  std::vector<SelfCheck> list;
  for (const Task task : {kMultiplets, kChTruncation})
    for (SelfCheck& check : found[task]) list.push_back(std::move(check));
  return list;
}

}  // namespace quasi::gw

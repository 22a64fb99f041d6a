#include "workers/gw/solver/mean_field/pseudobands.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi::gw {
namespace {

constexpr double kLargestIdentityError = 1e-10;  ///< rounding of the sum of windows

double midgap_of(const MeanField& field) {
  double top = -1e300, bottom = 1e300;
  for_each_point(field.waves, [&](int spin, int ik) {
    const int n_v = field.n_occupied_of_spin[static_cast<std::size_t>(spin)];
    if (n_v > 0) top = std::max(top, field.waves.energy(spin, ik, n_v - 1));
    bottom = std::min(bottom, field.waves.energy(spin, ik, n_v));
  });
  return 0.5 * (top + bottom);
}

/// Returns the largest number of states of one spin and k between two energies.
int largest_count_between(const Wavefunctions& waves, double low_ry, double high_ry, int given) {
  int most = 0;
  for_each_point(waves, [&](int spin, int ik) {
    int n = 0;
    for (int band = 0; band < given; ++band) {
      const double energy = waves.energy(spin, ik, band);
      n += energy >= low_ry && energy < high_ry;
    }
    most = std::max(most, n);
  });
  return most;
}

double highest_energy(const Wavefunctions& waves, int given) {
  double highest = -1e300;
  for_each_point(waves, [&](int spin, int ik) {
    highest = std::max(highest, waves.energy(spin, ik, given - 1));
  });
  return highest;
}

/// Returns the end of the protected energies above midgap. Intervals that vectors would not thin
/// out are protected too.
double protected_energy(const Wavefunctions& waves, const PseudobandOptions& options,
                        const PseudobandPlan& plan) {
  const double range = highest_energy(waves, plan.given) - plan.midgap_ry;
  double end = options.protected_ry;
  while (end <= range && largest_count_between(waves, plan.midgap_ry + end,
                                               plan.midgap_ry + end * (1.0 + options.ratio),
                                               plan.given) <= options.vectors)
    end *= 1.0 + options.ratio;
  return end;
}

/// Sets the windows that hold states, and the error of their sum.
void choose_windows(const Wavefunctions& waves, PseudobandPlan& plan) {
  std::vector<double> largest(plan.windows.size());
  for_each_point(waves, [&](int spin, int ik) {
    for (int band = plan.kept; band < plan.given; ++band) {
      const double x = waves.energy(spin, ik, band) - plan.midgap_ry;
      double sum = 0.0;
      for (std::size_t k = 0; k < largest.size(); ++k) {
        const double weight = plan.windows.weight(k, x);
        largest[k] = std::max(largest[k], weight);
        sum += weight;
      }
      plan.identity_error = std::max(plan.identity_error, std::abs(sum - 1.0));
    }
  });
  for (std::size_t k = 0; k < largest.size(); ++k)
    if (largest[k] > 0.0) plan.used.push_back(k);
}

/// Returns the number of coefficients of a state on `n_pw` plane waves.
std::size_t row_of(const Wavefunctions& waves, std::size_t n_pw) {
  return n_pw * static_cast<std::size_t>(waves.header.n_spinor);
}

/// Calls visit(first, end, coefficients) for bands [begin, end) of one spin and k-point, in
/// ascending order. States in a file come in parts, which replace each other in memory.
/// @param row  coefficients of a state
template <class Visit>
void for_each_part(const StateCoefficients& states, std::size_t row, int begin, int end,
                   const Visit& visit) {
  constexpr double kLargestPart_bytes = 16777216.0;
  const double part_bytes = std::min(kLargestPart_bytes, 0.5 * states.memory_bytes());
  const int step = states.is_mapped()
                       ? static_cast<int>(part_bytes / static_cast<double>(sizeof(Cplx) * row))
                       : end - begin;
  for (int first = begin; first < end; first += std::max(1, step)) {
    const int last = std::min(end, first + std::max(1, step));
    visit(first, last,
          states.part(static_cast<std::size_t>(first) * row,
                      static_cast<std::size_t>(last - first) * row));
  }
}

bool are_real(const StateCoefficients& states, std::size_t row, int begin, int end) {
  bool real = true;
  for_each_part(states, row, begin, end, [&](int first, int last, const Cplx* from) {
    real = real && is_real({from, static_cast<std::size_t>(last - first) * row});
  });
  return real;
}

/// Replaces the states beyond plan.kept of one spin and k-point; [bands][n_spinor][n_pw].
std::vector<Cplx> replaced_states(const Wavefunctions& given, const PseudobandPlan& plan,
                                  PseudobandUse use, int spin, int ik) {
  const KPointWaves& at = given.waves[static_cast<std::size_t>(ik)];
  const StateCoefficients& states = at.coefficients[static_cast<std::size_t>(spin)];
  const std::size_t row = row_of(given, at.g.size());
  const bool real = are_real(states, row, plan.kept, given.n_bands);
  const RandomFactors factors(plan.seed, static_cast<std::uint32_t>(use), spin, ik, real);
  std::vector<Cplx> made(static_cast<std::size_t>(plan.bands()) * row);
  for_each_part(states, row, 0, plan.kept, [&](int first, int last, const Cplx* from) {
    std::copy_n(from, static_cast<std::size_t>(last - first) * row,
                made.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(first) * row));
  });
  const double scale = 1.0 / std::sqrt(static_cast<double>(plan.chosen.size()));
  for_each_part(states, row, plan.kept, plan.given, [&](int first, int last, const Cplx* from) {
  // A thread makes whole vectors, so that the order of each sum does not depend on their number.
#pragma omp parallel for schedule(dynamic)
    for (int made_band = plan.kept; made_band < plan.bands(); ++made_band) {
      const PseudobandPlan::Place place = plan.place_of(made_band - plan.kept);
      const std::size_t window = plan.used[place.window];
      const int vector = plan.chosen[place.vector];
      Cplx* const xi = made.data() + static_cast<std::size_t>(made_band) * row;
      for (int band = first; band < last; ++band) {
        const double weight =
            plan.windows.weight(window, given.energy(spin, ik, band) - plan.midgap_ry);
        if (weight == 0.0) continue;
        const Cplx factor = scale * std::sqrt(weight) * factors.at(vector, band);
        const Cplx* const state = from + static_cast<std::size_t>(band - first) * row;
        for (std::size_t i = 0; i < row; ++i) xi[i] += factor * state[i];
      }
    }
  });
  return made;
}

/// Returns the positions that the coefficients of a state take in a state on the plane waves `g`.
std::vector<std::size_t> places_in(const std::vector<IVec3>& g, const std::vector<IVec3>& of_states,
                                   const Wavefunctions& given) {
  const GIndex index(g);
  std::vector<std::size_t> place;
  for (int component = 0; component < given.header.n_spinor; ++component)
    for (const IVec3& plane_wave : of_states) {
      const std::int32_t found = index.find(plane_wave);
      if (found < 0)
        throw InvalidInput("a plane wave of the states lies far above their cut-off of " +
                           shown(given.wavefunction_cutoff_ry) + " Ry; correct WFN");
      place.push_back(static_cast<std::size_t>(component) * g.size() +
                      static_cast<std::size_t>(found));
    }
  return place;
}

/// Random vectors of the complement of the given states of one spin and k-point, on the plane
/// waves `g`; [vectors][n_spinor][n_pw].
std::vector<Cplx> complement_at(const Wavefunctions& given, const PseudobandPlan& plan, int spin,
                                int ik, const std::vector<IVec3>& g) {
  const KPointWaves& at = given.waves[static_cast<std::size_t>(ik)];
  const StateCoefficients& states = at.coefficients[static_cast<std::size_t>(spin)];
  const auto place = places_in(g, at.g, given);
  const std::size_t row = place.size(), row_of_all = row_of(given, g.size()),
                    n_vectors = plan.chosen.size();
  const RandomFactors factors(plan.seed, 2, spin, ik, are_real(states, row, 0, given.n_bands));
  const double scale = 1.0 / std::sqrt(static_cast<double>(n_vectors));
  std::vector<Cplx> made(n_vectors * row_of_all), inside(n_vectors * row);
  // A thread makes whole vectors, so that the order of each sum does not depend on their number.
#pragma omp parallel for schedule(dynamic)
  for (std::size_t r = 0; r < n_vectors; ++r) {
    Cplx* const eta = made.data() + r * row_of_all;
    for (std::size_t i = 0; i < row_of_all; ++i)
      eta[i] = scale * factors.at(plan.chosen[r], static_cast<int>(i));
    for (std::size_t i = 0; i < row; ++i) inside[r * row + i] = eta[place[i]];
    // Polynomials of H leave no state of the sphere out.
    if (plan.filter != nullptr)
      for (const std::size_t i : place) eta[i] = 0.0;
  }
  for_each_part(states, row, 0, plan.filter != nullptr ? 0 : plan.given,
                [&](int first, int last, const Cplx* from) {
#pragma omp parallel for schedule(dynamic)
                  for (std::size_t r = 0; r < n_vectors; ++r)
                    for (int band = first; band < last; ++band) {
                      const Cplx* const state = from + static_cast<std::size_t>(band - first) * row;
                      Cplx overlap;
                      for (std::size_t i = 0; i < row; ++i)
                        overlap += std::conj(state[i]) * inside[r * row + i];
                      for (std::size_t i = 0; i < row; ++i)
                        made[r * row_of_all + place[i]] -= overlap * state[i];
                    }
                });
  return made;
}

}  // namespace

void PseudobandPlan::choose(PseudobandUse use) {
  const int all = use == PseudobandUse::kSelfEnergy ? sigma_factor * vectors : vectors;
  chosen.clear();
  for (int r = 0; r < all; ++r)
    if (left_out < 0 || r / (all / divisor) != left_out) chosen.push_back(r);
}

PseudobandPlan plan_of_sigma(PseudobandPlan plan) {
  plan.choose(PseudobandUse::kSelfEnergy);
  return plan;
}

int largest_count_below(const Wavefunctions& waves, double energy_ry, int given) {
  int most = 0;
  for_each_point(waves, [&](int spin, int ik) {
    int n = 0;
    while (n < given && waves.energy(spin, ik, n) < energy_ry) ++n;
    most = std::max(most, n);
  });
  return most;
}

PseudobandPlan begin_plan(const MeanField& field, const PseudobandOptions& options,
                          bool top_is_whole) {
  const Wavefunctions& waves = field.waves;
  PseudobandPlan plan{.given = waves.n_bands,
                      .vectors = options.vectors,
                      .sigma_factor = options.sigma_factor,
                      .left_out = options.left_out,
                      .divisor = std::max(1, options.blocks),
                      .blocks = options.left_out < 0 ? std::max(1, options.blocks) : 1,
                      .seed = options.seed,
                      .moved_nodes = options.moved_nodes,
                      .filter = {},
                      .used = {}};
  plan.choose(PseudobandUse::kScreening);
  if (!top_is_whole) {
    const auto whole = whole_band_counts(waves, field.n_occupied + 1, waves.n_bands - 1);
    if (!whole.empty()) plan.given = whole.back();
  }
  plan.midgap_ry = midgap_of(field);
  plan.plasma_ry = std::sqrt(16.0 * kPi * field.n_electrons() / field.crystal().volume_bohr3);
  return plan;
}

PseudobandPlan plan_pseudobands(const MeanField& field, const PseudobandOptions& options,
                                bool top_is_whole) {
  const Wavefunctions& waves = field.waves;
  PseudobandPlan plan = begin_plan(field, options, top_is_whole);
  const double end = protected_energy(waves, options, plan);
  const int below = largest_count_below(waves, plan.midgap_ry + end, plan.given);
  const auto whole = whole_band_counts(waves, std::max(below, field.n_occupied + 1), plan.given);
  plan.kept = whole.empty() ? plan.given : whole.front();
  if (plan.keeps_all()) return plan;
  const double range = highest_energy(waves, plan.given) - plan.midgap_ry;
  plan.windows = EnergyWindows(end, range, options.ratio);
  choose_windows(waves, plan);
  if (plan.identity_error > kLargestIdentityError)
    throw InvalidInput("the windows of the pseudobands add up to 1 only within " +
                       shown(plan.identity_error) + ", more than " + shown(kLargestIdentityError) +
                       ": energies of the mean field are not in increasing order");
  if (plan.kept + static_cast<int>(plan.used.size()) * plan.vectors >= plan.given) {
    plan.kept = plan.given;
    plan.used.clear();
  }
  return plan;
}

Wavefunctions without_states(const Wavefunctions& given, int n_bands) {
  return {.header = given.header,
          .n_bands = n_bands,
          .wavefunction_cutoff_ry = given.wavefunction_cutoff_ry,
          .k_grid = given.k_grid,
          .k_shift = given.k_shift,
          .k = given.k,
          .weight = given.weight,
          .first_occupied = given.first_occupied,
          .last_occupied = given.last_occupied,
          .energy_ry = {},
          .occupation = {},
          .waves = {}};
}

void set_energies(const Wavefunctions& given, const PseudobandPlan& plan, PseudobandUse use,
                  Wavefunctions& made) {
  const double pole = use == PseudobandUse::kSelfEnergy ? plan.plasma_ry : 0.0;
  for_each_point(given, [&](int spin, int ik) {
    for (int band = 0; band < plan.kept; ++band) {
      made.energy_ry.push_back(given.energy(spin, ik, band));
      made.occupation.push_back(given.occupied(spin, ik, band));
    }
    for (int band = plan.kept; band < plan.bands(); ++band) {
      const std::size_t window = plan.used[plan.place_of(band - plan.kept).window];
      made.energy_ry.push_back(plan.energy_ry(window, pole));
      made.occupation.push_back(0.0);
    }
  });
}

std::vector<double> energies_at_nodes(const Wavefunctions& made, PseudobandPlan plan,
                                      PseudobandUse use) {
  plan.moved_nodes = false;
  Wavefunctions at_nodes = without_states(made, plan.bands());
  set_energies(made, plan, use, at_nodes);
  return std::move(at_nodes.energy_ry);
}

Wavefunctions pseudobands(const Wavefunctions& given, const PseudobandPlan& plan,
                          PseudobandUse use) {
  Wavefunctions made = without_states(given, plan.bands());
  for (const KPointWaves& at : given.waves) made.waves.push_back({.g = at.g, .coefficients = {}});
  set_energies(given, plan, use, made);
  for_each_point(given, [&](int spin, int ik) {
    made.waves[static_cast<std::size_t>(ik)].coefficients.push_back(
        replaced_states(given, plan, use, spin, ik));
  });
  return made;
}

double start_of_complement(const Wavefunctions& given, const PseudobandPlan& plan) {
  double start = given.wavefunction_cutoff_ry;
  if (plan.filter != nullptr) return start;
  for_each_point(given, [&](int spin, int ik) {
    start = std::min(start, given.energy(spin, ik, plan.given - 1) - plan.midgap_ry);
  });
  return start;
}

Wavefunctions complement_vectors(const Wavefunctions& given, const PseudobandPlan& plan,
                                 double epsilon_cutoff_ry) {
  Wavefunctions made = without_states(given, static_cast<int>(plan.chosen.size()));
  const double radius = std::sqrt(given.wavefunction_cutoff_ry) + std::sqrt(epsilon_cutoff_ry);
  for (const Vec3& k : given.k)
    made.waves.push_back(
        {.g = make_g_sphere(given.header.crystal.bdot, k, radius * radius * (1.0 + 1e-9)).g,
         .coefficients = {}});
  const std::size_t n = made.k.size() * plan.chosen.size();
  for_each_point(given, [&](int spin, int ik) {
    KPointWaves& at = made.waves[static_cast<std::size_t>(ik)];
    at.coefficients.push_back(complement_at(given, plan, spin, ik, at.g));
  });
  made.energy_ry.assign(n * static_cast<std::size_t>(given.header.n_spins), 0.0);
  made.occupation = made.energy_ry;
  return made;
}

}  // namespace quasi::gw

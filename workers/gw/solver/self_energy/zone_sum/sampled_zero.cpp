#include "workers/gw/solver/self_energy/zone_sum/sampled_zero.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "workers/gw/solver/screening/coulomb/sample_weights.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"

namespace quasi::gw {
namespace {

constexpr const char* kName = "samples of q → 0";

Vec3 cartesian(const Crystal& crystal, const Vec3& q) {
  return to_cartesian(crystal.bvec, crystal.blat_per_bohr, q);
}

std::vector<Vec3> points_of(const std::vector<DielectricMatrix>& samples) {
  std::vector<Vec3> points;
  for (const DielectricMatrix& m : samples) points.push_back(m.q);
  return points;
}

/// Adds factor · `from` to every sum of `to`.
void add(SelfEnergyAtK& to, double factor, const SelfEnergyAtK& from) {
  const auto add_list = [&](auto& list, const auto& other) {
    for (std::size_t i = 0; i < list.size(); ++i) list[i] += factor * other[i];
  };
  add_list(to.x_ry, from.x_ry);
  for (std::size_t e = 0; e < to.sx_ry.size(); ++e) {
    add_list(to.sx_ry[e], from.sx_ry[e]);
    add_list(to.ch_ry[e], from.ch_ry[e]);
  }
  add_list(to.slope, from.slope);
  add_list(to.ch_static_ry, from.ch_static_ry);
  add_list(to.ch_exact_ry, from.ch_exact_ry);
  add_list(to.subspace_error_ry, from.subspace_error_ry);
}

using Sums = std::vector<SelfEnergyAtK>;

void add(Sums& to, double factor, const Sums& from) {
  for (std::size_t i = 0; i < to.size(); ++i) add(to[i], factor, from[i]);
}

/// Holds a mean field for Σ at the sampled wave vectors q near 0 and their images by symmetry. It
/// has the states at the outer points k and at k − q for each of these q. The sums of Σ take it
/// in place of the mean field of the crystal.
class FieldOfSamples {
 public:
  FieldOfSamples(const MeanField& field, const std::vector<Vec3>& points,
                 const SigmaOptions& options, GwKernels& kernels, Progress& progress)
      : field_(field), kernels_(kernels), progress_(progress), options_(options) {
    const Wavefunctions& from = field.waves;
    Wavefunctions w;
    w.header = from.header;
    w.n_bands = options.bands;
    w.wavefunction_cutoff_ry = from.wavefunction_cutoff_ry;
    w.k_grid = from.k_grid;
    energy_ry_.resize(static_cast<std::size_t>(field.n_spins()));
    for (std::size_t i = 0; i < options.kpoints.size(); ++i) {
      const int ik = options.kpoints[i];
      w.k.push_back(from.k[static_cast<std::size_t>(ik)]);
      w.waves.push_back(from.waves[static_cast<std::size_t>(ik)]);
      for (int spin = 0; spin < field.n_spins(); ++spin)
        for (int n = 0; n < options.bands; ++n)
          energy_ry_[static_cast<std::size_t>(spin)].push_back(from.energy(spin, ik, n));
      options_.kpoints[i] = static_cast<int>(i);
    }
    BrillouinZone q_zone(points, field.transfers().operations(), 0, kName);
    add_states(q_zone, w);
    BrillouinZone zone = zone_of(w.k);
    finish(w);
    made_.emplace(MeanField{.waves = std::move(w), .zone = std::move(zone)});
    made_->q_zone.emplace(std::move(q_zone));
    made_->q0 = field.q0;
    made_->density = field.density;
    made_->n_occupied = field.n_occupied;
    made_->n_occupied_of_spin = field.n_occupied_of_spin;
  }

  const MeanField& field() const { return *made_; }
  /// The options with the outer k of this field.
  const SigmaOptions& options() const { return options_; }
  /// Number of images of a sample.
  double images(std::size_t sample) const {
    const auto& points = made_->q_zone->points();
    return static_cast<double>(std::count_if(
        points.begin(), points.end(),
        [&](const ZonePoint& point) { return point.irreducible == static_cast<int>(sample); }));
  }

 private:
  static std::vector<SymmetryOperation> identity() {
    return {{.rotation = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}, .translation = {}}};
  }
  static BrillouinZone zone_of(const std::vector<Vec3>& k) { return {k, identity(), 0, kName}; }

  /// Adds the states at k − q for all images q that the little group of k leaves.
  void add_states(const BrillouinZone& q_zone, Wavefunctions& w) {
    MeanField with_transfers{.waves = w, .zone = zone_of(w.k)};
    with_transfers.q_zone.emplace(q_zone);
    const std::vector<Vec3> outer = w.k;
    for (const Vec3& k : outer)
      for (const auto& [sample, members] : q_points_by_star(with_transfers, k, options_.reduce_q))
        for (const StarMember& member : members) add_point(k - member.q, w);
  }
  void add_point(const Vec3& k, Wavefunctions& w) {
    const bool known = std::any_of(w.k.begin(), w.k.end(), [&](const Vec3& other) {
      IVec3 g;
      return nearest_lattice_point(k - other, &g);
    });
    if (known) return;
    // The source makes the occupied states and one more on a grid. One point is a grid, and all
    // bands but the last count as occupied.
    Wavefunctions point;
    point.header = w.header;
    point.header.crystal.symmetries = identity();
    point.wavefunction_cutoff_ry = w.wavefunction_cutoff_ry;
    point.k_grid = {1, 1, 1};
    point.k = {k};
    point.last_occupied.assign(static_cast<std::size_t>(field_.n_spins()), options_.bands - 1);
    Wavefunctions states = field_.shifted_states(point, k, kernels_, progress_);
    w.k.push_back(k);
    w.waves.push_back(std::move(states.waves[0]));
    for (int spin = 0; spin < field_.n_spins(); ++spin)
      for (int n = 0; n < options_.bands; ++n)
        energy_ry_[static_cast<std::size_t>(spin)].push_back(states.energy(spin, 0, n));
  }
  void finish(Wavefunctions& w) const {
    for (std::size_t spin = 0; spin < energy_ry_.size(); ++spin) {
      const std::vector<double>& energies = energy_ry_[spin];
      const int occupied = field_.n_occupied_of_spin[spin];
      w.energy_ry.insert(w.energy_ry.end(), energies.begin(), energies.end());
      for (std::size_t i = 0; i < w.k.size(); ++i) {
        w.first_occupied.push_back(1);
        w.last_occupied.push_back(occupied);
        for (int n = 0; n < options_.bands; ++n) w.occupation.push_back(n < occupied ? 1.0 : 0.0);
      }
    }
    w.weight.assign(w.k.size(), 1.0 / static_cast<double>(w.k.size()));
  }

  const MeanField& field_;
  GwKernels& kernels_;
  Progress& progress_;
  SigmaOptions options_;
  std::vector<std::vector<double>> energy_ry_;  ///< [spin][k, band]
  std::optional<MeanField> made_;
};

/// The sums at q → 0 by samples, for any grid and any equidistant part of the samples.
class ZeroBySamples {
 public:
  ZeroBySamples(const MeanField& field, const DielectricMatrix& zero,
                const std::vector<DielectricMatrix>& samples, const SigmaOptions& options,
                const StepContext& context)
      : field_(field), options_(options), coulomb_(context.coulomb) {
    const FieldOfSamples near(field, points_of(samples), options, context.team.first(),
                              context.progress);
    add_length({}, gamma_of(head_of(zero, 0), zero.q));
    for (std::size_t j = 0; j < samples.size(); ++j) {
      ScreeningOnDevice here;
      Sums at =
          self_energy_part(near.field(), samples, near.options(), {j, j + 1, 0, options.bands},
                           {coulomb_, context.team.first(), context.progress}, here)
              .sums;
      // A part counts all images of a sample, over the volume of the field of samples.
      Sums mean = empty_self_energy(field, options);
      add(mean,
          static_cast<double>(near.field().zone.size()) / static_cast<double>(field.zone.size()) /
              near.images(j),
          at);
      at_sample_.push_back(std::move(mean));
      add_length(samples[j].q, gamma_of(head_of(samples[j], 0), samples[j].q));
    }
  }

  /// Returns the terms of q → 0 in a grid of 1/divisor of the points along both axes.
  /// @param stride  every stride-th sample is used
  Sums at(int divisor, std::size_t stride) const {
    std::vector<double> length;
    std::vector<std::complex<double>> gamma{gamma_[0]};
    for (std::size_t j = stride; j < length_.size(); j += stride) {
      length.push_back(length_[j]);
      gamma.push_back(gamma_[j]);
    }
    const SampleWeights weights = sample_weights(plane_of(divisor), length, gamma);
    Sums sums = empty_self_energy(field_, options_);
    for (SelfEnergyAtK& sum : sums) {
      const int occupied = field_.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)];
      for (int band = options_.band_min; band <= std::min(occupied, options_.band_max); ++band)
        sum.x_ry[static_cast<std::size_t>(band - options_.band_min)] =
            -weights.at_zero / field_.zone_volume_bohr3();
    }
    for (std::size_t j = 0; j < length.size(); ++j)
      add(sums, weights.of_sample[j], at_sample_[(j + 1) * stride - 1]);
    return sums;
  }

 private:
  void add_length(const Vec3& q, std::complex<double> gamma) {
    const Vec3 p = cartesian(field_.crystal(), q);
    length_.push_back(std::sqrt(dot(p, p)));
    gamma_.push_back(gamma);
  }
  /// γ = (1/ε⁻¹_00 − 1)/(p² v_c).
  std::complex<double> gamma_of(std::complex<double> inverse_head, const Vec3& q) const {
    const Vec3 p = cartesian(field_.crystal(), q);
    return (1.0 / inverse_head - 1.0) / (dot(p, p) * coulomb_.plain(q, {}) / kEightPi);
  }
  PlaneOfGrid plane_of(int divisor) const {
    const auto step = [&](int axis) {
      Vec3 q{};
      q[axis] = 1.0 * divisor_along(axis, divisor) / std::max(1, field_.waves.k_grid[axis]);
      return cartesian(field_.crystal(), q);
    };
    return {step(0), step(1), 0.5 * std::sqrt(field_.crystal().adot[2][2])};
  }
  int divisor_along(int axis, int divisor) const {
    return field_.waves.k_grid[axis] > 1 ? divisor : 1;
  }

  const MeanField& field_;
  const SigmaOptions& options_;
  const CoulombInteraction& coulomb_;
  std::vector<double> length_;               ///< 0, then those of the samples
  std::vector<std::complex<double>> gamma_;  ///< at each length
  std::vector<Sums> at_sample_;              ///< mean over the images, over Ω N_k
};

/// Returns the smallest of 2 and 3 that divides the grid along every axis with several points, or
/// 0.
int common_divisor(const IVec3& grid) {
  if (grid[0] <= 1 && grid[1] <= 1) return 0;
  for (const int divisor : {2, 3})
    if ((grid[0] <= 1 || grid[0] % divisor == 0) && (grid[1] <= 1 || grid[1] % divisor == 0))
      return divisor;
  return 0;
}

/// Returns Σ summed over the points of a coarser grid, but for q → 0.
Sums sums_of_coarse_grid(const MeanField& field, const std::vector<DielectricMatrix>& epsilon,
                         const SigmaOptions& options, int divisor, const StepContext& context) {
  Sums sums = empty_self_energy(field, options);
  for (std::size_t iq = 0; iq < epsilon.size(); ++iq) {
    bool inside = !epsilon[iq].at_gamma;
    for (int axis = 0; axis < 2; ++axis) {
      const int n = field.waves.k_grid[axis];
      const double steps = epsilon[iq].q[axis] * n / (n > 1 ? divisor : 1);
      inside = inside && std::abs(steps - std::round(steps)) < 1e-4;
    }
    if (!inside) continue;
    ScreeningOnDevice here;
    add(sums, 1.0,
        self_energy_part(field, epsilon, options, {iq, iq + 1, 0, options.bands},
                         {context.coulomb, context.team.first(), context.progress}, here)
            .sums);
  }
  return sums;
}

/// Returns Σ(E_l) of `other` less that of `sums`, averaged over multiplets, eV.
std::vector<double> change_ev(const MeanField& field, const SigmaOptions& options, const Sums& sums,
                              const Sums& other) {
  const auto sigma = [](const SelfEnergyAtK& sum, std::size_t l) {
    return sum.x_ry[l] + sum.sx_ry[0][l].real() + sum.ch_ry[0][l].real();
  };
  std::vector<double> change;
  const int first = options.band_min - 1;
  for (std::size_t i = 0; i < sums.size(); ++i)
    for (const auto& [begin, end] :
         multiplets(field.waves, sums[i].spin, sums[i].k_index, first, options.band_max)) {
      double total = 0.0;
      for (int band = begin; band < end; ++band) {
        const auto l = static_cast<std::size_t>(band - first);
        total += sigma(other[i], l) - sigma(sums[i], l);
      }
      change.insert(change.end(), static_cast<std::size_t>(end - begin),
                    total / (end - begin) * kRydberg_ev);
    }
  return change;
}

/// Returns the errors of a grid from the changes of Σ by a coarser one, negative for occupied
/// states, so that those of a gap add up.
std::vector<double> errors_of_grid(const MeanField& field, const SigmaOptions& options,
                                   const Sums& sums, std::vector<double> change_ev, int divisor) {
  // The spheres of plane waves cut the integrand along circles. The number of grid points inside a
  // circle is off by the power 3/2 of the spacing.
  const double factor = 1.0 / (std::pow(divisor, 1.5) - 1.0);
  double square = 0.0;
  for (double& value : change_ev) {
    value *= factor;
    square += value * value / static_cast<double>(change_ev.size());
  }
  // Such errors are as good as random, and one change may vanish by chance. No state gets less than
  // two standard deviations of all states.
  const double least = 2.0 * std::sqrt(square);
  auto value = change_ev.begin();
  for (const SelfEnergyAtK& sum : sums)
    for (int band = options.band_min; band <= options.band_max; ++band, ++value)
      *value = std::copysign(
          std::max(std::abs(*value), least),
          band <= field.n_occupied_of_spin[static_cast<std::size_t>(sum.spin)] ? -1.0 : 1.0);
  return change_ev;
}

}  // namespace

bool samples_replace_zero(const MeanField& field, const std::vector<DielectricMatrix>& samples,
                          SigmaMethod method) {
  if (samples.empty() || method == SigmaMethod::kImaginaryAxis) return false;
  // The images of one direction must leave a vector and a quadrupole in the plane no choice.
  constexpr double kTolerance = 1e-6;
  Vec3 sum{};
  double diagonal = 0.0, off_diagonal = 0.0, count = 0.0;
  const BrillouinZone images({samples[0].q}, field.transfers().operations(), 0, kName);
  const Vec3 first = cartesian(field.crystal(), samples[0].q),
             normal = cartesian(field.crystal(), {0.0, 0.0, 1.0}), second = cross(normal, first);
  const double square = dot(first, first), square_2 = dot(second, second);
  for (const ZonePoint& point : images.points()) {
    Vec3 q = point.k;
    for (int axis = 0; axis < 3; ++axis) q[axis] -= std::round(q[axis]);
    const Vec3 p = cartesian(field.crystal(), q);
    const double x = dot(p, first) / square, y = dot(p, second) / std::sqrt(square * square_2);
    sum = sum + Vec3{x, y, 0.0};
    diagonal += x * x - y * y;
    off_diagonal += x * y;
    count += 1.0;
  }
  const double largest =
      std::max({std::abs(sum[0]), std::abs(sum[1]), std::abs(diagonal), std::abs(off_diagonal)});
  return largest < kTolerance * count;
}

SamplingErrors replace_zero_by_samples(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const std::vector<DielectricMatrix>& samples,
                                       const SigmaOptions& options, const StepContext& context,
                                       Sums& sums) {
  const auto zero = static_cast<std::size_t>(
      std::find_if(epsilon.begin(), epsilon.end(), [](const auto& m) { return m.at_gamma; }) -
      epsilon.begin());
  ScreeningOnDevice here;
  const Sums before =
      self_energy_part(field, epsilon, options, {zero, zero + 1, 0, options.bands},
                       {context.coulomb, context.team.first(), context.progress}, here)
          .sums;
  const ZeroBySamples by_samples(field, epsilon[zero], samples, options, context);
  Sums change = by_samples.at(1, 1), half = by_samples.at(1, 2), with_half = sums;
  for (Sums* list : {&change, &half}) {
    add(*list, -1.0, before);
    finish_self_energy(field, options, *list);
  }
  add(sums, 1.0, change);
  add(with_half, 1.0, half);
  SamplingErrors errors{.half_change_ev = change_ev(field, options, sums, with_half),
                        .grid_change_ev = {}};
  const int divisor = common_divisor(field.waves.k_grid);
  if (divisor == 0) return errors;
  Sums coarse = sums_of_coarse_grid(field, epsilon, options, divisor, context);
  add(coarse, 1.0, by_samples.at(divisor, 1));
  finish_self_energy(field, options, coarse);
  const auto along = [&](int axis) { return field.waves.k_grid[axis] > 1 ? divisor : 1; };
  Sums scaled = empty_self_energy(field, options);
  add(scaled, along(0) * along(1), coarse);
  errors.grid_change_ev =
      errors_of_grid(field, options, sums, change_ev(field, options, sums, scaled), divisor);
  return errors;
}

}  // namespace quasi::gw

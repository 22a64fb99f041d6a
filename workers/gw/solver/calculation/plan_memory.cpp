#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <span>

#include "workers/backend/error.hpp"
#include "workers/gw/model/column_slices.hpp"
#include "workers/gw/solver/calculation/memory/band_memory.hpp"
#include "workers/gw/solver/calculation/memory/first_order_memory.hpp"
#include "workers/gw/solver/calculation/memory/sigma_memory.hpp"
#include "workers/gw/solver/calculation/plan.hpp"
#include "workers/gw/solver/calculation/slices/slices_plan.hpp"
#include "workers/gw/solver/mean_field/displaced/inner_states.hpp"
#include "workers/gw/solver/mean_field/pseudobands.hpp"
#include "workers/gw/solver/mean_field/random_factors.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"
#include "workers/gw/solver/self_energy/zone_sum/outer_products.hpp"

namespace quasi::gw {
namespace {

/// Numbers that the estimates depend on. Plane waves are counted by the volume of their sphere.
struct Sizes {
  double n_g = 0.0;         ///< plane waves of ε
  double n_screened = 0.0;  ///< plane waves of W in Σ
  double n_f = 1.0;         ///< frequencies of ε⁻¹
  double n_b = 0.0;         ///< vectors of the static subspace; n_g without one
  bool in_subspace = false;
};

Sizes sizes_of(const MeanField& field, const Plan& plan) {
  Sizes n;
  n.n_g = field.crystal().volume_bohr3 * std::pow(plan.epsilon.epsilon_cutoff_ry, 1.5) /
          (6.0 * kPi * kPi);
  n.n_screened =
      std::pow(plan.sigma.screened_cutoff_ry / plan.epsilon.epsilon_cutoff_ry, 1.5) * n.n_g;
  n.n_f = static_cast<double>(plan.epsilon.frequencies_ry.size());
  // Only ω = 0 is a whole matrix in a static subspace. The vectors that a tolerance keeps are not
  // known yet; all plane waves are the upper bound.
  n.in_subspace =
      !plan.stored && plan.epsilon.frequencies_ry.size() > 1 && plan.epsilon.subspace.wanted();
  n.n_b = n.in_subspace && plan.epsilon.subspace.vectors > 0
              ? std::min(n.n_g, plan.epsilon.subspace.vectors + 3.0)
              : n.n_g;
  return n;
}

/// Complex numbers of W of one q, as full_frequency_w() has it.
double numbers_of_w(const Sizes& n, const SigmaOptions& s, const CoulombOptions& coulomb,
                    const MeanField& screening) {
  const bool group_averages =
      screening.transfers().operations().size() > 1 && coulomb.truncation == Truncation::kNone;
  const double kept = n.n_screened;
  if (s.subspace.wanted()) {
    const double vectors = s.subspace.vectors > 0 ? std::min(kept, 1.0 * s.subspace.vectors) : kept;
    return n.n_g * n.n_g + 2.0 * kept * kept + kept * vectors + n.n_f * vectors * vectors;
  }
  if (n.in_subspace && !group_averages && coulomb.wing_rule != WingRule::kListedPoint)
    return n.n_g * n.n_g + kept * kept + kept * (n.n_b + n.n_f) + n.n_f * n.n_b * n.n_b;
  return n.n_f * n.n_g * n.n_g;
}

bool is_static(const Plan& plan) { return plan.epsilon.frequencies_ry.size() == 1; }

/// True if a device keeps χ and ε as real numbers. A CPU keeps them as complex ones.
bool has_real_matrices(const Plan& plan) {
  return plan.real_states && is_static(plan) && !plan.on_cpu;
}

/// Bytes of the sums of a static χ on a device: the sum that grows, and those that wait beside it
/// if they stay there. A complex sum has a real one beside it, which takes the terms of real
/// states.
/// @param sums  number of sums
double bytes_of_static_matrices(const Plan& plan, double matrix, double sums) {
  return (has_real_matrices(plan) ? 8.0 * sums : 16.0 * sums + 8.0) * matrix;
}

/// Returns the bytes of an inversion. A static ε that is larger than a block of the inversion is
/// inverted in its place, beside χ and one block. An interaction truncated to a wire or box may
/// be negative, and ε is then not definite.
/// @param whole  bytes of all matrices of an inversion by the library
double bytes_of_inversion(const Plan& plan, Truncation truncation, double n_g, double whole) {
  constexpr double kBlock = 4096.0;
  const bool definite = truncation == Truncation::kNone || truncation == Truncation::kSlab;
  if (plan.on_cpu || !is_static(plan) || !definite || n_g <= kBlock) return whole;
  return (has_real_matrices(plan) ? 8.0 : 16.0) * (2.0 * n_g * n_g + kBlock * kBlock);
}

/// Returns the bytes of one band on the box of pair products of ε.
double box_bytes_of(const MeanField& screening, const Plan& plan) {
  const auto box = sum_box(
      screening, make_g_sphere(screening.crystal().bdot, {}, plan.epsilon.epsilon_cutoff_ry).g);
  return 16.0 * box[0] * box[1] * box[2] * screening.n_spinor();
}

/// Returns true if the plane-wave coefficients are real, so that χ is real. The function examines
/// the lowest state of every k. With spinors it examines all states, because the lowest one may be
/// real by chance.
bool has_real_states(const Wavefunctions& waves) {
  for (const KPointWaves& at : waves.waves)
    for (const auto& spin : at.coefficients) {
      const std::span<const Cplx> all(spin);
      if (!is_real(waves.header.n_spinor == 2 ? all : all.first(at.g.size()))) return false;
    }
  return true;
}

/// Bytes of the matrices of a CPU while it sums and inverts χ, and while it sums Σ. A kernel has
/// A, ω̃ and four planes of a pole model.
struct CpuMatrices {
  double sums, inversion, poles;
};
CpuMatrices matrices_of_cpu(const Sizes& n, bool real) {
  const double matrix = n.n_g * n.n_g * n.n_f;
  return {.sums = (16.0 * kChiSums + (real ? 8.0 : 0.0)) * matrix,
          .inversion = 16.0 * matrix,
          .poles = 56.0 * n.n_screened * n.n_screened};
}

/// Returns the bytes of the matrices of a CPU while they are cut into slices. The device has one
/// slice of χ or of the poles, and four planes of the poles beside A and ω̃. The inversion has a
/// panel and its product.
CpuMatrices sliced_matrices_of_cpu(const Sizes& n, const Plan& plan) {
  const SliceBytes slice =
      bytes_of_slices(n.n_g, n.n_screened, plan.epsilon.column_slices, plan.real_states);
  return {.sums = slice.chi, .inversion = slice.inversion, .poles = 56.0 / 24.0 * slice.poles};
}

/// True if sums of portions of χ stay on the device. @param numbers  complex numbers of one sum
bool sums_stay_on_device(double box_bytes, double numbers, const Plan& plan) {
  return chi_sums_fit(static_cast<std::int64_t>(numbers),
                      static_cast<std::int64_t>(box_bytes * plan.epsilon.bands),
                      plan.epsilon.memory_budget_bytes);
}

/// Returns the bytes of bands and products of pairs while a device sums χ. Products come in
/// blocks: a static χ needs two at a time, and χ at several frequencies takes as many as the
/// budget allows.
/// @param n_c  empty bands that it holds at a time
double bytes_of_pairs(const MeanField& screening, const Plan& plan, double n_g, double n_c) {
  const double n_v = screening.n_occupied, n_k = static_cast<double>(screening.zone.size()),
               budget = static_cast<double>(plan.epsilon.memory_budget_bytes);
  const GSphere sphere =
      make_g_sphere(screening.crystal().bdot, {}, plan.epsilon.epsilon_cutoff_ry);
  const BandArrays arrays = band_arrays(screening, sphere.g, plan.on_cpu);
  // If there are fewer k-points than portions, the occupied bands of each k are cut into blocks, so
  // that every portion has one. Half of the budget is for empty bands on the box.
  const PairShape shape{.left = std::ceil(n_v / std::ceil(kChiPortions / n_k)),
                        .right = std::clamp(std::floor(0.5 * budget / (16.0 * arrays.points)), 1.0,
                                            std::max(1.0, n_c)),
                        .n_g = n_g,
                        .real = plan.real_states};
  if (is_static(plan)) return bytes_of_chi_pairs(arrays, shape);
  return bytes_of_bands(arrays, shape) + std::min(48.0 * n_v * shape.right * n_g, budget);
}

/// Adds the step of first orders to the memory of the host.
/// @param random  as above
/// @return bytes of a device
std::int64_t add_first_order(const Deck& deck, const MeanField& field, const PseudobandPlan* random,
                             Plan* plan) {
  const Sizes n = sizes_of(field, *plan);
  const FirstOrderBytes first = bytes_of_first_order(deck, field, *plan, n.n_screened, random);
  const bool poles = plan->sigma.method != SigmaMethod::kContour;
  const double square = n.n_screened * n.n_screened, of_poles = poles ? 24.0 * square : 0.0,
               summing = first.products + first.sums + first.kernel,
               read = plan->sigma.method == SigmaMethod::kGodbyNeeds ? 2.0 : 1.0;
  // The poles of one q are made from a copy of its ε⁻¹. Products take the place of the copy.
  const double loading = poles ? 16.0 * read * n.n_g * n.n_g + of_poles : 0.0,
               of_device = poles ? matrices_of_cpu(n, plan->real_states).poles : 0.0;
  plan->host.sigma = std::max(
      plan->host.sigma, static_cast<double>(plan->screening_bytes) + first.results +
                            (plan->on_cpu ? of_device + std::max(loading, summing) : loading));
  return static_cast<std::int64_t>(of_poles + summing);
}

/// Adds the step of first orders if the job has it and has no pseudobands.
void add_first_order_of_eigenstates(const Deck& deck, const MeanField& field, Plan* plan) {
  if (!deck.perturbation.wanted || deck.stop_after_epsilon || deck.pseudobands.wanted()) return;
  plan->device.first_order = static_cast<double>(add_first_order(deck, field, nullptr, plan));
}

/// Holds numbers on which the memory of the host depends.
struct HostWork {
  double states;     ///< bytes of all states
  double pairs;      ///< bytes of bands and products of χ, which a CPU holds
  SigmaBytes sigma;  ///< bytes of the steps of Σ on a device
  bool sums_stay;    ///< true if sums of portions of χ stay on the device
};
/// Sets the memory of the host in its phases.
void set_host_phases(const Deck& deck, const Sizes& n, const HostWork& of, Plan* plan) {
  // The host holds the matrices of one phase at a time. While a device without room sums χ, packed
  // sums wait for each other; a complex one passes through values that are not packed
  // (packed_chi.hpp). An inversion at q → 0 has ε⁻¹ with three heads and ε⁻¹ with one. Σ
  // has ε⁻¹, its average, the poles and the triangle of the self-test.
  const SigmaOptions& s = plan->sigma;
  const double n_f = n.n_f, matrix = n.n_g * n.n_g;
  const bool sliced = plan->epsilon.column_slices > 0;
  const bool wants_poles = uses_plasmon_poles(s.method) && !deck.stop_after_epsilon;
  const double whole = 16.0 * matrix * n_f, triangle = (plan->real_states ? 4.0 : 8.0) * matrix,
               on_host = static_cast<double>(plan->screening_bytes),
               read = s.method == SigmaMethod::kGodbyNeeds ? 2.0 : 1.0;
  const CpuMatrices cpu =
      sliced ? sliced_matrices_of_cpu(n, *plan) : matrices_of_cpu(n, plan->real_states);
  // Slices wait in packed form until the last one is there.
  double host_sums = sliced && !plan->stored ? triangle
                     : of.sums_stay || plan->stored
                         ? 0.0
                         : kChiPortions * (triangle + (whole - 16.0 * matrix)) +
                               (plan->real_states && n_f == 1.0 ? 0.0 : whole),
         host_inversion = plan->stored ? 0.0 : on_host + whole,
         host_sigma =
             on_host + (deck.self_test ? triangle : 0.0) +
             (wants_poles ? 16.0 * read * matrix + 24.0 * n.n_screened * n.n_screened : 0.0);
  if (plan->on_cpu && !plan->stored) {
    host_sums += cpu.sums + of.pairs;
    host_inversion += cpu.inversion;
  }
  if (plan->on_cpu && wants_poles) host_sigma += cpu.poles;
  if (plan->on_cpu && !deck.stop_after_epsilon)
    host_sigma = std::max(host_sigma + of.sigma.products, on_host + of.sigma.exchange);
  // The seconds of a CPU are estimated with a model of at most 2,000 plane waves, which its kernel
  // has again in planes.
  const double samples = wants_poles ? 80.0 * std::pow(std::min(n.n_screened, 2000.0), 2) : 0.0;
  plan->host = {.libraries = plan->on_cpu ? 0.0 : kHostLibraries_bytes,
                .states = of.states,
                .density = plan->on_cpu ? std::max(plan->device.density, samples) : 0.0,
                .epsilon = std::max(host_sums, host_inversion),
                .sigma = host_sigma};
}

}  // namespace

double bytes_of_states(const Wavefunctions& waves) {
  double bytes = 0.0;
  for (const KPointWaves& at : waves.waves)
    for (const auto& spin : at.coefficients) bytes += spin.memory_bytes();
  return bytes;
}

std::int64_t bytes_of_static_sums(const MeanField& screening, const Plan& plan, double n_c,
                                  std::int64_t portions) {
  const Sizes n = sizes_of(screening, plan);
  const double matrix = n.n_g * n.n_g, pairs = bytes_of_pairs(screening, plan, n.n_g, n_c);
  if (plan.epsilon.column_slices > 0) {
    const SliceBytes slice =
        bytes_of_slices(n.n_g, n.n_screened, plan.epsilon.column_slices, plan.real_states);
    return static_cast<std::int64_t>(slice.chi + pairs);
  }
  const bool stay = sums_stay_on_device(box_bytes_of(screening, plan), matrix, plan);
  // χ is added up portion by portion as a binary tree. With 2^k portions, k sums wait for a
  // partner while one grows.
  const double sums =
      stay ? std::min<double>(kChiSums, std::bit_width(static_cast<std::uint64_t>(portions))) : 1.0;
  return static_cast<std::int64_t>(bytes_of_static_matrices(plan, matrix, sums) + pairs);
}

void estimate_memory(const Deck& deck, const MeanField& screening, const MeanField& field,
                     Plan* plan) {
  const SigmaOptions& s = plan->sigma;
  const Sizes n = sizes_of(field, *plan);
  const double n_g = n.n_g, n_b = n.n_b, n_f = n.n_f;
  const double n_v = field.n_occupied, n_c = plan->epsilon.bands - field.n_occupied,
               n_k = static_cast<double>(field.zone.size()), matrix = n_g * n_g,
               n_q = screening.waves.n_k() + deck.coulomb.subsampling;
  plan->epsilon_gflop = 4.0 * n_v * n_c * n_g * n_g * n_k * n_q * 1e-9;
  plan->sigma_evaluations = n_g * n_g * s.bands * static_cast<double>(s.offsets_ry.size()) *
                            (s.band_max - s.band_min + 1) * static_cast<double>(s.kpoints.size()) *
                            n_k;
  if (n.in_subspace) plan->subspace_vectors = static_cast<std::int64_t>(n_b);
  plan->real_states = has_real_states(screening.waves);
  // ε⁻¹ needs χ of every frequency, ε of one, and the work space of its inverse. A real ε is
  // inverted in its place. Σ needs A and ω̃, or W.
  const double of_chi =
      has_real_matrices(*plan)
          ? 16.0 * matrix
          : 16.0 * (n.in_subspace ? 3.0 * n_g * n_g + n_g * n_b + (n_f - 1.0) * n_b * n_b
                                  : n_g * n_g * (2.0 + n_f));
  const bool sliced = plan->epsilon.column_slices > 0;
  const SliceBytes slice =
      sliced ? bytes_of_slices(n_g, n.n_screened, plan->epsilon.column_slices, plan->real_states)
             : SliceBytes{};
  const double least_of_chi =
      n.in_subspace && plan->epsilon.subspace.vectors == 0 ? 48.0 * n_g * n_g : of_chi;
  plan->least_memory_bytes = static_cast<std::int64_t>(
      std::max(plan->stored ? 0.0 : least_of_chi,
               deck.stop_after_epsilon ? 0.0 : 24.0 * n.n_screened * n.n_screened));
  if (sliced) plan->least_memory_bytes = static_cast<std::int64_t>(slice.least());
  const double of_q =
      n.in_subspace ? 2.0 * n_g * n_g + n_g * n_b + n_f * n_b * n_b : n_f * n_g * n_g;
  const bool wants_w = uses_frequencies(s.method) && !deck.stop_after_epsilon;
  plan->screening_bytes = static_cast<std::int64_t>(
      16.0 * (of_q * n_q + (wants_w ? numbers_of_w(n, s, deck.coulomb, screening) : 0.0)));
  const double of_states = bytes_of_states(screening.waves) +
                           (screening.shifted ? bytes_of_states(*screening.shifted) : 0.0) +
                           (&field != &screening ? bytes_of_states(field.waves) : 0.0) +
                           (field.inner ? bytes_of_states(field.inner->waves) : 0.0);
  const bool sums_stay = sums_stay_on_device(box_bytes_of(screening, *plan),
                                             matrix * (n.in_subspace ? 1.0 : n_f), *plan);
  const double pairs = bytes_of_pairs(screening, *plan, n_g, n_c),
               sums = sliced             ? slice.chi
                      : is_static(*plan) ? bytes_of_static_matrices(
                                               *plan, matrix, sums_stay ? 1.0 * kChiSums : 1.0)
                                         : of_chi;
  const SigmaBytes of_sigma = bytes_of_sigma(field, *plan, n_q);
  plan->device = {
      .libraries = plan->on_cpu ? 0.0 : kLibraries_bytes,
      .density = deck.mean_field.empirical || deck.self_test
                     ? std::max(bytes_of_density(screening, plan->on_cpu),
                                bytes_of_overlaps(screening, screening.waves.n_bands,
                                                  s.memory_budget_bytes, plan->on_cpu))
                     : 0.0,
      .sums = plan->stored ? 0.0 : sums + pairs,
      .inversion = plan->stored ? 0.0
                   : sliced     ? slice.inversion
                                : bytes_of_inversion(*plan, deck.coulomb.truncation, n_g, of_chi),
      .sigma = deck.stop_after_epsilon ? 0.0 : of_sigma.peak()};
  set_host_phases(deck, n, {of_states, pairs, of_sigma, sums_stay}, plan);
  add_first_order_of_eigenstates(deck, field, plan);
  plan->set_peaks();
}

std::int64_t add_first_order_of_pseudobands(const Deck& deck, const MeanField& field,
                                            const PseudobandPlan& random, Plan* plan) {
  const std::int64_t of_device = add_first_order(deck, field, &random, plan);
  double vectors = 0.0;
  for (const KPointWaves& at : field.waves.waves)
    vectors += 16.0 * static_cast<double>(random.chosen.size() * at.g.size());
  plan->host.sigma +=
      deck.pseudobands.blocks * static_cast<double>(plan->screening_bytes) + vectors;
  return of_device;
}

void require_room(const Plan& plan, std::int64_t limit_bytes, const std::string& further) {
  if (limit_bytes <= 0 || plan.least_memory_bytes <= limit_bytes) return;
  constexpr double kGib = 1073741824.0;
  const auto need = static_cast<double>(plan.least_memory_bytes),
             limit = static_cast<double>(limit_bytes);
  // Plane waves go as cutoff^(3/2), matrices as their square.
  char text[400];
  std::snprintf(text, sizeof text,
                "epsilon.cutoff_ry = %.6g needs %.3g GiB for matrices between its plane waves, "
                "which one device must hold (more devices do not help); there are %.3g GiB. "
                "Lower the cut-off to %.3g Ry or less, ask for fewer frequencies, or take a device "
                "with more memory",
                plan.epsilon.epsilon_cutoff_ry, need / kGib, limit / kGib,
                0.99 * plan.epsilon.epsilon_cutoff_ry * std::cbrt(limit / need));
  if (plan.epsilon.column_slices > 0)
    std::snprintf(text, sizeof text,
                  "epsilon.cutoff_ry = %.6g needs %.3g GiB of a device for one of %d slices of "
                  "matrices between its plane waves (epsilon.column_slices, at most %d); there are "
                  "%.3g GiB. Ask for more slices, lower the cut-off, or take a device with more "
                  "memory",
                  plan.epsilon.epsilon_cutoff_ry, need / kGib, plan.epsilon.column_slices,
                  kMostColumnSlices, limit / kGib);
  throw OutOfMemory(text + further);
}

void require_host_room(const Plan& plan, std::int64_t limit_bytes) {
  if (limit_bytes <= 0 || plan.host_bytes <= limit_bytes) return;
  constexpr double kGib = 1073741824.0;
  char text[500];
  std::snprintf(
      text, sizeof text,
      "states, ε⁻¹ and W need %.3g GiB of host memory, %.3g GiB of them for matrices; the "
      "host has %.3g GiB to give (available memory, or what its control group leaves). Lower "
      "epsilon.cutoff_ry = %.6g or the bands, ask for fewer "
      "frequencies, set epsilon.subspace_tolerance, or take a host with more memory",
      static_cast<double>(plan.host_bytes) / kGib, static_cast<double>(plan.screening_bytes) / kGib,
      static_cast<double>(limit_bytes) / kGib, plan.epsilon.epsilon_cutoff_ry);
  throw OutOfMemory(text);
}

}  // namespace quasi::gw

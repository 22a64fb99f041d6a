#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workers/gw/input/deck.hpp"
#include "workers/gw/model/epsilon_options.hpp"
#include "workers/gw/model/memory_limits.hpp"
#include "workers/gw/model/sigma_options.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"
#include "workers/gw/solver/mean_field/pseudobands.hpp"
#include "workers/gw/solver/screening/epsilon_file.hpp"

namespace quasi::gw {

/// Work of the error bars of pseudobands beside that of the job.
struct ErrorBarWork {
  int blocks = 0;            ///< 0: no error bars, or repeated jobs that are not estimated
  bool first_order = false;  ///< Σ of blocks to first order (docs/theory/gw.md 9.3)
  int random_bands = 0;      ///< random vectors of χ, at all windows
};

/// Bytes of the host that the driver and the libraries of a GPU take. They are 0.7 GiB in jobs of
/// 64 atoms on an H200.
inline constexpr double kHostLibraries_bytes = 751619277.0;

/// Estimates of the memory of the host in the phases of a job, bytes. Where a CPU is the device,
/// they count its matrices too.
struct HostPhases {
  double libraries = 0.0;   ///< in every phase of a job on GPUs: kHostLibraries_bytes
  double mean_field = 0.0;  ///< while a solver makes the states, with these
  double states = 0.0;      ///< in every later phase
  /// While a CPU sums the density of the states, tests them, or estimates seconds from samples.
  double density = 0.0;
  double epsilon = 0.0;  ///< matrices while χ is summed and ε inverted
  double sigma = 0.0;
  double error_bars = 0.0;  ///< of pseudobands
  /// Returns the bytes of the phase that takes most.
  std::int64_t peak() const {
    return static_cast<std::int64_t>(
        libraries + std::max(mean_field, states + std::max({density, epsilon, sigma, error_bars})));
  }
};

/// Bytes of a GPU that the driver, the libraries and their kernels take beside the arrays of a job.
/// An H100 took 0.77 GiB in jobs of 216 atoms.
inline constexpr double kLibraries_bytes = 805306368.0;

/// Estimates of the memory of a device in the phases of a job, bytes.
struct DevicePhases {
  double libraries = 0.0;    ///< in every phase: kLibraries_bytes, and 0 of a CPU
  double mean_field = 0.0;   ///< while the states are made
  double density = 0.0;      ///< while their density is summed
  double pseudobands = 0.0;  ///< while random vectors are filtered
  double sums = 0.0;         ///< of χ
  double inversion = 0.0;    ///< of ε
  double sigma = 0.0;        ///< exchange, or W and the products of a block of bands
  double error_bars = 0.0;   ///< of pseudobands
  double first_order = 0.0;  ///< of displacements
  /// Returns the bytes of the phase that takes most.
  std::int64_t peak() const {
    return static_cast<std::int64_t>(libraries +
                                     std::max({mean_field, density, pseudobands, sums, inversion,
                                               sigma, error_bars, first_order}));
  }
};

/// The options of every step of a job, made consistent with the mean field, and its expected cost.
struct Plan {
  EpsilonOptions epsilon;
  SigmaOptions sigma;
  DerivativeRule derivative;
  /// Index of the first of SigmaOptions::offsets_ry that belongs to the spectra.
  std::size_t spectrum_offset = 0;
  /// Energies of the spectra that all states share, eV; empty: each state has its own.
  std::vector<double> spectrum_ev;
  std::vector<std::string> notes;       ///< one sentence for each setting that was changed
  std::optional<StoredEpsilon> stored;  ///< description of the files that ε⁻¹ comes from
  double epsilon_gflop = 0.0;           ///< gigaflop of the products of χ
  double sigma_evaluations = 0.0;       ///< number of (G, G', n, E, l, q) of the plasmon-pole sum
  DevicePhases device;
  /// Estimate of the memory of a device: the peak of `device`.
  std::int64_t memory_bytes = 0;
  /// Bytes of the matrices between plane waves that one device must hold. They are whole matrices,
  /// or one slice of each (docs/theory/gw.md 4.3).
  std::int64_t least_memory_bytes = 0;
  /// Upper bound of the memory of the host: ε⁻¹ of all q, and W of the q at which Σ is summed.
  std::int64_t screening_bytes = 0;
  HostPhases host;
  /// Estimate of the memory of the host: the peak of `host`.
  std::int64_t host_bytes = 0;
  /// Sets the peaks of devices and host from their phases.
  void set_peaks() {
    memory_bytes = device.peak();
    host_bytes = host.peak();
  }
  bool on_cpu = false;       ///< the device is the host
  bool real_states = false;  ///< matrices of χ are real
  /// Upper bound of the number of vectors of the static subspace of ε⁻¹; 0: no subspace.
  std::int64_t subspace_vectors = 0;
  double epsilon_seconds = 0.0;  ///< expected (cost_estimate.hpp); 0: not estimated
  double sigma_seconds = 0.0;    ///< expected (cost_estimate.hpp); 0: not estimated
  ErrorBarWork error_bars;
  double error_bar_seconds = 0.0;  ///< expected (cost_estimate.hpp); 0: not estimated
};

/// Resolves a deck against a mean field before the long phases. Band counts that split multiplets
/// are lowered, the k-points of the deck are looked up, and memory and work are estimated. @param
/// screening  mean field of ε⁻¹ @param outer      mean field of the outer states; null: `screening`
/// @param on_cpu  the device is the host, whose memory then holds its matrices
/// @throws InvalidInput if the deck does not fit the mean field
Plan make_plan(const Deck& deck, const MeanField& screening, std::int64_t memory_budget_bytes,
               const MeanField* outer = nullptr, bool on_cpu = false);

/// Steps of make_plan().
///
/// Sets the frequencies of ε⁻¹ that the deck or the method of Σ asks for. The real axis is extended
/// to the energies that Σ needs, with a note.
/// @throws InvalidInput if stored files lack frequencies that sigma.method needs
void set_frequencies(const Deck& deck, const MeanField& field, Plan* plan);
/// Estimates the work and the memory of a plan that is otherwise complete.
void estimate_memory(const Deck& deck, const MeanField& screening, const MeanField& field,
                     Plan* plan);

/// Adds the step of first orders with pseudobands to the memory of the host in a plan.
/// estimate_memory() leaves this step out, because it does not know the pseudobands.
/// @param random  plan of the pseudobands of Σ
/// @return bytes that the step takes on a device
std::int64_t add_first_order_of_pseudobands(const Deck& deck, const MeanField& field,
                                            const PseudobandPlan& random, Plan* plan);

/// Returns the memory of the coefficients of all states, bytes.
double bytes_of_states(const Wavefunctions& waves);

/// Returns the bytes of a device that sums a static χ: sums, bands on the box of transforms, and
/// blocks of products.
/// @param n_c  empty bands that it holds at a time
/// @param portions  sums of pairs of bands into which the device cuts them
std::int64_t bytes_of_static_sums(const MeanField& screening, const Plan& plan, double n_c,
                                  std::int64_t portions = kChiPortions);

/// @param further  sentence that ends the message, such as that of remedy_of_slices()
/// @throws OutOfMemory if a device of `limit_bytes` (0: not known) cannot hold the matrices
void require_room(const Plan& plan, std::int64_t limit_bytes, const std::string& further = {});

/// @throws OutOfMemory if a host of `limit_bytes` (0: not known) cannot hold states and matrices
void require_host_room(const Plan& plan, std::int64_t limit_bytes);

}  // namespace quasi::gw

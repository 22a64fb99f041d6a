#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "workers/gw/solver/part_runner.hpp"
#include "workers/gw/solver/self_energy/sigma.hpp"
#include "workers/gw/solver/self_energy/sigma_parts.hpp"
#include "workers/gw/solver/self_energy/sigma_subspace.hpp"

// The diagonal Σ on several devices, continued after an interruption.
namespace quasi::gw {
namespace {

/// Number of parts of a Σ. Parts are small, so that the last device does not work alone for long
/// (parts with occupied bands take longer) and checkpoints are frequent.
constexpr std::int64_t kParts = 32;

/// Number of parts of exchange alone. Each averages the interaction anew.
constexpr std::int64_t kExchangeParts = 4;

std::int64_t largest_occupied(const MeanField& field) {
  return *std::max_element(field.n_occupied_of_spin.begin(), field.n_occupied_of_spin.end());
}

/// The sums, one of each spin, that a part adds to.
std::span<SelfEnergyAtK> sums_of_part(std::vector<SelfEnergyAtK>& sums, const PartAtK& part,
                                      const MeanField& field) {
  const auto n_spins = static_cast<std::size_t>(field.n_spins());
  return std::span(sums).subspan(part.k * n_spins, n_spins);
}

/// Calls visit(values, count) for every array of the sums, in one order, as doubles.
template <typename Sums, typename Visit>
void for_each_array(Sums& sums, const Visit& visit) {
  const auto complex = [&](auto& list) { visit(list.data(), 2 * list.size()); };
  for (auto& sum : sums) {
    visit(sum.x_ry.data(), sum.x_ry.size());
    for (auto& list : sum.sx_ry) complex(list);
    for (auto& list : sum.ch_ry) complex(list);
    complex(sum.slope);
    complex(sum.ch_static_ry);
    complex(sum.ch_exact_ry);
    complex(sum.closed_sum_ry);
    for (auto& list : sum.axis_ry) complex(list);
    visit(sum.subspace_error_ry.data(), sum.subspace_error_ry.size());
  }
}

std::vector<double> packed(const std::vector<SelfEnergyAtK>& sums,
                           const SigmaStatistics& statistics) {
  std::vector<double> values;
  for_each_array(sums, [&](const auto* data, std::size_t count) {
    const auto* flat = reinterpret_cast<const double*>(data);
    values.insert(values.end(), flat, flat + count);
  });
  for (const std::int64_t count : {statistics.elements, statistics.skipped, statistics.invalid,
                                   statistics.subspace_vectors, statistics.plane_waves})
    values.push_back(static_cast<double>(count));
  return values;
}

/// Adds factor · a part of the same shape, as packed() made it, to the sums.
void add_packed(const Piece& values, double factor, std::span<SelfEnergyAtK> sums,
                SigmaStatistics* statistics) {
  std::size_t at = 0;
  for_each_array(sums, [&](auto* data, std::size_t count) {
    auto* flat = reinterpret_cast<double*>(data);
    for (std::size_t i = 0; i < count; ++i) flat[i] += factor * values.data[at++];
  });
  if (statistics == nullptr) return;
  statistics->elements += static_cast<std::int64_t>(values.data[at]);
  statistics->skipped += static_cast<std::int64_t>(values.data[at + 1]);
  statistics->invalid += static_cast<std::int64_t>(values.data[at + 2]);
  statistics->subspace_vectors += static_cast<std::int64_t>(values.data[at + 3]);
  statistics->plane_waves += static_cast<std::int64_t>(values.data[at + 4]);
}

/// Makes the estimate of RunningSums from the finished parts. There is none before q → 0 and one
/// other q are complete, or before the first bands of a single q are.
std::optional<std::vector<SelfEnergyAtK>> estimated(const MeanField& field,
                                                    const std::vector<DielectricMatrix>& epsilon,
                                                    const SigmaOptions& options,
                                                    const std::vector<PartAtK>& parts,
                                                    const std::vector<Piece>& results,
                                                    const std::vector<char>& finished) {
  std::vector<double> points(epsilon.size());
  for (const ZonePoint& point : field.transfers().points())
    points[static_cast<std::size_t>(point.irreducible)] += 1.0;
  std::vector<char> complete(epsilon.size(), 1);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (finished[i] == 0) complete[parts[i].q_begin] = 0;
  double done = 0.0, all = 0.0;
  for (std::size_t iq = 0; iq < epsilon.size(); ++iq) {
    if (epsilon[iq].at_gamma) continue;
    all += points[iq];
    if (complete[iq] != 0) done += points[iq];
  }
  const bool one_q = epsilon.size() == 1;
  std::vector<SelfEnergyAtK> sums = empty_self_energy(field, options);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t iq = parts[i].q_begin;
    const bool gamma = epsilon[iq].at_gamma;
    if (gamma && (one_q ? parts[i].band_begin == 0 && finished[i] == 0 : complete[iq] == 0))
      return std::nullopt;
    if (one_q ? finished[i] != 0 : complete[iq] != 0)
      add_packed(results[i], gamma || one_q ? 1.0 : all / done, sums_of_part(sums, parts[i], field),
                 nullptr);
  }
  if (!one_q && done == 0.0) return std::nullopt;
  finish_self_energy(field, options, sums);
  return sums;
}

/// Returns the parts of the diagonal Σ if the poles are cut into slices. Each block of bands has
/// one part for every slice. Parts with one q and one slice follow each other, so that a device
/// loads the slice once.
std::vector<PartAtK> parts_of_slices(std::size_t n_q, const SigmaOptions& options) {
  const std::int64_t n_slices = options.column_slices,
                     in_all = std::max<std::int64_t>(1, kParts / n_slices);
  std::vector<PartAtK> parts;
  const std::vector<PartAtK> whole = parts_of_sigma(n_q, options, in_all);
  for (std::size_t iq = 0; iq < n_q; ++iq)
    for (int slice = 0; slice < n_slices; ++slice)
      for (PartAtK part : whole) {
        if (part.q_begin != iq) continue;
        part.slice = slice;
        parts.push_back(part);
      }
  return parts;
}

}  // namespace

std::vector<PartAtK> parts_of_sigma(std::size_t n_q, const SigmaOptions& options,
                                    std::int64_t in_all) {
  constexpr std::int64_t kSmallestBlock = 64;  // bands of a part; fewer leave a device idle
  const std::size_t n_k = options.kpoints.size();
  const std::int64_t wanted =
      std::max<std::int64_t>(1, in_all / static_cast<std::int64_t>(n_q * n_k));
  const std::int64_t blocks = std::clamp<std::int64_t>(options.bands / kSmallestBlock, 1, wanted);
  std::vector<PartAtK> parts;
  for (std::size_t iq = 0; iq < n_q; ++iq)
    for (std::size_t k = 0; k < n_k; ++k)
      for (std::int64_t b = 0; b < blocks; ++b)
        parts.push_back(
            {{iq, iq + 1, b * options.bands / blocks, (b + 1) * options.bands / blocks}, k});
  return parts;
}

std::vector<SelfEnergyAtK> self_energy(const MeanField& field,
                                       const std::vector<DielectricMatrix>& epsilon,
                                       const SigmaOptions& options, const StepContext& context,
                                       SigmaStatistics* statistics, const RunningSums& running) {
  SigmaOptions shared_bands = options;
  if (!options.correlation) shared_bands.bands = static_cast<int>(largest_occupied(field));
  const bool sliced = options.correlation && options.column_slices > 0;
  const std::vector<PartAtK> parts =
      sliced ? parts_of_slices(epsilon.size(), options)
             : parts_of_sigma(epsilon.size(), shared_bands,
                              options.correlation ? kParts : kExchangeParts);
  SharedScreening shared;
  std::map<const GwKernels*, ScreeningOnDevice> prepared;
  for (GwKernels* member : context.team.members()) prepared[member].shared = &shared;
  PartedSum sum{.name = "sigma",
                .phase = "self-energy",
                .parts = static_cast<std::int64_t>(parts.size()),
                .make = {},
                .running = {}};
  sum.make = [&](std::int64_t part, GwKernels& kernels, Progress& inside) {
    const PartAtK& at = parts[static_cast<std::size_t>(part)];
    SigmaOptions at_k = options;
    at_k.kpoints = {options.kpoints[at.k]};
    PartOfSelfEnergy made = self_energy_part(
        field, epsilon, at_k, at, {context.coulomb, kernels, inside}, prepared.at(&kernels));
    if (at.k > 0) made.statistics = {};  // The elements of a q count once.
    return packed(made.sums, made.statistics);
  };
  std::size_t known = 0;  // q complete at the last estimate; where there is one q, its parts
  // A running result of Σ needs complete blocks of bands, but a block lacks slices until the end.
  if (running && !sliced)
    sum.running = [&](const std::vector<Piece>& results, const std::vector<char>& finished) {
      // Parts of a q that is not complete change nothing.
      std::size_t now = 0;
      for (std::size_t iq = 0; iq < epsilon.size(); ++iq) {
        bool complete = true;
        for (std::size_t i = 0; i < parts.size(); ++i) {
          complete = complete && (parts[i].q_begin != iq || finished[i] != 0);
          if (epsilon.size() == 1 && finished[i] != 0) ++now;
        }
        if (complete) ++now;
      }
      if (now == known) return;
      known = now;
      if (const auto sums = estimated(field, epsilon, options, parts, results, finished))
        running(*sums);
    };
  std::vector<SelfEnergyAtK> sums = empty_self_energy(field, options);
  const std::vector<Piece> results =
      run_parts(sum, context.team, context.checkpoint, context.progress);
  for (std::size_t i = 0; i < results.size(); ++i)
    add_packed(results[i], 1.0, sums_of_part(sums, parts[i], field), statistics);
  if (statistics != nullptr)
    for (const auto& [step, seconds] : shared.times().seconds())
      statistics->seconds[step] += seconds;
  finish_self_energy(field, options, sums);
  if (running && sliced && context.team.ranks().leads()) running(sums);
  return sums;
}

}  // namespace quasi::gw

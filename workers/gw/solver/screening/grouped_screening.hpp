#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "workers/gw/solver/screening/dielectric_inversion.hpp"
#include "workers/gw/solver/screening/epsilon.hpp"
#include "workers/gw/solver/screening/polarizability/packed_chi.hpp"
#include "workers/gw/solver/screening/polarizability/polarizability.hpp"

namespace quasi::gw {

/// A range of empty bands whose pairs with all occupied bands are summed apart.
struct EmptyBands {
  std::string name;         ///< of its sums in the checkpoint
  BandRange bands;          ///< counted from 0; bands that a spin occupies are left out
  bool by_portions = true;  ///< devices share its pairs; false: one device sums all of them
};

/// ε⁻¹ of all q for weighted sums of χ over groups of empty bands,
///
///   χ = Σ_g w_g χ_g,   χ_g: all pairs of an occupied band and an empty band of group g.
///
/// Each χ_g is calculated once and kept in host memory (packed_chi.hpp). Every set of weights then
/// costs an inversion and no pair (docs/theory/gw.md 9.3).
class GroupedScreening {
 public:
  /// @param field    its states may change between calls, but not their plane waves
  /// @param profile  gets times and counts
  GroupedScreening(const MeanField& field, const EpsilonOptions& options,
                   const StepContext& context, EpsilonProfile* profile);

  /// Calculates χ of further groups with the present states of the field. Finished sums go into
  /// the checkpoint, and those that it holds are not calculated. Collective.
  void add(const std::vector<EmptyBands>& groups);

  /// Inverts ε of the weighted sum of groups at every q, on the devices of this rank.
  /// @param weights  of the groups in the order of add(); groups beyond the list count as 0
  std::vector<DielectricMatrix> dielectric_matrices(const std::vector<double>& weights);
  /// Inverts ε of the weighted sum at the q of one index on one device.
  DielectricMatrix dielectric_matrix(const std::vector<double>& weights, std::size_t iq,
                                     GwKernels& kernels) const;
  /// Returns ε⁻¹ of the weighted sum of the groups at one q. The inversion runs in slices on
  /// all devices of this rank.
  DielectricMatrix dielectric_matrix_in_slices(const std::vector<double>& weights,
                                               std::size_t iq) const;
  /// Returns true if χ and ε are cut into slices (docs/theory/gw.md 4.3).
  bool is_sliced() const { return options_.column_slices > 0; }
  /// Returns ε̃⁻¹ at ω = 0 of the weighted sum at the q of one index, on the device of
  /// `kernels`. With head_count() = 3 its first three plane waves stand for G = 0. v must be
  /// positive.
  std::unique_ptr<const DielectricInverse> inverse(const std::vector<double>& weights,
                                                   std::size_t iq, GwKernels& kernels) const;

 private:
  struct Group {
    EmptyBands of;
    EpsilonOptions options;
    std::vector<PackedChi> chi;  ///< [q]
  };
  class Sums;

  /// Holds χ of the groups whose weights are not 0.
  struct WeightedGroups {
    std::vector<const PackedChi*> list;
    std::vector<double> factors;
  };
  WeightedGroups groups_at(const std::vector<double>& weights, std::size_t iq) const;
  std::string name_of(const EmptyBands& group, std::size_t iq) const;
  /// Returns the weighted sum of χ over the whole zone, on the device of `kernels` if it needs no
  /// symmetry.
  std::unique_ptr<PartialChi> weighted_chi(const std::vector<double>& weights, std::size_t iq,
                                           GwKernels& kernels) const;

  const MeanField& field_;
  EpsilonOptions options_;
  const StepContext context_;
  EpsilonProfile* profile_;
  DielectricInversion inversion_;
  std::vector<DielectricMatrix> empty_;  ///< without ε⁻¹, [q]
  std::vector<Group> groups_;
};

}  // namespace quasi::gw

#include "workers/gw/solver/screening/coulomb/head_samples.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/backend/team/kept_pieces.hpp"
#include "workers/gw/solver/screening/dielectric_inversion.hpp"
#include "workers/gw/solver/screening/epsilon_pieces.hpp"

namespace quasi::gw {
namespace {

/// Gives a mean field its occupied states at k + q as those of q → 0, as long as it lives.
class StatesAtShift {
 public:
  StatesAtShift(MeanField& field, const Vec3& q, GwKernels& kernels, Progress& progress)
      : field_(field),
        q0_(field.q0),
        by_velocity_(field.by_velocity),
        shifted_(std::move(field.shifted)),
        zone_(std::move(field.shifted_zone)) {
    Wavefunctions states = field.shifted_states(field.waves, q, kernels, progress);
    std::vector<SymmetryOperation> keep;
    for (const int s : little_group(field.crystal().symmetries, q, true))
      keep.push_back(field.crystal().symmetries[static_cast<std::size_t>(s)]);
    field.shifted_zone.emplace(states.k, keep, field.zone.size(), "states at k + q");
    field.shifted = std::move(states);
    field.by_velocity = false;
    field.q0 = q;
  }
  ~StatesAtShift() {
    field_.q0 = q0_;
    field_.by_velocity = by_velocity_;
    field_.shifted = std::move(shifted_);
    field_.shifted_zone = std::move(zone_);
  }
  StatesAtShift(const StatesAtShift&) = delete;
  StatesAtShift& operator=(const StatesAtShift&) = delete;

 private:
  MeanField& field_;
  Vec3 q0_;
  bool by_velocity_;
  std::optional<Wavefunctions> shifted_;
  std::optional<BrillouinZone> zone_;
};

/// Calculates ε⁻¹ at one q, which counts as a point of its own and not as q → 0.
DielectricMatrix matrix_at(MeanField& field, const Vec3& q, const EpsilonOptions& options,
                           const StepContext& context) {
  const StatesAtShift states(field, q, context.team.first(), context.progress);
  Checkpoint none;
  return std::move(dielectric_matrices(field, {q}, options,
                                       {context.coulomb, context.team, none, context.progress})[0]);
}

/// Unpacks ε⁻¹ at one q from a checkpoint.
DielectricMatrix kept_matrix(const Piece& kept, MeanField& field, const Vec3& q,
                             const EpsilonOptions& options, const CoulombInteraction& coulomb) {
  const Vec3 q0 = std::exchange(field.q0, q);
  DielectricMatrix m = DielectricInversion(field, options, coulomb).empty_matrix(q);
  field.q0 = q0;
  for (std::size_t g = 0; g < m.coulomb.size(); ++g) m.coulomb[g] = coulomb.plain(q, m.sphere.g[g]);
  unpack(kept, false, options.subspace.wanted() && options.frequencies_ry.size() > 1, m);
  return m;
}

}  // namespace

SlabSamples slab_samples(MeanField& field, const EpsilonOptions& options,
                         const StepContext& context) {
  if (!field.shifted_states)
    throw InvalidInput(
        "coulomb.subsampling needs the occupied states at k + q for q inside the mini-zone; give "
        "meanfield.vsc and meanfield.vkb, or remove it");
  SlabSamples samples;
  samples.heads.resize(options.frequencies_ry.size());
  const std::vector<Vec3> points = context.coulomb.sample_points(field.q0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string name = "sample/" + std::to_string(i);
    // All ranks take the matrix of the checkpoint or calculate it together.
    const Piece kept = kept_pieces(context.team.ranks(), context.checkpoint, {name})[0];
    const bool found = kept.data != nullptr;
    DielectricMatrix m = found ? kept_matrix(kept, field, points[i], options, context.coulomb)
                               : matrix_at(field, points[i], options, context);
    if (!found && context.checkpoint.keeps()) context.checkpoint.put(name, packed(m));
    for (std::size_t f = 0; f < m.n_frequencies(); ++f)
      samples.heads[f].push_back({points[i], head_of(m, f)});
    m.at_gamma = false;
    samples.matrices.push_back(std::move(m));
    context.progress.report("sub-sampling", static_cast<std::int64_t>(i) + 1,
                            static_cast<std::int64_t>(points.size()));
  }
  return samples;
}

}  // namespace quasi::gw

#include "workers/gw/solver/screening/coulomb/head_samples.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "workers/backend/error.hpp"

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

/// Calculates ε⁻¹_00 at one q, [n_frequencies].
std::vector<Cplx> heads_at(MeanField& field, const Vec3& q, const EpsilonOptions& options,
                           const StepContext& context) {
  const StatesAtShift states(field, q, context.team.first(), context.progress);
  Checkpoint none;
  const DielectricMatrix m = std::move(dielectric_matrices(
      field, {q}, options, {context.coulomb, context.team, none, context.progress})[0]);
  std::vector<Cplx> heads;
  for (std::size_t f = 0; f < m.n_frequencies(); ++f) heads.push_back(head_of(m, f));
  return heads;
}

}  // namespace

std::vector<std::vector<HeadSample>> head_samples(MeanField& field, const EpsilonOptions& options,
                                                  const StepContext& context) {
  if (!field.shifted_states)
    throw InvalidInput(
        "coulomb.subsampling needs the occupied states at k + q for q inside the mini-zone; give "
        "meanfield.vsc and meanfield.vkb, or remove it");
  std::vector<std::vector<HeadSample>> samples(options.frequencies_ry.size());
  const std::vector<Vec3> points = context.coulomb.sample_points(field.q0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string name = "head-sample/" + std::to_string(i);
    std::vector<Cplx> heads;
    if (const auto kept = context.checkpoint.find(name)) {
      const auto* values = reinterpret_cast<const Cplx*>(kept->data);
      heads.assign(values, values + kept->count / 2);
    } else {
      heads = heads_at(field, points[i], options, context);
      context.checkpoint.put(name, piece_of(std::make_shared<const std::vector<Cplx>>(heads)));
    }
    for (std::size_t f = 0; f < heads.size(); ++f) samples[f].push_back({points[i], heads[f]});
    context.progress.report("sub-sampling", static_cast<std::int64_t>(i) + 1,
                            static_cast<std::int64_t>(points.size()));
  }
  return samples;
}

}  // namespace quasi::gw

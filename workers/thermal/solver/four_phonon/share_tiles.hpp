#pragma once

#include <cstdint>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/progress.hpp"
#include "workers/backend/team/task_queue.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"
#include "workers/thermal/solver/four_phonon/problem_loading_4ph.hpp"
#include "workers/thermal/solver/four_phonon/team_4ph.hpp"
#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"

namespace quasi::thermal {

/// A sum over all tiles of total momenta, of which the first are already added.
struct TileSum4ph {
  ProblemLoading4ph& loading;
  const TilePlan4ph& plan;
  std::int64_t first_place;  ///< first place of the plan that is left
};

/// Computes the places of the plan from `first_place` on with all devices of a team, dearest tile
/// first.
/// @param expect   expect(kernels, first Q, last Q), called where it is known which tile follows
/// @param compute  compute(kernels, first Q, last Q) → values
/// @param add      add(place, values), in rank 0, in rising order of place, one call at a time
/// @throws what share_tasks throws
template <typename Expect, typename Compute, typename Add>
void on_every_tile(const TileSum4ph& sum, const Team4ph& team, const Progress& progress,
                   const Expect& expect, const Compute& compute, const Add& add) {
  const TilePlan4ph& plan = sum.plan;
  ProblemDigest order;
  order.add(plan.tile);
  team.ranks->require_same(order.value(), "the order of four-phonon tiles");
  share_tasks(
      {.ranks = *team.ranks,
       .n_own = team.kernels.size(),
       .first = sum.first_place,
       .end = plan.size(),
       .progress = progress},
      [&](std::size_t device, std::int64_t place) {
        expect(sum.loading.loaded(device), plan.first_total(place), plan.last_total(place));
      },
      [&](std::size_t device, std::int64_t place) {
        return compute(sum.loading.loaded(device), plan.first_total(place), plan.last_total(place));
      },
      add);
}

}  // namespace quasi::thermal

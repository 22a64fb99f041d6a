#pragma once

#include <cstdint>
#include <vector>

#include "workers/backend/checkpoint/checkpoint.hpp"
#include "workers/backend/progress.hpp"
#include "workers/backend/team/task_queue.hpp"
#include "workers/thermal/kernels/four_phonon/scattering_kernels_4ph.hpp"
#include "workers/thermal/solver/four_phonon/team_4ph.hpp"
#include "workers/thermal/solver/four_phonon/tile_plan_4ph.hpp"

namespace quasi::thermal {

/// Computes the tasks of [first, end) with the kernels of a team; see share_tasks.
/// @param expect   expect(kernels, device, task)
/// @param compute  compute(kernels, device, task) → values
/// @param add      add(task, values), in rank 0, in rising order of task, one call at a time
template <typename Expect, typename Compute, typename Add>
void share_tiles(const Team4ph& team, std::int64_t first, std::int64_t end,
                 const Progress& progress, const Expect& expect, const Compute& compute,
                 const Add& add) {
  share_tasks(
      {.ranks = *team.ranks,
       .n_own = team.kernels.size(),
       .first = first,
       .end = end,
       .progress = progress},
      [&](std::size_t device, std::int64_t task) { expect(*team.kernels[device], device, task); },
      [&](std::size_t device, std::int64_t task) {
        return compute(*team.kernels[device], device, task);
      },
      add);
}

/// The places of `plan` from `first_place` on, dearest tile first: expect(kernels, first Q, last Q)
/// where it is known what follows, compute(kernels, first Q, last Q) and add(place, values) as
/// share_tiles. Loads the problem on every device that gets work.
template <typename Expect, typename Compute, typename Add>
void on_every_tile(const Problem4ph& problem, const TilePlan4ph& plan, const Team4ph& team,
                   std::int64_t first_place, const Progress& progress, const Expect& expect,
                   const Compute& compute, const Add& add) {
  ProblemDigest order;
  order.add(plan.tile);
  team.ranks->require_same(order.value(), "the order of four-phonon tiles");
  std::vector<char> loaded(team.kernels.size(), 0);
  const auto load_once = [&](ScatteringKernels4ph& kernels, std::size_t device) {
    if (!loaded[device]) kernels.load(problem);
    loaded[device] = 1;
  };
  share_tiles(
      team, first_place, plan.size(), progress,
      [&](ScatteringKernels4ph& kernels, std::size_t device, std::int64_t place) {
        load_once(kernels, device);
        expect(kernels, plan.first_total(place), plan.last_total(place));
      },
      [&](ScatteringKernels4ph& kernels, std::size_t device, std::int64_t place) {
        load_once(kernels, device);
        return compute(kernels, plan.first_total(place), plan.last_total(place));
      },
      add);
}

}  // namespace quasi::thermal

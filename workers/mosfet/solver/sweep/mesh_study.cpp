#include "workers/mosfet/solver/sweep/mesh_study.hpp"

#include <string>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/backend/study/convergence_limit.hpp"
#include "workers/backend/study/study_runner.hpp"
#include "workers/mosfet/input/mesh_rule.hpp"

namespace quasi::mosfet {
namespace {

std::vector<std::pair<std::string, Deck>> halved(const Deck& deck, Progress& progress) {
  std::vector<std::pair<std::string, Deck>> decks;
  const auto add = [&](const char* axis, int size, int least, auto change) {
    if (size < least) {
      progress.log(std::string("mesh study without ") + axis + ": mesh." + axis + " = " +
                   std::to_string(size) + " is below " + std::to_string(least));
      return;
    }
    Deck half = deck;
    half.run.mesh_study = false;
    half.mesh.snap = false;
    change(&half.mesh);
    try {
      apply_mesh_rule(&half, std::string("mesh study, half of ") + axis);
      decks.emplace_back(axis, std::move(half));
    } catch (const InvalidInput& refused) {
      progress.log(std::string("mesh study without ") + axis + ": " + refused.what());
    }
  };
  add("nw", deck.mesh.nw, 16, [](Mesh* m) { m->nw /= 2; });
  add("nphi", deck.mesh.nphi, 16, [](Mesh* m) { m->nphi = m->nphi / 8 * 4; });
  add("nx", deck.mesh.nx, 17, [](Mesh* m) { m->nx = (m->nx - 1) / 2 + 1; });
  add("nz", deck.mesh.nz, 17, [](Mesh* m) { m->nz = (m->nz - 1) / 2 + 1; });
  return decks;
}

}  // namespace

void add_mesh_study(const Deck& deck, const SweepOptions& options, Progress& progress,
                    std::vector<PointResult>* points) {
  StudyRunner runner(options.checkpoint_directory, *options.ranks, progress);
  for (const auto& [axis, half] : halved(deck, progress)) {
    SweepOptions own{.devices = options.devices,
                     .checkpoint_directory = {},
                     .output_directory = {},
                     .ranks = options.ranks,
                     .memory_budget_bytes = options.memory_budget_bytes};
    own.checkpoint_directory = runner.begin("half of " + axis);
    const std::vector<PointResult> coarse = run_sweep(half, own, progress);
    for (std::size_t k = 0; k < points->size(); ++k) {
      auto& numbers = (*points)[k].numbers;
      const double current = coarse[k].numbers.at("current_a_per_m");
      const double error = second_order_error(numbers.at("current_a_per_m"), current);
      numbers["mesh_" + axis + "_current_a_per_m"] = current;
      numbers["mesh_" + axis + "_error_a_per_m"] = error;
      numbers["mesh_error_a_per_m"] += error;
    }
  }
}

}  // namespace quasi::mosfet

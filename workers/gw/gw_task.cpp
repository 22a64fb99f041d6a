#include "workers/gw/gw_task.hpp"

#include <cmath>
#include <cstdio>
#include <utility>

#include "workers/backend/device/host.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/input/text_files.hpp"
#include "workers/gw/model/memory_limits.hpp"
#include "workers/gw/output/mode_results.hpp"
#include "workers/gw/output/result_file.hpp"
#include "workers/gw/output/sigma_results.hpp"
#include "workers/gw/output/summary.hpp"
#include "workers/gw/output/vertex_files.hpp"
#include "workers/gw/output/wave_vector_results.hpp"
#include "workers/gw/solver/calculation/convergence_study.hpp"
#include "workers/gw/solver/calculation/cost/cost_estimate.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi {
namespace gw {
namespace {

/// Memory for work that is cut into blocks: 60 % of a GPU, and 2 GiB of a CPU. It does not depend
/// on the free memory, so that blocks and bits do not either.
std::int64_t default_budget_bytes(const Device& device) {
  return device.backend == Backend::kCuda ? device.memory_bytes / 10 * kGpuBudget_tenths
                                          : kCpuBudget_bytes;
}

/// Memory of a device for a job that has the device to itself. The driver and the libraries keep
/// some of a GPU.
std::int64_t memory_limit_bytes(const Device& device) {
  return device.backend == Backend::kCuda ? device.memory_bytes / 100 * kUsableGpu_percent
                                          : usable_memory_bytes();
}

/// Runs a job. A job whose input is refused never resumes, so that its file of states is removed.
Calculation calculate(const Deck& deck, const Workplace& place, Progress& progress) {
  try {
    return run_calculation(deck, place, progress);
  } catch (const InvalidInput&) {
    remove_state_files(place.checkpoint_directory);
    throw;
  }
}

class GwTask : public Task {
 public:
  nlohmann::json validate(const DeckSource& source, const Device& device) const override {
    const Deck deck = read_deck(source.path, source.settings);
    const auto kernels = make_gw_kernels(device);
    SilentProgress silent;
    DeviceTeam team(*kernels);
    const std::int64_t budget = memory_budget_bytes(deck.common, device, 0);
    const Plan plan =
        validated_plan(deck,
                       {.team = team,
                        .memory_budget_bytes = budget > 0 ? budget : default_budget_bytes(device),
                        .memory_limit_bytes = memory_limit_bytes(device),
                        .host_limit_bytes = usable_memory_bytes()},
                       silent);
    nlohmann::json planned = summary_of_plan(plan);
    planned["epsilon_seconds"] = plan.epsilon_seconds;
    planned["sigma_seconds"] = plan.sigma_seconds;
    if (deck.stop_after_epsilon)
      for (const char* key :
           {"sigma_seconds", "sigma_bands", "sigma_evaluations", "band_min", "band_max"})
        planned.erase(key);
    return {{"ok", true}, {"warnings", plan.notes}, {"plan", planned}};
  }

  nlohmann::json run(const RunOptions& options, Progress& progress) const override {
    const Deck deck = read_deck(options.deck.path, options.deck.settings);
    use_threads(deck.common);
    const Stopwatch starting;
    DeviceTeam team(options.devices, *options.ranks);
    const double devices_s = starting.seconds();
    const Device& device = options.devices.front();
    const std::int64_t budget =
        memory_budget_bytes(deck.common, device, options.memory_budget_bytes);
    const Workplace place{.team = team,
                          .memory_budget_bytes = budget > 0 ? budget : default_budget_bytes(device),
                          .memory_limit_bytes = budget > 0 ? budget : memory_limit_bytes(device),
                          .host_limit_bytes = usable_memory_bytes(),
                          .checkpoint_directory = options.ranks->leads()
                                                      ? options.checkpoint_directory
                                                      : std::filesystem::path{}};
    Calculation run = calculate(deck, place, progress);
    std::optional<ConvergenceStudy> study;
    if (deck.study.wanted) study = study_convergence(deck, place, run, progress);
    if (!options.ranks->leads()) return {};
    const Stopwatch writing;
    if (study) run.errors = error_table(run, &*study);
    if (deck.epsilon.write)
      write_epsilon(
          {options.output_directory / "eps0mat.h5", options.output_directory / "epsmat.h5"},
          run.screening_field ? *run.screening_field : run.field, run.epsilon, run.plan.epsilon,
          CoulombInteraction(run.field.crystal(), run.field.waves.k_grid, deck.coulomb));
    if (!deck.stop_after_epsilon) write_energies(options.output_directory, run);
    write_sigma_tables(options.output_directory, run);
    if (run.phonons) {
      write_mode_table(options.output_directory / "modes.dat", *run.phonons, *run.displacements,
                       run.field);
      write_vertices(options.output_directory, *run.phonons, *run.displacements, run.field);
    }
    if (!run.wave_vectors.empty() && run.wave_vectors.front().phonons)
      write_wave_vector_table(options.output_directory / "modes_at_q.dat", run.wave_vectors,
                              run.field);
    write_result(options.output_directory / "result.h5", run, study, options.inputs);
    nlohmann::json summary = summary_of(run, options.devices.front(), team.size());
    if (study) summary["convergence"] = summarise_study(run, *study);
    summary["seconds"]["devices"] = devices_s;
    summary["seconds"]["results"] = writing.seconds();
    const Stopwatch freeing;
    study.reset();
    { const Calculation ended = std::move(run); }
    summary["seconds"]["release"] = freeing.seconds();
    return summary;
  }

  std::vector<std::string> deck_file_patterns() const override {
    return {"epsilon.inp", "sigma.inp", "*.toml",  "WFN*",           "wfn*",       "RHO",
            "VXC",         "VSC",       "VKB",     "vxc.dat",        "vxc2.dat",   "rho*.h5",
            "vxc*.h5",     "vsc*.h5",   "vkb*.h5", "subweights.dat", "eps0mat.h5", "epsmat.h5",
            "vcoul*"};
  }

  std::vector<std::string> marks_of_folders() const override {
    return {"data-file-schema.xml", "VSC"};
  }

  int max_devices() const override { return kMaxDevices; }

  std::string table(const nlohmann::json& summary) const override { return table_of(summary); }
};

}  // namespace
}  // namespace gw

std::unique_ptr<Task> make_gw_task() { return std::make_unique<gw::GwTask>(); }

}  // namespace quasi

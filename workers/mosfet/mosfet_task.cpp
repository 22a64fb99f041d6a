#include "workers/mosfet/mosfet_task.hpp"

#include <algorithm>
#include <cmath>

#include "workers/backend/error.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/model/run_names.hpp"
#include "workers/mosfet/output/iv_csv.hpp"
#include "workers/mosfet/output/result_file.hpp"
#include "workers/mosfet/output/summary.hpp"
#include "workers/mosfet/solver/beam/beam_report.hpp"
#include "workers/mosfet/solver/equilibrium/drift_diffusion.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium_points.hpp"
#include "workers/mosfet/solver/sweep/mesh_study.hpp"
#include "workers/mosfet/solver/sweep/point_result.hpp"
#include "workers/mosfet/solver/sweep/seconds_estimate.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"
#include "workers/mosfet/solver/transport/mobility.hpp"

namespace quasi {
namespace mosfet {
namespace {

std::vector<PointResult> mobility_points(const Deck& deck, Progress& progress) {
  const Structure s = make_structure(deck);
  std::vector<PointResult> points;
  for (const BiasPoint& bias : deck.points) {
    progress.report("mobility", std::ssize(points), std::ssize(deck.points));
    points.push_back(mobility_point(deck, s, bias));
  }
  return points;
}

/// Holds the times of one attempt of a job, s.
struct SweepSeconds {
  double points = 0;       ///< all points on the mesh of the deck
  double mesh_errors = 0;  ///< all points on the other meshes of `--converge`
};

std::vector<PointResult> sweep_points(const Deck& deck, const RunOptions& options,
                                      Progress& progress, SweepSeconds* seconds) {
  const Stopwatch clock;
  IvCsv csv(options.output_directory);
  SweepOptions sweep;
  sweep.devices = options.devices;
  sweep.ranks = options.ranks;
  sweep.memory_budget_bytes =
      memory_budget_bytes(deck.common, options.devices.front(), options.memory_budget_bytes);
  sweep.checkpoint_directory = options.checkpoint_directory;
  sweep.output_directory = options.output_directory;
  // iv.csv always lists all finished points. The checkpoint keeps them for a restart.
  sweep.on_finished = [&](const std::map<int, PointResult>& points) { csv.add(points); };
  std::vector<PointResult> points = run_sweep(deck, sweep, progress);
  seconds->points = clock.seconds();
  if (!deck.run.mesh_study) return points;
  const auto points_of = [&](const Deck& other, const std::filesystem::path& directory) {
    SweepOptions own = sweep;
    own.checkpoint_directory = directory;
    own.output_directory.clear();
    own.on_finished = {};
    return run_sweep(other, own, progress);
  };
  StudyRunner runner(options.checkpoint_directory, *options.ranks, progress);
  add_mesh_study(deck, points_of, runner, progress, &points);
  seconds->mesh_errors = clock.seconds() - seconds->points;
  return points;
}

std::vector<PointResult> solve_points(const Deck& deck, const RunOptions& options,
                                      Progress& progress, SweepSeconds* seconds) {
  const bool sweeps =
      has_currents(deck.run) && deck.run.transport != TransportModel::kDriftDiffusion;
  if (options.devices.size() > 1 && !sweeps)
    throw InvalidInput(std::string("run.mode '") + mode_name(deck.run.mode) +
                       "' with run.transport '" + transport_name(deck.run.transport) +
                       "' runs on one device, " + std::to_string(options.devices.size()) +
                       " are named; name one with --device");
  if (options.ranks->size() > 1 && !sweeps)
    throw InvalidInput(std::string("run.mode '") + mode_name(deck.run.mode) +
                       "' with run.transport '" + transport_name(deck.run.transport) +
                       "' runs in one process, " + std::to_string(options.ranks->size()) +
                       " ranks were started; start quasi-engine without mpirun or srun -n");
  if (deck.run.mode == RunMode::kEquilibrium) return equilibrium_points(deck, progress);
  if (deck.run.mode == RunMode::kMobility) return mobility_points(deck, progress);
  if (deck.run.transport == TransportModel::kDriftDiffusion)
    return drift_diffusion_points(deck, progress);
  return sweep_points(deck, options, progress, seconds);
}

/// Returns true for runs that move a pdf. The others solve Schrödinger and Poisson alone.
bool has_pdf(const Deck& deck) {
  return has_currents(deck.run) && deck.run.transport != TransportModel::kDriftDiffusion;
}

/// Returns the number of cells of phase space of a run, or zero for runs without a pdf.
double phase_space_points(const Deck& deck, const Structure& s) {
  if (!has_pdf(deck)) return 0.0;
  if (deck.run.scheme == StreamingScheme::kBeam) return beam_cells(deck, s);
  const double columns = static_cast<double>(s.n_valleys()) * s.subbands * s.nx;
  const double angles =
      deck.mesh.range == AngleRange::kHalf ? deck.mesh.nphi / 2 + 1 : deck.mesh.nphi;
  return columns * deck.mesh.nw * angles;
}

/// Returns the memory that the run will hold, in bytes. @param points  number of cells of phase
/// space
std::int64_t planned_bytes(const Deck& deck, const Structure& s, double points,
                           const Device& device) {
  const double nodes = static_cast<double>(s.nx) * s.nz;
  const double poisson = 3.0 * 8.0 * nodes * s.nz;  // responses, blocks and inverses of the columns
  if (!has_pdf(deck)) return static_cast<std::int64_t>(poisson);
  if (deck.run.scheme == StreamingScheme::kBeam)
    return static_cast<std::int64_t>(beam_point_bytes(deck, s) + poisson);
  if (device.backend == Backend::kCpu)
    return static_cast<std::int64_t>(bytes_of_point(points, nodes, device.backend) + poisson);
  return static_cast<std::int64_t>(bytes_of_point(points, nodes, device.backend));
}

/// Returns an error that names the memory of a run, as validate() states it, and the free memory.
OutOfMemory memory_refusal(std::int64_t planned, const Device& device) {
  return OutOfMemory("the run needs " + std::to_string(planned >> 20) +
                     " MiB (memory_bytes of validate), and " +
                     std::to_string(free_memory_bytes(device) >> 20) + " MiB are free on " +
                     device.name() + "; make the table mesh smaller or use another machine");
}

class MosfetTask : public Task {
 public:
  nlohmann::json validate(const DeckSource& source, const Device& device) const override {
    const Deck deck = read_deck(source.path, source.settings);
    use_threads(deck.common);
    const Structure s = make_structure(deck);
    const double points = phase_space_points(deck, s);
    const std::int64_t planned = planned_bytes(deck, s, points, device);
    nlohmann::json plan{{"mode", mode_name(deck.run.mode)},
                        {"bias_points", deck.points.size()},
                        {"phase_space_points", static_cast<std::int64_t>(points)},
                        {"wmax_ev", deck.mesh.wmax_ev},
                        {"memory_bytes", planned}};
    std::vector<std::string> warnings = deck.notes;
    try {
      if (planned < free_memory_bytes(device))
        plan["seconds_estimate"] = estimated_seconds(deck, s, device);
    } catch (const NotConverged& failure) {
      warnings.push_back(std::string("the time is not estimated: ") + failure.what());
    }
    return {{"ok", true}, {"warnings", warnings}, {"plan", plan}};
  }

  nlohmann::json run(const RunOptions& options, Progress& progress) const override {
    const Deck deck = read_deck(options.deck.path, options.deck.settings);
    for (const std::string& note : deck.notes) progress.log(note);
    use_threads(deck.common);
    SweepSeconds seconds;
    const std::vector<PointResult> points = solve_in_memory(deck, options, progress, &seconds);
    if (!options.ranks->leads()) return {};
    write_results(deck, options.output_directory, points, options.inputs);
    nlohmann::json summary = summary_of(deck, points);
    if (seconds.points > 0.0) summary["seconds"]["points"] = seconds.points;
    if (seconds.mesh_errors > 0.0) summary["seconds"]["mesh_errors"] = seconds.mesh_errors;
    return summary;
  }

  std::vector<std::string> deck_file_patterns() const override {
    return {"*.toml", "*.csv", "*.dat"};
  }

  /// Chains of bias points are divided among the devices.
  int max_devices() const override { return kMaxDevices; }

  std::string table(const nlohmann::json& summary) const override { return summary_table(summary); }

 private:
  /// Calls solve_points(). @throws OutOfMemory with the memory of the run
  static std::vector<PointResult> solve_in_memory(const Deck& deck, const RunOptions& options,
                                                  Progress& progress, SweepSeconds* seconds) {
    const Device& device = options.devices.front();
    const Structure s = make_structure(deck);
    const std::int64_t planned = planned_bytes(deck, s, phase_space_points(deck, s), device);
    // A host promises more memory than it has, and would then end the process.
    if (device.backend == Backend::kCpu && planned > free_memory_bytes(device))
      throw memory_refusal(planned, device);
    try {
      return solve_points(deck, options, progress, seconds);
    } catch (const std::bad_alloc&) {
      throw memory_refusal(planned, device);
    }
  }
};

}  // namespace
}  // namespace mosfet

std::unique_ptr<Task> make_mosfet_task() { return std::make_unique<mosfet::MosfetTask>(); }

}  // namespace quasi

// Times three-phonon scattering of a deck. Prints one JSON line with the time of every step, the
// counts, and the work from which the floor is computed.
//
//   thermal_3ph_bench DECK DEVICE REPEAT [strategy=NAME] [key=value …]
//
// strategy is factorised, as in a job, or a published one: list-host, list-device, mode-by-mode or
// test-and-sum.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/published/published_sums_3ph.hpp"
#include "workers/backend/error.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace {

using namespace quasi;
using namespace quasi::thermal;

/// Holds the settings of the command line.
struct Request {
  std::string deck;
  Device device;
  int repeat = 1;  ///< calls of rates() after the first
  std::string strategy = "factorised";
  std::vector<Setting> settings;
};

std::unique_ptr<ThreePhononSums> make_sums(const Request& request) {
  if (request.strategy == "factorised") return make_three_phonon_kernels(request.device);
  static const std::map<std::string, PublishedStrategy> published{
      {"list-host", PublishedStrategy::kListHost},
      {"list-device", PublishedStrategy::kListDevice},
      {"mode-by-mode", PublishedStrategy::kModeByMode},
      {"test-and-sum", PublishedStrategy::kTestAndSum}};
  const auto found = published.find(request.strategy);
  if (found == published.end())
    throw InvalidInput(
        "strategy must be factorised, list-host, list-device, mode-by-mode or "
        "test-and-sum, got '" +
        request.strategy + "'");
  return make_published_sums_3ph(request.device, found->second);
}

/// Seconds of the calls of rates() after the first.
struct RepeatedRates {
  double median = 0.0;
  double spread = 0.0;
  double cpu = 1e300;  ///< least processor seconds of all threads: comparable on a loaded machine
  ThreePhononRates last;
};

RepeatedRates repeat_rates(ThreePhononSums& sums, const Control& control, int repeat) {
  RepeatedRates result;
  SilentProgress silent;
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    const Stopwatch clock;
    const std::clock_t ticks = std::clock();
    result.last = sums.rates(control.temperatures_k, control.converge, silent);
    seconds.push_back(clock.seconds());
    result.cpu = std::min(result.cpu, static_cast<double>(std::clock() - ticks) / CLOCKS_PER_SEC);
  }
  std::sort(seconds.begin(), seconds.end());
  result.median = seconds[seconds.size() / 2];
  result.spread = seconds.back() - seconds.front();
  return result;
}

/// The work of the factorised sums, from which the floor is computed.
struct Work {
  double tests;          ///< candidates
  double fourier_flops;  ///< Fourier sums of the force constants
  double product_flops;  ///< products with the eigenvectors of λ' and λ''
};

Work work_of(const ThreePhononProblem& problem, double processes) {
  const Fc3Transform transform = make_fc3_transform(problem.fc3, problem.mass_amu, problem.mesh);
  const double n_q = static_cast<double>(problem.mesh.size());
  const double nb = problem.n_branches();
  const double points = static_cast<double>(problem.rows.size());
  const double x = nb * nb;
  const double fourier =
      points * nb * x * 8.0 *
      (transform.box_size() * static_cast<double>(problem.mesh.n[0]) +
       1.0 * transform.extent[2] * transform.extent[1] * problem.mesh.n[0] * problem.mesh.n[1] +
       n_q * transform.extent[2]);
  return {points * nb * n_q * x * 2.0, fourier, processes * 8.0 * (x + nb)};
}

void bench(const Request& request) {
  const Device& device = request.device;
  use_device(device);
  SilentProgress silent;
  const Stopwatch clock;
  const Deck deck = read_deck(request.deck, request.settings);
  const double t1 = clock.seconds();
  ConductivityRun run = start_run(deck, deck.control.harmonic_options(), silent);
  const double t2 = clock.seconds();
  const auto kernels = make_sums(request);
  ThreePhononProblem problem =
      make_three_phonon_problem(deck.crystal, deck.third_order, deck.symmetry, run.modes,
                                deck.control.three_phonon_options());
  const double t3 = clock.seconds();
  const Transport transport{deck.crystal, deck.symmetry, run.modes,
                            deck.control.transport_options()};
  add_scattering(transport, deck.control.rate_options(), *kernels, problem, run, {silent});
  const double first = run.seconds["scattering_3ph"];
  const RepeatedRates repeated = repeat_rates(*kernels, deck.control, request.repeat);
  const double t4 = clock.seconds();
  add_conductivity({transport, deck.third_order, *kernels, FurtherScattering{}}, run, silent);
  const double t5 = clock.seconds();

  const double processes =
      static_cast<double>(run.three_phonon.n_absorption + run.three_phonon.n_emission);
  const Work work = work_of(problem, processes);
  const TemperatureResult& r = run.by_temperature.front();
  std::printf(
      "{\"case\":\"thermal_3ph\",\"mesh\":[%d,%d,%d],\"device\":\"%s\",\"model\":\"%s\",\"points\":"
      "%.0f,\"processes\":%.0f,"
      "\"tests\":%.4g,\"fourier_flops\":%.4g,\"product_flops\":%.4g,\"seconds_read\":%.4f,"
      "\"seconds_harmonic\":%.4f,"
      "\"seconds_kernels\":%.4f,\"seconds_load\":%.4f,\"seconds_scattering_first\":%.5f,\"seconds_"
      "scattering_median\":%.5f,"
      "\"spread\":%.5f,\"cpu_seconds_scattering\":%.4f,\"seconds_enumerate\":%.5f,\"seconds_"
      "evaluate\":%.5f,\"seconds_conductivity\":%.4f,"
      "\"seconds_iterate\":%.4f,\"iterations\":%d,\"residual\":%.2g,\"kappa_rta_w_per_mk\":%.9g,"
      "\"kappa_w_per_mk\":%.9g,"
      "\"seconds_total\":%.3f}\n",
      problem.mesh.n[0], problem.mesh.n[1], problem.mesh.n[2], device.name().c_str(),
      device.model.c_str(), static_cast<double>(problem.rows.size()), processes, work.tests,
      work.fourier_flops, work.product_flops, t1, t2 - t1, t3 - t2, run.seconds["load_3ph"], first,
      repeated.median, repeated.spread, repeated.cpu, repeated.last.seconds_enumerate,
      repeated.last.seconds_evaluate, t5 - t4, run.seconds["iterate"], r.solution.iterations,
      r.solution.residual, r.kappa_rta_w_per_mk[0][0], r.kappa_w_per_mk[0][0],
      t5 - (t4 - t3) + first + run.seconds["load_3ph"] + run.seconds["isotopes"]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr,
                 "usage: thermal_3ph_bench DECK DEVICE REPEAT [strategy=NAME] [key=value …]\n");
    return 2;
  }
  try {
    Request request{.deck = argv[1],
                    .device = quasi::find_device(argv[2]),
                    .repeat = std::max(1, std::atoi(argv[3]))};
    for (int i = 4; i < argc; ++i) {
      const quasi::Setting setting = quasi::parse_setting(argv[i]);
      if (setting.key == "strategy")
        request.strategy = setting.value;
      else
        request.settings.push_back(setting);
    }
    bench(request);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}

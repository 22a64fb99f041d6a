// Three-phonon scattering of a deck: one JSON line with the time of every step, the counts, and the
// work that the floor is computed from.
//
//   thermal_3ph_bench DECK DEVICE REPEAT [key=value …]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck/deck.hpp"
#include "workers/thermal/kernels/three_phonon/fc3_transform.hpp"
#include "workers/thermal/solver/three_phonon/scattering.hpp"
#include "workers/thermal/solver/transport/conductivity_run.hpp"

namespace {

using namespace quasi;
using namespace quasi::thermal;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void bench(const std::string& path, const Device& device, int repeat,
           const std::vector<Setting>& settings) {
  use_device(device);
  SilentProgress silent;
  const double t0 = now();
  const Deck deck = read_deck(path, settings);
  const double t1 = now();
  ConductivityRun run = start_run(deck, deck.control.harmonic_options(), silent);
  const double t2 = now();
  const auto kernels = make_three_phonon_kernels(device);
  ThreePhononProblem problem =
      make_three_phonon_problem(deck.crystal, deck.third_order, deck.symmetry, run.modes,
                                deck.control.three_phonon_options());
  const double t3 = now();
  const Transport transport{deck.crystal, deck.symmetry, run.modes,
                            deck.control.transport_options()};
  add_scattering(transport, deck.control.rate_options(), *kernels, problem, run, {silent});
  const double first = run.seconds["scattering_3ph"];
  std::vector<double> again;
  ThreePhononRates rates;
  double cpu = 1e300;  // processor seconds of all threads: what a loaded machine leaves comparable
  for (int i = 0; i < repeat; ++i) {
    const double start = now();
    const std::clock_t ticks = std::clock();
    rates = kernels->rates(deck.control.temperatures_k, deck.control.converge, silent);
    again.push_back(now() - start);
    cpu = std::min(cpu, static_cast<double>(std::clock() - ticks) / CLOCKS_PER_SEC);
  }
  std::sort(again.begin(), again.end());
  const double t4 = now();
  add_conductivity({transport, deck.third_order, *kernels, FurtherScattering{}}, run, silent);
  const double t5 = now();

  const Fc3Transform transform = make_fc3_transform(problem.fc3, problem.mass_amu, problem.mesh);
  const double n_q = static_cast<double>(problem.mesh.size());
  const double nb = problem.n_branches();
  const double points = static_cast<double>(problem.rows.size());
  const double x = nb * nb;
  const double tests = points * nb * n_q * x * 2.0;
  const double fourier =
      points * nb * x * 8.0 *
      (transform.box_size() * static_cast<double>(problem.mesh.n[0]) +
       1.0 * transform.extent[2] * transform.extent[1] * problem.mesh.n[0] * problem.mesh.n[1] +
       n_q * transform.extent[2]);
  const double processes =
      static_cast<double>(run.three_phonon.n_absorption + run.three_phonon.n_emission);
  const double products = processes * 8.0 * (x + nb);
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
      device.model.c_str(), points, processes, tests, fourier, products, t1 - t0, t2 - t1, t3 - t2,
      run.seconds["load_3ph"], first, again[again.size() / 2], again.back() - again.front(), cpu,
      rates.seconds_enumerate, rates.seconds_evaluate, t5 - t4, run.seconds["iterate"],
      r.solution.iterations, r.solution.residual, r.kappa_rta_w_per_mk[0][0],
      r.kappa_w_per_mk[0][0],
      t5 - t0 - (t4 - t3) + first + run.seconds["load_3ph"] + run.seconds["isotopes"]);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: thermal_3ph_bench DECK DEVICE REPEAT [key=value …]\n");
    return 2;
  }
  try {
    std::vector<quasi::Setting> settings;
    for (int i = 4; i < argc; ++i) settings.push_back(quasi::parse_setting(argv[i]));
    bench(argv[1], quasi::find_device(argv[2]), std::max(1, std::atoi(argv[3])), settings);
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}

// Times admittances Y(ω) of one steady point of the beam scheme. One JSON line a frequency has all
// entries of Y, so that two versions of the program can be compared.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "workers/backend/device/device.hpp"
#include "workers/backend/team/blas_threads.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void run(const std::vector<std::string>& settings, const std::vector<double>& frequencies_hz) {
  std::vector<Setting> all{{"run.scheme", "beam"}, {"parameters", "paper"}};
  for (const std::string& setting : settings) all.push_back(parse_setting(setting));
  const Deck deck = parse_deck("", all, "bench", ".");
  const Structure structure = make_structure(deck);
  const TransportProblem problem = make_transport_problem(deck, structure);
  const ElasticTables elastic(deck, structure);
  const Equilibrium source = solve_contact(deck, structure, 0),
                    drain = solve_contact(deck, structure, structure.nx - 1);
  const BeamDevice device{.model = deck,
                          .structure = structure,
                          .problem = problem,
                          .elastic = elastic,
                          .contacts = {source, drain},
                          .mesh = {.dh_ev = deck.mesh.dh_ev,
                                   .n_kappa = deck.mesh.n_kappa,
                                   .window_ev = deck.mesh.window_ev},
                          .tolerance_v = 1e-9};
  SilentProgress silent;
  const std::unique_ptr<BeamKernels> kernels = make_beam_kernels(find_device("cpu"));
  const BiasPoint bias = deck.points.front();
  auto start = Clock::now();
  const BeamSteadyState state = solve_beam_point(device, bias, *kernels, silent);
  const double steady_s = seconds_since(start);
  start = Clock::now();
  const BeamSmallSignal response(device, bias, state);
  std::cout << nlohmann::json{{"case", "linearise"},
                              {"steady_seconds", steady_s},
                              {"seconds", seconds_since(start)},
                              {"n_h", state.grid.n_h}}
                   .dump()
            << std::endl;
  for (const double frequency_hz : frequencies_hz) {
    start = Clock::now();
    const Admittance found = response.at(frequency_hz);
    nlohmann::json line{{"case", "frequency"},
                        {"frequency_hz", frequency_hz},
                        {"seconds", seconds_since(start)},
                        {"field_products", found.field_products}};
    for (const auto& row : found.y)
      for (const std::complex<double>& value : row) {
        line["real"].push_back(value.real());
        line["imaginary"].push_back(value.imag());
      }
    std::cout << line.dump() << std::endl;
  }
}

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  std::vector<std::string> settings;
  std::vector<double> frequencies_hz{1e12};
  CLI::App app{"times admittances of one point of the kind mosfet on the host"};
  app.add_option("--set", settings, "key=value of the deck, e.g. bias.vgs=[0.4]");
  app.add_option("--hz", frequencies_hz, "frequencies, Hz");
  CLI11_PARSE(app, argc, argv);
  quasi::use_one_blas_thread();
  try {
    quasi::mosfet::run(settings, frequencies_hz);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
  return 0;
}

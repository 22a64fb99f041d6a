// Times admittances Y(ω) of one steady point of the beam scheme on a device. One JSON line a
// frequency has all entries of Y, so that two versions of the program, or two devices, can be
// compared. With --count the program computes frequencies from 1 GHz to 10 THz in two ways: as a
// deck does, by solutions at a few of them, and by a solution at each. With --noise the program
// also times the spectra of the current noise, at the same frequencies.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "workers/backend/device/device.hpp"
#include "workers/backend/team/blas_threads.hpp"
#include "workers/mosfet/input/deck.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/beam/small_signal/rational_sweep.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal_noise.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

using Clock = std::chrono::steady_clock;
using Complex = std::complex<double>;

struct Options {
  std::vector<std::string> settings;
  std::vector<double> frequencies_hz{1e12};
  std::string device = "cpu";
  int count = 0;
  bool differences = false, noise = false;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void print(const nlohmann::json& line) { std::cout << line.dump() << std::endl; }

std::vector<Complex> entries(const Admittance& found) {
  std::vector<Complex> all;
  for (const auto& row : found.y) all.insert(all.end(), row.begin(), row.end());
  return all;
}

void run_each(const BeamSmallSignal& response, const std::vector<double>& frequencies_hz) {
  for (const double frequency_hz : frequencies_hz) {
    const auto start = Clock::now();
    const Admittance found = response.at(frequency_hz);
    nlohmann::json line{{"case", "frequency"},
                        {"frequency_hz", frequency_hz},
                        {"seconds", seconds_since(start)},
                        {"field_products", found.field_products}};
    for (const Complex& value : entries(found)) {
      line["real"].push_back(value.real());
      line["imaginary"].push_back(value.imag());
    }
    print(line);
  }
}

// Compares both ways to the same frequencies, equally spaced on a logarithmic axis.
void run_many(const BeamSmallSignal& response, int count) {
  std::vector<double> frequencies_hz;
  for (int n = 0; n < count; ++n)
    frequencies_hz.push_back(1e9 * std::pow(10.0, 4.0 * n / std::max(count - 1, 1)));
  auto start = Clock::now();
  const SweptValues swept = rational_sweep(
      frequencies_hz, [&](double hz) { return entries(response.at(hz)); }, 1e-6);
  print({{"case", "interpolated"},
         {"frequencies", count},
         {"solutions", swept.solutions},
         {"seconds", seconds_since(start)}});
  start = Clock::now();
  int products = 0;
  double deviation = 0.0;
  for (std::size_t n = 0; n < frequencies_hz.size(); ++n) {
    const Admittance found = response.at(frequencies_hz[n]);
    products += found.field_products;
    const std::vector<Complex> exact = entries(found);
    double largest = 0.0, difference = 0.0;
    for (std::size_t k = 0; k < exact.size(); ++k) {
      largest = std::max(largest, std::abs(exact[k]));
      difference = std::max(difference, std::abs(exact[k] - swept.values[n][k]));
    }
    deviation = std::max(deviation, difference / largest);
  }
  print({{"case", "each solved"},
         {"frequencies", count},
         {"field_products", products},
         {"seconds", seconds_since(start)},
         {"largest_error_of_interpolation", deviation}});
}

void run_admittances(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state,
                     const Device& processor, double steady_s, const Options& options) {
  const auto start = Clock::now();
  const BeamSmallSignal response(device, bias, state,
                                 {.device = processor, .takes_differences = options.differences});
  print({{"case", "linearise"},
         {"device", processor.model},
         {"steady_seconds", steady_s},
         {"seconds", seconds_since(start)},
         {"n_h", state.grid.n_h}});
  run_each(response, options.frequencies_hz);
  if (options.count > 0) run_many(response, options.count);
}

// Times the spectra of the noise. With `differences` the host sums the transposed derivatives.
void run_noise(const BeamDevice& device, const BiasPoint& bias, const BeamSteadyState& state,
               const Device& processor, const Options& options) {
  auto start = Clock::now();
  const BeamFieldNoise noise(device, bias, state,
                             {.device = processor, .sums_on_host = options.differences});
  print({{"case", "linearise for noise"},
         {"device", processor.model},
         {"seconds", seconds_since(start)},
         {"current_a_per_m", noise.current_a_per_m()}});
  for (const double frequency_hz : options.frequencies_hz) {
    start = Clock::now();
    const NoiseSpectrum found = noise.at(frequency_hz);
    nlohmann::json line{
        {"case", "noise"}, {"frequency_hz", frequency_hz}, {"seconds", seconds_since(start)}};
    for (const auto& row : found.s)
      for (const Complex& value : row) {
        line["real"].push_back(value.real());
        line["imaginary"].push_back(value.imag());
      }
    print(line);
  }
}

void run(const Options& options) {
  std::vector<Setting> all{{"run.scheme", "beam"}, {"parameters", "paper"}};
  for (const std::string& setting : options.settings) all.push_back(parse_setting(setting));
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
  const Device processor = find_device(options.device);
  use_device(processor);
  const std::unique_ptr<BeamKernels> kernels = make_beam_kernels(processor);
  const BiasPoint bias = deck.points.front();
  const auto start = Clock::now();
  const BeamSteadyState state = solve_beam_point(device, bias, *kernels, silent);
  const double steady_s = seconds_since(start);
  run_admittances(device, bias, state, processor, steady_s, options);
  if (options.noise) run_noise(device, bias, state, processor, options);
}

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  quasi::mosfet::Options options;
  CLI::App app{"times admittances of one point of the kind mosfet"};
  app.add_option("--set", options.settings, "key=value of the deck, e.g. bias.vgs=[0.4]");
  app.add_option("--hz", options.frequencies_hz, "frequencies, Hz");
  app.add_option("--device", options.device, "cpu or cuda:N");
  app.add_option("--count", options.count, "number of frequencies from 1 GHz to 10 THz");
  app.add_flag("--differences", options.differences,
               "takes differences and sums on the host instead of tables");
  app.add_flag("--noise", options.noise, "times the spectra of the current noise, too");
  CLI11_PARSE(app, argc, argv);
  quasi::use_one_blas_thread();
  try {
    quasi::mosfet::run(options);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
  return 0;
}

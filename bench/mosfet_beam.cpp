// Times steady points of the kind mosfet with the beam scheme. One JSON line a bias point.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "workers/mosfet/solver/sweep/sweep.hpp"

#include "workers/backend/team/blas_threads.hpp"

namespace quasi::mosfet {
namespace {

using Clock = std::chrono::steady_clock;

/// Prints the line that ends a point, which names the times of its parts.
class PrintedLog : public SilentProgress {
 public:
  void log(std::string_view line) override { std::cerr << std::string(line) + "\n"; }
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

nlohmann::json line_of(const Deck& deck, const Device& device) {
  return {{"device", device.name()},
          {"mesh", {deck.mesh.subbands, deck.mesh.nx, deck.mesh.nz, deck.mesh.n_kappa}},
          {"dh_ev", deck.mesh.dh_ev}};
}

void run(const std::vector<std::string>& settings, const std::string& device_name, bool together) {
  std::vector<Setting> all{{"run.scheme", "beam"}, {"parameters", "paper"}};
  for (const std::string& setting : settings) all.push_back(parse_setting(setting));
  Deck deck = parse_deck("", all, "bench", ".");
  const std::vector<BiasPoint> points = deck.points;
  PrintedLog progress;
  const Device device = find_device(device_name);
  if (together) {
    const auto start = Clock::now();
    const std::size_t count = run_sweep(deck, {.devices = {device}}, progress).size();
    nlohmann::json line = line_of(deck, device);
    line["case"] = "beam map";
    line["points"] = count;
    line["seconds"] = seconds_since(start);
    std::cout << line.dump() << std::endl;
    return;
  }
  for (const BiasPoint& bias : points) {
    deck.points = {bias};
    const auto start = Clock::now();
    const PointResult point = run_sweep(deck, {.devices = {device}}, progress)[0];
    nlohmann::json line = line_of(deck, device);
    line["case"] = "beam point";
    line["seconds"] = seconds_since(start);
    line["vgs_v"] = bias.vgs_v;
    line["vds_v"] = bias.vds_v;
    for (const auto& [name, value] : point.numbers) line[name] = value;
    std::cout << line.dump() << std::endl;
  }
}

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  std::vector<std::string> settings;
  std::string device = "auto";
  CLI::App app{"times steady points of the kind mosfet with the beam scheme"};
  app.add_option("--set", settings, "key=value of the deck, e.g. bias.vgs=[0.0,0.6]");
  app.add_option("--device", device, "cpu or cuda:N");
  bool together = false;
  app.add_flag("--together", together, "solve all points at once and print one line");
  CLI11_PARSE(app, argc, argv);
  quasi::use_one_blas_thread();
  try {
    quasi::mosfet::run(settings, device, together);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
  return 0;
}

// Times steady points of the kind mosfet with the beam scheme. One JSON line a bias point.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "workers/mosfet/solver/beam/beam_point.hpp"

namespace quasi::mosfet {
namespace {

void run(const std::vector<std::string>& settings) {
  using Clock = std::chrono::steady_clock;
  std::vector<Setting> all{{"run.scheme", "beam"}};
  for (const std::string& setting : settings) all.push_back(parse_setting(setting));
  Deck deck = parse_deck("", all, "bench", ".");
  const std::vector<BiasPoint> points = deck.points;
  SilentProgress silent;
  for (const BiasPoint& bias : points) {
    deck.points = {bias};
    const auto start = Clock::now();
    const PointResult point = beam_points(deck, silent)[0];
    nlohmann::json line{
        {"case", "beam point"},
        {"mesh", {deck.mesh.subbands, deck.mesh.nx, deck.mesh.nz, deck.mesh.n_kappa}},
        {"dh_ev", deck.mesh.dh_ev},
        {"vgs_v", bias.vgs_v},
        {"vds_v", bias.vds_v},
        {"seconds", std::chrono::duration<double>(Clock::now() - start).count()}};
    for (const auto& [name, value] : point.numbers) line[name] = value;
    std::cout << line.dump() << std::endl;
  }
}

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  std::vector<std::string> settings;
  CLI::App app{"times steady points of the kind mosfet with the beam scheme"};
  app.add_option("--set", settings, "key=value of the deck, e.g. bias.vgs=[0.0,0.6]");
  CLI11_PARSE(app, argc, argv);
  try {
    quasi::mosfet::run(settings);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
  return 0;
}

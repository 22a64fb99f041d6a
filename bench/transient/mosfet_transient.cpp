// Runs one pulse of the kind mosfet and prints its time and the charges that passed its terminals,
// as one JSON line.

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "workers/backend/team/blas_threads.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"

namespace quasi::mosfet {
namespace {

using Clock = std::chrono::steady_clock;

/// Wall time and processor time.
struct Moment {
  Clock::time_point wall = Clock::now();
  std::clock_t processor = std::clock();
};

/// Notes when the run first names a time within the transient, which ends its start.
class TimedStart : public SilentProgress {
 public:
  void metric(std::string_view name, double) override {
    if (name == "time_fs" && !began_) began_ = Moment{};
  }
  std::optional<Moment> began() const { return began_; }

 private:
  std::optional<Moment> began_;
};

// Adds the wall and processor seconds between two moments.
void add_seconds(const std::string& name, const Moment& from, const Moment& to,
                 nlohmann::json* line) {
  (*line)[name + "seconds"] = std::chrono::duration<double>(to.wall - from.wall).count();
  (*line)[name + "cpu_seconds"] =
      static_cast<double>(to.processor - from.processor) / CLOCKS_PER_SEC;
}

void run(const std::vector<std::string>& settings, const std::string& device_name) {
  std::vector<Setting> all{{"run.mode", "transient"}};
  for (const std::string& setting : settings) all.push_back(parse_setting(setting));
  const Deck deck = parse_deck("", all, "bench", ".");
  const Device device = find_device(device_name);
  TimedStart progress;
  const Moment start;
  const PointResult point = run_sweep(deck, {.devices = {device}}, progress)[0];
  const Moment end;
  nlohmann::json line{{"device", device.name()}, {"settings", settings}};
  add_seconds("", start, end, &line);
  add_seconds("start_", start, progress.began().value_or(end), &line);
  line["steps"] = point.numbers.at("steps");
  line["time_fs"] = point.numbers.at("time_fs");
  line["terminals"] = point.arrays.at("terminals").values;
  std::cout << line.dump() << std::endl;
}

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  std::vector<std::string> settings;
  std::string device = "cpu";
  CLI::App app{"times one pulse of the kind mosfet"};
  app.add_option("--set", settings, "key=value of the deck, e.g. run.scheme=beam");
  app.add_option("--device", device, "cpu or cuda:N");
  CLI11_PARSE(app, argc, argv);
  quasi::use_one_blas_thread();
  try {
    quasi::mosfet::run(settings, device);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "error: %s\n", failure.what());
    return 1;
  }
  return 0;
}

#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "workers/backend/device/device.hpp"
#include "workers/mosfet/input/deck.hpp"

namespace quasi::test {

/// Returns the default device on nx × nz nodes with the parameters of the paper, the scheme `weno`
/// and further settings.
inline mosfet::Deck default_deck(int nx, int nz, const std::vector<Setting>& settings = {}) {
  return mosfet::parse_deck("parameters = \"paper\"\n[mesh]\nnx = " + std::to_string(nx) +
                                "\nnz = " + std::to_string(nz) + "\n[run]\nscheme = \"weno\"",
                            settings, "test deck", ".");
}

/// A coarse device whose sweeps take seconds, with further settings.
inline mosfet::Deck small_deck(const std::vector<Setting>& settings) {
  std::vector<Setting> all{{"mesh.subbands", "1"},
                           {"mesh.nw", "12"},
                           {"mesh.nphi", "8"},
                           {"mesh.wmax_ev", "0.9"},
                           {"run.refresh_steps", "20"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return default_deck(33, 17, all);
}

/// The CPU and, if the machine has one, its last GPU.
inline std::vector<Device> one_device_of_each_kind() {
  const std::vector<Device> all = list_devices();
  std::vector<Device> found{all.front()};
  if (all.size() > 1) found.push_back(all.back());
  return found;
}

/// Rows of a CSV file of numbers without its header. An empty or non-numeric field becomes NaN.
inline std::vector<std::vector<double>> read_csv(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::vector<double>> rows;
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string field;
    rows.emplace_back();
    while (std::getline(fields, field, ',')) {
      char* end = nullptr;
      const double value = std::strtod(field.c_str(), &end);
      rows.back().push_back(end == field.c_str() ? __builtin_nan("") : value);
    }
  }
  return rows;
}

}  // namespace quasi::test

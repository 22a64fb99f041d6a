#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/io/common_keys.hpp"
#include "workers/io/settings.hpp"
#include "workers/mosfet/input/stored_points.hpp"
#include "workers/mosfet/model/bias.hpp"
#include "workers/mosfet/model/device_model.hpp"
#include "workers/mosfet/model/run_settings.hpp"

namespace quasi::mosfet {

/// Begin here: a checked deck with the device, its mesh, the bias points and the run. read_deck()
/// reads it with the tables of device_tables.hpp, then mesh_rule.hpp checks the mesh.
/// docs/reference/mosfet.md lists the keys.
struct Deck : DeviceModel {
  Mesh mesh;
  std::vector<BiasPoint> points;
  Waveform gate_wave, drain_wave;  ///< added to V_GS and V_DS of every point; transient mode
  RunSettings run;
  OutputSettings output;
  CommonKeys common{.checkpoint_interval_s = 60.0};
  /// Notes for log and result: values that the reader rounded or chose, and keys with old names.
  std::vector<std::string> notes;
  SmallSignalSettings small_signal;
  std::vector<StoredPoint> stored_points;  ///< of run.start_from
};

/// Reads and checks a TOML deck. Every entry has its range, and an unknown key is an error that
/// names the nearest known one. @throws InvalidInput naming key, value, limit and remedy.
Deck read_deck(const std::filesystem::path& path, const std::vector<Setting>& settings);

/// Reads a deck from text, for tests; `where` replaces the file name and `directory` its folder.
Deck parse_deck(const std::string& text, const std::vector<Setting>& settings,
                const std::string& where, const std::filesystem::path& directory);

}  // namespace quasi::mosfet

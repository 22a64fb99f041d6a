#pragma once

#include <filesystem>
#include <string>

#include "workers/mosfet/input/table_reader.hpp"
#include "workers/mosfet/model/device_model.hpp"

/// Readers of the tables of a deck that describe the device. Each checks its entries. `table` is
/// null if the deck has no such table, and `where` names the deck. @throws InvalidInput naming key,
/// value, limit and remedy
namespace quasi::mosfet {

/// 1 nm⁻³ is this number of cm⁻³.
constexpr double kPerNm3_cm3 = 1e21;

void read_geometry(const toml::table* table, const std::string& where, Geometry* geometry);

/// Reads the doping. @param directory  folder of the deck, in which a profile file is searched
void read_doping(const toml::table* table, const std::string& where,
                 const std::filesystem::path& directory, DeviceModel* device);
void read_gate(const toml::table* table, const std::string& where, Gate* gate);
void read_material(const toml::table* table, const std::string& where, Material* material);

/// Reads the array `valley` and the key `orientation` of the deck's top table.
void read_valleys(TableReader& root, const std::string& where, DeviceModel* device);

/// Reads the scattering. @param parameters  decides the default of acoustic_ev
void read_scattering(const toml::table* table, const std::string& where, ParameterSet parameters,
                     Scattering* scattering);

}  // namespace quasi::mosfet

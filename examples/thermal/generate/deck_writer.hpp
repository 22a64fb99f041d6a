#pragma once

#include <filesystem>
#include <string>

#include "examples/thermal/generate/crystal_model.hpp"

namespace quasi::model {

enum class SecondOrder { kSupercell, kEspresso };  ///< FORCE_CONSTANTS_2ND, espresso.ifc2

/// The settings of a CONTROL beside the crystal.
struct ControlOptions {
  std::array<int, 3> mesh{8, 8, 8};
  double temperature_k = 300.0;
  double scalebroad = 1.0;
  SecondOrder second_order = SecondOrder::kSupercell;
  bool four_phonon = false;
  bool isotopes = false;
  std::string comment;  ///< first line, without its "!"
};

/// Writes the CONTROL of a deck. Polar crystals get ε = 1, Z* equal to their charges, and
/// nonanalytic.
void write_control(const std::filesystem::path& file, const Structure& structure,
                   const ControlOptions& options);

/// FORCE_CONSTANTS_2ND, every ordered pair of the supercell, eV/Å².
void write_supercell_second_order(const std::filesystem::path& file, const Structure& structure,
                                  const ForceConstants& fc2);
/// espresso.ifc2 with ibrav = 0, Ry/bohr².
void write_espresso_second_order(const std::filesystem::path& file, const Structure& structure,
                                 const ForceConstants& fc2);
/// FORCE_CONSTANTS_3RD or FORCE_CONSTANTS_4TH, by fc.order.
void write_anharmonic(const std::filesystem::path& file, const Structure& structure,
                      const ForceConstants& fc);

/// Writes one of the project's decks by name: CONTROL, the force constants of second order,
/// FORCE_CONSTANTS_3RD and FORCE_CONSTANTS_4TH. A name that ends with "-sw" gets the second order
/// in both layouts, "rocksalt" gets the layout `second_order`, and "quartic-cubic" gets
/// FORCE_CONSTANTS_2ND. @throws std::invalid_argument for another name
void write_deck(const std::string& name, const std::filesystem::path& directory,
                SecondOrder second_order = SecondOrder::kSupercell);

}  // namespace quasi::model

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "workers/gw/input/state_file.hpp"
#include "workers/gw/model/mean_field.hpp"

// The folder workers/gw/input/espresso reads the folder PREFIX.save of Quantum ESPRESSO
// (docs/theory/gw.md 1.5). Begin here. schema_file.cpp reads data-file-schema.xml, save_files.cpp
// the files of states and of the density, and upf_file.hpp the pseudopotentials.
namespace quasi::gw {

/// Semilocal functionals of exchange and correlation whose potential is calculated.
enum class XcFunctional { kPerdewZunger, kPerdewWang, kPbe, kPbesol };

/// Describes a mean field as data-file-schema.xml does.
struct EspressoSave {
  std::filesystem::path folder;
  Wavefunctions bands;  ///< all members but `waves`: crystal, k-points, energies, occupations
  std::vector<std::int64_t> n_pw;  ///< plane waves of each k-point
  XcFunctional functional = XcFunctional::kPerdewZunger;
  std::vector<std::string> pseudo_file;  ///< of each species, in the folder
  std::vector<int> species_of_atom;      ///< 0-based

  int n_k() const { return bands.n_k(); }
  const Crystal& crystal() const { return bands.header.crystal; }
};

/// True if the path is a folder, and so no file of BerkeleyGW.
bool is_espresso_save(const std::filesystem::path& path);

/// Reads data-file-schema.xml. The grid of k-points is found from the points themselves; it stays
/// 0 where they form no grid, as with a list that is shifted by a short q₀.
/// @throws InvalidInput with file, quantity, value and remedy: for ultrasoft and PAW
///         pseudopotentials, spinors, `K_POINTS gamma`, hybrid and further functionals, DFT+U,
///         and for damaged or incomplete files
EspressoSave read_espresso_save(const std::filesystem::path& folder);

/// Reads the G-vectors of one k-point from its file of states.
std::vector<IVec3> read_espresso_plane_waves(const EspressoSave& save, int ik);

/// Reads wfcN.dat or wfcN.hdf5 of every k-point and spin, and checks them as those of a WFN file.
/// @param storage  memory for the states and the place of those that exceed it
Wavefunctions read_espresso_states(const EspressoSave& save, const StateStorage& storage);

/// Reads charge-density.dat or charge-density.hdf5. The values are electrons per cell of each spin.
PlaneWaveField read_espresso_density(const EspressoSave& save);

}  // namespace quasi::gw

#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "workers/gw/input/state_file.hpp"
#include "workers/gw/model/mean_field.hpp"

// The folder workers/gw/input/espresso reads the folder PREFIX.save that pw.x of Quantum ESPRESSO
// writes (docs/theory/gw.md 1.5). Begin here. schema_file.cpp reads data-file-schema.xml,
// save_files.cpp reads the files of states and of the density, and upf_file.hpp reads the
// pseudopotentials.
namespace quasi::gw {

/// Lists the functionals of exchange and correlation from which V_xc can be calculated.
enum class XcFunctional { kPerdewZunger, kPerdewWang, kPbe, kPbesol };

/// Holds the content of data-file-schema.xml.
struct EspressoSave {
  std::filesystem::path folder;  ///< path of PREFIX.save
  /// Crystal, k-points, energies in Ry and occupations. Its member `waves` is empty.
  Wavefunctions bands;
  std::vector<std::int64_t> n_pw;  ///< number of plane waves of each k-point
  XcFunctional functional = XcFunctional::kPerdewZunger;
  std::vector<std::string> pseudo_file;  ///< name of the UPF file of each species, in `folder`
  std::vector<int> species_of_atom;      ///< number of the species of each atom, from 0

  int n_k() const { return bands.n_k(); }
  const Crystal& crystal() const { return bands.header.crystal; }
};

/// Returns true if the path is a folder. A mean field of BerkeleyGW is a file.
bool is_espresso_save(const std::filesystem::path& path);

/// Reads data-file-schema.xml. The grid bands.k_grid is found from the k-points themselves. It is 0
/// if they form no grid, which is so for a list that is shifted by a short wave vector q₀.
/// @param folder  path of PREFIX.save
/// @throws InvalidInput with file, quantity, value and remedy. It refuses damaged and incomplete
///         files, ultrasoft and PAW pseudopotentials, spinors, `K_POINTS gamma`, DFT+U, and all
///         functionals but those of XcFunctional.
/// @throws BackendAbsent if the program was built without pugixml
EspressoSave read_espresso_save(const std::filesystem::path& folder);

/// Reads the plane waves G of one k-point from its file of states, in units of the reciprocal
/// lattice vectors. @param ik  number of the k-point, from 0
/// @throws InvalidInput if the file is missing, damaged or of another run
std::vector<IVec3> read_espresso_plane_waves(const EspressoSave& save, int ik);

/// Reads the coefficients in wfcN.dat or wfcN.hdf5 of every k-point and spin. It makes the checks
/// of a WFN file.
/// @param storage  memory for the states, and the folder for those that exceed it
/// @throws InvalidInput if a file is missing, damaged or of another run
Wavefunctions read_espresso_states(const EspressoSave& save, const StateStorage& storage);

/// Reads ρ(G) from charge-density.dat or charge-density.hdf5.
/// @return electrons per cell, [spin][G] on the plane waves bands.header.g
/// @throws InvalidInput if the file is missing, damaged or of another run
PlaneWaveField read_espresso_density(const EspressoSave& save);

}  // namespace quasi::gw

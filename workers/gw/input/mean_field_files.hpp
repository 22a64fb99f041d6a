#pragma once

#include <filesystem>
#include <string>

#include "workers/gw/input/state_file.hpp"
#include "workers/gw/model/mean_field.hpp"

// The folder workers/gw/input reads decks and files. Begin with deck.hpp, which turns a deck into
// the options of model/, and with this header for the files of a mean field in the formats of
// BerkeleyGW (docs/theory/gw.md 1). fortran_file.hpp and hdf5_header.hpp hold the layouts,
// header_checks.hpp the checks that all files pass, text_files.hpp the text files, and
// berkeleygw_inputs.hpp the conversion of epsilon.inp and sigma.inp.
namespace quasi::gw {

/// Reads a wavefunction file, binary or HDF5 (told apart by its first bytes), and checks its
/// counts, cell, group, k-list, norms and that all numbers are finite.
/// @param storage  memory for the states and the place of those that exceed it
/// @throws InvalidInput with file, record, value, limit and remedy.
Wavefunctions read_wavefunctions(const std::filesystem::path& path,
                                 const StateStorage& storage = {});

/// Reads RHO, VXC or VSC.
/// @param kind  required prefix of the title: "RHO" for the density. The files of both potentials
/// carry the title "VXC" or "VSC", so that either is accepted for them.
/// @throws InvalidInput with file, value and remedy.
PlaneWaveField read_field(const std::filesystem::path& path, const std::string& kind);

/// Reads the projectors of VKB. @throws InvalidInput with file, value and remedy.
Projectors read_projectors(const std::filesystem::path& path);

/// Writes the binary format of WFN. @throws StorageError
void write_wavefunctions(const std::filesystem::path& path, const Wavefunctions& waves);
/// Writes the HDF5 format of WFN. @throws StorageError
void write_wavefunctions_hdf5(const std::filesystem::path& path, const Wavefunctions& waves);
/// Writes RHO, VXC or VSC, by the title in the header. @throws StorageError
void write_field(const std::filesystem::path& path, const PlaneWaveField& field);
/// Writes the file VKB of BerkeleyGW with equal weights of all k-points.
/// @throws StorageError if the file cannot be written
void write_projectors(const std::filesystem::path& path, const Projectors& projectors);

/// Checks that two files belong to one calculation: cell, atoms, cut-off, grid.
/// @throws InvalidInput with the first quantity that differs and both its values.
void require_same_crystal(const MeanFieldHeader& a, const std::string& name_a,
                          const MeanFieldHeader& b, const std::string& name_b);

}  // namespace quasi::gw

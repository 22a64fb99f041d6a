#pragma once

#include <string>

#include "workers/gw/model/mean_field.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {

/// Reads /mf_header of WFN.h5, epsmat.h5 or eps0mat.h5. @param name  of the file, for messages
MeanFieldHeader read_hdf5_header(const H5Reader& file, const std::string& name);
/// Reads /mf_header/kpoints: all members of `w` except the header and the coefficients.
void read_hdf5_bands(const H5Reader& file, const std::string& name, Wavefunctions* w);
/// Writes the whole /mf_header, with the k-points.
void write_hdf5_header(H5Writer& file, const Wavefunctions& w);

}  // namespace quasi::gw

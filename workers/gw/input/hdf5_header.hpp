#pragma once

#include <string>

#include "workers/gw/model/mean_field.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::gw {

/// /mf_header of WFN.h5, epsmat.h5 and eps0mat.h5. `name` is the file's, for messages.
MeanFieldHeader read_hdf5_header(const H5Reader& file, const std::string& name);
/// /mf_header/kpoints: everything of `w` but the header and the coefficients.
void read_hdf5_bands(const H5Reader& file, const std::string& name, Wavefunctions* w);
/// The whole /mf_header, k-points included.
void write_hdf5_header(H5Writer& file, const Wavefunctions& w);

}  // namespace quasi::gw

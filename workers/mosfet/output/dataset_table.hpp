#pragma once

#include "workers/io/hdf5.hpp"

namespace quasi::mosfet {

/// Gives every dataset of a complete result.h5 its description, the labels of its axes and their
/// dimension scales. The table of this kind is in dataset_table.cpp; a new dataset gets a row
/// there.
/// @throws StorageError
void describe_result(H5Writer* file);

}  // namespace quasi::mosfet

#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workers/io/hdf5.hpp"

namespace quasi {

/// One axis of the datasets of a kind, and the dimension scale that names its entries.
struct ResultAxis {
  std::string_view name;
  /// Dataset of one axis with the coordinates: a path from the root, or a name that is looked up
  /// beside the described dataset and in the groups above it. Empty: `/axes/NAME` is written.
  std::string_view scale = "";
  /// Words for the entries of `/axes/NAME`; empty: the numbers from 1.
  std::string_view labels = "";
};

/// One row of a kind's table of datasets.
struct DatasetDescription {
  std::string_view path;  ///< from the root; `*` stands for characters of one part
  std::string_view axes;  ///< names of the axes, slowest first, parted by spaces; "" for a scalar
  std::string_view meaning;
};

/// Writes labels as a dataset [label] of texts.
/// @throws StorageError
void write_labels(const std::string& path, const std::vector<std::string>& labels, H5Writer* file);

/// Reads the labels that write_labels() wrote at `path` of a file.
/// @throws InvalidInput naming file and path
std::vector<std::string> read_labels(const std::filesystem::path& file, const std::string& path);

/// Gives every dataset of the file that matches a row, by its path and its number of axes, the
/// attribute `description` and the label of each axis, and attaches the dimension scales (HDF5
/// dimension scales, H5DS). A scale whose length is not the axis's is left out. The axes
/// `cartesian`, `cartesian_2` and `complex` are known to all kinds. It is called after the last
/// dataset is written.
/// @throws StorageError
void describe_datasets(std::span<const ResultAxis> axes,
                       std::span<const DatasetDescription> descriptions, H5Writer* file);

}  // namespace quasi

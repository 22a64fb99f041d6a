#include "workers/io/hdf5.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "workers/backend/error.hpp"
#include "workers/files/durable_file.hpp"
#include "workers/io/input_path.hpp"

namespace quasi {
namespace {

// HDF5 prints its error stack to standard error by default. Our messages replace it.
void silence_hdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

// The text is built in steps, because GCC 12 warns of an impossible overlap in a single sum.
std::string quoted(const std::filesystem::path& path) {
  return std::string("'").append(path.string()).append("'");
}

/// Returns access properties with which no link can lead into another file.
H5Handle access_within_file(hid_t property_class) {
  H5Handle access(H5Pcreate(property_class), H5Pclose);
  H5Pset_elink_cb(
      access.id(),
      [](const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) -> herr_t {
        return -1;
      },
      nullptr);
  return access;
}

/// Refuses a dataset whose values lie in other files. Such a dataset could name any file of the
/// machine, and the values would appear in a message or a result.
void require_values_within_file(hid_t dataset, const std::string& what) {
  const H5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_external_count(creation.id()) != 0)
    throw InvalidInput(what + " has external storage; write its values into the file itself");
  if (H5Pget_layout(creation.id()) == H5D_VIRTUAL)
    throw InvalidInput(what + " is virtual; write its values into the file itself");
}

H5Handle open_dataset(hid_t file, const std::string& path, const std::filesystem::path& name) {
  const H5Handle access = access_within_file(H5P_DATASET_ACCESS);
  H5Handle dataset(H5Dopen2(file, path.c_str(), access.id()), H5Dclose);
  if (dataset.id() < 0)
    throw InvalidInput(quoted(name) + " has no dataset '" + path + "' of its own");
  require_values_within_file(dataset.id(), quoted(name) + ": dataset '" + path + "'");
  return dataset;
}

std::vector<std::int64_t> shape_of(hid_t dataset) {
  const H5Handle space(H5Dget_space(dataset), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space.id());
  if (rank <= 0) return {};
  std::vector<hsize_t> extent(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space.id(), extent.data(), nullptr);
  return {extent.begin(), extent.end()};
}

std::int64_t product(std::span<const std::int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

/// Refuses sizes that the stored bytes cannot hold, before memory is allocated, because a header
/// may be damaged. Deflate, the strongest filter in use, compresses by at most 1032 : 1.
void require_size_that_file_holds(hid_t dataset, const std::string& what) {
  constexpr double kMostCompression = 1032.0;
  constexpr double kUnstoredBytes = 1 << 20;  // Fill values of a small dataset need no storage.
  double count = 1.0;
  for (const std::int64_t extent : shape_of(dataset)) count *= static_cast<double>(extent);
  const H5Handle type(H5Dget_type(dataset), H5Tclose);
  const double announced_bytes = count * static_cast<double>(H5Tget_size(type.id()));
  const double stored_bytes = static_cast<double>(H5Dget_storage_size(dataset));
  if (announced_bytes > kMostCompression * stored_bytes + kUnstoredBytes)
    throw InvalidInput(what + " says that it has " + std::to_string(count) + " values and stores " +
                       std::to_string(stored_bytes) + " bytes; is the file damaged?");
}

template <typename T>
std::vector<T> read_all(hid_t file, const std::string& path, const std::filesystem::path& name,
                        hid_t memory_type) {
  const H5Handle dataset = open_dataset(file, path, name);
  require_size_that_file_holds(dataset.id(), quoted(name) + ": dataset '" + path + "'");
  std::vector<T> values(static_cast<std::size_t>(product(shape_of(dataset.id()))));
  if (H5Dread(dataset.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0)
    throw InvalidInput(quoted(name) + ": dataset '" + path +
                       "' cannot be read as numbers; is the file truncated?");
  return values;
}

/// Returns creation properties without times, so that equal data give equal bytes.
H5Handle dataset_creation() {
  H5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.id(), 0);
  return creation;
}

/// Reads the only text of a dataset or attribute. @param what  file and path, for messages
std::string read_string(hid_t type, hid_t space, const std::string& what,
                        const std::function<herr_t(hid_t, void*)>& read) {
  if (H5Tget_class(type) != H5T_STRING) throw InvalidInput(what + " is not text");
  // The buffers below have room for one text.
  if (const auto count = H5Sget_simple_extent_npoints(space); count != 1)
    throw InvalidInput(what + " must hold one text, holds " + std::to_string(count));
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    if (read(type, &text) < 0) throw InvalidInput(what + " cannot be read; is the file truncated?");
    std::string result(text != nullptr ? text : "");
    H5free_memory(text);
    return result;
  }
  std::string result(H5Tget_size(type), '\0');
  if (read(type, result.data()) < 0)
    throw InvalidInput(what + " cannot be read; is the file truncated?");
  result.resize(result.find('\0') == std::string::npos ? result.size() : result.find('\0'));
  return result;
}

/// Cuts a dataset into chunks and compresses them. A chunk holds as many whole last axes as fit
/// into a quarter of a million values.
void set_compressed_chunks(hid_t creation, const std::vector<hsize_t>& extent) {
  constexpr hsize_t kLargestChunk = 1u << 18;
  std::vector<hsize_t> chunk(extent.size(), 1);
  hsize_t values_in_chunk = 1;
  for (std::size_t d = extent.size(); d-- > 0 && values_in_chunk * extent[d] <= kLargestChunk;) {
    chunk[d] = extent[d];
    values_in_chunk *= extent[d];
  }
  // A longer last axis is cut, because chunks of one value each would take minutes.
  if (values_in_chunk == 1) chunk.back() = std::min(extent.back(), kLargestChunk);
  H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  H5Pset_shuffle(creation);
  H5Pset_deflate(creation, 4);
}

/// Creates a dataset and its groups; a scalar if `extent` is empty.
H5Handle create_dataset(hid_t file, const std::string& path, hid_t type,
                        const std::vector<hsize_t>& extent, bool compressed) {
  const H5Handle space(
      extent.empty() ? H5Screate(H5S_SCALAR)
                     : H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
      H5Sclose);
  const H5Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links.id(), 1);
  const H5Handle creation = dataset_creation();
  if (compressed) set_compressed_chunks(creation.id(), extent);
  return {H5Dcreate2(file, path.c_str(), type, space.id(), links.id(), creation.id(), H5P_DEFAULT),
          H5Dclose};
}

}  // namespace

H5Reader::H5Reader(const std::filesystem::path& path)
    : path_(path),
      file_((silence_hdf5(), H5Fopen(input_file(path).c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)),
            H5Fclose) {
  if (file_.id() < 0)
    throw InvalidInput(quoted(path) + (std::filesystem::exists(path)
                                           ? " is not a readable HDF5 file; is it truncated?"
                                           : " does not exist"));
}

bool H5Reader::has(const std::string& path) const {
  const H5Handle access = access_within_file(H5P_LINK_ACCESS);
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (part != "/" && H5Lexists(file_.id(), part.c_str(), access.id()) <= 0) return false;
    if (end == std::string::npos) return true;
  }
}

std::vector<std::int64_t> H5Reader::shape(const std::string& path) const {
  return shape_of(open_dataset(file_.id(), path, path_).id());
}

std::vector<double> H5Reader::doubles(const std::string& path) const {
  return read_all<double>(file_.id(), path, path_, H5T_NATIVE_DOUBLE);
}

std::vector<std::int64_t> H5Reader::integers(const std::string& path) const {
  return read_all<std::int64_t>(file_.id(), path, path_, H5T_NATIVE_INT64);
}

std::string H5Reader::text(const std::string& path) const {
  const H5Handle dataset = open_dataset(file_.id(), path, path_);
  require_size_that_file_holds(dataset.id(), quoted(path_) + ": dataset '" + path + "'");
  const H5Handle type(H5Dget_type(dataset.id()), H5Tclose),
      space(H5Dget_space(dataset.id()), H5Sclose);
  return read_string(type.id(), space.id(), quoted(path_) + ": dataset '" + path + "'",
                     [&](hid_t memory_type, void* out) {
                       return H5Dread(dataset.id(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                                      out);
                     });
}

double H5Reader::number(const std::string& path) const {
  const auto values = doubles(path);
  if (values.size() != 1)
    throw InvalidInput(quoted(path_) + ": '" + path + "' must hold one number, holds " +
                       std::to_string(values.size()));
  return values[0];
}

std::int64_t H5Reader::integer(const std::string& path) const {
  const auto values = integers(path);
  if (values.size() != 1)
    throw InvalidInput(quoted(path_) + ": '" + path + "' must hold one integer, holds " +
                       std::to_string(values.size()));
  return values[0];
}

std::string H5Reader::text_attribute(const std::string& path, const std::string& name) const {
  const H5Handle access = access_within_file(H5P_LINK_ACCESS);
  const H5Handle attribute(
      H5Aopen_by_name(file_.id(), path.c_str(), name.c_str(), H5P_DEFAULT, access.id()), H5Aclose);
  if (attribute.id() < 0)
    throw InvalidInput(quoted(path_) + ": '" + path + "' has no attribute '" + name + "'");
  const H5Handle type(H5Aget_type(attribute.id()), H5Tclose),
      space(H5Aget_space(attribute.id()), H5Sclose);
  return read_string(
      type.id(), space.id(), quoted(path_) + ": attribute '" + name + "' of '" + path + "'",
      [&](hid_t memory_type, void* out) { return H5Aread(attribute.id(), memory_type, out); });
}

std::vector<std::string> H5Reader::children(const std::string& group) const {
  std::vector<std::string> names;
  const H5Handle access = access_within_file(H5P_GROUP_ACCESS);
  const H5Handle handle(H5Gopen2(file_.id(), group.c_str(), access.id()), H5Gclose);
  if (handle.id() < 0) throw InvalidInput(quoted(path_) + " has no group '" + group + "'");
  H5Literate(
      handle.id(), H5_INDEX_NAME, H5_ITER_INC, nullptr,
      [](hid_t, const char* name, const H5L_info_t*, void* out) -> herr_t {
        static_cast<std::vector<std::string>*>(out)->emplace_back(name);
        return 0;
      },
      &names);
  return names;
}

std::vector<double> H5Reader::slab(const std::string& path, std::span<const std::int64_t> start,
                                   std::span<const std::int64_t> count) const {
  const H5Handle dataset = open_dataset(file_.id(), path, path_);
  const H5Handle space(H5Dget_space(dataset.id()), H5Sclose);
  const std::vector<hsize_t> first(start.begin(), start.end());
  const std::vector<hsize_t> extent(count.begin(), count.end());
  const H5Handle memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                        H5Sclose);
  std::vector<double> values(static_cast<std::size_t>(product(count)));
  if (H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, first.data(), nullptr, extent.data(),
                          nullptr) < 0 ||
      H5Dread(dataset.id(), H5T_NATIVE_DOUBLE, memory.id(), space.id(), H5P_DEFAULT,
              values.data()) < 0)
    throw InvalidInput(quoted(path_) + ": part of dataset '" + path +
                       "' cannot be read; is the file truncated?");
  return values;
}

H5Writer::H5Writer(const std::filesystem::path& path)
    : path_(path),
      temporary_(path.string() + ".tmp"),
      file_(
          (silence_hdf5(), H5Fcreate(temporary_.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)),
          H5Fclose) {
  if (file_.id() < 0)
    throw StorageError("cannot create " + quoted(temporary_) +
                       "; check that the directory exists, is writable, and has space left");
}

H5Writer::~H5Writer() {
  if (committed_) return;
  file_ = H5Handle(-1, H5Fclose);
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

void H5Writer::write_values(const std::string& path, const Values& values,
                            std::span<const std::int64_t> shape, std::string_view units,
                            Layout layout) {
  if (product(shape) != static_cast<std::int64_t>(values.count))
    throw std::logic_error("dataset '" + path + "': shape and number of values differ");
  const std::vector<hsize_t> extent(shape.begin(), shape.end());
  const H5Handle dataset = create_dataset(file_.id(), path, values.memory_type, extent,
                                          layout == Layout::kCompressed && values.count > 0);
  if (dataset.id() < 0 || (values.count > 0 && H5Dwrite(dataset.id(), values.memory_type, H5S_ALL,
                                                        H5S_ALL, H5P_DEFAULT, values.data) < 0))
    throw StorageError("cannot write dataset '" + path + "' to " + quoted(temporary_));
  attribute(path, "units", units);
}

void H5Writer::write(const std::string& path, std::span<const double> values,
                     std::span<const std::int64_t> shape, std::string_view units) {
  write_values(path, {values.data(), values.size(), H5T_NATIVE_DOUBLE}, shape, units);
}
void H5Writer::write(const std::string& path, std::span<const float> values,
                     std::span<const std::int64_t> shape, std::string_view units) {
  write_values(path, {values.data(), values.size(), H5T_NATIVE_FLOAT}, shape, units);
}
void H5Writer::write_compressed(const std::string& path, std::span<const float> values,
                                std::span<const std::int64_t> shape, std::string_view units) {
  write_values(path, {values.data(), values.size(), H5T_NATIVE_FLOAT}, shape, units,
               Layout::kCompressed);
}
void H5Writer::write(const std::string& path, std::span<const std::int64_t> values,
                     std::span<const std::int64_t> shape, std::string_view units) {
  write_values(path, {values.data(), values.size(), H5T_NATIVE_INT64}, shape, units);
}
void H5Writer::write(const std::string& path, std::span<const std::int32_t> values,
                     std::span<const std::int64_t> shape, std::string_view units) {
  write_values(path, {values.data(), values.size(), H5T_NATIVE_INT32}, shape, units);
}
void H5Writer::write(const std::string& path, std::span<const std::complex<double>> values,
                     std::span<const std::int64_t> shape, std::string_view units) {
  std::vector<std::int64_t> with_parts(shape.begin(), shape.end());
  with_parts.push_back(2);
  write_values(path, {values.data(), values.size() * 2, H5T_NATIVE_DOUBLE}, with_parts, units);
}

void H5Writer::create(const std::string& path, std::initializer_list<std::int64_t> shape,
                      std::string_view units) {
  const std::vector<hsize_t> extent(shape.begin(), shape.end());
  const H5Handle dataset = create_dataset(file_.id(), path, H5T_NATIVE_DOUBLE, extent, false);
  if (dataset.id() < 0)
    throw StorageError("cannot create dataset '" + path + "' in " + quoted(temporary_));
  attribute(path, "units", units);
}

void H5Writer::write_slab(const std::string& path, std::span<const std::int64_t> start,
                          std::span<const std::int64_t> count, std::span<const double> values) {
  if (product(count) != static_cast<std::int64_t>(values.size()))
    throw std::logic_error("part of dataset '" + path + "': counts and number of values differ");
  const H5Handle dataset(H5Dopen2(file_.id(), path.c_str(), H5P_DEFAULT), H5Dclose);
  const H5Handle space(H5Dget_space(dataset.id()), H5Sclose);
  const std::vector<hsize_t> first(start.begin(), start.end());
  const std::vector<hsize_t> extent(count.begin(), count.end());
  const H5Handle memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                        H5Sclose);
  if (H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, first.data(), nullptr, extent.data(),
                          nullptr) < 0 ||
      H5Dwrite(dataset.id(), H5T_NATIVE_DOUBLE, memory.id(), space.id(), H5P_DEFAULT,
               values.data()) < 0)
    throw StorageError("cannot write dataset '" + path + "' to " + quoted(temporary_));
}

void H5Writer::write_scalar(const std::string& path, double value, std::string_view units) {
  write_values(path, {&value, 1, H5T_NATIVE_DOUBLE}, {}, units);
}
void H5Writer::write_scalar(const std::string& path, std::int64_t value, std::string_view units) {
  write_values(path, {&value, 1, H5T_NATIVE_INT64}, {}, units);
}

void H5Writer::write_text(const std::string& path, std::string_view text) {
  const H5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), std::max<std::size_t>(1, text.size()));
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  const std::string padded = text.empty() ? std::string(1, '\0') : std::string(text);
  const H5Handle dataset = create_dataset(file_.id(), path, type.id(), {}, false);
  if (dataset.id() < 0 ||
      H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()) < 0)
    throw StorageError("cannot write text '" + path + "' to " + quoted(temporary_));
}

void H5Writer::attribute(const std::string& path, const std::string& name, std::string_view text) {
  const H5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), std::max<std::size_t>(1, text.size()));
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  const std::string padded = text.empty() ? std::string(1, '\0') : std::string(text);
  const H5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const H5Handle attribute(H5Acreate_by_name(file_.id(), path.c_str(), name.c_str(), type.id(),
                                             space.id(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                           H5Aclose);
  if (attribute.id() < 0 || H5Awrite(attribute.id(), type.id(), padded.data()) < 0)
    throw StorageError("cannot write attribute '" + name + "' of '" + path + "' to " +
                       quoted(temporary_));
}

void H5Writer::commit() {
  if (H5Fflush(file_.id(), H5F_SCOPE_GLOBAL) < 0)
    throw StorageError("cannot write " + quoted(temporary_) + "; is the disk full?");
  file_ = H5Handle(-1, H5Fclose);
  { const H5Reader reopened(temporary_); }
  try {
    files::sync_file(temporary_);
    files::publish(temporary_, path_);
  } catch (const files::FileFailure& failure) {
    throw StorageError(failure.sentence());
  }
  committed_ = true;
}

}  // namespace quasi

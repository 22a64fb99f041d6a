#include "workers/io/dataset_descriptions.hpp"

#include <fnmatch.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "workers/backend/error.hpp"

namespace quasi {
namespace {

using Extents = std::vector<hsize_t>;

/// Axes that mean the same in every kind.
constexpr ResultAxis kCommonAxes[] = {
    {"cartesian", "", "x y z"}, {"cartesian_2", "/axes/cartesian", ""}, {"complex", "", "re im"}};

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Most datasets that one scale is attached to. The list of them is an attribute of the scale, and
/// an attribute holds 64 KiB. Later datasets have the label of the axis alone.
constexpr int kMostAttachments = 1000;

/// Returns true if the path matches the pattern, in which `*` stands for characters of one part.
bool matches(std::string_view pattern, const std::string& path) {
  return fnmatch(std::string(pattern).c_str(), path.c_str(), FNM_PATHNAME) == 0;
}

/// Returns all datasets of a file with their extents, in the order of their names.
std::map<std::string, Extents> datasets_of(hid_t file) {
  std::map<std::string, Extents> found;
  const auto visit = [](hid_t root, const char* name, const H5O_info_t* info, void* out) -> herr_t {
    if (info->type != H5O_TYPE_DATASET) return 0;
    const H5Handle dataset(H5Dopen2(root, name, H5P_DEFAULT), H5Dclose);
    const H5Handle space(H5Dget_space(dataset.id()), H5Sclose);
    Extents extents(static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space.id()))));
    if (!extents.empty()) H5Sget_simple_extent_dims(space.id(), extents.data(), nullptr);
    (*static_cast<std::map<std::string, Extents>*>(out))[std::string("/").append(name)] = extents;
    return 0;
  };
  H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, visit, &found, H5O_INFO_BASIC);
  return found;
}

/// Labels axes and attaches scales, and writes the scales below /axes on their first use.
class Describer {
 public:
  Describer(std::span<const ResultAxis> axes, H5Writer* file)
      : axes_(axes.begin(), axes.end()), file_(file), datasets_(datasets_of(file->id())) {
    axes_.insert(axes_.end(), std::begin(kCommonAxes), std::end(kCommonAxes));
  }

  void describe(std::span<const DatasetDescription> descriptions) {
    const std::map<std::string, Extents> described = datasets_;
    for (const auto& [path, extents] : described) {
      const auto row = std::find_if(
          descriptions.begin(), descriptions.end(), [&](const DatasetDescription& each) {
            return words_of(each.axes).size() == extents.size() && matches(each.path, path);
          });
      if (row == descriptions.end()) continue;
      file_->attribute(path, "description", row->meaning);
      const std::vector<std::string> names = words_of(row->axes);
      for (std::size_t d = 0; d < names.size(); ++d)
        label(path, static_cast<unsigned>(d), names[d], extents[d]);
    }
  }

 private:
  void label(const std::string& path, unsigned dimension, const std::string& name, hsize_t extent) {
    const std::string scale = scale_of(path, name, extent);
    const H5Handle dataset(H5Dopen2(file_->id(), path.c_str(), H5P_DEFAULT), H5Dclose);
    const bool has_scale = !scale.empty() && datasets_.at(scale) == Extents{extent};
    if (has_scale && scale == path) {
      make_scale(path, name);
      return;
    }
    if (H5DSis_scale(dataset.id()) > 0) return;  // A scale has no scales itself.
    bool good = H5DSset_label(dataset.id(), dimension, name.c_str()) >= 0;
    if (has_scale && attachments_[scale]++ < kMostAttachments) {
      make_scale(scale, name);
      const H5Handle coordinates(H5Dopen2(file_->id(), scale.c_str(), H5P_DEFAULT), H5Dclose);
      good = good && H5DSattach_scale(dataset.id(), coordinates.id(), dimension) >= 0;
    }
    if (!good) throw StorageError("cannot write the axes of dataset '" + path + "'");
  }

  void make_scale(const std::string& path, const std::string& name) {
    const H5Handle scale(H5Dopen2(file_->id(), path.c_str(), H5P_DEFAULT), H5Dclose);
    if (H5DSis_scale(scale.id()) > 0) return;
    if (H5DSset_scale(scale.id(), name.c_str()) < 0)
      throw StorageError("cannot make dataset '" + path + "' a dimension scale");
  }

  /// Returns the path of the scale of an axis of this dataset; "" if there is none.
  std::string scale_of(const std::string& path, const std::string& name, hsize_t extent) {
    const auto axis = std::find_if(axes_.begin(), axes_.end(),
                                   [&](const ResultAxis& each) { return each.name == name; });
    if (axis == axes_.end()) return "";
    const std::string scale(axis->scale);
    if (name == "cartesian_2") return scale_of(path, "cartesian", extent);
    if (scale.empty()) return write_scale(*axis, extent);
    if (scale.front() == '/') return datasets_.contains(scale) ? scale : "";
    std::string group = path;
    do {
      group.resize(group.rfind('/'));
      const std::string beside = std::string(group).append("/").append(scale);
      if (datasets_.contains(beside)) return beside;
    } while (!group.empty());
    return "";
  }

  std::string write_scale(const ResultAxis& axis, hsize_t extent) {
    const std::string path = std::string("/axes/").append(axis.name);
    if (datasets_.contains(path)) return path;
    const std::vector<std::string> labels = words_of(axis.labels);
    if (!labels.empty()) {
      if (labels.size() != extent) return "";
      write_labels(path, labels, file_);
    } else {
      std::vector<std::int64_t> numbers;
      for (hsize_t n = 1; n <= extent; ++n) numbers.push_back(static_cast<std::int64_t>(n));
      file_->write(path, numbers, {static_cast<std::int64_t>(extent)}, "1");
    }
    std::string meaning = labels.empty() ? "numbers" : "names";
    meaning.append(" of the entries of the axis ").append(axis.name);
    file_->attribute(path, "description", meaning);
    datasets_[path] = {extent};
    return path;
  }

  std::vector<ResultAxis> axes_;
  H5Writer* file_;
  std::map<std::string, Extents> datasets_;
  std::map<std::string, int> attachments_;
};

}  // namespace

void write_labels(const std::string& path, const std::vector<std::string>& labels, H5Writer* file) {
  std::size_t width = 1;
  for (const std::string& label : labels) width = std::max(width, label.size());
  std::string padded;
  for (const std::string& label : labels) padded += label + std::string(width - label.size(), '\0');
  const H5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.id(), width);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  const hsize_t extent = labels.size();
  const H5Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  const H5Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links.id(), 1);
  const H5Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(creation.id(), 0);  // Equal data give equal bytes.
  const H5Handle dataset(H5Dcreate2(file->id(), path.c_str(), type.id(), space.id(), links.id(),
                                    creation.id(), H5P_DEFAULT),
                         H5Dclose);
  if (dataset.id() < 0 ||
      H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()) < 0)
    throw StorageError("cannot write labels '" + path + "'");
}

std::vector<std::string> read_labels(const std::filesystem::path& file, const std::string& path) {
  constexpr std::size_t kMostBytes = std::size_t{16} << 20;
  const std::string what = "'" + file.string() + "': dataset '" + path + "'";
  const auto shape = H5Reader(file).shape(path);  // refuses links and storage outside of the file
  const H5Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const H5Handle dataset(H5Dopen2(opened.id(), path.c_str(), H5P_DEFAULT), H5Dclose);
  const H5Handle type(H5Dget_type(dataset.id()), H5Tclose);
  if (shape.size() != 1 || H5Tget_class(type.id()) != H5T_STRING ||
      H5Tis_variable_str(type.id()) != 0)
    throw InvalidInput(what + " is no list of texts of one length");
  const std::size_t width = H5Tget_size(type.id()), count = static_cast<std::size_t>(shape[0]);
  if (count > kMostBytes / width)
    throw InvalidInput(what + " has more than 16 MiB; is the file damaged?");
  std::string padded(width * count, '\0');
  if (H5Dread(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, padded.data()) < 0)
    throw InvalidInput(what + " cannot be read; is the file truncated?");
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < count; ++i)
    labels.emplace_back(padded.substr(i * width, width).c_str());
  return labels;
}

void describe_datasets(std::span<const ResultAxis> axes,
                       std::span<const DatasetDescription> descriptions, H5Writer* file) {
  Describer(axes, file).describe(descriptions);
}

}  // namespace quasi

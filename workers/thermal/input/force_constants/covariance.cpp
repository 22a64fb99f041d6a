#include "workers/thermal/input/force_constants/covariance.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::thermal {
namespace {

using Tuple = std::array<std::int64_t, 9>;  ///< three atoms, cells of the second and third

std::map<Tuple, std::int64_t> blocks_of(const SparseForceConstants& constants) {
  std::map<Tuple, std::int64_t> blocks;
  for (std::int64_t b = 0; b < constants.n_blocks(); ++b) {
    Tuple key{};
    std::copy_n(constants.atom.begin() + 3 * b, 3, key.begin());
    std::copy_n(constants.cell.begin() + 6 * b, 6, key.begin() + 3);
    blocks[key] = b;
  }
  return blocks;
}

std::string text_of(const Tuple& key) {
  const auto part = [&](std::size_t at) {
    return std::to_string(key[at]) + " " + std::to_string(key[at + 1]) + " " +
           std::to_string(key[at + 2]);
  };
  return "atoms " + part(0) + ", cells " + part(3) + " and " + part(6);
}

/// The datasets of one file, with its name for messages.
class CovarianceFile {
 public:
  explicit CovarianceFile(const std::filesystem::path& file)
      : name_(file.filename().string()), reader_(file) {}

  [[noreturn]] void fail(const std::string& dataset, const std::string& what) const {
    throw InvalidInput(name_ + ": dataset '" + dataset + "' " + what);
  }

  void require_shape(const std::string& dataset, const std::vector<std::int64_t>& wanted) const {
    const auto found = reader_.shape(dataset);
    if (found == wanted) return;
    const auto text = [](const std::vector<std::int64_t>& shape) {
      std::string joined;
      for (const std::int64_t n : shape) joined += (joined.empty() ? "" : "×") + std::to_string(n);
      return joined;
    };
    fail(dataset, "is " + text(found) + ", but must be " + text(wanted));
  }

  std::vector<double> doubles(const std::string& dataset) const {
    std::vector<double> values = reader_.doubles(dataset);
    for (const double x : values)
      if (!std::isfinite(x)) fail(dataset, "holds a number that is not finite");
    return values;
  }

  std::vector<std::int64_t> integers(const std::string& dataset) const {
    return reader_.integers(dataset);
  }

  /// Number of values of a list. @throws InvalidInput if the dataset is no list or is empty
  std::int64_t length(const std::string& dataset) const {
    const auto shape = reader_.shape(dataset);
    if (shape.size() != 1 || shape[0] < 1) fail(dataset, "must be a list with at least one value");
    return shape[0];
  }

  /// Number of parameters. @throws InvalidInput if the covariance is not square
  std::int64_t parameters() const {
    const auto shape = reader_.shape("/covariance");
    if (shape.size() != 2 || shape[0] != shape[1] || shape[0] < 1)
      fail("/covariance", "must be a square matrix, one row for each parameter");
    return shape[0];
  }

 private:
  std::string name_;
  H5Reader reader_;
};

std::vector<double> symmetric_covariance(const CovarianceFile& file, std::int64_t n) {
  constexpr double kAsymmetry = 1e-8;  // of the largest element
  std::vector<double> values = file.doubles("/covariance");
  double largest = 0.0, asymmetry = 0.0;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      const double one = values[static_cast<std::size_t>(i * n + j)];
      const double other = values[static_cast<std::size_t>(j * n + i)];
      largest = std::max(largest, std::fabs(one));
      asymmetry = std::max(asymmetry, std::fabs(one - other));
    }
  for (std::int64_t i = 0; i < n; ++i)
    if (values[static_cast<std::size_t>(i * n + i)] < 0.0)
      file.fail("/covariance", "has a negative variance, of parameter " + std::to_string(i));
  if (asymmetry > kAsymmetry * largest)
    file.fail("/covariance", "is not symmetric: two elements differ by " +
                                 std::to_string(asymmetry / largest) + " of the largest");
  return values;
}

}  // namespace

ConstantsCovariance read_covariance(const std::filesystem::path& path,
                                    const SparseForceConstants& constants) {
  const CovarianceFile file(path);
  ConstantsCovariance result;
  result.n_parameters = file.parameters();
  result.covariance = symmetric_covariance(file, result.n_parameters);
  const std::int64_t m = file.length("/basis/parameter");
  file.require_shape("/basis/atom", {m, 3});
  file.require_shape("/basis/cell", {m, 2, 3});
  file.require_shape("/basis/component", {m, 3});
  file.require_shape("/basis/value", {m});
  const auto parameter = file.integers("/basis/parameter"), atom = file.integers("/basis/atom"),
             cell = file.integers("/basis/cell"), component = file.integers("/basis/component");
  const auto value = file.doubles("/basis/value");
  const auto blocks = blocks_of(constants);
  for (std::int64_t i = 0; i < m; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (parameter[at] < 0 || parameter[at] >= result.n_parameters)
      file.fail("/basis/parameter", "holds " + std::to_string(parameter[at]) +
                                        "; parameters count from 0 to " +
                                        std::to_string(result.n_parameters - 1));
    Tuple key{};
    std::copy_n(atom.begin() + 3 * i, 3, key.begin());
    std::copy_n(cell.begin() + 6 * i, 6, key.begin() + 3);
    const auto block = blocks.find(key);
    if (block == blocks.end())
      file.fail("/basis/atom",
                "names a triple that the third order does not have: " + text_of(key) + " (entry " +
                    std::to_string(i) + "; atoms count from 0)");
    std::int64_t element = 27 * block->second;
    for (int slot = 0; slot < 3; ++slot) {
      const std::int64_t x = component[static_cast<std::size_t>(3 * i + slot)];
      if (x < 0 || x > 2)
        file.fail("/basis/component", "holds " + std::to_string(x) + "; components are 0, 1 or 2");
      element += x * (slot == 0 ? 9 : slot == 1 ? 3 : 1);
    }
    result.basis.push_back({parameter[at], element, value[at]});
  }
  return result;
}

}  // namespace quasi::thermal

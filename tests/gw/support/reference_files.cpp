#include "tests/gw/support/reference_files.hpp"

#include <cblas.h>
#include <omp.h>
#include <zlib.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace quasi::gw::test {
namespace {

// Matrices here are small: one thread is fastest, and leaves other tests their processors. What
// depends on the number of threads sets it itself.
[[maybe_unused]] const bool one_thread = [] {
  omp_set_num_threads(1);
  openblas_set_num_threads(1);
  return true;
}();

}  // namespace

void unpack_gzip(const std::filesystem::path& packed, const std::filesystem::path& target) {
  std::filesystem::create_directories(target.parent_path());
  const gzFile in = gzopen(packed.c_str(), "rb");
  if (in == nullptr) throw std::runtime_error("no packed file " + packed.string());
  std::ofstream out(target, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  for (int n = 0; (n = gzread(in, buffer.data(), static_cast<unsigned>(buffer.size()))) > 0;)
    out.write(buffer.data(), n);
  gzclose(in);
}

std::filesystem::path ReferenceCase::file(const std::string& name) {
  const auto plain = source_ / name;
  if (std::filesystem::exists(plain)) return plain;
  const auto target = unpacked_.path() / name;
  if (std::filesystem::exists(target)) return target;
  unpack_gzip(plain.string() + ".gz", target);
  return target;
}

std::vector<SigmaRow> read_sigma_table(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<SigmaRow> rows;
  std::vector<std::string> names;
  Vec3 k{};
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string first;
    if (!(fields >> first)) continue;
    if (first == "k") {
      std::string equals;
      fields >> equals >> k[0] >> k[1] >> k[2];
    } else if (first == "n") {
      names.clear();
      for (std::string name; fields >> name;) names.push_back(name);
    } else if (!names.empty() && names[0] == "Emf" &&
               first.find_first_not_of("0123456789") == std::string::npos) {
      SigmaRow row{.k = k, .band = std::stoi(first)};
      double value = 0.0;
      for (const std::string& name : names)
        if (fields >> value) row.column[name] = value;
      if (row.column.size() == names.size()) rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<ContourRow> read_contour_table(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<ContourRow> rows;
  Vec3 k{};
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string first;
    fields >> first;
    if (first == "k") {
      std::string equals;
      fields >> equals >> k[0] >> k[1] >> k[2];
    }
    if (first.empty() || first.find_first_not_of("0123456789") != std::string::npos) continue;
    ContourRow row{.k = k, .band = std::stoi(first), .residue = {}, .integral = {}};
    double mean_field = 0.0, at = 0.0, parts[4]{};
    fields >> mean_field >> at >> row.x >> parts[0] >> parts[1];
    std::getline(in, line);  // the imaginary parts
    std::istringstream imaginary(line);
    if (!(imaginary >> parts[2] >> parts[3]))
      throw std::runtime_error(path.string() + ": band " + first + " has no imaginary parts");
    row.residue = {parts[0], parts[2]};
    row.integral = {parts[1], parts[3]};
    rows.push_back(row);
  }
  return rows;
}

std::vector<std::vector<double>> read_number_rows(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::vector<std::vector<double>> rows;
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::vector<double> row;
    double value = 0.0;
    while (fields >> value) row.push_back(value);
    if (!row.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace quasi::gw::test

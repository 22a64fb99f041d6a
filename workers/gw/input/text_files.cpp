#include "workers/gw/input/text_files.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"

namespace quasi::gw {
namespace {

/// Reads lines of a text file with their numbers and skips blank lines.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path) : path_(path), in_(input_file(path)) {
    if (!in_) throw InvalidInput("'" + path.string() + "' does not exist or cannot be read");
  }
  bool next() {
    std::string text;
    while (std::getline(in_, text)) {
      ++line_;
      if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
      fields_ = std::istringstream(text);
      return true;
    }
    return false;
  }
  void require_next(const std::string& what) {
    if (!next())
      throw InvalidInput("'" + path_.string() + "' ends after line " + std::to_string(line_) +
                         " where " + what + " should follow");
  }
  double number(const std::string& what) {
    double value = 0.0;
    if (!(fields_ >> value)) fail(what);
    if (!std::isfinite(value)) fail(what + " that is finite");
    return value;
  }
  int integer(const std::string& what) {
    int value = 0;
    if (!(fields_ >> value)) fail(what);
    return value;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw InvalidInput("'" + path_.string() + "', line " + std::to_string(line_) + ": expected " +
                       what);
  }

 private:
  std::filesystem::path path_;
  std::ifstream in_;
  std::istringstream fields_;
  int line_ = 0;
};

Vec3 take_k(LineReader& lines) {
  return {lines.number("a k-point coordinate"), lines.number("a k-point coordinate"),
          lines.number("a k-point coordinate")};
}

}  // namespace

std::vector<KPointElements> read_matrix_elements(const std::filesystem::path& path) {
  LineReader lines(path);
  std::vector<KPointElements> list;
  while (lines.next()) {
    KPointElements point;
    point.k = take_k(lines);
    const int n_diagonal = lines.integer("the number of diagonal elements");
    const int n_off = lines.integer("the number of off-diagonal elements");
    if (n_diagonal < 0 || n_off < 0) lines.fail("counts that are not negative");
    for (int i = 0; i < n_diagonal; ++i) {
      lines.require_next("a diagonal element");
      const int spin = lines.integer("a spin");
      const int n = lines.integer("a band");
      const double re = lines.number("a real part");
      point.diagonal_ev[{spin, n}] = {re, lines.number("an imaginary part")};
    }
    for (int i = 0; i < n_off; ++i) {
      lines.require_next("an off-diagonal element");
      const int spin = lines.integer("a spin");
      const int n = lines.integer("a band");
      const int m = lines.integer("a band");
      const double re = lines.number("a real part");
      point.off_diagonal_ev[{spin, n, m}] = {re, lines.number("an imaginary part")};
    }
    list.push_back(std::move(point));
  }
  if (list.empty()) throw InvalidInput("'" + path.string() + "' holds no k-point");
  return list;
}

const KPointElements* find_k_point(const std::vector<KPointElements>& list, const Vec3& k) {
  for (const KPointElements& point : list) {
    const Vec3 d = point.k - k;
    if (std::abs(d[0]) < 1e-5 && std::abs(d[1]) < 1e-5 && std::abs(d[2]) < 1e-5) return &point;
  }
  return nullptr;
}

void write_quasiparticles(const std::filesystem::path& path,
                          const std::vector<QuasiparticleEntry>& entries) {
  const std::filesystem::path temporary = path.string() + ".tmp";
  {
    std::ofstream out(temporary);
    char line[128];
    for (std::size_t i = 0; i < entries.size();) {
      std::size_t end = i;
      while (end < entries.size() && entries[end].k == entries[i].k) ++end;
      const Vec3& k = entries[i].k;
      std::snprintf(line, sizeof line, "%13.9f%13.9f%13.9f%8zu\n", k[0], k[1], k[2], end - i);
      out << line;
      for (; i < end; ++i) {
        std::snprintf(line, sizeof line, "%8d%8d%15.9f%15.9f\n", entries[i].spin, entries[i].band,
                      entries[i].mean_field_ev, entries[i].quasiparticle_ev);
        out << line;
      }
    }
    if (!out.flush())
      throw StorageError("cannot write '" + temporary.string() + "'; is the disk full?");
  }
  std::error_code failure;
  std::filesystem::rename(temporary, path, failure);
  if (failure) throw StorageError("cannot rename to '" + path.string() + "': " + failure.message());
}

CoulombTable::Key CoulombTable::key(const Vec3& q, const IVec3& g) {
  return {
      std::lround(q[0] * 1e6), std::lround(q[1] * 1e6), std::lround(q[2] * 1e6), g[0], g[1], g[2]};
}

CoulombTable CoulombTable::read(const std::filesystem::path& path) {
  LineReader lines(path);
  CoulombTable table;
  table.name_ = path.string();
  while (lines.next()) {
    const Vec3 q{lines.number("q"), lines.number("q"), lines.number("q")};
    const IVec3 g{lines.integer("G"), lines.integer("G"), lines.integer("G")};
    const double value = lines.number("a Coulomb average (Ry Bohr³)");
    if (!(value > 0.0)) lines.fail("a positive Coulomb average");
    table.values_[key(q, g)] = value;
  }
  return table;
}

double CoulombTable::at(const Vec3& q, const IVec3& g) const {
  const auto found = values_.find(key(q, g));
  if (found != values_.end()) return found->second;
  char text[160];
  std::snprintf(text, sizeof text, "' has no value for q = (%.6f, %.6f, %.6f), G = (%d, %d, %d)",
                q[0], q[1], q[2], g[0], g[1], g[2]);
  throw InvalidInput("'" + name_ + text);
}

}  // namespace quasi::gw

#include "workers/thermal/input/tdep/tdep_force_constants.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/force_constants/text_scanner.hpp"

namespace quasi::thermal {
namespace {

constexpr std::int64_t kMaxTuples = 50'000'000;
constexpr int kMaxCell = 100;

/// Reads numbers at the beginning of a line. The rest of the line is a comment.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& file) : in_(file) {}

  std::int64_t integer(const char* what, std::int64_t low, std::int64_t high) {
    const std::int64_t value = in_.integer(what, low, high);
    in_.skip_line();
    return value;
  }
  double real(const char* what) {
    const double value = in_.real(what);
    in_.skip_line();
    return value;
  }
  void reals(const char* what, double* first, int n) {
    for (int i = 0; i < n; ++i) first[i] = in_.real(what);
    in_.skip_line();
  }
  Mat3 matrix(const char* what) {
    Mat3 m{};
    for (Vec3& row : m) reals(what, row.data(), 3);
    return m;
  }
  /// Reads a lattice vector in units of the cell, three numbers that are integers.
  Index3 cell() {
    Vec3 v{};
    reals("a lattice vector in units of the cell", v.data(), 3);
    Index3 result{};
    for (int d = 0; d < 3; ++d) {
      const double rounded = std::round(v[d]);
      if (std::fabs(v[d] - rounded) > 1e-6 || std::fabs(rounded) > kMaxCell)
        in_.fail("a lattice vector must be three integers between -100 and 100, got " +
                 std::to_string(v[d]));
      result[d] = static_cast<int>(rounded);
    }
    return result;
  }
  void skip_line() { in_.skip_line(); }
  bool at_end() { return in_.at_end(); }
  [[noreturn]] void fail(const std::string& what) const { in_.fail(what); }

 private:
  TextScanner in_;
};

/// Reads the head of a file of constants: the number of atoms and a cut-off that is not used.
void read_head(LineReader& in, int n_atoms) {
  const std::int64_t n = in.integer("the number of atoms", 1, 100000);
  if (n != n_atoms)
    in.fail("the file has " + std::to_string(n) + " atoms, infile.ucposcar or CONTROL has " +
            std::to_string(n_atoms));
  in.real("the cut-off");
}

/// Reads the charges behind the pairs. TDEP computes them from components, which are skipped.
std::optional<TdepCharges> read_polar_part(LineReader& in, int n_atoms) {
  const std::int64_t correction = in.integer("the kind of the polar correction", 0, 3);
  if (correction == 0) return {};
  if (correction != 3)
    in.fail("the polar correction " + std::to_string(correction) +
            " is of an old version of TDEP; extract the constants again with --polar");
  TdepCharges charges;
  charges.epsilon = in.matrix("the dielectric tensor");
  in.real("the Ewald parameter");
  const auto n = static_cast<int>(in.integer("the number of components of the charges", 0, 10000));
  std::vector<double> row(static_cast<std::size_t>(std::max(n, 1)));
  for (int i = 0; i < n; ++i) in.real("a component of the charges");
  for (int i = 0; i < 9 * n_atoms && n > 0; ++i)
    in.reals("a coefficient of the charges", row.data(), n);
  for (int atom = 0; atom < n_atoms; ++atom)
    charges.born.push_back(in.matrix("an effective charge"));
  return charges;
}

}  // namespace

TdepSecondOrder read_tdep_second_order(const std::filesystem::path& file, int n_atoms,
                                       double unit) {
  LineReader in(file);
  read_head(in, n_atoms);
  TdepSecondOrder result;
  SecondOrder& constants = result.constants;
  constants.n_atoms = n_atoms;
  double largest = 0.0, worst_sum = 0.0;
  for (int atom = 0; atom < n_atoms; ++atom) {
    std::set<std::array<int, 4>> seen;
    double sum[9] = {};
    const std::int64_t n = in.integer("the number of neighbours", 1, kMaxTuples);
    for (std::int64_t pair = 0; pair < n; ++pair) {
      const auto other = static_cast<int>(in.integer("the atom of a neighbour", 1, n_atoms)) - 1;
      const Index3 cell = in.cell();
      if (!seen.insert({other, cell[0], cell[1], cell[2]}).second)
        in.fail("atom " + std::to_string(atom + 1) + " lists neighbour " +
                std::to_string(pair + 1) + " twice");
      const Mat3 block = in.matrix("a force constant");
      SecondOrder::Image image{.atom = other, .other = atom, .cell = cell, .weight = 1.0};
      // Φ(i,0; j,R) transposed is Φ(j,R; i,0), the pairing of SecondOrder.
      for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
          image.value[static_cast<std::size_t>(3 * b + a)] = unit * block[a][b];
          sum[3 * a + b] += block[a][b];
          largest = std::max(largest, std::fabs(block[a][b]));
        }
      constants.images.push_back(image);
    }
    for (const double s : sum) worst_sum = std::max(worst_sum, std::fabs(s));
  }
  constants.raw_acoustic_sum = largest > 0.0 ? worst_sum / largest : 0.0;
  result.charges = read_polar_part(in, n_atoms);
  return result;
}

SparseForceConstants read_tdep_anharmonic(const std::filesystem::path& file, int order,
                                          int n_atoms) {
  LineReader in(file);
  read_head(in, n_atoms);
  SparseForceConstants result{.order = order};
  const int rows = result.tensor_size() / 3;
  std::map<std::vector<int>, std::vector<double>> blocks;  // by atoms, then cells
  for (int atom = 0; atom < n_atoms; ++atom) {
    const std::int64_t n = in.integer("the number of tuples of an atom", 0, kMaxTuples);
    for (std::int64_t tuple = 0; tuple < n; ++tuple) {
      std::vector<int> key;
      for (int slot = 0; slot < order; ++slot)
        key.push_back(static_cast<int>(in.integer("an atom of a tuple", 1, n_atoms)) - 1);
      if (key[0] != atom)
        in.fail("tuple " + std::to_string(tuple + 1) + " of atom " + std::to_string(atom + 1) +
                " begins with atom " + std::to_string(key[0] + 1));
      const Index3 home = in.cell();
      for (int slot = 1; slot < order; ++slot) {
        const Index3 cell = in.cell();
        for (int d = 0; d < 3; ++d) key.push_back(cell[d] - home[d]);
      }
      auto& tensor =
          blocks.try_emplace(std::move(key), static_cast<std::size_t>(3 * rows), 0.0).first->second;
      for (int row = 0; row < rows; ++row) {
        Vec3 values{};
        in.reals("a force constant", values.data(), 3);
        for (int i = 0; i < 3; ++i) tensor[static_cast<std::size_t>(3 * row + i)] += values[i];
      }
      ++result.blocks_read;
    }
  }
  if (blocks.empty()) in.fail("the file lists no constants");
  for (const auto& [key, tensor] : blocks) result.append(key, tensor);
  return result;
}

void read_tdep_isotopes(const std::filesystem::path& file, Crystal& crystal) {
  LineReader in(file);
  for (std::size_t atom = 0; atom < crystal.mass_amu.size(); ++atom) {
    const std::int64_t n = in.integer("the number of isotopes of an atom", 1, 100);
    std::vector<std::array<double, 2>> isotopes(static_cast<std::size_t>(n));
    double total = 0.0, mean = 0.0, variance = 0.0;
    for (auto& isotope : isotopes) {
      in.reals("a fraction and a mass", isotope.data(), 2);
      if (!(isotope[0] >= 0.0) || !(isotope[1] > 0.0))
        in.fail("fractions must not be negative, and masses must be positive");
      total += isotope[0];
      mean += isotope[0] * isotope[1];
    }
    if (std::fabs(total - 1.0) > 1e-3)
      in.fail("the fractions of atom " + std::to_string(atom + 1) + " add up to " +
              std::to_string(total) + "; they must add up to 1 within 0.001");
    mean /= total;
    for (const auto& [fraction, mass] : isotopes)
      variance += fraction / total * (1.0 - mass / mean) * (1.0 - mass / mean);
    crystal.mass_amu[atom] = mean;
    crystal.g_factor[atom] = variance;
  }
}

TdepCharges read_tdep_charges(const std::filesystem::path& file, int n_atoms) {
  LineReader in(file);
  TdepCharges charges;
  charges.epsilon = in.matrix("the dielectric tensor");
  for (int atom = 0; atom < n_atoms; ++atom)
    charges.born.push_back(in.matrix("an effective charge"));
  return charges;
}

double read_tdep_temperature_k(const std::filesystem::path& file) {
  LineReader in(file);
  in.real("the number of atoms");
  in.real("the number of configurations");
  in.real("the time step");
  return in.real("the temperature");
}

}  // namespace quasi::thermal

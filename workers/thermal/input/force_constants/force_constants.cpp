#include "workers/thermal/input/force_constants/force_constants.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/thermal/input/force_constants/supercell_check.hpp"
#include "workers/thermal/input/force_constants/text_scanner.hpp"

namespace quasi::thermal {
namespace {

constexpr double kLatticeResidue = 0.05;  // docs/theory/thermal.md 1.3
constexpr int kMaxCell = 100;             // lattice coordinates of a force constant's cell
constexpr std::int64_t kMaxBlocks = 50'000'000;

std::string short_number(double value) {
  std::ostringstream out;
  out.precision(4);
  out << value;
  return out.str();
}

std::int64_t parse_count(std::string_view token, const TextScanner& in, const char* what) {
  std::int64_t value = 0;
  for (const char c : token) {
    if (c < '0' || c > '9' || value > (std::int64_t{1} << 40))
      in.fail(std::string(what) + " must be a positive integer, got '" +
              std::string(token.substr(0, 40)) + "'");
    value = value * 10 + (c - '0');
  }
  return value;
}

void measure_acoustic_sum(SecondOrder& constants) {
  const std::int64_t n_cells = constants.n_cells();
  double largest = 0.0;
  double worst = 0.0;
  for (int atom = 0; atom < constants.n_atoms; ++atom) {
    double sum[9] = {};
    for (int other = 0; other < constants.n_atoms; ++other)
      for (std::int64_t cell = 0; cell < n_cells; ++cell)
        for (int e = 0; e < 9; ++e) {
          const double value =
              constants.value[((atom * constants.n_atoms + other) * n_cells + cell) * 9 + e];
          sum[e] += value;
          largest = std::max(largest, std::fabs(value));
        }
    for (const double s : sum) worst = std::max(worst, std::fabs(s));
  }
  constants.raw_acoustic_sum = largest > 0.0 ? worst / largest : 0.0;
}

/// Subtracts from each diagonal block at the origin the sum over all neighbours
/// (docs/theory/thermal.md 1.5).
void impose_acoustic_sum(SecondOrder& constants) {
  const std::int64_t n_cells = constants.n_cells();
  for (int atom = 0; atom < constants.n_atoms; ++atom)
    for (int e = 0; e < 9; ++e) {
      double sum = 0.0;
      for (int other = 0; other < constants.n_atoms; ++other)
        for (std::int64_t cell = 0; cell < n_cells; ++cell)
          sum += constants.value[((atom * constants.n_atoms + other) * n_cells + cell) * 9 + e];
      constants.value[((atom * constants.n_atoms + atom) * n_cells) * 9 + e] -= sum;
    }
}

}  // namespace

void finish_second_order(SecondOrder& constants, const Control& control) {
  check_supercell(constants, control.where({"scell"}));
  measure_acoustic_sum(constants);
  if (control.acoustic_sum_rule) impose_acoustic_sum(constants);
}

SecondOrder read_force_constants_2nd(const std::filesystem::path& file, const Control& control,
                                     const Crystal& crystal) {
  TextScanner in(file);
  const int n_atoms = crystal.n_atoms();
  SecondOrder result{.supercell = control.supercell, .n_atoms = n_atoms, .value = {}};
  const std::int64_t n_cells = result.n_cells();
  const std::int64_t n_super = n_atoms * n_cells;
  const auto header = in.line_words("the number of supercell atoms");
  if (header.size() > 2)
    in.fail("expected one or two integers (supercell atoms, or rows and columns)");
  const std::int64_t rows = parse_count(header[0], in, "the number of rows");
  const std::int64_t columns =
      header.size() == 2 ? parse_count(header[1], in, "the number of columns") : rows;
  if (columns != n_super || (rows != n_super && rows != n_atoms))
    in.fail("the file is for " + std::to_string(columns) +
            " supercell atoms, but natoms · scell = " + std::to_string(n_atoms) + " · " +
            std::to_string(control.supercell[0]) + "·" + std::to_string(control.supercell[1]) +
            "·" + std::to_string(control.supercell[2]) + " = " + std::to_string(n_super) +
            "; correct 'scell' in CONTROL");
  if (static_cast<double>(rows) * static_cast<double>(columns) * 20.0 >
      static_cast<double>(in.bytes_left()))
    in.fail("the file is too short for " + std::to_string(rows) + " × " + std::to_string(columns) +
            " blocks; is it truncated?");

  result.value.assign(static_cast<std::size_t>(n_atoms * n_atoms * n_cells * 9), 0.0);
  std::vector<char> seen(static_cast<std::size_t>(n_atoms * n_atoms * n_cells), 0);
  const double unit = control.constants().ev_per_a2_amu_to_omega2;
  // Supercell atom p is cell (i,j,k) of atom κ: p = ((κ n3 + k) n2 + j) n1 + i, so a block's pair
  // of atoms and its cell are quotient and remainder of p by the number of cells.
  for (std::int64_t pair = 0; pair < rows * columns; ++pair) {
    const std::int64_t p = in.integer("a block's first atom", 1, n_super) - 1;
    const std::int64_t q = in.integer("a block's second atom", 1, n_super) - 1;
    double block[9];
    for (double& element : block) element = in.real("a force constant") * unit;
    if (p % n_cells != 0) continue;  // first atom in the origin cell only
    // C(κ,R; κ',0) of the convention in use is Φ(κ',0; κ,R), transposed by permutation symmetry.
    const std::int64_t origin = p / n_cells;
    const std::int64_t atom = q / n_cells;
    const std::int64_t index = (atom * n_atoms + origin) * n_cells + q % n_cells;
    seen[static_cast<std::size_t>(index)] = 1;
    for (int a = 0; a < 3; ++a)
      for (int b = 0; b < 3; ++b)
        result.value[static_cast<std::size_t>(index * 9 + b * 3 + a)] = block[a * 3 + b];
  }
  const auto gap = std::find(seen.begin(), seen.end(), 0);
  if (gap != seen.end())
    throw InvalidInput(
        file.filename().string() + ": the blocks of atom " +
        std::to_string((gap - seen.begin()) / n_cells % n_atoms + 1) +
        " of the primitive cell are not all there; was the file written for another supercell?");
  finish_second_order(result, control);
  return result;
}

namespace {

/// The head of an espresso.ifc2: lattice parameter, types and positions.
struct EspressoHead {
  double alat_nm = 0.0;
  std::vector<Vec3> position_nm;  ///< [atom]
};

EspressoHead read_espresso_head(TextScanner& in, int n_atoms, double bohr_nm) {
  const std::int64_t n_types = in.integer("the number of types", 1, 1000);
  const std::int64_t nat = in.integer("the number of atoms", 1, 100000);
  if (nat != n_atoms)
    in.fail("the file has " + std::to_string(nat) +
            " atoms, CONTROL has natoms = " + std::to_string(n_atoms));
  const std::int64_t ibrav = in.integer("ibrav", -20, 100);
  double celldm[6];
  for (double& value : celldm) value = in.real("celldm");
  if (!(celldm[0] > 0.0)) in.fail("celldm(1) must be positive");
  if (ibrav == 0)
    for (int i = 0; i < 9; ++i) in.real("the lattice");
  for (std::int64_t t = 0; t < n_types; ++t) {
    in.integer("a type's number", 1, n_types);
    in.word("a type's label");
    in.real("a type's mass");
  }
  EspressoHead head{.alat_nm = celldm[0] * bohr_nm,
                    .position_nm = std::vector<Vec3>(static_cast<std::size_t>(n_atoms))};
  for (int atom = 0; atom < n_atoms; ++atom) {
    in.integer("an atom's number", atom + 1, atom + 1);
    in.integer("an atom's type", 1, n_types);
    for (double& x : head.position_nm[atom]) x = in.real("an atom's position") * head.alat_nm;
  }
  return head;
}

/// The tensors are tied to the positions of the file: the vectors between atoms, images included,
/// must be those of the deck.
void check_espresso_positions(const EspressoHead& head, const Control& control,
                              const Crystal& crystal) {
  if (control.allow_inconsistent_position) return;
  const auto text = [](const Vec3& v) {
    return "(" + short_number(v[0]) + ", " + short_number(v[1]) + ", " + short_number(v[2]) + ")";
  };
  for (int atom = 1; atom < crystal.n_atoms(); ++atom) {
    const Vec3 there = head.position_nm[atom] - head.position_nm[0];
    const Vec3 here = crystal.cartesian_nm(crystal.position[atom] - crystal.position[0]);
    if (length(there - here) <= 0.01 * head.alat_nm) continue;
    const Vec3 fractional = inverse(transpose(crystal.lattice_nm)) * there;
    throw InvalidInput(
        control.where({"positions"}) + ": 'positions' puts atom " + std::to_string(atom + 1) +
        " at " + text(here) + " nm from atom 1, but espresso.ifc2 was computed for " + text(there) +
        " nm, that is fractional " + text(fractional) +
        " relative to atom 1; correct 'positions' (the periodic image matters), or set "
        "allow_inconsistent_position = .true. to run the deck as it is");
  }
}

/// Reads over the dielectric tensor and the Born charges: those of CONTROL are used.
void skip_espresso_dielectric(TextScanner& in, int n_atoms) {
  const std::string_view dielectric = in.word("T or F (dielectric tensor)");
  if (dielectric == "T" || dielectric == "t") {
    for (int i = 0; i < 9; ++i) in.real("the dielectric tensor");
    for (int atom = 0; atom < n_atoms; ++atom) {
      in.integer("an atom's number", 1, n_atoms);
      for (int i = 0; i < 9; ++i) in.real("a Born charge");
    }
  } else if (dielectric != "F" && dielectric != "f") {
    in.fail("expected T or F (dielectric tensor), got '" + std::string(dielectric.substr(0, 40)) +
            "'");
  }
}

Index3 read_espresso_supercell(TextScanner& in, const Index3& wanted) {
  Index3 supercell{};
  for (int& n : supercell) n = static_cast<int>(in.integer("the supercell", 1, 1000));
  const auto text = [](const Index3& n) {
    return std::to_string(n[0]) + " " + std::to_string(n[1]) + " " + std::to_string(n[2]);
  };
  if (supercell != wanted)
    in.fail("the file's supercell is " + text(supercell) + ", 'scell' in CONTROL is " +
            text(wanted) + "; correct 'scell'");
  return supercell;
}

/// Fills in the blocks of `result`, times `unit`.
void read_espresso_blocks(TextScanner& in, double unit, SecondOrder& result) {
  const int n_atoms = result.n_atoms;
  const std::int64_t n_cells = result.n_cells();
  if (9.0 * n_atoms * n_atoms * static_cast<double>(n_cells) * 8.0 >
      static_cast<double>(in.bytes_left()))
    in.fail("the file is too short for its supercell; is it truncated?");
  result.value.assign(static_cast<std::size_t>(n_atoms * n_atoms * n_cells * 9), 0.0);
  for (int group = 0; group < 9 * n_atoms * n_atoms; ++group) {
    const std::int64_t a = in.integer("a group's first direction", 1, 3) - 1;
    const std::int64_t b = in.integer("a group's second direction", 1, 3) - 1;
    const std::int64_t atom = in.integer("a group's first atom", 1, n_atoms) - 1;
    const std::int64_t other = in.integer("a group's second atom", 1, n_atoms) - 1;
    for (std::int64_t cell = 0; cell < n_cells; ++cell) {
      std::int64_t at = 0;
      std::int64_t stride = 1;
      for (int d = 0; d < 3; ++d) {
        at += stride * (in.integer("a cell index", 1, result.supercell[d]) - 1);
        stride *= result.supercell[d];
      }
      result.value[static_cast<std::size_t>(((atom * n_atoms + other) * n_cells + at) * 9 + a * 3 +
                                            b)] = in.real("a force constant") * unit;
    }
  }
}

}  // namespace

SecondOrder read_espresso_ifc2(const std::filesystem::path& file, const Control& control,
                               const Crystal& crystal) {
  TextScanner in(file);
  const PhysicalConstants& constants = control.constants();
  const EspressoHead head = read_espresso_head(in, crystal.n_atoms(), constants.bohr_nm);
  check_espresso_positions(head, control, crystal);
  skip_espresso_dielectric(in, crystal.n_atoms());
  SecondOrder result{.supercell = read_espresso_supercell(in, control.supercell),
                     .n_atoms = crystal.n_atoms(),
                     .value = {}};
  // Ry/bohr² → (rad/ps)² amu: mω² = C with m in Rydberg mass units and ω in Ry/ħ.
  read_espresso_blocks(
      in, constants.rydberg_rad_ps * constants.rydberg_rad_ps / constants.amu_rydberg_mass, result);
  measure_acoustic_sum(result);
  impose_acoustic_sum(result);
  return result;
}

SecondOrder read_second_order(const std::filesystem::path& directory, const Control& control,
                              const Crystal& crystal) {
  return control.espresso
             ? read_espresso_ifc2(directory / "espresso.ifc2", control, crystal)
             : read_force_constants_2nd(directory / "FORCE_CONSTANTS_2ND", control, crystal);
}

SparseForceConstants read_sparse_force_constants(const std::filesystem::path& file, int order,
                                                 const Crystal& crystal) {
  TextScanner in(file);
  SparseForceConstants read{.order = order};
  const int size = read.tensor_size();
  const std::int64_t n_blocks = in.integer("the number of blocks", 1, kMaxBlocks);
  if (static_cast<double>(n_blocks) * size * (2.0 * order + 2.0) >
      static_cast<double>(in.bytes_left()))
    in.fail("the file is too short for " + std::to_string(n_blocks) + " blocks; is it truncated?");
  const Mat3 to_cell = inverse(transpose(crystal.lattice_nm));
  // Sorted by atoms and cells; the same tuple given twice is summed.
  std::map<std::vector<int>, std::vector<double>> blocks;
  for (std::int64_t block = 1; block <= n_blocks; ++block) {
    in.integer("a block's number");
    std::vector<int> key(static_cast<std::size_t>(order));
    for (int leg = 1; leg < order; ++leg) {
      Vec3 angstrom;
      for (double& x : angstrom) x = in.real("a cell vector");
      const Vec3 exact = to_cell * (0.1 * angstrom);
      for (const double x : exact) {
        const double rounded = std::round(x);
        if (std::fabs(x - rounded) > kLatticeResidue || std::fabs(rounded) > kMaxCell)
          in.fail("the cell vector of atom " + std::to_string(leg + 1) + " in block " +
                  std::to_string(block) + " is not a lattice vector (coordinate " +
                  short_number(x) + ", residue limit " + short_number(kLatticeResidue) +
                  "); is the file for another lattice constant, or are "
                  "atom positions given?");
        key.push_back(static_cast<int>(rounded));
      }
    }
    for (int leg = 0; leg < order; ++leg)
      key[static_cast<std::size_t>(leg)] =
          static_cast<int>(in.integer("an atom number", 1, crystal.n_atoms())) - 1;
    std::vector<double>& tensor =
        blocks.try_emplace(std::move(key), static_cast<std::size_t>(size), 0.0).first->second;
    for (int element = 0; element < size; ++element) {
      std::int64_t at = 0;
      for (int d = 0; d < order; ++d) at = at * 3 + in.integer("a direction", 1, 3) - 1;
      tensor[static_cast<std::size_t>(at)] += in.real("a force constant");
    }
  }
  if (!in.at_end()) in.fail("numbers follow the last of " + std::to_string(n_blocks) + " blocks");
  read.blocks_read = n_blocks;
  for (const auto& [key, tensor] : blocks) read.append(key, tensor);
  return read;
}

void check_sum_rule(const SparseForceConstants& constants, const std::string& file,
                    const Control& control, double tolerance) {
  const double violation = constants.tensor_sum_rule.value_or(sum_rule_violation(constants));
  if (violation > tolerance && !control.allow_broken_sum_rule)
    throw InvalidInput(file + ": the acoustic sum rule over the last atom is broken by " +
                       short_number(violation) + " of the largest element (limit " +
                       short_number(tolerance) +
                       "); impose it when making the file, or set allow_broken_sum_rule = .true.");
}

}  // namespace quasi::thermal

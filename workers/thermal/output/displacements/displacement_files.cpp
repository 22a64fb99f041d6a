#include "workers/thermal/output/displacements/displacement_files.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "workers/backend/error.hpp"

namespace quasi::thermal {
namespace {

constexpr int kDigits = 17;  ///< digits that a double needs

/// Prints the tensor of a pair, one row a line.
void print_matrix(std::ostream& out, const std::vector<double>& tensor) {
  for (std::size_t row = 0; row < 3; ++row)
    out << tensor[3 * row] << ' ' << tensor[3 * row + 1] << ' ' << tensor[3 * row + 2] << '\n';
}

}  // namespace

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw StorageError("cannot write '" + file.string() + "'");
}

void write_displaced_cells(const std::filesystem::path& file, const DisplacementPlan& plan) {
  std::ostringstream out;
  out.precision(kDigits);
  for (std::size_t number = 0; number < plan.cells().size(); ++number) {
    const PhonopyCell cell = plan.displaced(number);
    out << cell.n_atoms() << "\nLattice=\"";
    for (int e = 0; e < 9; ++e) out << (e == 0 ? "" : " ") << cell.lattice_angstrom[e / 3][e % 3];
    out << "\" Properties=species:S:1:pos:R:3 pbc=\"T T T\" cell=" << number << '\n';
    for (int atom = 0; atom < cell.n_atoms(); ++atom) {
      const Vec3 at = cell.cartesian_angstrom(atom);
      out << cell.symbol[atom] << ' ' << at[0] << ' ' << at[1] << ' ' << at[2] << '\n';
    }
  }
  write_text(file, out.str());
}

void write_plan(const std::filesystem::path& file, const DisplacementOptions& options) {
  const nlohmann::json plan{{"supercell", options.supercell},
                            {"order", options.order},
                            {"cutoff_3rd_angstrom", options.cutoff_3rd_angstrom},
                            {"cutoff_4th_angstrom", options.cutoff_4th_angstrom},
                            {"distance_angstrom", options.distance_angstrom},
                            {"symprec_angstrom", options.symprec_angstrom}};
  write_text(file, plan.dump(2) + "\n");
}

void write_second_order(const std::filesystem::path& file, const DisplacementPlan& plan,
                        const ClusterConstants& constants) {
  const SupercellGroup& group = plan.group();
  std::ostringstream out;
  out.precision(kDigits);
  out << group.n_sites() << '\n';
  for (int site = 0; site < group.n_sites(); ++site)
    for (int other = 0; other < group.n_sites(); ++other) {
      out << site + 1 << ' ' << other + 1 << '\n';
      print_matrix(out,
                   constants.at({group.relative_to(site, site), group.relative_to(other, site)}));
    }
  write_text(file, out.str());
}

void write_sparse_constants(const std::filesystem::path& file, const Mat3& lattice_angstrom,
                            const SparseForceConstants& constants) {
  const int order = constants.order;
  std::ostringstream out;
  out.precision(kDigits);
  out << constants.n_blocks() << '\n';
  for (std::int64_t block = 0; block < constants.n_blocks(); ++block) {
    out << '\n' << block + 1 << '\n';
    for (int leg = 0; leg + 1 < order; ++leg) {
      const int* cell = &constants.cell[static_cast<std::size_t>((block * (order - 1) + leg) * 3)];
      const Vec3 r =
          transpose(lattice_angstrom) * Vec3{double(cell[0]), double(cell[1]), double(cell[2])};
      out << r[0] << ' ' << r[1] << ' ' << r[2] << '\n';
    }
    for (int leg = 0; leg < order; ++leg)
      out << constants.atom[static_cast<std::size_t>(block * order + leg)] + 1
          << (leg + 1 == order ? '\n' : ' ');
    std::vector<int> axis(static_cast<std::size_t>(order), 0);
    std::size_t element = static_cast<std::size_t>(block * constants.tensor_size());
    do {
      for (const int x : axis) out << x + 1 << ' ';
      out << constants.tensor[element++] << '\n';
    } while (advance_digits(axis, 3));
  }
  write_text(file, out.str());
}

}  // namespace quasi::thermal

// Tests force constants by finite displacements: model crystals against their analytic constants,
// and files of forces that do not belong to a plan.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>

#include "examples/thermal/generate/stillinger_weber.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/support/solved_deck.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/displacement_commands.hpp"
#include "workers/thermal/input/displacements/extended_xyz.hpp"
#include "workers/thermal/input/displacements/vasprun.hpp"
#include "workers/thermal/output/displacements/displacement_files.hpp"
#include "workers/thermal/solver/displacements/force_sources.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

/// The relative error of a central difference is about h²/(0.5 Å)². With this h, in Å, it is
/// 2e-7, and the rounding of forces adds less than 1e-7 in the third order.
constexpr double kStep_angstrom = 2e-4;

PhonopyCell cell_of(const model::Structure& structure) {
  PhonopyCell cell{structure.lattice_angstrom, {}, structure.position, {}};
  for (const int type : structure.type) cell.symbol.push_back(structure.element[type]);
  return cell;
}

void write_poscar(const fs::path& file, const PhonopyCell& cell) {
  std::ofstream out(file);
  out.precision(17);
  out << "crystal\n1.0\n";
  for (const Vec3& a : cell.lattice_angstrom) out << a[0] << ' ' << a[1] << ' ' << a[2] << '\n';
  out << "Si\n" << cell.n_atoms() << "\nDirect\n";
  for (const Vec3& p : cell.position) out << p[0] << ' ' << p[1] << ' ' << p[2] << '\n';
}

PlanForces stillinger_weber_on(const DisplacementPlan& plan) {
  PlanForces forces;
  for (std::size_t cell = 0; cell < plan.cells().size(); ++cell)
    forces.push_back(stillinger_weber_forces(plan.displaced(cell)));
  return forces;
}

/// Returns the largest difference to the analytic derivatives, over the largest element.
/// Constants of second order are summed over images, as the supercell does.
double deviation(const DisplacementPlan& plan, const ClusterConstants& constants,
                 const model::ForceConstants& exact) {
  const Index3& n = plan.options().supercell;
  ClusterConstants wanted;
  double largest = 0.0;
  for (const auto& [key, value] : exact.block) {
    Cluster cluster;
    for (const model::Site& site : key) {
      const auto wrap = [&](int x) { return ((site.cell[x] % n[x]) + n[x]) % n[x]; };
      cluster.push_back(((site.atom * n[2] + wrap(2)) * n[1] + wrap(1)) * n[0] + wrap(0));
    }
    auto& tensor = wanted.try_emplace(cluster, value.size(), 0.0).first->second;
    for (std::size_t e = 0; e < value.size(); ++e) {
      tensor[e] += static_cast<double>(value[e]) * model::ForceConstants::kQuantum;
      largest = std::max(largest, std::fabs(tensor[e]));
    }
  }
  double apart = 0.0;
  for (const auto& [cluster, tensor] : constants) {
    const auto found = wanted.find(cluster);
    for (std::size_t e = 0; e < tensor.size(); ++e)
      apart =
          std::max(apart, std::fabs(tensor[e] - (found == wanted.end() ? 0.0 : found->second[e])));
  }
  for (const auto& [cluster, tensor] : wanted)
    EXPECT_TRUE(constants.contains(cluster)) << "a coupled cluster lies outside the cutoff";
  return apart / largest;
}

void expect_analytic_constants(const model::Structure& structure, DisplacementOptions options,
                               const std::vector<double>& limits) {
  const model::StillingerWeber potential;
  const DisplacementPlan plan(cell_of(structure), options);
  const PlanForces forces = stillinger_weber_on(plan);
  const auto terms = potential.terms(structure);
  for (int order = 2; order <= options.order; ++order)
    EXPECT_LT(deviation(plan, finite_differences(plan, forces, order),
                        model::derivatives(structure, terms, order)),
              limits[static_cast<std::size_t>(order - 2)])
        << "order " << order;
}

TEST(Displacements, GiveTheAnalyticConstantsOfDiamond) {
  expect_analytic_constants(model::diamond({}),
                            {.supercell = {3, 3, 3},
                             .order = 3,
                             .cutoff_3rd_angstrom = 4.0,
                             .distance_angstrom = kStep_angstrom},
                            {1e-6, 1e-6});
}

// The fourth order divides rounding errors of forces, 1e-14 eV/Å, by 8h³. With h = 0.002 Å that
// is 2e-7 eV/Å⁴, and the error of the difference is some 1e-5.
TEST(Displacements, GiveTheAnalyticFourthOrderOfDiamond) {
  expect_analytic_constants(model::diamond({}),
                            {.supercell = {3, 3, 3},
                             .order = 4,
                             .cutoff_3rd_angstrom = 4.0,
                             .cutoff_4th_angstrom = 4.0,
                             .distance_angstrom = 2e-3},
                            {1e-4, 1e-4, 1e-4});
}

// The rotations of a hexagonal crystal are no permutations of the axes, and two of its operations
// out of three need a translation.
TEST(Displacements, GiveTheAnalyticConstantsOfWurtzite) {
  expect_analytic_constants(model::wurtzite({}),
                            {.supercell = {3, 3, 2},
                             .order = 3,
                             .cutoff_3rd_angstrom = 4.0,
                             .distance_angstrom = kStep_angstrom},
                            {1e-6, 1e-6});
}

TEST(Displacements, SymmetryLeavesFewCells) {
  const PhonopyCell diamond = cell_of(model::diamond({}));
  DisplacementOptions options{.supercell = {3, 3, 3}};
  const DisplacementPlan plan(diamond, options);
  EXPECT_EQ(plan.cells().size(), 2U) << "the undisplaced cell and one atom along one axis";
  EXPECT_EQ(plan.group().n_operations(), 48);
  options.supercell = {3, 3, 2};
  EXPECT_LT(DisplacementPlan(diamond, options).group().n_operations(), 48)
      << "operations that do not map the supercell onto itself must be left out";
}

/// Holds a plan of silicon in a directory, and the forces on its cells as extended XYZ.
class DisplacementFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    write_poscar(poscar(), cell_of(model::diamond({})));
    displace(poscar(), options_, plan_directory());
  }

  fs::path poscar() const { return directory_.path() / "silicon.vasp"; }
  fs::path plan_directory() const { return directory_.path() / "plan"; }
  fs::path deck() const { return directory_.path() / "deck"; }
  std::string collected(const std::string& forces) const {
    return collect(plan_directory(), {forces}, deck());
  }

  /// Writes forces beside the positions of displacements.xyz, as ASE does. `change` may edit the
  /// lines of the file.
  std::string with_forces(const std::function<void(std::vector<std::string>&)>& change = {}) const {
    const DisplacementPlan plan(read_poscar(poscar()), options_);
    std::ifstream in(plan_directory() / "displacements.xyz");
    std::vector<std::string> lines;
    std::string line;
    for (std::size_t cell = 0; cell < plan.cells().size(); ++cell) {
      const std::vector<Vec3> forces = stillinger_weber_forces(plan.displaced(cell));
      std::getline(in, line);
      lines.push_back(line);
      std::getline(in, line);
      const std::string columns = "pos:R:3";
      lines.push_back(
          line.replace(line.find(columns), columns.size(), "magmoms:R:1:pos:R:3:forces:R:3"));
      for (const Vec3& f : forces) {
        std::getline(in, line);
        std::ostringstream with;
        with.precision(17);
        with << line.substr(0, 2) << " 0.0" << line.substr(2) << ' ' << f[0] << ' ' << f[1] << ' '
             << f[2];
        lines.push_back(with.str());
      }
    }
    if (change) change(lines);
    const fs::path file = directory_.path() / "forces.xyz";
    std::ofstream out(file);
    for (const std::string& text : lines) out << text << '\n';
    return file.string();
  }

  /// Numbers of a file of the deck.
  std::vector<double> content(const char* name) const {
    std::ifstream in(deck() / name);
    std::vector<double> numbers;
    for (double x; in >> x;) numbers.push_back(x);
    return numbers;
  }

  /// Writes FORCES_FC3 as phono3py does. @param shift  of the order of the cells
  std::string with_phono3py_forces(std::size_t shift) const {
    const DisplacementPlan plan(read_poscar(poscar()), options_);
    const std::size_t n = plan.cells().size();
    const fs::path file = directory_.path() / "FORCES_FC3";
    std::ofstream out(file);
    out.precision(17);
    for (std::size_t cell = 0; cell < n; ++cell) {
      out << "# File: " << cell + 1 << "    \n# 1  0.01 0.0 0.0\n";
      for (const Vec3& f : stillinger_weber_forces(plan.displaced((cell + shift) % n)))
        out << "   " << f[0] << "   " << f[1] << "   " << f[2] << '\n';
    }
    return file.string();
  }

  void expect_refusal(const std::string& forces, const std::string& part) const {
    try {
      collected(forces);
      ADD_FAILURE() << "no refusal; expected: " << part;
    } catch (const InvalidInput& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(part), std::string::npos) << refusal.what();
    }
  }

  quasi::test::TemporaryDirectory directory_;
  DisplacementOptions options_{.supercell = {3, 3, 3},
                               .order = 3,
                               .cutoff_3rd_angstrom = 4.0,
                               .distance_angstrom = kStep_angstrom};
};

// The limit leaves ten times the error of the constants, because κ depends on their square.
TEST_F(DisplacementFiles, KappaOfDisplacementsEqualsThatOfAnalyticConstants) {
  collected("stillinger-weber");
  const std::vector<std::string> settings{"ngrid=4,4,4",    "T=300",          "isotopes=F",
                                          "autoisotopes=F", "masses=28.0855", "gfactors=0"};
  const auto own = test::solve_deck(deck(), settings);
  const auto analytic = test::solve_deck(test::model("silicon-sw"), settings);
  const TemperatureResult& found = own->run.by_temperature.front();
  const TemperatureResult& wanted = analytic->run.by_temperature.front();
  for (int i = 0; i < 3; ++i) {
    EXPECT_GT(wanted.kappa_rta_w_per_mk[i][i], 1.0);
    EXPECT_NEAR(found.kappa_rta_w_per_mk[i][i] / wanted.kappa_rta_w_per_mk[i][i], 1.0, 1e-5);
    EXPECT_NEAR(found.kappa_w_per_mk[i][i] / wanted.kappa_w_per_mk[i][i], 1.0, 1e-5);
  }
}

TEST_F(DisplacementFiles, ForcesOfAFileGiveTheConstantsOfThePotential) {
  collected("stillinger-weber");
  const auto second = content("FORCE_CONSTANTS_2ND"), third = content("FORCE_CONSTANTS_3RD");
  ASSERT_GT(third.size(), 1000U);
  collected(with_forces());
  const auto second_again = content("FORCE_CONSTANTS_2ND");
  const auto third_again = content("FORCE_CONSTANTS_3RD");
  ASSERT_EQ(second_again.size(), second.size());
  ASSERT_EQ(third_again.size(), third.size());
  for (std::size_t i = 0; i < second.size(); ++i) ASSERT_NEAR(second_again[i], second[i], 1e-9);
  for (std::size_t i = 0; i < third.size(); ++i) ASSERT_NEAR(third_again[i], third[i], 1e-5);
}

// Files of phono3py hold forces alone. Those of cells in another order do not drive the displaced
// atoms back.
TEST_F(DisplacementFiles, FilesOfPhono3pyGiveTheForces) {
  collected("stillinger-weber");
  const auto third = content("FORCE_CONSTANTS_3RD");
  collected(with_phono3py_forces(0));
  const auto third_again = content("FORCE_CONSTANTS_3RD");
  ASSERT_EQ(third_again.size(), third.size());
  for (std::size_t i = 0; i < third.size(); ++i) ASSERT_NEAR(third_again[i], third[i], 1e-5);
  expect_refusal(with_phono3py_forces(1), "do not drive the displaced atoms back");
  const fs::path file = directory_.path() / "FORCES_FC2";
  std::ofstream(file) << "# File: 1\n 0.0 0.0 nan\n";
  expect_refusal(file.string(), "FORCES_FC2 line 2: three finite numbers");
  std::ofstream(file) << "0.0 0.0 0.0\n";
  expect_refusal(file.string(), "FORCES_FC2 line 1: a comment '# File: 1'");
}

/// Writes the vasprun.xml of a cell, as VASP does after one ionic step. NELM is 60.
void write_vasprun(const fs::path& file, const PhonopyCell& cell, int electronic_steps) {
  std::ofstream out(file);
  out.precision(17);
  const auto vectors = [&](const char* name, const auto& list) {
    out << "   <varray name=\"" << name << "\" >\n";
    for (const Vec3& v : list)
      out << "    <v>  " << v[0] << "  " << v[1] << "  " << v[2] << " </v>\n";
    out << "   </varray>\n";
  };
  out << "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<modeling>\n <parameters>\n"
      << "   <i type=\"int\" name=\"NELM\">    60</i>\n </parameters>\n <atominfo>\n"
      << "  <array name=\"atoms\" >\n   <field type=\"string\">element</field>\n   <set>\n";
  for (const std::string& symbol : cell.symbol)
    out << "    <rc><c>" << symbol << "</c><c>   1</c></rc>\n";
  out << "   </set>\n  </array>\n </atominfo>\n <structure name=\"initialpos\" >\n";
  vectors("positions", std::vector<Vec3>(cell.position.size()));
  out << " </structure>\n <calculation>\n";
  for (int step = 0; step < electronic_steps; ++step) out << "  <scstep>\n  </scstep>\n";
  vectors("basis", cell.lattice_angstrom);
  vectors("positions", cell.position);
  vectors("forces", stillinger_weber_forces(cell));
  out << " </calculation>\n</modeling>\n";
}

TEST_F(DisplacementFiles, FilesOfVaspGiveTheForces) {
  const DisplacementPlan plan(read_poscar(poscar()), options_);
  std::vector<std::string> files;
  for (std::size_t cell = 0; cell < plan.cells().size(); ++cell) {
    files.push_back((directory_.path() / (std::to_string(cell) + ".xml")).string());
    write_vasprun(files.back(), plan.displaced(cell), 12);
    const ForceFrame frame = read_vasprun(files.back());
    const auto wanted = stillinger_weber_forces(plan.displaced(cell));
    ASSERT_EQ(frame.force_ev_per_angstrom, wanted);
    ASSERT_EQ(frame.symbol, plan.group().supercell().symbol);
  }
  const std::string report = collect(plan_directory(), files, deck());
  EXPECT_NE(report.find("cells read: 17"), std::string::npos) << report;
  std::swap(files[3], files[4]);
  EXPECT_THROW(collect(plan_directory(), files, deck()), InvalidInput) << "order of the files";
  write_vasprun(files[0], plan.displaced(0), 60);
  expect_refusal(files[0], "the forces are not converged; raise NELM");
  std::ofstream(files[0]) << "<modeling>";
  expect_refusal(files[0], "it contains no <calculation>");
  std::ofstream(files[0]) << "<calculation><i type=\"int\" name=\"NELM\"> 60</i>";
  expect_refusal(files[0], "did VASP end early?");
}

TEST_F(DisplacementFiles, ForcesOfAnotherPlanAreRefused) {
  const std::size_t lines_of_cell = 56;  // 54 atoms and two lines
  expect_refusal(with_forces([&](auto& lines) { lines.resize(lines.size() - lines_of_cell); }),
                 "frames, and the plan has");
  expect_refusal(with_forces([&](auto& lines) {
                   std::string& header = lines[lines_of_cell + 1];
                   header[header.find('"') + 1] = '1';
                 }),
                 "frame 1: vector 1 of the cell differs");
  expect_refusal(with_forces([&](auto& lines) {
                   std::swap_ranges(lines.begin() + lines_of_cell,
                                    lines.begin() + 2 * lines_of_cell,
                                    lines.begin() + 2 * lines_of_cell);
                 }),
                 "keep the order of the frames");
  expect_refusal(with_forces([&](auto& lines) { lines[lines_of_cell + 5][0] = 'G'; }),
                 "is Gi where the plan has Si");
  expect_refusal(with_forces([](auto& lines) { lines.pop_back(); }), "is it truncated?");
}

TEST_F(DisplacementFiles, ForcesThatWereNotConvergedAreRefused) {
  const std::size_t first_atom = 58;  // of frame 1
  expect_refusal(with_forces([&](auto& lines) {
                   std::string& atom = lines[first_atom];
                   atom.replace(atom.rfind(' ') + 1, std::string::npos, "0.5");
                 }),
                 "frame 1: the forces add up to");
  expect_refusal(with_forces([&](auto& lines) {
                   for (std::size_t line = first_atom; line < first_atom + 54; ++line)
                     for (int column = 0; column < 3; ++column)
                       lines[line] = lines[line].substr(0, lines[line].rfind(' '));
                   for (std::size_t line = first_atom; line < first_atom + 54; ++line)
                     lines[line] += " 0 0 0";
                 }),
                 "frame 1: all forces are zero");
  expect_refusal(with_forces([&](auto& lines) { lines[first_atom] += "nan"; }),
                 "is not a finite number");
}

TEST_F(DisplacementFiles, AFileWithoutForcesIsRefused) {
  expect_refusal((plan_directory() / "displacements.xyz").string(), "lacks forces:R:3");
  expect_refusal("lennard-jones", "is neither a file nor a potential");
}

TEST_F(DisplacementFiles, OptionsWithoutAnAnswerAreRefused) {
  const auto expect = [&](DisplacementOptions options, const std::string& part) {
    try {
      displace(poscar(), options, plan_directory());
      ADD_FAILURE() << "no refusal; expected: " << part;
    } catch (const InvalidInput& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(part), std::string::npos) << refusal.what();
    }
  };
  DisplacementOptions wrong = options_;
  wrong.cutoff_3rd_angstrom = 5.9;
  expect(wrong, "half of the shortest period of the supercell");
  wrong.cutoff_3rd_angstrom = 0.0;
  expect(wrong, "order 3 needs a length above 0");
  wrong = options_;
  wrong.order = 5;
  expect(wrong, "--order is 5");
  wrong = options_;
  wrong.supercell = {3, 0, 3};
  expect(wrong, "--supercell has 0");
  wrong = options_;
  wrong.distance_angstrom = -0.01;
  expect(wrong, "--distance-angstrom is -0.01");
}

}  // namespace
}  // namespace quasi::thermal

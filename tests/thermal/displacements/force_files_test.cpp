// Tests forces from files of VASP and Quantum ESPRESSO. An independent script writes the files as
// these programs print them.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/displacement_commands.hpp"
#include "workers/thermal/input/displacements/force_files.hpp"
#include "workers/thermal/input/phonopy/phonopy_cells.hpp"
#include "workers/thermal/solver/displacements/force_sources.hpp"

namespace quasi::thermal {
namespace {

namespace fs = std::filesystem;

/// Describes a format: the name that the script knows, and how coarsely the files are rounded.
struct Format {
  const char* name;
  double position_angstrom;
  double force_ev_per_angstrom;
};

// VASP prints 5 digits of positions and 6 of forces. Quantum ESPRESSO prints 7 digits of positions
// in units of the lattice constant, here 6 Å, which has 6 digits itself, and 8 digits of forces in
// Ry/bohr. The XML has 16 digits.
constexpr Format kOutcar{"outcar", 0.51e-5, 0.51e-6};
constexpr Format kEspresso{"espresso", 1.5e-6, 1.4e-7};
constexpr Format kEspressoXml{"espresso-xml", 1e-12, 1e-12};

/// Holds a plan of silicon, and the frames of its cells with forces.
class ForceFiles : public ::testing::TestWithParam<Format> {
 protected:
  void SetUp() override {
    std::ofstream(directory_.path() / "POSCAR")
        << "silicon\n1.0\n0.0 2.7 2.7\n2.7 0.0 2.7\n2.7 2.7 0.0\nSi\n2\nDirect\n0 0 0\n"
           "0.25 0.25 0.25\n";
    displace(directory_.path() / "POSCAR", options_, plan_directory());
    const DisplacementPlan plan(read_poscar(directory_.path() / "POSCAR"), options_);
    for (std::size_t cell = 0; cell < plan.cells().size(); ++cell) {
      const PhonopyCell displaced = plan.displaced(cell);
      ForceFrame frame{displaced.lattice_angstrom, displaced.symbol, {}, {}};
      for (int atom = 0; atom < displaced.n_atoms(); ++atom)
        frame.position_angstrom.push_back(displaced.cartesian_angstrom(atom));
      frame.force_ev_per_angstrom = stillinger_weber_forces(displaced);
      frames_.push_back(frame);
    }
  }

  fs::path plan_directory() const { return directory_.path() / "plan"; }

  /// Lets the script write frames. Returns the files in their order.
  std::vector<std::string> written(const std::vector<ForceFrame>& frames,
                                   const std::string& variant = "") const {
    const fs::path source = directory_.path() / "frames.xyz";
    std::ofstream out(source);
    out.precision(17);
    for (const ForceFrame& frame : frames) {
      out << frame.symbol.size() << "\nLattice=\"";
      for (int e = 0; e < 9; ++e)
        out << (e == 0 ? "" : " ") << frame.lattice_angstrom[e / 3][e % 3];
      out << "\" Properties=species:S:1:pos:R:3:forces:R:3\n";
      for (std::size_t atom = 0; atom < frame.symbol.size(); ++atom) {
        out << frame.symbol[atom];
        for (const double x : frame.position_angstrom[atom]) out << ' ' << x;
        for (const double x : frame.force_ev_per_angstrom[atom]) out << ' ' << x;
        out << '\n';
      }
    }
    out.close();
    const fs::path target = directory_.path() / "files";
    const std::string command = std::string(QUASI_PYTHON) + " " + QUASI_WRITE_FORCES + " " +
                                GetParam().name + " " + source.string() + " " + target.string() +
                                " " + variant;
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    std::vector<std::string> files;
    for (std::size_t frame = 0; frame < frames.size(); ++frame)
      files.push_back((target / std::to_string(frame)).string());
    return files;
  }

  void expect_equal(const ForceFrame& found, const ForceFrame& wanted) const {
    ASSERT_EQ(found.symbol, wanted.symbol);
    ASSERT_EQ(found.position_angstrom.size(), wanted.position_angstrom.size());
    ASSERT_EQ(found.force_ev_per_angstrom.size(), wanted.force_ev_per_angstrom.size());
    for (int axis = 0; axis < 3; ++axis) {
      for (int i = 0; i < 3; ++i)
        EXPECT_NEAR(found.lattice_angstrom[i][axis], wanted.lattice_angstrom[i][axis], 1e-5);
      for (std::size_t atom = 0; atom < wanted.symbol.size(); ++atom) {
        ASSERT_NEAR(found.position_angstrom[atom][axis], wanted.position_angstrom[atom][axis],
                    GetParam().position_angstrom);
        ASSERT_NEAR(found.force_ev_per_angstrom[atom][axis],
                    wanted.force_ev_per_angstrom[atom][axis], GetParam().force_ev_per_angstrom);
      }
    }
  }

  void expect_refusal(const std::string& file, const std::string& part) const {
    try {
      read_force_file(file);
      ADD_FAILURE() << "no refusal; expected: " << part;
    } catch (const InvalidInput& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(part), std::string::npos) << refusal.what();
      EXPECT_NE(std::string(refusal.what()).find(file), std::string::npos) << refusal.what();
    }
  }

  bool is_outcar() const { return std::string(GetParam().name) == "outcar"; }
  bool is_xml() const { return std::string(GetParam().name) == "espresso-xml"; }

  quasi::test::TemporaryDirectory directory_;
  DisplacementOptions options_{.supercell = {2, 2, 2}, .order = 3, .cutoff_3rd_angstrom = 3.0};
  std::vector<ForceFrame> frames_;
};

TEST_P(ForceFiles, GiveTheFramesAndADeck) {
  const std::vector<std::string> files = written(frames_);
  for (std::size_t cell = 0; cell < files.size(); ++cell) {
    const std::vector<ForceFrame> found = read_force_file(files[cell]);
    ASSERT_EQ(found.size(), 1U);
    expect_equal(found.front(), frames_[cell]);
  }
  const std::string report = collect(plan_directory(), files, directory_.path() / "deck");
  EXPECT_NE(report.find("cells read: " + std::to_string(files.size())), std::string::npos);
  EXPECT_TRUE(fs::exists(directory_.path() / "deck" / "FORCE_CONSTANTS_3RD"));
}

// The elements follow each other in two runs, which VASP writes as three POTCARs. Numbers of the
// lattice fill their columns, so that no blank stands before a minus sign.
TEST_P(ForceFiles, KeepTheOrderOfElementsAndSigns) {
  const ForceFrame wanted{{Vec3{0.0, -10.5, -11.25}, Vec3{-12.5, 0.0, -10.125}, Vec3{10, 11, 0}},
                          {"Ga", "Ga", "N"},
                          {Vec3{0, 0, 0}, Vec3{-1.5, 2.25, 0.5}, Vec3{3, -4, 5}},
                          {Vec3{-1, 2, -3}, Vec3{0.5, -2.5, 2}, Vec3{0.5, 0.5, 1}}};
  expect_equal(read_force_file(written({wanted}).front()).front(), wanted);
}

TEST_P(ForceFiles, ThatAreNotConvergedAreRefused) {
  expect_refusal(written({frames_[1]}, "unconverged").front(),
                 is_outcar() ? "did not reach EDIFF" : "the electrons did not converge");
}

TEST_P(ForceFiles, ThatEndEarlyAreRefused) {
  expect_refusal(written({frames_[1]}, "truncated").front(), "end early?");
}

TEST_P(ForceFiles, SeveralStepsGiveTheLastOrARefusal) {
  const std::string file = written({frames_[1]}, "several-steps").front();
  if (is_outcar() || is_xml())
    expect_equal(read_force_file(file).front(), frames_[1]);
  else
    expect_refusal(file, "it holds several sets of forces");
}

TEST_P(ForceFiles, WithoutForcesAreRefused) {
  expect_refusal(written({frames_[1]}, "no-forces").front(),
                 is_outcar() ? "no TOTAL-FORCE"
                 : is_xml()  ? "tprnfor"
                             : "no 'Forces acting on atoms' was found");
}

std::string name_of(const ::testing::TestParamInfo<Format>& format) {
  std::string name = format.param.name;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Formats, ForceFiles, ::testing::Values(kOutcar, kEspresso, kEspressoXml),
                         name_of);

}  // namespace
}  // namespace quasi::thermal

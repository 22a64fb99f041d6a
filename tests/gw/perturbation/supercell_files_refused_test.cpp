// Displaced supercells that do not fit are refused before Σ, with the file, the value and a
// remedy.

#include <gtest/gtest.h>

#include <functional>

#include "tests/gw/support/planned_deck.hpp"
#include "tests/gw/support/supercell_files.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/perturbation/displaced_files/file_displacement.hpp"

namespace quasi::gw {
namespace {

using test::DisplacedSupercell;
using test::refusal_of_deck;
using test::SupercellFiles;

const std::string kDeck =
    "[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n[epsilon]\ncutoff_ry = 3.0\n"
    "[sigma]\nband_max = 5\n[perturbation]\ndisplaced = [\"a+\", \"a-\"]\n";
const std::string kThird = "q = [[0.3333, 0, 0]]\n";

/// A change of the files, further lines of the deck, and words of the refusal.
struct BrokenSupercell {
  const char* name;
  std::function<void(const SupercellFiles&)> change;
  std::string table;
  const char *field, *remedy;
};

/// Returns a function that damages the files of a test: it rewrites VSC of the crystal displaced by
/// +h with a changed header.
std::function<void(const SupercellFiles&)> header(
    const std::function<void(MeanFieldHeader&)>& change) {
  return [change](const SupercellFiles& files) {
    const auto path = files.directory.path() / "a+/VSC";
    PlaneWaveField field = read_field(path, "VSC");
    change(field.header);
    write_field(path, field);
  };
}
/// Returns the change of VKB in the folder of +h.
std::function<void(const SupercellFiles&)> projectors(
    const std::function<void(Projectors&)>& change) {
  return [change](const SupercellFiles& files) {
    const auto path = files.directory.path() / "a+/VKB";
    Projectors read = read_projectors(path);
    change(read);
    write_projectors(path, read);
  };
}
/// Returns a function that writes both folders anew.
std::function<void(const SupercellFiles&)> pair(const DisplacedSupercell& wanted) {
  return [wanted](const SupercellFiles& files) { files.write_pair("a", wanted); };
}
void nothing(const SupercellFiles&) {}

const BrokenSupercell kBroken[] = {
    {"NoPointAtKPlusQ", nothing, "q = [[0.5, 0, 0]]\n",
     "perturbation.q holds 0.5 along b1, but WFN has the k-point k + q only at multiples of 1/3",
     "give a WFN with that grid"},
    {"WaveVectorOutside", nothing, "q = [[3, 0, 0]]\n", "outside -1",
     "units of the reciprocal lattice vectors"},
    {"WaveVectorTwice", nothing, "q = [[0.3333, 0, 0], [-0.6667, 0, 0]]\n", "names one wave vector",
     "name it once"},
    {"NoWholeWaves", pair({.repeats = {1, 1, 1}, .k = {Vec3{}, {1. / 3, 0, 0}, {2. / 3, 0, 0}}}),
     kThird,
     "(0.333333, 0.000000, 0.000000), but the lattice vectors (1, 0, 0) (0, 1, 0) (0, 0, 1)",
     "displace the atom in a supercell that does"},
    {"NoPointInProjectors", pair({.repeats = {1, 1, 1}}), "",
     "a+/VKB' has no projectors for the k-point (0.333333, 0.000000, 0.000000)", "list it"},
    {"NoPlaneWaveInProjectors", projectors([](Projectors& p) { p.g[0].pop_back(); }), kThird,
     "a+/VKB' lacks the plane wave", "use the cut-off of WFN"},
    {"OtherWavefunctionCutoff", pair({.cutoff_ry = 5.5}), kThird,
     "wavefunction cut-off of 5.5 Ry, but WFN has 5;", "use the cut-off of WFN"},
    {"OtherDensityCutoff", header([](MeanFieldHeader& h) { h.density_cutoff_ry *= 1.1; }), kThird,
     "density cut-off of 22 Ry, but WFN has 20;", "use the cut-off of WFN"},
    {"OtherLattice", header([](MeanFieldHeader& h) {
       Crystal& c = h.crystal;
       c.alat_bohr *= 1.01;
       c.blat_per_bohr /= 1.01;
       c.volume_bohr3 *= 1.01 * 1.01 * 1.01;
       c.recvol_per_bohr3 /= 1.01 * 1.01 * 1.01;
       for (std::size_t i = 0; i < 3; ++i)
         for (std::size_t j = 0; j < 3; ++j) {
           c.adot[i][j] *= 1.01 * 1.01;
           c.bdot[i][j] /= 1.01 * 1.01;
         }
     }),
     kThird, "(3.030000, 0.000000, 0.000000) (0.000000, 1.010000", "a supercell of it"},
    {"OtherElement", header([](MeanFieldHeader& h) { h.crystal.atoms[2].atomic_number = 49; }),
     kThird, "has the atomic number 49 for atom 3, but atom 1 of WFN, which it repeats, has 31",
     "same crystal"},
    {"OtherNumberOfAtoms", header([](MeanFieldHeader& h) { h.crystal.atoms.pop_back(); }), kThird,
     "has 5 atoms, but the supercell (3, 0, 0) (0, 1, 0) (0, 0, 1) of WFN has 6", "same crystal"},
    {"TwoAtomsAtOnePlace",
     header([](MeanFieldHeader& h) { h.crystal.atoms[4] = h.crystal.atoms[2]; }), kThird,
     "has two atoms at the place of atom 5", "same crystal"},
    {"OtherOrigin", header([](MeanFieldHeader& h) {
       for (Atom& atom : h.crystal.atoms) atom.position_alat[0] += 0.2;
     }),
     kThird, "Bohr from the nearest atom of WFN", "same origin"},
    {"TwoDisplacedAtoms",
     header([](MeanFieldHeader& h) { h.crystal.atoms[2].position_alat[1] += 0.001; }), kThird,
     "displaces the atoms 2 and 3", "displace one atom"},
    {"NoDisplacedAtom", pair({.by_bohr = {}}), kThird, "displaces no atom", "displaced crystal"},
    {"OtherImages",
     [](const SupercellFiles& f) {
       f.write("a-", {.listed = 3, .by_bohr = {0.0, 0.0, -0.004}});
     },
     kThird, "displaces atom 4 by (0.000000, 0.000000, -0.004000)", "pairs of +h and -h"},
    {"OtherSupercells",
     [](const SupercellFiles& f) {
       f.write("a-", {.repeats = {6, 1, 1}, .by_bohr = {0.0, 0.0, -0.004}});
     },
     kThird, "has other lattice vectors than", "one supercell"},
    {"FilesOfTwoSupercells",
     [](const SupercellFiles& f) {
       f.write("b", {.repeats = {6, 1, 1}});
       std::filesystem::copy_file(f.directory.path() / "b/VKB", f.directory.path() / "a+/VKB",
                                  std::filesystem::copy_options::overwrite_existing);
     },
     kThird, "a+/VKB' has other lattice vectors than VSC", "files of one calculation"},
    {"OneVxc", [](const SupercellFiles& f) { f.write("a+", {.vxc_share = 0.4}); }, kThird, "a-/VXC",
     "does not exist"},
    {"DisplacementOfBuiltInCrystals", nothing, kThird + "form_factors = \"all-lengths\"\n",
     "perturbation.form_factors", "remove it"},
};

class SupercellFilesRefused : public testing::TestWithParam<BrokenSupercell> {
 protected:
  static void SetUpTestSuite() { files_ = new SupercellFiles; }
  static void TearDownTestSuite() { delete files_; }
  static inline SupercellFiles* files_ = nullptr;
};

// Each mistake is refused when the job is planned, before ε⁻¹.
TEST_P(SupercellFilesRefused, BeforeSigma) {
  for (const char* folder : {"a+", "a-"})
    std::filesystem::remove_all(files_->directory.path() / folder);
  files_->write_pair("a", {});
  ASSERT_EQ(refusal_of_deck(kDeck + kThird, files_->directory.path()), "");
  GetParam().change(*files_);
  const std::string message = refusal_of_deck(kDeck + GetParam().table, files_->directory.path());
  EXPECT_NE(message.find(GetParam().field), std::string::npos) << message;
  EXPECT_NE(message.find(GetParam().remedy), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(Cases, SupercellFilesRefused, testing::ValuesIn(kBroken),
                         [](const auto& one) { return std::string(one.param.name); });

// A pair without VXC beside a pair with it would lose g of GW for all displacements.
TEST(SupercellFiles, VxcBelongsToAllPairsOrNone) {
  const SupercellFiles files;
  const DisplacedFolders with = files.write_pair("a", {.vxc_share = 0.4}),
                         without = files.write_pair("b", {.by_bohr = {0.004, 0.0, 0.0}});
  EXPECT_EQ(file_displacements({with}, files.field).size(), 1u);
  EXPECT_EQ(file_displacements({without}, files.field).size(), 1u);
  try {
    file_displacements({with, without}, files.field);
    FAIL() << "the folders were accepted";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("b+/VXC"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace quasi::gw

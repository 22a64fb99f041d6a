// Tests folders PREFIX.save that no job can start from. The message must name the file or key, the
// value, the limit and a remedy.

#include <gtest/gtest.h>

#include <functional>

#include "tests/gw/espresso/save_fixture.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class RefusedSave : public testing::Test {
 protected:
  void SetUp() override {
    test::unpack_espresso_fixture(directory_.path());
    if (!test::reads_saves(directory_.path() / "x.save"))
      GTEST_SKIP() << "this program was built without pugixml";
  }
  fs::path path(const std::string& name) const { return directory_.path() / "x.save" / name; }
  /// Replaces the last occurrence of a text in a file of the folder.
  void replace(const std::string& file, const std::string& text, const std::string& by) {
    std::string content = test::text_of(path(file));
    const auto at = content.rfind(text);
    ASSERT_NE(at, std::string::npos) << text;
    test::write_text(path(file), content.replace(at, text.size(), by));
  }
  void replace_in_schema(const std::string& text, const std::string& by) {
    replace("data-file-schema.xml", text, by);
  }
  /// Runs and validates the deck and expects both to refuse it with all of `words`.
  void expect_refusal(const Words& words, const std::string& keys = "save = \"x.save\"\n",
                      const std::string& source = "source = \"quantum-espresso\"\n") {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    DeviceTeam alone(*kernels);
    const std::string text = "kind = \"gw\"\n[meanfield]\n" + source + keys +
                             "[epsilon]\ncutoff_ry = 3.0\n[sigma]\nband_max = 5\n";
    for (const bool validates : {false, true}) {
      try {
        const Deck deck = parse_deck(text, {}, "deck.toml", directory_.path());
        if (validates)
          validated_plan(deck, {.team = alone, .memory_budget_bytes = std::int64_t{1} << 30},
                         silent);
        else
          run_calculation(deck, *kernels, std::int64_t{1} << 30, silent);
        FAIL() << "accepted";
      } catch (const InvalidInput& failure) {
        for (const std::string& word : words)
          EXPECT_NE(std::string(failure.what()).find(word), std::string::npos)
              << failure.what() << "\nlacks: " << word;
      }
    }
  }
  quasi::test::TemporaryDirectory directory_;
};

TEST_F(RefusedSave, KeysThatDoNotFitTheSource) {
  expect_refusal({"meanfield.save", "is missing", "PREFIX.save"}, "");
  expect_refusal({"meanfield.save", "source = \"quantum-espresso\""},
                 "save = \"x.save\"\nwfn = \"WFN\"\nrho = \"RHO\"\n", "");
  expect_refusal({"meanfield.vxc", "holds all data", "remove it"},
                 "save = \"x.save\"\nvxc = \"VXC\"\n");
  expect_refusal({"meanfield.wfn", "folder", "save"}, "wfn = \"x.save\"\nrho = \"RHO\"\n", "");
  expect_refusal({"meanfield.save", "source = \"quantum-espresso\""}, "save = \"x.save\"\n",
                 "source = \"epm\"\n");
}
TEST_F(RefusedSave, FolderWithoutSchema) {
  fs::remove(path("data-file-schema.xml"));
  expect_refusal({"data-file-schema.xml", "cannot be read", "PREFIX.save"});
}
TEST_F(RefusedSave, SchemaThatEndsEarly) {
  const std::string text = test::text_of(path("data-file-schema.xml"));
  test::write_text(path("data-file-schema.xml"), text.substr(0, text.size() / 2));
  expect_refusal({"data-file-schema.xml", "no complete XML", "byte", "rerun pw.x"});
}
TEST_F(RefusedSave, SchemaWithoutAnElement) {
  replace_in_schema("<ecutrho>", "<ecutrho2>");
  replace_in_schema("</ecutrho>", "</ecutrho2>");
  expect_refusal({"no element basis_set/ecutrho", "rerun pw.x"});
}
TEST_F(RefusedSave, NumberThatIsNone) {
  replace_in_schema("<ecutwfc>2.5", "<ecutwfc>nan2.5");
  expect_refusal({"'nan2.5", "ecutwfc", "finite number"});
}
TEST_F(RefusedSave, UltrasoftPseudopotentials) {
  replace_in_schema("<uspp>false", "<uspp>true");
  expect_refusal({"meanfield.save", "uspp", "norm-conserving"});
}
TEST_F(RefusedSave, Spinors) {
  replace_in_schema("<noncolin>false", "<noncolin>true");
  expect_refusal({"meanfield.save", "spinors", "noncolin", "pw2bgw.x"});
}
TEST_F(RefusedSave, StatesOfGammaAlone) {
  replace_in_schema("<gamma_only>false", "<gamma_only>true");
  expect_refusal({"meanfield.save", "gamma_only", "K_POINTS automatic"});
}
TEST_F(RefusedSave, FunctionalsThatAreNotSemilocal) {
  replace_in_schema("<functional>PBE<", "<functional>B3LYP<");
  expect_refusal({"meanfield.save", "'B3LYP'", "PZ, PW, PBE and PBESOL", "vxc"});
  replace_in_schema("<functional>B3LYP</functional>", "<functional>PBE</functional><hybrid/>");
  expect_refusal({"meanfield.save", "hybrid", "pw2bgw.x"});
}
TEST_F(RefusedSave, AnotherCell) {
  replace_in_schema("<ngm>", "<ngm>1");
  expect_refusal({"ngm = 1", "ecutrho", "plane waves"});
}
TEST_F(RefusedSave, RotationOfAnotherLattice) {
  const std::string identity = "1.000000000000000e0 0.000000000000000e0 0.000000000000000e0";
  std::string text = test::text_of(path("data-file-schema.xml"));
  text.replace(text.find(identity), 3, "3.0");
  test::write_text(path("data-file-schema.xml"), text);
  expect_refusal({"data-file-schema.xml", "rotation of determinant"});
}
TEST_F(RefusedSave, PointsThatFormNoGrid) {
  replace_in_schema("0.000000000000000e0 -1.000000000000000e0 0.000000000000000e0</k_point>",
                    "0.000000000000000e0 -0.900000000000000e0 0.000000000000000e0</k_point>");
  expect_refusal({"meanfield.save", "3 k-points", "form no grid", "K_POINTS"});
}
TEST_F(RefusedSave, FilesOfStatesThatAreMissingOrCut) {
  const std::string third = test::text_of(path("wfc3.dat"));
  std::string moved = third;
  moved[4 + 4 + 14] = static_cast<char>(moved[4 + 4 + 14] ^ 0x08);  // in k along y
  test::write_text(path("wfc3.dat"), moved);
  expect_refusal({"wfc3.dat", "another k-point", "different runs"});
  test::write_text(path("wfc3.dat"), third);
  const std::string states = test::text_of(path("wfc2.dat"));
  test::write_text(path("wfc2.dat"), states.substr(0, states.size() - 100));
  expect_refusal({"wfc2.dat", "band 8"});
  fs::remove(path("wfc2.dat"));
  expect_refusal({"wfc2", ".dat", ".hdf5", "Rerun pw.x"});
  fs::copy_file(path("wfc3.dat"), path("wfc2.dat"));
  expect_refusal({"wfc2.dat", "number of the k-point is 3", "different runs"});
}
TEST_F(RefusedSave, DensityThatIsMissingOrOfAnotherRun) {
  std::string density = test::text_of(path("charge-density.dat"));
  density[4 + 8] = 2;  // number of spins
  test::write_text(path("charge-density.dat"), density);
  expect_refusal({"charge-density.dat"});
  fs::remove(path("charge-density.dat"));
  expect_refusal({"charge-density", ".hdf5", "Rerun pw.x"});
}
TEST_F(RefusedSave, Pseudopotentials) {
  QUASI_NEED_LIBXC;
  const std::string good = test::text_of(path("C.UPF"));
  const auto expect = [&](const std::string& text, const std::string& by, const Words& words) {
    replace("C.UPF", text, by);
    expect_refusal(words);
    test::write_text(path("C.UPF"), good);
  };
  expect("<UPF version=\"2.0.1\">", "<PP_HEADER>", {"C.UPF", "version 2", "upfconv.x"});
  const std::string remedy = "rerun pw.x with a norm-conserving";
  expect("pseudo_type=\"NC\"", "pseudo_type=\"PAW\"", {"C.UPF", "\"PAW\"", remedy});
  expect("has_so=\"false\"", "has_so=\"true\"", {"C.UPF", "fully relativistic", remedy});
  expect("angular_momentum=\"1\"", "angular_momentum=\"4\"", {"C.UPF", "angular_momentum", "3"});
  expect("<PP_NLCC>\n", "<PP_NLCC>\n1.0\n", {"C.UPF", "118 numbers in PP_NLCC", "117"});
  fs::remove(path("C.UPF"));
  expect_refusal({"C.UPF", "cannot be read", "copy the pseudopotential"});
}

}  // namespace
}  // namespace quasi::gw

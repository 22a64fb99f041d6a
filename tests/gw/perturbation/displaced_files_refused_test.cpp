// Displacements from files that do not fit are refused before Σ, with the file, the value and a
// remedy.

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "tests/gw/support/displaced_silicon.hpp"
#include "tests/gw/support/planned_deck.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"

namespace quasi::gw {
namespace {

using quasi::test::TemporaryDirectory;
using test::DisplacedSilicon;
using test::expect_refusal;
using test::kDisplacedFiles;
using test::ReferenceCase;
using test::refusal_of_deck;

/// A change of the folders of +h (first) and −h, and the words of its refusal.
struct BrokenFolders {
  const char* name;
  std::function<void(const std::filesystem::path&, const std::filesystem::path&)> change;
  const char *field, *remedy;
};

/// Changes the header of VSC in a folder.
void change_header(const std::filesystem::path& folder,
                   const std::function<void(MeanFieldHeader&)>& change) {
  PlaneWaveField field = read_field(folder / "VSC", "VSC");
  change(field.header);
  write_field(folder / "VSC", field);
}
void move_atom(const std::filesystem::path& folder, std::size_t atom, const Vec3& by_bohr) {
  change_header(folder, [&](MeanFieldHeader& h) {
    Vec3& position = h.crystal.atoms[atom].position_alat;
    position = position + (1.0 / h.crystal.alat_bohr) * by_bohr;
  });
}

/// Displaces atom 1 in the header of every file of a folder. The function finds the three old
/// coordinates as consecutive bytes and writes the new ones in their place.
void move_in_all_files(const std::filesystem::path& folder, const Vec3& by_bohr) {
  const Crystal crystal = read_field(folder / "VSC", "VSC").header.crystal;
  const Vec3 from = crystal.atoms[0].position_alat, to = from + (1.0 / crystal.alat_bohr) * by_bohr;
  const auto bytes = [](const Vec3& v) {
    return std::string(reinterpret_cast<const char*>(v.data()), sizeof v);
  };
  for (const std::string& name : kDisplacedFiles) {
    std::ifstream in(folder / name, std::ios::binary);
    std::string content{std::istreambuf_iterator<char>(in), {}};
    const std::size_t at = content.find(bytes(from));
    ASSERT_NE(at, std::string::npos) << name;
    content.replace(at, sizeof to, bytes(to));
    std::ofstream(folder / name, std::ios::binary) << content;
  }
}

class DisplacedFilesRefused : public testing::TestWithParam<BrokenFolders> {};

// Each mistake is refused before ε⁻¹, with the file, the value and a remedy.
TEST_P(DisplacedFilesRefused, BeforeSigma) {
  QUASI_NEED_REFERENCE("gw/gwpt");
  DisplacedSilicon files;
  const TemporaryDirectory directory;
  const auto forth = directory.path() / "forth", back = directory.path() / "back";
  for (const auto& [from, to] :
       {std::pair{files.plus.directory(), forth}, std::pair{files.minus.directory(), back}}) {
    std::filesystem::create_directory(to);
    for (const std::string& name : kDisplacedFiles)
      std::filesystem::copy_file(from / name, to / name);
  }
  const MeanField field = files.field();
  EXPECT_EQ(file_displacements({{forth, back}}, field).size(), 1u);
  GetParam().change(forth, back);
  try {
    file_displacements({{forth, back}}, field);
    FAIL() << "the folders were accepted";
  } catch (const InvalidInput& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(GetParam().field), std::string::npos) << message;
    EXPECT_NE(message.find(GetParam().remedy), std::string::npos) << message;
  }
}

void swap_folders(const std::filesystem::path& a, const std::filesystem::path& b) {
  std::filesystem::rename(a, a.string() + "_");
  std::filesystem::rename(b, a);
  std::filesystem::rename(a.string() + "_", b);
}

const BrokenFolders kBroken[] = {
    {"MissingFolder", [](auto& a, auto&) { std::filesystem::remove_all(a); }, "is no folder",
     "name one"},
    {"MissingPotential", [](auto& a, auto&) { std::filesystem::remove(a / "VSC"); }, "VSC",
     "does not exist"},
    {"MissingProjectors", [](auto&, auto& b) { std::filesystem::remove(b / "VKB"); }, "VKB",
     "does not exist"},
    {"MissingVxc", [](auto& a, auto&) { std::filesystem::remove(a / "VXC"); }, "VXC",
     "does not exist"},
    {"TruncatedProjectors",
     [](auto& a, auto&) {
       std::filesystem::resize_file(a / "VKB", std::filesystem::file_size(a / "VKB") / 2);
     },
     "VKB", "the file is truncated"},
    {"OtherElement",
     [](auto& a, auto&) {
       change_header(a, [](auto& h) { h.crystal.atoms[1].atomic_number = 32; });
     },
     "the atomic number of atom 2", "is 14 in the first, 32 in the second"},
    {"OtherNumberOfAtoms",
     [](auto& a, auto&) {
       change_header(a, [](auto& h) { h.crystal.atoms.push_back(h.crystal.atoms[0]); });
     },
     "the number of atoms", "is 2 in the first, 3 in the second"},
    {"OtherCutoff",
     [](auto& a, auto&) { change_header(a, [](auto& h) { h.density_cutoff_ry *= 1.1; }); },
     "the density cut-off", "belong to different calculations"},
    {"NoDisplacement",
     [](auto& a, auto&) {
       move_atom(a, 0, {0, 0, -0.01});
     },
     "displaces no atom", "give the calculation of a displaced crystal"},
    {"TwoDisplacedAtoms",
     [](auto& a, auto&) {
       move_atom(a, 1, {0, 0, 0.01});
     },
     "displaces the atoms 1 and 2", "displace one atom"},
    {"DisplacementOffTheAxes",
     [](auto& a, auto& b) {
       move_in_all_files(a, {0.005, 0, 0});
       move_in_all_files(b, {-0.005, 0, 0});
     },
     "by (0.005000, 0.000000, 0.010000)", "displace it along x, y or z"},
    {"StepTooSmall",
     [](auto& a, auto& b) {
       move_in_all_files(a, {0, 0, -0.00995});
       move_in_all_files(b, {0, 0, 0.00995});
     },
     "by 0.000050 Bohr, outside 0.0001", "displace it by 0.01"},
    {"StepTooLarge",
     [](auto& a, auto& b) {
       move_in_all_files(a, {0, 0, 0.29});
       move_in_all_files(b, {0, 0, -0.29});
     },
     "by 0.300000 Bohr, outside 0.0001", "displace it by 0.01"},
    {"PotentialOfAnotherDisplacement",
     [](auto& a, auto&) {
       move_atom(a, 0, {0, 0, 0.01});
     },
     "but VSC displaces atom 1 by (0.000000, 0.000000, 0.020000)", "give files of one calculation"},
    {"VxcOfTheOtherSide",
     [](auto& a, auto& b) {
       std::filesystem::remove(a / "VXC");
       std::filesystem::copy_file(b / "VXC", a / "VXC");
     },
     "VXC' displaces atom 1 by (0.000000, 0.000000, -0.010000)", "give files of one calculation"},
    {"ExchangedFolders", [](auto& a, auto& b) { swap_folders(a, b); }, "against the axis",
     "exchange the two folders"},
    {"TwiceTheSameSide",
     [](auto& a, auto& b) {
       for (const std::string& name : kDisplacedFiles)
         std::filesystem::copy_file(a / name, b / name,
                                    std::filesystem::copy_options::overwrite_existing);
     },
     "which is not opposite to atom 1", "give pairs of +h and -h"}};

INSTANTIATE_TEST_SUITE_P(Cases, DisplacedFilesRefused, testing::ValuesIn(kBroken),
                         [](const auto& one) { return std::string(one.param.name); });

// A job refuses a displacement that is given twice, k-points that are reduced by symmetry, and
// modes without all displacements.
TEST(DisplacedFiles, IncompleteSetsAreRefused) {
  QUASI_NEED_REFERENCE("gw/gwpt");
  DisplacedSilicon files;
  const auto message_of = [](const std::function<void()>& use) -> std::string {
    try {
      use();
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  };
  const MeanField field = files.field();
  EXPECT_NE(message_of([&] {
              file_displacements({files.folders(), files.folders()}, field);
            }).find("displaces atom 1 z like another folder"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              require_all_displacements(file_displacements({files.folders()}, field),
                                        field.crystal());
            }).find("lacks atom 1 x, but perturbation.modes needs all atoms"),
            std::string::npos);
  QUASI_NEED_REFERENCE("gw/epm");
  ReferenceCase reduced("epm");
  const MeanField grid = make_mean_field(read_wavefunctions(reduced.file("WFN")), std::nullopt,
                                         read_field(reduced.file("RHO"), "RHO"));
  EXPECT_NE(
      message_of([&] { file_displacements({files.folders()}, grid); }).find("list the whole grid"),
      std::string::npos);
}

// Decks that do not fit displaced files are refused with the key and a remedy.
TEST(DisplacedFiles, BrokenDecksAreRefused) {
  QUASI_NEED_REFERENCE("gw/gwpt");
  DisplacedSilicon files;
  EXPECT_EQ(refusal_of_deck(files.deck() + files.displaced()), "");
  const std::vector<std::vector<std::string>> cases{
      {files.deck(), "meanfield.source = \"files\" alone", "perturbation.displaced"},
      {files.deck() + "displaced = [\"p\"]", "perturbation.displaced", "then that of -h"},
      {files.deck() + "displaced = []", "perturbation.displaced", "then that of -h"},
      {files.deck() + "displaced = [\"p\", \"m\"]", "is no folder", "name one"},
      {files.deck() + files.displaced() + "atoms = [1]", "perturbation.atoms", "remove it"},
      {files.deck() + files.displaced() + "state_response = \"sternheimer\"",
       "perturbation.state_response", "remove it"},
      {"[meanfield]\nsource = \"epm\"\n[epsilon]\ncutoff_ry = 2.0\n[perturbation]\n" +
           files.displaced(),
       "perturbation.displaced", "remove perturbation.displaced"}};
  for (const auto& broken : cases) expect_refusal(broken[0], broken[1], broken[2]);
}

}  // namespace
}  // namespace quasi::gw

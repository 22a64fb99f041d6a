// Tests the files for VTK against result.h5: coordinates, fields, their order, and refusals.

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/mosfet/mosfet_task.hpp"

namespace quasi::mosfet {
namespace {

constexpr int kNx = 33, kNz = 17;
const std::string kMesh = "parameters = \"paper\"\n[mesh]\nnx = 33\nnz = 17\nsubbands = 2\n";

nlohmann::json run(const test::TemporaryDirectory& directory, const std::string& deck) {
  std::ofstream(directory.path() / "deck.toml") << deck;
  RunOptions options;
  options.deck.path = directory.path() / "deck.toml";
  options.devices = {find_device("cpu")};
  options.output_directory = directory.path();
  SilentProgress silent;
  return make_mosfet_task()->run(options, silent);
}

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// The arrays of a .vtr file by name.
std::map<std::string, std::vector<double>> arrays_of(const std::string& xml) {
  std::map<std::string, std::vector<double>> arrays;
  const std::string opening = "Name=\"";
  for (auto at = xml.find(opening); at != std::string::npos; at = xml.find(opening, at)) {
    at += opening.size();
    const std::string name = xml.substr(at, xml.find('"', at) - at);
    const auto begin = xml.find('>', at) + 1;
    std::istringstream numbers(xml.substr(begin, xml.find('<', begin) - begin));
    for (double x; numbers >> x;) arrays[name].push_back(x);
  }
  return arrays;
}

/// Checks the nesting of all elements, and that every array is as long as the extent of its grid
/// asks for, as the readers of VTK do.
void expect_grid(const std::string& xml, std::size_t nx, std::size_t nz) {
  std::vector<std::string> open;
  std::size_t arrays = 0;
  for (auto at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const std::string tag = xml.substr(at + 1, xml.find_first_of(" >", at) - at - 1);
    if (tag == "?xml") continue;
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(tag.substr(1), open.back());
      open.pop_back();
      continue;
    }
    if (tag == "DataArray") {
      const std::string parent = open.back();
      const auto begin = xml.find('>', at) + 1;
      std::istringstream text(xml.substr(begin, xml.find('<', begin) - begin));
      std::size_t numbers = 0;
      for (double x; text >> x;) ++numbers;
      const std::array<std::size_t, 3> axes{nx, nz, 1};
      if (parent == "Coordinates") {
        EXPECT_EQ(numbers, axes.at(arrays));
      } else {
        EXPECT_EQ(parent, "PointData");
        EXPECT_EQ(numbers, nx * nz);
      }
      ++arrays;
    }
    open.push_back(tag);
  }
  EXPECT_TRUE(open.empty());
  EXPECT_GT(arrays, 3u);
}

// A drain bias makes the fields asymmetric in x, and a back gate asymmetric in z, so that no
// exchange of axes or directions goes unnoticed.
TEST(Vtk, FilesHoldTheFieldsOfTheResult) {
  const test::TemporaryDirectory directory;
  run(directory, kMesh +
                     "[gate]\nbottom_offset_v = -0.1\n"
                     "[bias]\nvgs = [0.3, 0.5]\nvds = [0.2]\n"
                     "[run]\nmode = \"steady\"\ntransport = \"drift-diffusion\"\n"
                     "[output]\nvtk = true\n");
  const H5Reader file(directory.path() / "result.h5");
  for (const std::string k : {"0", "1"}) {
    const std::string xml = text_of(directory.path() / ("point_" + k + ".vtr"));
    EXPECT_NE(xml.find("WholeExtent=\"0 32 0 16 0 0\""), std::string::npos) << k;
    expect_grid(xml, kNx, kNz);
    auto arrays = arrays_of(xml);
    EXPECT_EQ(arrays["x (nm)"], file.doubles("/points/" + k + "/x"));
    EXPECT_EQ(arrays["z (nm)"], file.doubles("/points/" + k + "/z"));
    for (const auto& [name, units] : {std::pair{"density", "nm^-3"}, {"potential", "V"}}) {
      const auto field = file.doubles("/points/" + k + "/" + name);
      const auto& shown = arrays[std::string(name) + " (" + units + ")"];
      ASSERT_EQ(shown.size(), std::size_t{kNx * kNz}) << name;
      for (int i = 0; i < kNx; ++i)
        for (int j = 0; j < kNz; ++j) EXPECT_EQ(shown[j * kNx + i], field[i * kNz + j]) << name;
    }
  }
  const std::string line = text_of(directory.path() / "line_1.vtr");
  expect_grid(line, kNx, 1);
  const auto sheet = file.doubles("/points/1/sheet_density");
  const auto first = sheet.begin() + (1 * 2 + 1) * kNx;  // valley 1, subband 1 of 2
  EXPECT_EQ(arrays_of(line)["sheet_density 1 1 (nm^-2)"], std::vector<double>(first, first + kNx));
  const std::string list = text_of(directory.path() / "points.pvd");
  EXPECT_NE(list.find("file=\"line_1.vtr\""), std::string::npos) << list;
  EXPECT_NE(list.find("name=\"V_GS 0.5 V, V_DS 0.2 V\" file=\"point_1.vtr\""), std::string::npos)
      << list;
}

TEST(Vtk, AreWrittenOnRequestAlone) {
  const test::TemporaryDirectory directory;
  run(directory, kMesh + "[run]\nmode = \"equilibrium\"\n");
  EXPECT_FALSE(std::filesystem::exists(directory.path() / "points.pvd"));
}

TEST(Vtk, AreRefusedWithoutTwoAxes) {
  const test::TemporaryDirectory directory;
  try {
    run(directory, kMesh + "[run]\nmode = \"mobility\"\n[output]\nvtk = true\n");
    FAIL() << "a run of one column has no field over x and z";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("output.vtk"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace quasi::mosfet

// Tests that a deck of another user reads only files below its own directories.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/io/input_path.hpp"
#include "workers/io/table_reader.hpp"

namespace quasi {
namespace {

namespace fs = std::filesystem;

class InputPath : public testing::Test {
 protected:
  InputPath() {
    fs::create_directories(root_.path() / "attempt/in/sub");
    fs::create_directories(root_.path() / "attempt/inside-not");
    for (const char* name :
         {"secret", "attempt/in/WFN", "attempt/in/sub/RHO", "attempt/inside-not/x"})
      std::ofstream(root_.path() / name) << "text";
    fs::create_symlink(root_.path() / "secret", root_.path() / "attempt/in/link");
    fs::create_directory_symlink(root_.path(), root_.path() / "attempt/in/up");
    confine_inputs({root_.path() / "attempt/in/"});
  }
  ~InputPath() override { confine_inputs({}); }
  fs::path in(const std::string& name) const { return root_.path() / "attempt/in" / name; }

  test::TemporaryDirectory root_;
};

TEST_F(InputPath, FilesBelowTheRootsAreRead) {
  EXPECT_EQ(input_file(in("WFN")), in("WFN"));
  EXPECT_EQ(input_file(in("sub/../sub/RHO")), in("sub/../sub/RHO"));
  EXPECT_EQ(input_file(in("absent")), in("absent")) << "its reader says that it is missing";
}

TEST_F(InputPath, EveryWayOutIsRefused) {
  for (const fs::path& path :
       {root_.path() / "secret", in("../../secret"), in("link"), in("up/secret"),
        in("../inside-not/x"), fs::path("/etc/passwd"), fs::path("/dev/zero")})
    EXPECT_THROW(input_file(path), InvalidInput) << path;
  EXPECT_THROW(read_deck_text(root_.path() / "secret"), InvalidInput);
}

TEST_F(InputPath, ARunByHandReadsEveryPlainFile) {
  confine_inputs({});
  EXPECT_EQ(input_file(in("link")), in("link"));
  EXPECT_THROW(input_file("/dev/zero"), InvalidInput) << "its bytes have no end";
}

}  // namespace
}  // namespace quasi

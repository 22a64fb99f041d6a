#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck/deck.hpp"

namespace quasi::thermal::test {

inline std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

/// A small valid deck in a new directory: two atoms, one cell, a few blocks.
class SmallDeck {
 public:
  SmallDeck() {
    write(path() / "CONTROL",
          "&allocations\n nelements=1, natoms=2, ngrid(:)=2 2 2\n/\n"
          "&crystal\n lfactor=0.27, lattvec(:,1)=0 1 1, lattvec(:,2)=1 0 1, lattvec(:,3)=1 1 0,\n"
          " elements=\"Si\", types=2*1 ! both silicon\n positions(:,1)=3*0.0\n positions(:,2)=0.25 "
          "0.25 0.25\n scell(:)=1 1 1\n/\n"
          "&parameters\n T=300. scalebroad=1.d0\n/\n&flags\n nonanalytic=.false. "
          "convergence=.T.\n&end\n");
    std::string second = "2\n";
    for (int p = 1; p <= 2; ++p)
      for (int q = 1; q <= 2; ++q) {
        second += std::to_string(p) + " " + std::to_string(q) + "\n";
        for (int a = 0; a < 3; ++a) {
          for (int b = 0; b < 3; ++b) second += a != b ? " 0.0" : p == q ? " 13.0" : " -13.0";
          second += "\n";
        }
      }
    write(path() / "FORCE_CONSTANTS_2ND", second);
    std::string third = "2\n";
    for (int block = 1; block <= 2; ++block) {
      third += "\n" + std::to_string(block) + "\n 0.0 0.0 0.0\n 0.0 0.0 0.0\n 1 1 " +
               std::to_string(block) + "\n";
      for (int a = 1; a <= 3; ++a)
        for (int b = 1; b <= 3; ++b)
          for (int c = 1; c <= 3; ++c)
            third += std::to_string(a) + " " + std::to_string(b) + " " + std::to_string(c) +
                     (block == 1 ? " 30.5\n" : " -0.305E+02\n");
    }
    write(path() / "FORCE_CONSTANTS_3RD", third);
  }
  const std::filesystem::path& path() const { return directory_.path(); }
  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = read(path() / file);
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(path() / file, text.replace(at, from.size(), to));
  }
  Deck load(const std::vector<Setting>& settings = {}) const { return read_deck(path(), settings); }

 private:
  quasi::test::TemporaryDirectory directory_;
};

/// Expects that the deck is refused with a message that contains every one of the words.
inline void expect_refused(const std::function<void()>& body,
                           const std::vector<std::string>& words) {
  try {
    body();
    FAIL() << "accepted; expected a refusal naming " << words.front();
  } catch (const InvalidInput& failure) {
    for (const std::string& word : words)
      EXPECT_NE(std::string(failure.what()).find(word), std::string::npos)
          << failure.what() << "\n lacks: " << word;
  }
}

}  // namespace quasi::thermal::test

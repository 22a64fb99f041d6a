// Tests the namelists of a valid deck, and valid decks with random damage.

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "tests/thermal/decks/small_deck.hpp"
#include "workers/thermal/input/control/namelist.hpp"

namespace quasi::thermal {
namespace {

using test::read;
using test::SmallDeck;
using test::write;

TEST(Namelist, ReadsWhatFortranWrites) {
  const auto read_one = [](const std::string& line) {
    return parse_namelists("&a " + line + " /", "test");
  };
  EXPECT_EQ(read_one("x=1,,3")[0].values.size(), 3u);
  EXPECT_FALSE(read_one("x=1,,3")[0].values[1].text.has_value());
  EXPECT_EQ(read_one("x = 3*0.5 2*'a b'")[0].values.size(), 5u);
  EXPECT_EQ(*read_one("x=\"it\"\"s\"")[0].values[0].text, "it\"s");
  EXPECT_EQ(read_one("Y(2:3,:)=1\tZ=.TRUE.")[0].subscripts.size(), 2u);
  const NamelistAssignment a = read_one("x=1.d0 1E-3 +.5 -2")[0];
  EXPECT_EQ(namelist_real(a.values[0], a), 1.0);
  EXPECT_EQ(namelist_real(a.values[1], a), 1e-3);
  EXPECT_EQ(namelist_real(a.values[2], a), 0.5);
  EXPECT_EQ(namelist_real(a.values[3], a), -2.0);
  EXPECT_THROW(parse_namelists("&a x=1", "test"), InvalidInput);
  EXPECT_THROW(parse_namelists("&a x=999999999*1 /", "test"), InvalidInput);
  // T_min … T_max in steps; T_max itself is added when the last step overshoots by more than 1 K.
  const SmallDeck deck;
  deck.replace("CONTROL", "T=300.", "T_min=100 T_max=450 T_step=100");
  EXPECT_EQ(deck.load().control.temperatures_k, (std::vector<double>{100, 200, 300, 400, 450}));
  EXPECT_EQ(deck.load({{"T", "77,300"}}).control.temperatures_k, (std::vector<double>{77, 300}));
}

/// Makes one random change to a text.
std::string mutate(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(random() % std::max<std::size_t>(n, 1));
  };
  static const char* const kTokens[] = {"nan",    "1e999",   "-1",       "99999999999999999999",
                                        "0",      "&",       "/",        "=",
                                        "(",      ")",       "\"",       "'",
                                        "*",      ",,",      "1000",     "\xff\xfe",
                                        ".true.", "T_min=1", "natoms=3", "1d400",
                                        "-inf",   "\n\n",    "!"};
  switch (below(6)) {
    case 0:
      text[below(text.size())] = static_cast<char>(random() % 256);
      break;
    case 1:
      text.erase(below(text.size()), 1 + below(40));
      break;
    case 2:
      text.insert(below(text.size()), kTokens[below(std::size(kTokens))]);
      break;
    case 3:
      text.resize(below(text.size()));
      break;
    case 4: {  // a number is replaced
      const auto at = text.find_first_of("0123456789", below(text.size()));
      if (at != std::string::npos) text.replace(at, 1, kTokens[below(std::size(kTokens))]);
      break;
    }
    default: {  // two pieces are exchanged
      const std::size_t a = below(text.size()), b = below(text.size());
      std::swap(text[a], text[b]);
      text.insert(below(text.size()), text.substr(b, below(30)));
    }
  }
  return text.empty() ? " " : text;
}

// Each of 500 damaged decks must throw InvalidInput with a message that names a line, a key or a
// file. A failure prints the seed, and QUASI_FUZZ_SEED repeats it.
TEST(DeckFailures, BrokenAtRandomTheySayWhere) {
  const char* given = std::getenv("QUASI_FUZZ_SEED");
  const unsigned first_seed = given != nullptr ? static_cast<unsigned>(std::stoul(given)) : 20251u;
  const SmallDeck deck;
  const char* const files[] = {"CONTROL", "FORCE_CONSTANTS_2ND", "FORCE_CONSTANTS_3RD"};
  std::map<std::string, std::string> whole;
  for (const char* file : files) whole[file] = read(deck.path() / file);
  int refused = 0;
  unsigned seed = first_seed;
  for (; refused < 500 && seed < first_seed + 5000; ++seed) {
    std::mt19937 random(seed);
    const char* file = files[random() % 3];
    std::string text = whole[file];
    for (unsigned n = 1 + random() % 3; n > 0; --n) text = mutate(std::move(text), random);
    write(deck.path() / file, text);
    try {
      deck.load();
    } catch (const InvalidInput& failure) {
      ++refused;
      const std::string message = failure.what();
      EXPECT_TRUE(message.find("line ") != std::string::npos ||
                  message.find('\'') != std::string::npos ||
                  message.find("FORCE_CONSTANTS") != std::string::npos)
          << "seed " << seed << ": " << message;
      EXPECT_GT(message.size(), 15u) << "seed " << seed;
    } catch (const std::exception& failure) {
      ADD_FAILURE() << "seed " << seed << ", " << file << ": " << failure.what();
    }
    write(deck.path() / file, whole[file]);
    if (given != nullptr) break;
  }
  if (given == nullptr) {
    EXPECT_EQ(refused, 500);
  }
  std::printf("    %d refused of %u decks, seeds %u to %u\n", refused, seed - first_seed,
              first_seed, seed - 1);
}

}  // namespace
}  // namespace quasi::thermal

#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace quasi::test {

/// Spoils decks in the ways in which people and disks do: wrong values, keys misspelt, lines gone
/// or twice, brackets and quotes that do not close, bytes that are no text, files cut short. One
/// seed, one sequence.
class HostileDeck {
 public:
  explicit HostileDeck(std::uint64_t seed) : random_(seed) {}

  /// One or two changes of a text; `change` says which.
  std::string spoil(std::string text, std::string* change);
  /// One or two changes of a binary file, mostly near its beginning, where the header is.
  std::string spoil_bytes(std::string bytes, std::string* change);
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

 private:
  std::string spoil_once(std::string text, std::string* change);
  std::mt19937_64 random_;
};

struct FuzzTally {
  int accepted = 0, refused = 0;
};

/// Calls `attempt(i)`, which makes the i-th deck and checks it, and judges what it throws:
/// InvalidInput that names a line or one of `names` is a refusal; any other exception, a message
/// that names nothing, and more than `most_seconds` for one deck are failures of the test, shown
/// with `described()`.
FuzzTally fuzz(int n_decks, const std::vector<std::string>& names, double most_seconds,
               const std::function<void(int)>& attempt,
               const std::function<std::string()>& described);

/// From QUASI_SEED, else fixed; printed.
std::uint64_t fuzz_seed();

}  // namespace quasi::test

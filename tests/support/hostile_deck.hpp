#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace quasi::test {

/// Damages decks as users and disks do: wrong values, misspelt keys, missing or repeated lines,
/// unclosed brackets and quotes, bytes that are no text, truncated files. Equal seeds give equal
/// sequences.
class HostileDeck {
 public:
  explicit HostileDeck(std::uint64_t seed) : random_(seed) {}

  /// Makes one or two changes to a text; `change` describes them.
  std::string spoil(std::string text, std::string* change);
  /// Makes one or two changes to a binary file, mostly in its header.
  std::string spoil_bytes(std::string bytes, std::string* change);
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

 private:
  std::string spoil_once(std::string text, std::string* change);
  std::mt19937_64 random_;
};

struct FuzzTally {
  int accepted = 0, refused = 0;
};

/// Calls `attempt(i)`, which makes and checks the i-th deck, and judges its exceptions.
/// InvalidInput that names a line or one of `names` is a refusal. Any other exception, a message
/// that names neither, and more than `most_seconds` for one deck fail the test, which then shows
/// `described()`.
FuzzTally fuzz(int n_decks, const std::vector<std::string>& names, double most_seconds,
               const std::function<void(int)>& attempt,
               const std::function<std::string()>& described);

/// The seed from QUASI_SEED, otherwise a fixed one. It is printed.
std::uint64_t fuzz_seed();

}  // namespace quasi::test

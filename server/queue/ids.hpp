#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace quasi::server {

/// Where random numbers come from; seeded in tests.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual std::uint64_t next() = 0;
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
};

class SystemRandom : public RandomSource {
 public:
  std::uint64_t next() override;
};

class SeededRandom : public RandomSource {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

/// `prefix`, '_' and 26 base32 characters (Crockford's): 48 bits of time in milliseconds, so that
/// ids sort by age, and 80 random ones.
std::string make_id(char prefix, std::int64_t wall_ms, RandomSource& random);

}  // namespace quasi::server

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace quasi::server {

/// Source of random numbers. Tests seed it.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual std::uint64_t next() = 0;
  /// A uniform number in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
};

/// OpenSSL's random numbers. It asks for 64 at a time, because each request costs as much as a row
/// of the database. One thread uses it at a time.
class SystemRandom : public RandomSource {
 public:
  std::uint64_t next() override;

 private:
  std::array<std::uint64_t, 64> numbers_ = {};
  std::size_t left_ = 0;  ///< numbers that were not given out yet
};

class SeededRandom : public RandomSource {
 public:
  explicit SeededRandom(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

/// A new id (proto/wire/text/ids.hpp).
std::string make_id(char prefix, std::int64_t wall_ms, RandomSource& random);

}  // namespace quasi::server

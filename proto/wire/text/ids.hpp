#pragma once

#include <array>
#include <cstdint>
#include <string>

/// The ids of jobs, attempts, workers and stores.
namespace quasi::wire {

/// Makes an id: `prefix`, '_' and 26 characters of Crockford's base32. They encode 48 bits of time
/// in milliseconds, so that ids sort by age, and 80 random bits, of which each number gives 40.
std::string make_id(char prefix, std::int64_t wall_ms, const std::array<std::uint64_t, 2>& random);

}  // namespace quasi::wire

#pragma once

#include <cstdint>
#include <string>

#include "workers/gw/model/mean_field.hpp"

namespace quasi::gw {

/// Largest counts a reader accepts. A corrupted count is then an error and not an allocation.
inline constexpr int kMaxSymmetries = 48;
inline constexpr int kMaxAtoms = 1'000'000;
inline constexpr int kMaxPlaneWaves = 400'000'000;
inline constexpr int kMaxBands = 10'000'000;
inline constexpr int kMaxKPoints = 1'000'000;

/// @throws InvalidInput "'FILE': WHAT is VALUE; it must lie in [MIN, MAX]".
void require_in_range(std::int64_t value, std::int64_t min, std::int64_t max,
                      const std::string& what, const std::string& file);

/// G-vectors of a list (`of`: "" or " of k-point n") lie on the FFT grid, each once.
void check_g_list(const std::vector<IVec3>& g, const IVec3& fft_grid, const std::string& of,
                  const std::string& file);

/// Cell, metric, group and master list: finite, consistent with each other, symmetric.
void check_header(const MeanFieldHeader& header, const std::string& file);

/// k-list, weights, energies, occupations, G-lists and norms of the coefficients.
void check_wavefunctions(const Wavefunctions& waves, const std::string& file);

/// @throws InvalidInput naming the first value that is not finite.
template <typename Values>
void require_finite(const Values& values, const std::string& what, const std::string& file);

}  // namespace quasi::gw

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "workers/gw/model/mean_field.hpp"

namespace quasi::gw {

/// Largest counts that a reader accepts. A damaged count is then an error and not an allocation.
inline constexpr int kMaxSymmetries = 48;
inline constexpr int kMaxAtoms = 1'000'000;
inline constexpr int kMaxPlaneWaves = 400'000'000;
inline constexpr int kMaxBands = 10'000'000;
inline constexpr int kMaxKPoints = 1'000'000;

/// @throws InvalidInput "'FILE': WHAT is VALUE; it must lie in [MIN, MAX]".
void require_in_range(std::int64_t value, std::int64_t min, std::int64_t max,
                      const std::string& what, const std::string& file);

/// Checks that the G-vectors of a list lie on the FFT grid and that each occurs once.
/// @param of  "" or " of k-point n", for messages
/// @throws InvalidInput with file and vector
void check_g_list(const std::vector<IVec3>& g, const IVec3& fft_grid, const std::string& of,
                  const std::string& file);

/// Checks that cell, metric, group and master list are finite and consistent with each other.
/// @throws InvalidInput with file, quantity and value
void check_header(const MeanFieldHeader& header, const std::string& file);

/// Checks the k-points with their weights, the energies and occupations, the lists of G, and that
/// states are normalised. States that are read in pieces were checked when they were read.
/// @throws InvalidInput with file, quantity and value
void check_wavefunctions(const Wavefunctions& waves, const std::string& file);

/// Checks that a state is normalised. @throws InvalidInput with file, band, k-point and norm
void check_norm(std::span<const Cplx> state, int band, int ik, const std::string& file);

/// @throws InvalidInput naming the first value that is not finite.
template <typename Values>
void require_finite(const Values& values, const std::string& what, const std::string& file);

}  // namespace quasi::gw

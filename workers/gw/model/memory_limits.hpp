#pragma once

#include <cstdint>

// Shares and sizes of memory by which GW cuts its work into blocks.
namespace quasi::gw {

/// Budget of a step whose options come without a deck.
inline constexpr std::int64_t kDefaultBudget_bytes = std::int64_t{4} << 30;
/// Budget of a job on a CPU.
inline constexpr std::int64_t kCpuBudget_bytes = std::int64_t{2} << 30;
/// Budget of a job on a GPU, in tenths of its memory.
inline constexpr std::int64_t kGpuBudget_tenths = 6;
/// Memory of a GPU that a job can use at all; the driver and the libraries keep the rest.
inline constexpr std::int64_t kUsableGpu_percent = 96;
/// Largest block of pair products of a static χ on a GPU.
inline constexpr std::int64_t kChiBlock_bytes = std::int64_t{4} << 30;
/// Number of portions into which the pairs of bands of χ at one q are cut. A device sums the pairs
/// of one portion and then hands over that sum, which transfers a whole χ. The number is fixed, so
/// that bits do not depend on the number of devices.
inline constexpr std::int64_t kChiPortions = 8;
/// Sums of portions of χ that live at a time on a device: one grows and three wait for others, as
/// the tree of kChiPortions sums has them before its last portion.
inline constexpr std::int64_t kChiSums = 4;
/// True if those sums of `numbers` complex numbers each, and bands on the box, keep to a budget.
/// The rest of a GPU holds blocks of products and the work space of libraries.
inline constexpr bool chi_sums_fit(std::int64_t numbers, std::int64_t bands_bytes,
                                   std::int64_t budget_bytes) {
  return kChiSums * 16 * numbers + bands_bytes <= budget_bytes;
}
/// Largest intermediate product of the rows of a block with a matrix on a GPU.
inline constexpr std::int64_t kRowProducts_bytes = std::int64_t{4} << 30;
/// Largest batch of transforms on a GPU.
inline constexpr std::int64_t kTransformBatch_bytes = std::int64_t{1} << 31;
/// Bands in the box that the sum of the density loads at a time.
inline constexpr std::int64_t kDensityBands_bytes = std::int64_t{4} << 30;

}  // namespace quasi::gw

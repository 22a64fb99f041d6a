#include "workers/gw/solver/calculation/memory/band_memory.hpp"

#include <algorithm>
#include <cmath>

#include "workers/gw/kernels/pair_products/pair_products_cpu.hpp"
#include "workers/gw/model/memory_limits.hpp"
#include "workers/gw/solver/self_energy/sigma_sum.hpp"
#include "workers/gw/solver/self_energy/zone_sum/outer_products.hpp"

namespace quasi::gw {
namespace {

/// Returns the largest number of transforms of one batch of a GPU.
double largest_batch(const BandArrays& arrays) {
  return std::clamp(std::floor(static_cast<double>(kTransformBatch_bytes) / (16.0 * arrays.points)),
                    1.0, 1024.0);
}

/// Returns the bytes of a CPU for bands of both sides.
double bytes_of_bands_on_cpu(const BandArrays& arrays, const PairShape& shape) {
  const double row = arrays.n_spinor * arrays.n_pw,
               // The bands of one side are rotated while those of the other are there.
      coefficients = 16.0 * row * (shape.left + 2.0 * shape.right);
  return coefficients + (convolution_is_cheaper(
                             {.n_row = row, .n_g = shape.n_g, .n_r = arrays.points}, shape.right)
                             ? 16.0 * row * shape.n_g
                             : 16.0 * arrays.points * arrays.n_spinor * (shape.left + shape.right));
}

}  // namespace

BandArrays band_arrays(const MeanField& field, const std::array<int, 3>& box, bool on_cpu) {
  BandArrays arrays{.points = 1.0 * box[0] * box[1] * box[2],
                    .n_spinor = 1.0 * field.n_spinor(),
                    .on_cpu = on_cpu};
  for (const KPointWaves& at : field.waves.waves)
    arrays.n_pw = std::max(arrays.n_pw, static_cast<double>(at.g.size()));
  return arrays;
}

BandArrays band_arrays(const MeanField& field, const std::vector<IVec3>& sphere, bool on_cpu) {
  return band_arrays(field, sum_box(field, sphere), on_cpu);
}

double bytes_of_bands(const BandArrays& arrays, const PairShape& shape) {
  if (arrays.on_cpu) return bytes_of_bands_on_cpu(arrays, shape);
  // Two real products share one transform.
  const double transforms =
      std::min(largest_batch(arrays), shape.real ? std::ceil(0.5 * shape.right) : shape.right);
  return 16.0 * arrays.points * (arrays.n_spinor * (shape.left + shape.right) + transforms);
}

double bytes_of_density(const MeanField& field, bool on_cpu) {
  const std::vector<IVec3>& g = field.waves.header.g;
  const IVec3 extent = rotated_extent(field.waves, field.zone);
  const BandArrays arrays =
      band_arrays(field, product_box(extent, extent, component_extent(g)), on_cpu);
  const double at_once = std::max(1.0, std::floor(static_cast<double>(kDensityBands_bytes) /
                                                  (32.0 * arrays.points * arrays.n_spinor))),
               occupied = field.n_occupied, bands = std::min(at_once, occupied);
  if (!on_cpu) return 16.0 * arrays.points * (arrays.n_spinor * bands + 1.0);
  return 16.0 * arrays.n_spinor * arrays.n_pw * (occupied + bands) +
         16.0 * arrays.points * arrays.n_spinor * bands;
}

double bytes_of_overlaps(const MeanField& field, double bands, std::int64_t budget_bytes,
                         bool on_cpu) {
  const BandArrays arrays =
      band_arrays(field, std::vector<IVec3>{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, on_cpu);
  const double of_band = 16.0 * arrays.points * arrays.n_spinor,
               at_once = std::max(1.0, std::floor(static_cast<double>(budget_bytes) / of_band));
  return bytes_of_bands(arrays, {.left = 1.0, .right = std::min(bands, at_once), .n_g = 7.0});
}

double bytes_of_chi_pairs(const BandArrays& arrays, const PairShape& shape) {
  const double bands = bytes_of_bands(arrays, shape), row = 16.0 * shape.n_g;
  if (arrays.on_cpu) {
    constexpr double kBlock_bytes = 268435456.0;
    const double rows =
        std::clamp(std::floor(kBlock_bytes / (row * shape.right)), 1.0, std::max(1.0, shape.left));
    return bands + (shape.real ? 1.5 : 2.0) * row * rows * shape.right;
  }
  const double bytes = shape.real ? 0.5 * row : row, batch = largest_batch(arrays),
               least = std::min((shape.real ? 2.0 : 1.0) * batch, shape.right),
               rows = std::min(shape.pairs(),
                               std::max(least, static_cast<double>(kChiBlock_bytes) / bytes));
  return bands + 2.0 * rows * bytes;
}

double bytes_of_exchange(const BandArrays& arrays, const PairShape& shape,
                         std::int64_t budget_bytes) {
  const double of_band = 16.0 * (shape.left * shape.n_g + arrays.points * arrays.n_spinor),
               room = static_cast<double>(std::min(kExchangeBlock_bytes, budget_bytes));
  PairShape at_once = shape;
  at_once.right = std::min(shape.right, std::max(1.0, std::floor(room / of_band)));
  return bytes_of_products(arrays, at_once, 1.0);
}

double bytes_of_products(const BandArrays& arrays, const PairShape& shape, double times) {
  PairShape filled = shape;
  filled.real = false;  // stored products are made one in a transform
  return bytes_of_bands(arrays, filled) + times * 16.0 * shape.pairs() * shape.n_g;
}

}  // namespace quasi::gw

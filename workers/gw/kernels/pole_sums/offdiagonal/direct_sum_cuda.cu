#include <algorithm>
#include <vector>

#include "workers/backend/device/memory_budget.hpp"
#include "workers/gw/kernels/pole_sums/offdiagonal/gpp_fused_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/offdiagonal_sum_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/pole_matrices_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "direct pairs of the off-diagonal sum";

/// Rows of one product T = M P. At N_G = 11,075 and three energies of P cuBLAS reached 55 TFLOP/s
/// with 128 rows a call and 48 with 512 (one H200).
constexpr std::int64_t kRowsPerProduct = 128;

std::int64_t longest_run(const OffDiagonalPlan& plan) {
  std::int64_t longest = 0;
  for (const EnergyRun& run : plan.direct) longest = std::max(longest, run.end - run.begin);
  return longest;
}

/// C = A B by blocks of rows.
void multiply_blocks(const OffDiagonalSum& sum, const MatrixProduct& product) {
  for (std::int64_t row = 0; row < product.m; row += kRowsPerProduct) {
    MatrixProduct block = product;
    block.m = std::min(kRowsPerProduct, product.m - row);
    block.a.data += row * product.a.stride;
    block.c += row * product.c_stride;
    multiply(sum.work.blas, sum.options.products, block);
  }
}

}  // namespace

void DirectSum::add() {
  if (sum_.plan.direct.empty()) return;
  bool whole = true;
  for (std::int64_t n = 0; n < sum_.n_right; ++n)
    whole = whole && (sum_.terms.occupation(n) == 0.0 || sum_.terms.occupation(n) == 1.0);
  if (whole && sum_.fused_pays())
    add_fused();
  else
    add_in_buffers();
}

void DirectSum::add_in_buffers() {
  // P takes up to a quarter of the workspace a buffer; T has the rest.
  const std::int64_t n_g = sum_.n_g, n_left = sum_.n_left, p_bytes = 16 * n_g * n_g;
  const std::int64_t longest = longest_run(sum_.plan);
  const std::int64_t per_buffer = std::clamp<std::int64_t>(
      items_that_fit(sum_.work.bytes / 4, 0, p_bytes, "the off-diagonal sum's P"), 1,
      std::min<std::int64_t>(kMaxEnergiesPerBuffer, longest));
  const std::int64_t t_energies =
      std::min(longest, items_that_fit(sum_.work.bytes, 2 * per_buffer * p_bytes, 16 * n_left * n_g,
                                       "the off-diagonal sum's T"));
  for (DeviceBuffer<double2>& p : p_)
    p = DeviceBuffer<double2>(static_cast<std::size_t>(per_buffer * n_g * n_g),
                              "P of the off-diagonal sum");
  t_ = DeviceBuffer<double2>(static_cast<std::size_t>(n_left * t_energies * n_g),
                             "T of the off-diagonal sum");
  for (const EnergyRun& run : sum_.plan.direct)
    for (std::int64_t begin = run.begin; begin < run.end; begin += t_energies) {
      const EnergyRun part{run.band, begin, std::min(run.end, begin + t_energies)};
      fill_t(part, per_buffer, t_.data());
      sum_.add_t(t_.data(), part, sum_.folded() ? 0.5 : 1.0);
      sum_.count_flops(8.0 * static_cast<double>(n_left * (part.end - part.begin)) *
                       static_cast<double>(n_g) * static_cast<double>(n_g));
    }
  sum_.wait();
}

/// T = M P of one run. While the products of one buffer run, P of the other is made.
void DirectSum::fill_t(const EnergyRun& run, std::int64_t per_buffer, double2* t) {
  const std::int64_t n_g = sum_.n_g, t_stride = (run.end - run.begin) * n_g;
  const cudaStream_t preparation = sum_.work.preparation, products = sum_.work.products;
  const MakerShape maker = maker_shape(sum_.n_left);
  for (std::int64_t first = run.begin; first < run.end;
       first += per_buffer, buffer_ = 1 - buffer_) {
    BufferEnergies energies{.x_ry = {},
                            .count = static_cast<int>(std::min(per_buffer, run.end - first)),
                            .occupation = sum_.terms.occupation(run.band)};
    for (int e = 0; e < energies.count; ++e)
      energies.x_ry[e] = sum_.terms.energies_ry(first + e) - sum_.terms.band_ry(run.band);
    used_[buffer_].hold(preparation, kWhat);
    double2* const p = p_[buffer_].data();
    make_pole_matrices(sum_.input.model, sum_.input.rules, energies, p, maker, preparation);
    made_[buffer_].record(preparation, kWhat);
    made_[buffer_].hold(products, kWhat);
    const std::int64_t columns = energies.count * n_g;
    const MatrixProduct product{.m = sum_.n_left,
                                .n = columns,
                                .k = n_g,
                                .a = sum_.bands_of(run.band),
                                .b = {p, columns},
                                .c = t + (first - run.begin) * n_g,
                                .c_stride = t_stride};
    multiply_blocks(sum_, product);
    sum_.measure_residual_once(product);
    used_[buffer_].record(products, kWhat);
  }
}

void DirectSum::add_fused() {
  const std::int64_t n_g = sum_.n_g, n_left = sum_.n_left, packed_count = packed_size(n_left, n_g);
  const View<const double, 1> energies_ry = sum_.terms.energies_ry;
  const std::int64_t t_energies = std::min(
      longest_run(sum_.plan), items_that_fit(sum_.work.bytes, 16 * packed_count, 16 * n_left * n_g,
                                             "the off-diagonal sum's T"));
  t_ = DeviceBuffer<double2>(static_cast<std::size_t>(n_left * t_energies * n_g),
                             "T of the off-diagonal sum");
  packed_ = DeviceBuffer<double2>(static_cast<std::size_t>(packed_count), "M of one band, packed");
  energies_ = DeviceBuffer<double>(
      std::vector<double>(energies_ry.data, energies_ry.data + energies_ry.size()), kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  for (const EnergyRun& run : sum_.plan.direct) {
    const DeviceMatrix m = sum_.bands_of(run.band);
    pack_for_fused_product(m, n_left, n_g, packed_.data(), sum_.work.products);
    for (std::int64_t begin = run.begin; begin < run.end; begin += t_energies) {
      const EnergyRun part{run.band, begin, std::min(run.end, begin + t_energies)};
      const bool occupied = sum_.terms.occupation(run.band) == 1.0;
      launch_fused_product({.model = sum_.input.model,
                            .rules = sum_.input.rules,
                            .packed = packed_.data(),
                            .n_left = n_left,
                            .energies_ry = energies_.data() + begin,
                            .n_energies = part.end - begin,
                            .band_ry = sum_.terms.band_ry(run.band),
                            .factor = occupied ? PoleFactor::kOccupied : PoleFactor::kEmpty,
                            .t = t_.data()},
                           sum_.work.products);
      sum_.add_t(t_.data(), part, 1.0);
      sum_.count_flops(8.0 * static_cast<double>(n_left * (part.end - begin)) *
                       sum_.fused_depths());
    }
  }
}

}  // namespace quasi::gw::cuda

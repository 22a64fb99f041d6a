#include "workers/gw/kernels/pole_sums/changes/closed_sums_cuda.cuh"

#include "workers/backend/device/launch_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "sums by difference";
constexpr int kThreads = 128;

struct Wave {
  std::int32_t g[3];
};

struct MakeEmptyBand {
  PoleModelOnDevice model;
  double x_ry;
  double2* matrix;  ///< [n_g][n_g]
  __device__ void operator()(std::int64_t index) const {
    // A packed model is symmetric.
    const std::int64_t g = index / model.n_g, h = index % model.n_g,
                       at = h > g && model.real_strength != nullptr ? model.at(h, g)
                                                                    : model.at(g, h);
    const double2 own = model.strength_at(at);
    const Complex<double> value =
        empty_band_element(x_ry, pole_terms({own.x, own.y}, model.pole_ry[at]));
    matrix[index] = {value.re, value.im};
  }
};

struct DifferenceWork {
  PoleModelOnDevice model;
  RowsOfChange of;
  std::int64_t first_element;  ///< of the rows
  double x_ry;
  const Wave* waves;          ///< [n_g]
  const std::int32_t* index;  ///< position of G in `waves`, or −1; box of all G
  std::int32_t extent[3];     ///< of the box of differences
  double2* sums;              ///< [differences]

  __device__ Complex<double> element(std::int64_t g, std::int64_t h) const {
    const bool mirrored = model.folded && h > g;
    const std::int64_t row = mirrored ? h : g, column = mirrored ? g : h,
                       before = model.folded ? row * (row + 1) / 2 : row * model.n_g,
                       at = before - first_element + column, of_own = model.at(row, column);
    if (row < of.rows.begin || row >= of.rows.end) return {};
    const double2 strength = model.strength_at(of_own);
    const PoleTerms own = pole_terms({strength.x, strength.y}, model.pole_ry[of_own]);
    Complex<double> found;
    if (of.change.tau_per_ry != nullptr) {
      const double2 of_change = of.change.strength_at(at);
      found =
          change_of_empty_band(x_ry, own, {{of_change.x, of_change.y}, of.change.tau_per_ry[at]});
    } else {
      found = empty_band_element(x_ry, own);
    }
    return mirrored ? conj(found) : found;
  }
};

__global__ void sum_differences(const DifferenceWork work) {
  __shared__ double2 partial[kThreads];
  std::int64_t rest = blockIdx.x;
  std::int32_t d[3], half[3];
  for (int i = 2; i >= 0; --i) {
    const std::int32_t edge = 2 * work.extent[i] + 1;
    d[i] = static_cast<std::int32_t>(rest % edge) - work.extent[i];
    rest /= edge;
    half[i] = work.extent[i] / 2;
  }
  double2 sum = {0.0, 0.0};
  for (std::int64_t g = threadIdx.x; g < work.model.n_g; g += kThreads) {
    const Wave wave = work.waves[g];
    std::int64_t at = 0;
    bool inside = true;
    for (int i = 0; i < 3; ++i) {
      const std::int32_t other = wave.g[i] - d[i];
      inside = inside && other >= -half[i] && other <= half[i];
      at = at * (2 * half[i] + 1) + other + half[i];
    }
    const std::int32_t h = inside ? work.index[at] : -1;
    if (h < 0) continue;
    const Complex<double> value = work.element(g, h);
    sum.x += value.re;
    sum.y += value.im;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) {
      partial[threadIdx.x].x += partial[threadIdx.x + step].x;
      partial[threadIdx.x].y += partial[threadIdx.x + step].y;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) work.sums[blockIdx.x] = partial[0];
}

}  // namespace

DeviceBuffer<double2> empty_band_matrix_cuda(const PoleModelOnDevice& model, double x_ry,
                                             const CudaContext& context) {
  context.use();
  const std::int64_t size = model.n_g * model.n_g;
  DeviceBuffer<double2> matrix(static_cast<std::size_t>(size), "matrix of the closed sum");
  quasi::cuda::for_each_index(size, MakeEmptyBand{model, x_ry, matrix.data()},
                              "matrix of the closed sum", context.stream());
  return matrix;
}

std::vector<Cplx> sums_by_difference_cuda(const PoleModelOnDevice& model, const RowsOfChange& of,
                                          double x_ry, const DifferenceBox& box,
                                          const CudaContext& context) {
  context.use();
  std::vector<Wave> waves;
  std::int64_t n_index = 1;
  for (const std::int32_t e : box.extent) n_index *= e + 1;  // edges of 2 (e/2) + 1
  std::vector<std::int32_t> index(static_cast<std::size_t>(n_index), -1);
  for (std::size_t g = 0; g < box.waves.size(); ++g) {
    const IVec3& v = box.waves[g];
    waves.push_back({{v[0], v[1], v[2]}});
    std::int64_t at = 0;
    for (std::size_t i = 0; i < 3; ++i) at = at * (box.extent[i] + 1) + v[i] + box.extent[i] / 2;
    index[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(g);
  }
  const DeviceBuffer<Wave> waves_there(waves, kWhat);
  const DeviceBuffer<std::int32_t> index_there(index, kWhat);
  DeviceBuffer<double2> sums(static_cast<std::size_t>(box.size()), kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  const DifferenceWork work{
      .model = model,
      .of = of,
      .first_element = elements_of_rows(of.rows.begin, model.n_g, model.folded),
      .x_ry = x_ry,
      .waves = waves_there.data(),
      .index = index_there.data(),
      .extent = {box.extent[0], box.extent[1], box.extent[2]},
      .sums = sums.data()};
  sum_differences<<<static_cast<unsigned>(box.size()), kThreads, 0, context.stream()>>>(work);
  check_launch(kWhat);
  check(cudaStreamSynchronize(context.stream()), kWhat);
  const std::vector<double2> found = quasi::cuda::to_host(sums, kWhat);
  std::vector<Cplx> values;
  values.reserve(found.size());
  for (const double2& value : found) values.emplace_back(value.x, value.y);
  return values;
}

}  // namespace quasi::gw::cuda

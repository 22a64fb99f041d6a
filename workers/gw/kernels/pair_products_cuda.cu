#include <algorithm>

#include "workers/gw/kernels/pair_products_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

constexpr int kThreads = 256;
constexpr const char* kWhat = "pair products";

unsigned blocks_for(std::int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

/// box[index[g]] = c[g] for one band a blockIdx.y.
__global__ void scatter(const double2* c, const std::int32_t* index, std::int64_t n_pw,
                        std::int64_t n_r, double2* box) {
  const std::int64_t g = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (g < n_pw) box[blockIdx.y * n_r + index[g]] = c[blockIdx.y * n_pw + g];
}

/// f[b][r] = conj(u_l(r)) u_b(r), b = blockIdx.y.
__global__ void form_products(const double2* left, const double2* right, std::int64_t n_r, double2* f) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (r >= n_r) return;
  const double2 a = left[r];
  const double2 b = right[blockIdx.y * n_r + r];
  f[blockIdx.y * n_r + r] = {fma(a.x, b.x, a.y * b.y), fma(a.x, b.y, -a.y * b.x)};
}

/// m[b][g] = factor[g] f[b][index[g]].
__global__ void gather(const double2* f, const std::int32_t* index, const double2* factor,
                       std::int64_t n_g, std::int64_t n_r, double2* m) {
  const std::int64_t g = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (g >= n_g) return;
  const double2 value = f[blockIdx.y * n_r + index[g]];
  const double2 by = factor[g];
  m[blockIdx.y * n_g + g] = {fma(by.x, value.x, -by.y * value.y), fma(by.x, value.y, by.y * value.x)};
}

/// Transforms of one batch: two gigabytes of box, at most 1024 and at least one.
int largest_batch(std::int64_t n_r) {
  return static_cast<int>(std::clamp<std::int64_t>((std::int64_t{1} << 31) / (16 * n_r), 1, 1024));
}

}  // namespace

void PairProducts::set_box(std::array<int, 3> box) {
  if (box == box_) {
    for (auto& side : waves_) side = {};
    return;
  }
  box_ = box;
  n_r_ = std::int64_t{1} * box[0] * box[1] * box[2];
  for (auto& side : waves_) side = {};
  sphere_ = {};
  factor_ = {};
  work_ = {};
  for (int i = 0; i < 2; ++i) {
    plans_[i] = {};
    plan_batch_[i] = 0;
  }
}

const FftPlanCuda& PairProducts::plan(int batch, cudaStream_t stream) {
  const int kind = batch == largest_batch(n_r_) ? 0 : 1;
  if (plan_batch_[kind] != batch) {
    const int box[3] = {box_[0], box_[1], box_[2]};
    plans_[kind] = FftPlanCuda(box, batch, stream);
    plan_batch_[kind] = batch;
  }
  return plans_[kind];
}

void PairProducts::load_bands(Side side, View<const Cplx, 2> coefficients,
                              View<const std::int32_t, 1> box_index, cudaStream_t stream) {
  const std::int64_t n_bands = coefficients.extent[0];
  const std::int64_t n_pw = coefficients.extent[1];
  DeviceBuffer<double2> waves(static_cast<std::size_t>(n_bands * n_r_), "wavefunctions on the box");
  DeviceBuffer<std::int32_t> index(static_cast<std::size_t>(n_pw), kWhat);
  index.copy_from(box_index.data, static_cast<std::size_t>(n_pw), kWhat);
  waves.zero(kWhat, stream);
  const std::int64_t batch = largest_batch(n_r_);
  DeviceBuffer<double2> c(static_cast<std::size_t>(std::min(batch, n_bands) * n_pw), kWhat);
  for (std::int64_t first = 0; first < n_bands; first += batch) {
    const std::int64_t count = std::min(batch, n_bands - first);
    c.copy_from(reinterpret_cast<const double2*>(coefficients.data + first * n_pw),
                static_cast<std::size_t>(count * n_pw), kWhat);
    check(cudaDeviceSynchronize(), kWhat);
    double2* box = waves.data() + first * n_r_;
    scatter<<<dim3(blocks_for(n_pw), static_cast<unsigned>(count)), kThreads, 0, stream>>>(
        c.data(), index.data(), n_pw, n_r_, box);
    check_launch(kWhat);
    plan(static_cast<int>(count), stream).run(box);
    check(cudaStreamSynchronize(stream), kWhat);
  }
  waves_[static_cast<int>(side)] = std::move(waves);
}

void PairProducts::load_sphere(View<const std::int32_t, 1> box_index, View<const Cplx, 1> factor) {
  const auto n_g = static_cast<std::size_t>(box_index.extent[0]);
  std::vector<double2> scaled(n_g, double2{1.0 / static_cast<double>(n_r_), 0.0});
  for (std::int64_t g = 0; g < factor.extent[0]; ++g) {
    const Cplx value = factor(g) / static_cast<double>(n_r_);
    scaled[static_cast<std::size_t>(g)] = {value.real(), value.imag()};
  }
  sphere_ = DeviceBuffer<std::int32_t>(n_g, kWhat);
  sphere_.copy_from(box_index.data, n_g, kWhat);
  factor_ = DeviceBuffer<double2>(scaled, kWhat);
  check(cudaDeviceSynchronize(), kWhat);
}

void PairProducts::run(BandRange left, BandRange right, double2* products, cudaStream_t stream) {
  const std::int64_t batch = std::min<std::int64_t>(largest_batch(n_r_), right.size());
  if (static_cast<std::int64_t>(work_.size()) < batch * n_r_)
    work_ = DeviceBuffer<double2>(static_cast<std::size_t>(batch * n_r_), "batch of pair products");
  for (std::int64_t l = left.begin; l < left.end; ++l)
    for (std::int64_t n = right.begin; n < right.end; n += batch) {
      const std::int64_t count = std::min(batch, right.end - n);
      const auto many = static_cast<unsigned>(count);
      form_products<<<dim3(blocks_for(n_r_), many), kThreads, 0, stream>>>(
          waves_[0].data() + l * n_r_, waves_[1].data() + n * n_r_, n_r_, work_.data());
      check_launch(kWhat);
      plan(static_cast<int>(count), stream).run(work_.data());
      gather<<<dim3(blocks_for(n_g()), many), kThreads, 0, stream>>>(
          work_.data(), sphere_.data(), factor_.data(), n_g(), n_r_,
          products + ((l - left.begin) * right.size() + (n - right.begin)) * n_g());
      check_launch(kWhat);
    }
}

}  // namespace quasi::gw::cuda

#include <algorithm>
#include <vector>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/pair_products/pair_products_cuda.cuh"

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
__global__ void form_products(const double2* left, const double2* right, std::int64_t n_r,
                              double2* f) {
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
  m[blockIdx.y * n_g + g] = {fma(by.x, value.x, -by.y * value.y),
                             fma(by.x, value.y, by.y * value.x)};
}

/// f[b][r] = conj(u_l(r)) [u_2b(r) + i u_2b+1(r)]: M of both are real, so they come out as real and
/// imaginary part.
__global__ void form_two_products(const double2* left, const double2* right, std::int64_t n_right,
                                  std::int64_t n_r, double2* f) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (r >= n_r) return;
  const double2 a = left[r];
  const std::int64_t n = 2 * std::int64_t{blockIdx.y};
  double2 b = right[n * n_r + r];
  if (n + 1 < n_right) {
    const double2 c = right[(n + 1) * n_r + r];
    b = {b.x - c.y, b.y + c.x};
  }
  f[blockIdx.y * n_r + r] = {fma(a.x, b.x, a.y * b.y), fma(a.x, b.y, -a.y * b.x)};
}

/// M of the first plane waves that is given instead of the transform's.
struct Heads {
  const double2* values;  ///< [n][stride]
  std::int64_t n, stride;
};

/// rows[b][g] = root[b] factor[g] f[b][index[g]]; heads.values[g][b] instead for the first plane
/// waves.
__global__ void gather_weighted(const double2* f, const std::int32_t* index, const double2* factor,
                                const double* root, Heads heads, std::int64_t n_g, std::int64_t n_r,
                                double2* rows) {
  const std::int64_t g = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (g >= n_g) return;
  const double2 value = f[blockIdx.y * n_r + index[g]];
  const double2 by = factor[g];
  double2 m{fma(by.x, value.x, -by.y * value.y), fma(by.x, value.y, by.y * value.x)};
  if (g < heads.n) m = heads.values[g * heads.stride + blockIdx.y];
  const double w = root[blockIdx.y];
  rows[blockIdx.y * n_g + g] = {w * m.x, w * m.y};
}

/// The same for two real products a box: rows 2b and 2b + 1.
__global__ void gather_weighted_real(const double2* f, const std::int32_t* index,
                                     const double2* factor, const double* root, Heads heads,
                                     std::int64_t n_g, std::int64_t n_r, std::int64_t n_rows,
                                     double* rows) {
  const std::int64_t g = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (g >= n_g) return;
  const double2 value = f[blockIdx.y * n_r + index[g]];
  const double by = factor[g].x;
  const std::int64_t row = 2 * std::int64_t{blockIdx.y};
  const bool from_head = g < heads.n;
  const double2* head = heads.values + g * heads.stride;
  rows[row * n_g + g] = root[row] * (from_head ? head[row].x : by * value.x);
  if (row + 1 < n_rows)
    rows[(row + 1) * n_g + g] = root[row + 1] * (from_head ? head[row + 1].x : by * value.y);
}

struct AnyImaginary {
  const double2* values;
  int* found;
  __device__ void operator()(std::int64_t i) const {
    if (values[i].y != 0.0) *found = 1;
  }
};

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

const FftPlanCuda& PairProducts::plan(int batch) {
  const int kind = batch == largest_batch(n_r_) ? 0 : 1;
  if (plan_batch_[kind] != batch) {
    const int box[3] = {box_[0], box_[1], box_[2]};
    plans_[kind] = FftPlanCuda(box, batch);
    plan_batch_[kind] = batch;
  }
  return plans_[kind];
}

void PairProducts::load_bands(Side side, View<const Cplx, 2> coefficients,
                              View<const std::int32_t, 1> box_index, StagedCopy& staging,
                              cudaStream_t stream) {
  const std::int64_t n_bands = coefficients.extent[0];
  const std::int64_t n_pw = coefficients.extent[1];
  DeviceBuffer<double2> waves(static_cast<std::size_t>(n_bands * n_r_), "wavefunctions on the box");
  DeviceBuffer<std::int32_t> index(static_cast<std::size_t>(n_pw), kWhat);
  index.copy_from(box_index.data, static_cast<std::size_t>(n_pw), kWhat);
  waves.zero(kWhat, stream);
  const std::int64_t batch = largest_batch(n_r_);
  DeviceBuffer<double2> c(static_cast<std::size_t>(std::min(batch, n_bands) * n_pw), kWhat);
  DeviceBuffer<int> imaginary(1, kWhat);
  imaginary.zero(kWhat, stream);
  for (std::int64_t first = 0; first < n_bands; first += batch) {
    const std::int64_t count = std::min(batch, n_bands - first);
    staging.to_device(coefficients.data + first * n_pw,
                      count * n_pw * static_cast<std::int64_t>(sizeof(Cplx)), c.data(), stream,
                      kWhat);
    double2* box = waves.data() + first * n_r_;
    scatter<<<dim3(blocks_for(n_pw), static_cast<unsigned>(count)), kThreads, 0, stream>>>(
        c.data(), index.data(), n_pw, n_r_, box);
    check_launch(kWhat);
    quasi::cuda::for_each_index(count * n_pw, AnyImaginary{c.data(), imaginary.data()}, kWhat,
                                stream);
    plan(static_cast<int>(count)).run(box, stream);
    check(cudaStreamSynchronize(stream), kWhat);
  }
  real_side_[static_cast<int>(side)] = quasi::cuda::to_host(imaginary, kWhat).front() == 0;
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
  real_factor_ =
      std::all_of(scaled.begin(), scaled.end(), [](const double2& f) { return f.y == 0.0; });
  check(cudaDeviceSynchronize(), kWhat);
}

double2* PairProducts::work_of(std::int64_t boxes) {
  if (static_cast<std::int64_t>(work_.size()) < boxes * n_r_)
    work_ = DeviceBuffer<double2>(static_cast<std::size_t>(boxes * n_r_), "batch of pair products");
  return work_.data();
}

std::int64_t PairProducts::largest_rows(std::int64_t n_right, bool real) const {
  return std::min<std::int64_t>(std::int64_t{largest_batch(n_r_)} * (real ? 2 : 1), n_right);
}

void PairProducts::run_weighted(const WeightedRows& wanted, cudaStream_t stream) {
  const std::int64_t rows = wanted.right.size(), boxes = wanted.real ? (rows + 1) / 2 : rows;
  double2* work = work_of(boxes);
  const double2* left = waves_[0].data() + wanted.left * n_r_;
  const double2* right = waves_[1].data() + wanted.right.begin * n_r_;
  const dim3 on_box(blocks_for(n_r_), static_cast<unsigned>(boxes)),
      on_sphere(blocks_for(n_g()), static_cast<unsigned>(boxes));
  if (wanted.real)
    form_two_products<<<on_box, kThreads, 0, stream>>>(left, right, rows, n_r_, work);
  else
    form_products<<<on_box, kThreads, 0, stream>>>(left, right, n_r_, work);
  check_launch(kWhat);
  plan(static_cast<int>(boxes)).run(work, stream);
  const Heads heads{wanted.head, wanted.n_heads, wanted.head_stride};
  if (wanted.real)
    gather_weighted_real<<<on_sphere, kThreads, 0, stream>>>(work, sphere_.data(), factor_.data(),
                                                             wanted.root, heads, n_g(), n_r_, rows,
                                                             static_cast<double*>(wanted.rows));
  else
    gather_weighted<<<on_sphere, kThreads, 0, stream>>>(work, sphere_.data(), factor_.data(),
                                                        wanted.root, heads, n_g(), n_r_,
                                                        static_cast<double2*>(wanted.rows));
  check_launch(kWhat);
}

void PairProducts::run(BandRange left, BandRange right, double2* products, cudaStream_t stream) {
  const std::int64_t batch = std::min<std::int64_t>(largest_batch(n_r_), right.size());
  work_of(batch);
  for (std::int64_t l = left.begin; l < left.end; ++l)
    for (std::int64_t n = right.begin; n < right.end; n += batch) {
      const std::int64_t count = std::min(batch, right.end - n);
      const auto many = static_cast<unsigned>(count);
      form_products<<<dim3(blocks_for(n_r_), many), kThreads, 0, stream>>>(
          waves_[0].data() + l * n_r_, waves_[1].data() + n * n_r_, n_r_, work_.data());
      check_launch(kWhat);
      plan(static_cast<int>(count)).run(work_.data(), stream);
      gather<<<dim3(blocks_for(n_g()), many), kThreads, 0, stream>>>(
          work_.data(), sphere_.data(), factor_.data(), n_g(), n_r_,
          products + ((l - left.begin) * right.size() + (n - right.begin)) * n_g());
      check_launch(kWhat);
    }
}

}  // namespace quasi::gw::cuda

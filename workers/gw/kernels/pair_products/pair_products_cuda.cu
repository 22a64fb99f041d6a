#include <algorithm>
#include <stdexcept>
#include <vector>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/pair_products/pair_block_cuda.cuh"
#include "workers/gw/kernels/pair_products/pair_products_cuda.cuh"
#include "workers/gw/model/memory_limits.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;

constexpr int kThreads = 256;
constexpr const char* kWhat = "pair products";

unsigned blocks_for(std::int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

/// Writes box[index[g]] = c[g] for one band in each blockIdx.y.
__global__ void scatter(const double2* c, const std::int32_t* index, std::int64_t n_pw,
                        std::int64_t n_r, double2* box) {
  const std::int64_t g = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (g < n_pw) box[blockIdx.y * n_r + index[g]] = c[blockIdx.y * n_pw + g];
}

/// Returns conj(a) b.
__device__ double2 conjugate_product(const double2& a, const double2& b) {
  return {fma(a.x, b.x, a.y * b.y), fma(a.x, b.y, -a.y * b.x)};
}

/// Returns conj(a) b + c.
__device__ double2 add_conjugate_product(const double2& a, const double2& b, const double2& c) {
  return {fma(a.x, b.x, fma(a.y, b.y, c.x)), fma(a.x, b.y, fma(-a.y, b.x, c.y))};
}

/// Computes f[b][r] = conj(u_l(r)) u_b(r), b = blockIdx.y, or the sum of both components.
template <int kSpinor>
__global__ void form_products(const double2* left, const double2* right, std::int64_t n_r,
                              double2* f) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (r >= n_r) return;
  const double2* b = right + blockIdx.y * kSpinor * n_r + r;
  double2 sum = conjugate_product(left[r], b[0]);
  if constexpr (kSpinor == 2) sum = add_conjugate_product(left[n_r + r], b[n_r], sum);
  f[blockIdx.y * n_r + r] = sum;
}

/// Computes f[r] = Σ_n |u_n(r)|² of all components of all bands.
__global__ void add_squares(const double2* waves, std::int64_t n_bands, std::int64_t n_r,
                            double2* f) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (r >= n_r) return;
  double sum = 0.0;
  for (std::int64_t n = 0; n < n_bands; ++n) {
    const double2 a = waves[n * n_r + r];
    sum = fma(a.x, a.x, fma(a.y, a.y, sum));
  }
  f[r] = {sum, 0.0};
}

/// Plane waves that are gathered from a transformed box.
struct SphereInBox {
  const std::int32_t* index;  ///< [n_g]
  const double2* factor;      ///< [n_g]
  std::int64_t n_g, n_r;
};

/// Computes m[b][g] = factor[g] f[b][index[g]].
__global__ void gather(const double2* f, SphereInBox sphere, double2* m) {
  const std::int64_t g = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (g >= sphere.n_g) return;
  const double2 value = f[blockIdx.y * sphere.n_r + sphere.index[g]];
  const double2 by = sphere.factor[g];
  m[blockIdx.y * sphere.n_g + g] = {fma(by.x, value.x, -by.y * value.y),
                                    fma(by.x, value.y, by.y * value.x)};
}

struct DropImaginary {
  double2* values;
  __device__ void operator()(std::int64_t i) const { values[i].y = 0.0; }
};

/// Computes f[b][r] = conj(u_l(r)) [u_2b(r) + i u_2b+1(r)], or the sum of both components. M of
/// both is real, so they appear as real and imaginary part.
template <int kSpinor>
__global__ void form_two_products(const double2* left, const double2* right, std::int64_t n_right,
                                  std::int64_t n_r, double2* f) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (r >= n_r) return;
  const std::int64_t n = 2 * std::int64_t{blockIdx.y};
  const auto pair_of = [&](std::int64_t component) {
    double2 b = right[(n * kSpinor + component) * n_r + r];
    if (n + 1 < n_right) {
      const double2 c = right[((n + 1) * kSpinor + component) * n_r + r];
      b = {b.x - c.y, b.y + c.x};
    }
    return b;
  };
  double2 sum = conjugate_product(left[r], pair_of(0));
  if constexpr (kSpinor == 2) sum = add_conjugate_product(left[n_r + r], pair_of(1), sum);
  f[blockIdx.y * n_r + r] = sum;
}

/// Given values of M for the first plane waves, which replace those of the transform.
struct Heads {
  const double2* values;  ///< [n][stride]
  std::int64_t n, stride;
};

/// Computes rows[b][g] = root[b] factor[g] f[b][index[g]]. For the first plane waves
/// heads.values[g][b] replaces the transform's value.
__global__ void gather_weighted(const double2* f, SphereInBox sphere, const double* root,
                                Heads heads, double2* rows) {
  const std::int64_t g = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (g >= sphere.n_g) return;
  const double2 value = f[blockIdx.y * sphere.n_r + sphere.index[g]];
  const double2 by = sphere.factor[g];
  double2 m{fma(by.x, value.x, -by.y * value.y), fma(by.x, value.y, by.y * value.x)};
  if (g < heads.n) m = heads.values[g * heads.stride + blockIdx.y];
  const double w = root[blockIdx.y];
  rows[blockIdx.y * sphere.n_g + g] = {w * m.x, w * m.y};
}

/// Computes gather_weighted() for form_two_products(): real and imaginary part of f[b] are rows 2b
/// and 2b + 1.
__global__ void gather_weighted_real(const double2* f, SphereInBox sphere, const double* root,
                                     Heads heads, std::int64_t n_rows, double* rows) {
  const std::int64_t g = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t n_g = sphere.n_g;
  if (g >= n_g) return;
  const double2 value = f[blockIdx.y * sphere.n_r + sphere.index[g]];
  const double by = sphere.factor[g].x;
  const std::int64_t row = 2 * std::int64_t{blockIdx.y};
  const bool uses_head = g < heads.n;
  const double2* head = heads.values + g * heads.stride;
  rows[row * n_g + g] = root[row] * (uses_head ? head[row].x : by * value.x);
  if (row + 1 < n_rows)
    rows[(row + 1) * n_g + g] = root[row + 1] * (uses_head ? head[row + 1].x : by * value.y);
}

struct AnyImaginary {
  const double2* values;
  int* found;
  __device__ void operator()(std::int64_t i) const {
    if (values[i].y != 0.0) *found = 1;
  }
};

/// Returns the number of transforms in one batch: two gigabytes of box, at most 1024 and at least
/// one.
int largest_batch(std::int64_t n_r) {
  return static_cast<int>(std::clamp<std::int64_t>(kTransformBatch_bytes / (16 * n_r), 1, 1024));
}

std::int64_t box_size(const FftBox& box) { return std::int64_t{1} * box[0] * box[1] * box[2]; }

const CudaBands& bands_of(const BandSelection& selection) {
  return dynamic_cast<const CudaBands&>(selection.bands);
}

}  // namespace

void PairProductTransforms::use_box(const FftBox& box) {
  if (box == box_) return;
  box_ = box;
  n_r_ = box_size(box);
  work_ = {};
  for (int i = 0; i < 2; ++i) {
    plans_[i] = {};
    plan_batch_[i] = 0;
  }
}

const FftPlanCuda& PairProductTransforms::plan(int batch) {
  const int kind = batch == largest_batch(n_r_) ? 0 : 1;
  if (plan_batch_[kind] != batch) {
    const int box[3] = {box_[0], box_[1], box_[2]};
    plans_[kind] = FftPlanCuda(box, batch);
    plan_batch_[kind] = batch;
  }
  return plans_[kind];
}

double2* PairProductTransforms::work_of(std::int64_t boxes) {
  if (static_cast<std::int64_t>(work_.size()) < boxes * n_r_)
    work_ = DeviceBuffer<double2>(static_cast<std::size_t>(boxes * n_r_), "batch of pair products");
  return work_.data();
}

void PairProductTransforms::transform(const FftBox& box, std::int64_t count, double2* data,
                                      cudaStream_t stream) {
  use_box(box);
  plan(static_cast<int>(count)).run(data, stream);
}

std::int64_t PairProductTransforms::largest_rows(const FftBox& box, std::int64_t n_right,
                                                 bool real) {
  return std::min<std::int64_t>(std::int64_t{largest_batch(box_size(box))} * (real ? 2 : 1),
                                n_right);
}

bool PairProductTransforms::is_real(const BandSelection& left, const BandSelection& right,
                                    const CudaSphere& sphere) {
  return bands_of(left).real && bands_of(right).real && sphere.real;
}

bool PairProductTransforms::is_real(const ChiSum::Pairs& pairs) {
  const View<const Cplx, 3>& head = pairs.head;
  return is_real(pairs.left, pairs.right, dynamic_cast<const CudaSphere&>(pairs.sphere)) &&
         std::all_of(head.data, head.data + (head.data ? head.size() : 0),
                     [](const Cplx& m) { return m.imag() == 0.0; });
}

void PairProductTransforms::fill_weighted(const WeightedRows& wanted, cudaStream_t stream) {
  const CudaSphere& sphere = wanted.sphere;
  use_box(sphere.box);
  const std::int64_t rows = wanted.right.size(), boxes = wanted.real ? (rows + 1) / 2 : rows;
  double2* work = work_of(boxes);
  const std::int64_t n_spinor = wanted.left_bands.n_spinor;
  const auto form = n_spinor == 2 ? form_products<2> : form_products<1>;
  const auto form_two = n_spinor == 2 ? form_two_products<2> : form_two_products<1>;
  const double2* left = wanted.left_bands.waves.data() + wanted.left * n_spinor * n_r_;
  const double2* right = wanted.right_bands.waves.data() + wanted.right.begin * n_spinor * n_r_;
  const dim3 box_grid(blocks_for(n_r_), static_cast<unsigned>(boxes)),
      sphere_grid(blocks_for(sphere.n_g()), static_cast<unsigned>(boxes));
  if (wanted.real)
    form_two<<<box_grid, kThreads, 0, stream>>>(left, right, rows, n_r_, work);
  else
    form<<<box_grid, kThreads, 0, stream>>>(left, right, n_r_, work);
  check_launch(kWhat);
  plan(static_cast<int>(boxes)).run(work, stream);
  const Heads heads{wanted.head, wanted.n_heads, wanted.head_stride};
  const SphereInBox gathered{sphere.box_index.data(), sphere.factor.data(), sphere.n_g(), n_r_};
  if (wanted.real)
    gather_weighted_real<<<sphere_grid, kThreads, 0, stream>>>(
        work, gathered, wanted.root, heads, rows, static_cast<double*>(wanted.rows));
  else
    gather_weighted<<<sphere_grid, kThreads, 0, stream>>>(work, gathered, wanted.root, heads,
                                                          static_cast<double2*>(wanted.rows));
  check_launch(kWhat);
}

void PairProductTransforms::fill(const BandSelection& left, const BandSelection& right,
                                 const CudaSphere& sphere, double2* products, cudaStream_t stream) {
  use_box(sphere.box);
  const BandRange l_range = left.range, n_range = right.range;
  const std::int64_t batch = std::min<std::int64_t>(largest_batch(n_r_), n_range.size());
  work_of(batch);
  const std::int64_t n_spinor = bands_of(right).n_spinor;
  const auto form = n_spinor == 2 ? form_products<2> : form_products<1>;
  const SphereInBox gathered{sphere.box_index.data(), sphere.factor.data(), sphere.n_g(), n_r_};
  for (std::int64_t l = l_range.begin; l < l_range.end; ++l)
    for (std::int64_t n = n_range.begin; n < n_range.end; n += batch) {
      const std::int64_t count = std::min(batch, n_range.end - n);
      const auto many = static_cast<unsigned>(count);
      form<<<dim3(blocks_for(n_r_), many), kThreads, 0, stream>>>(
          bands_of(left).waves.data() + l * n_spinor * n_r_,
          bands_of(right).waves.data() + n * n_spinor * n_r_, n_r_, work_.data());
      check_launch(kWhat);
      plan(static_cast<int>(count)).run(work_.data(), stream);
      gather<<<dim3(blocks_for(sphere.n_g()), many), kThreads, 0, stream>>>(
          work_.data(), gathered,
          products + ((l - l_range.begin) * n_range.size() + (n - n_range.begin)) * sphere.n_g());
      check_launch(kWhat);
    }
}

void PairProductTransforms::sum_squares(const BandSelection& bands, const CudaSphere& sphere,
                                        double2* products, cudaStream_t stream) {
  use_box(sphere.box);
  double2* work = work_of(1);
  const std::int64_t n_spinor = bands_of(bands).n_spinor;
  add_squares<<<blocks_for(n_r_), kThreads, 0, stream>>>(
      bands_of(bands).waves.data() + bands.range.begin * n_spinor * n_r_,
      bands.range.size() * n_spinor, n_r_, work);
  check_launch(kWhat);
  plan(1).run(work, stream);
  gather<<<dim3(blocks_for(sphere.n_g()), 1), kThreads, 0, stream>>>(
      work, {sphere.box_index.data(), sphere.factor.data(), sphere.n_g(), n_r_}, products);
  check_launch(kWhat);
}

std::unique_ptr<const LoadedBands> CudaPairProductKernels::load_bands(
    const FftBox& box, View<const Cplx, 2> coefficients, View<const std::int32_t, 1> box_index) {
  context_->use();
  const cudaStream_t stream = context_->stream();
  // A component of a band is transformed like a band.
  const std::int64_t n_pw = box_index.extent[0],
                     n_spinor = coefficients.extent[1] / std::max<std::int64_t>(1, n_pw),
                     n_bands = coefficients.extent[0] * n_spinor, n_r = box_size(box);
  auto bands = std::make_unique<CudaBands>();
  bands->box = box;
  bands->n_spinor = n_spinor;
  bands->waves =
      DeviceBuffer<double2>(static_cast<std::size_t>(n_bands * n_r), "wavefunctions on the box");
  DeviceBuffer<std::int32_t> index(static_cast<std::size_t>(n_pw), kWhat);
  index.copy_from(box_index.data, static_cast<std::size_t>(n_pw), kWhat);
  bands->waves.zero(kWhat, stream);
  const std::int64_t batch = largest_batch(n_r);
  DeviceBuffer<double2> c(static_cast<std::size_t>(std::min(batch, n_bands) * n_pw), kWhat);
  DeviceBuffer<int> imaginary(1, kWhat);
  imaginary.zero(kWhat, stream);
  for (std::int64_t first = 0; first < n_bands; first += batch) {
    const std::int64_t count = std::min(batch, n_bands - first);
    context_->staging().to_device(coefficients.data + first * n_pw,
                                  count * n_pw * static_cast<std::int64_t>(sizeof(Cplx)), c.data(),
                                  stream, kWhat);
    double2* box_values = bands->waves.data() + first * n_r;
    scatter<<<dim3(blocks_for(n_pw), static_cast<unsigned>(count)), kThreads, 0, stream>>>(
        c.data(), index.data(), n_pw, n_r, box_values);
    check_launch(kWhat);
    quasi::cuda::for_each_index(count * n_pw, AnyImaginary{c.data(), imaginary.data()}, kWhat,
                                stream);
    transforms_->transform(box, count, box_values, stream);
    check(cudaStreamSynchronize(stream), kWhat);
  }
  bands->real = quasi::cuda::to_host(imaginary, kWhat).front() == 0;
  return bands;
}

std::unique_ptr<const LoadedSphere> CudaPairProductKernels::load_sphere(
    const FftBox& box, View<const std::int32_t, 1> box_index, View<const Cplx, 1> factor) {
  context_->use();
  const auto n_g = static_cast<std::size_t>(box_index.extent[0]);
  const auto n_r = static_cast<double>(box_size(box));
  std::vector<double2> scaled(n_g, double2{1.0 / n_r, 0.0});
  for (std::int64_t g = 0; g < factor.extent[0]; ++g) {
    const Cplx value = factor(g) / n_r;
    scaled[static_cast<std::size_t>(g)] = {value.real(), value.imag()};
  }
  auto sphere = std::make_unique<CudaSphere>();
  sphere->box = box;
  sphere->box_index = DeviceBuffer<std::int32_t>(n_g, kWhat);
  sphere->box_index.copy_from(box_index.data, n_g, kWhat);
  sphere->factor = DeviceBuffer<double2>(scaled, kWhat);
  sphere->real =
      std::all_of(scaled.begin(), scaled.end(), [](const double2& f) { return f.y == 0.0; });
  check(cudaDeviceSynchronize(), kWhat);
  return sphere;
}

std::unique_ptr<PairBlock> CudaPairProductKernels::make_block() {
  return std::make_unique<CudaPairBlock>(context_);
}

void CudaPairProductKernels::fill(const BandSelection& left, const BandSelection& right,
                                  const LoadedSphere& sphere, PairBlock& block) {
  context_->use();
  const auto& kept = dynamic_cast<const CudaSphere&>(sphere);
  if (bands_of(left).box != kept.box || bands_of(right).box != kept.box)
    throw std::logic_error("bands and sphere of a pair product are on different boxes");
  if (bands_of(left).n_spinor != bands_of(right).n_spinor)
    throw std::logic_error("a pair product of a spinor with a state of one component");
  double2* products =
      dynamic_cast<CudaPairBlock&>(block).resize(left.range.size(), right.range.size(), kept.n_g());
  transforms_->fill(left, right, kept, products, context_->stream());
  // What rounding has left in the imaginary parts would hide that sums over them are real.
  if (PairProductTransforms::is_real(left, right, kept))
    for_each_index(left.range.size() * right.range.size() * kept.n_g(), DropImaginary{products},
                   kWhat, context_->stream());
  check(cudaStreamSynchronize(context_->stream()), kWhat);
}

void CudaPairProductKernels::add_density(const BandSelection& bands, const LoadedSphere& sphere,
                                         double weight, View<Cplx, 1> sum) {
  context_->use();
  const auto& kept = dynamic_cast<const CudaSphere&>(sphere);
  if (bands_of(bands).box != kept.box)
    throw std::logic_error("bands and sphere of a density are on different boxes");
  DeviceBuffer<double2> products(static_cast<std::size_t>(kept.n_g()), kWhat);
  transforms_->sum_squares(bands, kept, products.data(), context_->stream());
  if (PairProductTransforms::is_real(bands, bands, kept))
    for_each_index(kept.n_g(), DropImaginary{products.data()}, kWhat, context_->stream());
  const std::vector<double2> values = quasi::cuda::to_host(products, kWhat, context_->stream());
  for (std::size_t g = 0; g < values.size(); ++g)
    sum.data[g] += weight * Cplx(values[g].x, -values[g].y);
}

}  // namespace quasi::gw::cuda

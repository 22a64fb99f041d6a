#include <algorithm>
#include <utility>
#include <vector>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/hamiltonian/hamiltonian_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;
namespace late = quasi::cuda::late;

constexpr const char* kWhat = "the Hamiltonian";
constexpr int kThreads = 256;
/// Largest number of vectors in a batch. With large boxes fewer vectors keep the GPU busy.
constexpr std::int64_t kLargestBatch = 64;
constexpr std::int64_t kBoxes_bytes = std::int64_t{1} << 29;

dim3 grid_of(std::int64_t points, std::int64_t vectors) {
  return {static_cast<unsigned>((points + kThreads - 1) / kThreads),
          static_cast<unsigned>(vectors)};
}

/// Fills the boxes of several vectors; blockIdx.y is the number of the vector. Points without a
/// plane wave get 0.
__global__ void fill_boxes(const double2* x, const std::int32_t* plane_wave_at, std::int64_t n,
                           std::int64_t n_box, double2* boxes) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (r >= n_box) return;
  const std::int32_t g = plane_wave_at[r];
  boxes[blockIdx.y * n_box + r] = g >= 0 ? x[blockIdx.y * n + g] : double2{0.0, 0.0};
}

__global__ void multiply_boxes(const double* potential, std::int64_t n_box, double2* boxes) {
  const std::int64_t r = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (r >= n_box) return;
  double2& value = boxes[blockIdx.y * n_box + r];
  value = {value.x * potential[r], value.y * potential[r]};
}

/// Refers to the plane waves of a state and their positions in the box of n_box points.
struct PlaneWaves {
  const std::int32_t* box_index;  ///< position of each plane wave, [n]
  const double* kinetic;          ///< |k+G|², [n]
  std::int64_t n, n_box;
};

/// Computes hx = |k+G|² x + V x, where V x comes from `boxes`. With null `boxes` V is 0.
__global__ void collect(const double2* boxes, PlaneWaves at, const double2* x, double2* hx) {
  const std::int64_t g = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (g >= at.n) return;
  const double2 local =
      boxes != nullptr ? boxes[blockIdx.y * at.n_box + at.box_index[g]] : double2{0.0, 0.0};
  const double2 value = x[blockIdx.y * at.n + g];
  hx[blockIdx.y * at.n + g] = {fma(at.kinetic[g], value.x, local.x),
                               fma(at.kinetic[g], value.y, local.y)};
}

/// Computes coupled[v][row] = Σ_c D[row][c] overlap[v][c] of a SparseMatrix D. The index of a
/// thread is v n_rows + row.
struct CoupleProjectors {
  const std::int32_t* begin;
  const std::int32_t* column;
  const double2* value;
  const double2* overlap;
  std::int64_t n_rows;
  double2* coupled;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t row = index % n_rows;
    const double2* const of_state = overlap + (index - row);
    double2 sum{0.0, 0.0};
    for (std::int32_t e = begin[row]; e < begin[row + 1]; ++e) {
      const double2 d = value[e], x = of_state[column[e]];
      sum = {fma(d.x, x.x, fma(-d.y, x.y, sum.x)), fma(d.x, x.y, fma(d.y, x.x, sum.y))};
    }
    coupled[index] = sum;
  }
};

}  // namespace

CudaOperator::CudaOperator(SharedContext context, const HamiltonianOperator& h)
    : context_(std::move(context)),
      n_(static_cast<std::int64_t>(h.parts().kinetic_ry.size())),
      n_spinor_(h.parts().n_spinor),
      box_(h.parts().box) {
  context_->use();
  const HamiltonianParts& parts = h.parts();
  kinetic_ = DeviceBuffer<double>(parts.kinetic_ry, kWhat);
  n_projectors_ = n_ > 0 ? static_cast<std::int64_t>(parts.beta.size()) / n_ : 0;
  if (n_projectors_ > 0) {
    beta_ = context_->to_device(parts.beta.data(), n_projectors_ * n_, kWhat);
    right_ = context_->to_device(parts.right.data(), n_projectors_ * n_, kWhat);
  }
  if (!parts.coupling.value.empty()) {
    coupling_begin_ = DeviceBuffer<std::int32_t>(parts.coupling.begin, kWhat);
    coupling_column_ = DeviceBuffer<std::int32_t>(parts.coupling.column, kWhat);
    coupling_value_ =
        context_->to_device(parts.coupling.value.data(), std::ssize(parts.coupling.value), kWhat);
  }
  if (h.potential().empty()) return;
  potential_ = DeviceBuffer<double>(h.potential(), kWhat);
  n_box_ = static_cast<std::int64_t>(h.potential().size());
  box_index_ = DeviceBuffer<std::int32_t>(parts.box_index, kWhat);
  std::vector<std::int32_t> plane_wave_at(h.potential().size(), -1);
  for (std::size_t g = 0; g < parts.box_index.size(); ++g)
    plane_wave_at[static_cast<std::size_t>(parts.box_index[g])] = static_cast<std::int32_t>(g);
  plane_wave_at_ = DeviceBuffer<std::int32_t>(plane_wave_at, kWhat);
}

std::int64_t CudaOperator::use_batch(std::int64_t wanted) {
  const std::int64_t fits =
      n_box_ > 0 ? std::max<std::int64_t>(1, kBoxes_bytes / (16 * n_box_ * n_spinor_))
                 : kLargestBatch;
  const std::int64_t batch = std::max<std::int64_t>(1, std::min({wanted, fits, kLargestBatch}));
  if (batch == batch_) return batch_;
  context_->use();
  // Earlier work may still use the old boxes.
  check(cudaStreamSynchronize(context_->stream()), kWhat);
  batch_ = batch;
  const std::int64_t rows = batch * n_spinor_;
  overlap_ = DeviceBuffer<double2>(static_cast<std::size_t>(rows * n_projectors_), kWhat);
  if (coupling_value_.size() > 0)
    coupled_ = DeviceBuffer<double2>(static_cast<std::size_t>(rows * n_projectors_), kWhat);
  if (n_box_ == 0) return batch_;
  boxes_ = DeviceBuffer<double2>(static_cast<std::size_t>(rows * n_box_), kWhat);
  boxes_.zero(kWhat);
  plan_ = FftPlanCuda({box_[0], box_[1], box_[2]}, static_cast<int>(rows));
  return batch_;
}

void CudaOperator::apply(const double2* x, double2* hx, std::int64_t count) {
  const cudaStream_t stream = context_->stream();
  const std::int64_t rows = count * n_spinor_;
  if (n_box_ > 0) {
    fill_boxes<<<grid_of(n_box_, rows), kThreads, 0, stream>>>(x, plane_wave_at_.data(), n_, n_box_,
                                                               boxes_.data());
    check_launch(kWhat);
    // The first transform brings the states to −r, and potential_ holds V(−r), too.
    plan_.run(boxes_.data(), stream, CUFFT_FORWARD);
    multiply_boxes<<<grid_of(n_box_, rows), kThreads, 0, stream>>>(potential_.data(), n_box_,
                                                                   boxes_.data());
    check_launch(kWhat);
    plan_.run(boxes_.data(), stream, CUFFT_INVERSE);
  }
  collect<<<grid_of(n_, rows), kThreads, 0, stream>>>(
      n_box_ > 0 ? boxes_.data() : nullptr,
      PlaneWaves{box_index_.data(), kinetic_.data(), n_, n_box_}, x, hx);
  check_launch(kWhat);
  if (n_projectors_ > 0) add_projectors(x, hx, rows);
}

void CudaOperator::add_projectors(const double2* x, double2* hx, std::int64_t rows) {
  const double2 one{1.0, 0.0}, zero{0.0, 0.0};
  const int n = static_cast<int>(n_), p = static_cast<int>(n_projectors_),
            v = static_cast<int>(rows);
  const bool couples = coupling_value_.size() > 0;
  check(late::cublasZgemm(context_->blas(), CUBLAS_OP_T, CUBLAS_OP_N, p, v, n, &one, right_.data(),
                          n, x, n, &zero, overlap_.data(), p),
        kWhat);
  if (couples)
    for_each_index(
        rows * n_projectors_,
        CoupleProjectors{coupling_begin_.data(), coupling_column_.data(), coupling_value_.data(),
                         overlap_.data(), n_spinor_ * n_projectors_, coupled_.data()},
        kWhat, context_->stream());
  check(late::cublasZgemm(context_->blas(), CUBLAS_OP_N, CUBLAS_OP_N, n, v, p, &one, beta_.data(),
                          n, couples ? coupled_.data() : overlap_.data(), p, &one, hx, n),
        kWhat);
}

}  // namespace quasi::gw::cuda

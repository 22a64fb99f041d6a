#pragma once

#include <cstdint>
#include <memory>

#include "workers/gw/kernels/cuda_context.cuh"
#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels.hpp"
#include "workers/gw/kernels/pair_products/fft_plan_cuda.cuh"

namespace quasi::gw::cuda {

/// Applies H to complex vectors in device memory (docs/theory/gw.md 9.1). The local potential acts
/// by batched transforms of the whole box, and the projectors by two products. Two real states a, b
/// are the vector a + ib. The components of a spinor are two rows of a batch, and the matrix D
/// between its projectors is sparse.
class CudaOperator {
 public:
  CudaOperator(SharedContext context, const HamiltonianOperator& h);
  /// Returns the order of H: plane waves times components.
  std::int64_t size() const { return n_ * n_spinor_; }
  CudaContext& context() const { return *context_; }
  /// Chooses the vectors of a batch for `wanted` vectors in all, and returns their number. A batch
  /// that is not full takes as long as a full one.
  std::int64_t use_batch(std::int64_t wanted);
  /// Computes hx[v] = H x[v]; both [count][size()]. @pre count is at most the batch
  void apply(const double2* x, double2* hx, std::int64_t count);

 private:
  /// Adds the projectors to `rows` components of states.
  void add_projectors(const double2* x, double2* hx, std::int64_t rows);

  SharedContext context_;
  std::int64_t n_ = 0;  ///< number of plane waves
  std::int64_t n_spinor_ = 1, n_box_ = 0, n_projectors_ = 0, batch_ = 0;
  FftBox box_{};
  quasi::cuda::DeviceBuffer<double> kinetic_, potential_;
  quasi::cuda::DeviceBuffer<std::int32_t> box_index_;      ///< [n_pw]
  quasi::cuda::DeviceBuffer<std::int32_t> plane_wave_at_;  ///< of each point of the box, or −1
  quasi::cuda::DeviceBuffer<double2> beta_, right_, overlap_, boxes_;
  /// HamiltonianParts::coupling, and its product with overlap_. The buffers are empty without
  /// spinors.
  quasi::cuda::DeviceBuffer<std::int32_t> coupling_begin_, coupling_column_;
  quasi::cuda::DeviceBuffer<double2> coupling_value_, coupled_;
  FftPlanCuda plan_;
};

/// Computes before = (image − centre now) factor − keep before, a step of a three-term recursion.
/// Without `keep` the old values are not read.
struct RecursionStep {
  const double2* image;
  const double2* now;
  double2* before;
  double centre, factor, keep;
  __device__ void operator()(std::int64_t i) const {
    const double2 h = image[i], x = now[i], old = keep != 0.0 ? before[i] : double2{0.0, 0.0};
    before[i] = {fma(fma(-centre, x.x, h.x), factor, -keep * old.x),
                 fma(fma(-centre, x.y, h.y), factor, -keep * old.y)};
  }
};

/// Makes a block of states of an operator; real states for T = double.
std::unique_ptr<StateBlock> make_state_block(std::shared_ptr<CudaOperator> h, bool is_real);

/// Copies states of type T into complex vectors, [vectors][n]. Two real states a, b become a + ib.
void pack(cudaStream_t stream, const double2* states, std::int64_t count, std::int64_t n,
          double2* to);
void pack(cudaStream_t stream, const double* states, std::int64_t count, std::int64_t n,
          double2* to);
/// Copies complex vectors back into `count` states.
void unpack(cudaStream_t stream, const double2* from, std::int64_t count, std::int64_t n,
            double2* states);
void unpack(cudaStream_t stream, const double2* from, std::int64_t count, std::int64_t n,
            double* states);

/// The Hamiltonian as an operator on a GPU.
class CudaHamiltonianKernels final : public HamiltonianKernels {
 public:
  explicit CudaHamiltonianKernels(SharedContext context) : context_(std::move(context)) {}
  std::unique_ptr<LoadedHamiltonian> load(const HamiltonianOperator& h) override;
  std::unique_ptr<const LoadedLocalPotentials> load_potentials(
      const LocalPotentials& potentials) override;
  std::unique_ptr<CouplingBlock> make_couplings() override;

 private:
  SharedContext context_;
};

}  // namespace quasi::gw::cuda

#include <algorithm>

#include "workers/gw/kernels/hamiltonian/hamiltonian_cuda.cuh"
#include "workers/gw/kernels/hamiltonian/local_coupling_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "elements of local potentials";
constexpr int kThreads = 256;
/// Limit of the memory for the products ∂V ψ.
constexpr std::int64_t kScratch_bytes = std::int64_t{1} << 30;

/// States and potentials in device memory, as LocalPotentials has them.
struct PotentialsOnDevice {
  const double2* states;
  const std::int32_t* source;
  const double2* values;
  std::int64_t n_d, n_pw;
};

/// applied[p][n][G] = Σ_d ∂V_p(ΔG_d) c_n(G − ΔG_d) of kets [first, …) and potentials [p_0,
/// …).
__global__ void apply_potentials(PotentialsOnDevice in, std::int64_t first, std::int64_t p_0,
                                 double2* applied) {
  const std::int64_t g = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, n = blockIdx.y,
                     p = blockIdx.z;
  if (g >= in.n_pw) return;
  const double2* c = in.states + (first + n) * in.n_pw;
  double2 sum{0.0, 0.0};
  for (std::int64_t d = 0; d < in.n_d; ++d) {
    const std::int32_t from = in.source[d * in.n_pw + g];
    if (from < 0) continue;
    const double2 v = in.values[(p_0 + p) * in.n_d + d], a = c[from];
    sum.x = fma(v.x, a.x, fma(-v.y, a.y, sum.x));
    sum.y = fma(v.x, a.y, fma(v.y, a.x, sum.y));
  }
  applied[(p * gridDim.y + n) * in.n_pw + g] = sum;
}

__global__ void conjugate(const double2* from, std::int64_t count, double2* to) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) to[i] = {from[i].x, -from[i].y};
}

unsigned blocks_of(std::int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

class CudaLocalPotentials final : public LoadedLocalPotentials {
 public:
  CudaLocalPotentials(SharedContext context, const LocalPotentials& from)
      : context_(std::move(context)),
        n_states_(from.states.extent[0]),
        n_pw_(from.states.extent[1]),
        n_d_(from.source.extent[0]),
        n_p_(from.values.extent[0]) {
    context_->use();
    states_ = context_->to_device(from.states.data, from.states.size(), kWhat);
    conjugate_ = DeviceBuffer<double2>(states_.size(), kWhat);
    conjugate<<<blocks_of(from.states.size()), kThreads, 0, context_->stream()>>>(
        states_.data(), from.states.size(), conjugate_.data());
    check_launch(kWhat);
    values_ = context_->to_device(from.values.data, from.values.size(), kWhat);
    source_ = DeviceBuffer<std::int32_t>(static_cast<std::size_t>(from.source.size()), kWhat);
    source_.copy_from(from.source.data, source_.size(), kWhat);
  }

  void couple(BandRange kets, CouplingBlock& elements) const override {
    context_->use();
    const std::int64_t count = kets.size(), at_once = std::clamp<std::int64_t>(
                                                kScratch_bytes / (16 * count * n_pw_), 1, n_p_);
    double2* const found =
        dynamic_cast<CudaCouplingBlock&>(elements).resize(n_p_, n_states_, count);
    DeviceBuffer<double2> applied(static_cast<std::size_t>(at_once * count * n_pw_), kWhat);
    const double2 one{1.0, 0.0}, zero{0.0, 0.0};
    for (std::int64_t p = 0; p < n_p_; p += at_once) {
      const std::int64_t n_here = std::min(at_once, n_p_ - p);
      apply_potentials<<<dim3(blocks_of(n_pw_), static_cast<unsigned>(count),
                              static_cast<unsigned>(n_here)),
                         kThreads, 0, context_->stream()>>>(
          PotentialsOnDevice{states_.data(), source_.data(), values_.data(), n_d_, n_pw_},
          kets.begin, p, applied.data());
      check_launch(kWhat);
      check(quasi::cuda::late::cublasZgemmStridedBatched(
                context_->blas(), CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(count),
                static_cast<int>(n_states_), static_cast<int>(n_pw_), &one, applied.data(),
                static_cast<int>(n_pw_), count * n_pw_, conjugate_.data(), static_cast<int>(n_pw_),
                0, &zero, found + p * n_states_ * count, static_cast<int>(count), count * n_states_,
                static_cast<int>(n_here)),
            kWhat);
    }
    check(cudaStreamSynchronize(context_->stream()), kWhat);
  }

 private:
  SharedContext context_;
  std::int64_t n_states_, n_pw_, n_d_, n_p_;
  DeviceBuffer<double2> states_, conjugate_, values_;
  DeviceBuffer<std::int32_t> source_;
};

}  // namespace

double2* CudaCouplingBlock::resize(std::int64_t n_p, std::int64_t n_bra, std::int64_t n_ket) {
  context_->use();
  n_p_ = n_p;
  n_bra_ = n_bra;
  n_ket_ = n_ket;
  if (elements_.size() < static_cast<std::size_t>(size())) {
    elements_ = {};
    elements_ = DeviceBuffer<double2>(static_cast<std::size_t>(size()), kWhat);
  }
  return elements_.data();
}

void CudaCouplingBlock::load(View<const Cplx, 3> elements) {
  double2* const to = resize(elements.extent[0], elements.extent[1], elements.extent[2]);
  context_->staging().to_device(elements.data,
                                elements.size() * static_cast<std::int64_t>(sizeof(Cplx)), to,
                                context_->stream(), kWhat);
}

void CudaCouplingBlock::read(View<Cplx, 3> elements) const {
  context_->use();
  context_->to_host(elements_.data(), elements.size(), elements.data, kWhat);
}

std::unique_ptr<CouplingBlock> CudaHamiltonianKernels::make_couplings() {
  return std::make_unique<CudaCouplingBlock>(context_);
}

std::unique_ptr<const LoadedLocalPotentials> CudaHamiltonianKernels::load_potentials(
    const LocalPotentials& potentials) {
  return std::make_unique<const CudaLocalPotentials>(context_, potentials);
}

}  // namespace quasi::gw::cuda

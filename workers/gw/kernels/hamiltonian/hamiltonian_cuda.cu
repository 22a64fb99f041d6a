#include "workers/gw/kernels/hamiltonian/hamiltonian_cuda.cuh"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/hamiltonian/block_algebra_cuda.cuh"
#include "workers/gw/model/memory_limits.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;
namespace late = quasi::cuda::late;

constexpr const char* kWhat = "the Hamiltonian";
constexpr int kThreads = 256;
/// Terms of a series that one product adds.
constexpr std::int64_t kTermsPerProduct = 16;

struct PackReal {
  const double* states;
  std::int64_t count, n;
  double2* to;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t v = index / n, i = index % n;
    to[index] = {states[2 * v * n + i], 2 * v + 1 < count ? states[(2 * v + 1) * n + i] : 0.0};
  }
};

struct UnpackReal {
  const double2* from;
  std::int64_t n;
  double* states;
  __device__ void operator()(std::int64_t index) const {
    const std::int64_t s = index / n, i = index % n;
    const double2 value = from[s / 2 * n + i];
    states[index] = s % 2 == 0 ? value.x : value.y;
  }
};

/// Sums |x|² of one vector in each block of threads.
__global__ void sum_squares(const double2* x, std::int64_t n, double* sum) {
  __shared__ double partial[kThreads];
  const double2* const row = x + std::int64_t{blockIdx.x} * n;
  double own = 0.0;
  for (std::int64_t i = threadIdx.x; i < n; i += kThreads)
    own = fma(row[i].x, row[i].x, fma(row[i].y, row[i].y, own));
  partial[threadIdx.x] = own;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sum[blockIdx.x] = partial[0];
}

template <typename T>
void copy_rows(const T* from, std::int64_t values, T* to, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(values) * sizeof(T),
                        cudaMemcpyDeviceToDevice, stream),
        kWhat);
}

/// Functions of H of a few vectors on the device.
class SeriesOnDevice {
 public:
  SeriesOnDevice(CudaOperator& h, const ChebyshevSeries& series)
      : h_(h),
        series_(series),
        n_(h.size()),
        functions_(series.coefficients.extent[0]),
        degree_(series.coefficients.extent[1] - 1),
        coefficients_(static_cast<std::size_t>(series.coefficients.size()), kWhat) {
    coefficients_.copy_from(series.coefficients.data, coefficients_.size(), kWhat);
  }

  /// Vectors that the memory holds at a time.
  std::int64_t vectors_at_once() const {
    return std::max<std::int64_t>(
        1, kTransformBatch_bytes / (16 * n_ * (functions_ + kTermsPerProduct + 4)));
  }

  /// Sets `sums` [functions][count][n] from vectors x [count][n], which are lost. Returns the
  /// largest ‖T_l x‖/‖x‖.
  double run(DeviceBuffer<double2>& x, std::int64_t count, DeviceBuffer<double2>& sums) {
    const std::int64_t values = count * n_;
    const cudaStream_t stream = h_.context().stream();
    DeviceBuffer<double2> before(static_cast<std::size_t>(values), kWhat),
        image(static_cast<std::size_t>(values), kWhat),
        terms(static_cast<std::size_t>(kTermsPerProduct * values), kWhat);
    DeviceBuffer<double> squares(static_cast<std::size_t>((degree_ + 1) * count), kWhat);
    sums.zero(kWhat, stream);
    double2 *now = x.data(), *old = before.data();
    for (std::int64_t l = 0; l <= degree_; ++l) {
      take(l, now, values, terms, sums);
      sum_squares<<<static_cast<unsigned>(count), kThreads, 0, stream>>>(
          now, n_, squares.data() + l * count);
      check_launch(kWhat);
      if (l == degree_) break;
      for (std::int64_t first = 0; first < count; first += batch_)
        h_.apply(now + first * n_, image.data() + first * n_, std::min(batch_, count - first));
      for_each_index(values,
                     RecursionStep{image.data(), now, old, series_.centre_ry,
                                   (l == 0 ? 1.0 : 2.0) / series_.half_ry, l == 0 ? 0.0 : 1.0},
                     kWhat, stream);
      std::swap(now, old);
    }
    return growth_of(quasi::cuda::to_host(squares, kWhat, stream), count);
  }
  void use_batch(std::int64_t vectors) { batch_ = h_.use_batch(vectors); }

 private:
  /// Keeps T_l x, and adds the kept terms to the sums when enough are there.
  void take(std::int64_t l, const double2* now, std::int64_t values, DeviceBuffer<double2>& terms,
            DeviceBuffer<double2>& sums) {
    const std::int64_t slot = l % kTermsPerProduct, first = l - slot;
    copy_rows(now, values, terms.data() + slot * values, h_.context().stream());
    if (slot + 1 < kTermsPerProduct && l < degree_) return;
    // Coefficients are real, so that the product is one of real matrices with twice the rows.
    const double one = 1.0;
    check(late::cublasDgemm(
              h_.context().blas(), CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(2 * values),
              static_cast<int>(functions_), static_cast<int>(slot + 1), &one,
              reinterpret_cast<const double*>(terms.data()), static_cast<int>(2 * values),
              coefficients_.data() + first, static_cast<int>(degree_ + 1), &one,
              reinterpret_cast<double*>(sums.data()), static_cast<int>(2 * values)),
          kWhat);
  }
  double growth_of(const std::vector<double>& squares, std::int64_t count) const {
    double largest = 0.0;
    for (std::int64_t v = 0; v < count; ++v) {
      const double start = squares[static_cast<std::size_t>(v)];
      for (std::int64_t l = 0; l <= degree_; ++l)
        if (start > 0.0)
          largest = std::max(largest, squares[static_cast<std::size_t>(l * count + v)] / start);
    }
    return std::sqrt(largest);
  }

  CudaOperator& h_;
  const ChebyshevSeries& series_;
  std::int64_t n_, functions_, degree_, batch_ = 1;
  DeviceBuffer<double> coefficients_;
};

class CudaHamiltonian final : public LoadedHamiltonian {
 public:
  CudaHamiltonian(SharedContext context, const HamiltonianOperator& h)
      : context_(std::move(context)),
        h_(std::make_shared<CudaOperator>(context_, h)),
        is_real_(h.is_real()) {}
  std::unique_ptr<StateBlock> make_block() override { return make_state_block(h_, is_real_); }
  void apply(View<const Cplx, 2> states, View<Cplx, 2> result) override;
  double expand(const ChebyshevSeries& series, View<const Cplx, 2> states,
                View<Cplx, 3> result) override {
    return expand_states(series, states, result);
  }
  double expand(const ChebyshevSeries& series, View<const double, 2> states,
                View<double, 3> result) override {
    return expand_states(series, states, result);
  }
  void remove(View<const Cplx, 2> states, View<Cplx, 2> x) override { remove_from(states, x); }
  void remove(View<const double, 2> states, View<double, 2> x) override { remove_from(states, x); }

 private:
  template <typename T>
  double expand_states(const ChebyshevSeries& series, View<const T, 2> states, View<T, 3> result);
  template <typename T>
  void remove_from(View<const T, 2> states, View<T, 2> x);

  SharedContext context_;
  std::shared_ptr<CudaOperator> h_;
  bool is_real_;
};

void CudaHamiltonian::apply(View<const Cplx, 2> states, View<Cplx, 2> result) {
  context_->use();
  const std::int64_t n = h_->size(), batch = h_->use_batch(states.extent[0]);
  const auto x = context_->to_device(states.data, states.size(), kWhat);
  DeviceBuffer<double2> hx(static_cast<std::size_t>(states.size()), kWhat);
  for (std::int64_t first = 0; first < states.extent[0]; first += batch)
    h_->apply(x.data() + first * n, hx.data() + first * n,
              std::min(batch, states.extent[0] - first));
  context_->to_host(hx.data(), result.size(), result.data, kWhat);
}

template <typename T>
double CudaHamiltonian::expand_states(const ChebyshevSeries& series, View<const T, 2> states,
                                      View<T, 3> result) {
  context_->use();
  constexpr std::int64_t kPerVector = sizeof(T) == sizeof(double) ? 2 : 1;
  using OnDevice = std::conditional_t<kPerVector == 2, double, double2>;
  const std::int64_t n = h_->size(), n_states = states.extent[0],
                     functions = series.coefficients.extent[0];
  SeriesOnDevice sums_of(*h_, series);
  const std::int64_t at_once =
      std::min(sums_of.vectors_at_once() * kPerVector, (n_states + 1) / kPerVector * kPerVector);
  sums_of.use_batch((at_once + kPerVector - 1) / kPerVector);
  double growth = 0.0;
  for (std::int64_t first = 0; first < n_states; first += at_once) {
    const std::int64_t count = std::min(at_once, n_states - first),
                       vectors = (count + kPerVector - 1) / kPerVector;
    DeviceBuffer<OnDevice> own(static_cast<std::size_t>(count * n), kWhat);
    own.copy_from(reinterpret_cast<const OnDevice*>(states.data + first * n), own.size(), kWhat);
    DeviceBuffer<double2> x(static_cast<std::size_t>(vectors * n), kWhat),
        sums(static_cast<std::size_t>(functions * vectors * n), kWhat);
    pack(context_->stream(), own.data(), count, n, x.data());
    growth = std::max(growth, sums_of.run(x, vectors, sums));
    for (std::int64_t k = 0; k < functions; ++k) {
      unpack(context_->stream(), sums.data() + k * vectors * n, count, n, own.data());
      check(cudaStreamSynchronize(context_->stream()), kWhat);
      context_->staging().to_host(own.data(), count * n * static_cast<std::int64_t>(sizeof(T)),
                                  result.data + (k * n_states + first) * n, context_->stream(),
                                  kWhat);
    }
  }
  return growth;
}

template <typename T>
void CudaHamiltonian::remove_from(View<const T, 2> states, View<T, 2> x) {
  context_->use();
  using OnDevice = std::conditional_t<sizeof(T) == sizeof(double), double, double2>;
  const cudaStream_t stream = context_->stream();
  DeviceBuffer<OnDevice> fixed(static_cast<std::size_t>(states.size()), kWhat),
      from(static_cast<std::size_t>(x.size()), kWhat),
      onto(static_cast<std::size_t>(states.extent[0] * x.extent[0]), kWhat);
  const auto bytes = [](std::int64_t count) {
    return count * static_cast<std::int64_t>(sizeof(OnDevice));
  };
  context_->staging().to_device(states.data, bytes(states.size()), fixed.data(), stream, kWhat);
  context_->staging().to_device(x.data, bytes(x.size()), from.data(), stream, kWhat);
  const DeviceStates<const OnDevice> kept{fixed.data(), states.extent[0], states.extent[1]};
  overlaps<OnDevice>(*context_, kept, {from.data(), x.extent[0], x.extent[1]}, onto.data());
  combine<OnDevice>(*context_, {.states = kept, .c = onto.data(), .alpha = -1.0, .beta = 1.0},
                    {from.data(), x.extent[0], x.extent[1]});
  check(cudaStreamSynchronize(stream), kWhat);
  context_->staging().to_host(from.data(), bytes(x.size()), x.data, stream, kWhat);
}

}  // namespace

void pack(cudaStream_t stream, const double2* states, std::int64_t count, std::int64_t n,
          double2* to) {
  copy_rows(states, count * n, to, stream);
}
void pack(cudaStream_t stream, const double* states, std::int64_t count, std::int64_t n,
          double2* to) {
  for_each_index((count + 1) / 2 * n, PackReal{states, count, n, to}, kWhat, stream);
}
void unpack(cudaStream_t stream, const double2* from, std::int64_t count, std::int64_t n,
            double2* states) {
  copy_rows(from, count * n, states, stream);
}
void unpack(cudaStream_t stream, const double2* from, std::int64_t count, std::int64_t n,
            double* states) {
  for_each_index(count * n, UnpackReal{from, n, states}, kWhat, stream);
}

std::unique_ptr<LoadedHamiltonian> CudaHamiltonianKernels::load(const HamiltonianOperator& h) {
  return std::make_unique<CudaHamiltonian>(context_, h);
}

}  // namespace quasi::gw::cuda

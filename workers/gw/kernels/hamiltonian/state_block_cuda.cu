#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/backend/unset_vector.hpp"
#include "workers/gw/kernels/dense/dense_cuda.cuh"
#include "workers/gw/kernels/hamiltonian/block_algebra_cuda.cuh"
#include "workers/gw/kernels/hamiltonian/hamiltonian_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;
using quasi::cuda::for_each_index;

constexpr const char* kWhat = "states of the eigensolver";

/// Applies H, or a polynomial of it, to states in batches.
class BatchedSteps {
 public:
  explicit BatchedSteps(CudaOperator& h, std::int64_t vectors)
      : h_(h), n_(h.size()), batch_(h.use_batch(vectors)) {
    for (auto* buffer : {&x_, &y_, &image_})
      *buffer = DeviceBuffer<double2>(static_cast<std::size_t>(batch_ * n_), kWhat);
  }
  std::int64_t batch() const { return batch_; }
  cudaStream_t stream() const { return h_.context().stream(); }

  template <typename T>
  void apply(const T* states, std::int64_t count, T* result) {
    const std::int64_t vectors = vectors_of<T>(count);
    pack(stream(), states, count, n_, x_.data());
    h_.apply(x_.data(), image_.data(), vectors);
    unpack(stream(), image_.data(), count, n_, result);
  }

  /// The recursion of HamiltonianOperator::filter().
  template <typename T>
  void filter(const ChebyshevFilter& filter, T* states, std::int64_t count) {
    const std::int64_t vectors = vectors_of<T>(count), values = vectors * n_;
    const double half = (filter.upper_ry - filter.lower_ry) / 2.0,
                 centre = (filter.upper_ry + filter.lower_ry) / 2.0,
                 first_scale = half / (filter.lowest_ry - centre);
    double2 *before = x_.data(), *now = y_.data();
    pack(stream(), states, count, n_, before);
    h_.apply(before, image_.data(), vectors);
    double scale = first_scale;
    for_each_index(values, RecursionStep{image_.data(), before, now, centre, scale / half, 0.0},
                   kWhat, stream());
    for (int l = 1; l < filter.degree; ++l) {
      const double next = 1.0 / (2.0 / first_scale - scale);
      h_.apply(now, image_.data(), vectors);
      for_each_index(
          values,
          RecursionStep{image_.data(), now, before, centre, 2.0 * next / half, scale * next}, kWhat,
          stream());
      std::swap(before, now);
      scale = next;
    }
    unpack(stream(), now, count, n_, states);
  }

  /// States of type T that one vector holds.
  template <typename T>
  static constexpr std::int64_t per_vector() {
    return std::is_same_v<T, double> ? 2 : 1;
  }
  template <typename T>
  static std::int64_t vectors_of(std::int64_t states) {
    return (states + per_vector<T>() - 1) / per_vector<T>();
  }

 private:
  CudaOperator& h_;
  std::int64_t n_, batch_;
  DeviceBuffer<double2> x_, y_, image_;
};

template <typename T>
class CudaStateBlock final : public StateBlock {
 public:
  explicit CudaStateBlock(std::shared_ptr<CudaOperator> h) : h_(std::move(h)), n_(h_->size()) {}

  std::int64_t size() const override { return size_; }
  void append(View<const double, 2> states) override;
  void filter(const ChebyshevFilter& filter, std::int64_t first) override {
    use();
    for_each_batch(first, [&](BatchedSteps& steps, std::int64_t at, std::int64_t count) {
      steps.filter(filter, row(at), count);
    });
  }
  void orthonormalise(std::int64_t first) override {
    use();
    cuda::orthonormalise<T>(context(), {block_.data(), first, n_}, {row(first), size_ - first, n_});
  }
  RitzPairs project(std::int64_t first) override;
  std::vector<Cplx> read(std::int64_t count) const override;

 private:
  CudaContext& context() const { return h_->context(); }
  void use() const { context().use(); }
  T* row(std::int64_t index) const { return block_.data() + index * n_; }
  /// Calls step(steps, at, count) for batches of the states from `first` on.
  template <typename Step>
  void for_each_batch(std::int64_t first, const Step& step) {
    // One size for all iterations, because a plan of transforms takes long to make.
    BatchedSteps steps(*h_, BatchedSteps::vectors_of<T>(size_));
    const std::int64_t per_batch = steps.batch() * BatchedSteps::per_vector<T>();
    for (std::int64_t at = first; at < size_; at += per_batch)
      step(steps, at, std::min(per_batch, size_ - at));
    check(cudaStreamSynchronize(context().stream()), kWhat);
  }

  std::shared_ptr<CudaOperator> h_;
  std::int64_t n_, size_ = 0;
  DeviceBuffer<T> block_;  ///< [size_][n_]
};

template <typename T>
void CudaStateBlock<T>::append(View<const double, 2> states) {
  use();
  const std::int64_t added = states.extent[0];
  DeviceBuffer<T> larger(static_cast<std::size_t>((size_ + added) * n_), kWhat);
  const cudaStream_t stream = context().stream();
  if (size_ > 0)
    check(cudaMemcpyAsync(larger.data(), block_.data(),
                          static_cast<std::size_t>(size_ * n_) * sizeof(T),
                          cudaMemcpyDeviceToDevice, stream),
          kWhat);
  const auto send = [&](const auto& values) {
    context().staging().to_device(values.data(),
                                  static_cast<std::int64_t>(values.size() * sizeof(T)),
                                  larger.data() + size_ * n_, stream, kWhat);
  };
  using OnHost = std::conditional_t<std::is_same_v<T, double>, double, Cplx>;
  send(std::vector<OnHost>(states.data, states.data + states.size()));
  check(cudaStreamSynchronize(stream), kWhat);
  block_ = std::move(larger);
  size_ += added;
}

template <typename T>
RitzPairs CudaStateBlock<T>::project(std::int64_t first) {
  use();
  const std::int64_t active = size_ - first;
  const auto values = static_cast<std::size_t>(active * n_);
  const DeviceStates<const T> x{row(first), active, n_};
  DeviceBuffer<T> image(values, kWhat), rotated(values, kWhat),
      small(static_cast<std::size_t>(active * active), kWhat);
  for_each_batch(first, [&](BatchedSteps& steps, std::int64_t at, std::int64_t count) {
    steps.apply(row(at), count, image.data() + (at - first) * n_);
  });
  const DeviceStates<const T> hx{image.data(), active, n_};
  overlaps<T>(context(), x, hx, small.data());
  RitzPairs pairs{
      .energy_ry = eigen_columns(context().solver(), context().stream(), small.data(), active),
      .residual_ry = {}};
  const cudaStream_t stream = context().stream();
  combine<T>(context(), {.states = x, .c = small.data()}, {rotated.data(), active, n_});
  check(cudaMemcpyAsync(row(first), rotated.data(), values * sizeof(T), cudaMemcpyDeviceToDevice,
                        stream),
        kWhat);
  combine<T>(context(), {.states = hx, .c = small.data()}, {rotated.data(), active, n_});
  pairs.residual_ry = residuals<T>(context(), pairs.energy_ry, x, {rotated.data(), active, n_});
  return pairs;
}

template <typename T>
std::vector<Cplx> CudaStateBlock<T>::read(std::int64_t count) const {
  use();
  using OnHost = std::conditional_t<std::is_same_v<T, double>, double, Cplx>;
  UnsetVector<OnHost> states(static_cast<std::size_t>(count * n_));
  check(cudaStreamSynchronize(context().stream()), kWhat);
  context().staging().to_host(block_.data(), static_cast<std::int64_t>(states.size() * sizeof(T)),
                              states.data(), context().stream(), kWhat);
  std::vector<Cplx> complex(states.size());
#pragma omp parallel for schedule(static)
  for (std::size_t i = 0; i < states.size(); ++i) complex[i] = states[i];
  return complex;
}

}  // namespace

std::unique_ptr<StateBlock> make_state_block(std::shared_ptr<CudaOperator> h, bool is_real) {
  if (is_real) return std::make_unique<CudaStateBlock<double>>(std::move(h));
  return std::make_unique<CudaStateBlock<double2>>(std::move(h));
}

}  // namespace quasi::gw::cuda

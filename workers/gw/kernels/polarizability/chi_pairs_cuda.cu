#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "workers/backend/device/event.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/dense/dense_cuda.cuh"
#include "workers/gw/kernels/polarizability/chi_pairs_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "pair products on their way to the polarizability";

/// Start and end of each step on its stream, added up when all is done.
class StepClock {
 public:
  explicit StepClock(cudaStream_t stream) : stream_(stream) {}
  void start() { mark(); }
  void stop() { mark(); }
  double seconds() const {
    double sum = 0.0;
    for (std::size_t i = 0; i + 1 < marks_.size(); i += 2)
      sum += marks_[i + 1].seconds_since(marks_[i]);
    return sum;
  }

 private:
  void mark() {
    marks_.emplace_back(quasi::cuda::EventTiming::kOn);
    marks_.back().record(stream_, kWhat);
  }
  cudaStream_t stream_;
  std::vector<quasi::cuda::Event> marks_;
};

}  // namespace

GwKernels::PairsToChiReport add_pairs_to_chi_cuda(const ChiPairsContext& context, BandRange left,
                                                  BandRange right, const double* weight,
                                                  View<const Cplx, 3> head, double2* chi,
                                                  double* chi_real) {
  const std::int64_t n_pairs = left.size() * right.size(), n_g = context.pairs.n_g();
  double sign = 0.0;
  std::vector<double> root(static_cast<std::size_t>(n_pairs));
  for (std::int64_t p = 0; p < n_pairs; ++p) {
    if (weight[p] * sign < 0.0) throw std::logic_error("add_pairs_to_chi: weights of both signs");
    if (weight[p] != 0.0) sign = weight[p] > 0.0 ? 1.0 : -1.0;
    root[static_cast<std::size_t>(p)] = std::sqrt(std::abs(weight[p]));
  }
  const DeviceBuffer<double> root_there(root, kWhat);
  DeviceBuffer<double2> head_there;
  const std::int64_t n_heads = head.data != nullptr ? head.extent[0] : 0;
  if (n_heads > 0) {
    head_there = DeviceBuffer<double2>(static_cast<std::size_t>(n_heads * n_pairs), kWhat);
    head_there.copy_from(reinterpret_cast<const double2*>(head.data),
                         static_cast<std::size_t>(n_heads * n_pairs), kWhat);
  }
  // Rows of a block: at least one batch of transforms, whose rows stay together.
  const std::int64_t batch = context.pairs.largest_rows(right.size(), context.real);
  const std::int64_t row_bytes =
      n_g * static_cast<std::int64_t>(context.real ? sizeof(double) : sizeof(double2));
  const std::int64_t rows = std::min(n_pairs, std::max(batch, context.block_bytes / row_bytes));
  DeviceBuffer<char> block[2];
  const quasi::cuda::Event filled[2], used[2];
  for (DeviceBuffer<char>& one : block)
    one = DeviceBuffer<char>(static_cast<std::size_t>(rows * row_bytes), kWhat);
  check(cudaDeviceSynchronize(), kWhat);
  StepClock transforms(context.transforms), products(context.products);
  int turn = 0;
  std::int64_t in_block = 0, flushed = 0;
  const auto flush = [&] {
    transforms.stop();
    filled[turn].record(context.transforms, kWhat);
    filled[turn].hold(context.products, kWhat);
    products.start();
    if (context.real)
      add_symmetric(context.blas, n_g, in_block, sign,
                    reinterpret_cast<const double*>(block[turn].data()), chi_real);
    else
      add_hermitian(context.blas, n_g, in_block, sign,
                    reinterpret_cast<const double2*>(block[turn].data()), chi);
    products.stop();
    used[turn].record(context.products, kWhat);
    in_block = 0;
    ++flushed;
    turn = 1 - turn;
  };
  for (std::int64_t l = 0; l < left.size(); ++l)
    for (std::int64_t n = 0; n < right.size(); n += batch) {
      const std::int64_t count = std::min(batch, right.size() - n), first = l * right.size() + n;
      if (in_block + count > rows) flush();
      if (in_block == 0) {
        if (flushed >= 2) used[turn].hold(context.transforms, kWhat);
        transforms.start();
      }
      context.pairs.run_weighted({.left = left.begin + l,
                                  .right = {right.begin + n, right.begin + n + count},
                                  .real = context.real,
                                  .root = root_there.data() + first,
                                  .head = n_heads > 0 ? head_there.data() + first : nullptr,
                                  .n_heads = n_heads,
                                  .head_stride = n_pairs,
                                  .rows = block[turn].data() + in_block * row_bytes},
                                 context.transforms);
      in_block += count;
    }
  if (in_block > 0) flush();
  check(cudaStreamSynchronize(context.transforms), kWhat);
  check(cudaStreamSynchronize(context.products), kWhat);
  return {.real = context.real,
          .transform_seconds = transforms.seconds(),
          .product_seconds = products.seconds()};
}

}  // namespace quasi::gw::cuda

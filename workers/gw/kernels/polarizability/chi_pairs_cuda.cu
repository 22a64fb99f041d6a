#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "workers/backend/device/event.cuh"
#include "workers/gw/kernels/polarizability/chi_pairs_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "pair products on their way to the polarizability";

/// Records start and end of each step on its stream. The times are added up when all is done.
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

/// √|w| of all pairs, and the common sign of w.
struct SignedRoots {
  double sign = 0.0;
  std::vector<double> root;
};
SignedRoots signed_roots(View<const double, 2> weight) {
  SignedRoots found;
  found.root.resize(static_cast<std::size_t>(weight.size()));
  for (std::int64_t p = 0; p < weight.size(); ++p) {
    const double w = weight.data[p];
    if (w * found.sign < 0.0)
      throw std::logic_error("the weights of one block of pairs differ in sign");
    if (w != 0.0) found.sign = w > 0.0 ? 1.0 : -1.0;
    found.root[static_cast<std::size_t>(p)] = std::sqrt(std::abs(w));
  }
  return found;
}

/// Two blocks of √|w| M. Transforms fill one while the product of the other runs.
class PairPipeline {
 public:
  PairPipeline(const ChiPairsContext& context, const PairSum::Pairs& pairs,
               const std::function<void(const WeightedBlock&)>& add)
      : context_(context),
        pairs_(pairs),
        add_(add),
        sphere_(dynamic_cast<const CudaSphere&>(pairs.sphere)),
        n_pairs_(pairs.left.range.size() * pairs.right.range.size()),
        n_heads_(pairs.head.data != nullptr ? pairs.head.extent[0] : 0),
        transforms_(context.transform_stream),
        products_(context.product_stream) {
    const SignedRoots roots = signed_roots(pairs.weight);
    sign_ = roots.sign;
    root_ = DeviceBuffer<double>(roots.root, kWhat);
    if (n_heads_ > 0) {
      head_ = DeviceBuffer<double2>(static_cast<std::size_t>(n_heads_ * n_pairs_), kWhat);
      head_.copy_from(as_double2(pairs.head.data), static_cast<std::size_t>(n_heads_ * n_pairs_),
                      kWhat);
    }
    // A block holds at least one batch of transforms, whose rows stay together.
    batch_ =
        PairProductTransforms::largest_rows(sphere_.box, pairs.right.range.size(), context.real);
    row_bytes_ =
        sphere_.n_g() * static_cast<std::int64_t>(context.real ? sizeof(double) : sizeof(double2));
    rows_ = std::min(n_pairs_, std::max(batch_, context.block_bytes / row_bytes_));
    for (DeviceBuffer<char>& block : block_)
      block = DeviceBuffer<char>(static_cast<std::size_t>(rows_ * row_bytes_), kWhat);
    check(cudaDeviceSynchronize(), kWhat);
  }

  PairSum::PairsReport run() {
    const std::int64_t n_right = pairs_.right.range.size();
    for (std::int64_t l = 0; l < pairs_.left.range.size(); ++l)
      for (std::int64_t n = 0; n < n_right; n += batch_)
        fill(l, {n, std::min(n + batch_, n_right)});
    if (in_block_ > 0) flush();
    check(cudaStreamSynchronize(context_.transform_stream), kWhat);
    check(cudaStreamSynchronize(context_.product_stream), kWhat);
    return {.real = context_.real,
            .transform_seconds = transforms_.seconds(),
            .product_seconds = products_.seconds()};
  }

 private:
  /// Adds the rows (l, n), n in `right`, to the block that is being filled.
  void fill(std::int64_t l, BandRange right) {
    if (in_block_ + right.size() > rows_) flush();
    if (in_block_ == 0) {
      if (flushed_ >= 2) used_[current_].hold(context_.transform_stream, kWhat);
      transforms_.start();
    }
    const BandRange &left = pairs_.left.range, &all_right = pairs_.right.range;
    const std::int64_t first = l * all_right.size() + right.begin;
    context_.transforms.fill_weighted(
        {.left_bands = dynamic_cast<const CudaBands&>(pairs_.left.bands),
         .right_bands = dynamic_cast<const CudaBands&>(pairs_.right.bands),
         .sphere = sphere_,
         .left = left.begin + l,
         .right = {all_right.begin + right.begin, all_right.begin + right.end},
         .real = context_.real,
         .root = root_.data() + first,
         .head = n_heads_ > 0 ? head_.data() + first : nullptr,
         .n_heads = n_heads_,
         .head_stride = n_pairs_,
         .rows = block_[current_].data() + in_block_ * row_bytes_},
        context_.transform_stream);
    in_block_ += right.size();
  }

  /// Adds the filled block to χ and switches to the other block.
  void flush() {
    transforms_.stop();
    filled_[current_].record(context_.transform_stream, kWhat);
    filled_[current_].hold(context_.product_stream, kWhat);
    products_.start();
    add_({block_[current_].data(), in_block_, sphere_.n_g(), sign_});
    products_.stop();
    used_[current_].record(context_.product_stream, kWhat);
    in_block_ = 0;
    ++flushed_;
    current_ = 1 - current_;
  }

  const ChiPairsContext& context_;
  const PairSum::Pairs& pairs_;
  const std::function<void(const WeightedBlock&)>& add_;
  const CudaSphere& sphere_;
  std::int64_t n_pairs_, n_heads_;
  StepClock transforms_, products_;
  double sign_ = 0.0;
  DeviceBuffer<double> root_;   ///< √|w|, [n_pairs]
  DeviceBuffer<double2> head_;  ///< [n_heads][n_pairs]
  std::int64_t batch_ = 0, row_bytes_ = 0, rows_ = 0;
  DeviceBuffer<char> block_[2];  ///< [rows][n_g] of double or double2
  quasi::cuda::Event filled_[2], used_[2];
  int current_ = 0;
  std::int64_t in_block_ = 0, flushed_ = 0;
};

}  // namespace

PairSum::PairsReport add_pairs_to_chi(const ChiPairsContext& context, const PairSum::Pairs& pairs,
                                      const std::function<void(const WeightedBlock&)>& add) {
  return PairPipeline(context, pairs, add).run();
}

}  // namespace quasi::gw::cuda

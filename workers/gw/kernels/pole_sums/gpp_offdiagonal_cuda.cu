#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/event.cuh"
#include "workers/backend/device/memory_budget.hpp"
#include "workers/backend/device/pinned_buffer.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/gw/kernels/pole_sums/gpp_fused_cuda.cuh"
#include "workers/gw/kernels/pole_sums/gpp_offdiagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/reciprocal.cuh"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

/// Energies of one buffer of P, and rows of one product. At N_G = 11,075 three energies make 260
/// columns of 128 × 128 blocks of cuBLAS, two rounds of an H200's 132 multiprocessors: 55 TFLOP/s
/// with 128 rows, where 512 rows in one call give 48.
constexpr int kMaxEnergiesPerBuffer = 3;
constexpr std::int64_t kRowsPerProduct = 128;
constexpr int kMaxThreads = 1024;

struct Energies {
  double x_ry[kMaxEnergiesPerBuffer];
  int count;
};

/// What goes into the elements (G, G') of one matrix, loaded one step ahead of its use.
struct PoleElement {
  double2 strength;
  double pole_ry;
};
__device__ PoleElement load(const PoleModelOnDevice& model, std::int64_t at) {
  return {model.strength[at], model.pole_ry[at]};
}

/// Calls make(g, h, element) for every element: a row G a block in turn, its columns over the
/// threads. No index is divided within a row: 64-bit division costs more than the element's
/// arithmetic.
/// @param width  > 0: columns before the block of `width` that row G begins in are left out
template <typename Make>
__device__ void for_each_element(const PoleModelOnDevice& model, std::int64_t width, Make make) {
  for (std::int64_t g = blockIdx.x; g < model.n_g; g += gridDim.x) {
    const std::int64_t row = g * model.n_g;
    std::int64_t h = threadIdx.x + (width > 0 ? g / width * width : 0);
    if (h >= model.n_g) continue;
    PoleElement next = load(model, row + h);
    while (h < model.n_g) {
      const PoleElement element = next;
      if (h + blockDim.x < model.n_g) next = load(model, row + h + blockDim.x);
      make(g, h, element);
      h += blockDim.x;
    }
  }
}

/// P[G][e][G'] = A_GG' F(x_e, ω̃_GG'): A and ω̃ are read once for all energies of the buffer.
__global__ void __launch_bounds__(kMaxThreads, 1)
    make_p(PoleModelOnDevice model, PoleRules rules, Energies energies, double occupation,
           double2* p) {
  for_each_element(model, 0, [&](std::int64_t g, std::int64_t h, const PoleElement& element) {
    double2* to = p + g * energies.count * model.n_g + h;
#pragma unroll
    for (int e = 0; e < kMaxEnergiesPerBuffer; ++e)
      if (e < energies.count) {
        const PoleQuotient q =
            pole_quotient(energies.x_ry[e], element.pole_ry, occupation, rules.half_width_ry,
                          rules.max_ratio, rules.screened_exchange_cut);
        const double f = q.numerator * reciprocal_of_normal(q.denominator);
        to[e * model.n_g] = {f * element.strength.x, f * element.strength.y};
      }
  });
}

/// Q[G][G'] = A_GG' b_k(ω̃_GG')/ω̃_GG', of a folded model with folded_weight() and only what products
/// of blocks of `width` columns read.
__global__ void __launch_bounds__(kMaxThreads, 1)
    make_q(PoleModelOnDevice model, SeparableFamily family, double node, double constant,
           std::int64_t width, double2* q) {
  for_each_element(model, width, [&](std::int64_t g, std::int64_t h, const PoleElement& element) {
    const double kept = model.folded ? folded_weight(g, h) : 1.0;
    const double f = kept == 0.0 ? 0.0
                                 : kept * separable_term(family, node, constant, element.pole_ry,
                                                         kStaticPole_ry);
    q[g * model.n_g + h] = {f * element.strength.x, f * element.strength.y};
  });
}

/// Σ ← S + S† of every energy: one thread a pair (l, m), l ≤ m.
__global__ void add_adjoint(std::int64_t n, double2* sigma) {
  double2* const of_energy = sigma + static_cast<std::int64_t>(blockIdx.z) * n * n;
  const std::int64_t l = blockIdx.y,
                     m = l + static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (m >= n) return;
  const double2 a = of_energy[l * n + m], b = of_energy[m * n + l];
  of_energy[l * n + m] = {a.x + b.x, a.y - b.y};
  of_energy[m * n + l] = {a.x + b.x, b.y - a.y};
}

/// How a maker of P or Q is launched beside products of that many rows.
///
/// Both want the whole device and take turns if they may. Up to 256 rows the maker is a few blocks,
/// each filling the shared memory of its multiprocessor and so keeping products off it: with 128
/// rows 15 such blocks gave 38.4 TFLOP/s where taking turns gave 34.8. With more rows taking turns
/// is as fast.
struct MakerShape {
  unsigned blocks, threads;
  int shared_bytes;
};
constexpr int kSharedOfMaker_bytes = 200 * 1024;
MakerShape maker_shape(std::int64_t rows) {
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "reading the device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "reading the device");
  if (rows > 256) return {static_cast<unsigned>(16 * multiprocessors), 128, 0};
  // Multiprocessor time of an element: 2.5 ps to make it, 0.15 ps a row to multiply it (one H200).
  const double share = 2.5 / (2.5 + 0.15 * static_cast<double>(rows));
  return {static_cast<unsigned>(std::max(1.0, multiprocessors * share + 0.5)), kMaxThreads,
          kSharedOfMaker_bytes};
}

std::string scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", value);
  return text;
}

/// to[i] += from[i] through two pinned buffers, one copied into while the other is added.
void add_to_host(const double2* from, std::int64_t count, Cplx* to) {
  // Page-locking takes longer than copying: small pieces of what is small.
  const std::int64_t piece_size =
      std::clamp<std::int64_t>(count / 16, std::int64_t{1} << 16, std::int64_t{1} << 20);
  constexpr const char* kWhat = "copying the self-energy back";
  using quasi::cuda::PinnedBuffer;
  const auto capacity = static_cast<std::size_t>(piece_size);
  const PinnedBuffer<double2> pinned[2] = {{capacity, kWhat}, {capacity, kWhat}};
  const quasi::cuda::Stream stream(quasi::cuda::StreamPriority::kNormal);
  const auto start = [&](std::int64_t first) {
    check(cudaMemcpyAsync(
              pinned[first / piece_size % 2].data(), from + first,
              static_cast<std::size_t>(std::min(piece_size, count - first)) * sizeof(double2),
              cudaMemcpyDeviceToHost, stream.get()),
          kWhat);
  };
  start(0);
  for (std::int64_t first = 0; first < count; first += piece_size) {
    check(cudaStreamSynchronize(stream.get()), kWhat);
    if (first + piece_size < count) start(first + piece_size);
    const double2* piece = pinned[first / piece_size % 2].data();
    const std::int64_t size = std::min(piece_size, count - first);
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < size; ++i) to[first + i] += Cplx(piece[i].x, piece[i].y);
  }
}

/// Columns of one block of T = M Q with Q folded: block i takes the depth up to its own end, so
/// narrow blocks save flops and wide ones fill the device. Counted in tiles of 128 × 128, what the
/// library's kernels own.
std::int64_t folded_columns(std::int64_t rows, std::int64_t n_g) {
  constexpr std::int64_t kTile = 128;
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "reading the device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "reading the device");
  const auto tiles = [](std::int64_t n) { return (n + kTile - 1) / kTile; };
  std::int64_t best = n_g, best_cost = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t width = 4 * kTile; width <= std::max(4 * kTile, n_g / 4); width += kTile) {
    std::int64_t cost = 0;
    for (std::int64_t begin = 0; begin < n_g; begin += width) {
      const std::int64_t end = std::min(n_g, begin + width);
      cost += (tiles(rows) * tiles(end - begin) + multiprocessors - 1) / multiprocessors * end;
    }
    if (cost < best_cost) {
      best = width;
      best_cost = cost;
    }
  }
  return best;
}

/// The model is Hermitian and so is P: all that is summed is S = Σ w T M† with T = M L
/// (folded_weight) where the product can be folded, or ½ M P where it cannot, and Σ = S + S† at the
/// end.
class OffDiagonalSum {
 public:
  OffDiagonalSum(const OffDiagonalInput& input, const OffDiagonalTerms& terms,
                 const OffDiagonalOptions& options, const OffDiagonalWorkspace& workspace,
                 const OffDiagonalPlan& plan, View<Cplx, 3> sigma)
      : in_(input),
        terms_(terms),
        plan_(plan),
        options_(options),
        streams_(workspace),
        n_left_(input.products.n_left),
        n_right_(input.products.n_right),
        n_g_(input.model.n_g),
        n_energies_(sigma.extent[0]),
        workspace_bytes_(workspace.bytes),
        sigma_(static_cast<std::size_t>(sigma.size()), kWhat) {
    sigma_.zero(kWhat, streams_.products);
    for (const void* maker :
         {reinterpret_cast<const void*>(make_p), reinterpret_cast<const void*>(make_q)})
      check(cudaFuncSetAttribute(maker, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 kSharedOfMaker_bytes),
            kWhat);
    check(cudaDeviceSynchronize(), kWhat);
    report_ = {
        .pairs = plan.pairs, .direct_pairs = plan.direct_pairs, .hermitian = in_.model.folded};
  }

  /// What goes on when it returns ends before add_separable or finish go on.
  void add_direct() {
    const View<const double, 1> energies_ry = terms_.energies_ry, band_ry = terms_.band_ry,
                                occupation = terms_.occupation;
    if (plan_.direct.empty()) return;
    bool whole = true;
    for (std::int64_t n = 0; n < n_right_; ++n)
      whole = whole && (occupation(n) == 0.0 || occupation(n) == 1.0);
    if (whole && fused_pays()) {
      add_direct_fused();
      return;
    }
    // P takes up to a quarter of the workspace a buffer; T what is left.
    const std::int64_t p_bytes = 16 * n_g_ * n_g_;
    std::int64_t longest = 0;
    for (const EnergyRun& run : plan_.direct) longest = std::max(longest, run.end - run.begin);
    const std::int64_t per_buffer = std::clamp<std::int64_t>(
        items_that_fit(workspace_bytes_ / 4, 0, p_bytes, "the off-diagonal sum's P"), 1,
        std::min<std::int64_t>(kMaxEnergiesPerBuffer, longest));
    const std::int64_t t_energies =
        std::min(longest, items_that_fit(workspace_bytes_, 2 * per_buffer * p_bytes,
                                         16 * n_left_ * n_g_, "the off-diagonal sum's T"));
    for (DeviceBuffer<double2>& p : p_)
      p = DeviceBuffer<double2>(static_cast<std::size_t>(per_buffer * n_g_ * n_g_),
                                "P of the off-diagonal sum");
    DeviceBuffer<double2> t(static_cast<std::size_t>(n_left_ * t_energies * n_g_),
                            "T of the off-diagonal sum");
    const quasi::cuda::Event made[2];
    const quasi::cuda::Event used[2];
    const MakerShape maker = maker_shape(n_left_);
    int buffer = 0;
    for (const EnergyRun& run : plan_.direct)
      for (std::int64_t begin = run.begin; begin < run.end; begin += t_energies) {
        const std::int64_t end = std::min(run.end, begin + t_energies);
        const std::int64_t t_stride = (end - begin) * n_g_;
        for (std::int64_t first = begin; first < end; first += per_buffer, buffer = 1 - buffer) {
          Energies energies{.x_ry = {},
                            .count = static_cast<int>(std::min(per_buffer, end - first))};
          for (int e = 0; e < energies.count; ++e)
            energies.x_ry[e] = energies_ry(first + e) - band_ry(run.band);
          used[buffer].hold(streams_.preparation, kWhat);
          make_p<<<maker.blocks, maker.threads, maker.shared_bytes, streams_.preparation>>>(
              in_.model, in_.rules, energies, occupation(run.band), p_[buffer].data());
          check_launch(kWhat);
          made[buffer].record(streams_.preparation, kWhat);
          made[buffer].hold(streams_.products, kWhat);
          const std::int64_t columns = energies.count * n_g_;
          double2* to = t.data() + (first - begin) * n_g_;
          multiply_blocks(n_left_, columns, bands_of(run.band), {p_[buffer].data(), columns}, to,
                          t_stride);
          measure_residual_once(n_left_, columns, n_g_, bands_of(run.band),
                                {p_[buffer].data(), columns}, {to, t_stride});
          used[buffer].record(streams_.products, kWhat);
        }
        add_t(t.data(), run.band, begin, end, in_.model.folded ? 0.5 : 1.0);
        report_.zgemm_flops += 8.0 * static_cast<double>(n_left_ * (end - begin)) *
                               static_cast<double>(n_g_) * static_cast<double>(n_g_);
      }
    check(cudaStreamSynchronize(streams_.products), kWhat);
  }

  /// The same with P made inside the product.
  void add_direct_fused() {
    const View<const double, 1> energies_ry = terms_.energies_ry, band_ry = terms_.band_ry,
                                occupation = terms_.occupation;
    std::int64_t longest = 0;
    for (const EnergyRun& run : plan_.direct) longest = std::max(longest, run.end - run.begin);
    const std::int64_t packed_count = packed_size(n_left_, n_g_);
    const std::int64_t t_energies =
        std::min(longest, items_that_fit(workspace_bytes_, 16 * packed_count, 16 * n_left_ * n_g_,
                                         "the off-diagonal sum's T"));
    fused_.t = DeviceBuffer<double2>(static_cast<std::size_t>(n_left_ * t_energies * n_g_),
                                     "T of the off-diagonal sum");
    fused_.packed =
        DeviceBuffer<double2>(static_cast<std::size_t>(packed_count), "M of one band, packed");
    fused_.energies = DeviceBuffer<double>(
        std::vector<double>(energies_ry.data, energies_ry.data + energies_ry.size()), kWhat);
    check(cudaDeviceSynchronize(), kWhat);
    for (const EnergyRun& run : plan_.direct) {
      const DeviceMatrix m = bands_of(run.band);
      pack_for_fused_product(m.data, m.stride, n_left_, n_g_, fused_.packed.data(),
                             streams_.products);
      for (std::int64_t begin = run.begin; begin < run.end; begin += t_energies) {
        const std::int64_t end = std::min(run.end, begin + t_energies);
        launch_fused_product(
            {.model = in_.model,
             .rules = in_.rules,
             .packed = fused_.packed.data(),
             .n_left = n_left_,
             .energies_ry = fused_.energies.data() + begin,
             .n_energies = end - begin,
             .band_ry = band_ry(run.band),
             .factor = occupation(run.band) == 1.0 ? PoleFactor::kOccupied : PoleFactor::kEmpty,
             .t = fused_.t.data()},
            streams_.products);
        add_t(fused_.t.data(), run.band, begin, end, 1.0);
        report_.zgemm_flops += 8.0 * static_cast<double>(n_left_ * (end - begin)) * fused_depths();
      }
    }
  }

  void add_separable() {
    const std::int64_t n_terms = plan_.pole.size();
    if (n_terms == 0) return;
    check(cudaStreamSynchronize(streams_.products), kWhat);
    fused_ = {};
    if (fused_pays() && 16 * stored_size(n_g_) <= workspace_bytes_ / 2) {
      add_separable_fused();
      return;
    }
    // T holds a block of bands for all outer states, D their products.
    const std::int64_t band_bytes = 16 * n_left_ * (n_g_ + n_left_);
    const std::int64_t block =
        std::min(n_right_, items_that_fit(workspace_bytes_, 2 * 16 * n_g_ * n_g_, band_bytes,
                                          "the off-diagonal sum's separable terms"));
    // Q is made once for so many rows that it and the products take turns. The last block of bands
    // may be a smaller one.
    const std::int64_t rows = block == n_right_ ? n_left_ * block : block;
    const MakerShape maker = maker_shape(rows);
    const std::int64_t width = in_.model.folded ? folded_columns(rows, n_g_) : n_g_;
    DeviceBuffer<double2> q[2];
    for (auto& one : q)
      one = DeviceBuffer<double2>(static_cast<std::size_t>(n_g_ * n_g_), "Q of a separable term");
    DeviceBuffer<double2> t(static_cast<std::size_t>(n_left_ * block * n_g_),
                            "T of a separable term");
    DeviceBuffer<double2> d(static_cast<std::size_t>(n_left_ * n_left_ * block),
                            "D of a separable term");
    const DeviceBuffer<double> coefficient(plan_.coefficient,
                                           "coefficients of the separable terms");
    const quasi::cuda::Event made[2];
    const quasi::cuda::Event used[2];
    check(cudaDeviceSynchronize(), kWhat);
    for (std::int64_t k = 0; k < n_terms; ++k) {
      const int buffer = static_cast<int>(k % 2);
      used[buffer].hold(streams_.preparation, kWhat);
      make_q<<<maker.blocks, maker.threads, maker.shared_bytes, streams_.preparation>>>(
          in_.model, plan_.pole.family, plan_.pole.node[static_cast<std::size_t>(k)],
          plan_.pole.constant, in_.model.folded ? width : 0, q[buffer].data());
      check_launch(kWhat);
      made[buffer].record(streams_.preparation, kWhat);
      made[buffer].hold(streams_.products, kWhat);
      for (std::int64_t band = 0; band < n_right_; band += block) {
        const std::int64_t n_bands = std::min(block, n_right_ - band);
        multiply_rows(band, n_bands, width, q[buffer].data(), t.data());
        multiply_adjoint(streams_.blas, {.m = n_left_,
                                         .n = n_left_,
                                         .k = n_g_,
                                         .alpha = terms_.weight,
                                         .beta = 0.0,
                                         .a = {t.data(), n_bands * n_g_},
                                         .b = bands_of(band),
                                         .c = d.data(),
                                         .c_stride = n_left_,
                                         .a_step = n_g_,
                                         .b_step = n_g_,
                                         .c_step = n_left_ * n_left_,
                                         .count = n_bands});
        add_products(d.data(), coefficient.data() + k * n_energies_ * n_right_ + band, n_bands,
                     n_right_);
        count_adjoint(n_bands);
      }
      used[buffer].record(streams_.products, kWhat);
    }
    check(cudaStreamSynchronize(streams_.products), kWhat);
  }

  /// The same with all terms of a block of bands in one kernel.
  void add_separable_fused() {
    const std::int64_t n_terms = plan_.pole.size(), n_left = n_left_,
                       packed_count = packed_size(n_left, n_g_);
    const std::int64_t all_groups = (n_terms + kTermsPerGroup - 1) / kTermsPerGroup;
    const std::int64_t groups =
        std::min(all_groups, items_that_fit(workspace_bytes_ / 2, 0, 16 * stored_size(n_g_),
                                            "the off-diagonal sum's separable terms"));
    const std::int64_t most_terms = std::min(n_terms, groups * kTermsPerGroup);
    const std::int64_t band_bytes = 16 * (packed_count + most_terms * n_left * (n_g_ + n_left));
    const std::int64_t block =
        std::min(n_right_, items_that_fit(workspace_bytes_, 16 * groups * stored_size(n_g_),
                                          band_bytes, "the off-diagonal sum's separable terms"));
    DeviceBuffer<double2> terms(static_cast<std::size_t>(groups * stored_size(n_g_)),
                                "separable terms");
    DeviceBuffer<double2> packed(static_cast<std::size_t>(block * packed_count),
                                 "M of a block of bands, packed");
    DeviceBuffer<double2> t(static_cast<std::size_t>(block * most_terms * n_left * n_g_),
                            "T of the separable terms");
    DeviceBuffer<double2> d(static_cast<std::size_t>(block * most_terms * n_left * n_left),
                            "D of the separable terms");
    const DeviceBuffer<double> node(plan_.pole.node, "separable terms");
    check(cudaDeviceSynchronize(), kWhat);
    for (std::int64_t first = 0; first < n_terms; first += most_terms) {
      const std::int64_t n_here = std::min(most_terms, n_terms - first),
                         n_groups = (n_here + kTermsPerGroup - 1) / kTermsPerGroup;
      store_separable_terms(in_.model,
                            {.family = plan_.pole.family,
                             .node = node.data(),
                             .constant = plan_.pole.constant,
                             .first = first,
                             .n_terms = n_terms},
                            n_groups, terms.data(), streams_.products);
      // [n_energies][n_right][terms here]
      std::vector<double> c(static_cast<std::size_t>(n_energies_ * n_right_ * n_here));
      for (std::int64_t k = 0; k < n_here; ++k)
        for (std::int64_t pair = 0; pair < n_energies_ * n_right_; ++pair)
          c[static_cast<std::size_t>(pair * n_here + k)] =
              plan_.coefficient[static_cast<std::size_t>((first + k) * n_energies_ * n_right_ +
                                                         pair)];
      const DeviceBuffer<double> coefficient(c, "coefficients of the separable terms");
      check(cudaDeviceSynchronize(), kWhat);
      for (std::int64_t band = 0; band < n_right_; band += block) {
        const std::int64_t n_bands = std::min(block, n_right_ - band);
        std::vector<const double2*> a, b;
        std::vector<double2*> to;
        for (std::int64_t n = 0; n < n_bands; ++n) {
          const DeviceMatrix m = bands_of(band + n);
          pack_for_fused_product(m.data, m.stride, n_left, n_g_, packed.data() + n * packed_count,
                                 streams_.products);
          for (std::int64_t k = 0; k < n_here; ++k) {
            a.push_back(t.data() + (n * n_left * n_here + k) * n_g_);
            b.push_back(m.data);
            to.push_back(d.data() + (n * n_here + k) * n_left * n_left);
          }
        }
        launch_fused_product({.model = in_.model,
                              .rules = in_.rules,
                              .packed = packed.data(),
                              .n_left = n_left,
                              .n_bands = n_bands,
                              .n_energies = n_here,
                              .factor = PoleFactor::kStored,
                              .stored = terms.data(),
                              .t = t.data()},
                             streams_.products);
        multiply_adjoint(streams_.blas,
                         {.m = n_left,
                          .n = n_left,
                          .k = n_g_,
                          .alpha = terms_.weight,
                          .a_stride = n_here * n_g_,
                          .b_stride = n_right_ * n_g_,
                          .c_stride = n_left,
                          .a = a,
                          .b = b,
                          .c = to},
                         streams_.products);
        add_products(d.data(), coefficient.data() + band * n_here, n_bands * n_here,
                     n_right_ * n_here);
        count_adjoint(n_bands * n_here);
        report_.zgemm_flops +=
            8.0 * static_cast<double>(n_left * n_bands * n_here) * fused_depths();
      }
      check(cudaStreamSynchronize(streams_.products), kWhat);
    }
  }

  OffDiagonalReport finish(View<Cplx, 3> sigma) {
    if (in_.model.folded) {
      constexpr unsigned kThreads = 128;
      const auto n = static_cast<unsigned>(n_left_);
      add_adjoint<<<dim3((n + kThreads - 1) / kThreads, n, static_cast<unsigned>(n_energies_)),
                    kThreads, 0, streams_.products>>>(n_left_, sigma_.data());
      check_launch(kWhat);
    }
    check(cudaStreamSynchronize(streams_.products), kWhat);
    report_.terms = plan_.pole.size();
    report_.fit_error_relative = plan_.pole.error;
    report_.fit_seconds = plan_.fit_seconds;
    add_to_host(sigma_.data(), sigma.size(), sigma.data);
    return report_;
  }

 private:
  static constexpr const char* kWhat = "off-diagonal plasmon-pole sum";

  /// M_ln for all l of band n: rows l.
  DeviceMatrix bands_of(std::int64_t band) const {
    return {in_.products.products + band * n_g_, n_right_ * n_g_};
  }

  /// Σ[e] += factor w T[e] M† for energies [begin, end) of one band.
  void add_t(const double2* t, std::int64_t band, std::int64_t begin, std::int64_t end,
             double factor) {
    multiply_adjoint(streams_.blas, {.m = n_left_,
                                     .n = n_left_,
                                     .k = n_g_,
                                     .alpha = factor * terms_.weight,
                                     .beta = 1.0,
                                     .a = {t, (end - begin) * n_g_},
                                     .b = bands_of(band),
                                     .c = sigma_.data() + begin * n_left_ * n_left_,
                                     .c_stride = n_left_,
                                     .a_step = n_g_,
                                     .b_step = 0,
                                     .c_step = n_left_ * n_left_,
                                     .count = end - begin});
    count_adjoint(end - begin);
  }

  /// Σ[e] += Σ_p c[e][p] D[p] on both parts of all (l, m): one real product. Rows of c are `stride`
  /// apart.
  void add_products(const double2* d, const double* c, std::int64_t count, std::int64_t stride) {
    const double one = 1.0;
    const int width = static_cast<int>(2 * n_left_ * n_left_);
    check(cublasDgemm(streams_.blas, CUBLAS_OP_N, CUBLAS_OP_N, width, static_cast<int>(n_energies_),
                      static_cast<int>(count), &one, reinterpret_cast<const double*>(d), width, c,
                      static_cast<int>(stride), &one, reinterpret_cast<double*>(sigma_.data()),
                      width),
          kWhat);
  }

  bool fused_pays() const {
    return options_.products == Products::kNative && fused_product_pays(n_left_);
  }
  /// Elements of P that the fused product multiplies a row of M with.
  double fused_depths() const {
    return static_cast<double>(n_g_) *
           static_cast<double>(in_.model.folded ? (n_g_ + 16) / 2 : n_g_);
  }

  /// C[m][n] = A B by blocks of rows.
  void multiply_blocks(std::int64_t m, std::int64_t n, DeviceMatrix a, DeviceMatrix b, double2* c,
                       std::int64_t c_stride) {
    for (std::int64_t row = 0; row < m; row += kRowsPerProduct)
      multiply(streams_.blas, options_.products, std::min(kRowsPerProduct, m - row), n, n_g_, 1.0,
               {a.data + row * a.stride, a.stride}, b, 0.0, c + row * c_stride, c_stride);
  }

  /// T[l][n in block][G'] = M Q; one product if the block is everything, else one an outer state.
  void multiply_rows(std::int64_t band, std::int64_t n_bands, std::int64_t width, const double2* q,
                     double2* t) {
    if (n_bands == n_right_) {
      multiply_q(n_left_ * n_bands, width, in_.products.products, q, t);
      return;
    }
    for (std::int64_t l = 0; l < n_left_; ++l)
      multiply_q(n_bands, width, in_.products.products + (l * n_right_ + band) * n_g_, q,
                 t + l * n_bands * n_g_);
  }

  /// T[rows][n_g] = M Q; of a folded Q columns [begin, end) need its first `end` rows alone.
  void multiply_q(std::int64_t rows, std::int64_t width, const double2* m, const double2* q,
                  double2* t) {
    for (std::int64_t begin = 0; begin < n_g_; begin += width) {
      const std::int64_t end = std::min(n_g_, begin + width), depth = in_.model.folded ? end : n_g_;
      multiply(streams_.blas, options_.products, rows, end - begin, depth, 1.0, {m, n_g_},
               {q + begin, n_g_}, 0.0, t + begin, n_g_);
      measure_residual_once(rows, end - begin, depth, {m, n_g_}, {q + begin, n_g_},
                            {t + begin, n_g_});
      report_.zgemm_flops +=
          8.0 * static_cast<double>(rows * (end - begin)) * static_cast<double>(depth);
    }
  }

  void measure_residual_once(std::int64_t m, std::int64_t n, std::int64_t k, DeviceMatrix a,
                             DeviceMatrix b, DeviceMatrix c) {
    if (options_.products == Products::kNative || measured_) return;
    measured_ = true;
    report_.residual = product_residual(streams_.blas, streams_.products, m, n, k, a, b, c);
    if (!(report_.residual <= options_.max_residual))
      throw NotConverged("the products asked for have a residual of " +
                         scientific(report_.residual) + " but at most " +
                         scientific(options_.max_residual) +
                         " is allowed; ask for native products");
  }

  /// Products T M† of `count` (n, E) or (n, k).
  void count_adjoint(std::int64_t count) {
    report_.zgemm_flops +=
        8.0 * static_cast<double>(count * n_left_ * n_left_) * static_cast<double>(n_g_);
  }

  const OffDiagonalInput in_;
  const OffDiagonalTerms& terms_;
  const OffDiagonalPlan& plan_;
  OffDiagonalOptions options_;
  OffDiagonalWorkspace streams_;
  std::int64_t n_left_, n_right_, n_g_, n_energies_, workspace_bytes_;
  DeviceBuffer<double2> sigma_;
  DeviceBuffer<double2> p_[2];
  struct {
    DeviceBuffer<double2> t, packed;
    DeviceBuffer<double> energies;
  } fused_;  ///< what the fused product works on
  bool measured_ = false;
  OffDiagonalReport report_;
};

}  // namespace

OffDiagonalReport add_gpp_offdiagonal_cuda(const OffDiagonalInput& input,
                                           const OffDiagonalTerms& terms,
                                           const OffDiagonalOptions& options,
                                           const OffDiagonalWorkspace& workspace,
                                           OffDiagonalPlan& plan, View<Cplx, 3> sigma) {
  OffDiagonalSum sum(input, terms, options, workspace, plan, sigma);
  sum.add_direct();
  fit_separable_pairs(plan, terms, input.rules, options);
  sum.add_separable();
  return sum.finish(sigma);
}

}  // namespace quasi::gw::cuda

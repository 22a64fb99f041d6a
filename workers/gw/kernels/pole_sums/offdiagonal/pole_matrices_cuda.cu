#include "workers/gw/kernels/pole_sums/offdiagonal/pole_matrices_cuda.cuh"

#include <algorithm>
#include <limits>

#include "workers/backend/device/launch_cuda.cuh"
#include "workers/gw/kernels/pole_sums/reciprocal.cuh"
#include "workers/gw/physics/plasmon_pole.hpp"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check;
using quasi::cuda::check_launch;

constexpr int kMaxThreads = 1024;
constexpr int kSharedOfMaker_bytes = 200 * 1024;

/// Model element (G, G'), loaded one step ahead of its use.
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
    make_p(PoleModelOnDevice model, PoleRules rules, BufferEnergies energies, double2* p) {
  for_each_element(model, 0, [&](std::int64_t g, std::int64_t h, const PoleElement& element) {
    double2* to = p + g * energies.count * model.n_g + h;
#pragma unroll
    for (int e = 0; e < kMaxEnergiesPerBuffer; ++e)
      if (e < energies.count) {
        const PoleQuotient q =
            pole_quotient(energies.x_ry[e], element.pole_ry, energies.occupation,
                          rules.half_width_ry, rules.max_ratio, rules.screened_exchange_cut);
        const double f = q.numerator * reciprocal_of_normal(q.denominator);
        to[e * model.n_g] = {f * element.strength.x, f * element.strength.y};
      }
  });
}

/// Computes Q[G][G'] = A_GG' b_k(ω̃_GG')/ω̃_GG'. A folded model carries folded_weight(), and only
/// the elements that products of blocks of `width` columns read are written.
__global__ void __launch_bounds__(kMaxThreads, 1)
    make_q(PoleModelOnDevice model, SeparableTerm term, std::int64_t width, double2* q) {
  for_each_element(model, width, [&](std::int64_t g, std::int64_t h, const PoleElement& element) {
    const double kept = model.folded ? folded_weight(g, h) : 1.0;
    const double f = kept == 0.0 ? 0.0
                                 : kept * separable_term(term.family, term.node, term.constant,
                                                         element.pole_ry, kStaticPole_ry);
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

int multiprocessor_count() {
  int device = 0, multiprocessors = 0;
  check(cudaGetDevice(&device), "reading the device");
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
        "reading the device");
  return multiprocessors;
}

}  // namespace

MakerShape maker_shape(std::int64_t rows) {
  const int multiprocessors = multiprocessor_count();
  if (rows > 256) return {static_cast<unsigned>(16 * multiprocessors), 128, 0};
  // Multiprocessor time of an element: 2.5 ps to make it, 0.15 ps a row to multiply it (one H200).
  const double share = 2.5 / (2.5 + 0.15 * static_cast<double>(rows));
  return {static_cast<unsigned>(std::max(1.0, multiprocessors * share + 0.5)), kMaxThreads,
          kSharedOfMaker_bytes};
}

void prepare_makers() {
  for (const void* maker :
       {reinterpret_cast<const void*>(make_p), reinterpret_cast<const void*>(make_q)})
    check(cudaFuncSetAttribute(maker, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               kSharedOfMaker_bytes),
          "kernels that make matrices of poles");
}

void make_pole_matrices(const PoleModelOnDevice& model, const PoleRules& rules,
                        const BufferEnergies& energies, double2* p, const MakerShape& shape,
                        cudaStream_t stream) {
  make_p<<<shape.blocks, shape.threads, shape.shared_bytes, stream>>>(model, rules, energies, p);
  check_launch("matrices of poles");
}

void make_separable_matrix(const PoleModelOnDevice& model, const SeparableTerm& term,
                           std::int64_t width, double2* q, const MakerShape& shape,
                           cudaStream_t stream) {
  make_q<<<shape.blocks, shape.threads, shape.shared_bytes, stream>>>(model, term, width, q);
  check_launch("matrices of separable terms");
}

void add_adjoints(double2* sigma, std::int64_t n_energies, std::int64_t n, cudaStream_t stream) {
  constexpr unsigned kThreads = 128;
  const auto edge = static_cast<unsigned>(n);
  add_adjoint<<<dim3((edge + kThreads - 1) / kThreads, edge, static_cast<unsigned>(n_energies)),
                kThreads, 0, stream>>>(n, sigma);
  check_launch("adjoints of the self-energy");
}

std::int64_t folded_columns(std::int64_t rows, std::int64_t n_g) {
  constexpr std::int64_t kTile = 128;
  const int multiprocessors = multiprocessor_count();
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

}  // namespace quasi::gw::cuda

#include "workers/gw/kernels/pole_sums/first_order/first_order_cuda.cuh"

#include <algorithm>
#include <vector>

#include "workers/gw/kernels/hamiltonian/local_coupling_cuda.cuh"
#include "workers/gw/kernels/pair_products/pair_block_cuda.cuh"
#include "workers/gw/kernels/pole_sums/first_order/first_order_form.hpp"
#include "workers/gw/kernels/pole_sums/first_order/pole_rows_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;

constexpr const char* kWhat = "first order of the self-energy";
constexpr int kThreads = 256, kLanes = 32;
/// Limit of the memory for Z, and of that for y of close pairs.
constexpr std::int64_t kScratch_bytes = std::int64_t{1} << 30;

unsigned blocks_of(std::int64_t n, int size) {
  return static_cast<unsigned>((n + size - 1) / size);
}

/// V of all perturbations, [n_p][n_bra][n_part].
struct Couplings {
  const double2* v;
  std::int64_t n_bra, n_part;
};

/// A close pair on the device, and its factors of V in both sums.
struct PairOnDevice {
  std::int64_t bra, ket;  ///< n', and n counted from the start of the part
  double closed, multiplet;
};

/// scaled[p][n'][n] = factor[n'][n] V[p][n'][n] of kets [first, first + count).
__global__ void scale_couplings(Couplings of, const double* factor, std::int64_t first,
                                std::int64_t count, double2* scaled) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, p = blockIdx.y;
  if (i >= of.n_bra * count) return;
  const std::int64_t from = i / count * of.n_part + first + i % count;
  const double2 value = of.v[p * of.n_bra * of.n_part + from];
  scaled[p * of.n_bra * count + i] = {factor[from] * value.x, factor[from] * value.y};
}

/// Takes V of the pairs, times their factors; [n_p][n_pairs] each.
__global__ void gather_couplings(Couplings of, const PairOnDevice* pairs, std::int64_t n_pairs,
                                 double2* closed, double2* multiplets) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, p = blockIdx.y;
  if (i >= n_pairs) return;
  const PairOnDevice pair = pairs[i];
  const double2 value = of.v[(p * of.n_bra + pair.bra) * of.n_part + pair.ket];
  closed[p * n_pairs + i] = {pair.closed * value.x, pair.closed * value.y};
  multiplets[p * n_pairs + i] = {pair.multiplet * value.x, pair.multiplet * value.y};
}

/// y[n][m][G] = d(G) M*_mn(G) of kets [first, …), with d = 1 where it has no data.
__global__ void conjugate_rows(ProductsOnDevice ket, const double2* diagonal, std::int64_t n_g,
                               std::int64_t first, double2* y) {
  const std::int64_t g = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x, n = blockIdx.y,
                     m = blockIdx.z;
  if (g >= n_g) return;
  const double2 value = ket.products[(m * ket.n_right + first + n) * n_g + g],
                d = diagonal != nullptr ? diagonal[g] : double2{1.0, 0.0};
  y[(n * ket.n_left + m) * n_g + g] = {d.x * value.x + d.y * value.y,
                                       d.y * value.x - d.x * value.y};
}

/// y of close pairs, [n_energies · n_pairs][n_m][n_g].
struct PairRows {
  const PairOnDevice* pairs;
  std::int64_t n_pairs;
  const double2* y;
  std::int64_t n_m, n_g;
};

/// d[row][l][m] = Σ_G M_ln'(G) y[row][m][G] with n' of the pair row % n_pairs. A warp has one
/// (l, m) at a time.
__global__ void dot_rows(ProductsOnDevice bra, PairRows rows, double2* d) {
  const std::int64_t n_m = rows.n_m, n_g = rows.n_g;
  const std::int64_t row = blockIdx.x, band = rows.pairs[row % rows.n_pairs].bra;
  const int lane = static_cast<int>(threadIdx.x) % kLanes,
            warp = static_cast<int>(threadIdx.x) / kLanes;
  for (std::int64_t i = warp; i < bra.n_left * n_m; i += kThreads / kLanes) {
    const double2* a = bra.products + (i / n_m * bra.n_right + band) * n_g;
    const double2* b = rows.y + (row * n_m + i % n_m) * n_g;
    double2 sum{0.0, 0.0};
    for (std::int64_t g = lane; g < n_g; g += kLanes) {
      sum.x = fma(a[g].x, b[g].x, fma(-a[g].y, b[g].y, sum.x));
      sum.y = fma(a[g].x, b[g].y, fma(a[g].y, b[g].x, sum.y));
    }
    for (int step = kLanes / 2; step > 0; step /= 2) {
      sum.x += __shfl_down_sync(0xffffffffu, sum.x, step);
      sum.y += __shfl_down_sync(0xffffffffu, sum.y, step);
    }
    if (lane == 0) d[row * bra.n_left * n_m + i] = sum;
  }
}

/// One call on one device, with V of all perturbations there.
class FirstOrderCall {
 public:
  FirstOrderCall(CudaContext& context, const FirstOrderOnDevice& products,
                 const FirstOrderPairs& pairs, std::int64_t n_energies)
      : context_(context),
        products_(products),
        pairs_(pairs),
        n_p(pairs.coupling.n_p()),
        n_l(products.bra.n_left),
        n_m(products.ket.n_left),
        n_bra(products.bra.n_right),
        n_part(pairs.part.size()),
        n_g(products.n_g),
        n_e(n_energies),
        v_(dynamic_cast<const CudaCouplingBlock&>(pairs.coupling).data()) {}

  DeviceBuffer<double2> empty_sum() const {
    DeviceBuffer<double2> sum(static_cast<std::size_t>(n_p * n_e * n_l * n_m), kWhat);
    sum.zero(kWhat, context_.stream());
    return sum;
  }

  /// Calls make(kets, energies, y) to fill y[e][n][m][G], and adds
  /// Σ_n'n factor V_n'n Σ_G M_ln'(G) y to the sum of each energy.
  template <typename Make>
  void add_all_bras(const std::vector<double>& factor, const Make& make,
                    const DeviceBuffer<double2>& sum) {
    const DeviceBuffer<double> factors(factor, kWhat);
    const std::int64_t of_state = 16 * n_l * n_bra * n_m,
                       energies = std::clamp<std::int64_t>(kScratch_bytes / of_state, 1, n_e),
                       kets = std::clamp<std::int64_t>(kScratch_bytes / (of_state * energies), 1,
                                                       n_part);
    DeviceBuffer<double2> z(static_cast<std::size_t>(energies * kets * n_l * n_bra * n_m), kWhat),
        y(static_cast<std::size_t>(energies * kets * n_m * n_g), kWhat),
        scaled(static_cast<std::size_t>(n_p * n_bra * kets), kWhat);
    for (std::int64_t first = 0; first < n_part; first += kets) {
      const std::int64_t count = std::min(kets, n_part - first);
      scale_couplings<<<dim3(blocks_of(n_bra * count, kThreads), static_cast<unsigned>(n_p)),
                        kThreads, 0, context_.stream()>>>(couplings(), factors.data(), first, count,
                                                          scaled.data());
      check_launch(kWhat);
      for (std::int64_t e = 0; e < n_e; e += energies) {
        const std::int64_t n_here = std::min(energies, n_e - e);
        make(BandRange{first, first + count}, BandRange{e, e + n_here}, y.data());
        contract({first, first + count}, {e, e + n_here}, y.data(), z.data(), scaled.data(), sum);
      }
    }
    wait();
  }

  /// Adds the close pairs, whose y[e][pair][m][G] is made by make(pairs, y).
  template <typename Make>
  void add_close(const std::vector<FirstOrderPlan::ClosePair>& all, const Make& make,
                 const DeviceBuffer<double2>& closed, const DeviceBuffer<double2>& multiplets) {
    if (all.empty()) return;
    const std::int64_t n_all = std::ssize(all),
                       at_once = std::clamp<std::int64_t>(
                           kScratch_bytes / (16 * n_e * n_m * (n_g + n_l)), 1, n_all);
    DeviceBuffer<double2> y(static_cast<std::size_t>(n_e * at_once * n_m * n_g), kWhat),
        d(static_cast<std::size_t>(n_e * at_once * n_l * n_m), kWhat),
        v_closed(static_cast<std::size_t>(n_p * at_once), kWhat),
        v_multiplets(static_cast<std::size_t>(n_p * at_once), kWhat);
    for (std::int64_t first = 0; first < n_all; first += at_once) {
      const std::int64_t count = std::min(at_once, n_all - first);
      const std::vector<FirstOrderPlan::ClosePair> here(all.begin() + first,
                                                        all.begin() + first + count);
      const DeviceBuffer<PairOnDevice> pairs(on_device(here), kWhat);
      make(here, y.data());
      dot_rows<<<static_cast<unsigned>(n_e * count), kThreads, 0, context_.stream()>>>(
          products_.bra, PairRows{pairs.data(), count, y.data(), n_m, n_g}, d.data());
      check_launch(kWhat);
      gather_couplings<<<dim3(blocks_of(count, kThreads), static_cast<unsigned>(n_p)), kThreads, 0,
                         context_.stream()>>>(couplings(), pairs.data(), count, v_closed.data(),
                                              v_multiplets.data());
      check_launch(kWhat);
      add_pairs(count, d.data(), v_closed.data(), closed);
      add_pairs(count, d.data(), v_multiplets.data(), multiplets);
      wait();
    }
  }

  /// Adds the pairs of every energy with the matrix of a form, which is made once for all energies.
  void add_form(const FirstOrderForm& form, const DeviceBuffer<double2>& sum) {
    const bool full = form.matrix.data != nullptr;
    const auto w = full ? context_.to_device(form.matrix.data, form.matrix.size(), kWhat)
                        : context_.to_device(form.diagonal.data, form.diagonal.size(), kWhat);
    const std::vector<double> factor = weighted_factors(form, pairs_);
    const std::vector<char> used = used_energies(factor, n_e);
    const DeviceBuffer<double> factors(factor, kWhat);
    const double2 one{1.0, 0.0}, zero{0.0, 0.0};
    const std::int64_t of_ket = 16 * n_m * (n_l * n_bra + 2 * n_g),
                       kets = std::clamp<std::int64_t>(kScratch_bytes / of_ket, 1, n_part);
    DeviceBuffer<double2> z(static_cast<std::size_t>(kets * n_l * n_bra * n_m), kWhat),
        rows(static_cast<std::size_t>(kets * n_m * n_g), kWhat), y(full ? rows.size() : 1, kWhat),
        scaled(static_cast<std::size_t>(n_p * n_bra * kets), kWhat);
    const int order = static_cast<int>(n_g);
    for (std::int64_t first = 0; first < n_part; first += kets) {
      const std::int64_t count = std::min(kets, n_part - first), columns = count * n_m;
      conjugate_rows<<<dim3(blocks_of(n_g, kThreads), static_cast<unsigned>(count),
                            static_cast<unsigned>(n_m)),
                       kThreads, 0, context_.stream()>>>(
          products_.ket, full ? nullptr : w.data(), n_g, pairs_.part.begin + first, rows.data());
      check_launch(kWhat);
      if (full)
        check(quasi::cuda::late::cublasZgemm(context_.blas(), CUBLAS_OP_T, CUBLAS_OP_N, order,
                                             static_cast<int>(columns), order, &one, w.data(),
                                             order, rows.data(), order, &zero, y.data(), order),
              kWhat);
      multiply_bras(columns, full ? y.data() : rows.data(), z.data());
      for (std::int64_t e = 0; e < n_e; ++e) {
        if (!used[static_cast<std::size_t>(e)]) continue;
        scale_couplings<<<dim3(blocks_of(n_bra * count, kThreads), static_cast<unsigned>(n_p)),
                          kThreads, 0, context_.stream()>>>(
            couplings(), factors.data() + e * n_bra * n_part, first, count, scaled.data());
        check_launch(kWhat);
        couple(count, {e, e + 1}, z.data(), scaled.data(), sum);
      }
    }
    wait();
  }

  void add_to_host(const DeviceBuffer<double2>& sum, Cplx* to) const {
    std::vector<Cplx> values(sum.size());
    context_.to_host(sum.data(), static_cast<std::int64_t>(sum.size()), values.data(), kWhat);
    for (std::size_t i = 0; i < values.size(); ++i) to[i] += values[i];
  }
  void wait() const { check(cudaStreamSynchronize(context_.stream()), kWhat); }

 private:
  std::vector<PairOnDevice> on_device(const std::vector<FirstOrderPlan::ClosePair>& list) const {
    std::vector<PairOnDevice> pairs;
    for (const FirstOrderPlan::ClosePair& pair : list) {
      const bool multiplet = pair.kind == PairKind::kMultiplet;
      pairs.push_back(
          {pair.bra, pair.ket, multiplet ? 0.0 : pair.weight, multiplet ? pair.weight : 0.0});
    }
    return pairs;
  }

  Couplings couplings() const { return {v_, n_bra, n_part}; }

  /// Z[e][l][n'][n][m] = Σ_G M_ln'(G) y[e][n][m][G], then sum[p][e][l][m] += Σ_n'n V Z.
  void contract(BandRange kets, BandRange energies, const double2* y, double2* z,
                const double2* scaled, const DeviceBuffer<double2>& sum) {
    const std::int64_t columns = kets.size() * n_m;
    for (std::int64_t e = 0; e < energies.size(); ++e)
      multiply_bras(columns, y + e * columns * n_g, z + e * n_l * n_bra * columns);
    couple(kets.size(), energies, z, scaled, sum);
  }
  /// Z[l][n'][column] = Σ_G M_ln'(G) y[column][G] of one energy.
  void multiply_bras(std::int64_t columns, const double2* y, double2* z) {
    const double2 one{1.0, 0.0}, zero{0.0, 0.0};
    check(quasi::cuda::late::cublasZgemm(
              context_.blas(), CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(columns),
              static_cast<int>(n_l * n_bra), static_cast<int>(n_g), &one, y, static_cast<int>(n_g),
              products_.bra.products, static_cast<int>(n_g), &zero, z, static_cast<int>(columns)),
          kWhat);
  }
  /// sum[p][e][l][m] += Σ_n'n V Z of all energies of a range.
  void couple(std::int64_t kets, BandRange energies, const double2* z, const double2* scaled,
              const DeviceBuffer<double2>& sum) {
    const double2 one{1.0, 0.0};
    const std::int64_t inner = n_bra * kets;
    check(
        quasi::cuda::late::cublasZgemmStridedBatched(
            context_.blas(), CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(n_m), static_cast<int>(n_p),
            static_cast<int>(inner), &one, z, static_cast<int>(n_m), inner * n_m, scaled,
            static_cast<int>(inner), 0, &one, sum.data() + energies.begin * n_l * n_m,
            static_cast<int>(n_e * n_l * n_m), n_m, static_cast<int>(energies.size() * n_l)),
        kWhat);
  }

  /// sum[p][e][l][m] += Σ_pair V[p][pair] d[e][pair][l][m].
  void add_pairs(std::int64_t count, const double2* d, const double2* v,
                 const DeviceBuffer<double2>& sum) {
    const double2 one{1.0, 0.0};
    const std::int64_t n_lm = n_l * n_m;
    check(quasi::cuda::late::cublasZgemmStridedBatched(
              context_.blas(), CUBLAS_OP_N, CUBLAS_OP_N, static_cast<int>(n_lm),
              static_cast<int>(n_p), static_cast<int>(count), &one, d, static_cast<int>(n_lm),
              count * n_lm, v, static_cast<int>(count), 0, &one, sum.data(),
              static_cast<int>(n_e * n_lm), n_lm, static_cast<int>(n_e)),
          kWhat);
  }

  CudaContext& context_;
  const FirstOrderOnDevice& products_;
  const FirstOrderPairs& pairs_;

 public:
  const std::int64_t n_p, n_l, n_m, n_bra, n_part, n_g, n_e;

 private:
  const double2* v_;  ///< [n_p][n_bra][n_part]
};

}  // namespace

void add_first_order_cuda(CudaContext& context, const FirstOrderModel& model,
                          const FirstOrderOnDevice& products, const FirstOrderPairs& pairs,
                          const FirstOrderTerms& terms, const FirstOrderSums& sums) {
  FirstOrderCall call(context, products, pairs, terms.energies_ry.extent[0]);
  const auto x_ry = [&](std::int64_t e, const CoupledBands& bands, std::int64_t n) {
    return terms.energies_ry(e) - bands.energy_ry[static_cast<std::size_t>(n)];
  };
  const auto row_of_ket = [&](std::int64_t e, std::int64_t n) {
    const std::int64_t ket = pairs.part.begin + n;
    return PoleRow{.band = ket,
                   .x_a_ry = x_ry(e, pairs.ket, ket),
                   .occupation_a = pairs.ket.occupation[static_cast<std::size_t>(ket)]};
  };
  const auto fill = [&](const std::vector<PoleRow>& list, double2* y) {
    const DeviceBuffer<PoleRow> rows(list, kWhat);
    launch_pole_rows({.model = model.poles,
                      .rules = model.rules,
                      .adjoint = terms.adjoint,
                      .products = products.ket,
                      .rows = rows.data(),
                      .n_rows = std::ssize(list),
                      .y = y},
                     context.stream());
    call.wait();
  };
  const FirstOrderPlan plan = plan_first_order(pairs, terms.mirrored);
  const DeviceBuffer<double2> quotients = call.empty_sum();
  call.add_all_bras(
      plan.factor,
      [&](BandRange kets, BandRange energies, double2* y) {
        std::vector<PoleRow> rows;
        for (std::int64_t e = energies.begin; e < energies.end; ++e)
          for (std::int64_t n = kets.begin; n < kets.end; ++n) rows.push_back(row_of_ket(e, n));
        fill(rows, y);
      },
      quotients);
  call.add_to_host(quotients, sums.quotients.data);
  if (!terms.close_pairs) return;
  const DeviceBuffer<double2> closed = call.empty_sum(), multiplets = call.empty_sum();
  call.add_close(
      plan.close,
      [&](const std::vector<FirstOrderPlan::ClosePair>& list, double2* y) {
        std::vector<PoleRow> rows;
        for (std::int64_t e = 0; e < call.n_e; ++e)
          for (const FirstOrderPlan::ClosePair& pair : list) {
            PoleRow row = row_of_ket(e, pair.ket);
            row.x_b_ry = x_ry(e, pairs.bra, pair.bra);
            row.occupation_b = pairs.bra.occupation[static_cast<std::size_t>(pair.bra)];
            row.a_minus_b_ry = row.x_b_ry - row.x_a_ry;
            row.difference = true;
            rows.push_back(row);
          }
        fill(rows, y);
      },
      closed, multiplets);
  call.add_to_host(closed, sums.closed.data);
  call.add_to_host(multiplets, sums.multiplets.data);
}

void add_first_order_exchange_cuda(CudaContext& context, const FirstOrderOnDevice& products,
                                   View<const double, 1> coulomb, const FirstOrderPairs& pairs,
                                   View<Cplx, 3> sum) {
  FirstOrderCall call(context, products, pairs, 1);
  const std::vector<Cplx> diagonal(coulomb.data, coulomb.data + coulomb.size());
  const auto v = context.to_device(diagonal.data(), coulomb.size(), kWhat);
  const DeviceBuffer<double2> found = call.empty_sum();
  call.add_all_bras(
      exchange_factors(pairs),
      [&](BandRange kets, BandRange, double2* y) {
        conjugate_rows<<<dim3(blocks_of(call.n_g, kThreads), static_cast<unsigned>(kets.size()),
                              static_cast<unsigned>(call.n_m)),
                         kThreads, 0, context.stream()>>>(products.ket, v.data(), call.n_g,
                                                          pairs.part.begin + kets.begin, y);
        check_launch(kWhat);
      },
      found);
  call.add_to_host(found, sum.data);
}

}  // namespace quasi::gw::cuda

namespace quasi::gw {

void add_first_order_form_cuda(const FirstOrderProducts& products, const FirstOrderPairs& pairs,
                               const FirstOrderForm& form, View<Cplx, 4> sum) {
  const auto &bra = dynamic_cast<const cuda::CudaPairBlock&>(products.bra),
             &ket = dynamic_cast<const cuda::CudaPairBlock&>(products.ket);
  cuda::CudaContext& context = bra.context();
  context.use();
  const cuda::FirstOrderOnDevice on_device{{bra.data(), bra.n_left(), bra.n_right()},
                                           {ket.data(), ket.n_left(), ket.n_right()},
                                           bra.n_g()};
  cuda::FirstOrderCall call(context, on_device, pairs, form.factor.extent[0]);
  const auto found = call.empty_sum();
  call.add_form(form, found);
  call.add_to_host(found, sum.data);
}

}  // namespace quasi::gw

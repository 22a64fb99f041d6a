#include <algorithm>
#include <cstdio>
#include <string>

#include "workers/backend/device/pinned_buffer.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pole_sums/offdiagonal/gpp_fused_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/offdiagonal_sum_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/pole_matrices_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

constexpr const char* kWhat = "off-diagonal plasmon-pole sum";

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

}  // namespace

OffDiagonalSum::OffDiagonalSum(const OffDiagonalInput& of, const OffDiagonalTerms& with,
                               const OffDiagonalOptions& how, const OffDiagonalWorkspace& workspace,
                               const OffDiagonalPlan& planned)
    : input(of),
      terms(with),
      plan(planned),
      options(how),
      work(workspace),
      n_left(of.products.n_left),
      n_m(of.ket.n_left),
      n_right(of.products.n_right),
      n_g(of.model.n_g),
      n_energies(with.energies_ry.extent[0]),
      sigma_(static_cast<std::size_t>(n_energies * n_left * n_m), kWhat) {
  sigma_.zero(kWhat, work.products);
  prepare_makers();
  check(cudaDeviceSynchronize(), kWhat);
  report_ = {.pairs = plan.pairs, .direct_pairs = plan.direct_pairs, .hermitian = folded()};
}

void OffDiagonalSum::wait() const { check(cudaStreamSynchronize(work.products), kWhat); }

bool OffDiagonalSum::fused_pays() const {
  return options.products == Products::kNative && fused_product_pays(n_left);
}

double OffDiagonalSum::fused_depths() const {
  return static_cast<double>(n_g) * static_cast<double>(folded() ? (n_g + 16) / 2 : n_g);
}

void OffDiagonalSum::add_t(const double2* t, const EnergyRun& energies, double factor) {
  const std::int64_t count = energies.end - energies.begin;
  multiply_adjoint(work.blas, {.m = n_left,
                               .n = n_m,
                               .k = n_g,
                               .alpha = factor * terms.weight,
                               .beta = 1.0,
                               .a = {t, count * n_g},
                               .b = ket_bands_of(energies.band),
                               .c = sigma_.data() + energies.begin * n_left * n_m,
                               .c_stride = n_m,
                               .a_step = n_g,
                               .b_step = 0,
                               .c_step = n_left * n_m,
                               .count = count});
  count_adjoint(count);
}

void OffDiagonalSum::add_products(const double2* d, const double* c, std::int64_t count,
                                  std::int64_t stride) {
  const double one = 1.0;
  const int width = static_cast<int>(2 * n_left * n_m);
  check(quasi::cuda::late::cublasDgemm(
            work.blas, CUBLAS_OP_N, CUBLAS_OP_N, width, static_cast<int>(n_energies),
            static_cast<int>(count), &one, reinterpret_cast<const double*>(d), width, c,
            static_cast<int>(stride), &one, reinterpret_cast<double*>(sigma_.data()), width),
        kWhat);
}

void OffDiagonalSum::measure_residual_once(const MatrixProduct& product) {
  if (options.products == Products::kNative || measured_) return;
  measured_ = true;
  report_.residual = product_residual(work.blas, work.products, product);
  if (!(report_.residual <= options.max_residual))
    throw NotConverged("the products asked for have a residual of " + scientific(report_.residual) +
                       " but at most " + scientific(options.max_residual) +
                       " is allowed; ask for native products");
}

void OffDiagonalSum::count_adjoint(std::int64_t count) {
  count_flops(8.0 * static_cast<double>(count * n_left * n_m) * static_cast<double>(n_g));
}

OffDiagonalReport OffDiagonalSum::finish(View<Cplx, 3> sigma) {
  if (folded()) add_adjoints(sigma_.data(), n_energies, n_left, work.products);
  wait();
  report_.terms = plan.pole.size();
  report_.fit_error_relative = plan.pole.error;
  report_.fit_seconds = plan.fit_seconds;
  add_to_host(sigma_.data(), sigma.size(), sigma.data);
  return report_;
}

OffDiagonalReport add_gpp_offdiagonal_cuda(const OffDiagonalInput& input,
                                           const OffDiagonalTerms& terms,
                                           const OffDiagonalOptions& options,
                                           const OffDiagonalWorkspace& workspace,
                                           OffDiagonalPlan& plan, View<Cplx, 3> sigma) {
  OffDiagonalSum sum(input, terms, options, workspace, plan);
  {
    DirectSum direct(sum);
    direct.add();
    fit_separable_pairs(plan, terms, input.rules, options);  // beside the device's products
    sum.wait();
  }
  add_separable_pairs(sum);
  return sum.finish(sigma);
}

}  // namespace quasi::gw::cuda

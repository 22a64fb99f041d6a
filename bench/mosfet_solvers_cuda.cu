// The linear solvers that a chord iteration may use, on the first CUDA device and on the same
// matrix as mosfet_solvers: renewal, one solve, residual, and the distance from the CPU's solution.
// One JSON line a solver.
//
//   mosfet_solvers_cuda [REPEATS]

#include <cusolverDn.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/mosfet_newton_system.hpp"
#include "bench/mosfet_solver_kernels.cuh"
#include "workers/backend/device/device.hpp"
#include "workers/backend/device/event.cuh"
#include "workers/backend/device/library_handle.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/mosfet/kernels/electrostatics/cyclic_reduction.cuh"
#include "workers/mosfet/kernels/electrostatics/refresh_cuda.cuh"
#include "workers/mosfet/kernels/electrostatics/row_product.cuh"

namespace quasi::mosfet {
namespace {

using cuda::BlockCyclicReduction;
using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::Event;
using quasi::cuda::EventTiming;
using quasi::cuda::to_host;
using Vector = std::vector<double>;

constexpr int kBlocks = 130;  ///< as the product's field kernel on the standard mesh

/// Median milliseconds of one call, of `repeats`.
double ms(cudaStream_t stream, int repeats, const std::function<void()>& work) {
  const Event from(EventTiming::kOn), to(EventTiming::kOn);
  std::vector<float> each;
  work();
  for (int k = 0; k < repeats; ++k) {
    from.record(stream);
    work();
    to.record(stream);
    to.synchronize("timing");
    each.push_back(static_cast<float>(1e3 * to.seconds_since(from)));
  }
  std::nth_element(each.begin(), each.begin() + repeats / 2, each.end());
  return each[static_cast<std::size_t>(repeats) / 2];
}

template <typename... Arguments>
void launch_together(void (*kernel)(Arguments...), int blocks, std::size_t shared,
                     cudaStream_t stream, Arguments... arguments) {
  void* list[] = {&arguments...};
  check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel),
                                    dim3(static_cast<unsigned>(blocks)), dim3(kThreads), list,
                                    shared, stream),
        "cooperative kernel");
}

template <typename T>
DeviceBuffer<T> narrowed(const DeviceBuffer<double>& from) {
  const Vector wide = to_host(from, "narrow copy");
  DeviceBuffer<T> narrow(std::vector<T>(wide.begin(), wide.end()), "narrow copy");
  check(cudaStreamSynchronize(nullptr), "narrow copy");
  return narrow;
}

class Comparison {
 public:
  Comparison(int repeats)
      : repeats_(repeats),
        system_(standard_newton_system()),
        nx_(system_.matrix.nx()),
        nz_(system_.matrix.nz()),
        nodes_(nx_ * nz_),
        blocks_(system_.matrix.blocks(), "blocks"),
        couplings_(system_.matrix.couplings(), "couplings"),
        b_(system_.right_side, "right side"),
        x_(static_cast<std::size_t>(nodes_), "solution"),
        expected_(system_.right_side) {
    system_.matrix.solve(expected_.data());
    check(cudaStreamSynchronize(nullptr), "system");
  }

  void run() {
    launch_together(barriers_kernel, kBlocks, 0, stream_.get(), 1);
    const auto barriers = [&](int n) {
      return ms(stream_.get(), repeats_,
                [&] { launch_together(barriers_kernel, kBlocks, 0, stream_.get(), n); });
    };
    const double none = barriers(0), many = barriers(100);
    std::cout << nlohmann::json{{"cooperative_launch_us", 1e3 * none},
                                {"grid_barrier_us", 10.0 * (many - none)}}
                     .dump()
              << std::endl;
    explicit_inverse();
    cyclic_reduction();
    block_thomas();
    gradients();
  }

 private:
  void report(const char* name, double renew_ms, double solve_ms, double bytes,
              const std::string& chain) {
    const Vector x = to_host(x_, "solution");
    double distance = 0.0, scale = 0.0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      distance = std::max(distance, std::fabs(x[k] - expected_[k]));
      scale = std::max(scale, std::fabs(expected_[k]));
    }
    std::cout << nlohmann::json{{"solver", name},
                                {"renew_ms", renew_ms},
                                {"solve_us", 1e3 * solve_ms},
                                {"residual", system_.residual(x)},
                                {"relative_error", distance / scale},
                                {"bytes_a_solve", bytes},
                                {"chain", chain}}
                     .dump()
              << std::endl;
    x_.zero("solution");
    check(cudaStreamSynchronize(nullptr), "solution");
  }
  double solve_ms(const std::function<void()>& work) { return ms(stream_.get(), repeats_, work); }

  /// The inverse of a matrix given as blocks and couplings: one triangle by cuSOLVER. @return
  /// milliseconds
  double invert(const DeviceBuffer<double>& blocks, const DeviceBuffer<double>& couplings,
                DeviceBuffer<double>* dense) {
    *dense = {static_cast<std::size_t>(nodes_) * nodes_, "inverse"};
    const auto lower = CUBLAS_FILL_MODE_LOWER;
    int factor = 0, inverse = 0;
    check(cusolverDnDpotrf_bufferSize(solver_.get(), lower, nodes_, dense->data(), nodes_, &factor),
          "Cholesky factor");
    check(
        cusolverDnDpotri_bufferSize(solver_.get(), lower, nodes_, dense->data(), nodes_, &inverse),
        "inverse");
    DeviceBuffer<double> workspace(static_cast<std::size_t>(std::max(factor, inverse)),
                                   "workspace");
    DeviceBuffer<int> info(2, "factor status");
    return ms(stream_.get(), 3, [&] {
      dense_kernel<<<static_cast<unsigned>(nodes_), 256, 0, stream_.get()>>>(
          nz_, nodes_, blocks.data(), couplings.data(), dense->data());
      check(cusolverDnDpotrf(solver_.get(), lower, nodes_, dense->data(), nodes_, workspace.data(),
                             static_cast<int>(workspace.size()), info.data()),
            "Cholesky factor");
      check(cusolverDnDpotri(solver_.get(), lower, nodes_, dense->data(), nodes_, workspace.data(),
                             static_cast<int>(workspace.size()), info.data() + 1),
            "inverse");
    });
  }
  DeviceBuffer<__nv_bfloat16> bfloat(const DeviceBuffer<double>& dense) {
    DeviceBuffer<__nv_bfloat16> narrow(
        static_cast<std::size_t>(nodes_) * cuda::inverse_stride(nodes_), "narrow inverse");
    cuda::narrow_inverse_kernel<<<static_cast<unsigned>(nodes_), 256, 0, stream_.get()>>>(
        nodes_, dense.data(), narrow.data());
    check(cudaStreamSynchronize(stream_.get()), "narrow inverse");
    return narrow;
  }
  std::size_t parts_bytes() const {
    return sizeof(float) * static_cast<std::size_t>(cuda::inverse_stride(nodes_));
  }

  void explicit_inverse() {
    DeviceBuffer<double> dense;
    const double renew = invert(blocks_, couplings_, &dense);
    const double one = 1.0, zero = 0.0, full = 8.0 * nodes_ * nodes_;
    blas_.set_stream(stream_.get());
    report("(a) explicit inverse, FP64, cublasDsymv", renew, solve_ms([&] {
             check(cublasDsymv(blas_.get(), CUBLAS_FILL_MODE_LOWER, nodes_, &one, dense.data(),
                               nodes_, b_.data(), 1, &zero, x_.data(), 1),
                   "symv");
           }),
           0.5 * full, "one product");
    const DeviceBuffer<__nv_bfloat16> narrow = bfloat(dense);
    const auto product = [&] {
      return solve_ms([&] {
        narrow_product_kernel<<<kBlocks, kThreads, parts_bytes(), stream_.get()>>>(
            nodes_, narrow.data(), b_.data(), x_.data());
        check_launch("product");
      });
    };
    report("(a) explicit inverse, bfloat16 (the product's)", renew, product(), 0.25 * full,
           "one product");
    BlockCyclicReduction reduction(nx_, nz_);
    DeviceBuffer<double> rows(static_cast<std::size_t>(nodes_) * nodes_, "inverse");
    const double by_reduction = ms(stream_.get(), 5, [&] {
      reduction.factorise(blocks_.data(), couplings_.data(), stream_.get());
      reduction.invert(rows.data(), stream_.get());
    });
    report("(a) explicit inverse, FP64, cublasDgemv, renewed by (b)", by_reduction, solve_ms([&] {
             check(cublasDgemv(blas_.get(), CUBLAS_OP_T, nodes_, nodes_, &one, rows.data(), nodes_,
                               b_.data(), 1, &zero, x_.data(), 1),
                   "gemv");
           }),
           full, "one product");
  }

  void cyclic_reduction() {
    BlockCyclicReduction reduction(nx_, nz_);
    const double renew = ms(stream_.get(), 5, [&] {
      reduction.factorise(blocks_.data(), couplings_.data(), stream_.get());
    });
    solve_reduced<double>(reduction, renew, "(b) block cyclic reduction, FP64");
    solve_reduced<float>(reduction, renew, "(b) block cyclic reduction, factors in FP32");
  }
  template <typename T>
  void solve_reduced(const BlockCyclicReduction& reduction, double renew, const char* name) {
    std::vector<DeviceBuffer<T>> kept;
    const auto copy = [&](const DeviceBuffer<double>& from) {
      kept.push_back(narrowed<T>(from));
      return static_cast<const T*>(kept.back().data());
    };
    Reduced<T> m{};
    m.levels = reduction.levels();
    m.nz = nz_;
    double bytes = 0.0;
    for (int k = 0; k < m.levels; ++k) {
      const auto& l = reduction.level(k);
      m.level[k] = {l.n,           copy(l.inverse),   copy(l.left),
                    copy(l.right), copy(l.left_rows), copy(l.right_rows)};
      bytes += sizeof(T) * 5.0 * (l.n / 2) * nz_ * nz_;
    }
    DeviceBuffer<double> r(static_cast<std::size_t>(nodes_), "right side");
    const double solve = solve_ms([&] {
      check(cudaMemcpyAsync(r.data(), b_.data(), sizeof(double) * nodes_, cudaMemcpyDeviceToDevice,
                            stream_.get()),
            "right side");
      launch_together(cyclic_kernel<T>, kBlocks, 0, stream_.get(), m, r.data(), x_.data());
    });
    report(name, renew, solve, bytes,
           std::to_string(2 * m.levels - 1) + " batches of products, a grid barrier apart");
  }

  void block_thomas() {
    DeviceBuffer<double> schur(static_cast<std::size_t>(nodes_) * nz_, "Schur complements"),
        inverse(static_cast<std::size_t>(nodes_) * nz_, "inverses");
    DeviceBuffer<double> factors(static_cast<std::size_t>(2) * nz_ * nz_, "factors");
    DeviceBuffer<int> pivots(static_cast<std::size_t>(2) * nz_, "pivots"), info(2, "factor status");
    const std::size_t square = static_cast<std::size_t>(nz_) * nz_;
    const int mid = nx_ / 2;
    std::vector<double*> table;
    for (int step = 0; step <= mid; ++step) {
      for (const int i : {step, nx_ - 1 - step}) table.push_back(inverse.data() + i * square);
    }
    DeviceBuffer<double*> out(table, "pointers"),
        in(std::vector<double*>{factors.data(), factors.data() + square}, "pointers");
    check(cudaStreamSynchronize(nullptr), "pointers");
    blas_.set_stream(stream_.get());
    const double renew = ms(stream_.get(), 3, [&] {
      check(cudaMemcpyAsync(schur.data(), blocks_.data(), sizeof(double) * nodes_ * nz_,
                            cudaMemcpyDeviceToDevice, stream_.get()),
            "blocks");
      for (int step = 0; step <= mid; ++step) {
        const int left = step, right = nx_ - 1 - step, batch = left == right ? 1 : 2;
        for (int k = 0; k < batch; ++k)
          check(cudaMemcpyAsync(factors.data() + k * square,
                                schur.data() + (k == 0 ? left : right) * square,
                                sizeof(double) * square, cudaMemcpyDeviceToDevice, stream_.get()),
                "Schur complement");
        check(cublasDgetrfBatched(blas_.get(), nz_, in.data(), nz_, pivots.data(), info.data(),
                                  batch),
              "factors");
        check(cublasDgetriBatched(blas_.get(), nz_, in.data(), nz_, pivots.data(),
                                  out.data() + 2 * step, nz_, info.data(), batch),
              "inverses");
        if (step < mid)
          schur_kernel<<<2, 256, 0, stream_.get()>>>(nz_, couplings_.data(), left, right,
                                                     schur.data(), inverse.data());
      }
      check_launch("block elimination");
    });
    thomas<double>(inverse, renew, "(c) block Thomas in one cluster, FP64");
    const DeviceBuffer<float> narrow = narrowed<float>(inverse);
    thomas<float>(narrow, renew, "(c) block Thomas in one cluster, factors in FP32");
  }
  template <typename T>
  void thomas(const DeviceBuffer<T>& inverse, double renew, const char* name) {
    check(cudaFuncSetAttribute(thomas_kernel<T>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
          "cluster of 16");
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(kCluster);
    config.blockDim = dim3(32 * kRowsEach);
    config.stream = stream_.get();
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = kCluster;
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    config.attrs = &cluster;
    config.numAttrs = 1;
    const T* factors = inverse.data();
    const double* couplings = couplings_.data();
    const double* b = b_.data();
    const double solve = solve_ms([&] {
      check(
          cudaLaunchKernelEx(&config, thomas_kernel<T>, nx_, nz_, factors, couplings, b, x_.data()),
          "cluster");
    });
    report(name, renew, solve, 2.0 * sizeof(T) * nodes_ * nz_,
           std::to_string(nx_) + " products of " + std::to_string(nz_) +
               " rows, a cluster barrier apart");
  }

  void gradients() {
    DeviceBuffer<double> dense;
    {
      const DeviceBuffer<double> blocks(system_.laplace.blocks(), "Laplacian"),
          couplings(system_.laplace.couplings(), "Laplacian");
      check(cudaStreamSynchronize(nullptr), "Laplacian");
      invert(blocks, couplings, &dense);
    }
    const DeviceBuffer<__nv_bfloat16> laplace = bfloat(dense);
    DeviceBuffer<double> vectors(4 * static_cast<std::size_t>(nodes_), "vectors"),
        partial(4 * kBlocks, "sums");
    DeviceBuffer<int> iterations(1, "iterations");
    for (const double tolerance : {1e-3, 1e-8}) {
      const double solve = solve_ms([&] {
        const GradientsSystem system{
            nx_, nz_, blocks_.data(), couplings_.data(), laplace.data(), b_.data(), tolerance};
        launch_together(gradients_kernel, kBlocks, parts_bytes(), stream_.get(), system,
                        GradientsWork{vectors.data(), partial.data()}, x_.data(),
                        iterations.data());
      });
      const int count = to_host(iterations, "iterations")[0];
      report(tolerance > 1e-5 ? "(d) conjugate gradients after Laplace in bfloat16, to 1e-3"
                              : "(d) conjugate gradients after Laplace in bfloat16, to 1e-8",
             0.0, solve, count * (2.0 * nodes_ * nodes_ + 8.0 * nodes_ * nz_),
             std::to_string(count) + " iterations, four grid barriers each");
    }
  }

  int repeats_;
  NewtonSystem system_;
  int nx_, nz_, nodes_;
  quasi::cuda::Stream stream_{quasi::cuda::StreamPriority::kUrgent};
  quasi::cuda::CublasHandle blas_{nullptr};
  quasi::cuda::CusolverHandle solver_{stream_.get()};
  DeviceBuffer<double> blocks_, couplings_, b_, x_;
  Vector expected_;
};

}  // namespace
}  // namespace quasi::mosfet

int main(int argc, char** argv) {
  try {
    quasi::use_device(quasi::find_device("cuda:0"));
    quasi::mosfet::Comparison(argc > 1 ? std::atoi(argv[1]) : 101).run();
  } catch (const std::exception& failure) {
    std::cerr << "error: " << failure.what() << '\n';
    return 1;
  }
  return 0;
}

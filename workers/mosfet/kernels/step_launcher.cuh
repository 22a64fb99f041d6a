#pragma once

#include <string>

#include "workers/backend/error.hpp"
#include "workers/mosfet/kernels/electrostatics/field_cuda.cuh"
#include "workers/mosfet/kernels/point_on_device.cuh"
#include "workers/mosfet/kernels/scattering/scattering_cuda.cuh"
#include "workers/mosfet/kernels/scattering/scattering_run_cuda.cuh"
#include "workers/mosfet/kernels/transport/step_cuda.cuh"
#include "workers/mosfet/kernels/transport/transport_cuda.cuh"
#include "workers/mosfet/physics/runge_kutta.hpp"

namespace quasi::mosfet::cuda {

using quasi::cuda::check;
using quasi::cuda::check_launch;

/// Chooses the shapes of the kernels of a time step for one problem and device, and launches them
/// on the streams of a point. See docs/theory/mosfet.md 8 for the equations.
class StepLauncher {
 public:
  /// @throws InvalidInput if a block or a cooperative grid does not fit the device
  void prepare(const TransportProblem& problem, const DeviceProblem& device_problem,
               const Device& device) {
    problem_ = &problem;
    device_problem_ = device_problem;
    device_ = device;
    check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, device.index),
          "device attributes");
    shape_ = transport_shape(problem, multiprocessors_);
    choose_state_groups();
    set_shared_memory_limits();
  }
  const TransportShape& shape() const { return shape_; }

  /// Launches gain and loss of all states.
  void scatter(PointOnDevice& p) {
    if (!device_problem_.scatters) return;
    const dim3 grid(static_cast<unsigned>(device_problem_.nx),
                    static_cast<unsigned>(device_problem_.n_states / states_per_block_));
    // The block makes whole rounds over its (state, w) pairs.
    const int items = states_per_block_ * device_problem_.nw, rounds = (items + 767) / 768;
    const int threads = scatters_in_runs()
                            ? scattering_run_threads(device_problem_, states_per_block_)
                            : ((items + rounds - 1) / rounds + 31) / 32 * 32;
    scattering_kernel()<<<grid, static_cast<unsigned>(threads), scattering_bytes(states_per_block_),
                          p.stream.get()>>>(device_problem_, p.device, states_per_block_);
    check_launch("scattering");
  }

  /// Launches the scales of a neutral inflow, if the problem has one.
  void neutral_inflow(PointOnDevice& p, const double* pdf_s) {
    if (!problem_->neutral_inflow) return;
    neutral_inflow_kernel<<<2, 1024, 0, p.stream.get()>>>(device_problem_, p.device, pdf_s);
    check_launch("neutral inflow");
  }

  /// Launches one stage of the transport.
  void transport(PointOnDevice& p, const StageBuffers& stage) {
    neutral_inflow(p, stage.pdf_s);
    const dim3 grid(static_cast<unsigned>(shape_.tiles),
                    static_cast<unsigned>(device_problem_.n_states),
                    static_cast<unsigned>(shape_.segments));
    const TransportKernel kernel = transport_kernel_of(*problem_, shape_);
    kernel<<<grid, static_cast<unsigned>(shape_.threads), shape_.shared_bytes(*problem_),
             p.stream.get()>>>(device_problem_, p.device, stage, shape_);
    check_launch("transport");
  }

  /// Launches Schrödinger and Poisson of one stage.
  void field(PointOnDevice& p, int stage) {
    void* arguments[] = {&device_problem_, &p.device, &stage};
    check(cudaLaunchCooperativeKernel(
              reinterpret_cast<const void*>(field_kernel),
              dim3(static_cast<unsigned>(device_problem_.nx * device_problem_.n_families)),
              dim3(static_cast<unsigned>(field_threads_)), arguments,
              field_shared_bytes(device_problem_), p.stream.get()),
          "field");
  }

  /// Returns the buffers of a stage: Φⁿ, Φˢ and the result.
  StageBuffers buffers(PointOnDevice& p, int stage) const {
    const double* const from[3] = {p.pdf.data(), p.stage_a.data(), p.stage_b.data()};
    double* const to[3] = {p.stage_a.data(), p.stage_b.data(), p.pdf.data()};
    const RungeKuttaStage c = runge_kutta_stage(stage);
    return {p.pdf.data(), from[stage], to[stage], c.share_n, c.share_s, c.flux_weight, stage == 0};
  }

  /// Launches one whole time step.
  void one_step(PointOnDevice& p) {
    // Δt is computed beside the first scattering, which does not need it.
    p.fork.record(p.stream.get());
    p.fork.hold(p.side.get());
    time_step_kernel<<<1, 1024, 0, p.side.get()>>>(device_problem_, p.device);
    check_launch("time step");
    p.join.record(p.side.get());
    for (int stage = 0; stage < 3; ++stage) {
      scatter(p);
      if (stage == 0) p.join.hold(p.stream.get());
      transport(p, buffers(p, stage));
      field(p, stage);
    }
    record_kernel<<<static_cast<unsigned>(device_problem_.nx + 1), 256, 0, p.stream.get()>>>(
        device_problem_, p.device, shape_);
    check_launch("current");
    tick(p);
  }

  /// Launches the end of a step, which advances the clock.
  void tick(PointOnDevice& p) {
    clock_kernel<<<1, 32, 0, p.stream.get()>>>(device_problem_, p.device);
    check_launch("clock");
  }

  /// Launches the sheet densities.
  void sheet(PointOnDevice& p) {
    sheet_kernel<<<static_cast<unsigned>(device_problem_.nx), 256, 0, p.stream.get()>>>(
        device_problem_, p.device);
    check_launch("sheet density");
  }

  /// Launches Φ̃ of the whole pdf and the sheet densities.
  void sum_and_sheet(PointOnDevice& p) {
    const auto blocks = static_cast<unsigned>((problem_->rows() * 8 + 255) / 256);
    angle_sum_kernel<<<blocks, 256, 0, p.stream.get()>>>(device_problem_, p.pdf.data(),
                                                         p.angle_sum.data());
    check_launch("angular sums");
    sheet(p);
  }

 private:
  // A thread owns several energies if the rates need only F of their partners.
  bool scatters_in_runs() const {
    return device_problem_.balanced && !device_problem_.pauli &&
           device_problem_.roughness_spectrum == nullptr && device_problem_.nw % kRunNodes == 0;
  }
  std::size_t scattering_bytes(int states_per_block) const {
    return scatters_in_runs() ? scattering_run_shared_bytes(device_problem_, states_per_block)
                              : scattering_shared_bytes(device_problem_, states_per_block);
  }
  ScatteringKernel scattering_kernel() const {
    return scatters_in_runs() ? scattering_run_kernel : scattering_kernel_of(device_problem_);
  }

  // Chooses the fewest states for each block that still give every multiprocessor a block, if
  // shared memory allows it.
  void choose_state_groups() {
    const int states = device_problem_.n_states;
    int limit = 0;
    check(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_.index),
          "device attributes");
    states_per_block_ = 1;
    for (int each = states; each >= 1; --each) {
      if (states % each != 0) continue;
      const bool fits = scattering_bytes(each) <= static_cast<std::size_t>(limit);
      if (fits && device_problem_.nx * (states / each) >= multiprocessors_ * 95 / 100) {
        states_per_block_ = each;
        return;
      }
    }
    if (scattering_bytes(1) > static_cast<std::size_t>(limit))
      throw InvalidInput("mesh.subbands = " + std::to_string(problem_->structure.subbands) +
                         " with mesh.nw = " + std::to_string(problem_->nw) + " needs " +
                         std::to_string(scattering_bytes(1)) +
                         " bytes of shared memory, of which " + device_.model + " has " +
                         std::to_string(limit) + "; lower one of them or use --device cpu");
  }

  // The limit is only raised, because it belongs to the kernel and another mesh may be running on
  // the device.
  template <typename Kernel>
  static void allow(Kernel* kernel, std::size_t bytes, const char* what) {
    cudaFuncAttributes present{};
    check(cudaFuncGetAttributes(&present, kernel), what);
    if (static_cast<std::size_t>(present.maxDynamicSharedSizeBytes) >= bytes) return;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes)),
          what);
  }

  void set_shared_memory_limits() {
    allow(transport_kernel_of(*problem_, shape_), shape_.shared_bytes(*problem_), "transport");
    if (device_problem_.scatters)
      allow(scattering_kernel(), scattering_bytes(states_per_block_), "scattering");
    allow(field_kernel, field_shared_bytes(device_problem_), "field");
    // Smaller blocks are used if there are more columns than whole blocks fit.
    int blocks = 0;
    for (field_threads_ = kFieldThreads; field_threads_ >= 64; field_threads_ /= 2) {
      check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, field_kernel, field_threads_,
                                                          field_shared_bytes(device_problem_)),
            "field");
      if (blocks * multiprocessors_ >= device_problem_.nx * device_problem_.n_families) break;
    }
    if (field_threads_ < 64)
      throw InvalidInput("mesh.nx = " + std::to_string(device_problem_.nx) + " times " +
                         std::to_string(device_problem_.n_families) +
                         " families of valleys exceeds " +
                         std::to_string(blocks * multiprocessors_) + ", the columns that " +
                         device_.model + " holds at once; use fewer nodes or --device cpu");
  }

  const TransportProblem* problem_ = nullptr;
  DeviceProblem device_problem_{};
  Device device_;
  TransportShape shape_{};
  int multiprocessors_ = 0, states_per_block_ = 1, field_threads_ = kFieldThreads;
};

}  // namespace quasi::mosfet::cuda

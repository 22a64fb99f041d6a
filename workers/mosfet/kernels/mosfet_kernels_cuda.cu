#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "workers/mosfet/kernels/electrostatics/field_cuda.cuh"
#include "workers/mosfet/kernels/electrostatics/matrix_refresh.cuh"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/kernels/point_on_device.cuh"
#include "workers/mosfet/kernels/problem_tables.cuh"
#include "workers/mosfet/kernels/scattering/scattering_cuda.cuh"
#include "workers/mosfet/kernels/scattering/scattering_run_cuda.cuh"
#include "workers/mosfet/kernels/transport/step_cuda.cuh"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/kernels/transport/transport_cuda.cuh"
#include "workers/mosfet/physics/runge_kutta.hpp"

namespace quasi::mosfet {
namespace {

using cuda::DevicePoint;
using cuda::DeviceProblem;
using cuda::PointClock;
using cuda::PointOnDevice;
using cuda::StageBuffers;
using cuda::StepGraph;
using cuda::TransportShape;
using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::Event;
using quasi::cuda::EventTiming;
using quasi::cuda::to_host;

class CudaMosfetKernels : public MosfetKernels {
 public:
  // The device is chosen before the members: the handles of the libraries belong to the one that is
  // current.
  explicit CudaMosfetKernels(const Device& device) : device_((use_device(device), device)) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device.index),
          "device attributes");
    multiprocessors_ = value;
  }

  void load(const TransportProblem& problem, int n_points) override {
    if (problem.structure.interior() > cuda::kLargestInterior)
      throw InvalidInput("mesh.nz = " + std::to_string(problem.structure.nz) + " exceeds " +
                         std::to_string(cuda::kLargestInterior + 2) +
                         ", the limit of the CUDA back end; use fewer nodes or --device cpu");
    problem_ = problem;
    points_.clear();
    device_problem_ = tables_.upload(problem_);
    shape_ = cuda::transport_shape(problem_, multiprocessors_);
    if (const int largest = cuda::largest_nphi(problem_.range); problem_.nphi > largest)
      throw InvalidInput("mesh.nphi = " + std::to_string(problem_.nphi) + " exceeds " +
                         std::to_string(largest) +
                         ", the limit of the CUDA back end with this mesh.range; use fewer angles "
                         "or --device cpu");
    choose_state_groups();
    set_shared_memory_limits();
    for (int k = 0; k < n_points; ++k)
      points_.push_back(std::make_unique<PointOnDevice>(problem_, shape_));
    if (!problem_.frozen_field) refresh_.allocate(device_problem_);
  }

  void set_boundary(int point, const PointBoundary& boundary) override {
    PointOnDevice& p = at(point);
    p.boundary = boundary;
    p.inflow_source.copy_from(boundary.inflow_source.data(), boundary.inflow_source.size(),
                              "inflow");
    p.inflow_drain.copy_from(boundary.inflow_drain.data(), boundary.inflow_drain.size(), "inflow");
    p.step.reset();  // Scales are kernel arguments.
    p.device.pdf_scale = boundary.pdf_scale;
    p.device.neutral_source = boundary.neutral[0];
    p.device.neutral_drain = boundary.neutral[1];
    wait(p);
  }

  void set_fixed_potential(int point, const std::vector<double>& fixed_v) override {
    PointOnDevice& p = at(point);
    p.boundary.fixed_v = fixed_v;
    wait(p);
    fixed_v_ = {fixed_v, "given potentials"};
    const auto blocks = static_cast<unsigned>((fixed_v.size() + 255) / 256);
    cuda::fix_potential_kernel<<<blocks, 256, 0, p.stream.get()>>>(device_problem_, fixed_v_.data(),
                                                                   p.device.potential);
    check_launch("given potentials");
    wait(p);
  }

  void set_state(int point, const PointState& state) override {
    PointOnDevice& p = at(point);
    const auto copy = [&](double* to, const std::vector<double>& from, std::size_t count) {
      if (from.empty())
        check(cudaMemset(to, 0, count * sizeof(double)), "state");
      else
        check(cudaMemcpy(to, from.data(), count * sizeof(double), cudaMemcpyHostToDevice), "state");
    };
    const std::size_t nodes = state.potential_v.size();
    copy(p.device.pdf, state.pdf, state.pdf.size());
    copy(p.device.potential, state.potential_v, nodes);
    copy(p.device.trend, state.trend_v, nodes);
    copy(p.device.curvature, state.curvature_v, nodes);
    copy(p.device.energy, state.energy_ev, state.energy_ev.size());
    copy(p.device.lead, state.lead_ev, state.energy_ev.size());
    copy(p.device.psi, state.psi, state.psi.size());
    copy(p.device.current_integral, state.current_integral,
         static_cast<std::size_t>(problem_.structure.nx) + 1);
    PointClock clock{};
    clock.time = state.time_fs;
    clock.last_dt = state.last_dt_fs;
    clock.step = state.step;
    clock.shrink = 1.0;
    p.clock.copy_from(&clock, 1, "clock");  // … and all copies before it
    sum_and_sheet(p);
    wait(p);
  }

  PointState state(int point) override {
    PointOnDevice& p = at(point);
    wait(p);
    const Structure& s = problem_.structure;
    const std::size_t nodes = static_cast<std::size_t>(s.nx) * s.nz;
    const auto levels = static_cast<std::size_t>(problem_.level_count());
    const PointClock clock = to_host(p.clock, "clock")[0];
    PointState out;
    out.pdf = to_host(p.pdf, "pdf");
    out.potential_v = fetch(p.device.potential, nodes);
    out.trend_v = fetch(p.device.trend, nodes);
    out.curvature_v = fetch(p.device.curvature, nodes);
    out.energy_ev = fetch(p.device.energy, levels);
    out.lead_ev = fetch(p.device.lead, levels);
    out.psi = fetch(p.device.psi, levels * s.nz);
    out.current_integral = fetch(p.device.current_integral, static_cast<std::size_t>(s.nx) + 1);
    out.last_dt_fs = clock.last_dt;
    out.time_fs = clock.time;
    out.step = clock.step;
    return out;
  }

  Moments moments(int point) override {
    PointOnDevice& p = at(point);
    wait(p);
    const std::vector<double> pdf = to_host(p.pdf, "pdf");
    return moments_of(problem_, p.boundary.pdf_scale, to_host(p.sheet, "sheet density"), pdf.data(),
                      to_host(p.angle_sum, "angular sums"));
  }

  std::vector<double> potential(int point) override {
    PointOnDevice& p = at(point);
    wait(p);
    return fetch(p.device.potential,
                 static_cast<std::size_t>(problem_.structure.nx) * problem_.structure.nz);
  }

  std::vector<double> take_current_integral(int point) override {
    PointOnDevice& p = at(point);
    wait(p);
    const auto count = static_cast<std::size_t>(problem_.structure.nx) + 1;
    std::vector<double> taken = fetch(p.device.current_integral, count);
    check(cudaMemset(p.device.current_integral, 0, count * sizeof(double)), "current integral");
    quasi::cuda::finish_default_stream("current integral");
    return taken;
  }

  void refresh(int point) override {
    if (problem_.frozen_field) return;
    PointOnDevice& p = at(point);
    // The scratch of a refresh is shared by all points: the last one must be done with it.
    for (const auto& other : points_) wait(*other);
    refresh_.run(device_problem_, p.device, p.inverse.data(), p.stream.get());
  }

  std::vector<Advance> advance(int n, const std::vector<double>& stop_fs, double shrink) override {
    if (n > cuda::kMaxRecords) n = cuda::kMaxRecords;
    for (std::size_t k = 0; k < points_.size(); ++k) {
      PointOnDevice& p = *points_[k];
      wait(p);
      PointClock clock = to_host(p.clock, "clock")[0];
      clock.stop = stop_fs[k];
      clock.shrink = shrink;
      clock.failed = 0;
      clock.active = 1;
      clock.records = 0;
      p.clock.copy_from(&clock, 1, "clock");
      if (stop_fs[k] >= 0.0 && !p.step) {
        p.step = std::make_unique<StepGraph>();
        p.step->capture(p.stream.get(), [&] { one_step(p); });
      }
    }
    for (int step = 0; step < n; ++step)
      for (std::size_t k = 0; k < points_.size(); ++k)
        if (stop_fs[k] >= 0.0) points_[k]->step->launch(points_[k]->stream.get());
    std::vector<Advance> results;
    for (std::size_t k = 0; k < points_.size(); ++k) {
      PointOnDevice& p = *points_[k];
      Advance result;
      if (stop_fs[k] >= 0.0) {
        extremes(p, &result);
        const PointClock clock = to_host(p.clock, "clock")[0];
        result.chord_failed = clock.failed != 0;
        if (problem_.neutral_inflow)
          std::ranges::copy(to_host(p.inflow_scale, "inflow"), result.inflow_scale.begin());
        result.steps.resize(static_cast<std::size_t>(clock.records));
        if (clock.records > 0)
          check(cudaMemcpy(result.steps.data(), p.records.data(),
                           sizeof(StepRecord) * result.steps.size(), cudaMemcpyDeviceToHost),
                "records");
      }
      results.push_back(std::move(result));
    }
    return results;
  }

  void save(int point) override { exchange(point, true); }
  void roll_back(int point) override { exchange(point, false); }

  std::vector<KernelTime> profile(int point, int repeats) override {
    PointOnDevice& p = at(point);
    save(point);
    PointClock clock = to_host(p.clock, "clock")[0];
    clock.active = 1;
    clock.failed = 0;
    clock.records = 0;
    clock.stop = clock.time + 1e3;
    clock.shrink = 1.0;
    clock.dt = clock.last_dt;
    p.clock.copy_from(&clock, 1, "clock");
    const Event begin(EventTiming::kOn), end(EventTiming::kOn);
    std::vector<KernelTime> times;
    const auto measure = [&](const char* name, int calls, const auto& work) {
      std::vector<float> each;
      for (int k = 0; k < repeats; ++k) {
        begin.record(p.stream.get());
        work();
        end.record(p.stream.get());
        end.synchronize(name);
        each.push_back(static_cast<float>(1e3 * end.seconds_since(begin)));
      }
      std::nth_element(each.begin(), each.begin() + repeats / 2, each.end());
      times.push_back({name, each[static_cast<std::size_t>(repeats) / 2], calls});
    };
    measure("time step", 1, [&] {
      cuda::time_step_kernel<<<1, 1024, 0, p.stream.get()>>>(device_problem_, p.device);
    });
    if (device_problem_.scatters) measure("scattering", 3, [&] { scatter(p); });
    measure("transport, stage 1", 1, [&] { transport(p, buffers(p, 0)); });
    measure("transport, stage 2", 2, [&] { transport(p, buffers(p, 1)); });
    measure("field", 3, [&] { field(p, 1); });
    measure("current", 1, [&] {
      cuda::
          record_kernel<<<static_cast<unsigned>(device_problem_.nx + 1), 256, 0, p.stream.get()>>>(
              device_problem_, p.device, shape_);
    });
    if (!problem_.frozen_field) measure("refresh", 0, [&] { refresh(point); });
    check_launch("profile");
    roll_back(point);
    return times;
  }

 private:
  PointOnDevice& at(int point) { return *points_.at(static_cast<std::size_t>(point)); }
  void wait(const PointOnDevice& p) {
    check(cudaStreamSynchronize(p.stream.get()), "steps of a bias point");
  }

  static std::vector<double> fetch(const double* from, std::size_t count) {
    std::vector<double> out(count);
    check(cudaMemcpy(out.data(), from, count * sizeof(double), cudaMemcpyDeviceToHost), "state");
    return out;
  }

  void exchange(int point, bool save) {
    PointOnDevice& p = at(point);
    const auto copy = [&](auto& live, auto& kept) {
      auto* to = save ? kept.data() : live.data();
      const auto* from = save ? live.data() : kept.data();
      check(cudaMemcpyAsync(to, from, live.size() * sizeof(*to), cudaMemcpyDeviceToDevice,
                            p.stream.get()),
            "saved state");
    };
    copy(p.pdf, p.saved_pdf);
    copy(p.angle_sum, p.saved_sum);
    copy(p.fields, p.saved_fields);
    copy(p.clock, p.saved_clock);
    wait(p);
  }

  // A thread owns several energies where no rate needs more of its partner than F.
  bool scatters_in_runs() const {
    return device_problem_.balanced && !device_problem_.pauli &&
           device_problem_.roughness_spectrum == nullptr &&
           device_problem_.nw % cuda::kRunNodes == 0;
  }
  std::size_t scattering_bytes(int states_per_block) const {
    return scatters_in_runs() ? cuda::scattering_run_shared_bytes(device_problem_, states_per_block)
                              : cuda::scattering_shared_bytes(device_problem_, states_per_block);
  }
  cuda::ScatteringKernel scattering_kernel() const {
    return scatters_in_runs() ? cuda::scattering_run_kernel
                              : cuda::scattering_kernel_of(device_problem_);
  }

  // The fewest states a block that still give every multiprocessor a block, if shared memory
  // allows.
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
      throw InvalidInput("mesh.subbands = " + std::to_string(problem_.structure.subbands) +
                         " with mesh.nw = " + std::to_string(problem_.nw) + " needs " +
                         std::to_string(scattering_bytes(1)) +
                         " bytes of shared memory, of which " + device_.model + " has " +
                         std::to_string(limit) + "; lower one of them or use --device cpu");
  }

  // Only ever raised: the limit belongs to the kernel, and another mesh may be running on the same
  // device.
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
    allow(cuda::transport_kernel_of(problem_, shape_), shape_.shared_bytes(problem_), "transport");
    if (device_problem_.scatters)
      allow(scattering_kernel(), scattering_bytes(states_per_block_), "scattering");
    allow(cuda::field_kernel, cuda::field_shared_bytes(device_problem_), "field");
    // Smaller blocks where there are more columns than whole ones fit.
    int blocks = 0;
    for (field_threads_ = cuda::kFieldThreads; field_threads_ >= 64; field_threads_ /= 2) {
      check(
          cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, cuda::field_kernel, field_threads_,
                                                        cuda::field_shared_bytes(device_problem_)),
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

  void scatter(PointOnDevice& p) {
    if (!device_problem_.scatters) return;
    const dim3 grid(static_cast<unsigned>(device_problem_.nx),
                    static_cast<unsigned>(device_problem_.n_states / states_per_block_));
    // Whole rounds of the block over its (state, w) pairs.
    const int items = states_per_block_ * device_problem_.nw, rounds = (items + 767) / 768;
    const int threads = scatters_in_runs()
                            ? cuda::scattering_run_threads(device_problem_, states_per_block_)
                            : ((items + rounds - 1) / rounds + 31) / 32 * 32;
    scattering_kernel()<<<grid, static_cast<unsigned>(threads), scattering_bytes(states_per_block_),
                          p.stream.get()>>>(device_problem_, p.device, states_per_block_);
    check_launch("scattering");
  }

  void neutral_inflow(PointOnDevice& p, const double* pdf_s) {
    if (!problem_.neutral_inflow) return;
    cuda::neutral_inflow_kernel<<<2, 1024, 0, p.stream.get()>>>(device_problem_, p.device, pdf_s);
    check_launch("neutral inflow");
  }

  void transport(PointOnDevice& p, const StageBuffers& stage) {
    neutral_inflow(p, stage.pdf_s);
    const dim3 grid(static_cast<unsigned>(shape_.tiles),
                    static_cast<unsigned>(device_problem_.n_states),
                    static_cast<unsigned>(shape_.segments));
    const cuda::TransportKernel kernel = cuda::transport_kernel_of(problem_, shape_);
    kernel<<<grid, static_cast<unsigned>(shape_.threads), shape_.shared_bytes(problem_),
             p.stream.get()>>>(device_problem_, p.device, stage, shape_);
    check_launch("transport");
  }

  void field(PointOnDevice& p, int stage) {
    void* arguments[] = {&device_problem_, &p.device, &stage};
    check(cudaLaunchCooperativeKernel(
              reinterpret_cast<const void*>(cuda::field_kernel),
              dim3(static_cast<unsigned>(device_problem_.nx * device_problem_.n_families)),
              dim3(static_cast<unsigned>(field_threads_)), arguments,
              cuda::field_shared_bytes(device_problem_), p.stream.get()),
          "field");
  }

  StageBuffers buffers(PointOnDevice& p, int stage) const {
    const double* const from[3] = {p.pdf.data(), p.stage_a.data(), p.stage_b.data()};
    double* const to[3] = {p.stage_a.data(), p.stage_b.data(), p.pdf.data()};
    const RungeKuttaStage c = runge_kutta_stage(stage);
    return {p.pdf.data(), from[stage], to[stage], c.share_n, c.share_s, c.flux_weight, stage == 0};
  }

  void one_step(PointOnDevice& p) {
    // Δt beside the first scattering, which does not need it.
    p.fork.record(p.stream.get());
    p.fork.hold(p.side.get());
    cuda::time_step_kernel<<<1, 1024, 0, p.side.get()>>>(device_problem_, p.device);
    check_launch("time step");
    p.join.record(p.side.get());
    for (int stage = 0; stage < 3; ++stage) {
      scatter(p);
      if (stage == 0) p.join.hold(p.stream.get());
      transport(p, buffers(p, stage));
      field(p, stage);
    }
    cuda::record_kernel<<<static_cast<unsigned>(device_problem_.nx + 1), 256, 0, p.stream.get()>>>(
        device_problem_, p.device, shape_);
    check_launch("current");
    tick(p);
  }

  void tick(PointOnDevice& p) {
    cuda::clock_kernel<<<1, 32, 0, p.stream.get()>>>(device_problem_, p.device);
    check_launch("clock");
  }

  void sheet(PointOnDevice& p) {
    cuda::sheet_kernel<<<static_cast<unsigned>(device_problem_.nx), 256, 0, p.stream.get()>>>(
        device_problem_, p.device);
    check_launch("sheet density");
  }

  void sum_and_sheet(PointOnDevice& p) {
    const auto blocks = static_cast<unsigned>((problem_.rows() * 8 + 255) / 256);
    cuda::angle_sum_kernel<<<blocks, 256, 0, p.stream.get()>>>(device_problem_, p.pdf.data(),
                                                               p.angle_sum.data());
    check_launch("angular sums");
    sheet(p);
  }

  void extremes(PointOnDevice& p, Advance* result) {
    if (extremes_.size() == 0) extremes_ = {6 * kExtremeBlocks, "extremes"};
    cuda::extremes_kernel<<<kExtremeBlocks, 256, 0, p.stream.get()>>>(device_problem_, p.device,
                                                                      extremes_.data());
    check_launch("extremes");
    wait(p);
    const std::vector<double> all = to_host(extremes_, "extremes");
    double top = 0.0, largest = 0.0;
    for (int k = 0; k < kExtremeBlocks; ++k) {
      result->min_pdf = std::min(result->min_pdf, all[k]);
      if (std::isnan(all[k])) result->min_pdf = all[k];
      top = std::max(top, all[kExtremeBlocks + k]);
      largest = std::max(largest, all[2 * kExtremeBlocks + k]);
      result->filling.lowest = std::min(result->filling.lowest, all[3 * kExtremeBlocks + k]);
      result->filling.highest = std::max(result->filling.highest, all[4 * kExtremeBlocks + k]);
      result->filling.outside += all[5 * kExtremeBlocks + k];
    }
    result->top_share = largest > 0.0 ? top / largest : 0.0;
  }

  static constexpr int kExtremeBlocks = 264;
  Device device_;
  int multiprocessors_ = 0, states_per_block_ = 1, field_threads_ = cuda::kFieldThreads;
  TransportProblem problem_;
  DeviceProblem device_problem_{};
  TransportShape shape_{};
  cuda::ProblemTables tables_;
  cuda::MatrixRefresh refresh_;
  DeviceBuffer<double> extremes_, fixed_v_;
  std::vector<std::unique_ptr<PointOnDevice>> points_;
};

}  // namespace

std::unique_ptr<MosfetKernels> make_mosfet_kernels_cuda(const Device& device) {
  return std::make_unique<CudaMosfetKernels>(device);
}

}  // namespace quasi::mosfet

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "workers/mosfet/kernels/electrostatics/matrix_refresh.cuh"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/kernels/point_on_device.cuh"
#include "workers/mosfet/kernels/problem_tables.cuh"
#include "workers/mosfet/kernels/step_launcher.cuh"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"

namespace quasi::mosfet {
namespace {

using cuda::DevicePoint;
using cuda::DeviceProblem;
using cuda::PointClock;
using cuda::PointOnDevice;
using cuda::StepGraph;
using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::Event;
using quasi::cuda::EventTiming;
using quasi::cuda::to_host;

class CudaMosfetKernels : public MosfetKernels {
 public:
  // The device is chosen before the members, because library handles belong to the current device.
  explicit CudaMosfetKernels(const Device& device) : device_((use_device(device), device)) {}

  void load(const TransportProblem& problem, int n_points) override {
    if (problem.structure.interior() > cuda::kLargestInterior)
      throw InvalidInput("mesh.nz = " + std::to_string(problem.structure.nz) + " exceeds " +
                         std::to_string(cuda::kLargestInterior + 2) +
                         ", the limit of the CUDA back end; use fewer nodes or --device cpu");
    problem_ = problem;
    points_.clear();
    device_problem_ = tables_.upload(problem_);
    if (const int largest = cuda::largest_nphi(problem_.range); problem_.nphi > largest)
      throw InvalidInput("mesh.nphi = " + std::to_string(problem_.nphi) + " exceeds " +
                         std::to_string(largest) +
                         ", the limit of the CUDA back end with this mesh.range; use fewer angles "
                         "or --device cpu");
    steps_.prepare(problem_, device_problem_, device_);
    for (int k = 0; k < n_points; ++k)
      points_.push_back(std::make_unique<PointOnDevice>(problem_, steps_.shape()));
    if (!problem_.frozen_field) refresh_.allocate(device_problem_);
  }

  void set_boundary(int point, const PointBoundary& boundary) override {
    PointOnDevice& p = at(point);
    p.boundary = boundary;
    p.inflow_source.copy_from(boundary.inflow_source.data(), boundary.inflow_source.size(),
                              "inflow");
    p.inflow_drain.copy_from(boundary.inflow_drain.data(), boundary.inflow_drain.size(), "inflow");
    p.step.reset();  // scales are kernel arguments, so the graph is captured again
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
    p.clock.copy_from(&clock, 1, "clock");  // waits for all earlier copies too
    steps_.sum_and_sheet(p);
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
    // All points share the scratch memory of a refresh, so the previous refresh must be finished.
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
        p.step->capture(p.stream.get(), [&] { steps_.one_step(p); });
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
    if (device_problem_.scatters) measure("scattering", 3, [&] { steps_.scatter(p); });
    measure("transport, stage 1", 1, [&] { steps_.transport(p, steps_.buffers(p, 0)); });
    measure("transport, stage 2", 2, [&] { steps_.transport(p, steps_.buffers(p, 1)); });
    measure("field", 3, [&] { steps_.field(p, 1); });
    measure("current", 1, [&] {
      cuda::
          record_kernel<<<static_cast<unsigned>(device_problem_.nx + 1), 256, 0, p.stream.get()>>>(
              device_problem_, p.device, steps_.shape());
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
  TransportProblem problem_;
  DeviceProblem device_problem_{};
  cuda::StepLauncher steps_;
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

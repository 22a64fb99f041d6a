#pragma once

#include <memory>

#include "workers/mosfet/kernels/electrostatics/iteration_cpu.hpp"
#include "workers/mosfet/kernels/point_on_device.cuh"

namespace quasi::mosfet::cuda {

/// The published division of labour, for comparison: transport and scattering on the device,
/// Schrödinger and Poisson on the host's cores after every stage. ϱ comes over, V, ε and ψ go back;
/// meanwhile the device forms the next stage's x flux, which needs neither.
class SplitField {
 public:
  explicit SplitField(const TransportProblem& problem) : problem_(problem), iteration_(problem_) {}

  void refresh(const PointOnDevice& p) {
    fetch(p);
    iteration_.refresh(p.boundary, state_, sheet_);
  }

  /// Before the stages of a step, after its Δt is on the device.
  void begin(const PointOnDevice& p) {
    fetch(p);
    clock_ = quasi::cuda::to_host(p.clock, "clock")[0];
    state_.last_dt_fs = clock_.last_dt;
    step_ = std::make_unique<FieldStep>(iteration_, p.boundary, clock_.dt, &state_);
  }
  bool active() const { return clock_.active != 0; }

  /// After the ϱ of a stage is on the device.
  void solve(const PointOnDevice& p, int stage) {
    copy_back(sheet_.data(), p.device.sheet, sheet_.size(), cudaMemcpyDeviceToHost);
    const IterationReport report = step_->solve(stage, sheet_);
    clock_.chord_iterations += report.iterations;
    clock_.residual = report.residual;
    if (!report.converged) clock_.failed = 1;
    if (stage == 2) step_->keep_trend();
    put(p, state_.potential_v, p.device.potential);
    put(p, state_.energy_ev, p.device.energy);
    put(p, state_.psi, p.device.psi);
    if (stage < 2) return quasi::cuda::finish_default_stream("field of the split");
    put(p, state_.trend_v, p.device.trend);
    put(p, state_.curvature_v, p.device.curvature);
    put(p, state_.lead_ev, p.device.lead);
    copy_back(p.clock.data(), &clock_, 1, cudaMemcpyHostToDevice);
    quasi::cuda::finish_default_stream("field of the split");
  }

 private:
  template <typename T>
  static void copy_back(T* to, const T* from, std::size_t count, cudaMemcpyKind kind) {
    quasi::cuda::check(cudaMemcpy(to, from, count * sizeof(T), kind), "field of the split");
  }
  static void put(const PointOnDevice&, const std::vector<double>& from, double* to) {
    copy_back(to, from.data(), from.size(), cudaMemcpyHostToDevice);
  }
  void fetch(const PointOnDevice& p) {
    const Structure& s = problem_.structure;
    const std::size_t nodes = static_cast<std::size_t>(s.nx) * s.nz;
    const auto levels = static_cast<std::size_t>(problem_.level_count());
    const auto get = [](std::vector<double>* to, const double* from, std::size_t count) {
      to->resize(count);
      copy_back(to->data(), from, count, cudaMemcpyDeviceToHost);
    };
    quasi::cuda::check(cudaStreamSynchronize(p.stream.get()), "field of the split");
    get(&state_.potential_v, p.device.potential, nodes);
    get(&state_.trend_v, p.device.trend, nodes);
    get(&state_.curvature_v, p.device.curvature, nodes);
    get(&state_.energy_ev, p.device.energy, levels);
    get(&state_.psi, p.device.psi, levels * s.nz);
    get(&sheet_, p.device.sheet, static_cast<std::size_t>(problem_.n_states()) * s.nx);
  }

  const TransportProblem problem_;
  FieldIteration iteration_;
  PointState state_;
  PointClock clock_{};
  std::vector<double> sheet_;
  std::unique_ptr<FieldStep> step_;
};

}  // namespace quasi::mosfet::cuda

#include <algorithm>
#include <cmath>
#include <memory>

#include "workers/backend/error.hpp"
#include "workers/backend/stopwatch.hpp"
#include "workers/mosfet/kernels/electrostatics/iteration_cpu.hpp"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/physics/runge_kutta.hpp"

namespace quasi::mosfet {
namespace {

constexpr double kTimeResolution_fs = 1e-9;

struct Point {
  PointBoundary boundary;
  PointState state;
  std::vector<double> angle_sum;  ///< Φ̃ of state.pdf
  std::vector<double> sheet_nm2;
};

class CpuMosfetKernels : public MosfetKernels {
 public:
  explicit CpuMosfetKernels(std::shared_ptr<const NewtonMethod> newton)
      : newton_(std::move(newton)) {}

  void load(const TransportProblem& problem, int n_points) override {
    problem_ = problem;
    points_.assign(static_cast<std::size_t>(n_points), Point{});
    iterations_.clear();
    for (int k = 0; k < n_points; ++k)
      iterations_.push_back(std::make_unique<FieldIteration>(problem_, newton_));
    const auto rows = static_cast<std::size_t>(problem_.rows());
    const auto size = static_cast<std::size_t>(problem_.pdf_size());
    stage_a_.resize(size);
    stage_b_.resize(size);
    gain_.assign(rows, 0.0);
    loss_.assign(rows, 0.0);
    flux_sum_.resize(static_cast<std::size_t>(problem_.n_states()) * (problem_.structure.nx + 1) *
                     problem_.nw);
    slope_.resize(static_cast<std::size_t>(problem_.level_count()));
    const std::size_t levels =
        static_cast<std::size_t>(problem_.structure.n_families()) * problem_.structure.subbands;
    overlap_.resize(levels * levels * problem_.structure.nx);
    roughness_.resize(problem_.roughness_spectrum.empty() ? 0 : overlap_.size());
  }

  void set_boundary(int point, const PointBoundary& boundary) override {
    at(point).boundary = boundary;
  }

  void set_fixed_potential(int point, const std::vector<double>& fixed_v) override {
    Point& p = at(point);
    p.boundary.fixed_v = fixed_v;
    for (std::size_t k = 0; k < fixed_v.size(); ++k)
      if (problem_.fixed[k]) p.state.potential_v[k] = fixed_v[k];
  }

  void set_state(int point, const PointState& state) override {
    Point& p = at(point);
    p.state = state;
    if (p.state.trend_v.empty()) p.state.trend_v.assign(state.potential_v.size(), 0.0);
    if (p.state.curvature_v.empty()) p.state.curvature_v.assign(state.potential_v.size(), 0.0);
    if (p.state.lead_ev.empty()) p.state.lead_ev.assign(state.energy_ev.size(), 0.0);
    if (p.state.current_integral.empty())
      p.state.current_integral.assign(static_cast<std::size_t>(problem_.structure.nx) + 1, 0.0);
    p.angle_sum.resize(static_cast<std::size_t>(problem_.rows()));
    sum_angles(problem_, p.state.pdf.data(), p.angle_sum.data());
    p.sheet_nm2 = sheet(p);
  }

  PointState state(int point) override { return at(point).state; }

  Moments moments(int point) override {
    const Point& p = at(point);
    return moments_of(problem_, p.boundary.pdf_scale, p.sheet_nm2, p.state.pdf.data(), p.angle_sum);
  }

  std::vector<double> potential(int point) override { return at(point).state.potential_v; }

  std::vector<double> take_current_integral(int point) override {
    std::vector<double>& integral = at(point).state.current_integral;
    std::vector<double> taken(integral.size(), 0.0);
    taken.swap(integral);
    return taken;
  }

  void refresh(int point) override {
    if (problem_.frozen_field) return;
    const Point& p = at(point);
    iterations_[static_cast<std::size_t>(point)]->refresh(p.boundary, p.state, p.sheet_nm2);
  }

  std::vector<Advance> advance(int n, const std::vector<double>& stop_fs, double shrink) override {
    std::vector<Advance> results;
    for (std::size_t k = 0; k < points_.size(); ++k) {
      Advance result;
      if (stop_fs[k] < 0.0) {  // idle, perhaps without a state
        results.push_back(result);
        continue;
      }
      for (int step = 0; step < n && !result.chord_failed; ++step) {
        if (points_[k].state.time_fs > stop_fs[k] - kTimeResolution_fs) break;
        one_step(points_[k], *iterations_[k], stop_fs[k], shrink, &result);
      }
      diagnose(points_[k], &result);
      results.push_back(std::move(result));
    }
    return results;
  }

  void save(int point) override {
    saved_.resize(points_.size());
    saved_[static_cast<std::size_t>(point)] = at(point);
  }
  void roll_back(int point) override { at(point) = saved_.at(static_cast<std::size_t>(point)); }

  std::vector<KernelTime> profile(int point, int repeats) override {
    Point& p = at(point);
    const Point kept = p;
    std::vector<KernelTime> times;
    const auto measure = [&](const char* name, int calls, const auto& work) {
      std::vector<double> each;
      for (int k = 0; k < repeats; ++k) {
        const Stopwatch clock;
        work();
        each.push_back(1e3 * clock.seconds());
      }
      std::nth_element(each.begin(), each.begin() + repeats / 2, each.end());
      times.push_back({name, each[static_cast<std::size_t>(repeats) / 2], calls});
    };
    energy_slopes(problem_, p.state.energy_ev.data(), p.state.lead_ev.data(), slope_.data());
    const RungeKuttaStage second = runge_kutta_stage(1);
    if (problem_.scheme != ScatteringScheme::kNone) measure("scattering", 3, [&] { scatter(p); });
    measure("transport", 3, [&] {
      transport_stage(
          problem_,
          {.pdf_n = p.state.pdf.data(),
           .pdf_s = p.state.pdf.data(),
           .slope_ev_nm = slope_.data(),
           .gain = gain_.data(),
           .loss = loss_.data(),
           .inflow_source = p.boundary.inflow_source.data(),
           .inflow_drain = p.boundary.inflow_drain.data(),
           .share_n = second.share_n,
           .share_s = second.share_s,
           .dt_fs = 1e-3},
          {.pdf = stage_a_.data(), .angle_sum = p.angle_sum.data(), .flux_sum = flux_sum_.data()});
    });
    if (!problem_.frozen_field) {
      measure("field", 3, [&] {
        iterations_[static_cast<std::size_t>(point)]->solve(
            p.boundary, p.sheet_nm2, &p.state.potential_v, &p.state.energy_ev, &p.state.psi);
      });
      measure("refresh", 0, [&] { refresh(point); });
    }
    p = kept;
    return times;
  }

 private:
  Point& at(int point) { return points_.at(static_cast<std::size_t>(point)); }

  std::vector<double> sheet(const Point& p) const {
    const auto cells = static_cast<std::int64_t>(problem_.n_states()) * problem_.structure.nx;
    std::vector<double> out(static_cast<std::size_t>(cells));
    for (std::int64_t cell = 0; cell < cells; ++cell) {
      double sum = 0.0;
      for (int l = 0; l < problem_.nw; ++l)
        sum += p.angle_sum[static_cast<std::size_t>(cell * problem_.nw + l)];
      out[static_cast<std::size_t>(cell)] = sum * problem_.dw_ev * p.boundary.pdf_scale;
    }
    return out;
  }

  void scatter(const Point& p) {
    overlaps(problem_, p.state.psi.data(), overlap_.data());
    LevelCoupling levels{p.state.energy_ev.data(), overlap_.data()};
    if (!problem_.roughness_spectrum.empty()) {
      roughness_strengths(problem_, p.state.psi.data(), roughness_.data());
      levels.roughness = roughness_.data();
    }
    scattering_rates(problem_, levels, p.boundary.pdf_scale, p.angle_sum.data(), gain_.data(),
                     loss_.data());
  }

  void one_step(Point& p, const FieldIteration& iteration, double stop_fs, double shrink,
                Advance* result) {
    const Structure& s = problem_.structure;
    energy_slopes(problem_, p.state.energy_ev.data(), p.state.lead_ev.data(), slope_.data());
    double dt = problem_.cfl * shrink / largest_rate(problem_, slope_.data());
    dt = std::min(dt, stop_fs - p.state.time_fs);
    StepRecord record{.dt_fs = dt};
    std::vector<double> current(static_cast<std::size_t>(s.nx) + 1, 0.0);
    FieldStep field(iteration, p.boundary, dt, &p.state);

    const double* from = p.state.pdf.data();
    for (int stage = 0; stage < 3; ++stage) {
      if (stage > 0)
        energy_slopes(problem_, p.state.energy_ev.data(), p.state.lead_ev.data(), slope_.data());
      if (problem_.scheme != ScatteringScheme::kNone) scatter(p);
      const RungeKuttaStage c = runge_kutta_stage(stage);
      // The last stage overwrites Φⁿ, because each row then reads only its own values of it.
      double* to = stage == 0 ? stage_a_.data() : stage == 1 ? stage_b_.data() : p.state.pdf.data();
      if (problem_.neutral_inflow)
        result->inflow_scale = neutral_inflow(problem_, p.boundary, from);
      transport_stage(problem_,
                      {.pdf_n = p.state.pdf.data(),
                       .pdf_s = from,
                       .slope_ev_nm = slope_.data(),
                       .gain = gain_.data(),
                       .loss = loss_.data(),
                       .inflow_source = p.boundary.inflow_source.data(),
                       .inflow_drain = p.boundary.inflow_drain.data(),
                       .inflow_scale = result->inflow_scale,
                       .share_n = c.share_n,
                       .share_s = c.share_s,
                       .dt_fs = dt},
                      {.pdf = to, .angle_sum = p.angle_sum.data(), .flux_sum = flux_sum_.data()});
      from = to;
      add_current(p, c.flux_weight, &current);
      p.sheet_nm2 = sheet(p);
      if (problem_.frozen_field) continue;

      const IterationReport report = field.solve(stage, p.sheet_nm2);
      record.chord_iterations += report.iterations;
      record.residual = report.residual;
      if (!report.converged) result->chord_failed = true;
    }
    if (!problem_.frozen_field) field.keep_trend();
    p.state.last_dt_fs = dt;
    p.state.time_fs += dt;
    ++p.state.step;
    record.time_fs = p.state.time_fs;
    record.current_source = current.front();
    record.current_mid = current[static_cast<std::size_t>(s.nx) / 2];
    record.current_drain = current.back();
    for (const double rho : p.sheet_nm2) record.charge_nm += 2.0 * rho * s.dx_nm;
    for (std::size_t k = 0; k < current.size(); ++k) p.state.current_integral[k] += dt * current[k];
    result->steps.push_back(record);
  }

  // Adds I(x_{i+½}) = 2 Σ_{νp} Σ_w Δw Σ_φ F^x, from the fluxes that moved the electrons.
  void add_current(const Point& p, double weight, std::vector<double>* current) const {
    const int half_nodes = problem_.structure.nx + 1;
    for (int i = 0; i < half_nodes; ++i) {
      double sum = 0.0;
      for (int state = 0; state < problem_.n_states(); ++state) {
        const double* row =
            &flux_sum_[(static_cast<std::size_t>(state) * half_nodes + i) * problem_.nw];
        for (int l = 0; l < problem_.nw; ++l) sum += row[l];
      }
      (*current)[static_cast<std::size_t>(i)] +=
          weight * 2.0 * problem_.dw_ev * p.boundary.pdf_scale * sum;
    }
  }

  void diagnose(const Point& p, Advance* result) const {
    double smallest = 0.0, top = 0.0, largest = 0.0;
    for (const double value : p.state.pdf)
      if (!(value >= smallest)) smallest = value;  // keeps a NaN
    for (std::int64_t row = 0; row < problem_.rows(); ++row) {
      largest = std::max(largest, p.angle_sum[static_cast<std::size_t>(row)]);
      if (row % problem_.nw == problem_.nw - 1)
        top = std::max(top, p.angle_sum[static_cast<std::size_t>(row)]);
    }
    result->min_pdf = smallest;
    result->top_share = largest > 0.0 ? top / largest : 0.0;
    if (problem_.pauli)
      result->filling = filling_of(problem_, p.boundary.pdf_scale, p.angle_sum.data());
  }

  std::shared_ptr<const NewtonMethod> newton_;
  TransportProblem problem_;
  std::vector<Point> points_, saved_;
  std::vector<std::unique_ptr<FieldIteration>> iterations_;
  std::vector<double> stage_a_, stage_b_, gain_, loss_, flux_sum_, slope_, overlap_, roughness_;
};

}  // namespace

std::unique_ptr<MosfetKernels> make_mosfet_kernels_cpu(std::shared_ptr<const NewtonMethod> newton) {
  return std::make_unique<CpuMosfetKernels>(std::move(newton));
}

std::unique_ptr<MosfetKernels> make_mosfet_kernels(const Device& device) {
  switch (device.backend) {
    case Backend::kCpu:
      return make_mosfet_kernels_cpu();
    case Backend::kCuda:
      return make_mosfet_kernels_cuda(device);
  }
  throw BackendAbsent("unknown backend");
}

}  // namespace quasi::mosfet

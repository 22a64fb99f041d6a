#include <cublas_v2.h>
#include <cusolverDn.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "workers/mosfet/kernels/cuda_libraries.cuh"
#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/kernels/field_cuda.cuh"
#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/kernels/refresh_cuda.cuh"
#include "workers/mosfet/kernels/scattering_cuda.cuh"
#include "workers/mosfet/kernels/transport_cuda.cuh"

namespace quasi::mosfet {
namespace {

using cuda::DevicePoint;
using cuda::DeviceProblem;
using cuda::LinearAlgebra;
using cuda::PointClock;
using cuda::StageBuffers;
using cuda::StepGraph;
using cuda::Stream;
using cuda::TransportShape;
using quasi::cuda::check;
using quasi::cuda::check_launch;
using quasi::cuda::DeviceBuffer;
using quasi::cuda::to_host;

constexpr int kMaxRecords = 4096;
constexpr int kLargestInterior = 511;
constexpr struct { double share_n, share_s, flux_weight; } kStages[3] = {
    {0.0, 1.0, 1.0 / 6.0}, {0.75, 0.25, 1.0 / 6.0}, {1.0 / 3.0, 2.0 / 3.0, 2.0 / 3.0}};

/// Everything of one bias point on the device, its stream and the graph of its step. Points advance on
/// streams of their own, so that the latency of one point's field iteration hides behind another's
/// transport.
class PointOnDevice {
 public:
  PointOnDevice(const TransportProblem& problem, const TransportShape& shape) {
    const Structure& s = problem.structure;
    const auto rows = static_cast<std::size_t>(problem.rows()), size = static_cast<std::size_t>(problem.pdf_size());
    const auto nodes = static_cast<std::size_t>(s.nx) * s.nz, levels = static_cast<std::size_t>(problem.level_count());
    const auto states = static_cast<std::size_t>(problem.n_states());
    pdf = {size, "pdf"};
    stage_a = {size, "pdf of stage 1"};
    stage_b = {size, "pdf of stage 2"};
    saved_pdf = {size, "saved pdf"};
    angle_sum = {rows, "angular sums"};
    saved_sum = {rows, "saved angular sums"};
    gain = {rows, "scattering gain"};
    loss = {rows, "scattering loss"};
    current_partial = {states * shape.tiles * (s.nx + 1) * shape.warps(), "partial currents"};
    current = {static_cast<std::size_t>(s.nx) + 1, "current"};
    // One block of doubles for all that a roll-back restores beside the pdf.
    const std::size_t sizes[] = {nodes, nodes, nodes, levels, levels * s.nz, static_cast<std::size_t>(s.nx) + 1};
    std::size_t total = 0;
    for (const std::size_t one : sizes) total += one;
    fields = {total, "fields"};
    saved_fields = {total, "saved fields"};
    fields.zero("fields");
    v_n = {nodes, "potential"};
    v_1 = {nodes, "potential of stage 1"};
    v_2 = {nodes, "potential of stage 2"};
    sheet = {states * s.nx, "sheet density"};
    family_density = {static_cast<std::size_t>(s.n_families()) * nodes, "density"};
    family_density.zero("density");
    block_max = {2 * static_cast<std::size_t>(s.nx) * s.n_families() + nodes, "field step"};
    inverse = {nodes * ((nodes + 3) / 4 * 4), "inverse of the Newton matrix"};
    inflow_source = {states * problem.nw, "inflow"};
    inflow_drain = {states * problem.nw, "inflow"};
    clock = {1, "clock"};
    saved_clock = {1, "saved clock"};
    records = {kMaxRecords, "records"};

    device.pdf = pdf.data();
    device.stage_a = stage_a.data();
    device.stage_b = stage_b.data();
    device.angle_sum = angle_sum.data();
    device.gain = gain.data();
    device.loss = loss.data();
    device.current_partial = current_partial.data();
    device.current = current.data();
    double* at = fields.data();
    double** const places[] = {&device.potential, &device.trend, &device.curvature, &device.energy, &device.psi,
                               &device.current_integral};
    for (int k = 0; k < 6; ++k) {
      *places[k] = at;
      at += sizes[k];
    }
    device.v_n = v_n.data();
    device.v_1 = v_1.data();
    device.v_2 = v_2.data();
    device.sheet = sheet.data();
    device.family_density = family_density.data();
    device.block_max = block_max.data();
    device.inverse = inverse.data();
    device.inflow_source = inflow_source.data();
    device.inflow_drain = inflow_drain.data();
    device.clock = clock.data();
    device.records = records.data();
  }

  Stream stream;
  std::unique_ptr<StepGraph> step;  ///< captured when first needed: Φ* is a kernel argument
  DevicePoint device{};
  PointBoundary boundary;
  DeviceBuffer<double> pdf, stage_a, stage_b, saved_pdf, angle_sum, saved_sum, gain, loss, current_partial, current,
      fields, saved_fields, v_n, v_1, v_2, sheet, family_density, block_max, inflow_source, inflow_drain;
  DeviceBuffer<float> inverse;
  DeviceBuffer<PointClock> clock, saved_clock;
  DeviceBuffer<StepRecord> records;
};

class CudaMosfetKernels : public MosfetKernels {
 public:
  explicit CudaMosfetKernels(const Device& device) : device_(device) {
    use_device(device);
    int value = 0;
    check(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device.index), "device attributes");
    multiprocessors_ = value;
  }

  void load(const TransportProblem& problem, int n_points) override {
    if (problem.structure.interior() > kLargestInterior)
      throw InvalidInput("mesh.nz = " + std::to_string(problem.structure.nz) + " exceeds " +
                         std::to_string(kLargestInterior + 2) + ", the limit of the CUDA back end");
    problem_ = problem;
    points_.clear();
    upload_problem();
    shape_ = cuda::transport_shape(problem_, multiprocessors_);
    if (shape_.threads > (problem_.range == AngleRange::kFull ? cuda::kFullThreads : cuda::kHalfThreads))
      throw InvalidInput("mesh.nphi = " + std::to_string(problem_.nphi) + " is too fine for the CUDA back end; use at most " +
                         (problem_.range == AngleRange::kFull ? "84" : "112"));
    choose_state_groups();
    set_shared_memory_limits();
    for (int k = 0; k < n_points; ++k) points_.push_back(std::make_unique<PointOnDevice>(problem_, shape_));
    if (!problem_.frozen_field) allocate_refresh();
  }

  void set_boundary(int point, const PointBoundary& boundary) override {
    PointOnDevice& p = at(point);
    p.boundary = boundary;
    p.inflow_source.copy_from(boundary.inflow_source.data(), boundary.inflow_source.size(), "inflow");
    p.inflow_drain.copy_from(boundary.inflow_drain.data(), boundary.inflow_drain.size(), "inflow");
    if (p.device.pdf_scale != boundary.pdf_scale) p.step.reset();
    p.device.pdf_scale = boundary.pdf_scale;
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
    copy(p.device.psi, state.psi, state.psi.size());
    copy(p.device.current_integral, state.current_integral, static_cast<std::size_t>(problem_.structure.nx) + 1);
    PointClock clock{};
    clock.time = state.time_fs;
    clock.last_dt = state.last_dt_fs;
    clock.step = state.step;
    clock.shrink = 1.0;
    p.clock.copy_from(&clock, 1, "clock");
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
    const Structure& s = problem_.structure;
    const auto cells = static_cast<std::size_t>(problem_.n_states()) * s.nx;
    Moments out{to_host(p.sheet, "sheet density"), std::vector<double>(cells), std::vector<double>(cells),
                to_host(p.angle_sum, "angular sums")};
    const std::vector<double> pdf = to_host(p.pdf, "pdf");
    for (std::size_t cell = 0; cell < cells; ++cell) {
      const std::size_t valley = cell / static_cast<std::size_t>(s.nx) / s.subbands;
      double flux = 0.0, energy = 0.0;
      for (int l = 0; l < problem_.nw; ++l) {
        double along = 0.0;
        const double* row = &pdf[(cell * problem_.nw + l) * problem_.angles];
        for (int m = 0; m < problem_.angles; ++m) along += problem_.weight[m] * problem_.cos_phi[m] * row[m];
        flux += problem_.speed_nm_fs[valley * problem_.nw + l] * along;
        energy += problem_.grid().w(l) * out.pdf_w[cell * problem_.nw + l];
      }
      out.flux_nm_fs[cell] = flux * problem_.dw_ev * p.boundary.pdf_scale;
      out.energy_ev_nm2[cell] = energy * problem_.dw_ev * p.boundary.pdf_scale;
    }
    for (double& value : out.pdf_w) value *= p.boundary.pdf_scale;
    return out;
  }

  std::vector<double> potential(int point) override {
    PointOnDevice& p = at(point);
    wait(p);
    return fetch(p.device.potential, static_cast<std::size_t>(problem_.structure.nx) * problem_.structure.nz);
  }

  std::vector<double> take_current_integral(int point) override {
    PointOnDevice& p = at(point);
    wait(p);
    const auto count = static_cast<std::size_t>(problem_.structure.nx) + 1;
    std::vector<double> taken = fetch(p.device.current_integral, count);
    check(cudaMemset(p.device.current_integral, 0, count * sizeof(double)), "current integral");
    return taken;
  }

  void refresh(int point) override {
    if (problem_.frozen_field) return;
    PointOnDevice& p = at(point);
    const cudaStream_t stream = p.stream.get();
    // The scratch of a refresh is shared by all points: the last one must be done with it.
    for (const auto& other : points_) wait(*other);
    const int n = device_problem_.interior, nx = device_problem_.nx, nf = device_problem_.n_families;
    const int pairs = nf * nx * n, rank = device_problem_.n_levels * n, nodes = nx * device_problem_.nz;
    if (n <= 63)
      cuda::all_states_kernel<63><<<(pairs + 63) / 64, 64, 0, stream>>>(device_problem_, p.device.potential, energies_.data(), vectors_.data());
    else if (n <= 127)
      cuda::all_states_kernel<127><<<(pairs + 63) / 64, 64, 0, stream>>>(device_problem_, p.device.potential, energies_.data(), vectors_.data());
    else
      cuda::all_states_kernel<kLargestInterior><<<(pairs + 63) / 64, 64, 0, stream>>>(device_problem_, p.device.potential, energies_.data(), vectors_.data());
    check_launch("all states");
    cuda::pair_products_kernel<<<dim3(rank, nx), 64, 0, stream>>>(device_problem_, p.device, energies_.data(),
                                                                 vectors_.data(), products_.data(), weighted_.data());
    check_launch("pair products");
    libraries_.use(stream);
    const double one = 1.0, zero = 0.0;
    // Row-major [rank][n] is column-major n × rank: A = weighted · productsᵀ.
    cuda::check_blas(cublasDgemmStridedBatched(libraries_.blas(), CUBLAS_OP_N, CUBLAS_OP_T, n, n, rank, &one,
                                               weighted_.data(), n, static_cast<long long>(rank) * n, products_.data(),
                                               n, static_cast<long long>(rank) * n, &zero, responses_.data(), n,
                                               static_cast<long long>(n) * n, nx),
                     "density response");
    cuda::assemble_kernel<<<nodes, 256, 0, stream>>>(device_problem_, responses_.data(), matrix_.data());
    check_launch("Newton matrix");
    const auto lower = CUBLAS_FILL_MODE_LOWER;
    cuda::check_solver(cusolverDnDpotrf(libraries_.solver(), lower, nodes, matrix_.data(), nodes, workspace_.data(),
                                        static_cast<int>(workspace_.size()), info_.data()), "Cholesky factor");
    cuda::check_solver(cusolverDnDpotri(libraries_.solver(), lower, nodes, matrix_.data(), nodes, workspace_.data(),
                                        static_cast<int>(workspace_.size()), info_.data() + 1), "inverse");
    cuda::narrow_inverse_kernel<<<nodes, 256, 0, stream>>>(nodes, matrix_.data(), p.inverse.data());
    check_launch("inverse");
  }

  std::vector<Advance> advance(int n, const std::vector<double>& stop_fs, double shrink) override {
    if (n > kMaxRecords) n = kMaxRecords;
    for (std::size_t k = 0; k < points_.size(); ++k) {
      PointOnDevice& p = *points_[k];
      wait(p);
      PointClock clock = to_host(p.clock, "clock")[0];
      clock.stop = stop_fs[k];
      clock.shrink = shrink;
      clock.failed = 0;
      clock.records = 0;
      p.clock.copy_from(&clock, 1, "clock");
      check(cudaStreamSynchronize(nullptr), "clock");
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
        result.steps.resize(static_cast<std::size_t>(clock.records));
        if (clock.records > 0)
          check(cudaMemcpy(result.steps.data(), p.records.data(), sizeof(StepRecord) * result.steps.size(),
                           cudaMemcpyDeviceToHost), "records");
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
    check(cudaStreamSynchronize(nullptr), "clock");
    cudaEvent_t begin = nullptr, end = nullptr;
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    std::vector<KernelTime> times;
    const auto measure = [&](const char* name, int calls, const auto& work) {
      std::vector<float> each;
      for (int k = 0; k < repeats; ++k) {
        check(cudaEventRecord(begin, p.stream.get()), "event");
        work();
        check(cudaEventRecord(end, p.stream.get()), "event");
        check(cudaEventSynchronize(end), name);
        float one = 0.0f;
        check(cudaEventElapsedTime(&one, begin, end), "event");
        each.push_back(one);
      }
      std::nth_element(each.begin(), each.begin() + repeats / 2, each.end());
      times.push_back({name, each[static_cast<std::size_t>(repeats) / 2], calls});
    };
    measure("time step", 1, [&] { cuda::time_step_kernel<<<1, 1024, 0, p.stream.get()>>>(device_problem_, p.device); });
    if (device_problem_.scatters) measure("scattering", 3, [&] { scatter(p); });
    measure("transport, stage 1", 1, [&] { transport(p, {p.pdf.data(), p.pdf.data(), p.stage_a.data(), 0.0, 1.0, 1.0, true}); });
    measure("transport, stage 2", 2, [&] { transport(p, {p.pdf.data(), p.stage_a.data(), p.stage_b.data(), 0.75, 0.25, 0.0, false}); });
    measure("field", 3, [&] { field(p, 1); });
    measure("current", 1, [&] {
      cuda::record_kernel<<<static_cast<unsigned>(device_problem_.nx + 1), 256, 0, p.stream.get()>>>(device_problem_, p.device, shape_);
    });
    if (!problem_.frozen_field) measure("refresh", 0, [&] { refresh(point); });
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    check_launch("profile");
    roll_back(point);
    return times;
  }

 private:
  PointOnDevice& at(int point) { return *points_.at(static_cast<std::size_t>(point)); }
  void wait(const PointOnDevice& p) { check(cudaStreamSynchronize(p.stream.get()), "steps of a bias point"); }

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
      check(cudaMemcpyAsync(to, from, live.size() * sizeof(*to), cudaMemcpyDeviceToDevice, p.stream.get()), "saved state");
    };
    copy(p.pdf, p.saved_pdf);
    copy(p.angle_sum, p.saved_sum);
    copy(p.fields, p.saved_fields);
    copy(p.clock, p.saved_clock);
    wait(p);
  }

  void upload_problem() {
    const Structure& s = problem_.structure;
    DeviceProblem& d = device_problem_;
    d = {};
    d.nx = s.nx; d.nz = s.nz; d.nw = problem_.nw; d.angles = problem_.angles; d.nphi = problem_.nphi;
    d.n_valleys = s.n_valleys(); d.subbands = s.subbands; d.n_families = s.n_families();
    d.n_processes = static_cast<int>(problem_.processes.size());
    d.interior = s.interior(); d.n_states = problem_.n_states(); d.n_levels = s.n_families() * s.subbands;
    d.dx = s.dx_nm; d.dz = s.dz_nm; d.dw = problem_.dw_ev; d.dphi = problem_.dphi;
    d.alpha = problem_.alpha_per_ev; d.kt = problem_.kt_ev; d.weno_epsilon = problem_.weno_epsilon;
    d.tol_v = problem_.tol_v; d.cfl = problem_.cfl;
    d.scatters = problem_.scheme != ScatteringScheme::kNone;
    d.balanced = problem_.scheme == ScatteringScheme::kBalanced;
    d.frozen = problem_.frozen_field;
    std::vector<double> offset, base, off, face;
    for (const ValleyPair& valley : s.valleys) offset.push_back(valley.offset_ev);
    for (const auto& family : s.families) {
      base.insert(base.end(), family.base_ev.begin(), family.base_ev.end());
      off.insert(off.end(), family.off_ev.begin(), family.off_ev.end());
      off.push_back(0.0);
    }
    for (int j = 0; j < s.nz; ++j) face.push_back(s.face_x(j));
    tables_.clear();
    const auto table = [&](const std::vector<double>& values) {
      tables_.emplace_back(values, "tables");
      return static_cast<const double*>(tables_.back().data());
    };
    d.cos_phi = table(problem_.cos_phi);
    d.sin_phi = table(problem_.sin_phi);
    d.weight = table(problem_.weight);
    d.speed = table(problem_.speed_nm_fs);
    d.turning = table(problem_.turning_nm_ev_fs);
    d.root_mass = table(problem_.root_mass);
    d.offset = table(offset);
    d.base = table(base);
    d.off = table(off);
    d.eps_cell = table(s.eps_cell);
    d.face_x = table(face);
    d.doping = table(s.doping_nm3);
    // Which (partner, process) pairs each valley has: the same for all its subbands.
    std::vector<std::vector<cuda::JoinedProcess>> lists(static_cast<std::size_t>(d.n_valleys));
    for (int v = 0; v < d.n_valleys; ++v)
      for (int other = 0; other < d.n_states; ++other)
        for (int process = 0; process < d.n_processes; ++process)
          if ((problem_.processes[process].kind == ProcessKind::kF) != (v == other / d.subbands))
            lists[v].push_back({other, process});
    std::vector<int> counts;
    std::vector<cuda::JoinedProcess> joined;
    for (const auto& list : lists) d.most_joined = std::max(d.most_joined, static_cast<int>(list.size()));
    for (auto& list : lists) {
      counts.push_back(static_cast<int>(list.size()));
      list.resize(static_cast<std::size_t>(d.most_joined));
      joined.insert(joined.end(), list.begin(), list.end());
    }
    joined_ = {joined, "joined processes"};
    joined_count_ = {counts, "joined processes"};
    d.joined = joined_.data();
    d.joined_count = joined_count_.data();
    mirror_ = {problem_.mirror, "mirrored angles"};
    family_of_ = {s.family_of, "families"};
    fixed_ = {problem_.fixed, "fixed nodes"};
    processes_ = {problem_.processes, "processes"};
    d.mirror = mirror_.data();
    d.family_of = family_of_.data();
    d.fixed = fixed_.data();
    d.processes = processes_.data();
    d.residual_unit = kChargeOverEpsilon0_v_nm * *std::max_element(s.doping_nm3.begin(), s.doping_nm3.end()) *
                      s.dx_nm * s.dz_nm;
    check(cudaStreamSynchronize(nullptr), "tables");
  }

  // The fewest states a block that still give every multiprocessor a block, if shared memory allows.
  void choose_state_groups() {
    const int states = device_problem_.n_states;
    int limit = 0;
    check(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device_.index), "device attributes");
    states_per_block_ = 1;
    for (int each = states; each >= 1; --each) {
      if (states % each != 0) continue;
      const bool fits = cuda::scattering_shared_bytes(device_problem_, each) <= static_cast<std::size_t>(limit);
      if (fits && device_problem_.nx * (states / each) >= multiprocessors_ * 95 / 100) {
        states_per_block_ = each;
        return;
      }
    }
    if (cuda::scattering_shared_bytes(device_problem_, 1) > static_cast<std::size_t>(limit))
      throw InvalidInput("mesh.subbands × mesh.nw is too large for the shared memory of " + device_.model);
  }

  template <typename Kernel>
  static void allow(Kernel* kernel, std::size_t bytes, const char* what) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), what);
  }

  void set_shared_memory_limits() {
    const std::size_t bytes = shape_.shared_bytes(problem_.angles);
    allow(cuda::transport_kernel<false, false>, bytes, "transport");
    allow(cuda::transport_kernel<true, false>, bytes, "transport");
    allow(cuda::transport_kernel<true, true>, bytes, "transport");
    if (device_problem_.scatters)
      allow(cuda::scattering_kernel, cuda::scattering_shared_bytes(device_problem_, states_per_block_), "scattering");
    allow(cuda::field_kernel, cuda::field_shared_bytes(device_problem_), "field");
    int blocks = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, cuda::field_kernel, cuda::kFieldThreads,
                                                        cuda::field_shared_bytes(device_problem_)), "field");
    if (blocks * multiprocessors_ < device_problem_.nx * device_problem_.n_families)
      throw InvalidInput("mesh.nx = " + std::to_string(device_problem_.nx) + " needs more blocks than " + device_.model +
                         " holds at once (" + std::to_string(blocks * multiprocessors_) + ")");
  }

  void allocate_refresh() {
    const auto nodes = static_cast<std::size_t>(device_problem_.nx) * device_problem_.nz;
    const auto n = static_cast<std::size_t>(device_problem_.interior), nx = static_cast<std::size_t>(device_problem_.nx);
    const std::size_t columns = nx * device_problem_.n_families, rank = device_problem_.n_levels * n;
    energies_ = {columns * n, "all levels"};
    vectors_ = {columns * n * n, "all wave functions"};
    products_ = {nx * rank * n, "pair products"};
    weighted_ = {nx * rank * n, "weighted pair products"};
    responses_ = {nx * n * n, "density response"};
    matrix_ = {nodes * nodes, "Newton matrix"};
    info_ = {2, "factor status"};
    int factor = 0, inverse = 0;
    const int order = static_cast<int>(nodes);
    cuda::check_solver(cusolverDnDpotrf_bufferSize(libraries_.solver(), CUBLAS_FILL_MODE_LOWER, order, matrix_.data(), order, &factor), "Cholesky factor");
    cuda::check_solver(cusolverDnDpotri_bufferSize(libraries_.solver(), CUBLAS_FILL_MODE_LOWER, order, matrix_.data(), order, &inverse), "inverse");
    workspace_ = {static_cast<std::size_t>(std::max(factor, inverse)), "workspace of the inverse"};
  }

  void scatter(PointOnDevice& p) {
    if (!device_problem_.scatters) return;
    const dim3 grid(static_cast<unsigned>(device_problem_.nx), static_cast<unsigned>(device_problem_.n_states / states_per_block_));
    // Whole rounds of the block over its (state, w) pairs.
    const int items = states_per_block_ * device_problem_.nw, rounds = (items + 767) / 768;
    const auto threads = static_cast<unsigned>(((items + rounds - 1) / rounds + 31) / 32 * 32);
    cuda::scattering_kernel<<<grid, threads, cuda::scattering_shared_bytes(device_problem_, states_per_block_), p.stream.get()>>>(
        device_problem_, p.device, states_per_block_);
    check_launch("scattering");
  }

  void transport(PointOnDevice& p, const StageBuffers& stage) {
    const dim3 grid(static_cast<unsigned>(shape_.tiles), static_cast<unsigned>(device_problem_.n_states),
                    static_cast<unsigned>(shape_.segments));
    const std::size_t bytes = shape_.shared_bytes(problem_.angles);
    const auto threads = static_cast<unsigned>(shape_.threads);
    if (problem_.range == AngleRange::kFull)
      cuda::transport_kernel<true, true><<<grid, threads, bytes, p.stream.get()>>>(device_problem_, p.device, stage, shape_);
    else if (problem_.phi_flux == PhiFlux::kSplit)
      cuda::transport_kernel<true, false><<<grid, threads, bytes, p.stream.get()>>>(device_problem_, p.device, stage, shape_);
    else
      cuda::transport_kernel<false, false><<<grid, threads, bytes, p.stream.get()>>>(device_problem_, p.device, stage, shape_);
    check_launch("transport");
  }

  void field(PointOnDevice& p, int stage) {
    void* arguments[] = {&device_problem_, &p.device, &stage};
    check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(cuda::field_kernel),
                                      dim3(static_cast<unsigned>(device_problem_.nx * device_problem_.n_families)),
                                      dim3(cuda::kFieldThreads), arguments, cuda::field_shared_bytes(device_problem_),
                                      p.stream.get()), "field");
  }

  void one_step(PointOnDevice& p) {
    cuda::time_step_kernel<<<1, 1024, 0, p.stream.get()>>>(device_problem_, p.device);
    check_launch("time step");
    const double* const from[3] = {p.pdf.data(), p.stage_a.data(), p.stage_b.data()};
    double* const to[3] = {p.stage_a.data(), p.stage_b.data(), p.pdf.data()};
    for (int stage = 0; stage < 3; ++stage) {
      scatter(p);
      transport(p, {p.pdf.data(), from[stage], to[stage], kStages[stage].share_n, kStages[stage].share_s,
                    kStages[stage].flux_weight, stage == 0});
      field(p, stage);
    }
    cuda::record_kernel<<<static_cast<unsigned>(device_problem_.nx + 1), 256, 0, p.stream.get()>>>(device_problem_, p.device, shape_);
    check_launch("current");
    cuda::clock_kernel<<<1, 32, 0, p.stream.get()>>>(device_problem_, p.device);
    check_launch("clock");
  }

  void sum_and_sheet(PointOnDevice& p) {
    const auto blocks = static_cast<unsigned>((problem_.rows() * 32 + 255) / 256);
    cuda::angle_sum_kernel<<<blocks, 256, 0, p.stream.get()>>>(device_problem_, p.pdf.data(), p.angle_sum.data());
    check_launch("angular sums");
    cuda::sheet_kernel<<<static_cast<unsigned>(device_problem_.nx), 256, 0, p.stream.get()>>>(device_problem_, p.device);
    check_launch("sheet density");
  }

  void extremes(PointOnDevice& p, Advance* result) {
    if (extremes_.size() == 0) extremes_ = {3 * kExtremeBlocks, "extremes"};
    cuda::extremes_kernel<<<kExtremeBlocks, 256, 0, p.stream.get()>>>(device_problem_, p.pdf.data(), p.angle_sum.data(),
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
    }
    result->top_share = largest > 0.0 ? top / largest : 0.0;
  }

  static constexpr int kExtremeBlocks = 264;
  Device device_;
  int multiprocessors_ = 0, states_per_block_ = 1;
  TransportProblem problem_;
  DeviceProblem device_problem_{};
  TransportShape shape_{};
  std::vector<DeviceBuffer<double>> tables_;
  DeviceBuffer<int> mirror_, family_of_, joined_count_, info_;
  DeviceBuffer<cuda::JoinedProcess> joined_;
  DeviceBuffer<char> fixed_;
  DeviceBuffer<ScatteringProcess> processes_;
  DeviceBuffer<double> energies_, vectors_, products_, weighted_, responses_, matrix_, workspace_, extremes_;
  LinearAlgebra libraries_;
  std::vector<std::unique_ptr<PointOnDevice>> points_;
};

}  // namespace

std::unique_ptr<MosfetKernels> make_mosfet_kernels_cuda(const Device& device) {
  return std::make_unique<CudaMosfetKernels>(device);
}

}  // namespace quasi::mosfet

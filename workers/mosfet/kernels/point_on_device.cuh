#pragma once

#include <memory>
#include <utility>

#include "workers/backend/device/event.cuh"
#include "workers/backend/device/stream.cuh"
#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/kernels/step_graph.cuh"
#include "workers/mosfet/kernels/transport/transport_cuda.cuh"

namespace quasi::mosfet::cuda {

using quasi::cuda::DeviceBuffer;

constexpr int kMaxRecords = 4096;

/// Data of one bias point on the device, its stream and the graph of its step. Points advance on
/// their own streams, so that the latency of one point's field iteration is hidden by another's
/// transport.
class PointOnDevice {
 public:
  PointOnDevice(const TransportProblem& problem, const TransportShape& shape) {
    allocate_pdf(problem, shape);
    allocate_fields(problem);
    inflow_source = {static_cast<std::size_t>(problem.n_states()) * problem.nw, "inflow"};
    inflow_drain = {inflow_source.size(), "inflow"};
    const double fixed_inflow[] = {1.0, 1.0};
    inflow_scale = {2, "inflow"};
    inflow_scale.copy_from(fixed_inflow, 2, "inflow");
    clock = {1, "clock"};
    saved_clock = {1, "saved clock"};
    records = {kMaxRecords, "records"};
    device.inflow_source = inflow_source.data();
    device.inflow_drain = inflow_drain.data();
    device.inflow_scale = inflow_scale.data();
    device.clock = clock.data();
    device.records = records.data();
  }

  quasi::cuda::Stream stream{quasi::cuda::StreamPriority::kUrgent};
  /// Stream that runs beside `stream` within a step.
  quasi::cuda::Stream side{quasi::cuda::StreamPriority::kNormal};
  quasi::cuda::Event fork, join;
  std::unique_ptr<StepGraph> step;  ///< captured when first needed: Φ* is a kernel argument
  DevicePoint device{};
  PointBoundary boundary;
  DeviceBuffer<double> pdf, stage_a, stage_b, saved_pdf, angle_sum, saved_sum, gain, loss,
      current_partial, current, fields, saved_fields, v_n, v_1, v_2, energy_n, sheet,
      family_density, block_max, inflow_source, inflow_drain, inflow_scale;
  DeviceBuffer<__nv_bfloat16> inverse;
  DeviceBuffer<PointClock> clock, saved_clock;
  DeviceBuffer<StepRecord> records;

 private:
  void allocate_pdf(const TransportProblem& problem, const TransportShape& shape) {
    const auto rows = static_cast<std::size_t>(problem.rows()),
               size = static_cast<std::size_t>(problem.pdf_size()),
               half_nodes = static_cast<std::size_t>(problem.structure.nx) + 1;
    pdf = {size, "pdf"};
    stage_a = {size, "pdf of stage 1"};
    stage_b = {size, "pdf of stage 2"};
    saved_pdf = {size, "saved pdf"};
    angle_sum = {rows, "angular sums"};
    saved_sum = {rows, "saved angular sums"};
    gain = {rows, "scattering gain"};
    loss = {rows, "scattering loss"};
    current_partial = {static_cast<std::size_t>(problem.n_states()) * shape.tiles * half_nodes,
                       "partial currents"};
    current = {half_nodes, "current"};
    device.pdf = pdf.data();
    device.stage_a = stage_a.data();
    device.stage_b = stage_b.data();
    device.angle_sum = angle_sum.data();
    device.gain = gain.data();
    device.loss = loss.data();
    device.current_partial = current_partial.data();
    device.current = current.data();
  }

  void allocate_fields(const TransportProblem& problem) {
    const Structure& s = problem.structure;
    const auto nodes = static_cast<std::size_t>(s.nx) * s.nz,
               levels = static_cast<std::size_t>(problem.level_count());
    // All data that a roll-back restores beside the pdf lie in one block of doubles.
    const std::pair<double**, std::size_t> parts[] = {
        {&device.potential, nodes},
        {&device.trend, nodes},
        {&device.curvature, nodes},
        {&device.energy, levels},
        {&device.lead, levels},
        {&device.psi, levels * s.nz},
        {&device.current_integral, static_cast<std::size_t>(s.nx) + 1}};
    std::size_t total = 0;
    for (const auto& [pointer, size] : parts) total += size;
    fields = {total, "fields"};
    saved_fields = {total, "saved fields"};
    fields.zero("fields");
    double* at = fields.data();
    for (const auto& [pointer, size] : parts) {
      *pointer = at;
      at += size;
    }
    v_n = {nodes, "potential"};
    energy_n = {levels, "levels before the step"};
    v_1 = {nodes, "potential of stage 1"};
    v_2 = {nodes, "potential of stage 2"};
    sheet = {static_cast<std::size_t>(problem.n_states()) * s.nx, "sheet density"};
    family_density = {static_cast<std::size_t>(s.n_families()) * nodes, "density"};
    family_density.zero("density");
    block_max = {2 * static_cast<std::size_t>(s.nx) * s.n_families() + nodes, "field step"};
    inverse = {nodes * static_cast<std::size_t>(inverse_stride(static_cast<int>(nodes))),
               "inverse of the Newton matrix"};
    device.v_n = v_n.data();
    device.energy_n = energy_n.data();
    device.v_1 = v_1.data();
    device.v_2 = v_2.data();
    device.sheet = sheet.data();
    device.family_density = family_density.data();
    device.block_max = block_max.data();
    device.inverse = inverse.data();
  }
};

}  // namespace quasi::mosfet::cuda

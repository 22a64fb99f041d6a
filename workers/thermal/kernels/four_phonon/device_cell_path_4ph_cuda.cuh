#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "workers/backend/device/device_buffer.cuh"
#include "workers/backend/device/launch_cuda.cuh"
#include "workers/thermal/kernels/four_phonon/cell_path_4ph.hpp"
#include "workers/thermal/kernels/four_phonon/scatter/matrix_element_4ph_cuda.cuh"
#include "workers/thermal/model/problem_4ph.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal::cuda4ph {

/// Writes CellPath4ph::zone.
struct CopyZone4ph {
  Tables4ph tables;
  ZonePoint* zone;

  QUASI_HD void operator()(std::int64_t q) const {
    const std::int16_t* at = tables.zone + 3 * q;
    zone[q] = {at[0], at[1], at[2], 0};
  }
};

/// Writes CellPath4ph::half. index = mode·3 + component
struct CopyHalf4ph {
  Tables4ph tables;
  Complex<double>* half;

  QUASI_HD void operator()(std::int64_t index) const {
    half[index] = tables.eigenvector[index / 3 * 6 + index % 3];
  }
};

/// The path through the cells of a problem's contraction plan, on the current device.
/// See docs/theory/thermal.md 11.4 for the equations.
class DeviceCellPath4ph {
 public:
  DeviceCellPath4ph() = default;
  /// @param tables  of the problem on the device
  DeviceCellPath4ph(const Problem4ph& problem, const Tables4ph& tables) {
    const HostCellPath path = find_cell_path(problem.plan);
    upload_steps(path, problem.plan);
    if (problem.plan.swapped) upload_places(path, problem.plan);
    upload_phases(problem);
    copy_points(problem, tables);
    view_ = {.n_steps = static_cast<int>(path.step.size()),
             .step = step_.data(),
             .first = first_.data(),
             .atoms = atoms_.data(),
             .program = program_.data(),
             .n_stops = n_stops_,
             .stop = stop_.data(),
             .triple_place = triple_place_.data(),
             .carry = carry_.data(),
             .half = half_.data(),
             .zone = zone_.data(),
             .step_phase = {}};
    for (int i = 0; i < 3; ++i) view_.step_phase[i] = step_phase_[i].data() + 2 * problem.mesh.n[i];
  }

  const CellPath4ph& view() const { return view_; }
  /// Returns the plan's number of each pair along the path, [n_pairs].
  const std::int32_t* order() const { return order_.data(); }
  int n_steps() const { return view_.n_steps; }
  /// Returns the number of cells that have pairs.
  int n_stops() const { return n_stops_; }

 private:
  void upload_steps(const HostCellPath& path, const ContractionPlan4ph& plan) {
    std::vector<std::int32_t> stop;
    std::vector<std::uint32_t> program;
    for (std::size_t s = 0; s < path.step.size(); ++s) {
      if (path.first[s + 1] > path.first[s]) stop.push_back(path.first[s]);
      if (plan.n_atoms > 4) continue;
      program.push_back(
          static_cast<std::uint32_t>(path.step[s] >= 0 ? path.step[s] : 3 - path.step[s]));
      for (std::int32_t p = path.first[s]; p < path.first[s + 1]; ++p)
        program.back() |= 1u << (8 + path.atoms[p] / 256 * plan.n_atoms + path.atoms[p] % 256);
    }
    n_stops_ = static_cast<int>(stop.size());
    stop.push_back(plan.n_pairs);
    stop_ = {stop, kWhat};
    program_ = {program, kWhat};
    step_ = {path.step, kWhat};
    first_ = {path.first, kWhat};
    atoms_ = {path.atoms, kWhat};
    order_ = {path.order, kWhat};
  }
  /// Both pairs of a cell are interleaved in A. The triples of a pair are neighbours in the plan.
  void upload_places(const HostCellPath& path, const ContractionPlan4ph& plan) {
    std::vector<std::int32_t> place(static_cast<std::size_t>(plan.n_triples)), carry;
    for (std::size_t s = 0; s < path.step.size(); ++s)
      for (std::int32_t p = path.first[s]; p < path.first[s + 1]; ++p) {
        const bool two = path.first[s + 1] - path.first[s] == 2;
        const std::int32_t element = two ? 9 * path.first[s] + (p - path.first[s]) : 9 * p;
        const std::int32_t pair = path.order[p], begin = plan.pair_begin[pair],
                           end = plan.pair_begin[pair + 1];
        std::fill(place.begin() + begin, place.begin() + end, 4 * element + (two ? 2 : 1));
        std::int32_t first = 0, count = 0;
        for (std::int32_t slot = 0; slot < kContractionSlots; ++slot) {
          const int triple = slot * plan.n_triples / kContractionSlots,
                    next = (slot + 1) * plan.n_triples / kContractionSlots;
          if (triple == next || triple <= begin || triple >= end) continue;
          if (count++ == 0) first = slot;
        }
        carry.push_back(first + 256 * count);
      }
    triple_place_ = {place, kWhat};
    carry_ = {carry, kWhat};
  }
  void upload_phases(const Problem4ph& problem) {
    for (int i = 0; i < 3; ++i) {
      const int n = problem.mesh.n[i];
      std::vector<Complex<double>> factor;
      for (int m = -2 * n; m < 2 * n; ++m) {
        const double angle = 2.0 * units::kPi * QMesh::wrap(m, n) / n;
        factor.push_back({std::cos(angle), std::sin(angle)});
      }
      step_phase_[i] = {factor, kWhat};
    }
  }
  /// Copies what the tables hold into the form of CellPath4ph.
  void copy_points(const Problem4ph& problem, const Tables4ph& tables) {
    zone_ = {static_cast<std::size_t>(problem.mesh.size()), kWhat};
    cuda::for_each_index(problem.mesh.size(), CopyZone4ph{tables, zone_.data()}, kWhat);
    if (!problem.plan.swapped) return;
    half_ = {3 * problem.omega_rad_ps.size(), "eigenvectors of the first atom"};
    cuda::for_each_index(static_cast<std::int64_t>(half_.size()), CopyHalf4ph{tables, half_.data()},
                         "eigenvectors of the first atom");
  }

  static constexpr const char* kWhat = "path through the cells";
  CellPath4ph view_{};
  int n_stops_ = 0;
  cuda::DeviceBuffer<std::int32_t> stop_, step_, first_, atoms_, order_, triple_place_, carry_;
  cuda::DeviceBuffer<std::uint32_t> program_;
  cuda::DeviceBuffer<Complex<double>> step_phase_[3], half_;
  cuda::DeviceBuffer<ZonePoint> zone_;
};

}  // namespace quasi::thermal::cuda4ph

#pragma once

#include <algorithm>
#include <vector>

#include "workers/mosfet/kernels/device_point.cuh"
#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet::cuda {

using quasi::cuda::DeviceBuffer;

/// Owns the problem's tables on the device. The DeviceProblem that upload() returns points into
/// them.
class ProblemTables {
 public:
  /// Copies all tables of a problem to the device.
  DeviceProblem upload(const TransportProblem& problem) {
    DeviceProblem d = scalars_of(problem);
    tables_.clear();
    upload_tables(problem, &d);
    upload_structure(problem.structure, &d);
    upload_joined(problem, &d);
    mirror_ = {problem.mirror, "mirrored angles"};
    fixed_ = {problem.fixed, "fixed nodes"};
    processes_ = {problem.processes, "processes"};
    d.mirror = mirror_.data();
    d.fixed = fixed_.data();
    d.processes = processes_.data();
    quasi::cuda::check(cudaStreamSynchronize(nullptr), "tables");
    return d;
  }

 private:
  static DeviceProblem scalars_of(const TransportProblem& problem) {
    const Structure& s = problem.structure;
    DeviceProblem d{};
    d.nx = s.nx;
    d.nz = s.nz;
    d.nw = problem.nw;
    d.angles = problem.angles;
    d.nphi = problem.nphi;
    d.n_valleys = s.n_valleys();
    d.subbands = s.subbands;
    d.n_families = s.n_families();
    d.n_processes = static_cast<int>(problem.processes.size());
    d.interior = s.interior();
    d.n_states = problem.n_states();
    d.n_levels = s.n_families() * s.subbands;
    d.dx = s.dx_nm;
    d.dz = s.dz_nm;
    d.dw = problem.dw_ev;
    d.dphi = problem.dphi;
    d.alpha = problem.alpha_per_ev;
    d.kt = problem.kt_ev;
    d.weno_epsilon = problem.weno_epsilon;
    d.tol_v = problem.tol_v;
    d.cfl = problem.cfl;
    d.lead = problem.lead_fs;
    d.scatters = problem.scheme != ScatteringScheme::kNone;
    d.balanced = problem.scheme == ScatteringScheme::kBalanced;
    d.frozen = problem.frozen_field;
    d.pauli = problem.pauli;
    d.neutral = problem.neutral_inflow;
    d.silicon_first = s.silicon_first;
    d.silicon_last = s.silicon_last;
    d.residual_unit = kChargeOverEpsilon0_v_nm *
                      *std::max_element(s.doping_nm3.begin(), s.doping_nm3.end()) * s.dx_nm *
                      s.dz_nm;
    return d;
  }

  const double* table(const std::vector<double>& values) {
    tables_.emplace_back(values, "tables");
    return tables_.back().data();
  }

  void upload_tables(const TransportProblem& problem, DeviceProblem* d) {
    d->cos_phi = table(problem.cos_phi);
    d->sin_phi = table(problem.sin_phi);
    d->weight = table(problem.weight);
    d->speed = table(problem.speed_nm_fs);
    d->turning = table(problem.turning_nm_ev_fs);
    d->root_mass = table(problem.root_mass);
    if (!problem.roughness_spectrum.empty())
      d->roughness_spectrum = table(problem.roughness_spectrum);
    if (!problem.elastic_rate_fs.empty()) d->elastic_rate = table(problem.elastic_rate_fs);
  }

  void upload_structure(const Structure& s, DeviceProblem* d) {
    std::vector<double> offset, base, off, face, mz;
    for (const ValleyPair& valley : s.valleys) offset.push_back(valley.offset_ev);
    for (const auto& family : s.families) {
      base.insert(base.end(), family.base_ev.begin(), family.base_ev.end());
      off.insert(off.end(), family.off_ev.begin(), family.off_ev.end());
      off.push_back(0.0);
      mz.push_back(family.mz_m0);
    }
    for (int j = 0; j < s.nz; ++j) face.push_back(s.face_x(j));
    d->offset = table(offset);
    d->base = table(base);
    d->off = table(off);
    d->eps_cell = table(s.eps_cell);
    d->face_x = table(face);
    d->doping = table(s.doping_nm3);
    d->mz = table(mz);
    family_of_ = {s.family_of, "families"};
    d->family_of = family_of_.data();
  }

  // The (partner, process) pairs of each valley are equal for all its subbands.
  void upload_joined(const TransportProblem& problem, DeviceProblem* d) {
    std::vector<std::vector<JoinedProcess>> lists(static_cast<std::size_t>(d->n_valleys));
    for (int v = 0; v < d->n_valleys; ++v)
      for (int other = 0; other < d->n_states; ++other)
        for (int process = 0; process < d->n_processes; ++process)
          if (joins(problem.processes[process].kind, v, other / d->subbands))
            lists[v].push_back({other, process});
    std::vector<int> counts;
    std::vector<JoinedProcess> joined;
    for (const auto& list : lists)
      d->most_joined = std::max(d->most_joined, static_cast<int>(list.size()));
    for (auto& list : lists) {
      counts.push_back(static_cast<int>(list.size()));
      list.resize(static_cast<std::size_t>(d->most_joined));
      joined.insert(joined.end(), list.begin(), list.end());
    }
    joined_ = {joined, "joined processes"};
    joined_count_ = {counts, "joined processes"};
    d->joined = joined_.data();
    d->joined_count = joined_count_.data();
  }

  std::vector<DeviceBuffer<double>> tables_;
  DeviceBuffer<int> mirror_, family_of_, joined_count_;
  DeviceBuffer<JoinedProcess> joined_;
  DeviceBuffer<char> fixed_;
  DeviceBuffer<ScatteringProcess> processes_;
};

}  // namespace quasi::mosfet::cuda

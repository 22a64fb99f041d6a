#pragma once

#include <vector>

#include "workers/mosfet/kernels/wave/wave_tables.hpp"

namespace quasi::mosfet {

/// Holds the tables of a WaveProblem (docs/theory/mosfet.md 17.8) on a machine.
/// @tparam Machine  see WaveSolver
template <typename Machine>
class WaveUpload {
 public:
  template <typename T>
  using Array = typename Machine::template Array<T>;

  /// Copies the tables of a problem to the machine.
  WaveUpload(const WaveProblem& problem, const Machine& machine) : machine_(machine) {
    put_cells(problem);
    put_field(problem);
  }
  WaveUpload(const WaveUpload&) = delete;
  WaveUpload& operator=(const WaveUpload&) = delete;

  /// Returns the addresses of the tables.
  const WaveTables& tables() const { return tables_; }

  /// Copies numbers to the machine.
  template <typename Values>
  auto upload(const Values& values) const {
    return machine_.upload(values.data(), values.size(), "tables of the small signal");
  }
  /// Copies numbers to the machine and keeps them there. @return their address; null: none
  template <typename Values>
  const double* put(const Values& values) {
    doubles_.push_back(upload(values));
    return values.empty() ? nullptr : doubles_.back().data();
  }

 private:
  void put_cells(const WaveProblem& p) {
    WaveTables& t = tables_;
    t.shape = p.shape;
    t.third = p.third;
    t.n_branches = static_cast<int>(p.branches.size());
    t.volume = put(p.volume);
    t.area = put(p.area);
    t.full = put(p.full);
    t.speed = put(p.speed);
    t.g = put(p.g);
    t.loss = put(p.loss);
    t.cell_slopes = put(p.cell_slopes);
    t.states = put(p.states);
    t.electrons = put(p.electrons);
    t.states_slopes = put(p.states_slopes);
    t.electrons_slopes = put(p.electrons_slopes);
    t.states_factor = put(p.states_factor);
    t.density_weight = put(p.density_weight);
    t.overlap = put(p.overlap);
    t.inverse_full = put(p.inverse_full);
    branches_ = upload(p.branches);
    level_of_ = upload(p.level_of);
    t.branches = branches_.data();
    t.level_of = level_of_.data();
  }

  void put_field(const WaveProblem& p) {
    WaveTables& t = tables_;
    t.level_slope = put(p.level_slope);
    t.face_slope = put(p.face_slope);
    t.overlap_slope = put(p.overlap_slope);
    t.stencil = put(p.stencil);
    t.psi_square = put(p.psi_square);
    t.density_slope = put(p.density_slope);
    t.charge = put(p.charge);
    t.inverse = put(p.inverse);
    t.entering = put(p.entering);
    t.wanted_slope = put(p.wanted_slope);
    t.current_weight = put(p.current_weight);
    t.current_slope = put(p.current_slope);
    t.weights = put(p.weights);
    for (int contact = 0; contact < kWaveContacts; ++contact) {
      t.excess_scale[contact] = p.excess_scale[static_cast<std::size_t>(contact)];
      t.excess_drive[contact] = p.excess_drive[static_cast<std::size_t>(contact)];
    }
    fixed_ = upload(p.fixed);
    t.fixed = fixed_.data();
  }

  const Machine& machine_;
  std::vector<Array<double>> doubles_;
  Array<WaveBranch> branches_;
  Array<int> level_of_;
  Array<char> fixed_;
  WaveTables tables_;
};

}  // namespace quasi::mosfet

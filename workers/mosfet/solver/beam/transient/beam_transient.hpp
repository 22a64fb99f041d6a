#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "workers/mosfet/kernels/beam/march/beam_cell_table.hpp"
#include "workers/mosfet/kernels/beam/march/level_sweep.hpp"
#include "workers/mosfet/solver/beam/beam_point.hpp"

namespace quasi::mosfet {

/// Returns the voltages of a bias point at a time, fs.
using BiasAt = std::function<BiasPoint(double time_fs)>;

/// Settings of a transient of the beam scheme.
struct BeamTransientSettings {
  double step_fs = 1.4;  ///< longest time between two fields, if the steps along x are shorter
  double cfl = 0.7;      ///< share of the largest stable step at fixed levels
};

/// One step of a transient.
struct BeamTransientStep {
  StepRecord record;           ///< residual: last |δV| of the field, V
  std::vector<double> passed;  ///< electrons through the faces i − ½ [nx+1], 1/nm
  double least = 0;            ///< smallest g
};

/// Chooses one grid that holds the levels of several biases: that of the first one, with more cells
/// of H where the other ones need them.
BeamGrid make_transient_grid(const BeamDevice& device, const std::vector<BiasPoint>& biases);

/// Begin here: advances one bias point of the beam scheme in time (docs/theory/mosfet.md 17.10).
/// kernels/beam/march moves the electrons, beam_transient_run.hpp runs the points of a deck.
///
/// A step has one field at its middle, from extrapolated densities. The electrons move through the
/// cells of H to the levels of that field (sweep_levels()) and then along x (march_beam()). A
/// restored state continues with the same bits after begin_batch().
class BeamTransient {
 public:
  /// @param grid  outlives the object
  BeamTransient(const BeamDevice& device, BiasAt bias_at, const BeamTransientSettings& settings,
                const BeamGrid& grid);

  /// Starts at t = 0 from the steady state of its bias. @throws NotConverged
  void start(BeamKernels& kernels, Progress& progress);
  /// Returns the state, in a PointState of its own layout: `pdf` is g, `trend_v` and `curvature_v`
  /// are earlier densities.
  PointState state() const;
  /// Returns to a state.
  void restore(const PointState& state);
  /// Drops the factorised matrices of the field, which a restored state lacks.
  void begin_batch();

  /// Returns the longest step that ends at `stop_fs` after a whole number of equal steps. It holds
  /// a whole number of the largest stable steps along x.
  double step_until(double stop_fs) const;
  /// Advances by a time. @throws NotConverged if the levels leave the cells of H
  BeamTransientStep step(double dt_fs);

  /// Returns the field of the present densities and voltages.
  Equilibrium field_now();
  /// Returns the present state in the form of a steady one, with the electrons at the levels of
  /// field_now().
  BeamSteadyState present();

  double time_fs() const { return time_fs_; }
  const PlacedLevels& placed() const { return placed_; }
  const std::vector<double>& distribution() const { return g_; }

 private:
  BeamLevels levels_of(const Subbands& subbands) const;
  PlacedLevels place(BeamLevels levels) const;
  Equilibrium solve_for(const std::vector<double>& sheet_nm2, double time_fs, KeptMatrix* kept);
  void move_to(const BeamLevels& levels);
  std::vector<double> sheet_at(double time_fs) const;
  BeamProblem problem_at(double time_fs) const;
  void follow_neutrality(double dt_fs);

  const BeamDevice& device_;
  BiasAt bias_at_;
  BeamTransientSettings settings_;
  const BeamGrid& grid_;
  BeamCellTable table_;
  std::vector<int> level_of_;
  std::vector<double> g_;  ///< in the layout of BeamOperator, at the levels `placed_`
  PlacedLevels placed_;
  std::vector<double> potential_v_;  ///< of the last field, to which `placed_` belongs
  Subbands subbands_;
  /// ϱ of one valley at the last three ends of steps, latest first [n_states][nx], and the times.
  std::array<std::vector<double>, 3> sheet_nm2_;
  std::array<double, 3> sheet_fs_{};
  std::array<double, 2> shifts_ev_{};  ///< of E_F of a neutral inflow, at source and drain
  double time_fs_ = 0, last_dt_fs_ = 0;
  double along_x_fs_ = 0;  ///< largest step along x at the last levels; 0: not known
  std::int64_t steps_ = 0;
  KeptMatrix kept_, kept_now_;
};

}  // namespace quasi::mosfet

#pragma once

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "workers/mosfet/kernels/beam/march/beam_cell_table.hpp"
#include "workers/mosfet/kernels/beam/march/level_sweep.hpp"
#include "workers/mosfet/solver/beam/beam_point.hpp"

namespace quasi::mosfet {

/// Function that returns the voltages of a bias point at a time, fs.
using BiasAt = std::function<BiasPoint(double time_fs)>;

/// Holds the settings of a transient of the beam scheme.
struct BeamTransientSettings {
  double step_fs = 1.4;  ///< longest time between two fields, if the steps along x are shorter
  double cfl = 0.7;      ///< share of the largest stable step at fixed levels
};

/// Holds the results of one step of a transient.
struct BeamTransientStep {
  StepRecord record;           ///< its residual is the last |δV| of the field, V
  std::vector<double> passed;  ///< electrons through the faces i − ½ per nm of width, [nx+1]
  double least = 0;            ///< smallest g
};

/// Makes one grid that holds the levels of several biases. It is the grid of the first bias, with
/// more cells of H below and above if the other biases need them.
BeamGrid make_transient_grid(const BeamDevice& device, const std::vector<BiasPoint>& biases);

/// Begin here: advances one bias point of the beam scheme in time (docs/theory/mosfet.md 17.10).
/// kernels/beam/march moves the electrons, beam_transient_run.hpp runs the points of a deck.
///
/// A step solves the field (Poisson and Schrödinger) once, for the densities at its middle, which
/// are extrapolated from earlier steps. The electrons then move through the cells of H to the
/// levels of that field (sweep_levels()), and along x at these levels (march_beam()). If
/// begin_batch() is called where a state is saved, a restored run continues with the same bits.
class BeamTransient {
 public:
  /// @param bias_at  voltages as a function of time
  /// @param grid     grid of make_transient_grid(), which must outlive the object
  BeamTransient(const BeamDevice& device, BiasAt bias_at, const BeamTransientSettings& settings,
                const BeamGrid& grid);

  /// Starts at t = 0 from the steady state of the bias at that time.
  /// @throws NotConverged if there is no steady state
  void start(BeamKernels& kernels, Progress& progress);
  /// Returns the state for a checkpoint. PointState belongs to the scheme `weno`; here its member
  /// `pdf` holds g, and `trend_v` and `curvature_v` hold the densities of earlier steps.
  PointState state() const;
  /// Continues from a state that state() has returned.
  void restore(const PointState& state);
  /// Drops the factorised matrices of the field, because a restored state has none.
  void begin_batch();

  /// Divides the time until `stop_fs` into equal steps and returns their length, fs. They are no
  /// longer than the stable steps along x that fit into settings.step_fs, or than one of them.
  double step_until(double stop_fs) const;
  /// Advances by dt_fs. @throws NotConverged if the levels leave the cells of H
  BeamTransientStep step(double dt_fs);

  /// Returns the field for the present densities and voltages.
  Equilibrium field_now();
  /// Moves the electrons to the levels of field_now(), and returns the present state in the form of
  /// a steady one, for the results.
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
  std::vector<double> g_;  ///< occupations in the layout of BeamOperator, at the levels placed_
  PlacedLevels placed_;
  std::vector<double> potential_v_;  ///< potential of the last field, to which placed_ belongs
  Subbands subbands_;
  /// ϱ of one valley at the last three ends of steps, the latest first, 1/nm², [n_states][nx].
  std::array<std::vector<double>, 3> sheet_nm2_;
  std::array<double, 3> sheet_fs_{};   ///< times of these densities
  std::array<double, 2> shifts_ev_{};  ///< shifts of E_F of a neutral inflow at source and drain
  double time_fs_ = 0, last_dt_fs_ = 0;
  double along_x_fs_ = 0;  ///< largest stable step along x at the last levels; 0: not known
  std::int64_t steps_ = 0;
  KeptMatrix kept_, kept_now_;
};

}  // namespace quasi::mosfet

#pragma once

#include <array>
#include <vector>

#include "workers/mosfet/kernels/mosfet_kernels.hpp"
#include "workers/mosfet/model/run_settings.hpp"
#include "workers/mosfet/solver/transport/current_average.hpp"

namespace quasi::mosfet {

/// Columns of a point's history, with currents in A/m.
inline constexpr const char* kHistoryColumns =
    "t_fs,dt_fs,current_source_a_per_m,current_mid_a_per_m,current_drain_a_per_m,charge_per_nm,"
    "chord_iterations,residual,top_share,min_pdf";
inline constexpr int kHistoryWidth = 10;
/// Columns of the terminals, in e/nm: t, charge of source, drain and gates, and the electrons that
/// have passed the half nodes next to source and drain since t = 0.
inline constexpr const char* kTerminalColumns =
    "t_fs,source_per_nm,drain_per_nm,gate_per_nm,passed_source_per_nm,passed_drain_per_nm";
inline constexpr int kTerminalWidth = 6;
/// Columns of the terminal currents: middle of the interval, and the current into the device at
/// each terminal.
inline constexpr const char* kTerminalCurrentColumns =
    "t_fs,source_a_per_m,drain_a_per_m,gate_a_per_m";
inline constexpr int kTerminalCurrentWidth = 4;

/// Columns of the steadiness, in A/m: end and length of a window, x-mean of the averaged current,
/// and its spread between the contact nodes and over all half nodes. The last one is the change of
/// the mean since the previous window.
inline constexpr const char* kSteadinessColumns =
    "t_fs,window_fs,mean_a_per_m,spread_a_per_m,spread_with_contacts_a_per_m,drift_a_per_m";
inline constexpr int kSteadinessWidth = 6;

/// State of a bias point during its run. It holds all data, except the frozen matrix, from which a
/// later process continues with the same bits.
struct PointProgress {
  int point = -1;  ///< index into the deck's points
  PointState state;
  CurrentAverage average{0.0};
  SteadyWindow window;             ///< last window
  std::vector<double> steadiness;  ///< [rows][kSteadinessWidth]
  std::vector<double> history;     ///< [rows][kHistoryWidth]
  std::vector<double> terminals;   ///< [rows][kTerminalWidth]
  double next_sample_fs = 0;
  double min_pdf = 0, top_share = 0;  ///< worst values so far
  Filling filling;                    ///< worst values so far; its count is that of the last batch
  std::array<double, 2> inflow_scale{
      1.0, 1.0};  ///< source, drain: factor of the neutral inflow in the last batch
  double passed_source = 0, passed_drain = 0;  ///< ∫I dt next to the contacts, e/nm
};

/// Adds a row of history for every step that reaches the next sampling time, and for the last step.
void add_history(PointProgress* at, const std::vector<StepRecord>& records, double every_fs,
                 double t_end_fs);

/// Adds ∫I dt [nx+1] since the last call to the average and to the charge that passed the
/// terminals.
void collect_current(PointProgress* at, double time_fs, const std::vector<double>& integral);

/// Closes an averaging window if one ends at this time, and adds its row to the steadiness. @return
/// true if the window of a steady run is steady
bool close_window(PointProgress* at, double time_fs, const RunSettings& run);

}  // namespace quasi::mosfet

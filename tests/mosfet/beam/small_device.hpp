#pragma once

#include <algorithm>
#include <complex>
#include <memory>
#include <vector>

#include "tests/mosfet/fixtures.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/solver/beam/beam_point.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"

/// A film of 20 nm with one subband and coarse cells, for tests of linear response.
namespace quasi::test {

inline mosfet::Deck small_film(const std::vector<Setting>& settings = {}) {
  std::vector<Setting> all{{"mesh.subbands", "1"},       {"mesh.dh_ev", "0.025"},
                           {"mesh.nkappa", "4"},         {"run.scheme", "beam"},
                           {"contact.inflow", "fixed"},  {"geometry.source_nm", "6"},
                           {"geometry.channel_nm", "8"}, {"geometry.drain_nm", "6"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return default_deck(21, 9, all);
}

/// A device whose steady states may share one grid.
class SmallDevice {
 public:
  explicit SmallDevice(const mosfet::Deck& deck)
      : deck_(deck),
        structure_(make_structure(deck)),
        problem_(make_transport_problem(deck, structure_)),
        elastic_(deck, structure_),
        source_(solve_contact(deck, structure_, 0)),
        drain_(solve_contact(deck, structure_, structure_.nx - 1)),
        kernels_(mosfet::make_beam_kernels(find_device("cpu"))) {}

  mosfet::BeamDevice device(const mosfet::BeamGrid* grid = nullptr) const {
    return {.model = deck_,
            .structure = structure_,
            .problem = problem_,
            .elastic = elastic_,
            .contacts = {source_, drain_},
            .mesh = {.dh_ev = deck_.mesh.dh_ev,
                     .n_kappa = deck_.mesh.n_kappa,
                     .window_ev = deck_.mesh.window_ev},
            .tolerance_v = 1e-9,
            .grid = grid};
  }
  mosfet::BeamSteadyState steady(const mosfet::BiasPoint& bias,
                                 const mosfet::BeamGrid* grid = nullptr) const {
    SilentProgress silent;
    return solve_beam_point(device(grid), bias, *kernels_, silent);
  }

 private:
  mosfet::Deck deck_;
  mosfet::Structure structure_;
  mosfet::TransportProblem problem_;
  mosfet::ElasticTables elastic_;
  mosfet::Equilibrium source_, drain_;
  std::unique_ptr<mosfet::BeamKernels> kernels_;
};

/// Largest sums of the columns and of the rows of Y over its largest entry, and of rows for cells
/// of H that stay.
struct AdmittanceDefects {
  double columns = 0, rows = 0, staying_rows = 0;
};
inline AdmittanceDefects defects_of(const mosfet::Admittance& found) {
  AdmittanceDefects defects;
  double largest = 0.0;
  for (const auto& row : found.y)
    for (const std::complex<double>& value : row) largest = std::max(largest, std::abs(value));
  for (std::size_t k = 0; k < found.y.size(); ++k) {
    std::complex<double> column = 0.0, row = 0.0;
    for (std::size_t n = 0; n < found.y.size(); ++n) {
      column += found.y[n][k];
      row += found.y[k][n];
    }
    defects.columns = std::max(defects.columns, std::abs(column) / largest);
    defects.rows = std::max(defects.rows, std::abs(row) / largest);
    defects.staying_rows = std::max(defects.staying_rows, std::abs(found.row_sums[k]) / largest);
  }
  return defects;
}

/// Ratios of g_m, g_ds and Y_DS to differences of steady currents on the grid of the point.
struct SlopeRatios {
  double gm = 0, gds = 0, source = 0;
};
/// Compares Y at frequency zero, V_GS 0.4 V and V_DS 0.3 V with currents at `step_v` to both sides.
inline SlopeRatios slope_ratios(const SmallDevice& small, double step_v) {
  const mosfet::BiasPoint bias{0.4, 0.3};
  const mosfet::BeamSteadyState state = small.steady(bias);
  const mosfet::BeamDevice device = small.device();
  const mosfet::Admittance found = mosfet::BeamSmallSignal(device, bias, state).at(0.0);
  const auto current = [&](double vgs_v, double vds_v) {
    constexpr double kAmpere_per_m = 1.602176634e5;  // of one e/(fs nm)
    return kAmpere_per_m * small.steady({vgs_v, vds_v}, &state.grid).fluxes.current[1];
  };
  const double gm = (current(0.4 + step_v, 0.3) - current(0.4 - step_v, 0.3)) / (2 * step_v);
  const double gds = (current(0.4, 0.3 + step_v) - current(0.4, 0.3 - step_v)) / (2 * step_v);
  // Less voltage at the source is more voltage at gate and drain against it.
  const double both =
      (current(0.4 + step_v, 0.3 + step_v) - current(0.4 - step_v, 0.3 - step_v)) / (2 * step_v);
  using mosfet::Terminal;
  return {found.at(Terminal::kDrain, Terminal::kGate).real() / gm,
          found.at(Terminal::kDrain, Terminal::kDrain).real() / gds,
          -found.at(Terminal::kDrain, Terminal::kSource).real() / both};
}

}  // namespace quasi::test

// Tests the small-signal response of the beam scheme with the field's feedback: conservation of
// current, reciprocity, and the limit of zero frequency.

#include "workers/mosfet/solver/beam/small_signal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>

#include "tests/mosfet/fixtures.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/input/make_structure.hpp"

namespace quasi::mosfet {
namespace {

Deck deck_of(const std::vector<Setting>& settings = {}) {
  std::vector<Setting> all{{"mesh.subbands", "1"},       {"mesh.dh_ev", "0.025"},
                           {"mesh.nkappa", "4"},         {"run.scheme", "beam"},
                           {"contact.inflow", "fixed"},  {"geometry.source_nm", "6"},
                           {"geometry.channel_nm", "8"}, {"geometry.drain_nm", "6"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return test::default_deck(21, 9, all);
}

/// Coarse device whose bias points share one grid.
class SmallDevice {
 public:
  explicit SmallDevice(const Deck& deck)
      : deck_(deck),
        structure_(make_structure(deck)),
        problem_(make_transport_problem(deck, structure_)),
        elastic_(deck, structure_),
        source_(solve_contact(deck, structure_, 0)),
        drain_(solve_contact(deck, structure_, structure_.nx - 1)),
        kernels_(make_beam_kernels(find_device("cpu"))) {}

  BeamDevice device(const BeamGrid* grid = nullptr) const {
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
  BeamSteadyState steady(const BiasPoint& bias, const BeamGrid* grid = nullptr) const {
    SilentProgress silent;
    return solve_beam_point(device(grid), bias, *kernels_, silent);
  }

 private:
  Deck deck_;
  Structure structure_;
  TransportProblem problem_;
  ElasticTables elastic_;
  Equilibrium source_, drain_;
  std::unique_ptr<BeamKernels> kernels_;
};

constexpr double kAmpere_per_m = 1.602176634e5;  // of one e/(fs nm)

// Columns of Y add to zero, since current is conserved. Rows add to zero up to the grid of H, since
// equal voltages at all terminals shift all energies.
TEST(SmallSignal, RowsAndColumnsOfYAddToZero) {
  const SmallDevice small(deck_of());
  const BiasPoint bias{0.4, 0.3};
  const BeamDevice device = small.device();
  const BeamSmallSignal response(device, bias, small.steady(bias));
  const Admittance found = response.at(1e12);
  for (int k = 0; k < kTerminals; ++k) {
    std::complex<double> column = 0.0, row = 0.0;
    double largest = 0.0;
    for (int n = 0; n < kTerminals; ++n) {
      column += found.y[n][k];
      row += found.y[k][n];
      largest = std::max({largest, std::abs(found.y[n][k]), std::abs(found.y[k][n])});
    }
    EXPECT_LT(std::abs(column), 1e-7 * largest) << k;
    EXPECT_LT(std::abs(row), 0.04 * largest) << k;
  }
}

/// Laws that hold for both kinds of inflow.
class SmallSignalOfInflow : public testing::TestWithParam<const char*> {};

// At frequency zero g_m and g_ds are the slopes of the steady current on the grid of the point.
TEST_P(SmallSignalOfInflow, TheLimitOfFrequencyZeroIsTheSlopeOfTheSteadyCurrent) {
  const SmallDevice small(deck_of({{"contact.inflow", GetParam()}}));
  const BiasPoint bias{0.4, 0.3};
  const BeamSteadyState state = small.steady(bias);
  const BeamDevice device = small.device();
  const Admittance found = BeamSmallSignal(device, bias, state).at(0.0);
  constexpr double kStep_v = 2e-3;
  const auto current = [&](double vgs_v, double vds_v) {
    return kAmpere_per_m * small.steady({vgs_v, vds_v}, &state.grid).fluxes.current[1];
  };
  const double gm = (current(0.4 + kStep_v, 0.3) - current(0.4 - kStep_v, 0.3)) / (2 * kStep_v);
  const double gds = (current(0.4, 0.3 + kStep_v) - current(0.4, 0.3 - kStep_v)) / (2 * kStep_v);
  EXPECT_NEAR(found.at(Terminal::kDrain, Terminal::kGate).real() / gm, 1.0, 1e-3);
  EXPECT_NEAR(found.at(Terminal::kDrain, Terminal::kDrain).real() / gds, 1.0, 1e-2);
  for (int k = 0; k < kTerminals; ++k)
    EXPECT_LT(std::abs(found.y[0][k] + found.y[1][k] + found.y[2][k]), 1e-7 * gm) << k;
}

INSTANTIATE_TEST_SUITE_P(Contacts, SmallSignalOfInflow, testing::Values("fixed", "neutral"));

// Without drain bias the symmetric device answers alike from both sides.
TEST(SmallSignal, YIsReciprocalWithoutDrainBias) {
  const SmallDevice small(deck_of());
  const BiasPoint bias{0.4, 0.0};
  const BeamDevice device = small.device();
  const Admittance found = BeamSmallSignal(device, bias, small.steady(bias)).at(1e12);
  const auto y = [&](Terminal i, Terminal j) { return found.at(i, j); };
  const std::complex<double> sd = y(Terminal::kSource, Terminal::kDrain),
                             ds = y(Terminal::kDrain, Terminal::kSource),
                             sg = y(Terminal::kSource, Terminal::kGate),
                             gs = y(Terminal::kGate, Terminal::kSource);
  EXPECT_LT(std::abs(sd - ds), 1e-9 * std::abs(sd));
  EXPECT_LT(std::abs(sg - gs), 1e-3 * std::abs(sg));
  EXPECT_GT(found.capacitance_f_m(Terminal::kGate, Terminal::kGate), 0.0);
}

TEST(SmallSignal, FermiStatisticsAreRefused) {
  const SmallDevice small(deck_of({{"statistics.kind", "fermi"}}));
  const BeamDevice device = small.device();
  EXPECT_THROW(BeamSmallSignal(device, {0.4, 0.0}, BeamSteadyState{}), InvalidInput);
}

}  // namespace
}  // namespace quasi::mosfet

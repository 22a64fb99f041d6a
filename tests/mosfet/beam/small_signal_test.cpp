// Tests the small-signal response of the beam scheme with the field's feedback: conservation of
// current, reciprocity, the limit of zero frequency, and the outputs of a deck.

#include "workers/mosfet/solver/beam/small_signal/small_signal.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <string>

#include "tests/mosfet/beam/small_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/output/summary.hpp"
#include "workers/mosfet/solver/beam/small_signal/small_signal_report.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"

namespace quasi::mosfet {
namespace {

using test::small_film;
using test::SmallDevice;

// Columns of Y add to zero, since current is conserved. Rows do so because the cells of H follow
// the source. With cells that stay, equal voltages at all terminals shift all energies against
// them.
TEST(SmallSignal, RowsAndColumnsOfYAddToZero) {
  const SmallDevice small(small_film());
  const BiasPoint bias{0.4, 0.3};
  const BeamDevice device = small.device();
  const test::AdmittanceDefects found =
      test::defects_of(BeamSmallSignal(device, bias, small.steady(bias)).at(1e12));
  EXPECT_LT(found.columns, 1e-7);
  EXPECT_LT(found.rows, 1e-12);
  EXPECT_LT(found.staying_rows, 0.04);
  EXPECT_GT(found.staying_rows, 1e-3);
}

// With source and drain exchanged and the other sign of V_DS the device is its mirror image. Its
// cells lie V_DS higher against the Fermi level of the source.
TEST(SmallSignal, YOfTheMirroredBiasIsMirrored) {
  const SmallDevice small(small_film());
  const BiasPoint bias{0.4, 0.3}, mirrored{0.1, -0.3};
  const BeamDevice device = small.device();
  const BeamSteadyState state = small.steady(bias);
  BeamGrid grid = state.grid;
  grid.h_min_ev += 0.3;
  const Admittance y = BeamSmallSignal(device, bias, state).at(1e12),
                   image =
                       BeamSmallSignal(device, mirrored, small.steady(mirrored, &grid)).at(1e12);
  constexpr std::array<std::size_t, kTerminals> kImage{1, 0, 2};
  const double largest = std::abs(y.at(Terminal::kDrain, Terminal::kSource));
  for (std::size_t i = 0; i < kTerminals; ++i)
    for (std::size_t j = 0; j < kTerminals; ++j)
      EXPECT_LT(std::abs(y.y[i][j] - image.y[kImage[i]][kImage[j]]), 1e-6 * largest) << i << j;
}

// Levels at different places between the edges of cells change Y less if the cells follow the
// source. With cells that stay, the spread of Y_DS over these places is 3.1 %.
TEST(SmallSignal, ThePlaceOfTheCellsMovesYLittle) {
  const SmallDevice small(small_film({{"mesh.nkappa", "6"}}));
  const BiasPoint bias{0.4, 0.3};
  const BeamDevice device = small.device();
  const BeamGrid first = small.steady(bias).grid;
  double least = 1e300, most = 0.0, least_staying = 1e300, most_staying = 0.0;
  for (int place = 0; place < 4; ++place) {
    BeamGrid grid = first;
    grid.h_min_ev -= 0.25 * place * grid.dh_ev;
    grid.n_h += 1;
    const Admittance y = BeamSmallSignal(device, bias, small.steady(bias, &grid)).at(0.0);
    const double follows = -y.at(Terminal::kDrain, Terminal::kSource).real(),
                 stays = follows - y.row_sums[static_cast<std::size_t>(Terminal::kDrain)].real();
    least = std::min(least, follows);
    most = std::max(most, follows);
    least_staying = std::min(least_staying, stays);
    most_staying = std::max(most_staying, stays);
  }
  EXPECT_LT(most / least, 1.02);
  EXPECT_LT(most - least, 0.7 * (most_staying - least_staying));
}

// In flat contacts the rules for faces have kinks between nearly equal neighbours. A response that
// is not linear there leaves sums of 2e-5.
TEST(SmallSignal, ColumnsOfYAddToZeroWithFlatContacts) {
  const SmallDevice small(test::default_deck(33, 9,
                                             {{"mesh.subbands", "2"},
                                              {"mesh.dh_ev", "0.025"},
                                              {"mesh.nkappa", "4"},
                                              {"run.scheme", "beam"}}));
  const BiasPoint bias{0.4, 0.4};
  const BeamDevice device = small.device();
  const Admittance found = BeamSmallSignal(device, bias, small.steady(bias)).at(1e12);
  EXPECT_LT(test::defects_of(found).columns, 1e-7);
}

/// Laws that hold for every kind of inflow, statistics and scattering.
class SmallSignalOf : public testing::TestWithParam<std::vector<Setting>> {};

// At frequency zero g_m, g_ds and the column of the source are the slopes of the steady current on
// the grid of the point, whose energies count from the source. The current has a kink wherever a
// level passes an edge of the cells of H. With cells of 25 meV the nearest kinks in V_DS are 0.1 to
// 1 mV away, so that the differences take 0.1 mV.
TEST_P(SmallSignalOf, TheLimitOfFrequencyZeroIsTheSlopeOfTheSteadyCurrent) {
  const test::SlopeRatios found = test::slope_ratios(SmallDevice(small_film(GetParam())), 1e-4);
  EXPECT_NEAR(found.gm, 1.0, 1e-4);
  EXPECT_NEAR(found.gds, 1.0, 1e-4);
  EXPECT_NEAR(found.source, 1.0, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Models, SmallSignalOf,
                         testing::Values(std::vector<Setting>{{"contact.inflow", "neutral"}},
                                         std::vector<Setting>{{"contact.inflow", "neutral"},
                                                              {"statistics.kind", "fermi"}},
                                         std::vector<Setting>{
                                             {"scattering.roughness.height_nm", "0.6"},
                                             {"scattering.impurities", "true"}}));

// Without drain bias the symmetric device answers alike from both sides.
TEST(SmallSignal, YIsReciprocalWithoutDrainBias) {
  const SmallDevice small(small_film());
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

// A transistor with g_m, g_ds, a gate resistance and C_GG has f_T = g_m/2πC_GG, and its f_max
// follows from Mason's gain.
TEST(SmallSignal, FiguresOfMeritAreThoseOfTheEquivalentCircuit) {
  constexpr double kGm = 3000.0, kGds = 200.0, kCgg = 2e-9, kGateResistance = 1e-5;
  std::vector<Admittance> all;
  for (int n = 0; n <= 60; ++n) {
    Admittance y{.frequency_hz = 1e9 * std::pow(10.0, n / 12.0)};
    const std::complex<double> charge(0.0, 2.0 * 3.14159265358979 * y.frequency_hz * kCgg);
    const std::complex<double> gate = charge / (1.0 + charge * kGateResistance);
    y.y[2][2] = gate;
    y.y[1][2] = kGm / (1.0 + charge * kGateResistance);
    y.y[1][1] = kGds;
    all.push_back(y);
  }
  const GainFigures found = gain_figures(all);
  const double cutoff_hz = kGm / (2.0 * 3.14159265358979 * kCgg);
  EXPECT_NEAR(found.cutoff_hz.value() / cutoff_hz, 1.0, 1e-6);
  EXPECT_NEAR(found.cutoff_extrapolated_hz.value() / cutoff_hz, 1.0, 1e-6);
  const double oscillation_hz = cutoff_hz / std::sqrt(4.0 * kGateResistance * kGds);
  EXPECT_NEAR(found.oscillation_hz.value() / oscillation_hz, 1.0, 1e-3);
  EXPECT_NEAR(found.oscillation_extrapolated_hz.value() / oscillation_hz, 1.0, 1e-3);
}

// A deck with frequencies writes Y and its figures for every point. A resumed sweep has the same
// bits.
TEST(SmallSignal, ADeckWithFrequenciesHasYAtEveryPoint) {
  const Deck deck =
      small_film({{"bias.points", "[[0.4, 0.3]]"}, {"small_signal.frequencies_hz", "[1e9, 3e12]"}});
  const test::TemporaryDirectory folder;
  SilentProgress silent;
  const auto run = [&] {
    return run_sweep(deck, {.devices = {find_device("cpu")}, .checkpoint_directory = folder.path()},
                     silent);
  };
  const std::vector<PointResult> points = run(), again = run();
  for (std::size_t k = 0; k < points.size(); ++k) {
    const auto& arrays = points[k].arrays;
    EXPECT_EQ(arrays.at("small_signal/frequency").values, (std::vector<double>{1e9, 3e12}));
    const std::vector<double>& real = arrays.at("small_signal/admittance_real").values;
    EXPECT_EQ(arrays.at("small_signal/admittance_real").shape,
              (std::vector<std::int64_t>{2, kTerminals, kTerminals}));
    EXPECT_EQ(real, again[k].arrays.at("small_signal/admittance_real").values);
    const auto& numbers = points[k].numbers;
    EXPECT_EQ(numbers.at("transconductance_s_per_m"), real[kTerminals + 2]);
    EXPECT_GT(numbers.at("transconductance_s_per_m"), numbers.at("output_conductance_s_per_m"));
    const double slope = numbers.at("transconductance_s_per_m") /
                         (2.0 * 3.14159265358979 * numbers.at("gate_capacitance_f_per_m"));
    EXPECT_NEAR(numbers.at("cutoff_extrapolated_hz") / slope, 1.0, 0.02);
    EXPECT_LT(numbers.at("admittance_column_defect"), 1e-6);
  }
  const std::string table = summary_table(summary_of(deck, points));
  EXPECT_NE(table.find("g_m"), std::string::npos);
  EXPECT_NE(table.find("GHz"), std::string::npos);
  EXPECT_NE(table.find("rows of the admittance add to"), std::string::npos);
}

TEST(SmallSignal, BadFrequenciesAreRefused) {
  const auto message = [](const std::vector<Setting>& settings) -> std::string {
    try {
      small_film(settings);
    } catch (const InvalidInput& refused) {
      return refused.what();
    }
    return "accepted";
  };
  const auto expect = [&](const std::vector<Setting>& settings, const char* part) {
    EXPECT_NE(message(settings).find(part), std::string::npos) << message(settings);
  };
  expect({{"small_signal.frequencies_hz", "[1e9, 1e9]"}}, "must increase");
  expect({{"small_signal.frequencies_hz", "[10.0]"}}, "between 0 and 1e+06 Hz");
  expect({{"small_signal.frequencies_hz", "[]"}}, "is empty");
  expect({{"small_signal.from_hz", "1e12"}, {"small_signal.to_hz", "1e11"}}, "must exceed from_hz");
  expect({{"small_signal.frequencies_hz", "[1e9]"}, {"small_signal.to_hz", "1e11"}}, "exclude");
  expect({{"small_signal.from_hz", "1e6"},
          {"small_signal.to_hz", "1e15"},
          {"small_signal.points_per_decade", "100"}},
         "accepted");
  expect({{"small_signal.frequencies_hz", "[1e9]"}, {"run.scheme", "weno"}},
         "needs steady states of the beam scheme");
  EXPECT_EQ(small_film({{"small_signal.from_hz", "1e9"}}).small_signal.frequencies_hz.size(), 21u);
}

}  // namespace
}  // namespace quasi::mosfet

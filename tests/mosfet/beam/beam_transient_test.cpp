// Tests transients of the beam scheme, which couple moving levels, transport and the field.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "tests/mosfet/beam/small_device.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/mosfet/solver/beam/transient/beam_transient.hpp"
#include "workers/mosfet/solver/sweep/sweep.hpp"
#include "workers/mosfet/solver/transport/observables.hpp"

namespace quasi::mosfet {
namespace {

using test::small_film;
using test::SmallDevice;

constexpr double kAmpere_per_m = 1.602176634e5;  // current of one e/(fs nm)

/// Runs a transient of a small device and counts the charges that pass its terminals.
struct SmallTransient {
  SmallTransient(const Deck& deck, const BiasAt& bias_at, const std::vector<BiasPoint>& reached,
                 const BeamTransientSettings& settings = {})
      : small(deck),
        device(small.device()),
        problem(device.problem),
        grid(make_transient_grid(device, reached)),
        transient(device, bias_at, settings, grid),
        kernels(make_beam_kernels(find_device("cpu"))) {
    SilentProgress silent;
    transient.start(*kernels, silent);
  }

  SmallDevice small;
  BeamDevice device;
  const TransportProblem& problem;
  BeamGrid grid;
  BeamTransient transient;
  std::unique_ptr<BeamKernels> kernels;
};

// Expects that a device at constant voltages keeps its steady state.
void expect_rest(const Deck& deck) {
  const BiasPoint bias{0.4, 0.3};
  SmallTransient run(deck, [&](double) { return bias; }, {bias});
  const std::vector<double> before =
      beam_sheet_density(run.transient.placed().geometry, run.transient.distribution());
  BeamTransientStep last;
  for (int n = 0; n < 20; ++n) last = run.transient.step(1.0);
  const std::vector<double> after =
      beam_sheet_density(run.transient.placed().geometry, run.transient.distribution());
  // Newton's last step of the steady state is below 1e-9 V, so that densities are exact to 4e-8.
  for (std::size_t at = 0; at < before.size(); ++at)
    EXPECT_NEAR(after[at] / before[at], 1.0, 1e-6) << at;
  const double steady = run.small.steady(bias, &run.grid).fluxes.current[1];
  EXPECT_NEAR(last.record.current_mid / steady, 1.0, 1e-6);
}

TEST(BeamTransient, ASteadyStateStays) {
  expect_rest(small_film());
  expect_rest(small_film({{"contact.inflow", "neutral"}}));
  expect_rest(
      small_film({{"statistics.kind", "fermi"}, {"scattering.roughness.height_nm", "0.3"}}));
}

// In each step every column changes by what passes its faces, while the levels move: 1e-12 of the
// largest column.
TEST(BeamTransient, ParticlesAreBalancedWhileLevelsMove) {
  const auto bias_at = [](double t_fs) { return BiasPoint{0.3 + 0.02 * t_fs, 0.3}; };
  SmallTransient run(small_film(), bias_at, {{0.3, 0.3}, {0.5, 0.3}});
  const auto total = [&] {
    std::vector<double> sum(static_cast<std::size_t>(run.grid.nx), 0.0);
    const std::vector<double> sheet =
        beam_sheet_density(run.transient.placed().geometry, run.transient.distribution());
    for (std::size_t at = 0; at < sheet.size(); ++at) sum[at % sum.size()] += 2.0 * sheet[at];
    return sum;
  };
  std::vector<double> before = total();
  for (int n = 0; n < 10; ++n) {
    const BeamTransientStep step = run.transient.step(1.0);
    const std::vector<double> after = total();
    const double largest = *std::max_element(after.begin(), after.end());
    for (std::size_t i = 0; i < after.size(); ++i)
      EXPECT_NEAR(after[i] - before[i], (step.passed[i] - step.passed[i + 1]) / run.grid.dx_nm,
                  1e-12 * largest)
          << n << ' ' << i;
    before = after;
    EXPECT_GE(step.least, 0.0);
  }
}

// Takes a step of the gate voltage and compares the device after a time with the steady state of
// the direct solver.
void expect_steady_end(const Deck& deck, int steps, double tolerance) {
  const BiasPoint first{0.3, 0.3}, second{0.4, 0.3};
  const auto bias_at = [&](double t_fs) { return t_fs > 0.0 ? second : first; };
  SmallTransient run(deck, bias_at, {first, second});
  for (int n = 0; n < steps; ++n) run.transient.step(1.0);
  const BeamSteadyState steady = run.small.steady(second, &run.grid);
  const BeamSteadyState found = run.transient.present();
  for (std::size_t at = 0; at < steady.fluxes.sheet_nm2.size(); ++at)
    EXPECT_NEAR(found.fluxes.sheet_nm2[at] / steady.fluxes.sheet_nm2[at], 1.0, tolerance) << at;
  for (const double current : found.fluxes.current)
    EXPECT_NEAR(current / steady.fluxes.current[1], 1.0, tolerance);
}

// The plasma of the contacts oscillates after the step. After 400 fs less than 5e-4 of it is left.
TEST(BeamTransient, LongAfterAStepItIsTheSteadyState) {
  expect_steady_end(small_film(), 400, 5e-4);
}

// The plasma oscillates for longer if the inflow is neutral. Blocked scattering and rough
// interfaces follow the levels, too.
TEST(BeamTransient, EveryModelEndsInItsSteadyState) {
  if (std::getenv("QUASI_NIGHTLY") == nullptr) GTEST_SKIP() << "set QUASI_NIGHTLY=1 to run it";
  expect_steady_end(small_film(), 500, 1e-5);
  expect_steady_end(small_film({{"contact.inflow", "neutral"}}), 900, 2e-5);
  expect_steady_end(
      small_film({{"statistics.kind", "fermi"}, {"scattering.roughness.height_nm", "0.3"}}), 500,
      2e-5);
}

/// Holds the charges of the terminals at one time.
struct Terminals {
  double time_fs;
  std::array<double, 3> passed;  ///< charge into the device at source, drain and gate, e/nm
};
Terminals terminals_of(SmallTransient& run, double passed_source, double passed_drain) {
  const TerminalCharge charge = terminal_charge(run.problem, run.transient.field_now().potential_v);
  return {run.transient.time_fs(),
          {charge.source - passed_source, charge.drain + passed_drain, charge.gate}};
}

// The Fourier transform of the currents after a small ramp of the gate, over the transform of the
// ramp, must be Y(ω). Another solver calculates Y(ω) at each frequency. Intervals of 1 fs between
// fields leave a relative error of (ω Δt)²/24, which is below 5e-5.
TEST(BeamTransient, ASmallRampHasTheAdmittance) {
  const BiasPoint bias{0.4, 0.3};
  constexpr double kRise_v = 1e-4, kRamp_fs = 8.0, kEnd_fs = 400.0;
  const auto bias_at = [&](double t_fs) {
    return BiasPoint{bias.vgs_v + kRise_v * std::min(t_fs / kRamp_fs, 1.0), bias.vds_v};
  };
  SmallTransient run(small_film({{"run.tol_v", "1e-11"}}), bias_at, {bias});
  const BeamSteadyState steady = run.small.steady(bias, &run.grid);
  const double current = steady.fluxes.current[1];
  std::vector<Terminals> rows{terminals_of(run, 0.0, 0.0)};
  double passed_source = 0.0, passed_drain = 0.0;
  while (run.transient.time_fs() < kEnd_fs - 0.5) {
    const BeamTransientStep step = run.transient.step(1.0);
    passed_source += step.passed[1] - current;
    passed_drain += step.passed[step.passed.size() - 2] - current;
    rows.push_back(terminals_of(run, passed_source, passed_drain));
  }
  const BeamSmallSignal small_signal(run.device, bias, steady);
  for (const double frequency_hz : {1e12, 5e12}) {
    const double omega_fs = 2.0 * units::kPi * frequency_hz * 1e-15;
    const Admittance expected = small_signal.at(frequency_hz);
    const double half = 0.5 * omega_fs * kRamp_fs;
    const std::complex<double> ramp = std::polar(kRise_v * std::sin(half) / half, -half);
    for (const Terminal terminal : {Terminal::kSource, Terminal::kDrain, Terminal::kGate}) {
      const auto at = static_cast<std::size_t>(terminal);
      std::complex<double> transform = 0.0;
      const double final_current =
          (rows.back().passed[at] - rows[rows.size() - 51].passed[at]) / 50.0;
      for (std::size_t n = 1; n < rows.size(); ++n) {
        const double moved = rows[n].passed[at] - rows[n - 1].passed[at];
        const double middle_fs = 0.5 * (rows[n].time_fs + rows[n - 1].time_fs);
        transform += (moved - final_current * 1.0) * std::polar(1.0, -omega_fs * middle_fs);
      }
      const std::complex<double> found =
          kAmpere_per_m * (std::complex<double>(0.0, omega_fs) * transform + final_current) / ramp;
      const std::complex<double> y = expected.at(terminal, Terminal::kGate);
      EXPECT_LT(std::abs(found - y), 3e-4 * std::abs(y))
          << frequency_hz << ' ' << at << ": " << found << " for " << y;
    }
  }
}

// Steps of a quarter of the length change the charge that passes in a fast pulse by less than 1e-3.
TEST(BeamTransient, StepsOfAFemtosecondAreShort) {
  const auto bias_at = [](double t_fs) {
    return BiasPoint{0.3 + 0.1 * std::pow(std::sin(units::kPi * std::min(t_fs, 40.0) / 40.0), 2),
                     0.3};
  };
  const auto passed_in = [&](double step_fs) {
    SmallTransient run(small_film(), bias_at, {{0.3, 0.3}, {0.4, 0.3}},
                       {.step_fs = step_fs, .cfl = 0.7 * step_fs});
    double passed = 0.0;
    const int steps = static_cast<int>(std::lround(32.0 / step_fs));
    for (int n = 0; n < steps; ++n) passed += run.transient.step(step_fs).passed[10];
    return passed;
  };
  const double coarse = passed_in(1.0), fine = passed_in(0.25);
  EXPECT_LT(std::fabs(coarse - fine), 1e-3 * fine);
}

std::vector<Setting> pulse(const std::vector<Setting>& settings = {}) {
  std::vector<Setting> all{
      {"run.mode", "transient"},
      {"bias.vgs", "0.3"},
      {"bias.vds", "0.3"},
      {"run.t_end_fs", "30"},
      {"output.every_fs", "1.0"},
      {"bias.waveform_vgs", "[[3.0, 0.0], [8.5, 0.1], [15.0, 0.1], [18.0, 0.0]]"}};
  all.insert(all.end(), settings.begin(), settings.end());
  return all;
}

PointResult run_pulse(const Deck& deck, const std::filesystem::path& checkpoints,
                      Progress& progress) {
  return run_sweep(deck,
                   {.devices = {find_device("cpu")},
                    .checkpoint_directory = checkpoints,
                    .output_directory = {}},
                   progress)[0];
}

// By Kirchhoff's law the conduction and displacement currents into the three terminals add to zero
// at all times of a pulse on gate and drain. They do so to the tolerance of Poisson's equation.
TEST(BeamTransient, TerminalCurrentsAddToNothing) {
  SilentProgress silent;
  const PointResult point = run_pulse(
      small_film(
          pulse({{"run.tol_v", "1e-12"}, {"bias.waveform_vds", "[[6.0, 0.0], [12.0, 0.1]]"}})),
      {}, silent);
  const auto& currents = point.arrays.at("terminal_currents").values;
  ASSERT_GT(currents.size(), 20u * kTerminalCurrentWidth);
  double largest_gate = 0.0;
  for (std::size_t row = 0; row < currents.size(); row += kTerminalCurrentWidth) {
    const double scale = std::max(
        {std::fabs(currents[row + 1]), std::fabs(currents[row + 2]), std::fabs(currents[row + 3])});
    EXPECT_LT(std::fabs(currents[row + 1] + currents[row + 2] + currents[row + 3]), 1e-7 * scale)
        << currents[row];
    largest_gate = std::max(largest_gate, std::fabs(currents[row + 3]));
  }
  EXPECT_GT(largest_gate, 100.0);  // A/m; the charging current of the gate is not small
  EXPECT_EQ(point.status, PointStatus::kFinished);
  EXPECT_NEAR(point.numbers.at("time_fs"), 30.0, 1e-9);
}

/// Cancels a run after a given number of reports of progress.
class Impatient : public SilentProgress {
 public:
  explicit Impatient(int reports) : left_(reports) {}
  bool cancelled() const override { return left_ <= 0; }
  bool checkpoint_wanted() override { return true; }

 protected:
  void on_report(std::string_view, std::int64_t, std::int64_t) override { --left_; }

 private:
  int left_;
};

TEST(BeamTransient, AResumedPulseHasTheSameBits) {
  const Deck deck = small_film(pulse({{"run.refresh_steps", "4"}, {"contact.inflow", "neutral"}}));
  SilentProgress silent;
  const PointResult expected = run_pulse(deck, {}, silent);
  const test::TemporaryDirectory directory;
  int interruptions = 0;
  for (;;) {
    ASSERT_LT(interruptions, 20);
    Impatient progress(9);
    try {
      const PointResult found = run_pulse(deck, directory.path(), progress);
      EXPECT_EQ(found.numbers, expected.numbers);
      for (const char* name : {"history", "terminals", "potential", "sheet_density"})
        EXPECT_EQ(found.arrays.at(name).values, expected.arrays.at(name).values) << name;
      break;
    } catch (const Cancelled&) {
      ++interruptions;
    }
  }
  EXPECT_GE(interruptions, 2);
}

// Each refusal names the key and the remedy.
TEST(BeamTransient, DecksThatHaveNoTransientAreRefused) {
  const auto refusal = [](const std::vector<Setting>& settings) -> std::string {
    std::vector<Setting> all{{"run.scheme", "beam"}, {"run.mode", "transient"}};
    all.insert(all.end(), settings.begin(), settings.end());
    try {
      parse_deck("", all, "test deck", ".");
    } catch (const InvalidInput& failure) {
      return failure.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({}), "");
  for (const auto& [settings, expected] : std::vector<std::pair<std::vector<Setting>, std::string>>{
           {{{"run.mode", "mobility"}}, "needs run.mode = \"steady\" or \"transient\""},
           {{{"run.tunnelling", "true"}}, "run.tunnelling needs run.mode = \"steady\""},
           {{{"run.start_from", "r.h5"}}, "run.start_from needs run.mode = \"steady\""},
           {{{"output.pdf_at_fs", "[1.0]"}}, "output.pdf_at_fs needs run.scheme = \"weno\""},
           {{{"small_signal.frequencies_hz", "[1e12]"}}, "needs steady states"}}) {
    const std::string message = refusal(settings);
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace quasi::mosfet

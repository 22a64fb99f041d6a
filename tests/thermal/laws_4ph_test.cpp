#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/reference_data.hpp"
#include "workers/backend/error.hpp"
#include "workers/thermal/input/deck.hpp"
#include "workers/thermal/solver/four_phonon_run.hpp"

namespace quasi::thermal {
namespace {

/// The shipped Stillinger–Weber crystal on a coarse mesh, with fourth order.
Deck coarse_deck(std::vector<Setting> more = {}) {
  std::vector<Setting> settings{{"ngrid", "4 4 4"}, {"four_phonon", ".true."}, {"scalebroad", "1.0"}};
  settings.insert(settings.end(), more.begin(), more.end());
  return read_deck(quasi::test::source_dir() / "examples/thermal/silicon-sw", settings);
}

Rates4ph rates_at(const Deck& deck, const Modes& modes, const std::vector<std::int32_t>& points,
                  Progress& progress, const std::filesystem::path& checkpoints = {}) {
  const Problem4ph problem =
      make_problem_4ph(deck.crystal, modes, deck.symmetry, deck.control, *deck.fourth_order, points);
  const auto kernels = make_scattering_kernels_4ph_cpu();
  Rates4ph rates = scattering_rates_4ph(problem, deck.control.constants(), *kernels, progress, checkpoints);
  average_degenerate_4ph(modes, points, rates);
  return rates;
}

// At k_BT ≫ ħω every occupation is proportional to T, and the Bose factors to its square.
TEST(Laws4ph, RatesGrowWithTheSquareOfTheTemperatureWhenHot) {
  const Deck deck = coarse_deck({{"T", "4000 8000"}});
  SilentProgress silent;
  const Modes modes = start_run(deck, silent).modes;
  const Rates4ph rates = rates_at(deck, modes, deck.symmetry.irreducible, silent);
  double cold = 0.0, hot = 0.0;
  for (std::int64_t row = 0; row < rates.n_rows; ++row) {
    cold += rates.total_per_ps(0, row);
    hot += rates.total_per_ps(1, row);
  }
  EXPECT_NEAR(std::log2(hot / cold), 2.0, 0.02);
}

/// Asks for a checkpoint after every tile and cancels after some.
class Interrupting : public SilentProgress {
 public:
  explicit Interrupting(int tiles) : left_(tiles) {}
  bool checkpoint_wanted() override { return true; }
  bool cancelled() const override { return left_ < 0; }
  void checkpoint_ready(const std::string&, std::int64_t step) override { last_step = step; }
  std::int64_t last_step = 0;

 protected:
  void on_report(std::string_view, std::int64_t, std::int64_t) override { --left_; }

 private:
  int left_;
};

// A run that is cancelled and resumed ends with the bits of an undisturbed one.
TEST(Laws4ph, ResumedRunHasTheSameBits) {
  const Deck deck = coarse_deck();
  SilentProgress silent;
  const Modes modes = start_run(deck, silent).modes;
  const Rates4ph whole = rates_at(deck, modes, deck.symmetry.irreducible, silent);
  const quasi::test::TemporaryDirectory directory;
  Interrupting interrupting(3);
  EXPECT_THROW(rates_at(deck, modes, deck.symmetry.irreducible, interrupting, directory.path()), Cancelled);
  EXPECT_GT(interrupting.last_step, 0);
  const Rates4ph resumed = rates_at(deck, modes, deck.symmetry.irreducible, silent, directory.path());
  EXPECT_EQ(whole.normal_per_ps, resumed.normal_per_ps);
  EXPECT_EQ(whole.umklapp_per_ps, resumed.umklapp_per_ps);
  EXPECT_EQ(whole.processes, resumed.processes);
}

// What is not available is refused by name, not left out in silence.
TEST(Laws4ph, RefusesWhatItCannotDo) {
  for (const Setting& setting : {Setting{"four_phonon_iteration", ".true."},
                                 Setting{"num_sample_process_4ph", "1000"},
                                 Setting{"strategy", "'list-host'"}}) {
    const Deck deck = coarse_deck({setting});
    EXPECT_THROW(require_supported_4ph(deck.control), InvalidInput) << setting.key;
  }
}

}  // namespace
}  // namespace quasi::thermal

// Mean fields that are well-formed files of the wrong physics: each ends the job before ε⁻¹. Lists
// of k-points that are right in another form: each is accepted.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>

#include "tests/gw/support/silicon_files.hpp"
#include "tests/support/temporary_directory.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/gw_task.hpp"
#include "workers/gw/output/result_file.hpp"
#include "workers/gw/solver/calculation/gw_calculation.hpp"
#include "workers/gw/solver/screening/sub_grid.hpp"

namespace quasi::gw {
namespace {

constexpr const char* kTables =
    "[meanfield]\nwfn = \"WFN\"\nwfnq = \"WFNq\"\nrho = \"RHO\"\n[epsilon]\ncutoff_ry = 2.0\n";

class FalseMeanField : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    // GaAs lacks inversion, so that k and −k both stand in a list of its operations alone.
    EmpiricalCrystal crystal{
        .name = "gaas", .wavefunction_cutoff_ry = 4.0, .k_grid = {3, 3, 3}, .bands = 12};
    gallium_arsenide_ = new MeanField(empirical_mean_field(crystal, *kernels, silent));
    silicon_ = new MeanField(test::silicon_for_files(4.0, 12));
  }
  static void TearDownTestSuite() {
    delete gallium_arsenide_;
    delete silicon_;
  }

  /// Writes the files of a mean field after `change`.
  void write(const MeanField& field, const std::function<void(MeanField&)>& change = {}) {
    MeanField copy = field;
    if (change) change(copy);
    test::write_files_of(copy, directory_.path());
  }
  Calculation run(const std::string& sigma = "", const std::string& more = "") {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    const std::string deck = kTables + epsilon_ + "[sigma]\n" + sigma + more;
    return run_calculation(parse_deck(deck, {}, "deck.toml", directory_.path()), *kernels,
                           std::int64_t{1} << 30, silent);
  }
  /// Validates the deck that run() runs.
  void validate(const std::string& sigma) {
    std::ofstream(directory_.path() / "deck.toml") << kTables + epsilon_ + "[sigma]\n" + sigma;
    make_gw_task()->validate({.path = directory_.path() / "deck.toml", .settings = {}},
                             find_device("cpu"));
  }
  static void expect_refusal(const std::vector<std::string>& words,
                             const std::function<void()>& action) {
    try {
      action();
      FAIL() << "accepted";
    } catch (const InvalidInput& failure) {
      for (const std::string& word : words)
        EXPECT_NE(std::string(failure.what()).find(word), std::string::npos)
            << failure.what() << "\nlacks: " << word;
    }
  }
  /// Expects that a run and the validation of a deck fail with the same words.
  void expect_error(const std::vector<std::string>& words, const std::string& sigma = "") {
    expect_refusal(words, [&] { run(sigma); });
    expect_refusal(words, [&] { validate(sigma); });
  }
  static bool notes_hold(const Calculation& run, const std::string& part) {
    return std::any_of(run.plan.notes.begin(), run.plan.notes.end(),
                       [&](const auto& note) { return note.find(part) != std::string::npos; });
  }
  /// Two k-points of the list that time reversal maps onto each other.
  static std::pair<std::size_t, std::size_t> reversed_pair(const MeanField& field) {
    for (std::size_t i = 0; i < field.waves.k.size(); ++i) {
      const auto at = field.zone.index_of(-1.0 * field.waves.k[i]);
      const auto j =
          static_cast<std::size_t>(field.zone.points()[static_cast<std::size_t>(at)].irreducible);
      if (j > i) return {i, j};
    }
    throw std::runtime_error("no pair");
  }
  static void displace_density(MeanField& field) {
    auto& rho = field.density;
    for (std::size_t i = 0; i < rho.header.g.size(); ++i)
      rho.values[0][i] *= std::polar(1.0, 0.5 * kPi * rho.header.g[i][0]);
  }

  static inline MeanField *gallium_arsenide_ = nullptr, *silicon_ = nullptr;
  quasi::test::TemporaryDirectory directory_;
  std::string epsilon_;
};

TEST_F(FalseMeanField, SoundFilesAreAccepted) {
  for (const MeanField* field : {gallium_arsenide_, silicon_}) {
    write(*field);
    EXPECT_NO_THROW(run());
    EXPECT_NO_THROW(validate(""));
  }
}

TEST_F(FalseMeanField, ExchangedKPoints) {
  const auto [i, j] = reversed_pair(*gallium_arsenide_);
  write(*gallium_arsenide_,
        [i = i, j = j](MeanField& f) { std::swap(f.waves.k[i], f.waves.k[j]); });
  expect_error({"WFN", "|k+G|²", "above the cut-off of 4 Ry", "exchanged"});
  write(*gallium_arsenide_, [](MeanField& f) { std::swap(f.waves.k[1], f.waves.k.back()); });
  expect_error({"WFN", "|k+G|²", "exchanged"});
}

TEST_F(FalseMeanField, EnergiesThatTimeReversalForbids) {
  const auto [i, j] = reversed_pair(*gallium_arsenide_);
  write(*gallium_arsenide_, [j = j](MeanField& f) {
    f.waves.energy_ry[j * static_cast<std::size_t>(f.waves.n_bands)] -= 1e-3;
  });
  expect_error({"band 1", "k-point " + std::to_string(i + 1), "k-point " + std::to_string(j + 1),
                "time reversal"});
}

TEST_F(FalseMeanField, EnergiesInElectronvolts) {
  write(*silicon_, [](MeanField& f) {
    for (auto* list : {&f.waves.energy_ry, &f.shifted->energy_ry})
      for (double& e : *list) e *= kRydberg_ev;
  });
  expect_error({"f_sum", "other units", "[checks] accept = [\"f_sum\"]"});
}

TEST_F(FalseMeanField, DisplacedDensity) {
  write(*silicon_, displace_density);
  expect_error({"density = ", "outside 0 … ", "[checks] accept = [\"density\"]"});
}

// A translation of an operation that is lost leaves every norm and energy as it was.
TEST_F(FalseMeanField, OperationsWithoutTheirTranslations) {
  write(*silicon_, [](MeanField& f) {
    for (Wavefunctions* waves : {&f.waves, &*f.shifted})
      for (SymmetryOperation& s : waves->header.crystal.symmetries) s.translation = {};
  });
  expect_error({"density = "});
}

TEST_F(FalseMeanField, ShiftedZeroOfEnergyOfTheSecondSet) {
  for (const double shift_ry : {0.05, -0.05}) {
    write(*silicon_, [shift_ry](MeanField& f) {
      for (double& e : f.shifted->energy_ry) e += shift_ry;
    });
    expect_error({"WFNq", "band 1 at k-point 1", "one zero of energy"});
  }
}

// A law that the user accepts is a note, and the tables of energies carry their plain names. One
// that is found after Σ and not accepted renames them.
TEST_F(FalseMeanField, AcceptedLawsAreNotes) {
  write(*silicon_, displace_density);
  const Calculation accepted = run("", "[checks]\naccept = [\"density\"]\n");
  EXPECT_TRUE(notes_hold(accepted, "self-test: density"));
  EXPECT_TRUE(accepted.violated_laws.empty());
  EXPECT_THROW(run("", "[checks]\naccept = [\"densit\"]\n"), InvalidInput);

  PlaneWaveField zero = silicon_->density;
  zero.header.title = "VXC-Complex";
  for (Cplx& value : zero.values[0]) value = 0.0;
  write(*silicon_);
  Calculation sound = run();
  for (Quasiparticle& qp : sound.quasiparticles) qp.qp0_ev = qp.qp1_ev = 0.0;
  write_energies(directory_.path(), sound);
  EXPECT_TRUE(std::filesystem::exists(directory_.path() / "eqp1.dat"));
  std::filesystem::remove(directory_.path() / "eqp1.dat");
  sound.violated_laws = {"multiplets"};
  write_energies(directory_.path(), sound);
  EXPECT_FALSE(std::filesystem::exists(directory_.path() / "eqp1.dat"));
  EXPECT_TRUE(std::filesystem::exists(directory_.path() / "eqp1.dat.violated"));
}

// States that members of a multiplet do not share are found after Σ: the job ends with its results,
// and names the law.
TEST_F(FalseMeanField, ALawFoundAfterSigmaMarksTheResults) {
  write(*silicon_, [](MeanField& f) {
    KPointWaves& at = f.waves.waves[0];
    const std::size_t n = at.g.size();
    Cplx *a = at.coefficients[0].data() + 3 * n, *b = at.coefficients[0].data() + 4 * n;
    for (std::size_t i = 0; i < n; ++i) {
      const Cplx old = a[i];
      a[i] = std::sqrt(0.995) * old + std::sqrt(0.005) * b[i];
      b[i] = std::sqrt(0.995) * b[i] - std::sqrt(0.005) * old;
    }
  });
  const Calculation marked = run();
  EXPECT_EQ(marked.violated_laws, std::vector<std::string>{"multiplets"});
}

// A list without −k is completed by conjugate states: the same Σ as from the whole list.
TEST_F(FalseMeanField, AListReducedByTimeReversalIsCompleted) {
  write(*gallium_arsenide_);
  const Calculation whole = run();
  const std::size_t n_k = gallium_arsenide_->waves.k.size();
  std::size_t removed = 0;
  write(*gallium_arsenide_, [&](MeanField& f) {
    for (std::size_t j = f.waves.k.size(); j-- > 0;) {
      const auto at = f.zone.index_of(-1.0 * f.waves.k[j]);
      if (static_cast<std::size_t>(f.zone.points()[static_cast<std::size_t>(at)].irreducible) >= j)
        continue;
      Wavefunctions& w = f.waves;
      const auto row = static_cast<std::ptrdiff_t>(j), bands = std::ptrdiff_t{w.n_bands};
      w.k.erase(w.k.begin() + row);
      w.weight.erase(w.weight.begin() + row);
      w.waves.erase(w.waves.begin() + row);
      w.first_occupied.erase(w.first_occupied.begin() + row);
      w.last_occupied.erase(w.last_occupied.begin() + row);
      w.energy_ry.erase(w.energy_ry.begin() + row * bands, w.energy_ry.begin() + (row + 1) * bands);
      w.occupation.erase(w.occupation.begin() + row * bands,
                         w.occupation.begin() + (row + 1) * bands);
      ++removed;
    }
    double total = 0.0;
    for (const double w : f.waves.weight) total += w;
    for (double& w : f.waves.weight) w /= total;
  });
  ASSERT_GT(removed, 0u);
  const Calculation completed = run();
  EXPECT_TRUE(notes_hold(completed, std::to_string(removed) + " points −k are added"));
  EXPECT_EQ(completed.field.waves.k.size(), n_k);
  int compared = 0;
  for (const Quasiparticle& a : whole.quasiparticles)
    for (const Quasiparticle& b : completed.quasiparticles) {
      IVec3 g{};
      if (a.band != b.band || !nearest_lattice_point(a.k - b.k, &g)) continue;
      EXPECT_NEAR(a.sigma_ev, b.sigma_ev, 1e-6);
      ++compared;
    }
  EXPECT_EQ(compared, static_cast<int>(whole.quasiparticles.size()));
}

// A k-point may be named by any of its images.
TEST_F(FalseMeanField, AnEquivalentKPointIsMapped) {
  write(*silicon_);
  const Calculation listed = run("kpoints = [[0, 0, 0.5]]\n"),
                    image = run("kpoints = [[0.5, 0, 0], [0, 0, -0.5]]\n");
  EXPECT_TRUE(notes_hold(image, "(0.5, 0, 0), which is calculated at (0, 0, 0.5)"));
  ASSERT_EQ(image.quasiparticles.size(), listed.quasiparticles.size());
  for (std::size_t i = 0; i < listed.quasiparticles.size(); ++i)
    EXPECT_EQ(image.quasiparticles[i].sigma_ev, listed.quasiparticles[i].sigma_ev);
}

// Bands 2 to 4 at Γ are one multiplet: a window inside it becomes the multiplet.
TEST_F(FalseMeanField, AWindowGrowsToWholeMultiplets) {
  write(*silicon_);
  const Calculation grown = run("kpoints = [[0, 0, 0]]\nband_min = 3\nband_max = 3\n");
  EXPECT_EQ(grown.plan.sigma.band_min, 2);
  EXPECT_EQ(grown.plan.sigma.band_max, 4);
  EXPECT_TRUE(notes_hold(grown, "sigma.band_min = 3 splits a multiplet; states from band 2"));
  EXPECT_TRUE(notes_hold(grown, "sigma.band_max = 3 splits a multiplet; states up to band 4"));
}

TEST_F(FalseMeanField, CutOffsAndBandsBeyondTheStates) {
  write(*silicon_);
  epsilon_ = "bands = 4\n";
  expect_error({"epsilon.bands = 4 leaves no empty band", "4 bands are occupied", "5 or more"});
  epsilon_ = "bands = 10\n";
  EXPECT_TRUE(notes_hold(run(), "epsilon.bands = 10 takes all bands of the wavefunctions"));
  epsilon_ = "";
  EXPECT_FALSE(notes_hold(run(), "takes all bands"));
  const auto with_cutoff = [&](const char* cutoff_ry) {
    const auto kernels = make_gw_kernels(find_device("cpu"));
    SilentProgress silent;
    return run_calculation(
        parse_deck(kTables, {{"epsilon.cutoff_ry", cutoff_ry}}, "deck.toml", directory_.path()),
        *kernels, std::int64_t{1} << 30, silent);
  };
  const Calculation high = with_cutoff("4.5");
  EXPECT_TRUE(notes_hold(high, "epsilon.cutoff_ry = 4.5 exceeds the cut-off of the wavefunctions"));
  EXPECT_EQ(high.plan.sigma.bare_cutoff_ry, 4.5) << "exchange reaches as far as W";
  try {
    with_cutoff("17");
    FAIL() << "accepted";
  } catch (const InvalidInput& failure) {
    EXPECT_NE(std::string(failure.what()).find("epsilon.cutoff_ry = 17 exceeds 16 Ry"),
              std::string::npos)
        << failure.what();
  }
}

// The density of a coarse grid differs from RHO of a fine one, and is no error: 0.076, 0.015 and
// 0.005 per electron on 1, 2 and 3 points along each axis of silicon.
TEST_F(FalseMeanField, ADensityOfAFinerGridIsAccepted) {
  const auto kernels = make_gw_kernels(find_device("cpu"));
  DeviceTeam team(*kernels);
  SilentProgress silent;
  const EmpiricalCrystal crystal{
      .wavefunction_cutoff_ry = 5.0, .k_grid = {4, 4, 4}, .bands = 24, .by_velocity = true};
  const MeanField fine = empirical_mean_field(crystal, *kernels, silent);
  for (const int n : {1, 2}) {
    const Calculation run =
        solve_mean_field(parse_deck(kTables, {}, "deck.toml", "."), on_sub_grid(fine, {n, n, n}),
                         {.team = team, .memory_budget_bytes = std::int64_t{1} << 30}, silent);
    const auto density = std::find_if(run.self_test.begin(), run.self_test.end(),
                                      [](const SelfCheck& c) { return c.name == "density"; });
    EXPECT_GT(*density->value, 0.01) << n;
    EXPECT_TRUE(density->passed()) << n;
  }
}

}  // namespace
}  // namespace quasi::gw

// Tests jobs with renormalised phonons: every level of theory against jobs of their own, and
// crystals whose bare phonons are unstable (docs/theory/thermal.md 14).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "examples/thermal/generate/quartic_bonds.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/thermal/decks/model_deck.hpp"
#include "tests/thermal/decks/small_deck.hpp"
#include "tests/thermal/renormalisation/ladder_job.hpp"
#include "workers/thermal/physics/physical_constants.hpp"
#include "workers/thermal/physics/q_mesh.hpp"
#include "workers/units/constants.hpp"

namespace quasi::thermal::test {
namespace {

// The corrected constants are written with all digits, so that rounding and the tolerance of the
// iteration of the transport equation, 1e-5 squared, are the only differences: limit 1e-9.
TEST(Ladder, EachLevelEqualsAJobWithTheCorrectedConstants) {
  const quasi::test::TemporaryDirectory out;
  const Settings mesh{"ngrid=3,3,3", "eps=1e-9"};
  Settings ladder_settings = mesh;
  ladder_settings.insert(ladder_settings.end(), {"renormalise=T", "four_phonon=T", "T=300,900"});
  const auto ladder = run(model("silicon-sw"), ladder_settings, out.path() / "ladder");
  const nlohmann::json own_temperatures = ladder["temperatures_k"];
  ASSERT_EQ(own_temperatures, nlohmann::json({300.0, 900.0}));
  for (std::size_t t = 0; t < 2; ++t) {
    const DeckCopy deck(model("silicon-sw"));
    add_correction_to_file(out.path() / "ladder/result.h5", t, 3,
                           deck.path() / "FORCE_CONSTANTS_2ND");
    const DeckCopy bare(model("silicon-sw"));
    for (const bool renormalised : {false, true})
      for (const bool four : {false, true}) {
        const std::string phonons = renormalised ? "renormalised" : "bare";
        const std::string scattering = four ? "3ph+4ph" : "3ph";
        const std::string what = phonons + " " + scattering + " " + std::to_string(t);
        Settings settings = mesh;
        settings.push_back(t == 0 ? "T=300" : "T=900");
        settings.push_back(four ? "four_phonon=T" : "four_phonon=F");
        const auto job =
            run((renormalised ? deck : bare).path(), settings, out.path() / (what + " job"));
        expect_equal_tensors(level_of(ladder, phonons, scattering, "RTA", t),
                             job["kappa_rta_w_per_mk"][0], 1e-9, what + " RTA");
        expect_equal_tensors(level_of(ladder, phonons, scattering, "BTE", t),
                             job["kappa_w_per_mk"][0], 1e-9, what + " BTE");
        if (!four) continue;
        nlohmann::json total = job["kappa_w_per_mk"][0];
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j)
            total[i][j] =
                total[i][j].get<double>() + job["kappa_coherence_w_per_mk"][0][i][j].get<double>();
        expect_equal_tensors(level_of(ladder, phonons, "3ph+4ph+coh.", "BTE", t), total, 1e-9,
                             what + " total");
        if (!renormalised) continue;
        EXPECT_EQ(ladder["kappa_w_per_mk"][t], level_of(ladder, phonons, scattering, "BTE", t));
      }
    // The renormalisation changes κ by far more than the limit above.
    const double bare_kappa = level_of(ladder, "bare", "3ph", "BTE", t)[0][0];
    const double kappa = level_of(ladder, "renormalised", "3ph", "BTE", t)[0][0];
    EXPECT_GT(std::fabs(kappa / bare_kappa - 1.0), 1e-3);
  }
}

TEST(Ladder, AFourthOrderOfZeroGivesTheBitsOfBarePhonons) {
  const DeckCopy deck(model("silicon-sw"));
  std::string zero = "1\n\n1\n0 0 0\n0 0 0\n0 0 0\n1 1 1 1\n";
  for (int e = 0; e < 81; ++e) {
    for (const int stride : {27, 9, 3, 1}) zero += std::to_string(e / stride % 3 + 1) + " ";
    zero += "0.0\n";
  }
  write(deck.path() / "FORCE_CONSTANTS_4TH", zero);
  const quasi::test::TemporaryDirectory out;
  run(deck.path(), {"ngrid=4,4,4", "renormalise=T"}, out.path() / "ladder", {"bte"});
  run(deck.path(), {"ngrid=4,4,4"}, out.path() / "plain", {"bte"});
  const fs::path renormalised = out.path() / "ladder/renormalised_300K";
  const H5Reader plain(out.path() / "plain/result.h5");
  for (const fs::path& place : {renormalised, out.path() / "ladder/bare"}) {
    const H5Reader own(place / "result.h5");
    for (const char* name :
         {"/modes/omega", "/modes/velocity", "/rates/3ph_absorption", "/rates/3ph_emission",
          "/kappa/rta", "/kappa/converged", "/kappa/coherence", "/gruneisen/by_mode",
          "/by_temperature/mode_kappa", "/by_temperature/cumulative_by_path/kappa"})
      EXPECT_EQ(own.doubles(name), plain.doubles(name)) << place << name;
  }
  EXPECT_EQ(read(renormalised / "T300K/BTE.w_final"), read(out.path() / "plain/T300K/BTE.w_final"));
}

// The frequencies come from an independent program in another language and are printed to eight
// digits. Its mass of silicon is larger by 4e-7, which changes ω by 2e-7: limit 5e-7.
TEST(Ladder, FrequenciesOfSiliconAgreeWithAnIndependentProgram) {
  const quasi::test::TemporaryDirectory out;
  run(quasi::test::source_dir() / "examples/thermal/silicon",
      {"ngrid=4,4,4", "T=300,1000", "renormalise=T", "onlyharmonic=T"}, out.path());
  const H5Reader result(out.path() / "result.h5");
  const auto bare = result.doubles("/ladder/bare_omega");
  const auto omega = result.doubles("/ladder/omega");
  const QMesh mesh{{4, 4, 4}};
  const auto gamma = 6 * mesh.index(0, 0, 0), x = 6 * mesh.index(2, 2, 0),
             l = 6 * mesh.index(2, 2, 2);
  constexpr double kLimit = 5e-7;
  const auto expect = [&](double value, double expected) {
    EXPECT_NEAR(value / expected, 1.0, kLimit) << expected;
  };
  expect(bare[gamma + 5], 95.956437);
  expect(bare[x], 26.636931);
  expect(omega[gamma + 5], 95.595624);
  expect(omega[x], 26.032276);
  expect(omega[x + 5], 86.183092);
  expect(omega[l], 19.926390);
  const std::size_t hot = bare.size();
  expect(omega[hot + gamma + 5], 94.508220);
  expect(omega[hot + x], 25.183685);
  expect(omega[hot + l], 19.260326);
}

/// Constants of the bonds along and across themselves.
struct BondConstants {
  double along = 0.0;
  double across = 0.0;
};

/// Solves k = k_0 + g⟨d²⟩/2 for the two constants of quartic bonds by damped iteration, with
///   ω²(q) = (2/m) Σ_β k_β (1 − cos q_β), k_β = along for β = α, else across,
///   ⟨d_β²⟩ = ħ/(m N_s) Σ_q coth(ħω/2k_BT)/ω · (1 − cos q_β) for motion along x.
BondConstants solve_bonds(const quasi::model::QuarticBonds& bonds, double temperature_k, int n) {
  const double mass = 28.0855;
  const double unit = kCodata2018.ev_per_a2_amu_to_omega2;
  const double hbar = kCodata2018.hbar_1e34_j_s / (units::kAtomicMass_kg * 1e27) * 10;
  BondConstants k{bonds.along_ev_a2, 1.0};
  for (int step = 0; step < 2000; ++step) {
    double along = 0.0, across = 0.0;
    for (int point = 1; point < n * n * n; ++point) {
      double shape[3];
      for (int axis = 0, rest = point; axis < 3; ++axis, rest /= n)
        shape[axis] = 1.0 - std::cos(2.0 * units::kPi * (rest % n) / n);
      const double omega =
          std::sqrt(2.0 * unit / mass * (k.along * shape[0] + k.across * (shape[1] + shape[2])));
      const double coth =
          1.0 / std::tanh(0.5 * kCodata2018.hbar_over_kb_k_ps() * omega / temperature_k);
      along += coth / omega * shape[0];
      across += coth / omega * shape[1];
    }
    const double factor = 0.5 * bonds.quartic_ev_a4 * hbar / (mass * n * n * n);
    k.along += 0.3 * (bonds.along_ev_a2 + factor * along - k.along);
    k.across += 0.3 * (bonds.across_ev_a2 + factor * across - k.across);
  }
  return k;
}

// The iteration above ends at rounding, and that of the job at 1e-10 of the largest constant,
// 10 eV/Å². The softest constant is 0.2 eV/Å², so that ω is equal to 1e-8.
TEST(Ladder, ACrystalThatIsUnstableAtZeroKelvinRuns) {
  const fs::path deck = model("quartic-cubic");
  const quasi::test::TemporaryDirectory out;
  expect_refused([&] { run(deck, {"four_phonon=F"}, out.path() / "bare job"); }, {"imaginary"});
  const auto summary = run(deck, {"T=100,300,600", "renormalise=T"}, out.path() / "ladder");
  const H5Reader result(out.path() / "ladder/result.h5");
  const auto bare = result.doubles("/ladder/bare_omega");
  EXPECT_LT(*std::min_element(bare.begin(), bare.end()), -10.0);
  const auto omega = result.doubles("/ladder/omega");
  const double unit = kCodata2018.ev_per_a2_amu_to_omega2;
  for (std::size_t t = 0; t < 3; ++t) {
    const BondConstants k = solve_bonds({}, summary["temperatures_k"][t], 4);
    ASSERT_GT(k.across, 0.05);
    // At (½,0,0) two transverse modes lie below the longitudinal one.
    const auto x = t * 64 * 3 + 3 * QMesh{{4, 4, 4}}.index(2, 0, 0);
    EXPECT_NEAR(omega[x] / std::sqrt(4.0 * unit * k.across / 28.0855), 1.0, 1e-8);
    EXPECT_NEAR(omega[x + 2] / std::sqrt(4.0 * unit * k.along / 28.0855), 1.0, 1e-8);
    EXPECT_GT(level_of(summary, "renormalised", "3ph+4ph", "RTA", t)[0][0].get<double>(), 0.0);
    EXPECT_LT(level_of(summary, "renormalised", "3ph+4ph", "RTA", t)[0][0].get<double>(),
              level_of(summary, "renormalised", "3ph", "RTA", t)[0][0].get<double>());
  }
  for (const auto& level : summary["ladder"]["levels"]) EXPECT_NE(level["phonons"], "bare");
  EXPECT_FALSE(fs::exists(out.path() / "ladder/bare"));
  const std::string table = make_thermal_task()->table(summary);
  EXPECT_NE(table.find("levels of bare phonons are left out"), std::string::npos) << table;
  EXPECT_NE(table.find("renormalised"), std::string::npos) << table;
}

// A crystal close to an instability has a few soft modes with large Grüneisen parameters: their
// mean is 11.8 at 50 K, although no mode above a fifth of the highest frequency exceeds 0.71.
TEST(Ladder, SoftModesDoNotCastDoubtOnTheThirdOrder) {
  const quasi::test::TemporaryDirectory out;
  const auto summary =
      run(model("quartic-cubic"), {"T=50", "renormalise=T", "four_phonon=F"}, out.path());
  EXPECT_GT(summary["mean_gruneisen"][0].get<double>(), 10.0);
  for (const auto& warning : summary["warnings"])
    EXPECT_EQ(warning.get<std::string>().find("Grüneisen"), std::string::npos) << warning;
}

TEST(Ladder, DatasetsHaveUnitsAndDescriptions) {
  const quasi::test::TemporaryDirectory out;
  const auto summary = run(model("silicon-sw"), {"ngrid=4,4,4", "renormalise=T"}, out.path());
  const H5Reader result(out.path() / "result.h5");
  EXPECT_EQ(result.text_attribute("/ladder/kappa", "units"), "W/(m K)");
  EXPECT_EQ(result.text_attribute("/ladder/omega", "units"), "rad/ps");
  EXPECT_EQ(result.text_attribute("/ladder/correction/value", "units"), "eV/angstrom^2");
  EXPECT_NE(result.text_attribute("/ladder/kappa", "description").find("level"), std::string::npos);
  for (const char* name : {"/ladder/omega", "/ladder/bare_omega", "/ladder/correction/atom",
                           "/ladder/correction/cell", "/ladder/correction/value"})
    EXPECT_FALSE(result.text_attribute(name, "description").empty()) << name;
  std::string levels;
  for (const auto& level : summary["ladder"]["levels"])
    for (const char* word : {"phonons", "scattering", "solution"})
      levels += level[word].get<std::string>() + (word[0] == 's' && word[1] == 'o' ? "\n" : " ");
  EXPECT_EQ(levels,
            "bare 3ph RTA\nbare 3ph BTE\nbare 3ph+coh. BTE\nrenormalised 3ph RTA\n"
            "renormalised 3ph BTE\nrenormalised 3ph+coh. BTE\n");
  EXPECT_EQ(result.shape("/ladder/level"), std::vector<std::int64_t>{6});
  EXPECT_EQ(result.doubles("/kappa/converged")[0],
            summary["kappa_w_per_mk"][0][0][0].get<double>());
  EXPECT_EQ(result.doubles("/ladder/kappa").size(), 6u * 9u);
}

// A user who asks where the time went must find the bare case and the self-consistent phonons too.
TEST(Ladder, SecondsCountEveryCase) {
  const quasi::test::TemporaryDirectory out;
  const auto summary =
      run(model("silicon-sw"), {"ngrid=4,4,4", "renormalise=T", "T=200,300"}, out.path() / "out");
  double harmonic_s = 0.0;
  for (const auto& [name, own] : summary["cases"].items())
    harmonic_s += own["seconds"]["harmonic"].get<double>();
  EXPECT_EQ(summary["cases"].size(), 3u);
  EXPECT_DOUBLE_EQ(summary["seconds"]["harmonic"].get<double>(), harmonic_s);
  EXPECT_GT(summary["seconds"]["renormalise"].get<double>(), 0.0);
}

// Silicon of Stillinger and Weber has pairs of neighbours of one atom, one cell apart.
TEST(Ladder, AMeshThatIsTooCoarseForTheFourthOrderIsNamed) {
  const quasi::test::TemporaryDirectory out;
  const auto warned = [&](const std::string& mesh) {
    const auto summary =
        run(model("silicon-sw"),
            {"ngrid=4,4,4", "onlyharmonic=T", "renormalise=T", "renormalise_mesh=" + mesh},
            out.path() / mesh);
    for (const auto& warning : summary["warnings"])
      if (warning.get<std::string>().find("'renormalise_mesh'") != std::string::npos)
        return warning.get<std::string>();
    return std::string();
  };
  EXPECT_NE(warned("1,2,2").find("= 1 2 2 is coarse"), std::string::npos) << warned("1,2,2");
  EXPECT_NE(warned("1,2,2").find("use at least 2 2 2"), std::string::npos) << warned("1,2,2");
  EXPECT_EQ(warned("2,2,2"), "");
}

TEST(Ladder, ValidatePlansAllCases) {
  const auto report = make_thermal_task()->validate(
      source_of(model("silicon-sw"), {"ngrid=4,4,4", "renormalise=T", "T=200,300"}), Device{});
  const auto& plan = report["plan"];
  EXPECT_EQ(plan["ladder"]["cases"], 3);
  EXPECT_EQ(plan["ladder"]["checked_temperature_k"], 200.0);
  EXPECT_GT(plan["ladder"]["seconds_estimate"].get<double>(), 0.0);
  EXPECT_EQ(plan["temperatures_k"], nlohmann::json({200.0, 300.0}));
  const auto unstable =
      make_thermal_task()->validate(source_of(model("quartic-cubic"), {"renormalise=T"}), Device{});
  EXPECT_TRUE(unstable["ok"].get<bool>());
}

TEST(Ladder, ImpossibleCombinationsAreRefused) {
  const quasi::test::TemporaryDirectory out;
  const auto refused = [&](const fs::path& deck, const Settings& settings,
                           const std::vector<std::string>& words) {
    expect_refused([&] { run(deck, settings, out.path()); }, words);
  };
  const fs::path deck = model("silicon-sw");
  refused(deck, {"renormalise=T", "compat=fourphonon"}, {"'renormalise'", "'compat'"});
  refused(deck, {"renormalise=T", "convergence_study=T"},
          {"'renormalise'", "'convergence_study'", "one job for each mesh"});
  refused(deck, {"renormalise_bubble=T"}, {"'renormalise_bubble'", "set renormalise = .true."});
  refused(deck, {"renormalise=T", "renormalise_bubble=T", "onlyharmonic=T"}, {"'onlyharmonic'"});
  refused(deck, {"renormalise_tolerance=0"}, {"renormalise_tolerance"});
  refused(deck, {"renormalise_mesh=0,4,4"}, {"renormalise_mesh"});
  refused(quasi::test::source_dir() / "examples/thermal/silicon-phono3py",
          {"renormalise=T", "ngrid=4,4,4", "T=300"}, {"'renormalise'", "fourth-order"});
  const DeckCopy without(deck);
  fs::remove(without.path() / "FORCE_CONSTANTS_4TH");
  refused(without.path(), {"renormalise=T"}, {"FORCE_CONSTANTS_4TH"});
  EXPECT_THROW(run(deck, {"renormalise=T", "renormalise_iterations=2"}, out.path()), NotConverged);
}

}  // namespace
}  // namespace quasi::thermal::test

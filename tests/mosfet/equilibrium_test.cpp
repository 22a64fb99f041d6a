#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/mosfet/fixtures.hpp"
#include "tests/support/reference_data.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/physics/statistics.hpp"

namespace quasi::mosfet {
namespace {

nlohmann::json reference() {
  std::ifstream in(test::reference_dir() / "device/equilibrium_summary.json");
  return nlohmann::json::parse(in);
}

TEST(FermiIntegrals, KnownValuesAndDerivative) {
  EXPECT_NEAR(fermi_integral_1(0.0), units::kPi * units::kPi / 12.0, 1e-15);
  EXPECT_NEAR(fermi_integral_1(-30.0) / std::exp(-30.0), 1.0, 1e-12);
  for (const double eta : {-8.0, -1.0, -0.01, 0.01, 2.0, 15.0}) {
    const double h = 1e-5;
    EXPECT_NEAR((fermi_integral_1(eta + h) - fermi_integral_1(eta - h)) / (2 * h),
                fermi_integral_0(eta), 1e-9 * (1.0 + std::fabs(eta)));
    EXPECT_NEAR((fermi_integral_0(eta + h) - fermi_integral_0(eta - h)) / (2 * h),
                fermi_function(eta), 1e-9);
  }
}

class Contact : public testing::TestWithParam<std::string> {};

TEST_P(Contact, IsNeutral) {
  const Deck deck =
      test::default_deck(33, 65, {{"statistics.kind", GetParam()}, {"run.mode", "equilibrium"}});
  const Structure s = make_structure(deck);
  const Equilibrium contact = solve_contact(deck, s, 0);
  EXPECT_NEAR(contact.sheet_total_nm2(column_structure(s, 0), 0) / 0.6, 1.0, 1e-12);
}

TEST_P(Contact, ReproducesTheReferenceOnEveryMesh) {
  QUASI_NEED_REFERENCE("device/equilibrium_summary.json");
  for (const int nz : {33, 65, 129}) {
    const Deck deck =
        test::default_deck(33, nz, {{"statistics.kind", GetParam()}, {"run.mode", "equilibrium"}});
    const Structure s = make_structure(deck), column = column_structure(s, 0);
    const Equilibrium contact = solve_contact(deck, s, 0);
    const nlohmann::json document = reference();
    const nlohmann::json& row = document["contact"][GetParam() + "_nz" + std::to_string(nz)];
    EXPECT_NEAR(contact.potential_v[(nz - 1) / 2], row["V_mid"].get<double>(), 1e-8);
    EXPECT_NEAR(contact.potential_v[0], row["V_edge"].get<double>(), 1e-8);
    for (int p = 0; p < 6; ++p) {
      EXPECT_NEAR(contact.energy(column, 0, p, 0), row["energy_nu0"][p].get<double>(), 1e-8);
      EXPECT_NEAR(contact.energy(column, 2, p, 0), row["energy_nu2"][p].get<double>(), 1e-8);
      EXPECT_NEAR(contact.sheet_nm2[2 * 6 + p] / row["sheet_nu2"][p].get<double>(), 1.0, 1e-6);
    }
  }
}

TEST(ContactColumn, PotentialMatchesTheReferenceEverywhere) {
  QUASI_NEED_REFERENCE("device/contact_maxwell_nz65.csv");
  const Deck deck = test::default_deck(33, 65);
  const Equilibrium contact = solve_contact(deck, make_structure(deck), 0);
  const auto rows = test::read_csv(test::reference_dir() / "device/contact_maxwell_nz65.csv");
  ASSERT_EQ(rows.size(), 65u);
  for (int j = 0; j < 65; ++j) {
    EXPECT_NEAR(contact.potential_v[j], rows[j][1], 1e-8);
    EXPECT_NEAR(contact.density_nm3[j], rows[j][2], 1e-8);
  }
}

INSTANTIATE_TEST_SUITE_P(Statistics, Contact, testing::Values("maxwell", "fermi"),
                         [](const auto& one) { return one.param; });

struct Case {
  const char* statistics;
  int mesh;
  double vgs_v;
};
void PrintTo(const Case& one, std::ostream* out) {
  *out << one.statistics << ' ' << one.mesh << "² V_GS " << one.vgs_v;
}

class EquilibriumTable : public testing::TestWithParam<Case> {};

// Newton converges quadratically, and equal meshes give equal numbers to a relative 1e-6.
TEST_P(EquilibriumTable, ReproducesTheReference) {
  QUASI_NEED_REFERENCE("device/equilibrium_summary.json");
  const auto [statistics, mesh, vgs_v] = GetParam();
  const Deck deck = test::default_deck(
      mesh, mesh, {{"statistics.kind", statistics}, {"run.mode", "equilibrium"}});
  const Structure s = make_structure(deck);
  const Equilibrium contact = solve_contact(deck, s, 0);
  const Equilibrium state = solve_equilibrium(deck, s, {vgs_v, 0.0}, contact, contact);
  const int middle = (mesh - 1) / 2;

  const nlohmann::json document = reference();
  nlohmann::json row;
  for (const auto& entry : document["equilibrium"])
    if (entry["statistics"].get<std::string>() == statistics && entry["vgs"].get<double>() == vgs_v)
      row = entry["mesh"][std::to_string(mesh) + "x" + std::to_string(mesh)];
  ASSERT_FALSE(row.is_null());
  const auto relative = [](double a, double b) { return std::fabs(a / b - 1.0); };
  EXPECT_LT(relative(state.potential_v[middle * mesh + middle], row["V_mid"]), 1e-6);
  EXPECT_LT(relative(state.energy(s, 0, 0, middle), row["eps_nu0_p0_mid"]), 1e-6);
  EXPECT_LT(relative(state.energy(s, 2, 0, middle), row["eps_nu2_p0_mid"]), 1e-6);
  EXPECT_LT(relative(state.energy(s, 2, 1, middle), row["eps_nu2_p1_mid"]), 1e-6);
  EXPECT_LT(relative(state.sheet_total_nm2(s, middle), row["sheet_mid"]), 1e-6);

  const auto& steps = state.newton_v;
  ASSERT_GE(steps.size(), 3u);
  EXPECT_LE(steps.size(), 14u);
  for (std::size_t k = 1; k < steps.size(); ++k)
    if (steps[k - 1] < 2e-3) {  // the quadratic regime; before it the start still matters
      EXPECT_LE(steps[k], std::max(10.0 * steps[k - 1] * steps[k - 1], 1e-12)) << "step " << k;
    }

  // With equal gates the solution is symmetric in z, and in x at zero drain bias.
  for (int i = 0; i < mesh; ++i)
    for (int j = 0; j < mesh; ++j) {
      EXPECT_NEAR(state.potential_v[i * mesh + j], state.potential_v[i * mesh + mesh - 1 - j],
                  1e-10);
      EXPECT_NEAR(state.potential_v[i * mesh + j], state.potential_v[(mesh - 1 - i) * mesh + j],
                  1e-10);
    }
}

INSTANTIATE_TEST_SUITE_P(Meshes, EquilibriumTable,
                         testing::Values(Case{"maxwell", 33, 0.6}, Case{"maxwell", 65, 0.2},
                                         Case{"maxwell", 65, 0.6}, Case{"fermi", 33, 0.6},
                                         Case{"fermi", 65, 0.6}, Case{"maxwell", 129, 0.6}),
                         [](const auto& one) {
                           return std::string(one.param.statistics) +
                                  std::to_string(one.param.mesh) + "vgs" +
                                  std::to_string(static_cast<int>(one.param.vgs_v * 10));
                         });

/// Holds potentials of a quasi-equilibrium by Newton's iteration and with a kept matrix.
struct FieldsOfBias {
  std::vector<double> newton_v, kept_v;
  std::vector<double> steps_v;  ///< of the second one
};

FieldsOfBias fields_of(double vgs_v, const std::vector<double>& start_v, KeptMatrix* kept) {
  const Deck deck = test::default_deck(33, 33);
  const Structure s = make_structure(deck);
  const Equilibrium contact = solve_contact(deck, s, 0);
  const BiasPoint bias{vgs_v, 0.1};
  QuasiEquilibriumStart start{.fermi_ev = quasi_fermi_ev(deck, s, bias.vds_v), .potential_v = {}};
  FieldsOfBias found;
  found.newton_v = solve_quasi_equilibrium(deck, s, bias, contact, contact, start).potential_v;
  start = {.fermi_ev = start.fermi_ev, .potential_v = start_v, .tolerance_v = 1e-5, .kept = kept};
  const Equilibrium state = solve_quasi_equilibrium(deck, s, bias, contact, contact, start);
  found.kept_v = state.potential_v;
  found.steps_v = state.newton_v;
  return found;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) largest = std::max(largest, std::fabs(a[k] - b[k]));
  return largest;
}

// A kept matrix gives the potential of Newton's iteration, to the square of its tolerance over kT
// (4e-9 V): from afar, where it is renewed, and 2 mV of the gate away, where it serves for every
// step. With a matrix of its own every step would fall with the square of the last one.
TEST(KeptMatrix, GivesThePotentialOfNewton) {
  KeptMatrix kept;
  const FieldsOfBias far = fields_of(0.5, {}, &kept);
  ASSERT_TRUE(kept.matrix);
  EXPECT_LT(largest_difference(far.newton_v, far.kept_v), 1e-8);
  const std::vector<double> blocks = kept.matrix->blocks();
  const FieldsOfBias near = fields_of(0.502, far.kept_v, &kept);
  EXPECT_LT(largest_difference(near.newton_v, near.kept_v), 1e-8);
  EXPECT_EQ(kept.matrix->blocks(), blocks);
  ASSERT_GE(near.steps_v.size(), 2u);
  EXPECT_LT(near.steps_v[1], 0.25 * near.steps_v[0]);
  const FieldsOfBias farther = fields_of(0.8, near.kept_v, &kept);
  EXPECT_LT(largest_difference(farther.newton_v, farther.kept_v), 1e-8);
  EXPECT_NE(kept.matrix->blocks(), blocks);
}

// The kernel over all states keeps Newton quadratic with two transported subbands. A sum truncated
// to those two enters a limit cycle.
TEST(ContactColumn, TwoSubbandsConvergeToo) {
  const Deck deck = test::default_deck(33, 65, {{"mesh.subbands", "2"}});
  const Equilibrium contact = solve_contact(deck, make_structure(deck), 0);
  EXPECT_LE(contact.newton_v.size(), 10u);
  EXPECT_LT(contact.newton_v.back(), 1e-11);
}

}  // namespace
}  // namespace quasi::mosfet

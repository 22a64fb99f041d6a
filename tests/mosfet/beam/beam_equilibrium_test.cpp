// Tests that the direct solver keeps the equilibria of a whole transistor: three pairs of valleys,
// six subbands each, all processes, both statistics.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/mosfet/beam/beam_fixture.hpp"
#include "tests/mosfet/fixtures.hpp"
#include "tests/support/every_device.hpp"
#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/kernels/beam/beam_kernels.hpp"
#include "workers/mosfet/kernels/transport/transport_cpu.hpp"
#include "workers/mosfet/physics/beam/face_energies.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"
#include "workers/mosfet/solver/transport/transport_setup.hpp"

namespace quasi::mosfet {
namespace {

/// Transport at the levels of an equilibrium.
struct Whole {
  Whole(const Deck& deck, double vgs_v) {
    const Structure s = make_structure(deck);
    const Equilibrium contact = solve_contact(deck, s, 0);
    const Equilibrium field = solve_equilibrium(deck, s, {vgs_v, 0.0}, contact, contact);
    const TransportProblem transport = make_transport_problem(deck, s);
    problem.levels = {.valleys = s.valleys, .subbands = s.subbands, .nx = s.nx};
    for (int v = 0; v < s.n_valleys(); ++v)
      for (int p = 0; p < s.subbands; ++p) {
        problem.level_of.push_back(s.family_of[static_cast<std::size_t>(v)] * s.subbands + p);
        for (int i = 0; i < s.nx; ++i) problem.levels.edge_ev.push_back(field.energy(s, v, p, i));
      }
    problem.grid = make_beam_grid(
        {.dh_ev = 0.0125, .n_kappa = 6}, problem.levels, s.dx_nm, deck.material.alpha_per_ev,
        {.kt_ev = deck.kt_ev(), .fermi = deck.statistics == StatisticsKind::kFermi});
    problem.processes = transport.processes;
    problem.overlap.resize(problem.level_of.size() * problem.level_of.size() * s.nx);
    overlaps(transport, field.subbands.psi.data(), problem.overlap.data());
    problem.inflow = make_beam_inflow(problem.grid, 0.0);
    if (deck.statistics == StatisticsKind::kFermi)
      for (std::size_t row = 0; row < problem.rows(); ++row)
        problem.filling.push_back(
            fermi_function(-problem.grid.centre_ev(row_k(row)) / deck.kt_ev()));
  }

  int row_k(std::size_t row) const { return static_cast<int>(row % problem.grid.n_h); }

  /// ϱ of the discrete equilibrium: every cell of H has the occupation of the contacts.
  std::vector<double> equilibrium_nm2() const {
    const BeamGrid& grid = problem.grid;
    const BeamFactors factors = make_beam_factors(problem.levels);
    std::vector<double> sheet, faces(static_cast<std::size_t>(grid.nx) + 1);
    for (int state = 0; state < problem.levels.n_states(); ++state) {
      const double* nodes = problem.levels.edge_of(state);
      face_energies(nodes, grid.nx, faces.data());
      for (int i = 0; i < grid.nx; ++i) {
        double sum = 0.0;
        for (int k = 0; k < grid.n_h; ++k)
          for (int j = 0; j < grid.n_kappa; ++j) {
            const BeamCell cell = grid.cell(k, j);
            const auto volume = [&](double edge) {
              return beam_volume(cell, grid.shape, grid.alpha_per_ev, edge);
            };
            sum += 2.0 * (volume(faces[i]) + 4.0 * volume(nodes[i]) + volume(faces[i + 1])) / 6.0 *
                   problem.inflow.source[static_cast<std::size_t>(k)] * grid.boltzmann(k);
          }
        sheet.push_back(factors.density[state] * sum);
      }
    }
    return sheet;
  }

  BeamProblem problem;
};

/// Settings of a short device of 17 columns with six subbands of every pair.
Deck short_deck(const char* statistics) {
  return test::default_deck(17, 17,
                            {{"geometry.source_nm", "10"},
                             {"geometry.channel_nm", "12"},
                             {"geometry.drain_nm", "10"},
                             {"mesh.subbands", "6"},
                             {"statistics.kind", statistics}});
}

class BeamEquilibria : public test::OnEveryDevice {};

// V_DS = 0, a random start, 17 columns of 2 nm. The densities are those of the discrete equilibrium
// in every state and column, also where a barrier leaves 1e-13 of the contacts' electrons. Every
// cell weighs the same in this norm.
TEST(BeamEquilibrium, TheDensityOfEveryStateIsThatOfTheEquilibrium) {
  for (const char* statistics : {"maxwell", "fermi"}) {
    const Deck deck = short_deck(statistics);
    for (const double vgs_v : {-0.2, 0.9}) {
      SCOPED_TRACE(std::string(statistics) + " " + std::to_string(vgs_v));
      const Whole whole(deck, vgs_v);
      const BeamProblem& p = whole.problem;
      const BeamGeometry geometry = make_beam_geometry(p.grid, p.levels);
      const BeamScattering scattering(geometry, p.levels, p.processes, p.overlap, p.level_of,
                                      {.filling = p.filling});
      const BeamOperator problem(geometry, scattering, p.inflow, p.order);
      const BeamSolution found =
          solve_beam(problem, scattering, {1e-13, 400, BeamNorm::kOccupation},
                     test::random_values(p.rows(), 0.5, 1.5, 41));
      EXPECT_TRUE(found.converged) << found.residual;
      const std::vector<double> sheet = beam_sheet_density(geometry, found.g),
                                expected = whole.equilibrium_nm2();
      double worst = 0.0;
      for (std::size_t at = 0; at < sheet.size(); ++at)
        if (expected[at] > 0.0) worst = std::max(worst, std::fabs(sheet[at] / expected[at] - 1.0));
      EXPECT_LT(worst, 1e-10);
    }
  }
}

// The kernels of every device reach the same densities, to 1e-10 of the largest one.
TEST_P(BeamEquilibria, TheDensityOfAWholeDeviceIsThatOfItsEquilibrium) {
  for (const char* statistics : {"maxwell", "fermi"}) {
    const Whole whole(short_deck(statistics), 0.35);
    const auto kernels = make_beam_kernels(GetParam());
    kernels->load(whole.problem);
    const BeamMean found =
        kernels->solve(1e-13, 400, test::random_values(whole.problem.rows(), 0.5, 1.5, 41));
    EXPECT_TRUE(found.converged) << found.residual;
    const std::vector<double> sheet = kernels->sheet_density(), expected = whole.equilibrium_nm2();
    for (std::size_t at = 0; at < sheet.size(); ++at)
      ASSERT_NEAR(sheet[at], expected[at], 1e-10 * test::largest(expected)) << statistics << at;
  }
}

QUASI_ON_EVERY_DEVICE(BeamEquilibria);

}  // namespace
}  // namespace quasi::mosfet

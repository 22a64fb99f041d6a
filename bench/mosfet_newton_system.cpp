#include "bench/mosfet_newton_system.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "workers/mosfet/input/make_structure.hpp"
#include "workers/mosfet/kernels/electrostatics/subbands.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"

namespace quasi::mosfet {

double NewtonSystem::residual(const std::vector<double>& x) const {
  const std::vector<double> y = matrix.multiply(x);
  double worst = 0.0;
  for (std::size_t k = 0; k < y.size(); ++k)
    worst = std::max(worst, std::fabs(y[k] - right_side[k]));
  return worst;
}

NewtonSystem standard_newton_system() {
  const Deck deck = parse_deck("parameters = \"paper\"", {}, "bench", ".");
  const Structure s = make_structure(deck);
  const Equilibrium contact = solve_contact(deck, s, 0);
  const BiasPoint bias{0.6, 0.4};
  const Equilibrium state = solve_equilibrium(deck, s, bias, contact, contact);
  const PotentialBoundary boundary = potential_boundary(deck, s, bias, contact, contact);
  const int n = s.interior(), nf = s.n_families();
  std::vector<double> responses(static_cast<std::size_t>(s.nx) * s.nz * s.nz),
      energy(static_cast<std::size_t>(nf) * n), vectors(energy.size() * n);
  for (int i = 0; i < s.nx; ++i) {
    std::vector<const double*> energies, families;
    for (int f = 0; f < nf; ++f) {
      energies.push_back(&energy[static_cast<std::size_t>(f) * n]);
      families.push_back(&vectors[static_cast<std::size_t>(f) * n * n]);
      all_states(s, f, &state.potential_v[static_cast<std::size_t>(i) * s.nz],
                 &energy[static_cast<std::size_t>(f) * n],
                 &vectors[static_cast<std::size_t>(f) * n * n]);
    }
    std::vector<double> sheet;
    for (int k = 0; k < s.n_valleys() * s.subbands; ++k)
      sheet.push_back(state.sheet_nm2[static_cast<std::size_t>(k) * s.nx + i]);
    column_response(s, {energies, families}, sheet.data(), nullptr, true,
                    &responses[static_cast<std::size_t>(i) * s.nz * s.nz]);
  }
  NewtonSystem system{ColumnMatrix(s, boundary, responses),
                      ColumnMatrix(s, boundary, std::vector<double>(responses.size(), 0.0)),
                      std::vector<double>(static_cast<std::size_t>(s.nx) * s.nz)};
  system.matrix.factorise();
  system.laplace.factorise();
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  for (std::size_t k = 0; k < system.right_side.size(); ++k)
    system.right_side[k] = boundary.fixed[k] ? 0.0 : uniform(random);
  return system;
}

}  // namespace quasi::mosfet

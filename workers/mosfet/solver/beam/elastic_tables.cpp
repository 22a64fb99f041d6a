#include "workers/mosfet/solver/beam/elastic_tables.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/kernels/transport/transport_cpu.hpp"

namespace quasi::mosfet {
namespace {

// Ŝ is analytic in √w. Linear interpolation between these points is accurate to 1e-3 at Λ = 1.5 nm.
constexpr int kPoints = 160;
constexpr double kLargestEnergy_ev = 2.0;

double root_step() { return std::sqrt(kLargestEnergy_ev) / (kPoints - 1); }

// Returns the mean kinetic energy of the open part of a cell of H; 0 if the cell is closed.
double kinetic_ev(const BeamGrid& grid, int k, double edge_ev) {
  const double low = std::max(grid.h_low_ev(k), edge_ev), high = grid.h_low_ev(k + 1);
  return std::max(0.0, 0.5 * (low + high) - edge_ev);
}

}  // namespace

ElasticTables::ElasticTables(const DeviceModel& model, const Structure& structure) {
  if (model.scattering.impurities) impurities_ = make_impurities(model, structure);
  if (!(model.scattering.roughness.height_nm > 0.0)) return;
  std::vector<double> w_ev;
  for (int n = 0; n < kPoints; ++n) w_ev.push_back(n * root_step() * n * root_step());
  for (const ValleyPair& valley : structure.valleys)
    spectrum_.push_back(
        roughness_spectrum(model.scattering.roughness, valley, model.material.alpha_per_ev, w_ev));
}

ElasticTables::TablePoint ElasticTables::point_at(double w_ev) {
  const double position = std::min(std::sqrt(w_ev) / root_step(), kPoints - 1.0);
  const int below = std::min(static_cast<int>(position), kPoints - 2);
  return {below, position - below};
}

double ElasticTables::spectrum_at(int valley, const TablePoint& a, const TablePoint& b) const {
  const std::vector<double>& table = spectrum_[static_cast<std::size_t>(valley)];
  const double* row = &table[static_cast<std::size_t>(a.below) * kPoints + b.below];
  const double below = (1.0 - b.share) * row[0] + b.share * row[1];
  const double above = (1.0 - b.share) * row[kPoints] + b.share * row[kPoints + 1];
  return (1.0 - a.share) * below + a.share * above;
}

std::vector<double> ElasticTables::roughness(const TransportProblem& problem, const BeamGrid& grid,
                                             const BeamLevels& levels,
                                             const std::vector<double>& psi) const {
  if (spectrum_.empty()) return {};
  const Structure& s = problem.structure;
  const int np = levels.subbands, nx = grid.nx, nk = grid.n_h;
  const auto n_levels = static_cast<std::size_t>(s.n_families()) * np;
  std::vector<double> strength(n_levels * n_levels * nx);
  roughness_strengths(problem, psi.data(), strength.data());
  std::vector<double> out(static_cast<std::size_t>(levels.n_states()) * np * nx * nk);
#pragma omp parallel for schedule(static)
  for (int i = 0; i < nx; ++i)
    for (int state = 0; state < levels.n_states(); ++state) {
      const int valley = state / np, first = valley * np;
      const auto family = static_cast<std::size_t>(s.family_of[static_cast<std::size_t>(valley)]);
      for (int p = 0; p <= state % np; ++p) {
        const std::size_t pair = (family * np + state % np) * n_levels + family * np + p;
        const double force2 = strength[pair * nx + i];
        for (int k = 0; k < nk; ++k) {
          const TablePoint own = point_at(kinetic_ev(grid, k, levels.edge_of(state)[i])),
                           other = point_at(kinetic_ev(grid, k, levels.edge_of(first + p)[i]));
          const double value = force2 * spectrum_at(valley, own, other);
          const auto cell = [&](int from, int to) {
            return ((static_cast<std::size_t>(from) * np + to) * nx + i) * nk + k;
          };
          out[cell(state, p)] = out[cell(first + p, state % np)] = value;
        }
      }
    }
  return out;
}

std::vector<double> ElasticTables::relaxation_fs(const BeamGrid& grid,
                                                 const BeamLevels& levels) const {
  if (impurities_.donors_nm3.empty()) return {};
  const auto columns = static_cast<std::size_t>(levels.n_states()) * grid.nx,
             nk = static_cast<std::size_t>(grid.n_h);
  std::vector<double> rates(columns * nk);
#pragma omp parallel for schedule(dynamic)
  for (std::size_t column = 0; column < columns; ++column) {
    const int state = static_cast<int>(column) / grid.nx, i = static_cast<int>(column) % grid.nx;
    for (int k = 0; k < grid.n_h; ++k)
      rates[column * nk + static_cast<std::size_t>(k)] = impurities_.rate_fs(
          state / levels.subbands, i, kinetic_ev(grid, k, levels.edge_of(state)[i]));
  }
  return rates;
}

}  // namespace quasi::mosfet

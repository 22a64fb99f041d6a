#include "workers/gw/solver/perturbation/response/sternheimer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "workers/backend/error.hpp"
#include "workers/gw/physics/g_sphere.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {
namespace {

/// Limit of the iterations of one right side. Condition numbers of 1e4 need about 500.
constexpr int kMaxIterations = 2000;
/// The preconditioner 1/max(1, T/(1.35 T_n)) starts to damp at this multiple of the kinetic energy
/// T_n of the state, as in Quantum ESPRESSO.
constexpr double kDampedFrom = 1.35;

double real_product(const std::vector<Cplx>& a, const std::vector<Cplx>& b) {
  double sum = 0.0;
  for (std::size_t g = 0; g < a.size(); ++g) sum += (std::conj(a[g]) * b[g]).real();
  return sum;
}

[[noreturn]] void report_degenerate(std::int64_t ket) {
  throw NotConverged("a state above the bands of Sigma has the energy of band " +
                     std::to_string(ket + 1) +
                     " within 1e-6 Ry, so that the first order of that band is not defined; choose "
                     "another sigma.bands");
}

[[noreturn]] void report_slow(std::int64_t ket, double residual, double limit) {
  char text[240];
  std::snprintf(text, sizeof text,
                "the Sternheimer equation of band %lld has the residual %.1e after %d iterations, "
                "above the limit of %.1e; raise perturbation.response_residual, or choose another "
                "sigma.bands",
                static_cast<long long>(ket + 1), residual, kMaxIterations, limit);
  throw NotConverged(text);
}

/// Holds one right side of the equation with the vectors of its iteration.
struct Column {
  std::size_t index = 0;  ///< position in the list of right sides
  std::int64_t ket = 0;   ///< n
  double energy_ry = 0.0;
  double norm = 0.0;         ///< ‖b‖
  double product = 0.0;      ///< ⟨r|K r⟩
  bool degenerate = false;   ///< the operator is singular along a direction
  std::vector<Cplx> r, d;    ///< residual and direction
  std::vector<double> damp;  ///< preconditioner K, [n]

  Column(std::size_t position, std::int64_t band) : index(position), ket(band) {}
  double residual() const { return std::sqrt(real_product(r, r)) / norm; }
  std::vector<Cplx> preconditioned() const {
    std::vector<Cplx> z(r.size());
    for (std::size_t g = 0; g < z.size(); ++g) z[g] = damp[g] * r[g];
    return z;
  }
};

/// Sets K of a column for a state with the coefficients `c`.
void set_preconditioner(const Cplx* c, const std::vector<double>& kinetic_ry, Column& column) {
  double of_state_ry = 0.0;
  for (std::size_t g = 0; g < kinetic_ry.size(); ++g)
    of_state_ry += kinetic_ry[g] * std::norm(c[g]);
  for (const double of_wave_ry : kinetic_ry)
    column.damp.push_back(1.0 / std::max(1.0, of_wave_ry / (kDampedFrom * of_state_ry)));
}

/// Makes one step of a column.
/// @param image  H d on entry, A d on exit; @param outside  (1 − P) d; @param x  the solution
void take_step(double shift_ry, const Cplx* outside, Cplx* image, Cplx* x, Column& c) {
  double curvature = 0.0;
  for (std::size_t g = 0; g < c.d.size(); ++g) {
    image[g] += -c.energy_ry * c.d[g] + shift_ry * (c.d[g] - outside[g]);
    curvature += (std::conj(c.d[g]) * image[g]).real();
  }
  c.degenerate = curvature < kDegenerate_ry * real_product(c.d, c.d);
  const double length = c.product / curvature;
  for (std::size_t g = 0; g < c.d.size(); ++g) {
    x[g] += length * c.d[g];
    c.r[g] -= length * image[g];
  }
  const std::vector<Cplx> z = c.preconditioned();
  const double product = real_product(c.r, z);
  for (std::size_t g = 0; g < c.d.size(); ++g) c.d[g] = z[g] + product / c.product * c.d[g];
  c.product = product;
}

}  // namespace

std::vector<Cplx> applied_potential(const PotentialElements& potential, const WavesAtPoint& states,
                                    BandRange kets) {
  const std::vector<IVec3>& g = states.waves.g;
  const GIndex index(g);
  const std::int64_t n_pw = std::ssize(g), row = states.waves.coefficients.extent[1];
  std::vector<Cplx> applied(static_cast<std::size_t>(kets.size() * row));
  for (const auto& [difference, value] : potential) {
    std::vector<std::int32_t> source;
    for (const IVec3& at : g) source.push_back(index.find(at - difference));
#pragma omp parallel for schedule(static)
    for (std::int64_t n = 0; n < kets.size(); ++n) {
      // The potential acts on each component alone.
      for (std::int64_t first = 0; first < row; first += n_pw) {
        const Cplx* c = &states.waves.coefficients(kets.begin + n, first);
        Cplx* to = applied.data() + n * row + first;
        for (std::size_t i = 0; i < g.size(); ++i)
          if (source[i] >= 0) to[i] += value * c[source[i]];
      }
    }
  }
  return applied;
}

HamiltonianParts StateResponse::parts(const Crystal& crystal, const Vec3& k,
                                      const std::vector<IVec3>& g) const {
  HamiltonianParts made = local_parts(crystal, k, g, potential);
  if (spin_orbit != nullptr) spin_orbit->add_to(k, g, made);
  return made;
}

SternheimerEquation::SternheimerEquation(HamiltonianParts parts, const WavesAtPoint& states,
                                         std::vector<double> energy_ry, double residual,
                                         GwKernels& kernels)
    : states_(states),
      energy_ry_(std::move(energy_ry)),
      residual_(residual),
      // 1 Ry above the range of the states: all E_m − E_n + α are at least that.
      shift_ry_(energy_ry_.back() - energy_ry_.front() + 1.0),
      h_(std::make_unique<const HamiltonianOperator>(std::move(parts))),
      loaded_(kernels.hamiltonian().load(*h_)) {
  kinetic_ry_ = h_->kinetic_ry();
}

std::vector<Cplx> SternheimerEquation::solve(std::span<const PotentialElements* const> potentials,
                                             BandRange kets) const {
  std::vector<Cplx> applied;
  for (const PotentialElements* potential : potentials) {
    const std::vector<Cplx> one = applied_potential(*potential, states_, kets);
    applied.insert(applied.end(), one.begin(), one.end());
  }
  return solve(std::move(applied), kets);
}

std::vector<Cplx> SternheimerEquation::solve(std::vector<Cplx> b, BandRange kets) const {
  const auto n_row = static_cast<std::int64_t>(kinetic_ry_.size());
  const std::int64_t n_columns = std::ssize(b) / n_row;
  const auto width = static_cast<std::size_t>(n_row);
  const View<const Cplx, 2>& states = states_.waves.coefficients;
  loaded_->remove(states, view<Cplx>(b, n_columns, n_row));
  std::vector<Column> active;
  for (std::int64_t i = 0; i < n_columns; ++i) {
    Column c(static_cast<std::size_t>(i), kets.begin + i % kets.size());
    c.energy_ry = energy_ry_[static_cast<std::size_t>(c.ket)];
    for (std::size_t g = 0; g < width; ++g) c.r.push_back(-b[c.index * width + g]);
    c.norm = std::sqrt(real_product(c.r, c.r));
    if (c.norm == 0.0) continue;
    set_preconditioner(&states(c.ket, 0), kinetic_ry_, c);
    c.d = c.preconditioned();
    c.product = real_product(c.r, c.d);
    active.push_back(std::move(c));
  }
  std::vector<Cplx> x(b.size());
  for (int iteration = 0; !active.empty(); ++iteration) {
    if (iteration == kMaxIterations)
      report_slow(active.front().ket, active.front().residual(), residual_);
    const std::int64_t n = std::ssize(active);
    std::vector<Cplx> outside, image(static_cast<std::size_t>(n * n_row));
    for (const Column& c : active) outside.insert(outside.end(), c.d.begin(), c.d.end());
    loaded_->apply(view<const Cplx>(outside, n, n_row), view<Cplx>(image, n, n_row));
    loaded_->remove(states, view<Cplx>(outside, n, n_row));
#pragma omp parallel for schedule(static)
    for (std::int64_t i = 0; i < n; ++i) {
      Column& c = active[static_cast<std::size_t>(i)];
      take_step(shift_ry_, outside.data() + i * n_row, image.data() + i * n_row,
                x.data() + c.index * width, c);
    }
    for (const Column& c : active)
      if (c.degenerate) report_degenerate(c.ket);
    std::erase_if(active, [&](const Column& c) { return c.residual() <= residual_; });
  }
  loaded_->remove(states, view<Cplx>(x, n_columns, n_row));
  return x;
}

}  // namespace quasi::gw

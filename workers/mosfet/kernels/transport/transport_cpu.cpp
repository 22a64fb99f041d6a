#include "workers/mosfet/kernels/transport/transport_cpu.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "workers/mosfet/physics/gradient.hpp"
#include "workers/mosfet/physics/weno5.hpp"

namespace quasi::mosfet {
namespace {

constexpr int kGhost = 3;
constexpr int kMaxAngles = 256;
constexpr int kTileRows = 20;

/// A run of neighbouring angles with the same sign of cos φ.
struct AngleRun {
  int begin, end;
  bool forward;
};

std::vector<AngleRun> angle_runs(const TransportProblem& problem) {
  const int quarter = problem.nphi / 4;
  if (problem.range == AngleRange::kHalf)
    return {{0, quarter, true}, {quarter + 1, problem.angles, false}};
  return {
      {0, quarter, true}, {quarter + 1, 3 * quarter, false}, {3 * quarter + 1, problem.nphi, true}};
}

/// Five neighbouring rows along the wind.
struct WenoRows {
  const double *a, *b, *c, *d, *e;
};
struct AngleSpan {
  int begin, end;
};

/// Computes half-node values of a row from five neighbouring rows, angle by angle [jiang1996].
inline void weno_rows(const WenoRows& rows, AngleSpan span, double epsilon, double* out) {
  const double *a = rows.a, *b = rows.b, *c = rows.c, *d = rows.d, *e = rows.e;
#pragma omp simd
  for (int m = span.begin; m < span.end; ++m)
    out[m] = weno5({a[m], b[m], c[m], d[m], e[m]}, epsilon);
}

/// Computes ∂_φ of the flux of one row divided by |ε'| τ, with wind sign σ = sign ε'.
class AngleDerivative {
 public:
  explicit AngleDerivative(const TransportProblem& problem)
      : problem_(problem), n_(problem.angles), per_dphi_(1.0 / problem.dphi) {}

  void operator()(const double* pdf, double sigma, double* derivative) {
    if (problem_.phi_flux == PhiFlux::kUpwind)
      upwind(pdf, sigma);
    else
      split(pdf, sigma);
    // flux_[m+1] is F_{m+½}. The ends follow from F(−φ) = −F(φ), or from the period.
    if (problem_.range == AngleRange::kHalf) {
      flux_[0] = -flux_[1];
      flux_[n_] = -flux_[n_ - 1];
    } else {
      flux_[0] = flux_[n_];
    }
    for (int m = 0; m < n_; ++m) derivative[m] = (flux_[m + 1] - flux_[m]) * per_dphi_;
  }

 private:
  // On 0 < φ < π the sign of a³ is the sign of ε', so sin φ Φ, odd at both ends, is reconstructed
  // once.
  void upwind(const double* pdf, double sigma) {
    double* g = plus_.data() + kGhost;
    for (int m = 0; m < n_; ++m) g[m] = problem_.sin_phi[m] * pdf[m];
    for (int k = 1; k <= kGhost; ++k) {
      g[-k] = -g[k];
      g[n_ - 1 + k] = -g[n_ - 1 - k];
    }
    if (sigma > 0.0)
      weno_rows({g - 2, g - 1, g, g + 1, g + 2}, {0, n_ - 1}, problem_.weno_epsilon, &flux_[1]);
    else
      weno_rows({g + 3, g + 2, g + 1, g, g - 1}, {0, n_ - 1}, problem_.weno_epsilon, &flux_[1]);
    for (int m = 1; m < n_; ++m) flux_[m] *= sigma;
  }

  // Lax–Friedrichs splitting with the bound of this line, which is |ε'| τ: u± = ½(σ sin φ ± 1)Φ.
  void split(const double* pdf, double sigma) {
    double* up = plus_.data() + kGhost;
    double* down = minus_.data() + kGhost;
    for (int m = 0; m < n_; ++m) {
      up[m] = 0.5 * (sigma * problem_.sin_phi[m] + 1.0) * pdf[m];
      down[m] = 0.5 * (sigma * problem_.sin_phi[m] - 1.0) * pdf[m];
    }
    for (int k = 1; k <= kGhost; ++k) {
      if (problem_.range == AngleRange::kHalf) {
        up[-k] = -down[k];
        down[-k] = -up[k];
        up[n_ - 1 + k] = -down[n_ - 1 - k];
        down[n_ - 1 + k] = -up[n_ - 1 - k];
      } else {
        up[-k] = up[n_ - k];
        down[-k] = down[n_ - k];
        up[n_ - 1 + k] = up[k - 1];
        down[n_ - 1 + k] = down[k - 1];
      }
    }
    const int interfaces = problem_.range == AngleRange::kHalf ? n_ - 1 : n_;
    weno_rows({up - 2, up - 1, up, up + 1, up + 2}, {0, interfaces}, problem_.weno_epsilon,
              &flux_[1]);
    weno_rows({down + 3, down + 2, down + 1, down, down - 1}, {0, interfaces},
              problem_.weno_epsilon, other_.data());
    for (int m = 0; m < interfaces; ++m) flux_[m + 1] += other_[m];
  }

  const TransportProblem& problem_;
  int n_;
  double per_dphi_;
  std::array<double, kMaxAngles + 2 * kGhost> plus_{}, minus_{};
  std::array<double, kMaxAngles + 2> flux_{}, other_{};
};

/// Computes one tile of w rows of one state, column by column along x.
class TileMarch {
 public:
  TileMarch(const TransportProblem& problem, const StageInput& in, const StageOutput& out,
            int state, int first, int last)
      : p_(problem),
        in_(in),
        out_(out),
        state_(state),
        first_(first),
        last_(last),
        n_(problem.angles),
        runs_(angle_runs(problem)),
        angle_derivative_(problem) {
    const auto rows = static_cast<std::size_t>(last - first);
    flux_before_.assign(rows * n_, 0.0);
    flux_after_.assign(rows * n_, 0.0);
    ghost_source_.assign(rows * n_, 0.0);
    ghost_drain_.assign(rows * n_, 0.0);
    speed_ = &p_.speed_nm_fs[static_cast<std::size_t>(state / p_.structure.subbands) * p_.nw];
    turning_ =
        &p_.turning_nm_ev_fs[static_cast<std::size_t>(state / p_.structure.subbands) * p_.nw];
    make_ghosts();
  }

  void run() {
    x_fluxes(-1, flux_before_.data());
    for (int i = 0; i < p_.structure.nx; ++i) {
      x_fluxes(i, flux_after_.data());
      column(i);
      flux_before_.swap(flux_after_);
    }
  }

 private:
  const double* row(int i, int l) const {
    if (i < 0) return &ghost_source_[static_cast<std::size_t>(l - first_) * n_];
    if (i >= p_.structure.nx) return &ghost_drain_[static_cast<std::size_t>(l - first_) * n_];
    return plane(i) + static_cast<std::ptrdiff_t>(l) * n_;
  }
  const double* plane(int i) const {
    return in_.pdf_s + (static_cast<std::int64_t>(state_) * p_.structure.nx + i) * p_.nw * n_;
  }

  // Electrons that enter have the contact's distribution; those that leave have that of the
  // boundary plane.
  void make_ghosts() {
    for (int l = first_; l < last_; ++l)
      for (int m = 0; m < n_; ++m) {
        const auto at = static_cast<std::size_t>(l - first_) * n_ + m;
        ghost_source_[at] =
            p_.cos_phi[m] > 0.0
                ? in_.inflow_scale[0] *
                      in_.inflow_source[static_cast<std::int64_t>(state_) * p_.nw + l]
                : plane(0)[static_cast<std::ptrdiff_t>(l) * n_ + m];
        ghost_drain_[at] =
            p_.cos_phi[m] < 0.0
                ? in_.inflow_scale[1] *
                      in_.inflow_drain[static_cast<std::int64_t>(state_) * p_.nw + l]
                : plane(p_.structure.nx - 1)[static_cast<std::ptrdiff_t>(l) * n_ + m];
      }
  }

  // Computes F^x at i+½ for every row of the tile. a¹ does not depend on x, so Φ itself is
  // reconstructed.
  void x_fluxes(int i, double* flux) {
    for (int l = first_; l < last_; ++l) {
      double* out = flux + static_cast<std::ptrdiff_t>(l - first_) * n_;
      const double* r[6];
      for (int k = 0; k < 6; ++k) r[k] = row(i - 2 + k, l);
      for (const AngleRun& run : runs_)
        if (run.forward)
          weno_rows({r[0], r[1], r[2], r[3], r[4]}, {run.begin, run.end}, p_.weno_epsilon, out);
        else
          weno_rows({r[5], r[4], r[3], r[2], r[1]}, {run.begin, run.end}, p_.weno_epsilon, out);
      double sum = 0.0;
      for (int m = 0; m < n_; ++m) {
        out[m] = p_.cos_phi[m] == 0.0 ? 0.0 : speed_[l] * p_.cos_phi[m] * out[m];
        sum += p_.weight[m] * out[m];
      }
      out_.flux_sum[(static_cast<std::int64_t>(state_) * (p_.structure.nx + 1) + i + 1) * p_.nw +
                    l] = sum;
    }
  }

  // Computes v(w)Φ of one row: below w = 0 the row of φ + π, above w_max zeros.
  void speed_row(int i, int l, double* out) const {
    if (l >= p_.nw) {
      std::fill(out, out + n_, 0.0);
    } else if (l >= 0) {
      const double* pdf = plane(i) + static_cast<std::ptrdiff_t>(l) * n_;
      for (int m = 0; m < n_; ++m) out[m] = speed_[l] * pdf[m];
    } else {
      const double* pdf = plane(i) + static_cast<std::ptrdiff_t>(-1 - l) * n_;
      for (int m = 0; m < n_; ++m) out[m] = speed_[-1 - l] * pdf[p_.mirror[m]];
    }
  }

  // Computes −a²Φ/ε' at w_{ℓ+½}: cos φ times the reconstruction of vΦ, with wind against ε' cos φ.
  // The ghosts make the exchange between φ and φ+π at w = 0 antisymmetric to the bit. The top is
  // closed.
  void w_flux(const double* const r[6], double slope, int l, double* out) const {
    if (l == p_.nw - 1) {
      std::fill(out, out + n_, 0.0);
      return;
    }
    for (const AngleRun& run : runs_)
      if (run.forward == (slope < 0.0))
        weno_rows({r[0], r[1], r[2], r[3], r[4]}, {run.begin, run.end}, p_.weno_epsilon, out);
      else
        weno_rows({r[5], r[4], r[3], r[2], r[1]}, {run.begin, run.end}, p_.weno_epsilon, out);
    for (int m = 0; m < n_; ++m)
      out[m] = p_.cos_phi[m] == 0.0 ? 0.0 : -slope * p_.cos_phi[m] * out[m];
  }

  void column(int i) {
    const Structure& s = p_.structure;
    const int family = s.family_of[static_cast<std::size_t>(state_ / s.subbands)];
    const double slope =
        in_.slope_ev_nm[(static_cast<std::int64_t>(family) * s.subbands + state_ % s.subbands) *
                            s.nx +
                        i];
    const double sigma = slope < 0.0 ? -1.0 : 1.0, strength = std::fabs(slope);
    const double per_dx = 1.0 / s.dx_nm, per_dw = 1.0 / p_.dw_ev;
    std::array<std::array<double, kMaxAngles>, 6> ring;
    std::array<double, kMaxAngles> edge_a, edge_b, turn;
    double *before = edge_a.data(), *after = edge_b.data();
    const double* r[6];
    for (int k = 0; k < 6; ++k) {
      speed_row(i, first_ - 3 + k, ring[static_cast<std::size_t>((first_ + 3 + k) % 6)].data());
      r[k] = ring[static_cast<std::size_t>((first_ + 3 + k) % 6)].data();
    }
    w_flux(r, slope, first_ - 1, before);
    for (int l = first_; l < last_; ++l) {
      for (int k = 0; k < 5; ++k) r[k] = r[k + 1];
      double* fresh = ring[static_cast<std::size_t>((l + 3) % 6)].data();
      speed_row(i, l + 3, fresh);
      r[5] = fresh;
      w_flux(r, slope, l, after);
      const double* pdf = plane(i) + static_cast<std::ptrdiff_t>(l) * n_;
      angle_derivative_(pdf, sigma, turn.data());
      const std::int64_t at = (static_cast<std::int64_t>(state_) * s.nx + i) * p_.nw + l;
      const double gain = in_.gain[at], loss = in_.loss[at], bend = strength * turning_[l];
      const double* fx0 = &flux_before_[static_cast<std::size_t>(l - first_) * n_];
      const double* fx1 = &flux_after_[static_cast<std::size_t>(l - first_) * n_];
      const double* old = in_.pdf_n + at * n_;
      double* out = out_.pdf + at * n_;
      const double* turning = turn.data();
      const double dt = in_.dt_fs, share_n = in_.share_n, share_s = in_.share_s;
#pragma omp simd
      for (int m = 0; m < n_; ++m) {
        const double rhs = gain - loss * pdf[m] - (fx1[m] - fx0[m]) * per_dx -
                           (after[m] - before[m]) * per_dw - bend * turning[m];
        out[m] = share_n * old[m] + share_s * (pdf[m] + dt * rhs);
      }
      double sum = 0.0;
      for (int m = 0; m < n_; ++m) sum += p_.weight[m] * out[m];
      out_.angle_sum[at] = sum;
      std::swap(before, after);
    }
  }

  const TransportProblem& p_;
  const StageInput& in_;
  const StageOutput& out_;
  int state_, first_, last_, n_;
  const std::vector<AngleRun> runs_;
  AngleDerivative angle_derivative_;
  std::vector<double> flux_before_, flux_after_, ghost_source_, ghost_drain_;
  const double* speed_ = nullptr;
  const double* turning_ = nullptr;
};

}  // namespace

void transport_stage(const TransportProblem& problem, const StageInput& in,
                     const StageOutput& out) {
  const int tiles = (problem.nw + kTileRows - 1) / kTileRows;
#pragma omp parallel for schedule(static)
  for (int task = 0; task < problem.n_states() * tiles; ++task) {
    const int first = task % tiles * kTileRows;
    TileMarch(problem, in, out, task / tiles, first, std::min(problem.nw, first + kTileRows)).run();
  }
}

void energy_slopes(const TransportProblem& problem, const double* energy_ev, const double* lead_ev,
                   double* slope_ev_nm) {
  const Structure& s = problem.structure;
  for (int row = 0; row < s.n_families() * s.subbands; ++row)
    for (int i = 0; i < s.nx; ++i)
      slope_ev_nm[static_cast<std::int64_t>(row) * s.nx + i] =
          gradient_at(energy_ev + static_cast<std::int64_t>(row) * s.nx, i, s.nx, s.dx_nm) +
          gradient_at(lead_ev + static_cast<std::int64_t>(row) * s.nx, i, s.nx, s.dx_nm);
}

double largest_rate(const TransportProblem& problem, const double* slope_ev_nm) {
  const Structure& s = problem.structure;
  double largest = 0.0;
  for (int v = 0; v < s.n_valleys(); ++v) {
    double slope = 0.0;
    const double* row = slope_ev_nm + static_cast<std::int64_t>(s.family_of[v]) * s.subbands * s.nx;
    for (int k = 0; k < s.subbands * s.nx; ++k) slope = std::max(slope, std::fabs(row[k]));
    for (int l = 0; l < problem.nw; ++l) {
      const double speed = problem.speed_nm_fs[static_cast<std::int64_t>(v) * problem.nw + l];
      const double along = speed * (1.0 / s.dx_nm + slope / problem.dw_ev);
      const double around =
          slope * problem.turning_nm_ev_fs[static_cast<std::int64_t>(v) * problem.nw + l] /
          problem.dphi;
      for (int m = 0; m < problem.angles; ++m)
        largest = std::max(largest, along * std::fabs(problem.cos_phi[m]) +
                                        around * std::fabs(problem.sin_phi[m]));
    }
  }
  return largest;
}

}  // namespace quasi::mosfet

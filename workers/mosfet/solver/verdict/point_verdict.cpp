#include "workers/mosfet/solver/verdict/point_verdict.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/physics/beam/face_energies.hpp"
#include "workers/mosfet/solver/equilibrium/equilibrium.hpp"
#include "workers/mosfet/solver/sweep/point_name.hpp"

namespace quasi::mosfet {
namespace {

// The ballistic current has the error of the parabola through its barrier.
constexpr double kLargestBallisticRatio = 1.05, kDoubtfulBallisticRatio = 1.02;
// A Newton step of V and the discrete inflow leave less than this above the law.
constexpr double kLargestDensityRatio = 1.1;
constexpr double kLargestTopSubbandShare = 0.05, kLargestTopShare = 1e-3;
// The cells of H and κ leave less than this in the sums of rows of Y if they are fine.
constexpr double kLargestRowDefect = 0.01;
// Columns with fewer electrons than this do not carry a current.
constexpr double kEmptyColumn_nm2 = 1e-20;

double number_of(const PointResult& point, const char* name) {
  const auto found = point.numbers.find(name);
  return found == point.numbers.end() ? 0.0 : found->second;
}

// Checks the conservation laws of a solution of the beam scheme.
void judge_conservation(const RunSettings& run, const PointResult& point, PointVerdict* verdict) {
  const double current = std::fabs(number_of(point, "current_a_per_m"));
  const double spread = number_of(point, "current_spread_a_per_m");
  const double allowed = std::max(run.steady_tol * current, run.steady_floor_a_per_m);
  if (!(spread <= allowed)) {
    verdict->resolved = false;
    verdict->remarks.push_back("the current differs along x by " + brief(spread) +
                               " A/m, and run.steady_tol allows " + brief(allowed));
  }
  const double defect = number_of(point, "energy_defect_w_per_m");
  const double allowed_w_m = allowed * std::max(std::fabs(point.bias.vds_v), 1e-3);
  if (!(defect <= allowed_w_m)) {
    verdict->resolved = false;
    verdict->remarks.push_back("the energy balance along x fails by " + brief(defect) +
                               " W/m, and run.steady_tol of V_DS I allows " + brief(allowed_w_m));
  }
}

}  // namespace

void add_judged_numbers(const DeviceModel& model, const Structure& s, const JudgedState& state,
                        PointResult* point) {
  const double fermi_ev = std::max(0.0, -state.bias.vds_v);
  const auto nx = static_cast<std::size_t>(s.nx);
  std::vector<double> total(nx), equilibrium(nx), highest(nx), nodes(nx), faces(nx + 1);
  for (int v = 0; v < s.n_valleys(); ++v)
    for (int p = 0; p < s.subbands; ++p) {
      const ValleyPair& valley = s.valleys[static_cast<std::size_t>(v)];
      const auto level = static_cast<std::size_t>(s.family_of[v]) * s.subbands + p;
      const auto held = [&](double energy_ev) {
        return sheet_density(model, valley, fermi_ev - energy_ev).density_nm2;
      };
      for (std::size_t i = 0; i < nx; ++i)
        nodes[i] = state.energy_ev[level * nx + i] + valley.offset_ev;
      face_energies(nodes.data(), s.nx, faces.data());
      for (std::size_t i = 0; i < nx; ++i) {
        const double sheet =
            state.sheet_nm2[(static_cast<std::size_t>(v) * s.subbands + p) * nx + i];
        total[i] += sheet;
        equilibrium[i] += (held(faces[i]) + 4.0 * held(nodes[i]) + held(faces[i + 1])) / 6.0;
        if (p + 1 == s.subbands) highest[i] += sheet;
      }
    }
  double density_ratio = 0.0, top_subband = 0.0;
  for (std::size_t i = 0; i < nx; ++i) {
    if (!(total[i] > kEmptyColumn_nm2)) continue;
    density_ratio = std::max(density_ratio, total[i] / (state.inflow_scale * equilibrium[i]));
    top_subband = std::max(top_subband, highest[i] / total[i]);
  }
  point->numbers["density_ratio"] = density_ratio;
  point->numbers["top_subband_share"] = top_subband;
}

PointVerdict judge_point(const RunSettings& run, const PointResult& point) {
  PointVerdict verdict;
  const double ballistic = number_of(point, "ballistic_ratio");
  if (ballistic > kDoubtfulBallisticRatio)
    verdict.remarks.push_back("the current is " + brief(ballistic) +
                              " of what its own barriers would pass without scattering, the sign "
                              "of too coarse a mesh");
  const double density = number_of(point, "density_ratio");
  if (density > kLargestDensityRatio)
    verdict.remarks.push_back("a column holds " + brief(density) +
                              " times the electrons of equilibrium with its contacts, the sign of "
                              "too coarse a mesh");
  verdict.resolved = ballistic <= kLargestBallisticRatio && density <= kLargestDensityRatio;
  // In a transient the current and the flow of energy vary along x while charges move.
  if (run.scheme == StreamingScheme::kBeam && run.mode == RunMode::kSteady)
    judge_conservation(run, point, &verdict);
  const double subband = number_of(point, "top_subband_share");
  if (subband > kLargestTopSubbandShare)
    verdict.remarks.push_back("the highest subband holds " + brief(subband) +
                              " of a column's electrons; raise mesh.subbands");
  const double top = number_of(point, "top_share");
  if (top > kLargestTopShare)
    verdict.remarks.push_back("the highest energy cell holds " + brief(top) +
                              " of the largest occupation; consider a higher mesh." +
                              (run.scheme == StreamingScheme::kBeam ? "window_ev" : "wmax_ev"));
  const double rows = number_of(point, "admittance_row_defect");
  if (rows > kLargestRowDefect)
    verdict.remarks.push_back("rows of the admittance add to " + brief(rows) +
                              " of its largest entry if the cells of H stay, and its entries have "
                              "errors of this order; compare several mesh.dh_ev");
  return verdict;
}

}  // namespace quasi::mosfet

#include "workers/thermal/output/result_4ph.hpp"

#include <cmath>

namespace quasi::thermal {

namespace {

constexpr const char* kName[kChannels4ph] = {"recombination", "redistribution", "splitting"};

}  // namespace

const char* name_of(Broadening kind) {
  switch (kind) {
    case Broadening::kSymmetric:
      return "symmetric";
    case Broadening::kAdaptiveMax:
      return "adaptive-max";
    case Broadening::kFixed:
      return "fixed";
    case Broadening::kTetrahedra:
      return "tetrahedra";
    default:
      return "adaptive-rms";
  }
}

void write_result_4ph(const Deck& deck, const FourPhononRun& run, H5Writer& out) {
  const Rates4ph& r = run.rates;
  const std::int64_t n_irr = deck.symmetry.n_irreducible();
  const std::int64_t nb = deck.crystal.n_branches();
  const std::int64_t n_t = r.n_temperatures;
  const auto channel_of = [&](const std::vector<double>& all, int c, std::int64_t size) {
    return std::vector<double>(all.begin() + c * size, all.begin() + (c + 1) * size);
  };
  for (int c = 0; c < kChannels4ph; ++c) {
    const std::string name = kName[c];
    out.write("/rates/4ph_" + name + "_normal", channel_of(r.normal_per_ps, c, n_t * r.n_rows),
              {n_t, n_irr, nb}, "1/ps");
    out.write("/rates/4ph_" + name + "_umklapp", channel_of(r.umklapp_per_ps, c, n_t * r.n_rows),
              {n_t, n_irr, nb}, "1/ps");
    out.write("/phase_space/4ph_weighted_" + name,
              channel_of(r.weighted_phase_space, c, n_t * r.n_rows), {n_t, n_irr, nb}, "ps^5");
    out.write("/phase_space/4ph_" + name, channel_of(r.phase_space, c, r.n_rows), {n_irr, nb},
              "ps");
    out.write("/phase_space/4ph_processes_" + name, channel_of(r.processes, c, r.n_rows),
              {n_irr, nb}, "1");
  }
  for (int c = 0; c < kChannels4ph && !r.error_per_ps.empty(); ++c)
    out.write("/rates/4ph_" + std::string(kName[c]) + "_error",
              channel_of(r.error_per_ps, c, n_t * r.n_rows), {n_t, n_irr, nb}, "1/ps");
  if (!run.kappa_relative_error.empty())
    out.write("/kappa/rta_relative_error_4ph", run.kappa_relative_error, {n_t}, "1");
  out.write("/rates/4ph_total", run.further.rate_per_ps, {n_t, n_irr, nb}, "1/ps");
  out.write_text("/settings/broadening", name_of(run.rules.broadening));
  out.write_scalar("/settings/cut_4ph", run.rules.cut, "1");
  out.write_scalar("/settings/window_norm_4ph", run.rules.window_norm, "1");
  out.write_scalar("/settings/sigma_least_4ph", run.rules.sigma_least_rad_ps, "rad/ps");
  out.write_scalar("/settings/sigma_floor_4ph", run.rules.sigma_floor_rad_ps, "rad/ps");
  out.write_scalar("/settings/omega_floor_4ph", run.rules.omega_floor_rad_ps, "rad/ps");
  out.write_scalar("/settings/tie_tolerance_4ph", run.rules.tie_tolerance_rad_ps, "rad/ps");
  out.write_scalar("/settings/exact_weights_4ph", std::int64_t{run.rules.exact_weights}, "1");
}

void summarise_4ph(const FourPhononRun& run, nlohmann::json& summary) {
  nlohmann::json processes;
  for (int c = 0; c < kChannels4ph; ++c)
    processes[kName[c]] = std::llround(run.rates.total_processes(static_cast<Channel4ph>(c)));
  summary["processes_4ph"] = processes;
  summary["evaluations_4ph"] = std::llround(run.rates.evaluations);
  if (!run.kappa_relative_error.empty())
    summary["kappa_rta_relative_error_4ph"] = run.kappa_relative_error;
  summary["fourth_order_blocks"] = run.n_blocks;
}

}  // namespace quasi::thermal

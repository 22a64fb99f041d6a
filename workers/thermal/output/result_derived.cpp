#include "workers/thermal/output/result_derived.hpp"

#include <cstdio>

#include "workers/thermal/output/temperature_series.hpp"
#include "workers/thermal/output/tensors.hpp"

namespace quasi::thermal {
namespace {

void add_wires(std::size_t t, const char* name, const WireConductivity& wires,
               TemperatureSeries* series) {
  series->add(t, name, wires.kappa_w_per_mk, {std::ssize(wires.axis), std::ssize(wires.radius_nm)},
              "W/(m K)");
}

nlohmann::json tensors_of(const std::vector<Mat3>& tensors, const Sweep& sweep, std::size_t n_t,
                          double factor) {
  nlohmann::json by_isotope = nlohmann::json::array();
  std::size_t at = 0;
  for (std::size_t i = 0; i < sweep.isotope_factor.size(); ++i) {
    nlohmann::json by_grain = nlohmann::json::array();
    for (std::size_t g = 0; g < sweep.grain_size_nm.size(); ++g) {
      nlohmann::json by_temperature = nlohmann::json::array();
      for (std::size_t t = 0; t < n_t; ++t)
        by_temperature.push_back(json_of(tensors[at++], factor));
      by_grain.push_back(std::move(by_temperature));
    }
    by_isotope.push_back(std::move(by_grain));
  }
  return by_isotope;
}

}  // namespace

void write_result_derived(const Deck& deck, const ConductivityRun& run, const Derived& d,
                          H5Writer& out) {
  const Transport transport{deck.crystal, deck.symmetry, run.modes,
                            deck.control.transport_options()};
  const double factor = sheet_factor(deck.crystal, deck.control.sheet_options());
  const std::int64_t n_irr = deck.symmetry.n_irreducible();
  const std::int64_t nb = run.modes.n_branches;
  const auto n_t = static_cast<std::int64_t>(run.by_temperature.size());
  out.write("/gruneisen/by_mode", d.gruneisen, {n_irr, nb}, "1");
  out.write("/gruneisen/mean", d.mean_gruneisen, {n_t}, "1");
  std::vector<Mat3> coherences;
  TemperatureSeries series(run.by_temperature.size());
  const auto add_tensors = [&](std::size_t t, const char* name, const std::vector<Mat3>& values,
                               const char* units) {
    series.add(t, name, flat(values, factor), {std::ssize(values), 3, 3}, units);
  };
  for (std::size_t t = 0; t < d.coherence.size(); ++t) {
    const Coherence& c = d.coherence[t];
    coherences.push_back(c.kappa_w_per_mk);
    series.add(t, "mode_kappa_coherence", flat(c.by_row_w_per_mk, factor), {n_irr, nb, 3, 3},
               "W/(m K)");
    add_tensors(t, "cumulative_by_omega/kappa_coherence",
                cumulative_by_omega(transport, c.by_row_w_per_mk).kappa_w_per_mk, "W/(m K)");
    // Each half of a pair counts at the mean free path of its own mode.
    const Cumulative by_path =
        cumulative_by_path(transport, c.by_row_w_per_mk, run.by_temperature[t].field_rta,
                           run.by_temperature[t].rate_per_ps);
    add_tensors(t, "cumulative_by_path/kappa_coherence", by_path.kappa_w_per_mk, "W/(m K)");
    add_tensors(t, "spectrum_by_omega/kappa_coherence",
                spectrum_by_omega(transport, c.by_row_w_per_mk).kappa_w_per_mk, "W ps/(m K rad)");
  }
  if (!coherences.empty())
    out.write("/kappa/coherence", flat(coherences, factor), {n_t, 3, 3}, "W/(m K)");
  for (std::size_t t = 0; t < d.wires_rta.size(); ++t) {
    if (t == 0) {
      const WireConductivity& w = d.wires_rta[0];
      std::vector<double> axes;
      for (const Vec3& a : w.axis) axes.insert(axes.end(), a.begin(), a.end());
      out.write("/wires/axis", axes, {static_cast<std::int64_t>(w.axis.size()), 3}, "1");
      out.write("/wires/radius", w.radius_nm, {static_cast<std::int64_t>(w.radius_nm.size())},
                "nm");
    }
    add_wires(t, "wire_kappa_rta", d.wires_rta[t], &series);
    if (!d.wires.empty()) add_wires(t, "wire_kappa", d.wires[t], &series);
  }
  series.write(out);
  if (d.sweep.empty()) return;
  const auto n_isotope = static_cast<std::int64_t>(d.sweep.isotope_factor.size());
  const auto n_grain = static_cast<std::int64_t>(d.sweep.grain_size_nm.size());
  out.write("/sweep/isotope_factor", d.sweep.isotope_factor, {n_isotope}, "1");
  out.write("/sweep/grain_size", d.sweep.grain_size_nm, {n_grain}, "nm");
  out.write("/sweep/kappa_rta", flat(d.sweep.kappa_rta_w_per_mk, factor),
            {n_isotope, n_grain, n_t, 3, 3}, "W/(m K)");
  if (!d.sweep.kappa_w_per_mk.empty())
    out.write("/sweep/kappa", flat(d.sweep.kappa_w_per_mk, factor), {n_isotope, n_grain, n_t, 3, 3},
              "W/(m K)");
}

void summarise_derived(const Deck& deck, const Derived& d, nlohmann::json& summary) {
  const double factor = sheet_factor(deck.crystal, deck.control.sheet_options());
  summary["mean_gruneisen"] = d.mean_gruneisen;
  if (!d.coherence.empty()) {
    nlohmann::json list = nlohmann::json::array();
    for (const Coherence& c : d.coherence) list.push_back(json_of(c.kappa_w_per_mk, factor));
    summary["kappa_coherence_w_per_mk"] = std::move(list);
  }
  if (!d.wires_rta.empty()) {
    nlohmann::json rta = nlohmann::json::array();
    nlohmann::json converged = nlohmann::json::array();
    for (const WireConductivity& w : d.wires_rta) rta.push_back(w.kappa_w_per_mk);
    for (const WireConductivity& w : d.wires) converged.push_back(w.kappa_w_per_mk);
    summary["wires"] = {
        {"radius_nm", d.wires_rta[0].radius_nm},
        {"axis", d.wires_rta[0].axis},
        {"kappa_rta_w_per_mk", std::move(rta)},
        {"kappa_w_per_mk", d.wires.empty() ? nlohmann::json() : std::move(converged)}};
  }
  if (d.sweep.empty()) return;
  const std::size_t n_t = deck.control.temperatures_k.size();
  summary["sweep"] = {
      {"isotope_factor", d.sweep.isotope_factor},
      {"grain_size_nm", d.sweep.grain_size_nm},
      {"kappa_rta_w_per_mk", tensors_of(d.sweep.kappa_rta_w_per_mk, d.sweep, n_t, factor)},
      {"kappa_w_per_mk", d.sweep.kappa_w_per_mk.empty()
                             ? nlohmann::json()
                             : tensors_of(d.sweep.kappa_w_per_mk, d.sweep, n_t, factor)}};
}

std::string derived_table(const nlohmann::json& summary) {
  constexpr std::size_t kMostLines = 40;  // limit of lines for each table; result.h5 has all rows
  std::string text;
  char line[256];
  const auto& temperatures = summary["temperatures_k"];
  const auto values = [&](const nlohmann::json& of, const char** label) -> const nlohmann::json& {
    const bool iterated = !of["kappa_w_per_mk"].is_null();
    *label = iterated ? "BTE" : "RTA";
    return of[iterated ? "kappa_w_per_mk" : "kappa_rta_w_per_mk"];
  };
  const auto left_out = [&](std::size_t n) {
    if (n > kMostLines)
      text += "           ... " + std::to_string(n - kMostLines) + " more in summary.json\n";
  };
  const char* label = nullptr;
  if (summary.contains("sweep")) {
    const auto& sweep = summary["sweep"];
    const auto& kappa = values(sweep, &label);
    text += "sweep of isotope scattering and grain size (" + std::string(label) +
            ")\n      T (K)  isotopes  grains (nm)          xx          yy          zz\n";
    std::size_t n = 0;
    for (std::size_t t = 0; t < temperatures.size(); ++t)
      for (std::size_t i = 0; i < kappa.size(); ++i)
        for (std::size_t g = 0; g < kappa[i].size(); ++g) {
          if (++n > kMostLines) continue;
          const double size = sweep["grain_size_nm"][g].get<double>();
          char grains[32];
          if (size > 0.0)
            std::snprintf(grains, sizeof grains, "%g", size);
          else
            std::snprintf(grains, sizeof grains, "none");
          const auto& k = kappa[i][g][t];
          std::snprintf(line, sizeof line, "%11.2f%10g%13s%12.5g%12.5g%12.5g\n",
                        temperatures[t].get<double>(), sweep["isotope_factor"][i].get<double>(),
                        grains, k[0][0].get<double>(), k[1][1].get<double>(),
                        k[2][2].get<double>());
          text += line;
        }
    left_out(n);
  }
  if (summary.contains("wires")) {
    const auto& wires = summary["wires"];
    const auto& kappa = values(wires, &label);
    text += "wires, along their axis (" + std::string(label) +
            ")\n      T (K)  radius (nm)      kappa   axis (Cartesian)\n";
    const std::size_t n_radii = wires["radius_nm"].size();
    std::size_t n = 0;
    for (std::size_t t = 0; t < temperatures.size(); ++t)
      for (std::size_t i = 0; i < kappa[t].size(); ++i) {
        if (++n > kMostLines) continue;
        const auto& axis = wires["axis"][i / n_radii];
        std::snprintf(line, sizeof line, "%11.2f%13g%11.5g   %.4f %.4f %.4f\n",
                      temperatures[t].get<double>(), wires["radius_nm"][i % n_radii].get<double>(),
                      kappa[t][i].get<double>(), axis[0].get<double>(), axis[1].get<double>(),
                      axis[2].get<double>());
        text += line;
      }
    left_out(n);
  }
  return text;
}

}  // namespace quasi::thermal

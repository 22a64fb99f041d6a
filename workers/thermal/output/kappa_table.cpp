#include "workers/thermal/output/kappa_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "workers/thermal/output/derivative/derivative_file.hpp"
#include "workers/thermal/output/ladder_file.hpp"
#include "workers/thermal/output/result_derived.hpp"

namespace quasi::thermal {
namespace {

using nlohmann::json;

/// Appends a line of at most 255 bytes, as printf formats it.
[[gnu::format(printf, 2, 3)]] void print(std::string& text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

long long integer(const json& value) { return value.get<long long>(); }
double real(const json& value) { return value.get<double>(); }

void print_head(const json& summary, std::string& text) {
  const json& mesh = summary["mesh"];
  print(text, "mesh %dx%dx%d, %lld irreducible points, %s, device %s\n", mesh[0].get<int>(),
        mesh[1].get<int>(), mesh[2].get<int>(), integer(summary["irreducible_points"]),
        summary["space_group"].get<std::string>().c_str(),
        summary["device"].get<std::string>().c_str());
}

/// Names the broadening, on which κ of a finite mesh depends, and how to get FourPhonon's numbers.
void print_broadening(const json& summary, std::string& text) {
  if (!summary.contains("broadening")) return;
  const std::string broadening = summary["broadening"].get<std::string>();
  print(text, "broadening=%s", broadening.c_str());
  if (broadening == "fixed")
    print(text, ", sigma_thz=%g", real(summary["sigma_thz"]));
  else if (broadening != "tetrahedra")
    print(text, ", scalebroad=%g", real(summary["scale_broad"]));
  print(text, "%s\n",
        summary["compat"] == "none" ? " (numbers of FourPhonon: compat=fourphonon)"
                                    : ", compat=fourphonon");
}

void print_processes(const json& summary, std::string& text) {
  const json& three = summary["processes_3ph"];
  print(text, "three-phonon processes: %lld absorption, %lld emission\n",
        integer(three["absorption"]), integer(three["emission"]));
  if (!summary.contains("processes_4ph")) return;
  const json& four = summary["processes_4ph"];
  print(text, "four-phonon processes: %lld recombination, %lld redistribution, %lld splitting\n",
        integer(four["recombination"]), integer(four["redistribution"]),
        integer(four["splitting"]));
}

/// Prints one tensor with five significant digits. Rounding noise prints as 0; the arrays keep it.
void print_tensor(double temperature_k, const char* label, const json& k, std::string& text) {
  constexpr double kNoise = 1e-6;  // of the largest element
  double largest = 0.0;
  for (const json& row : k)
    for (const json& value : row) largest = std::max(largest, std::abs(real(value)));
  const auto shown = [&](const json& value) {
    return std::abs(real(value)) < kNoise * largest ? 0.0 : real(value);
  };
  print(text, "%9.2f  %-6s%12.5g%12.5g%12.5g%12.5g%12.5g%12.5g\n", temperature_k, label,
        shown(k[0][0]), shown(k[1][1]), shown(k[2][2]), shown(k[0][1]), shown(k[0][2]),
        shown(k[1][2]));
}

void print_sampling_error(const json& summary, std::size_t t, std::string& text) {
  const json& k = summary["kappa_rta_w_per_mk"][t];
  const double mean = (real(k[0][0]) + real(k[1][1]) + real(k[2][2])) / 3.0;
  const double relative = real(summary["kappa_rta_relative_error"][t]);
  print(text,
        "           sampled rates: mean of the diagonal %.5g ± %.2g (standard error, %.2g %%)\n",
        mean, mean * relative, 100.0 * relative);
}

const char* iterated_processes(const json& summary) {
  return !summary.contains("processes_4ph") ? "three phonons"
         : summary.value("four_phonon_iteration", false)
             ? "three and four phonons"
             : "three phonons (four in the relaxation times)";
}

void print_iterations(const json& summary, std::size_t t, std::string& text) {
  print(text, "           %s iterated: %lld iterations, residual %.1e\n",
        iterated_processes(summary), integer(summary["iterations"][t]),
        real(summary["residual"][t]));
}

/// Returns true if an iterated κ lies below that of relaxation times along an axis.
bool is_below_rta(const json& summary, std::size_t t) {
  const json& rta = summary["kappa_rta_w_per_mk"][t];
  const json& iterated = summary["kappa_w_per_mk"][t];
  bool below = false;
  for (std::size_t i = 0; i < 3; ++i) below |= real(iterated[i][i]) < real(rta[i][i]);
  return below;
}

/// Says why an iterated κ may lie below that of relaxation times.
void print_order(const json& summary, std::size_t t, std::string& text) {
  if (is_below_rta(summary, t))
    text +=
        "           BTE is below RTA: their Bose factors differ off the energy shell (a coarse "
        "mesh)\n";
}

/// Returns κ of the best approximation of the run plus coherences.
json total_kappa(const json& summary, std::size_t t) {
  const bool iterated = !summary["kappa_w_per_mk"].is_null();
  json sum = summary[iterated ? "kappa_w_per_mk" : "kappa_rta_w_per_mk"][t];
  const json& coherence = summary["kappa_coherence_w_per_mk"][t];
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) sum[i][j] = real(sum[i][j]) + real(coherence[i][j]);
  return sum;
}

void print_temperature(const json& summary, std::size_t t, std::string& text) {
  const double temperature_k = real(summary["temperatures_k"][t]);
  print_tensor(temperature_k, "RTA", summary["kappa_rta_w_per_mk"][t], text);
  if (summary.contains("kappa_rta_relative_error")) print_sampling_error(summary, t, text);
  if (!summary["kappa_w_per_mk"].is_null()) {
    print_tensor(temperature_k, "BTE", summary["kappa_w_per_mk"][t], text);
    print_iterations(summary, t, text);
    print_order(summary, t, text);
  }
  if (!summary.contains("kappa_coherence_w_per_mk")) return;
  print_tensor(temperature_k, "coh.", summary["kappa_coherence_w_per_mk"][t], text);
  print_tensor(temperature_k, "total", total_kappa(summary, t), text);
}

/// Returns true if every tensor is a multiple of the unit tensor within its symmetry errors.
bool are_isotropic(const json& tensors) {
  constexpr double kTolerance = 1e-5;  // five digits are shown
  if (tensors.is_null()) return true;
  for (const json& k : tensors)
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        const double wanted = i == j ? real(k[0][0]) : 0.0;
        if (std::abs(real(k[i][j]) - wanted) > kTolerance * std::abs(real(k[0][0]))) return false;
      }
  return true;
}

/// Returns true if one number for each temperature and approximation tells all about κ.
bool has_short_table(const json& summary) {
  if (summary["temperatures_k"].size() < 2 || summary.contains("kappa_rta_relative_error"))
    return false;
  for (const char* key : {"kappa_rta_w_per_mk", "kappa_w_per_mk", "kappa_coherence_w_per_mk"})
    if (summary.contains(key) && !are_isotropic(summary[key])) return false;
  return true;
}

/// Prints one row for each temperature of an isotropic κ.
void print_short_table(const json& summary, std::string& text) {
  const bool iterated = !summary["kappa_w_per_mk"].is_null();
  const bool coherent = summary.contains("kappa_coherence_w_per_mk");
  text += "thermal conductivity (W/m/K), equal along all axes\n      T (K)         RTA";
  if (iterated) text += "         BTE";
  if (coherent) text += "        coh.       total";
  text += '\n';
  std::string below;
  for (std::size_t t = 0; t < summary["temperatures_k"].size(); ++t) {
    const double temperature_k = real(summary["temperatures_k"][t]);
    print(text, "%11.2f%12.5g", temperature_k, real(summary["kappa_rta_w_per_mk"][t][0][0]));
    if (iterated) print(text, "%12.5g", real(summary["kappa_w_per_mk"][t][0][0]));
    if (coherent)
      print(text, "%12.5g%12.5g", real(summary["kappa_coherence_w_per_mk"][t][0][0]),
            real(total_kappa(summary, t)[0][0]));
    text += '\n';
    if (iterated && is_below_rta(summary, t))
      print(below, "%s%g", below.empty() ? "" : ", ", temperature_k);
  }
  if (!iterated) return;
  const json &counts = summary["iterations"], &residuals = summary["residual"];
  print(text, "%s iterated: at most %lld iterations, residual at most %.1e\n",
        iterated_processes(summary), integer(*std::max_element(counts.begin(), counts.end())),
        real(*std::max_element(residuals.begin(), residuals.end())));
  if (!below.empty())
    text += "BTE is below RTA at " + below +
            " K: their Bose factors differ off the energy shell (a coarse mesh)\n";
}

/// Prints all tensors, temperature by temperature.
void print_tensors(const json& summary, std::string& text) {
  text +=
      "thermal conductivity (W/m/K)\n"
      "      T (K)            xx          yy          zz          xy          xz          yz\n";
  for (std::size_t t = 0; t < summary["kappa_rta_w_per_mk"].size(); ++t)
    print_temperature(summary, t, text);
}

void print_precision(const json& precision, std::string& text) {
  print(text, "mixed precision: rates off by at most %.1e, κ by %.1e (%lld modes computed twice)\n",
        real(precision["largest_rate_error"]), real(precision["kappa_error"]),
        integer(precision["sampled_rows"]));
  if (!precision.contains("four_phonon")) return;
  const json& four = precision["four_phonon"];
  print(
      text, "  of four phonons: rates off by at most %.1e, κ by %.1e (%lld tiles computed twice)\n",
      real(four["largest_rate_error"]), real(four["kappa_error"]), integer(four["sampled_tiles"]));
}

/// Prints the diagonal of κ of one setting of a convergence study.
void print_setting(double temperature_k, const std::string& name, const json& kappa,
                   std::string& text) {
  print(text, "%9.2f  %-12s%12.5g%12.5g%12.5g\n", temperature_k, name.c_str(), real(kappa[0][0]),
        real(kappa[1][1]), real(kappa[2][2]));
}

void print_limit(double temperature_k, const char* name, const json& limit, std::size_t t,
                 std::string& text) {
  const json& kappa = limit["kappa_w_per_mk"][t];
  print(text, "%9.2f  %-12s%12.5g%12.5g%12.5g   ± %.2g\n", temperature_k, name, real(kappa[0]),
        real(kappa[1]), real(kappa[2]), real(limit["error_w_per_mk"][t][0]));
}

void print_convergence(const json& summary, std::string& text) {
  const json& study = summary["convergence"];
  text += "against 1/N and width (extrapolated, with the error that the points imply)\n";
  for (std::size_t t = 0; t < summary["temperatures_k"].size(); ++t) {
    const double temperature_k = real(summary["temperatures_k"][t]);
    for (std::size_t i = 0; i < study["mesh"].size(); ++i)
      print_setting(temperature_k, "N = " + std::to_string(study["mesh"][i][0].get<int>()),
                    study["kappa_by_mesh_w_per_mk"][i][t], text);
    print_limit(temperature_k, "1/N -> 0", study["mesh_limit"], t, text);
    for (std::size_t i = 0; i < study["scale_broad"].size(); ++i) {
      std::string name;
      print(name, "sb = %g", real(study["scale_broad"][i]));
      print_setting(temperature_k, name, study["kappa_by_width_w_per_mk"][i][t], text);
    }
    print_limit(temperature_k, "sb -> 0", study["width_limit"], t, text);
  }
}

void print_warnings(const json& summary, std::string& text) {
  for (const json& warning : summary["warnings"])
    text += "warning: " + warning.get<std::string>() + "\n";
}

}  // namespace

std::string kappa_table(const json& summary) {
  std::string text;
  print_head(summary, text);
  if (summary.contains("ladder")) {
    text += ladder_table(summary);
    print_warnings(summary, text);
    return text;
  }
  if (summary["kappa_rta_w_per_mk"].empty())
    return text + "harmonic quantities alone ('onlyharmonic'): in result.h5\n";
  print_processes(summary, text);
  print_broadening(summary, text);
  if (has_short_table(summary))
    print_short_table(summary, text);
  else
    print_tensors(summary, text);
  text += derived_table(summary);
  text += derivative_table(summary);
  if (summary.contains("precision")) print_precision(summary["precision"], text);
  if (summary.contains("convergence")) print_convergence(summary, text);
  print_warnings(summary, text);
  return text;
}

}  // namespace quasi::thermal

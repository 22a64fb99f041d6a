#include "workers/gw/output/displacement_results.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "workers/gw/solver/pseudoband_errors/coupling_errors.hpp"
#include "workers/gw/solver/pseudoband_errors/statistical_errors.hpp"
#include "workers/io/dataset_descriptions.hpp"

namespace quasi::gw {
namespace {

/// Returns one matrix of every displacement and k, eV/Bohr, [displacement][k][bra][ket].
template <typename Element>
std::vector<Cplx> all_elements(const DisplacementElements& found, const Element& element) {
  std::vector<Cplx> values;
  for (const auto& at_k : found.at)
    for (const ElementsAtK& at : at_k)
      for (std::size_t i = 0; i < at.mean_field.size(); ++i)
        values.push_back(element(at, i) * kRydberg_ev);
  return values;
}

template <typename Element>
double norm_ev(const ElementsAtK& at, const Element& element) {
  double sum = 0.0;
  for (std::size_t i = 0; i < at.mean_field.size(); ++i) sum += std::norm(element(at, i));
  return std::sqrt(sum) * kRydberg_ev;
}

nlohmann::json in_ev(const std::optional<double>& value_ry) {
  return value_ry ? nlohmann::json(*value_ry * kRydberg_ev) : nlohmann::json(nullptr);
}

/// True if finite displacements check the elements.
bool has_differences(const DisplacementElements& found) {
  return !found.at.empty() && !found.at[0].empty() && !found.at[0][0].difference.empty();
}

/// True if the crystal has V_xc, so that g^GW is known.
bool has_vxc(const DisplacementElements& found) {
  return !found.at.empty() && !found.at[0].empty() && !found.at[0][0].vxc.empty();
}

/// Returns true if blocks of random vectors give statistical errors.
bool has_blocks(const DisplacementElements& found) {
  return !found.at.empty() && !found.at[0].empty() && !found.at[0][0].sigma_without.empty();
}

std::vector<Cplx> sigma_matrix(const ElementsAtK& at) {
  std::vector<Cplx> sigma;
  for (std::size_t i = 0; i < at.mean_field.size(); ++i) sigma.push_back(at.sigma(i));
  return sigma;
}

/// Returns one member of the estimates of ∂Σ (value or half width), eV/Bohr,
/// [displacement][k][bra][ket].
std::vector<Cplx> all_estimates(const DisplacementElements& found,
                                std::vector<Cplx> ComplexEstimates::*part) {
  std::vector<Cplx> values;
  for (const auto& at_k : found.at)
    for (const ElementsAtK& at : at_k) {
      const ComplexEstimates estimates = jackknife_of(sigma_matrix(at), at.sigma_without);
      for (const Cplx& value : estimates.*part) values.push_back(value * kRydberg_ev);
    }
  return values;
}

/// Returns the root of the sum of |element|² of a matrix, in eV/Bohr.
/// @param matrix_ry  all elements, in Ry/Bohr
double norm_of(const std::vector<Cplx>& matrix_ry) {
  double sum = 0.0;
  for (const Cplx& value : matrix_ry) sum += std::norm(value);
  return std::sqrt(sum) * kRydberg_ev;
}

Cplx vxc_of(const ElementsAtK& at, std::size_t i) { return at.vxc[i]; }
Cplx gw_of(const ElementsAtK& at, std::size_t i) { return at.gw(i); }
Cplx mean_field_of(const ElementsAtK& at, std::size_t i) { return at.mean_field[i]; }
Cplx sigma_of(const ElementsAtK& at, std::size_t i) { return at.sigma(i); }
Cplx fixed_energies_of(const ElementsAtK& at, std::size_t i) { return at.fixed_energies[i]; }

}  // namespace

void write_displacements(const DisplacementElements& found, const MeanField& field,
                         H5Writer& file) {
  const auto n_d = static_cast<std::int64_t>(found.displacements.size()),
             n_k = static_cast<std::int64_t>(found.k_index.size()),
             n_b = static_cast<std::int64_t>(found.band_max - found.band_min + 1);
  std::vector<std::string> names;
  std::vector<std::int32_t> atoms, bands;
  std::vector<double> directions, k;
  for (const Displacement& d : found.displacements) {
    names.push_back(d.name());
    atoms.push_back(d.atom);
    for (const char axis : {'x', 'y', 'z'}) directions.push_back(d.direction == axis ? 1.0 : 0.0);
  }
  for (const int ik : found.k_index) {
    const Vec3& at = field.waves.k[static_cast<std::size_t>(ik)];
    k.insert(k.end(), at.begin(), at.end());
  }
  for (int band = found.band_min; band <= found.band_max; ++band) bands.push_back(band);
  write_labels("/perturbations/name", names, &file);
  file.write("/perturbations/atom", atoms, {n_d}, "1");
  file.write("/perturbations/direction", directions, {n_d, 3}, "1");
  file.write("/perturbations/k", k, {n_k, 3}, "1");
  file.write("/perturbations/band", bands, {n_b}, "1");
  const auto write = [&](const char* name, const auto& element) {
    file.write(std::string("/perturbations/") + name, all_elements(found, element),
               {n_d, n_k, n_b, n_b}, "eV/Bohr");
  };
  write("mean_field", mean_field_of);
  write("sigma_bra", [](const ElementsAtK& at, std::size_t i) { return at.sigma_bra[i]; });
  write("sigma_ket", [](const ElementsAtK& at, std::size_t i) { return at.sigma_ket[i]; });
  write("sigma", sigma_of);
  write("sigma_fixed_energies", fixed_energies_of);
  if (has_vxc(found)) {
    write("vxc", vxc_of);
    write("gw_bra", [](const ElementsAtK& at, std::size_t i) {
      return at.mean_field[i] - at.vxc[i] + at.sigma_bra[i];
    });
    write("gw_ket", [](const ElementsAtK& at, std::size_t i) {
      return at.mean_field[i] - at.vxc[i] + at.sigma_ket[i];
    });
    write("gw", gw_of);
  }
  if (has_differences(found))
    write("sigma_difference",
          [](const ElementsAtK& at, std::size_t i) { return at.difference[i]; });
  if (!has_blocks(found)) return;
  const std::vector<std::int64_t> shape{n_d, n_k, n_b, n_b};
  file.write("/perturbations/sigma_estimate", all_estimates(found, &ComplexEstimates::value), shape,
             "eV/Bohr");
  file.write("/perturbations/sigma_half_width", all_estimates(found, &ComplexEstimates::half_width),
             shape, "eV/Bohr");
}

nlohmann::json summary_of_displacements(const DisplacementElements& found, const MeanField& field) {
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t d = 0; d < found.displacements.size(); ++d)
    for (std::size_t k = 0; k < found.k_index.size(); ++k) {
      const ElementsAtK& at = found.at[d][k];
      rows.push_back({{"name", found.displacements[d].name()},
                      {"k", field.waves.k[static_cast<std::size_t>(found.k_index[k])]},
                      {"mean_field_ev_per_bohr", norm_ev(at, mean_field_of)},
                      {"sigma_ev_per_bohr", norm_ev(at, sigma_of)},
                      {"sigma_fixed_energies_ev_per_bohr", norm_ev(at, fixed_energies_of)}});
      if (!at.vxc.empty()) {
        rows.back()["vxc_ev_per_bohr"] = norm_ev(at, vxc_of);
        rows.back()["gw_ev_per_bohr"] = norm_ev(at, gw_of);
      }
      if (!at.sigma_without.empty()) {
        std::vector<double> without;
        for (const auto& matrix : at.sigma_without) without.push_back(norm_of(matrix));
        const JackknifeEstimate error = jackknife(norm_ev(at, sigma_of), without);
        rows.back()["sigma_estimate_ev_per_bohr"] = error.value;
        rows.back()["sigma_half_width_ev_per_bohr"] = error.half_width;
      }
      if (!at.difference.empty())
        rows.back()["largest_deviation_ev_per_bohr"] = largest_deviation_ry(at) * kRydberg_ev;
    }
  return {{"rows", rows},
          {"has_vxc", has_vxc(found)},
          {"band_min", found.band_min},
          {"band_max", found.band_max},
          {"acoustic_mean_field_ev_per_bohr", in_ev(found.acoustic_mean_field_ry)},
          {"acoustic_sigma_ev_per_bohr", in_ev(found.acoustic_sigma_ry)}};
}

std::string deviations_of(const nlohmann::json& summary) {
  std::optional<double> largest;
  for (const auto& row : summary.at("rows"))
    if (row.contains("largest_deviation_ev_per_bohr"))
      largest = std::max(largest.value_or(0.0), row["largest_deviation_ev_per_bohr"].get<double>());
  if (!largest) return "";
  char line[120];
  std::snprintf(line, sizeof line,
                "finite displacements deviate from dSigma by %.1e eV/Bohr at most\n", *largest);
  return line;
}

namespace {

/// Formats g^GW = g − ⟨∂V_xc⟩ + ⟨∂Σ⟩ of each displacement.
std::string table_of_gw(const nlohmann::json& summary) {
  std::string text = " displaced             dV_xc       g GW   g GW/g\n";
  for (const auto& row : summary.at("rows")) {
    const double g = row.at("mean_field_ev_per_bohr").get<double>(),
                 gw = row.at("gw_ev_per_bohr").get<double>();
    char line[120];
    std::snprintf(line, sizeof line, " %-15s %11.6f %10.6f %8.4f\n",
                  row.at("name").get<std::string>().c_str(),
                  row.at("vxc_ev_per_bohr").get<double>(), gw, g > 0.0 ? gw / g : 0.0);
    text += line;
  }
  return text;
}

}  // namespace

namespace {

/// Formats a table of the norm of dSigma with its interval, for each displacement and k. The text
/// is empty without blocks of random vectors.
std::string table_of_errors(const nlohmann::json& rows) {
  if (rows.empty() || !rows.front().contains("sigma_half_width_ev_per_bohr")) return "";
  std::string text =
      "95 % intervals by blocks of random vectors (eV/Bohr)\n"
      " displaced           k                                  dSigma      half\n";
  for (const auto& row : rows) {
    const auto& k = row.at("k");
    char line[160];
    std::snprintf(line, sizeof line, " %-15s %9.6f %9.6f %9.6f   %10.6f %9.6f\n",
                  row.at("name").get<std::string>().c_str(), k[0].get<double>(), k[1].get<double>(),
                  k[2].get<double>(), row.at("sigma_estimate_ev_per_bohr").get<double>(),
                  row.at("sigma_half_width_ev_per_bohr").get<double>());
    text += line;
  }
  return text;
}

}  // namespace

std::string table_of_displacements(const nlohmann::json& summary) {
  char line[200];
  std::snprintf(line, sizeof line,
                "\nfirst order in displacements, norms over bands %d to %d (eV/Bohr)\n"
                " displaced           k                              mean field     dSigma  "
                "fixed E_n\n",
                summary.at("band_min").get<int>(), summary.at("band_max").get<int>());
  std::string text = line;
  const bool with_gw = summary.at("has_vxc").get<bool>();
  for (const auto& row : summary.at("rows")) {
    const auto& k = row.at("k");
    std::snprintf(line, sizeof line, " %-15s %9.6f %9.6f %9.6f   %14.6f %10.6f %10.6f\n",
                  row.at("name").get<std::string>().c_str(), k[0].get<double>(), k[1].get<double>(),
                  k[2].get<double>(), row.at("mean_field_ev_per_bohr").get<double>(),
                  row.at("sigma_ev_per_bohr").get<double>(),
                  row.at("sigma_fixed_energies_ev_per_bohr").get<double>());
    text += line;
  }
  text += table_of_errors(summary.at("rows"));
  text += deviations_of(summary);
  if (with_gw)
    text += table_of_gw(summary);
  else
    text +=
        "g of GW and its enhancement need dV_xc: VXC of displaced crystals, or meanfield.vxc = "
        "\"lda\" of a built-in crystal\n";
  if (summary.at("acoustic_mean_field_ev_per_bohr").is_null())
    return text + "acoustic sums are not examined, since not all atoms are displaced\n";
  std::snprintf(line, sizeof line,
                "acoustic sums: mean field %.1e, dSigma %.1e eV/Bohr (0 with inversion)\n",
                summary.at("acoustic_mean_field_ev_per_bohr").get<double>(),
                summary.at("acoustic_sigma_ev_per_bohr").get<double>());
  return text + line;
}

}  // namespace quasi::gw

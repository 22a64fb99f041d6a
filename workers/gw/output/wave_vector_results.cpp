#include "workers/gw/output/wave_vector_results.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>

#include "workers/backend/error.hpp"
#include "workers/gw/output/displacement_results.hpp"
#include "workers/io/dataset_descriptions.hpp"

namespace quasi::gw {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

using Matrices = std::vector<Cplx>;

/// Returns one matrix of every q, displacement and k, eV/Bohr.
template <typename Element>
Matrices all_elements(const std::vector<WaveVectorElements>& list, const Element& element) {
  Matrices values;
  for (const WaveVectorElements& at_q : list)
    for (const auto& at_k : at_q.elements.at)
      for (const ElementsAtK& at : at_k)
        for (std::size_t i = 0; i < at.mean_field.size(); ++i)
          values.push_back(element(at, i) * kRydberg_ev);
  return values;
}

/// Returns one matrix of every q, mode and k, meV.
Matrices all_mode_elements(const std::vector<WaveVectorElements>& list,
                           Matrices ModeElementsAtK::*matrix) {
  Matrices values;
  for (const WaveVectorElements& at_q : list)
    for (const auto& at_k : at_q.phonons->at)
      for (const ModeElementsAtK& at : at_k)
        for (const Cplx& element : at.*matrix) values.push_back(1e3 * element);
  return values;
}

/// Returns true if the crystal has V_xc, so that g^GW is known.
bool has_vxc(const DisplacementElements& found) { return !found.at[0][0].vxc.empty(); }

/// Returns true if the deck has Born charges, so that the long-range part is known.
bool has_long_range(const DisplacementElements& found) {
  return !found.at[0][0].long_range.empty();
}

/// Writes the coordinates of the elements: displacements, wave vectors, k-points and bands.
void write_axes(const std::vector<WaveVectorElements>& list, const MeanField& field,
                H5Writer& file) {
  const DisplacementElements& first = list.front().elements;
  std::vector<std::string> names;
  std::vector<std::int32_t> atoms, bands;
  std::vector<double> directions, k, q, k_plus_q;
  for (const Displacement& d : first.displacements) {
    names.push_back(d.name());
    atoms.push_back(d.atom);
    for (const char axis : {'x', 'y', 'z'}) directions.push_back(d.direction == axis ? 1.0 : 0.0);
  }
  for (const int ik : first.k_index) {
    const Vec3& at = field.waves.k[static_cast<std::size_t>(ik)];
    k.insert(k.end(), at.begin(), at.end());
  }
  for (int band = first.band_min; band <= first.band_max; ++band) bands.push_back(band);
  for (const WaveVectorElements& at_q : list) {
    q.insert(q.end(), at_q.q.begin(), at_q.q.end());
    for (const Vec3& bra : at_q.k_plus_q) k_plus_q.insert(k_plus_q.end(), bra.begin(), bra.end());
  }
  const auto n_d = std::ssize(names), n_k = std::ssize(first.k_index), n_q = std::ssize(list);
  const std::string group = "/perturbations_at_q/";
  write_labels(group + "name", names, &file);
  file.write(group + "atom", atoms, {n_d}, "1");
  file.write(group + "direction", directions, {n_d, 3}, "1");
  file.write(group + "q", q, {n_q, 3}, "1");
  file.write(group + "k", k, {n_k, 3}, "1");
  file.write(group + "k_plus_q", k_plus_q, {n_q, n_k, 3}, "1");
  file.write(group + "band", bands, {std::ssize(bands)}, "1");
}

void write_modes_at_q(const std::vector<WaveVectorElements>& list, H5Writer& file) {
  const DisplacementElements& first = list.front().elements;
  const std::int64_t n_q = std::ssize(list), n_k = std::ssize(first.k_index),
                     n_b = first.band_max - first.band_min + 1,
                     n = std::ssize(list.front().phonons->modes.energy_ev);
  std::vector<double> energy_mev;
  std::vector<std::int32_t> first_of_set;
  Matrices eigenvector, displacement;
  for (const WaveVectorElements& at_q : list) {
    const ZeroPointModes& modes = at_q.phonons->modes;
    for (std::size_t m = 0; m < modes.n_modes(); ++m) {
      energy_mev.push_back(1e3 * modes.energy_ev[m]);
      first_of_set.push_back(modes.first_of_set[m] + 1);
      for (std::size_t c = 0; c < modes.n_modes(); ++c)
        displacement.push_back(modes.displacement_bohr(m, c / 3, c % 3));
    }
    eigenvector.insert(eigenvector.end(), modes.eigenvector.begin(), modes.eigenvector.end());
  }
  const std::string group = "/modes_at_q/";
  file.write(group + "energy", energy_mev, {n_q, n}, "meV");
  file.write(group + "first_of_set", first_of_set, {n_q, n}, "1");
  file.write(group + "mass", list.front().phonons->modes.mass_amu, {n / 3}, "amu");
  file.write(group + "eigenvector", eigenvector, {n_q, n, n}, "1");
  file.write(group + "displacement", displacement, {n_q, n, n}, "Bohr");
  file.write(group + "mean_field", all_mode_elements(list, &ModeElementsAtK::mean_field_ev),
             {n_q, n, n_k, n_b, n_b}, "meV");
  file.write(group + "sigma", all_mode_elements(list, &ModeElementsAtK::sigma_ev),
             {n_q, n, n_k, n_b, n_b}, "meV");
  if (has_long_range(first))
    file.write(group + "long_range", all_mode_elements(list, &ModeElementsAtK::long_range_ev),
               {n_q, n, n_k, n_b, n_b}, "meV");
  if (has_vxc(first))
    file.write(group + "gw", all_mode_elements(list, &ModeElementsAtK::gw_ev),
               {n_q, n, n_k, n_b, n_b}, "meV");
}

/// Formats the members of the set of a mode, counted from 1, such as 4,5,6.
std::string members_of(const ZeroPointModes& modes, int first) {
  std::string text;
  for (std::size_t m = 0; m < modes.n_modes(); ++m)
    if (modes.first_of_set[m] == first)
      text.append(text.empty() ? "" : ",").append(std::to_string(m + 1));
  return text;
}

template <typename Element>
double norm_ev(const ElementsAtK& at, const Element& element) {
  double sum = 0.0;
  for (std::size_t i = 0; i < at.mean_field.size(); ++i) sum += std::norm(element(at, i));
  return std::sqrt(sum) * kRydberg_ev;
}

Cplx mean_field_of(const ElementsAtK& at, std::size_t i) { return at.mean_field[i]; }
Cplx sigma_of(const ElementsAtK& at, std::size_t i) { return at.sigma(i); }
Cplx fixed_energies_of(const ElementsAtK& at, std::size_t i) { return at.fixed_energies[i]; }
Cplx vxc_of(const ElementsAtK& at, std::size_t i) { return at.vxc[i]; }
Cplx gw_of(const ElementsAtK& at, std::size_t i) { return at.gw(i); }

Vec3 k_of(const WaveVectorElements& at_q, std::size_t k, const MeanField& field) {
  return field.waves.k[static_cast<std::size_t>(at_q.elements.k_index[k])];
}

/// Returns the strongest coupling of each set of modes at one q.
nlohmann::json strongest_couplings(const WaveVectorElements& at_q, const MeanField& field) {
  nlohmann::json rows = nlohmann::json::array();
  const ModeElements& phonons = *at_q.phonons;
  for (std::size_t m = 0; m < phonons.modes.n_modes(); ++m) {
    const ModeCoupling* largest = nullptr;
    for (const ModeCoupling& c : phonons.couplings)
      if (c.mode == static_cast<int>(m) &&
          (largest == nullptr || c.mean_field_ev > largest->mean_field_ev))
        largest = &c;
    if (largest == nullptr) continue;
    const auto& ratio = largest->ratio;
    rows.push_back({{"q", at_q.q},
                    {"modes", members_of(phonons.modes, static_cast<int>(m))},
                    {"energy_mev", 1e3 * phonons.modes.energy_ev[m]},
                    {"k", k_of(at_q, largest->k, field)},
                    {"bra", {largest->bra.first, largest->bra.second}},
                    {"ket", {largest->ket.first, largest->ket.second}},
                    {"mean_field_mev", 1e3 * largest->mean_field_ev},
                    {"sigma_mev", 1e3 * largest->sigma_ev},
                    {"ratio", ratio ? nlohmann::json(*ratio) : nlohmann::json(nullptr)}});
    if (largest->gw_ev) rows.back()["gw_mev"] = 1e3 * *largest->gw_ev;
  }
  return rows;
}

}  // namespace

void write_wave_vectors(const std::vector<WaveVectorElements>& list, const MeanField& field,
                        H5Writer& file) {
  write_axes(list, field, file);
  const DisplacementElements& first = list.front().elements;
  const std::int64_t n_b = first.band_max - first.band_min + 1;
  const auto write = [&](const char* name, const auto& element) {
    file.write(
        std::string("/perturbations_at_q/") + name, all_elements(list, element),
        {std::ssize(list), std::ssize(first.displacements), std::ssize(first.k_index), n_b, n_b},
        "eV/Bohr");
  };
  write("mean_field", mean_field_of);
  write("sigma_bra", [](const ElementsAtK& at, std::size_t i) { return at.sigma_bra[i]; });
  write("sigma_ket", [](const ElementsAtK& at, std::size_t i) { return at.sigma_ket[i]; });
  write("sigma", sigma_of);
  write("sigma_fixed_energies", fixed_energies_of);
  if (has_long_range(first))
    write("long_range", [](const ElementsAtK& at, std::size_t i) { return at.long_range[i]; });
  if (has_vxc(first)) {
    write("vxc", vxc_of);
    write("gw_bra", [](const ElementsAtK& at, std::size_t i) {
      return at.mean_field[i] - at.vxc[i] + at.sigma_bra[i];
    });
    write("gw_ket", [](const ElementsAtK& at, std::size_t i) {
      return at.mean_field[i] - at.vxc[i] + at.sigma_ket[i];
    });
    write("gw", gw_of);
  }
  if (!first.at[0][0].difference.empty())
    write("sigma_difference",
          [](const ElementsAtK& at, std::size_t i) { return at.difference[i]; });
  if (list.front().phonons) write_modes_at_q(list, file);
}

void write_wave_vector_table(const std::filesystem::path& path,
                             const std::vector<WaveVectorElements>& list, const MeanField& field) {
  std::ofstream out(path);
  out << "# couplings of electrons and phonons, averaged over degenerate modes and bands\n"
         "# q (reduced), modes, energy (meV), k (reduced), first and last band of the bra at k + q,"
         "\n# of the ket at k, |g| of the mean field (meV), |<dSigma>| (meV),\n"
         "# Re(g* <dSigma>)/|g|^2 (nan where g vanishes), deformation potential (eV/Angstrom),\n"
         "# |g| of GW (meV) and |g GW|/|g| (nan without V_xc)\n";
  for (const WaveVectorElements& at_q : list)
    for (const ModeCoupling& c : at_q.phonons->couplings) {
      const ZeroPointModes& modes = at_q.phonons->modes;
      const Vec3 k = k_of(at_q, c.k, field);
      char line[360];
      std::snprintf(line, sizeof line,
                    "%12.9f %12.9f %12.9f %s %.6f %12.9f %12.9f %12.9f %4d %4d %4d %4d %16.9e "
                    "%16.9e %16.9e %16.9e %16.9e %16.9e\n",
                    at_q.q[0], at_q.q[1], at_q.q[2], members_of(modes, c.mode).c_str(),
                    1e3 * modes.energy_ev[static_cast<std::size_t>(c.mode)], k[0], k[1], k[2],
                    c.bra.first, c.bra.second, c.ket.first, c.ket.second, 1e3 * c.mean_field_ev,
                    1e3 * c.sigma_ev, c.ratio.value_or(kNone), c.potential_ev_per_angstrom,
                    1e3 * c.gw_ev.value_or(kNone), c.enhancement.value_or(kNone));
      out << line;
    }
  out.close();
  if (!out) throw StorageError("'" + path.string() + "' cannot be written");
}

nlohmann::json summary_of_wave_vectors(const std::vector<WaveVectorElements>& list,
                                       const MeanField& field) {
  nlohmann::json rows = nlohmann::json::array(), couplings = nlohmann::json::array();
  for (const WaveVectorElements& at_q : list) {
    const DisplacementElements& found = at_q.elements;
    for (std::size_t d = 0; d < found.displacements.size(); ++d)
      for (std::size_t k = 0; k < found.k_index.size(); ++k) {
        const ElementsAtK& at = found.at[d][k];
        rows.push_back({{"q", at_q.q},
                        {"name", found.displacements[d].name()},
                        {"k", k_of(at_q, k, field)},
                        {"mean_field_ev_per_bohr", norm_ev(at, mean_field_of)},
                        {"sigma_ev_per_bohr", norm_ev(at, sigma_of)},
                        {"sigma_fixed_energies_ev_per_bohr", norm_ev(at, fixed_energies_of)}});
        if (!at.difference.empty())
          rows.back()["largest_deviation_ev_per_bohr"] = largest_deviation_ry(at) * kRydberg_ev;
        if (at.vxc.empty()) continue;
        rows.back()["vxc_ev_per_bohr"] = norm_ev(at, vxc_of);
        rows.back()["gw_ev_per_bohr"] = norm_ev(at, gw_of);
      }
    if (at_q.phonons)
      for (auto& row : strongest_couplings(at_q, field)) couplings.push_back(std::move(row));
  }
  const DisplacementElements& first = list.front().elements;
  return {{"rows", rows},
          {"couplings", couplings},
          {"band_min", first.band_min},
          {"band_max", first.band_max}};
}

namespace {

std::string shown_vector(const nlohmann::json& vector) {
  char text[60];
  std::snprintf(text, sizeof text, "%9.6f %9.6f %9.6f", vector[0].get<double>(),
                vector[1].get<double>(), vector[2].get<double>());
  return text;
}

std::string shown_bands(const nlohmann::json& bands) {
  const int first = bands[0].get<int>(), last = bands[1].get<int>();
  std::string range = std::to_string(first);
  if (last > first) range.append("-").append(std::to_string(last));
  return range;
}

/// Formats a table of g^GW = g − ⟨∂V_xc⟩ + ⟨∂Σ⟩ of each displacement at each q. The
/// text is empty without V_xc.
std::string table_of_gw(const nlohmann::json& rows) {
  if (!rows.front().contains("gw_ev_per_bohr")) return "";
  std::string text =
      " q                             displaced       k                                   dV_xc"
      "       g GW   g GW/g\n";
  for (const auto& row : rows) {
    const double g = row.at("mean_field_ev_per_bohr").get<double>(),
                 gw = row.at("gw_ev_per_bohr").get<double>();
    char line[240];
    std::snprintf(line, sizeof line, " %s %-15s %s   %14.6f %10.6f %8.4f\n",
                  shown_vector(row.at("q")).c_str(), row.at("name").get<std::string>().c_str(),
                  shown_vector(row.at("k")).c_str(), row.at("vxc_ev_per_bohr").get<double>(), gw,
                  g > 0.0 ? gw / g : 0.0);
    text += line;
  }
  return text;
}

std::string table_of_couplings(const nlohmann::json& rows) {
  std::string text =
      "\nphonon modes at q, the strongest coupling of each set, averaged over degenerate modes and "
      "bands (meV)\n"
      " q                             modes           meV k                                 bra    "
      " "
      "ket         |g|    |dSigma|  dSigma/g\n";
  for (const auto& row : rows) {
    char line[240], ratio[20] = "        -";
    if (!row.at("ratio").is_null())
      std::snprintf(ratio, sizeof ratio, "%9.4f", row.at("ratio").get<double>());
    std::snprintf(line, sizeof line, " %s %-9s %9.3f %s %7s %7s %11.4f %11.4f %s\n",
                  shown_vector(row.at("q")).c_str(), row.at("modes").get<std::string>().c_str(),
                  row.at("energy_mev").get<double>(), shown_vector(row.at("k")).c_str(),
                  shown_bands(row.at("bra")).c_str(), shown_bands(row.at("ket")).c_str(),
                  row.at("mean_field_mev").get<double>(), row.at("sigma_mev").get<double>(), ratio);
    text += line;
  }
  return text + "all couplings are in modes_at_q.dat\n";
}

}  // namespace

std::string table_of_wave_vectors(const nlohmann::json& summary) {
  char line[240];
  std::snprintf(
      line, sizeof line,
      "\nfirst order in displacements at q, norms over bands %d to %d (eV/Bohr)\n"
      " q                             displaced       k                              mean "
      "field     dSigma  fixed E_n\n",
      summary.at("band_min").get<int>(), summary.at("band_max").get<int>());
  std::string text = line;
  for (const auto& row : summary.at("rows")) {
    std::snprintf(line, sizeof line, " %s %-15s %s   %14.6f %10.6f %10.6f\n",
                  shown_vector(row.at("q")).c_str(), row.at("name").get<std::string>().c_str(),
                  shown_vector(row.at("k")).c_str(), row.at("mean_field_ev_per_bohr").get<double>(),
                  row.at("sigma_ev_per_bohr").get<double>(),
                  row.at("sigma_fixed_energies_ev_per_bohr").get<double>());
    text += line;
  }
  text += deviations_of(summary);
  text += table_of_gw(summary.at("rows"));
  if (!summary.at("couplings").empty()) text += table_of_couplings(summary.at("couplings"));
  return text;
}

}  // namespace quasi::gw

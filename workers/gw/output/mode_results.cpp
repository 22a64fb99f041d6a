#include "workers/gw/output/mode_results.hpp"

#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>

#include "workers/backend/error.hpp"
#include "workers/gw/solver/mean_field/problem.hpp"

namespace quasi::gw {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
/// Smaller couplings are those that symmetry forbids. The table leaves them out.
constexpr double kShown_mev = 1e-3;

/// Lengths of the axes of the elements.
struct ElementAxes {
  std::int64_t modes, k, bands;

  ElementAxes(const ModeElements& phonons, const DisplacementElements& displaced)
      : modes(static_cast<std::int64_t>(phonons.modes.n_modes())),
        k(static_cast<std::int64_t>(displaced.k_index.size())),
        bands(displaced.band_max - displaced.band_min + 1) {}
  std::size_t matrix() const { return static_cast<std::size_t>(bands * bands); }
  std::size_t size() const { return static_cast<std::size_t>(modes * k) * matrix(); }
};

/// Returns one matrix of every mode and k, meV, [mode][k][bra][ket].
std::vector<Cplx> all_elements(const ModeElements& phonons, const ElementAxes& axes,
                               std::vector<Cplx> ModeElementsAtK::*matrix) {
  std::vector<Cplx> values;
  for (const auto& at_k : phonons.at)
    for (const ModeElementsAtK& at : at_k) {
      const std::vector<Cplx>& elements = at.*matrix;
      for (std::size_t i = 0; i < axes.matrix(); ++i)
        values.push_back(elements.empty() ? Cplx(kNone, kNone) : 1e3 * elements[i]);
    }
  return values;
}

/// True if the crystal has V_xc, so that g^GW is known.
bool has_gw(const ModeElements& phonons) {
  return !phonons.couplings.empty() && phonons.couplings.front().gw_ev.has_value();
}

/// Returns true if blocks of random vectors give statistical errors.
bool has_errors(const ModeElements& phonons) {
  return !phonons.couplings.empty() && phonons.couplings.front().sigma_error.has_value();
}

/// Returns a mean over sets for every mode, k, bra and ket, meV.
/// @param size_ev  returns the mean of a coupling, eV
template <typename Size>
std::vector<double> all_sizes(const ModeElements& phonons, const DisplacementElements& displaced,
                              const Size& size_ev) {
  const ElementAxes axes(phonons, displaced);
  std::vector<double> values(axes.size(), kNone);
  const auto n = static_cast<std::size_t>(axes.bands), n_k = static_cast<std::size_t>(axes.k);
  for (const ModeCoupling& c : phonons.couplings)
    for (std::size_t m = 0; m < phonons.modes.n_modes(); ++m) {
      if (phonons.modes.first_of_set[m] != c.mode) continue;
      for (int bra = c.bra.first; bra <= c.bra.second; ++bra)
        for (int ket = c.ket.first; ket <= c.ket.second; ++ket)
          values[((m * n_k + c.k) * n + static_cast<std::size_t>(bra - displaced.band_min)) * n +
                 static_cast<std::size_t>(ket - displaced.band_min)] = 1e3 * size_ev(c);
    }
  return values;
}

/// Returns the zero-point displacements, Bohr.
std::vector<Cplx> all_displacements(const ZeroPointModes& modes) {
  std::vector<Cplx> values;
  for (std::size_t m = 0; m < modes.n_modes(); ++m)
    for (std::size_t c = 0; c < modes.n_modes(); ++c)
      values.push_back(modes.acoustic[m] ? Cplx(kNone, kNone)
                                         : modes.displacement_bohr(m, c / 3, c % 3));
  return values;
}

/// Returns one part of the zero-point shifts of every mode, k and band, meV.
std::vector<double> all_shifts(const ModeElements& phonons,
                               std::vector<double> ZeroPointShifts::*part_ev) {
  std::vector<double> values;
  for (std::size_t m = 0; m < phonons.shifts.size(); ++m)
    for (const ZeroPointShifts& at : phonons.shifts[m])
      for (const double value : at.*part_ev)
        values.push_back(phonons.modes.acoustic[m] ? kNone : 1e3 * value);
  return values;
}

/// Returns the zero-point shifts of each k and multiplet by all optical modes, meV.
nlohmann::json zero_point_rows(const ModeElements& phonons, const DisplacementElements& displaced,
                               const MeanField& field) {
  nlohmann::json rows = nlohmann::json::array();
  if (phonons.shifts.empty()) return rows;
  for (std::size_t k = 0; k < displaced.k_index.size(); ++k)
    for (const auto& [begin, end] : multiplets(field.waves, 0, displaced.k_index[k],
                                               displaced.band_min - 1, displaced.band_max)) {
      double fan_ev = 0.0, debye_waller_ev = 0.0;
      std::optional<double> gw_ev;
      const auto band = static_cast<std::size_t>(begin - displaced.band_min + 1);
      for (const auto& of_mode : phonons.shifts) {
        fan_ev += of_mode[k].fan_ev[band];
        debye_waller_ev += of_mode[k].debye_waller_ev[band];
        if (!of_mode[k].fan_gw_ev.empty())
          gw_ev = gw_ev.value_or(0.0) + of_mode[k].fan_gw_ev[band] +
                  of_mode[k].debye_waller_gw_ev[band];
      }
      rows.push_back({{"k", field.waves.k[static_cast<std::size_t>(displaced.k_index[k])]},
                      {"bands", {begin + 1, end}},
                      {"fan_mev", 1e3 * fan_ev},
                      {"debye_waller_mev", 1e3 * debye_waller_ev},
                      {"shift_mev", 1e3 * (fan_ev + debye_waller_ev)}});
      if (gw_ev) rows.back()["shift_gw_mev"] = 1e3 * *gw_ev;
    }
  return rows;
}

std::string bands_of(const nlohmann::json& bands) {
  const int first = bands[0].get<int>(), last = bands[1].get<int>();
  std::string range = std::to_string(first);
  if (last > first) range.append("-").append(std::to_string(last));
  return range;
}

std::string table_of_shifts(const nlohmann::json& rows) {
  if (rows.empty()) return "zero-point shifts are not available with pseudobands\n";
  std::string text =
      "zero-point shifts by optical modes at q = 0 with rigid ions (meV)\n"
      " k                               bands         Fan Debye-Waller       shift\n";
  for (const auto& row : rows) {
    char line[160];
    const auto& k = row.at("k");
    std::snprintf(line, sizeof line, " %9.6f %9.6f %9.6f %7s %11.4f %12.4f %11.4f\n",
                  k[0].get<double>(), k[1].get<double>(), k[2].get<double>(),
                  bands_of(row.at("bands")).c_str(), row.at("fan_mev").get<double>(),
                  row.at("debye_waller_mev").get<double>(), row.at("shift_mev").get<double>());
    text += line;
  }
  for (const auto& row : rows)
    if (row.contains("shift_gw_mev")) {
      char line[120];
      std::snprintf(line, sizeof line, " with g of GW between the outer bands: %7s %11.4f\n",
                    bands_of(row.at("bands")).c_str(), row.at("shift_gw_mev").get<double>());
      text += line;
    }
  return text;
}

/// Returns the members of the set of a mode, counted from 1.
std::vector<int> members_of(const ZeroPointModes& modes, int first) {
  std::vector<int> members;
  for (std::size_t m = 0; m < modes.n_modes(); ++m)
    if (modes.first_of_set[m] == first) members.push_back(static_cast<int>(m) + 1);
  return members;
}

/// Formats members such as 4,5,6.
std::string joined(const std::vector<int>& members) {
  std::string text;
  for (const int member : members)
    text.append(text.empty() ? "" : ",").append(std::to_string(member));
  return text;
}

std::string table_row(const nlohmann::json& row) {
  const auto& k = row.at("k");
  char line[200], ratio[20] = "        -";
  if (!row.at("ratio").is_null())
    std::snprintf(ratio, sizeof ratio, "%9.4f", row.at("ratio").get<double>());
  std::snprintf(line, sizeof line, " %-9s %9.3f %9.6f %9.6f %9.6f %7s %11.4f %11.4f %s %9.4f\n",
                joined(row.at("modes").get<std::vector<int>>()).c_str(),
                row.at("energy_mev").get<double>(), k[0].get<double>(), k[1].get<double>(),
                k[2].get<double>(), bands_of(row.at("bands")).c_str(),
                row.at("mean_field_mev").get<double>(), row.at("sigma_mev").get<double>(), ratio,
                row.at("potential_ev_per_angstrom").get<double>());
  return line;
}

}  // namespace

void write_modes(const ModeElements& phonons, const DisplacementElements& displaced,
                 H5Writer& file) {
  const ElementAxes axes(phonons, displaced);
  const ZeroPointModes& modes = phonons.modes;
  std::vector<double> energy_mev;
  std::vector<std::int32_t> acoustic, first;
  for (std::size_t m = 0; m < modes.n_modes(); ++m) {
    energy_mev.push_back(1e3 * modes.energy_ev[m]);
    acoustic.push_back(modes.acoustic[m] ? 1 : 0);
    first.push_back(modes.first_of_set[m] + 1);
  }
  const std::int64_t n = axes.modes;
  file.write("/modes/energy", energy_mev, {n}, "meV");
  file.write("/modes/acoustic", acoustic, {n}, "1");
  file.write("/modes/first_of_set", first, {n}, "1");
  file.write("/modes/mass", modes.mass_amu, {n / 3}, "amu");
  file.write("/modes/eigenvector", modes.eigenvector, {n, n}, "1");
  file.write("/modes/displacement", all_displacements(modes), {n, n}, "Bohr");
  const std::int64_t k = axes.k, b = axes.bands;
  file.write("/modes/mean_field", all_elements(phonons, axes, &ModeElementsAtK::mean_field_ev),
             {n, k, b, b}, "meV");
  file.write("/modes/sigma", all_elements(phonons, axes, &ModeElementsAtK::sigma_ev), {n, k, b, b},
             "meV");
  const auto write_size = [&](const char* name, const auto& size_ev) {
    file.write(name, all_sizes(phonons, displaced, size_ev), {n, k, b, b}, "meV");
  };
  write_size("/modes/mean_field_size", [](const ModeCoupling& c) { return c.mean_field_ev; });
  write_size("/modes/sigma_size", [](const ModeCoupling& c) { return c.sigma_ev; });
  if (has_gw(phonons)) {
    file.write("/modes/gw", all_elements(phonons, axes, &ModeElementsAtK::gw_ev), {n, k, b, b},
               "meV");
    write_size("/modes/gw_size", [](const ModeCoupling& c) { return c.gw_ev.value_or(kNone); });
  }
  if (has_errors(phonons)) {
    file.write("/modes/sigma_estimate",
               all_elements(phonons, axes, &ModeElementsAtK::sigma_estimate_ev), {n, k, b, b},
               "meV");
    file.write("/modes/sigma_half_width",
               all_elements(phonons, axes, &ModeElementsAtK::sigma_half_width_ev), {n, k, b, b},
               "meV");
    write_size("/modes/sigma_size_estimate",
               [](const ModeCoupling& c) { return c.sigma_error->value; });
    write_size("/modes/sigma_size_half_width",
               [](const ModeCoupling& c) { return c.sigma_error->half_width; });
  }
  if (phonons.shifts.empty()) return;
  file.write("/modes/fan_shift", all_shifts(phonons, &ZeroPointShifts::fan_ev), {n, k, b}, "meV");
  file.write("/modes/debye_waller_shift", all_shifts(phonons, &ZeroPointShifts::debye_waller_ev),
             {n, k, b}, "meV");
  if (!has_gw(phonons)) return;
  file.write("/modes/fan_shift_gw", all_shifts(phonons, &ZeroPointShifts::fan_gw_ev), {n, k, b},
             "meV");
  file.write("/modes/debye_waller_shift_gw",
             all_shifts(phonons, &ZeroPointShifts::debye_waller_gw_ev), {n, k, b}, "meV");
}

void write_mode_table(const std::filesystem::path& path, const ModeElements& phonons,
                      const DisplacementElements& displaced, const MeanField& field) {
  std::ofstream out(path);
  out << "# couplings of electrons and phonons at q = 0, averaged over degenerate modes and bands\n"
         "# modes, energy (meV), k (reduced), first and last band of the bra, of the ket,\n"
         "# |g| of the mean field (meV), |<dSigma>| (meV), Re(g* <dSigma>)/|g|^2 (nan where g "
         "vanishes),\n# deformation potential (eV/Angstrom), |g| of GW (meV) and |g GW|/|g| (nan "
         "without V_xc)\n";
  for (const ModeCoupling& c : phonons.couplings) {
    const Vec3& k = field.waves.k[static_cast<std::size_t>(displaced.k_index[c.k])];
    char line[260];
    std::snprintf(line, sizeof line,
                  "%s %.6f %12.9f %12.9f %12.9f %4d %4d %4d %4d %16.9e %16.9e %16.9e %16.9e %16.9e "
                  "%16.9e\n",
                  joined(members_of(phonons.modes, c.mode)).c_str(),
                  1e3 * phonons.modes.energy_ev[static_cast<std::size_t>(c.mode)], k[0], k[1], k[2],
                  c.bra.first, c.bra.second, c.ket.first, c.ket.second, 1e3 * c.mean_field_ev,
                  1e3 * c.sigma_ev, c.ratio.value_or(kNone), c.potential_ev_per_angstrom,
                  1e3 * c.gw_ev.value_or(kNone), c.enhancement.value_or(kNone));
    out << line;
  }
  out.close();
  if (!out) throw StorageError("'" + path.string() + "' cannot be written");
}

nlohmann::json summary_of_modes(const ModeElements& phonons, const DisplacementElements& displaced,
                                const MeanField& field) {
  nlohmann::json sets = nlohmann::json::array(), rows = nlohmann::json::array();
  const ZeroPointModes& modes = phonons.modes;
  for (std::size_t m = 0; m < modes.n_modes(); ++m)
    if (modes.first_of_set[m] == static_cast<int>(m))
      sets.push_back({{"modes", members_of(modes, static_cast<int>(m))},
                      {"energy_mev", 1e3 * modes.energy_ev[m]},
                      {"acoustic", static_cast<bool>(modes.acoustic[m])}});
  for (const ModeCoupling& c : phonons.couplings) {
    if (c.bra != c.ket) continue;
    rows.push_back({{"modes", members_of(modes, c.mode)},
                    {"energy_mev", 1e3 * modes.energy_ev[static_cast<std::size_t>(c.mode)]},
                    {"k", field.waves.k[static_cast<std::size_t>(displaced.k_index[c.k])]},
                    {"bands", {c.bra.first, c.bra.second}},
                    {"mean_field_mev", 1e3 * c.mean_field_ev},
                    {"sigma_mev", 1e3 * c.sigma_ev},
                    {"ratio", c.ratio ? nlohmann::json(*c.ratio) : nlohmann::json(nullptr)},
                    {"potential_ev_per_angstrom", c.potential_ev_per_angstrom}});
    if (c.sigma_error) {
      rows.back()["sigma_estimate_mev"] = 1e3 * c.sigma_error->value;
      rows.back()["sigma_half_width_mev"] = 1e3 * c.sigma_error->half_width;
    }
    if (c.ratio_error) {
      rows.back()["ratio_estimate"] = c.ratio_error->value;
      rows.back()["ratio_half_width"] = c.ratio_error->half_width;
    }
    if (c.gw_ev) rows.back()["gw_mev"] = 1e3 * *c.gw_ev;
    if (c.enhancement) {
      rows.back()["enhancement"] = *c.enhancement;
      rows.back()["potential_gw_ev_per_angstrom"] = *c.enhancement * c.potential_ev_per_angstrom;
    }
  }
  return {{"sets", sets},
          {"rows", rows},
          {"zero_point_shifts", zero_point_rows(phonons, displaced, field)}};
}

namespace {

/// Formats the enhancement of |g| by GW, one line for each set of modes and multiplet.
std::string table_of_enhancements(const nlohmann::json& rows) {
  std::string text =
      "enhancement of couplings by GW (meV, eV/A)\n"
      " modes           meV k                               bands         |g|     |g GW|   "
      "|g GW|/|g| potential GW\n";
  for (const auto& row : rows) {
    if (!row.contains("enhancement") || row.at("mean_field_mev").get<double>() < kShown_mev)
      continue;
    const auto& k = row.at("k");
    char line[200];
    std::snprintf(
        line, sizeof line, " %-9s %9.3f %9.6f %9.6f %9.6f %7s %11.4f %10.4f %12.4f %12.4f\n",
        joined(row.at("modes").get<std::vector<int>>()).c_str(), row.at("energy_mev").get<double>(),
        k[0].get<double>(), k[1].get<double>(), k[2].get<double>(),
        bands_of(row.at("bands")).c_str(), row.at("mean_field_mev").get<double>(),
        row.at("gw_mev").get<double>(), row.at("enhancement").get<double>(),
        row.at("potential_gw_ev_per_angstrom").get<double>());
    text += line;
  }
  return text;
}

/// Formats a table of dSigma and of its ratio to g with their intervals. The text is empty without
/// blocks of random vectors.
std::string table_of_errors(const nlohmann::json& rows) {
  if (rows.empty() || !rows.front().contains("sigma_half_width_mev")) return "";
  std::string text =
      "95 % intervals by blocks of random vectors (meV)\n"
      " modes           meV k                               bands    |dSigma|      half  dSigma/g "
      "     half\n";
  for (const auto& row : rows) {
    if (!row.contains("ratio_half_width") || row.at("mean_field_mev").get<double>() < kShown_mev)
      continue;
    const auto& k = row.at("k");
    char line[200];
    std::snprintf(line, sizeof line, " %-9s %9.3f %9.6f %9.6f %9.6f %7s %11.4f %9.4f %9.4f %9.4f\n",
                  joined(row.at("modes").get<std::vector<int>>()).c_str(),
                  row.at("energy_mev").get<double>(), k[0].get<double>(), k[1].get<double>(),
                  k[2].get<double>(), bands_of(row.at("bands")).c_str(),
                  row.at("sigma_estimate_mev").get<double>(),
                  row.at("sigma_half_width_mev").get<double>(),
                  row.at("ratio_estimate").get<double>(), row.at("ratio_half_width").get<double>());
    text += line;
  }
  return text;
}

}  // namespace

std::string table_of_modes(const nlohmann::json& summary) {
  std::string text =
      "\nphonon modes at q = 0, averaged over degenerate modes and bands (meV, eV/A)\n"
      " modes           meV k                               bands         |g|    |dSigma|  "
      "dSigma/g potential\n";
  int left_out = 0;
  for (const auto& row : summary.at("rows")) {
    if (row.at("mean_field_mev").get<double>() < kShown_mev)
      ++left_out;
    else
      text += table_row(row);
  }
  for (const auto& set : summary.at("sets"))
    if (set.at("acoustic").get<bool>())
      text += "modes " + joined(set.at("modes").get<std::vector<int>>()) +
              " are rigid shifts, which have no zero-point amplitude\n";
  if (left_out > 0) text += std::to_string(left_out) + " couplings below 0.001 meV are left out\n";
  text += "couplings between different multiplets are in modes.dat\n";
  const auto& rows = summary.at("rows");
  text += table_of_errors(rows);
  if (!rows.empty() && rows.front().contains("gw_mev")) text += table_of_enhancements(rows);
  return text + table_of_shifts(summary.at("zero_point_shifts"));
}

}  // namespace quasi::gw

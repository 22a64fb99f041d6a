#include "workers/gw/output/sigma_results.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

nlohmann::json summary_of(const Spectrum& s) {
  nlohmann::json roots = nlohmann::json::array();
  for (const Root& root : s.roots) roots.push_back({{"energy_ev", root.energy_ev}, {"z", root.z}});
  nlohmann::json entry{
      {"k", s.k},
      {"spin", s.spin},
      {"band_begin", s.band_begin},
      {"band_end", s.band_end},
      {"status", s.spectral_per_ev.empty() ? nullptr : nlohmann::json(name_of(s.status))},
      {"roots", roots},
      {"e_graphical_ev", s.best ? nlohmann::json(s.best->energy_ev) : nlohmann::json(nullptr)},
      {"z_graphical", s.best ? nlohmann::json(s.best->z) : nlohmann::json(nullptr)}};
  if (!s.spectral_per_ev.empty()) entry["spectral_norm"] = s.norm;
  return entry;
}

void write_spectra(const std::vector<Spectrum>& spectra, H5Writer& file) {
  const auto n = static_cast<std::int64_t>(spectra.size());
  const auto n_e = static_cast<std::int64_t>(spectra.front().energy_ev.size());
  std::vector<double> k, energy, a;
  std::vector<Cplx> sigma;
  std::vector<std::int32_t> band, spin;
  for (const Spectrum& s : spectra) {
    k.insert(k.end(), s.k.begin(), s.k.end());
    band.insert(band.end(), {s.band_begin, s.band_end});
    spin.push_back(s.spin);
    energy.insert(energy.end(), s.energy_ev.begin(), s.energy_ev.end());
    sigma.insert(sigma.end(), s.sigma_ev.begin(), s.sigma_ev.end());
    a.insert(a.end(), s.spectral_per_ev.begin(), s.spectral_per_ev.end());
  }
  file.write("/spectra/k", k, {n, 3}, "1");
  file.write("/spectra/bands", band, {n, 2}, "1");
  file.write("/spectra/spin", spin, {n}, "1");
  file.write("/spectra/energy_ev", energy, {n, n_e}, "eV");
  file.write("/spectra/sigma_ev", sigma, {n, n_e}, "eV");
  if (!a.empty()) file.write("/spectra/spectral_function", a, {n, n_e}, "1/eV");
}

/// Writes /sigma_matrix/k1_s1/…, with points and spins counted from 1.
void write_matrix(const Calculation& run, const SigmaMatrixAtK& matrix, H5Writer& file) {
  const std::string group = "/sigma_matrix/k" + std::to_string(matrix.k_index + 1) + "_s" +
                            std::to_string(matrix.spin + 1) + "/";
  const auto in_ev = [](std::vector<Cplx> values) {
    for (Cplx& value : values) value *= kRydberg_ev;
    return values;
  };
  std::vector<double> energy = matrix.energy_ry;
  for (double& e : energy) e *= kRydberg_ev;
  const auto n_e = static_cast<std::int64_t>(energy.size());
  const Vec3& k = run.field.waves.k[static_cast<std::size_t>(matrix.k_index)];
  file.write(group + "k", std::vector<double>(k.begin(), k.end()), {3}, "1");
  file.write(group + "energy_ev", energy, {n_e}, "eV");
  file.write(group + "x_ev", in_ev(matrix.x_ry), {matrix.n, matrix.n}, "eV");
  file.write(group + "correlation_ev", in_ev(matrix.correlation_ry), {n_e, matrix.n, matrix.n},
             "eV");
}

}  // namespace

void add_sigma_summary(const Calculation& run, nlohmann::json& summary) {
  for (std::size_t i = 0; i < run.dyson.size(); ++i) {
    auto& qp = summary["quasiparticles"][i];
    const DysonState& state = run.dyson[i];
    qp["e_dyson_ev"] = state.energy_ev ? nlohmann::json(*state.energy_ev) : nlohmann::json(nullptr);
    qp["z_dyson"] = state.z;
    qp["dyson_status"] = name_of(state.status);
    qp["dyson_own_weight"] = state.own_weight;
  }
  if (!run.matrices.empty()) {
    const auto& r = run.matrix_report;
    summary["full_matrix"] = {{"energies", run.matrices.front().energy_ry.size()},
                              {"pairs", r.pairs},
                              {"direct_pairs", r.direct_pairs},
                              {"terms", r.terms},
                              {"fit_error_relative", r.fit_error_relative},
                              {"zgemm_flops", r.zgemm_flops},
                              {"residual", r.residual},
                              {"hermitian", r.hermitian}};
  }
  nlohmann::json checks = nlohmann::json::array();
  for (const SelfCheck& check : run.self_test) {
    const auto finite = [](double x) {
      return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(nullptr);
    };
    checks.push_back({{"name", check.name},
                      {"value", check.value ? finite(*check.value) : nlohmann::json(nullptr)},
                      {"low", finite(check.low)},
                      {"high", finite(check.high)},
                      {"units", check.units},
                      {"passed", check.passed()}});
  }
  if (!checks.empty()) {
    summary["self_test"] = std::move(checks);
    summary["violated_laws"] = run.violated_laws;
  }
  if (!run.outer.change_ev.empty())
    summary["outer_loop"] = {{"turns", run.outer.change_ev.size()},
                             {"change_ev", run.outer.change_ev},
                             {"converged", run.outer.converged}};
  if (!run.band_order.empty()) {
    summary["band_path"] = {{"points", run.mean_field_bands.front().k.size()},
                            {"followed_by", run.band_order}};
    double least = 1.0;
    for (const auto& spin : run.band_share)
      for (const auto& band : spin)
        least = std::min(least, *std::min_element(band.begin(), band.end()));
    if (!run.band_share.empty()) summary["band_path"]["least_share"] = least;
  }
  if (!run.spectra.empty()) {
    nlohmann::json list = nlohmann::json::array();
    for (const Spectrum& s : run.spectra) list.push_back(summary_of(s));
    summary["spectra"] = std::move(list);
  }
}

void write_sigma_results(const Calculation& run, H5Writer& file) {
  for (const SelfCheck& check : run.self_test)
    if (check.value) {
      file.write("/self_test/" + check.name + "/value", std::vector<double>{*check.value}, {1},
                 check.units);
      file.write("/self_test/" + check.name + "/passed",
                 std::vector<std::int32_t>{check.passed() ? 1 : 0}, {1}, "1");
    }
  for (const SigmaMatrixAtK& matrix : run.matrices) write_matrix(run, matrix, file);
  if (!run.spectra.empty()) write_spectra(run.spectra, file);
}

void write_sigma_tables(const std::filesystem::path& directory, const Calculation& run) {
  char line[200];
  if (!run.mean_field_bands.empty()) {
    std::ofstream out(directory / "bands.dat");
    out << "# path (1/Bohr), k (reduced), E_mf (eV), E_qp (eV)"
        << (run.band_share.empty() ? ""
                                   : ", share of the state in the window at the neighbouring k")
        << "; a block a band, two blank lines between\n# followed by " << run.band_order << '\n';
    for (std::size_t spin = 0; spin < run.mean_field_bands.size(); ++spin) {
      const PathBands& mf = run.mean_field_bands[spin];
      for (std::size_t b = 0; b < mf.energy_ev.size(); ++b) {
        for (std::size_t i = 0; i < mf.k.size(); ++i) {
          std::snprintf(line, sizeof line, "%10.6f %9.6f %9.6f %9.6f %12.6f",
                        mf.distance_per_bohr[i], mf.k[i][0], mf.k[i][1], mf.k[i][2],
                        mf.energy_ev[b][i]);
          out << line;
          if (!run.quasiparticle_bands.empty()) {
            std::snprintf(line, sizeof line, " %12.6f",
                          run.quasiparticle_bands[spin].energy_ev[b][i]);
            out << line;
          }
          if (!run.band_share.empty()) {
            std::snprintf(line, sizeof line, " %6.4f", run.band_share[spin][b][i]);
            out << line;
          }
          out << '\n';
        }
        out << "\n\n";
      }
    }
    if (!out) throw InvalidInput("'" + (directory / "bands.dat").string() + "' cannot be written");
  }
  if (run.spectra.empty()) return;
  std::ofstream out(directory / "spectra.dat");
  const bool with_a = !run.spectra.front().spectral_per_ev.empty();
  out << "# E (eV), Re Sigma, Im Sigma (eV)"
      << (with_a ? ", A (1/eV)" : "; A is absent because V_xc is unknown")
      << "; a block a multiplet, two blank lines between\n";
  for (const Spectrum& s : run.spectra) {
    std::snprintf(line, sizeof line, "# k %9.6f %9.6f %9.6f spin %d bands %d-%d\n", s.k[0], s.k[1],
                  s.k[2], s.spin, s.band_begin, s.band_end);
    out << line;
    for (std::size_t e = 0; e < s.energy_ev.size(); ++e) {
      std::snprintf(line, sizeof line, "%12.6f %14.8f %14.8f", s.energy_ev[e], s.sigma_ev[e].real(),
                    s.sigma_ev[e].imag());
      out << line;
      if (with_a) {
        std::snprintf(line, sizeof line, " %14.8f", s.spectral_per_ev[e]);
        out << line;
      }
      out << '\n';
    }
    out << "\n\n";
  }
  if (!out) throw InvalidInput("'" + (directory / "spectra.dat").string() + "' cannot be written");
}

}  // namespace quasi::gw

#include "workers/thermal/output/path/path_file.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "workers/io/dataset_descriptions.hpp"
#include "workers/thermal/output/bte_text.hpp"
#include "workers/thermal/solver/harmonic/dispersion.hpp"

namespace quasi::thermal {
namespace {

/// Writes the lines "distance q1 q2 q3 ω1 … ωn", with an empty line between segments.
void write_text_file(const Dispersion& d, const std::filesystem::path& file) {
  TextFile out(file);
  out.text("# distance (1/nm), q (fractional), omega (rad/ps) of " + std::to_string(d.n_branches) +
           " branches")
      .end();
  for (std::size_t i = 0; i < d.vertex_label.size(); ++i)
    out.text("# " + d.vertex_label[i] + " at ")
        .fixed(d.distance_per_nm[static_cast<std::size_t>(d.vertex_point[i])], 0, 6)
        .end();
  const auto nb = static_cast<std::size_t>(d.n_branches);
  for (std::size_t i = 0; i < d.q_fractional.size(); ++i) {
    if (i > 0 && d.segment[i] != d.segment[i - 1]) out.end();
    out.fixed(d.distance_per_nm[i], 14, 8);
    for (const double x : d.q_fractional[i]) out.fixed(x, 14, 8);
    for (std::size_t s = 0; s < nb; ++s) out.fixed(d.omega_rad_ps[i * nb + s], 16, 8);
    out.end();
  }
  out.close();
}

}  // namespace

void write_path(const Deck& deck, const ConductivityRun& run,
                const std::filesystem::path& directory, H5Writer& out) {
  if (deck.control.path.vertices.empty()) return;
  const Dispersion d = dispersion_along(deck.control.path, deck.crystal, deck.second_order,
                                        deck.control.harmonic_options());
  const std::int64_t n = d.n_points(), nb = d.n_branches;
  std::vector<std::string> labels(d.q_fractional.size());
  for (std::size_t i = 0; i < d.vertex_point.size(); ++i)
    labels[static_cast<std::size_t>(d.vertex_point[i])] = d.vertex_label[i];
  std::vector<double> q, rates;
  for (const Vec3& point : d.q_fractional) q.insert(q.end(), point.begin(), point.end());
  write_labels("/path/label", labels, &out);
  out.write("/path/segment", d.segment, {n}, "1");
  out.write("/path/qpoint", q, {n, 3}, "1");
  out.write("/path/distance", d.distance_per_nm, {n}, "1/nm");
  out.write("/path/omega", d.omega_rad_ps, {n, nb}, "rad/ps");
  out.write("/path/velocity", d.velocity_km_s, {n, nb, 3}, "km/s");
  out.write("/path/band", d.band, {n, nb}, "1");
  const Transport transport{deck.crystal, deck.symmetry, run.modes,
                            deck.control.transport_options()};
  for (const TemperatureResult& r : run.by_temperature) {
    const std::vector<double> of_path = rates_along(d, transport, r.rate_per_ps);
    rates.insert(rates.end(), of_path.begin(), of_path.end());
  }
  if (!rates.empty())
    out.write("/path/rate", rates, {std::ssize(run.by_temperature), n, nb}, "1/ps");
  write_text_file(d, directory / "dispersion.dat");
}

}  // namespace quasi::thermal

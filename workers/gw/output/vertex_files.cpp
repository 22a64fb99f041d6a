#include "workers/gw/output/vertex_files.hpp"

#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <tuple>

#include "workers/backend/error.hpp"

namespace quasi::gw {
namespace {

/// Returns |g| of one coupling, eV.
using SizeOf = std::function<double(const ModeCoupling&)>;

const std::string kRule = "     " + std::string(78, '-') + "\n";

/// |g| by first mode of the set, position of k, bra and ket, eV.
using Sizes = std::map<std::tuple<int, std::size_t, int, int>, double>;

Sizes sizes_of(const ModeElements& phonons, const SizeOf& size_ev) {
  Sizes sizes;
  for (const ModeCoupling& c : phonons.couplings)
    for (int bra = c.bra.first; bra <= c.bra.second; ++bra)
      for (int ket = c.ket.first; ket <= c.ket.second; ++ket)
        sizes[{c.mode, c.k, bra, ket}] = size_ev(c);
  return sizes;
}

/// Writes one file. EPW names the band at k first, which is the ket, and then that at k + q.
void write_file(const std::filesystem::path& path, const ModeElements& phonons,
                const DisplacementElements& displaced, const MeanField& field,
                const SizeOf& size_ev) {
  const Sizes sizes = sizes_of(phonons, size_ev);
  std::ofstream out(path);
  char line[200];
  out << "     Electron-phonon vertex |g| (meV)\n\n";
  std::snprintf(line, sizeof line, "     iq = %7d coord.: %12.7f%12.7f%12.7f\n", 1, 0.0, 0.0, 0.0);
  out << line;
  for (std::size_t k = 0; k < displaced.k_index.size(); ++k) {
    const int ik = displaced.k_index[k];
    const Vec3& at = field.waves.k[static_cast<std::size_t>(ik)];
    std::snprintf(line, sizeof line, "     ik = %7d coord.: %12.7f%12.7f%12.7f\n",
                  static_cast<int>(k) + 1, at[0], at[1], at[2]);
    out << line
        << "      ibnd     jbnd     imode   enk[eV]    enk+q[eV]  omega(q)[meV]   |g|[meV]\n"
        << kRule;
    for (int ket = displaced.band_min; ket <= displaced.band_max; ++ket)
      for (int bra = displaced.band_min; bra <= displaced.band_max; ++bra)
        for (std::size_t m = 0; m < phonons.modes.n_modes(); ++m) {
          const auto found = sizes.find({phonons.modes.first_of_set[m], k, bra, ket});
          std::snprintf(line, sizeof line, "%9d%9d%9d%12.4f%12.4f%20.10f%20.10E\n", ket, bra,
                        static_cast<int>(m) + 1, field.waves.energy(0, ik, ket - 1) * kRydberg_ev,
                        field.waves.energy(0, ik, bra - 1) * kRydberg_ev,
                        1e3 * phonons.modes.energy_ev[m],
                        found == sizes.end() ? 0.0 : 1e3 * found->second);
          out << line;
        }
    out << kRule;
  }
  out.close();
  if (!out) throw StorageError("'" + path.string() + "' cannot be written");
}

}  // namespace

void write_vertices(const std::filesystem::path& directory, const ModeElements& phonons,
                    const DisplacementElements& displaced, const MeanField& field) {
  write_file(directory / "g_mean_field.dat", phonons, displaced, field,
             [](const ModeCoupling& c) { return c.mean_field_ev; });
  if (!phonons.couplings.empty() && phonons.couplings.front().gw_ev)
    write_file(directory / "g_gw.dat", phonons, displaced, field,
               [](const ModeCoupling& c) { return *c.gw_ev; });
}

}  // namespace quasi::gw

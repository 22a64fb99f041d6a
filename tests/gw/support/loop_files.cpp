#include "tests/gw/support/loop_files.hpp"

#include <cstdio>
#include <fstream>

#include "tests/gw/support/small_silicon.hpp"
#include "workers/gw/input/mean_field_files.hpp"

namespace quasi::test {

using namespace gw;

std::filesystem::path write_loop_job(const std::filesystem::path& directory,
                                     const std::string& more) {
  std::filesystem::create_directories(directory);
  gw::test::SmallSilicon s;
  const SigmaOptions o = s.options();
  const auto vxc = s.toy_vxc(o);
  write_wavefunctions(directory / "WFN", s.field.waves);
  write_wavefunctions(directory / "WFNq", *s.field.shifted);
  write_field(directory / "RHO", s.field.density);
  std::ofstream elements(directory / "vxc.dat");
  const int n = o.band_max - o.band_min + 1;
  char line[120];
  for (std::size_t ik = 0; ik < s.field.waves.k.size(); ++ik) {
    const Vec3& k = s.field.waves.k[ik];
    std::snprintf(line, sizeof line, "%13.9f %13.9f %13.9f %7d %7d\n", k[0], k[1], k[2], n, n * n);
    elements << line;
    const auto value = [&](int l, int m) { return vxc[ik][static_cast<std::size_t>(l * n + m)]; };
    for (int l = 0; l < n; ++l) {
      std::snprintf(line, sizeof line, "%8d %7d %.15g %.15g\n", 1, l + 1, value(l, l).real(), 0.0);
      elements << line;
    }
    for (int l = 0; l < n; ++l)
      for (int m = 0; m < n; ++m) {
        std::snprintf(line, sizeof line, "%8d %7d %7d %.15g %.15g\n", 1, l + 1, m + 1,
                      value(l, m).real(), value(l, m).imag());
        elements << line;
      }
  }
  const auto deck = directory / "deck.toml";
  std::ofstream(deck)
      << "kind = \"gw\"\ncheckpoint_interval_s = 0.0\n[meanfield]\nwfn = \"WFN\"\nwfnq = "
         "\"WFNq\"\nrho = \"RHO\"\nvxc = \"vxc.dat\"\n[epsilon]\ncutoff_ry = 3.0\nbands = "
      << o.bands << "\n[sigma]\nbands = " << o.bands
      << "\nbare_cutoff_ry = 6.0\nscreened_cutoff_ry = 3.0\nband_max = " << o.band_max << "\n"
      << more;
  return deck;
}

}  // namespace quasi::test

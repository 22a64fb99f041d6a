#include "workers/thermal/output/bte_files_4ph.hpp"

#include <cmath>
#include <string>

namespace quasi::thermal {
namespace {

constexpr const char* kSuffix[kChannels4ph] = {"plusplus", "plusminus", "minusminus"};

}  // namespace

void write_bte_files_4ph(const BteExport& x, const Rates4ph& r) {
  const auto channel = [](int c) { return static_cast<Channel4ph>(c); };
  // P4 = (6/7) Σ channels Σδ/(Nq³ nb⁴).
  const auto all = [&](std::int64_t row) {
    double sum = 0.0;
    for (int c = 0; c < kChannels4ph; ++c)
      sum += r.phase_space[static_cast<std::size_t>(r.at(channel(c), row))];
    return 6.0 / 7.0 * sum;
  };
  const auto total_file = [&](const std::string& name, double value) {
    TextFile file(x.directory / name);
    file.real(value, 26, 17).end();
    file.close();
  };
  x.point_file("BTE.P4", all);
  total_file("BTE.P4_total", x.mesh_sum(all));
  for (int c = 0; c < kChannels4ph; ++c) {
    const auto one = [&](std::int64_t row) {
      return r.phase_space[static_cast<std::size_t>(r.at(channel(c), row))];
    };
    x.point_file(std::string("BTE.P4_") + kSuffix[c], one);
    total_file(std::string("BTE.P4_") + kSuffix[c] + "_total", x.mesh_sum(one));
  }
  TextFile counts(x.directory / "BTE.Numprocess_4ph");  // point-major, unlike all other mode files
  for (std::int64_t row = 0; row < r.n_rows; ++row) {
    for (int c = 0; c < kChannels4ph; ++c)
      counts.text(" ").integer(
          std::llround(r.processes[static_cast<std::size_t>(r.at(channel(c), row))]), 0);
    counts.end();
  }
  counts.close();
  for (int t = 0; t < r.n_temperatures; ++t) {
    const std::filesystem::path folder =
        x.temperature_folder(x.run.by_temperature[static_cast<std::size_t>(t)].temperature_k);
    x.mode_file(folder / "BTE.w_4ph", 20, 10,
                [&](std::int64_t row) { return r.total_per_ps(t, row); });
    x.mode_file(folder / "BTE.WP4", 14, 5, [&](std::int64_t row) {
      double sum = 0.0;
      for (int c = 0; c < kChannels4ph; ++c)
        sum += r.weighted_phase_space[static_cast<std::size_t>(r.at(channel(c), t, row))];
      return sum;
    });
    for (int c = 0; c < kChannels4ph; ++c) {
      x.mode_file(folder / (std::string("BTE.w_4ph_") + kSuffix[c]), 20, 10,
                  [&](std::int64_t row) { return r.rate_per_ps(channel(c), t, row); });
      x.mode_file(folder / (std::string("BTE.WP4_") + kSuffix[c]), 14, 5, [&](std::int64_t row) {
        return r.weighted_phase_space[static_cast<std::size_t>(r.at(channel(c), t, row))];
      });
    }
  }
}

}  // namespace quasi::thermal

#include "workers/mosfet/output/small_signal_csv.hpp"

#include <cstdio>
#include <fstream>
#include <string>

#include "workers/backend/error.hpp"

namespace quasi::mosfet {
namespace {

constexpr const char* kTerminalNames[] = {"source", "drain", "gate"};

std::string header() {
  std::string line = "vgs_v,vds_v,frequency_hz,current_gain,unilateral_gain";
  for (const char* to : kTerminalNames)
    for (const char* from : kTerminalNames)
      for (const char* part : {"real", "imaginary"})
        line += std::string(",y_") + to + "_" + from + "_" + part + "_s_per_m";
  return line + "\n";
}

// Appends a number, or nothing for one that is not finite.
void append(double value, std::string* line) {
  char text[40] = "";
  if (value - value == 0.0) std::snprintf(text, sizeof text, "%.17g", value);
  line->append(",").append(text);
}

}  // namespace

void write_small_signal_csv(const std::filesystem::path& directory,
                            const std::vector<PointResult>& points) {
  std::string rows;
  for (const PointResult& point : points) {
    if (!point.arrays.contains("small_signal/frequency")) continue;
    const auto values = [&](const char* name) -> const std::vector<double>& {
      return point.arrays.at(std::string("small_signal/") + name).values;
    };
    const std::vector<double>&real = values("admittance_real"),
          &imaginary = values("admittance_imaginary");
    const std::size_t frequencies = values("frequency").size(), matrix = real.size() / frequencies;
    for (std::size_t n = 0; n < frequencies; ++n) {
      char bias[80];
      std::snprintf(bias, sizeof bias, "%.17g,%.17g", point.bias.vgs_v, point.bias.vds_v);
      std::string row = bias;
      for (const char* name : {"frequency", "current_gain", "unilateral_gain"})
        append(values(name)[n], &row);
      for (std::size_t k = n * matrix; k < (n + 1) * matrix; ++k) {
        append(real[k], &row);
        append(imaginary[k], &row);
      }
      rows += row + "\n";
    }
  }
  if (rows.empty()) return;
  std::ofstream out(directory / "small_signal.csv");
  out << header() << rows;
  if (!out.flush()) throw StorageError("cannot write small_signal.csv; is the disk full?");
}

}  // namespace quasi::mosfet

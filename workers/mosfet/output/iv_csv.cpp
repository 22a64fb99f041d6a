#include "workers/mosfet/output/iv_csv.hpp"

#include <array>
#include <charconv>

#include "workers/io/replaced_file.hpp"

namespace quasi::mosfet {
namespace {

constexpr const char* kCsvHeader =
    "vgs_v,vds_v,current_a_per_m,current_source_a_per_m,current_drain_a_per_m,current_spread_a_per_"
    "m,"
    "current_drift_a_per_m,time_fs,steps,ballistic_ratio,density_ratio,top_subband_share,top_share,"
    "tunnel_share,status\n";

/// The shortest text that gives back every bit of a number: 0.3, not 0.29999999999999999.
std::string shortest(double value) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string csv_row(const PointResult& point) {
  std::string line = shortest(point.bias.vgs_v) + "," + shortest(point.bias.vds_v);
  for (const char* name : {"current_a_per_m", "current_source_a_per_m", "current_drain_a_per_m",
                           "current_spread_a_per_m", "current_drift_a_per_m", "time_fs", "steps"})
    line.append(",").append(shortest(point.numbers.at(name)));
  for (const char* name :
       {"ballistic_ratio", "density_ratio", "top_subband_share", "top_share", "tunnel_share"}) {
    const auto found = point.numbers.find(name);
    line.append(",").append(found == point.numbers.end() ? "" : shortest(found->second));
  }
  return line.append(",").append(status_name(point.status)).append("\n");
}

}  // namespace

void IvCsv::add(const std::map<int, PointResult>& points) {
  for (const auto& [point, result] : points) rows_[point] = csv_row(result);
  std::string text = kCsvHeader;
  for (const auto& [point, row] : rows_) text += row;
  replace_file(path_, text);
}

void write_iv_csv(const std::filesystem::path& directory, const std::vector<PointResult>& points) {
  std::string text = kCsvHeader;
  for (const PointResult& point : points) text += csv_row(point);
  replace_file(directory / "iv.csv", text);
}

}  // namespace quasi::mosfet

#include "workers/mosfet/output/result_file.hpp"

#include <cstdio>
#include <fstream>
#include <tuple>

#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"
#include "workers/mosfet/model/run_names.hpp"
#include "workers/mosfet/output/dataset_table.hpp"
#include "workers/mosfet/output/derived_file.hpp"
#include "workers/mosfet/output/iv_csv.hpp"
#include "workers/mosfet/output/small_signal_csv.hpp"
#include "workers/mosfet/output/vtk_files.hpp"

namespace quasi::mosfet {
namespace {

/// Name of a column of /iv, the key of the number that it shows, and its units.
using IvColumn = std::tuple<const char*, const char*, const char*>;

void write_column(H5Writer* file, const std::vector<PointResult>& points, const IvColumn& column) {
  const auto& [name, key, units] = column;
  std::vector<double> values;
  for (const PointResult& point : points) values.push_back(point.numbers.at(key));
  file->write(std::string("/iv/") + name, values, {std::ssize(points)}, units);
}

void write_biases(H5Writer* file, const std::vector<PointResult>& points) {
  std::vector<double> vgs_v, vds_v;
  for (const PointResult& point : points) {
    vgs_v.push_back(point.bias.vgs_v);
    vds_v.push_back(point.bias.vds_v);
  }
  file->write("/iv/vgs", vgs_v, {std::ssize(points)}, "V");
  file->write("/iv/vds", vds_v, {std::ssize(points)}, "V");
}

void write_mobility_csv(const std::filesystem::path& directory,
                        const std::vector<PointResult>& points) {
  std::ofstream out(directory / "mobility.csv");
  out << "vgs_v,sheet_per_nm2,effective_field_mv_per_cm,mobility_cm2_per_v_s\n";
  char line[160];
  for (const PointResult& p : points) {
    std::snprintf(line, sizeof line, "%.17g,%.17g,%.17g,%.17g\n", p.bias.vgs_v,
                  p.numbers.at("sheet_per_nm2"), p.numbers.at("effective_field_mv_per_cm"),
                  p.numbers.at("mobility_cm2_per_v_s"));
    out << line;
  }
  if (!out.flush()) throw StorageError("cannot write mobility.csv; is the disk full?");
}

}  // namespace

void write_results(const Deck& deck, const std::filesystem::path& directory,
                   const std::vector<PointResult>& points, const InputRecord& inputs) {
  H5Writer file(directory / "result.h5");
  for (std::size_t k = 0; k < points.size(); ++k)
    write_point(&file, "/points/" + std::to_string(k), points[k]);
  write_biases(&file, points);
  if (deck.run.mode == RunMode::kMobility) {
    for (const IvColumn& column : {IvColumn{"sheet_density", "sheet_per_nm2", "nm^-2"},
                                   {"effective_field", "effective_field_mv_per_cm", "MV/cm"},
                                   {"mobility", "mobility_cm2_per_v_s", "cm^2/(V s)"}})
      write_column(&file, points, column);
    write_mobility_csv(directory, points);
  }
  write_derived(derived_of(deck, points), directory, &file);
  write_small_signal_csv(directory, points);
  if (deck.output.vtk) write_vtk(directory, points);
  if (has_currents(deck.run)) {
    for (const IvColumn& column : {IvColumn{"I_source", "current_source_a_per_m", "A/m"},
                                   {"I_drain", "current_drain_a_per_m", "A/m"},
                                   {"I_mid", "current_a_per_m", "A/m"},
                                   {"I_mean", "current_mean_a_per_m", "A/m"},
                                   {"spread", "current_spread_a_per_m", "A/m"},
                                   {"drift", "current_drift_a_per_m", "A/m"},
                                   {"t", "time_fs", "fs"},
                                   {"steps", "steps", "1"}})
      write_column(&file, points, column);
    write_iv_csv(directory, points);
  }
  write_result_root("mosfet", inputs, deck.notes, &file);
  file.attribute("/", "mode", mode_name(deck.run.mode));
  file.attribute("/", "transport", transport_name(deck.run.transport));
  file.attribute("/", "statistics",
                 deck.statistics == StatisticsKind::kFermi ? "fermi" : "maxwell");
  describe_result(&file);
  file.commit();
}

}  // namespace quasi::mosfet

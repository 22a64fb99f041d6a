#include "workers/mosfet/solver/sweep/checkpoint.hpp"

#include <sstream>

#include "workers/backend/error.hpp"
#include "workers/io/hdf5.hpp"

namespace quasi::mosfet {
namespace {

void write_values(H5Writer* file, const std::string& path, const std::vector<double>& values) {
  file->write(path, values, {static_cast<std::int64_t>(values.size())}, "");
}

void write_state(H5Writer* file, const std::string& group, const PointState& state) {
  write_values(file, group + "/pdf", state.pdf);
  write_values(file, group + "/potential", state.potential_v);
  write_values(file, group + "/energy", state.energy_ev);
  write_values(file, group + "/psi", state.psi);
  write_values(file, group + "/trend", state.trend_v);
  write_values(file, group + "/curvature", state.curvature_v);
  write_values(file, group + "/lead", state.lead_ev);
  write_values(file, group + "/current_integral", state.current_integral);
  write_values(file, group + "/clock", {state.last_dt_fs, state.time_fs});
  file->write_scalar(group + "/step", state.step, "");
}

PointState read_state(const H5Reader& file, const std::string& group) {
  PointState state;
  state.pdf = file.doubles(group + "/pdf");
  state.potential_v = file.doubles(group + "/potential");
  state.energy_ev = file.doubles(group + "/energy");
  state.psi = file.doubles(group + "/psi");
  state.trend_v = file.doubles(group + "/trend");
  state.curvature_v = file.doubles(group + "/curvature");
  state.lead_ev = file.doubles(group + "/lead");
  state.current_integral = file.doubles(group + "/current_integral");
  const auto clock = file.doubles(group + "/clock");
  state.last_dt_fs = clock.at(0);
  state.time_fs = clock.at(1);
  state.step = file.integer(group + "/step");
  return state;
}

void write_progress(H5Writer* file, const std::string& group, const PointProgress& p) {
  write_state(file, group + "/state", p.state);
  write_values(file, group + "/slices", p.average.slices());
  write_values(file, group + "/steadiness", p.steadiness);
  write_values(file, group + "/history", p.history);
  write_values(file, group + "/terminals", p.terminals);
  write_values(file, group + "/numbers",
               {static_cast<double>(p.point), p.next_sample_fs, p.min_pdf, p.top_share,
                p.filling.lowest, p.filling.highest, p.filling.outside, p.passed_source,
                p.passed_drain, p.average.window_fs()});
}

PointProgress read_progress(const H5Reader& file, const std::string& group) {
  PointProgress p;
  p.state = read_state(file, group + "/state");
  p.steadiness = file.doubles(group + "/steadiness");
  p.history = file.doubles(group + "/history");
  p.terminals = file.doubles(group + "/terminals");
  const auto n = file.doubles(group + "/numbers");
  p.point = static_cast<int>(n.at(0));
  p.next_sample_fs = n.at(1);
  p.min_pdf = n.at(2);
  p.top_share = n.at(3);
  p.filling = {n.at(4), n.at(5), n.at(6)};
  p.passed_source = n.at(7);
  p.passed_drain = n.at(8);
  p.average = CurrentAverage(n.at(9));
  p.average.restore(file.doubles(group + "/slices"),
                    static_cast<int>(p.state.current_integral.size()));
  return p;
}

PointResult read_point(const H5Reader& file, const std::string& group) {
  PointResult point;
  point.bias = {file.number(group + "/vgs_v"), file.number(group + "/vds_v")};
  point.status = status_named(file.text(group + "/status"));
  for (const std::string& name : file.children(group + "/numbers"))
    point.numbers[name] = file.number(group + "/numbers/" + name);
  std::istringstream names(file.text(group + "/arrays"));
  for (std::string name; std::getline(names, name);)
    if (!name.empty())
      point.add(name, file.doubles(group + "/" + name), file.shape(group + "/" + name),
                file.text_attribute(group + "/" + name, "units"));
  return point;
}

}  // namespace

std::string resume_key(const Deck& deck) {
  std::ostringstream key;
  key.precision(17);
  const auto& g = deck.geometry;
  key << QUASI_VERSION << ' ' << g.source_nm << ' ' << g.channel_nm << ' ' << g.drain_nm << ' '
      << g.silicon_nm << ' ' << g.oxide_top_nm << ' ' << g.oxide_bottom_nm;
  const auto& d = deck.doping;
  key << '|' << d.contact_nm3 << ' ' << d.channel_nm3 << ' ' << d.smoothing_nm;
  for (std::size_t k = 0; k < d.profile_x_nm.size(); ++k)
    key << ' ' << d.profile_x_nm[k] << ' ' << d.profile_nm3[k];
  key << '|' << deck.gate.workfunction_top_ev << ' ' << deck.gate.workfunction_bottom_ev << ' '
      << deck.gate.bottom_offset_v;
  const auto& m = deck.material;
  key << '|' << m.alpha_per_ev << ' ' << m.m_oxide_m0 << ' ' << m.barrier_ev << ' ' << m.affinity_ev
      << ' ' << m.eps_si << ' ' << m.eps_ox << ' ' << m.density_kg_m3 << ' ' << m.sound_m_s << ' '
      << m.temperature_k;
  for (const auto& v : deck.valleys)
    key << '|' << v.mx_m0 << ' ' << v.my_m0 << ' ' << v.mz_m0 << ' ' << v.offset_ev;
  const auto& n = deck.mesh;
  key << '|' << n.nx << ' ' << n.nz << ' ' << n.subbands << ' ' << n.nw << ' ' << n.nphi << ' '
      << n.wmax_ev << ' ' << static_cast<int>(n.range) << ' ' << static_cast<int>(n.phi_flux);
  key << '|' << static_cast<int>(deck.scattering.scheme);
  for (const auto& p : deck.scattering.processes)
    key << '|' << p.name << ' ' << static_cast<int>(p.kind) << ' ' << p.energy_ev << ' '
        << p.coupling_ev_per_nm;
  const auto& rough = deck.scattering.roughness;
  key << '|' << rough.height_nm << ' ' << rough.length_nm << ' ' << static_cast<int>(rough.spectrum)
      << ' ' << deck.scattering.impurities << '|' << static_cast<int>(deck.statistics) << ' '
      << deck.pauli;
  key << '|' << static_cast<int>(deck.contact) << ' ' << deck.neutral_inflow;
  for (const auto& b : deck.points) key << '|' << b.vgs_v << ' ' << b.vds_v;
  for (const Waveform* wave : {&deck.gate_wave, &deck.drain_wave}) {
    key << '|';
    for (std::size_t k = 0; k < wave->t_fs.size(); ++k)
      key << wave->t_fs[k] << ' ' << wave->value_v[k] << ' ';
  }
  const auto& r = deck.run;
  key << '|' << static_cast<int>(r.mode) << ' ' << static_cast<int>(r.transport) << ' '
      << r.t_end_fs << ' ' << r.cfl << ' ' << r.steady_tol << ' ' << r.steady_floor_a_per_m << ' '
      << r.window_fs << ' ' << r.weno_epsilon << ' ' << r.tol_v << ' ' << r.refresh_steps << ' '
      << r.coarse_start << ' ' << r.plasma_damping;
  key << '|' << deck.output.every_fs;
  for (const auto& f : deck.output.fields) key << ' ' << f;
  for (const double t : deck.output.pdf_at_fs) key << ' ' << t;
  return key.str();
}

void write_checkpoint(const std::filesystem::path& path, const std::string& key,
                      const SweepSnapshot& snapshot) {
  H5Writer file(path);
  file.write_text("/key", key);
  std::vector<std::int64_t> finished, running, waiting;
  for (const auto& [point, result] : snapshot.finished) {
    const std::string group = "/finished/" + std::to_string(point);
    write_point(&file, group, result);
    std::string names;
    for (const auto& [name, array] : result.arrays) names += name + "\n";
    file.write_text(group + "/arrays", names);
    finished.push_back(point);
  }
  for (const auto& [chain, progress] : snapshot.running) {
    write_progress(&file, "/running/" + std::to_string(chain), progress);
    running.push_back(chain);
  }
  for (const auto& [chain, state] : snapshot.chain_state) {
    write_state(&file, "/waiting/" + std::to_string(chain), state);
    waiting.push_back(chain);
  }
  std::vector<std::int64_t> pdfs;
  for (const auto& [place, snap] : snapshot.pdfs) {
    const std::string group =
        "/pdf/" + std::to_string(place.first) + "_" + std::to_string(place.second);
    const std::int64_t shape[] = {std::ssize(snap.pdf)};
    file.write_compressed(group + "/pdf", snap.pdf, shape, "nm^-2 eV^-1 rad^-1");
    file.write_scalar(group + "/time", snap.time_fs, "fs");
    pdfs.insert(pdfs.end(), {place.first, place.second});
  }
  file.write("/pdf_places", pdfs, {std::ssize(pdfs)}, "");
  file.write("/finished_points", finished, {std::ssize(finished)}, "");
  file.write("/running_chains", running, {std::ssize(running)}, "");
  file.write("/waiting_chains", waiting, {std::ssize(waiting)}, "");
  file.commit();
}

std::optional<SweepSnapshot> read_checkpoint(const std::filesystem::path& path,
                                             const std::string& key) {
  try {
    const H5Reader file(path);
    if (file.text("/key") != key) return {};
    SweepSnapshot snapshot;
    for (const auto point : file.integers("/finished_points"))
      snapshot.finished[static_cast<int>(point)] =
          read_point(file, "/finished/" + std::to_string(point));
    for (const auto chain : file.integers("/running_chains"))
      snapshot.running[static_cast<int>(chain)] =
          read_progress(file, "/running/" + std::to_string(chain));
    for (const auto chain : file.integers("/waiting_chains"))
      snapshot.chain_state[static_cast<int>(chain)] =
          read_state(file, "/waiting/" + std::to_string(chain));
    const auto places = file.integers("/pdf_places");
    for (std::size_t i = 0; i + 1 < places.size(); i += 2) {
      const std::string group =
          "/pdf/" + std::to_string(places[i]) + "_" + std::to_string(places[i + 1]);
      const std::vector<double> values = file.doubles(group + "/pdf");
      PdfSnapshot& snap =
          snapshot.pdfs[{static_cast<int>(places[i]), static_cast<int>(places[i + 1])}];
      snap.time_fs = file.doubles(group + "/time").at(0);
      snap.pdf.assign(values.begin(), values.end());
    }
    return snapshot;
  } catch (const Error&) {
    return {};  // cut short, or not of this program
  } catch (const std::out_of_range&) {
    return {};
  }
}

}  // namespace quasi::mosfet

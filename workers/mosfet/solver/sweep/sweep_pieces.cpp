#include "workers/mosfet/solver/sweep/sweep_pieces.hpp"

#include <sstream>

#include "workers/backend/ranks/packed_values.hpp"

namespace quasi::mosfet {
namespace {

void add_state(PackedValues& out, const PointState& state) {
  for (const auto* values :
       {&state.pdf, &state.potential_v, &state.energy_ev, &state.psi, &state.trend_v,
        &state.curvature_v, &state.lead_ev, &state.current_integral})
    out.add(*values);
  out.add(state.last_dt_fs);
  out.add(state.time_fs);
  out.add(static_cast<double>(state.step));
}

PointState next_state(UnpackedValues& in) {
  PointState state;
  for (auto* values : {&state.pdf, &state.potential_v, &state.energy_ev, &state.psi, &state.trend_v,
                       &state.curvature_v, &state.lead_ev, &state.current_integral})
    *values = in.list();
  state.last_dt_fs = in.number();
  state.time_fs = in.number();
  state.step = static_cast<std::int64_t>(in.number());
  return state;
}

UnpackedValues contents_of(const Piece& piece) { return {piece.data, piece.count}; }

}  // namespace

std::string SweepPieces::finished(int point) { return "finished/" + std::to_string(point); }
std::string SweepPieces::running(int chain) { return "running/" + std::to_string(chain); }
std::string SweepPieces::waiting(int chain) { return "waiting/" + std::to_string(chain); }
std::string SweepPieces::snapshot(int point, int number) {
  return "pdf/" + std::to_string(point) + "_" + std::to_string(number);
}

std::vector<double> pack(const PointState& state) {
  PackedValues out;
  add_state(out, state);
  return out.take();
}

PointState unpack_state(const Piece& piece) {
  UnpackedValues in = contents_of(piece);
  return next_state(in);
}

std::vector<double> pack(const PointProgress& p) {
  PackedValues out;
  add_state(out, p.state);
  for (const auto* values : {&p.average.slices(), &p.steadiness, &p.history, &p.terminals})
    out.add(*values);
  for (const double value : {static_cast<double>(p.point), p.next_sample_fs, p.min_pdf, p.top_share,
                             p.filling.lowest, p.filling.highest, p.filling.outside,
                             p.passed_source, p.passed_drain, p.average.window_fs()})
    out.add(value);
  return out.take();
}

PointProgress unpack_progress(const Piece& piece) {
  UnpackedValues in = contents_of(piece);
  PointProgress p;
  p.state = next_state(in);
  std::vector<double> slices = in.list();
  p.steadiness = in.list();
  p.history = in.list();
  p.terminals = in.list();
  p.point = static_cast<int>(in.number());
  for (double* value : {&p.next_sample_fs, &p.min_pdf, &p.top_share, &p.filling.lowest,
                        &p.filling.highest, &p.filling.outside, &p.passed_source, &p.passed_drain})
    *value = in.number();
  p.average = CurrentAverage(in.number());
  p.average.restore(std::move(slices), static_cast<int>(p.state.current_integral.size()));
  return p;
}

std::vector<double> pack(const PointResult& point) {
  PackedValues out;
  out.add(point.bias.vgs_v);
  out.add(point.bias.vds_v);
  out.add(status_name(point.status));
  out.add(static_cast<double>(point.numbers.size()));
  for (const auto& [name, value] : point.numbers) {
    out.add(name);
    out.add(value);
  }
  out.add(static_cast<double>(point.arrays.size()));
  for (const auto& [name, array] : point.arrays) {
    out.add(name);
    out.add(array.values);
    out.add(std::vector<double>(array.shape.begin(), array.shape.end()));
    out.add(array.units);
  }
  return out.take();
}

PointResult unpack_result(const Piece& piece) {
  UnpackedValues in = contents_of(piece);
  PointResult point;
  point.bias.vgs_v = in.number();
  point.bias.vds_v = in.number();
  point.status = status_named(in.text());
  for (std::size_t left = in.size(); left > 0; --left) {
    const std::string name = in.text();
    point.numbers[name] = in.number();
  }
  for (std::size_t left = in.size(); left > 0; --left) {
    const std::string name = in.text();
    std::vector<double> values = in.list();
    const std::vector<double> shape = in.list();
    point.add(name, std::move(values), {shape.begin(), shape.end()}, in.text());
  }
  return point;
}

std::vector<double> pack(const PdfSnapshot& snapshot) {
  PackedValues out;
  out.add(snapshot.time_fs);
  out.add(snapshot.pdf);
  return out.take();
}

PdfSnapshot unpack_snapshot(const Piece& piece) {
  UnpackedValues in = contents_of(piece);
  PdfSnapshot snapshot;
  snapshot.time_fs = in.number();
  snapshot.pdf = in.floats();
  return snapshot;
}

std::vector<double> pack(const SweepNews& news) {
  PackedValues out;
  out.add(news.log);
  out.add(static_cast<double>(news.old.size()));
  for (const std::string& name : news.old) out.add(name);
  out.add(static_cast<double>(news.fresh.size()));
  for (const auto& [name, values] : news.fresh) {
    out.add(name);
    out.add(values);
  }
  return out.take();
}

SweepNews unpack_news(const std::vector<double>& message) {
  UnpackedValues in(message.data(), message.size());
  SweepNews news;
  news.log = in.text();
  for (std::size_t left = in.size(); left > 0; --left) news.old.push_back(in.text());
  for (std::size_t left = in.size(); left > 0; --left) {
    std::string name = in.text();
    news.fresh.emplace_back(std::move(name), in.list());
  }
  return news;
}

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
      << n.wmax_ev << ' ' << static_cast<int>(n.range) << ' ' << static_cast<int>(n.phi_flux) << ' '
      << n.dh_ev << ' ' << n.n_kappa << ' ' << n.window_ev;
  key << '|' << static_cast<int>(deck.scattering.scheme);
  for (const auto& p : deck.scattering.processes)
    key << '|' << p.name << ' ' << static_cast<int>(p.kind) << ' ' << p.energy_ev << ' '
        << p.coupling_ev_per_nm;
  const auto& rough = deck.scattering.roughness;
  key << '|' << rough.height_nm << ' ' << rough.length_nm << ' ' << static_cast<int>(rough.spectrum)
      << ' ' << deck.scattering.impurities << ' '
      << static_cast<int>(deck.scattering.impurity_model) << '|'
      << static_cast<int>(deck.statistics) << ' ' << deck.pauli;
  key << '|' << static_cast<int>(deck.contact) << ' ' << deck.neutral_inflow;
  for (const auto& b : deck.points) key << '|' << b.vgs_v << ' ' << b.vds_v;
  for (const Waveform* wave : {&deck.gate_wave, &deck.drain_wave}) {
    key << '|';
    for (std::size_t k = 0; k < wave->t_fs.size(); ++k)
      key << wave->t_fs[k] << ' ' << wave->value_v[k] << ' ';
  }
  const auto& r = deck.run;
  key << '|' << static_cast<int>(r.mode) << ' ' << static_cast<int>(r.scheme) << ' '
      << static_cast<int>(r.transport) << ' ' << r.t_end_fs << ' ' << r.cfl << ' ' << r.steady_tol
      << ' ' << r.steady_floor_a_per_m << ' ' << r.window_fs << ' ' << r.weno_epsilon << ' '
      << r.tol_v << ' ' << r.refresh_steps << ' ' << r.coarse_start << ' ' << r.plasma_damping
      << ' ' << r.tunnelling << ' ' << r.start_from;
  key << '|' << deck.small_signal.noise << ' ';
  for (const double frequency_hz : deck.small_signal.frequencies_hz) key << frequency_hz << ' ';
  key << '|' << deck.output.every_fs;
  for (const auto& f : deck.output.fields) key << ' ' << f;
  for (const double t : deck.output.pdf_at_fs) key << ' ' << t;
  return key.str();
}

std::uint64_t resume_digest(const Deck& deck) {
  const std::string key = resume_key(deck);
  ProblemDigest digest;
  digest.add(key.data(), key.size());
  return digest.value();
}

}  // namespace quasi::mosfet

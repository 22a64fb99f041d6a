#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "workers/io/settings.hpp"
#include "workers/mosfet/model/model.hpp"
#include "workers/mosfet/physics/roughness.hpp"

namespace quasi::mosfet {

/// One electron–phonon process.
struct PhononProcess {
  std::string name;
  ProcessKind kind = ProcessKind::kElastic;
  double energy_ev = 0;           ///< ħω; 0 for the elastic process
  double coupling_ev_per_nm = 0;  ///< D_tK; for the elastic process the potential D_ac in eV
};

enum class StatisticsKind { kMaxwell, kFermi };
enum class RunMode { kEquilibrium, kTransient, kSteady, kMobility };
/// What moves the electrons: the Boltzmann equation, the same without scattering, or a quasi-Fermi
/// level with the low-field mobility of the same scattering.
enum class TransportModel { kBoltzmann, kBallistic, kDriftDiffusion };
enum class ContactKind { kColumn, kNeumann };

/// Piecewise linear in time, constant before the first and after the last corner.
struct Waveform {
  std::vector<double> t_fs, value_v;
  double at(double t_fs_now) const;
  /// The first corner later than t; infinity if there is none.
  double next_corner(double t_fs_now) const;
  /// True if the value changes right after t.
  bool moves(double t_fs_now) const;
};

struct BiasPoint {
  double vgs_v = 0;
  double vds_v = 0;
};

/// A checked deck in working units (nm, eV, fs, V; densities nm⁻³). Sections 1 and 2 of the
/// documentation list the keys.
struct Deck {
  struct Geometry {
    double source_nm = 11.0, channel_nm = 10.0, drain_nm = 11.0;
    double silicon_nm = 6.0, oxide_top_nm = 1.0, oxide_bottom_nm = 1.0;
    double length_nm() const { return source_nm + channel_nm + drain_nm; }
    double height_nm() const { return oxide_top_nm + silicon_nm + oxide_bottom_nm; }
  } geometry;

  struct Doping {
    double contact_nm3 = 0.1, channel_nm3 = 1e-8, smoothing_nm = 0.5;
    std::vector<double> profile_x_nm, profile_nm3;  ///< from a CSV file; empty: the erf profile
  } doping;

  struct Gate {
    double workfunction_top_ev = 4.6, workfunction_bottom_ev = 4.6;
    double bottom_offset_v = 0.0;  ///< V of the bottom gate = V_GS + this
  } gate;

  struct Material {
    double alpha_per_ev = 0.5, ml_m0 = 0.98, mt_m0 = 0.19, m_oxide_m0 = 0.5;
    double barrier_ev = 3.15, affinity_ev = 4.05, eps_si = 11.7, eps_ox = 3.9;
    double density_kg_m3 = 2329.0, sound_m_s = 9040.0, temperature_k = 300.0;
  } material;

  std::vector<ValleyPair> valleys;

  struct Mesh {
    int nx = 65, nz = 65, subbands = 6, nw = 300, nphi = 48;
    double wmax_ev = 0.9;
    bool snap = false;
    AngleRange range = AngleRange::kHalf;
    PhiFlux phi_flux = PhiFlux::kUpwind;
  } mesh;

  struct Scattering {
    ScatteringScheme scheme = ScatteringScheme::kBalanced;
    std::vector<PhononProcess> processes;
    Roughness roughness;      ///< of both silicon/oxide interfaces; height 0: smooth
    bool impurities = false;  ///< ionised donors relax momentum (Brooks and Herring)
  } scattering;

  StatisticsKind statistics = StatisticsKind::kMaxwell;
  bool pauli = false;  ///< final states block; goes with Fermi statistics
  ContactKind contact = ContactKind::kColumn;
  bool neutral_inflow =
      false;  ///< what enters is rescaled so that the contact columns stay neutral

  std::vector<BiasPoint> points;
  Waveform gate_wave, drain_wave;  ///< added to V_GS and V_DS of every point; transient mode

  struct Run {
    RunMode mode = RunMode::kSteady;
    TransportModel transport = TransportModel::kBoltzmann;
    double t_end_fs = 2000.0, cfl = 0.7, steady_tol = 1e-3, window_fs = 50.0;
    double steady_floor_a_per_m = 1e-3;  ///< absolute floor of the steadiness tests
    double weno_epsilon = 1e-12;
    double tol_v = 1e-6;
    int refresh_steps = 400;
    double plasma_damping =
        1.0;  ///< steady mode: share of critical damping that a lead of the field adds; 0: none
    double checkpoint_s = 60.0;
    bool coarse_start = true;  ///< steady mode: reach the first steady state of a chain on a
                               ///< coarser mesh, if there is one
    bool mesh_study = false;   ///< repeat with half of every axis and state the error that implies
  } run;

  struct Output {
    double every_fs = 10.0;
    std::vector<std::string> fields;
    std::vector<double> pdf_at_fs;   ///< times of snapshots of the pdf; transient mode
    double threshold_a_per_m = 0.1;  ///< constant-current definition of V_th
    bool has(const std::string& field) const;
  } output;

  std::vector<std::string> notes;  ///< what the reader rounded or chose, for the user
  double kt_ev() const;
};

/// Reads and checks a TOML deck: every entry has its range, an unknown key is an error that names
/// the nearest known one.
/// @throws InvalidInput naming key, value, limit and remedy.
Deck read_deck(const std::filesystem::path& path, const std::vector<Setting>& settings);

/// The same from text, for tests; `where` stands for the file name, `directory` for its folder.
Deck parse_deck(const std::string& text, const std::vector<Setting>& settings,
                const std::string& where, const std::filesystem::path& directory);

}  // namespace quasi::mosfet

#pragma once

#include <string>
#include <vector>

#include "workers/mosfet/model/model.hpp"
#include "workers/mosfet/physics/roughness.hpp"
#include "workers/units/constants.hpp"

namespace quasi::mosfet {

/// Lengths along x (source, channel, drain) and z (oxide, silicon, oxide).
struct Geometry {
  double source_nm = 11.0, channel_nm = 10.0, drain_nm = 11.0;
  double silicon_nm = 6.0, oxide_top_nm = 1.0, oxide_bottom_nm = 1.0;
  double length_nm() const { return source_nm + channel_nm + drain_nm; }
  double height_nm() const { return oxide_top_nm + silicon_nm + oxide_bottom_nm; }
};

/// Donors N_D(x) in the silicon.
struct Doping {
  double contact_nm3 = 0.1, channel_nm3 = 1e-8, smoothing_nm = 0.5;
  std::vector<double> profile_x_nm, profile_nm3;  ///< from a CSV file; empty: the erf profile
};

/// Work functions of the two gates.
struct Gate {
  double workfunction_top_ev = 4.6, workfunction_bottom_ev = 4.6;
  double bottom_offset_v = 0.0;  ///< V of the bottom gate = V_GS + this
};

/// Constants of silicon and its oxide.
struct Material {
  double alpha_per_ev = 0.5, ml_m0 = 0.98, mt_m0 = 0.19, m_oxide_m0 = 0.5;
  double barrier_ev = 3.15, affinity_ev = 4.05, eps_si = 11.7, eps_ox = 3.9;
  double density_kg_m3 = 2329.0, sound_m_s = 9040.0, temperature_k = 300.0;
};

/// One electron–phonon process.
struct PhononProcess {
  std::string name;
  ProcessKind kind = ProcessKind::kElastic;
  double energy_ev = 0;           ///< ħω; 0 for the elastic process
  double coupling_ev_per_nm = 0;  ///< D_tK; for the elastic process the potential D_ac in eV
};

/// Cross-section of ionised donors (docs/theory/mosfet.md 15.3).
enum class ImpurityModel { kPartialWaves, kBrooksHerring };

/// Processes that scatter electrons.
struct Scattering {
  ScatteringScheme scheme = ScatteringScheme::kBalanced;
  std::vector<PhononProcess> processes;
  Roughness roughness;      ///< of both silicon/oxide interfaces; height 0: smooth
  bool impurities = false;  ///< ionised donors relax momentum
  ImpurityModel impurity_model = ImpurityModel::kPartialWaves;
};

enum class StatisticsKind { kMaxwell, kFermi };
enum class ContactKind { kColumn, kNeumann };

/// Defaults of a deck that are not geometry (docs/theory/mosfet.md 15.6): calibrated to the
/// mobility of thin films, or those of [mantas2020].
enum class ParameterSet { kFilms, kPaper };

/// Begin here: the device without mesh and bias. The units are nm, eV, fs and V; densities are in
/// nm⁻³. structure.hpp puts the device on a mesh, bias.hpp holds the voltages, run_settings.hpp the
/// mesh and the run.
struct DeviceModel {
  ParameterSet parameters = ParameterSet::kFilms;
  Geometry geometry;
  Doping doping;
  Gate gate;
  Material material;
  std::vector<ValleyPair> valleys;
  Scattering scattering;
  StatisticsKind statistics = StatisticsKind::kMaxwell;
  bool pauli = false;  ///< occupied final states block scattering; needs Fermi statistics
  ContactKind contact = ContactKind::kColumn;
  /// True if the inflow is rescaled so that the contact columns stay neutral.
  bool neutral_inflow = false;

  double kt_ev() const { return units::kBoltzmann_ev_k * material.temperature_k; }
};

}  // namespace quasi::mosfet

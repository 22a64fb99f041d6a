#include "workers/mosfet/model/run_names.hpp"

namespace quasi::mosfet {

const char* mode_name(RunMode mode) {
  switch (mode) {
    case RunMode::kEquilibrium:
      return "equilibrium";
    case RunMode::kTransient:
      return "transient";
    case RunMode::kSteady:
      return "steady";
    case RunMode::kMobility:
      return "mobility";
  }
  return "";
}

const char* transport_name(TransportModel model) {
  switch (model) {
    case TransportModel::kBoltzmann:
      return "boltzmann";
    case TransportModel::kBallistic:
      return "ballistic";
    case TransportModel::kDriftDiffusion:
      return "drift-diffusion";
  }
  return "";
}

bool has_currents(const RunSettings& run) {
  return run.mode == RunMode::kSteady || run.mode == RunMode::kTransient;
}

}  // namespace quasi::mosfet

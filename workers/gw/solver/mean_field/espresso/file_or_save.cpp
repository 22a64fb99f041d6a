#include "workers/gw/solver/mean_field/espresso/file_or_save.hpp"

#include "workers/gw/input/espresso/espresso_save.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/solver/mean_field/espresso/save_potentials.hpp"

namespace quasi::gw {

Wavefunctions load_states(const std::filesystem::path& path, const StateStorage& storage) {
  if (!is_espresso_save(path)) return read_wavefunctions(path, storage);
  return read_espresso_states(read_espresso_save(path), storage);
}

PlaneWaveField load_field(const std::filesystem::path& path, const std::string& kind) {
  if (!is_espresso_save(path)) return read_field(path, kind);
  const EspressoSave save = read_espresso_save(path);
  return kind == "RHO" ? read_espresso_density(save) : local_potential_of_save(save);
}

PlaneWaveField load_exchange_correlation(const std::filesystem::path& path, bool core_charge) {
  if (!is_espresso_save(path)) return read_field(path, "VXC");
  return exchange_correlation_of_save(read_espresso_save(path),
                                      core_charge ? XcDensity::kWithCore : XcDensity::kValence);
}

Projectors load_projectors(const std::filesystem::path& path) {
  if (!is_espresso_save(path)) return read_projectors(path);
  return projectors_of_save(read_espresso_save(path));
}

}  // namespace quasi::gw

#include "workers/gw/solver/self_energy/exchange_correlation.hpp"

#include <fstream>

#include "workers/backend/error.hpp"
#include "workers/gw/input/espresso/espresso_save.hpp"
#include "workers/gw/input/mean_field_files.hpp"
#include "workers/gw/input/text_files.hpp"
#include "workers/gw/solver/mean_field/espresso/file_or_save.hpp"
#include "workers/gw/solver/mean_field/xc/local_density.hpp"
#include "workers/io/input_path.hpp"

namespace quasi::gw {

std::vector<std::vector<double>> ExchangeCorrelation::diagonal_ev() const {
  std::vector<std::vector<double>> diagonal;
  for (const auto& matrix : matrix_ev) {
    diagonal.emplace_back();
    for (std::int64_t l = 0; l < n; ++l)
      diagonal.back().push_back(matrix[static_cast<std::size_t>(l * n + l)].real());
  }
  return diagonal;
}

bool holds_potential(const std::filesystem::path& path) {
  if (is_espresso_save(path)) return true;
  std::ifstream in(input_file(path), std::ios::binary);
  std::int32_t count = 0;
  in.read(reinterpret_cast<char*>(&count), sizeof count);
  return in && count == 96;
}

namespace {

std::vector<Cplx> elements_of_point(const KPointElements& point, const std::string& file, int ik,
                                    int spin, const SigmaOptions& options, bool off_diagonal) {
  const auto n = static_cast<std::size_t>(options.band_max - options.band_min + 1);
  std::vector<Cplx> matrix(n * n);
  const auto where = [&] {
    return " at k-point " + std::to_string(ik + 1) +
           "; lower sigma.band_max or give meanfield.vxc = \"VXC\"";
  };
  for (std::size_t l = 0; l < n; ++l) {
    const int band = options.band_min + static_cast<int>(l);
    const auto found = point.diagonal_ev.find({spin, band});
    if (found == point.diagonal_ev.end())
      throw InvalidInput("'" + file + "' has no V_xc of band " + std::to_string(band) + where());
    matrix[l * n + l] = found->second.real();
    for (std::size_t m = 0; m < l && off_diagonal; ++m) {
      const int other = options.band_min + static_cast<int>(m);
      const auto upper = point.off_diagonal_ev.find({spin, other, band}),
                 lower = point.off_diagonal_ev.find({spin, band, other});
      if (upper == point.off_diagonal_ev.end() && lower == point.off_diagonal_ev.end())
        throw InvalidInput("'" + file + "' has no V_xc between bands " + std::to_string(other) +
                           " and " + std::to_string(band) + where());
      const Cplx value =
          lower != point.off_diagonal_ev.end() ? lower->second : std::conj(upper->second);
      matrix[l * n + m] = value;
      matrix[m * n + l] = std::conj(value);
    }
  }
  return matrix;
}

/// Calculates the elements of a potential V_xc(G), Ry, between the outer states.
ExchangeCorrelation elements_of_potential(const PlaneWaveField& potential, const MeanField& field,
                                          const SigmaOptions& options, GwKernels& kernels) {
  ExchangeCorrelation vxc{.matrix_ev = {}, .n = options.band_max - options.band_min + 1};
  for (const int ik : options.kpoints)
    for (int spin = 0; spin < field.n_spins(); ++spin) {
      vxc.matrix_ev.push_back(potential_matrix(
          field, potential, {ik, spin, options.band_min - 1, options.band_max}, kernels));
      for (Cplx& value : vxc.matrix_ev.back()) value *= kRydberg_ev;
    }
  return vxc;
}

}  // namespace

ExchangeCorrelation exchange_correlation(const std::filesystem::path& path, const MeanField& field,
                                         const SigmaOptions& options, GwKernels& kernels,
                                         bool off_diagonal) {
  ExchangeCorrelation vxc{.matrix_ev = {}, .n = options.band_max - options.band_min + 1};
  if (path.empty()) return vxc;
  if (holds_potential(path)) {
    const PlaneWaveField potential = read_field(path, "VXC");
    require_same_crystal(field.waves.header, "WFN", potential.header, "VXC");
    return elements_of_potential(potential, field, options, kernels);
  }
  const auto list = read_matrix_elements(path);
  for (const int ik : options.kpoints) {
    const Vec3& k = field.waves.k[static_cast<std::size_t>(ik)];
    const KPointElements* point = find_k_point(list, k);
    // The states at −k of a list that time reversal has reduced are conjugate to those at k.
    const bool reversed = point == nullptr;
    if (reversed) point = find_k_point(list, -1.0 * k);
    if (point == nullptr)
      throw InvalidInput("'" + path.string() + "' has no entry for k-point " +
                         std::to_string(ik + 1) + " of WFN");
    for (int spin = 1; spin <= field.n_spins(); ++spin) {
      vxc.matrix_ev.push_back(
          elements_of_point(*point, path.string(), ik, spin, options, off_diagonal));
      for (Cplx& value : vxc.matrix_ev.back()) value = reversed ? std::conj(value) : value;
    }
  }
  return vxc;
}

ExchangeCorrelation exchange_correlation(const MeanFieldOptions& source, const MeanField& field,
                                         const SigmaOptions& options, GwKernels& kernels,
                                         bool off_diagonal) {
  if (is_espresso_save(source.vxc)) {
    const PlaneWaveField potential = load_exchange_correlation(source.vxc, source.vxc_core_charge);
    require_same_crystal(field.waves.header, "WFN", potential.header, "VXC");
    return elements_of_potential(potential, field, options, kernels);
  }
  if (!source.local_density)
    return exchange_correlation(source.vxc, field, options, kernels, off_diagonal);
  return elements_of_potential(LocalDensity(field.density).potential(), field, options, kernels);
}

}  // namespace quasi::gw

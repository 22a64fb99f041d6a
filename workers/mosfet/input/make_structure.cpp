#include "workers/mosfet/input/make_structure.hpp"

#include <algorithm>
#include <cmath>

#include "workers/mosfet/physics/working_units.hpp"

namespace quasi::mosfet {
namespace {

// Returns N_D(x) in silicon. The doping of contacts and channel is blended by error functions of
// width σ.
double doping_at(const DeviceModel& device, double x_nm) {
  const Doping& d = device.doping;
  if (!d.profile_x_nm.empty()) {
    const auto upper = std::upper_bound(d.profile_x_nm.begin(), d.profile_x_nm.end(), x_nm);
    const auto k = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(
        upper - d.profile_x_nm.begin(), 1, static_cast<std::ptrdiff_t>(d.profile_x_nm.size()) - 1));
    const double t = (x_nm - d.profile_x_nm[k - 1]) / (d.profile_x_nm[k] - d.profile_x_nm[k - 1]);
    return d.profile_nm3[k - 1] + t * (d.profile_nm3[k] - d.profile_nm3[k - 1]);
  }
  const double left = device.geometry.source_nm;
  const double right = left + device.geometry.channel_nm;
  double share = 0.0;  // share of the contact doping; 1 in source and drain
  if (d.smoothing_nm > 0.0) {
    const double width = std::sqrt(2.0) * d.smoothing_nm;
    share = 0.5 * (1.0 - std::erf((x_nm - left) / width)) +
            0.5 * (1.0 + std::erf((x_nm - right) / width));
  } else {
    constexpr double kEdgeTolerance_nm = 1e-9;
    const auto step = [&](double distance) {
      return distance > kEdgeTolerance_nm ? 1.0 : distance < -kEdgeTolerance_nm ? 0.0 : 0.5;
    };
    share = step(left - x_nm) + step(x_nm - right);
  }
  return d.channel_nm3 + (d.contact_nm3 - d.channel_nm3) * share;
}

}  // namespace

Structure make_structure(const DeviceModel& device, const Mesh& mesh) {
  Structure s;
  s.nx = mesh.nx;
  s.nz = mesh.nz;
  s.dx_nm = device.geometry.length_nm() / (s.nx - 1);
  s.dz_nm = device.geometry.height_nm() / (s.nz - 1);
  s.subbands = mesh.subbands;
  s.valleys = device.valleys;
  for (int i = 0; i < s.nx; ++i) s.x_nm.push_back(i * s.dx_nm);
  for (int j = 0; j < s.nz; ++j) s.z_nm.push_back(j * s.dz_nm);
  s.gate_first = static_cast<int>(std::lround(device.geometry.source_nm / s.dx_nm));
  s.gate_last = s.gate_first + static_cast<int>(std::lround(device.geometry.channel_nm / s.dx_nm));

  const int lower = static_cast<int>(std::lround(device.geometry.oxide_top_nm / s.dz_nm));
  const int upper = lower + static_cast<int>(std::lround(device.geometry.silicon_nm / s.dz_nm));
  s.silicon_first = lower;
  s.silicon_last = upper;
  const auto is_silicon = [&](int cell) { return cell >= lower && cell < upper; };
  for (int cell = 0; cell < s.nz - 1; ++cell)
    s.eps_cell.push_back(is_silicon(cell) ? device.material.eps_si : device.material.eps_ox);
  std::vector<double> silicon_share(static_cast<std::size_t>(s.nz));
  for (int j = 0; j < s.nz; ++j) {
    const double below = j > 0 ? is_silicon(j - 1) : is_silicon(j);
    const double above = j < s.nz - 1 ? is_silicon(j) : is_silicon(j - 1);
    silicon_share[static_cast<std::size_t>(j)] = 0.5 * (below + above);
    s.barrier_ev.push_back(device.material.barrier_ev * (1.0 - 0.5 * (below + above)));
  }
  for (int i = 0; i < s.nx; ++i)
    for (int j = 0; j < s.nz; ++j)
      s.doping_nm3.push_back(doping_at(device, s.x_nm[static_cast<std::size_t>(i)]) *
                             silicon_share[static_cast<std::size_t>(j)]);

  for (const ValleyPair& valley : s.valleys) {
    auto family = std::find_if(s.families.begin(), s.families.end(),
                               [&](const auto& f) { return f.mz_m0 == valley.mz_m0; });
    if (family == s.families.end()) {
      Structure::Family made;
      made.mz_m0 = valley.mz_m0;
      const auto inverse_mass = [&](int cell) {
        return 1.0 / (is_silicon(cell) ? valley.mz_m0 : device.material.m_oxide_m0);
      };
      const double unit_ev = kHbar2Over2m0_ev_nm2 / (s.dz_nm * s.dz_nm);
      for (int j = 1; j < s.nz - 1; ++j) {
        made.base_ev.push_back(unit_ev * (inverse_mass(j - 1) + inverse_mass(j)) +
                               s.barrier_ev[static_cast<std::size_t>(j)]);
        if (j < s.nz - 2) made.off_ev.push_back(-unit_ev * inverse_mass(j));
      }
      s.families.push_back(made);
      family = s.families.end() - 1;
    }
    s.family_of.push_back(static_cast<int>(family - s.families.begin()));
  }
  return s;
}

}  // namespace quasi::mosfet

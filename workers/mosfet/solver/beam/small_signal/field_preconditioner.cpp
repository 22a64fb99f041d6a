// The preconditioner of the field in the small-signal equations.

#include "workers/mosfet/solver/beam/quasi_fermi.hpp"
#include "workers/mosfet/solver/beam/small_signal/field_response.hpp"

namespace quasi::mosfet {

ColumnMatrix FieldResponse::gummel_matrix() const {
  const Structure& s = device_.structure;
  const int n = s.interior(), nf = s.n_families(), states = static_cast<int>(level_of_.size());
  const std::vector<double> sheet = beam_sheet_density(base_->geometry, g_);
  std::vector<double> responses(static_cast<std::size_t>(s.nx) * s.nz * s.nz);
  for (int i = 0; i < s.nx; ++i) {
    std::vector<double> energy(static_cast<std::size_t>(nf) * n), vectors(energy.size() * n);
    ColumnStates column{std::vector<const double*>(nf), std::vector<const double*>(nf)};
    for (int f = 0; f < nf; ++f) {
      double* levels = &energy[static_cast<std::size_t>(f) * n];
      double* waves = &vectors[static_cast<std::size_t>(f) * n * n];
      all_states(s, f, &potential_v_[static_cast<std::size_t>(i) * s.nz], levels, waves);
      column.energies[static_cast<std::size_t>(f)] = levels;
      column.vectors[static_cast<std::size_t>(f)] = waves;
    }
    std::vector<double> here, slope;
    for (int state = 0; state < states; ++state) {
      here.push_back(sheet[static_cast<std::size_t>(state) * s.nx + i]);
      const ValleyPair& valley = base_->levels.valley_of(state);
      slope.push_back(sheet_density(device_.model, valley,
                                    quasi_fermi_gap_ev(device_.model, valley, here.back()))
                          .slope_nm2_ev);
    }
    column_response(s, column, here.data(), slope.data(), false,
                    &responses[static_cast<std::size_t>(i) * s.nz * s.nz]);
  }
  ColumnMatrix matrix(s, boundary_, responses);
  matrix.factorise();
  return matrix;
}

}  // namespace quasi::mosfet

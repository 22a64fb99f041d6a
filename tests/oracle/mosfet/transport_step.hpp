#pragma once

#include <vector>

/// A slow second form of the transport of the kind mosfet, on the whole circle, directly from the
/// equations. It uses no symmetry and no fusion and computes every flux where it is needed. It
/// includes nothing of the program.
namespace quasi::oracle {

struct Transport {
  int nx, nw, nphi, valleys, subbands;
  double dx, dw, alpha, kt, weno_epsilon;
  std::vector<double> mx, my;   ///< eV fs² nm⁻² [valleys]
  std::vector<double> energy;   ///< ε [valleys][subbands][nx]
  std::vector<double> overlap;  ///< W [valleys·subbands][valleys·subbands][nx]
  std::vector<double> inflow_source, inflow_drain;  ///< [valleys][subbands][nw]

  struct Process {
    bool elastic, between_pairs;
    double coupling, occupation, energy;  ///< c Z (without the ½ of ordered elastic pairs)
  };
  std::vector<Process> processes;

  bool pauli = false;  ///< final states block
  double states = 0;   ///< K in units of the pdf: Φ = K s f; read with blocking
  std::vector<double>
      elastic;  ///< rate of relaxation to the angular mean [valleys][nx][nw]; may be empty
};

/// One TVD-RK3 step of `pdf` [valleys][subbands][nx][nw][nphi] with frozen ε: upwind WENO-5 in
/// every direction, w = 0 exchange, closed top, balanced scattering.
std::vector<double> advance(const Transport& t, const std::vector<double>& pdf, double dt);

}  // namespace quasi::oracle

#pragma once

#include <cstdint>

#include "workers/mosfet/kernels/beam/beam_line.hpp"

namespace quasi::mosfet {

/// Refers to the values of g on one line of cells along x. Node i has the position i × stride.
struct BeamLineValues {
  const double* plus = nullptr;   ///< g⁺, the branch k_x > 0
  const double* minus = nullptr;  ///< g⁻, the branch k_x < 0
  std::int64_t stride = 0;
};

/// Returns true if face n of a line is an inner one, and its cell is fully open there.
QUASI_HD inline bool beam_face_is_open(const BeamLine& line, int n) {
  return n > 0 && n < line.nx && line.area[n * line.stride] == line.full;
}

/// Takes one Euler step of the streaming equations (docs/theory/mosfet.md 17.3) along one line,
/// with the gain G and the loss λ of scattering:
///
///   ∂_t g⁺ = (c/Δx) [a ĝ⁺_{i−½} − a' ĝ⁺_{i+½} − turns]/V + G − λ g⁺,
///   turns = (a−a')₊ g⁺ − (a'−a)₊ g⁻
///
/// and the mirror image for g⁻. Here a and a' are the areas A of the faces i − ½ and i + ½, V
/// is the volume of node i, ĝ the value at a face and c the speed factor. Closed nodes get zero.
/// @param line   line whose `feed` is G and whose `loss` is λ
/// @param g      values before the step
/// @param third  true: face values are of third order where four faces in a row are fully open
/// @param out    receives the values after the step
/// @param flux   receives (c/Δx) A (ĝ⁺ − ĝ⁻) at the faces i − ½, eV/fs, [nx+1]
/// @return smallest new value
QUASI_HD inline double march_beam_line(const BeamLine& line, const BeamLineValues& g, double dt_fs,
                                       bool third, const BeamLineSolution& out, double* flux) {
  const auto plus = [&](int i) { return g.plus[i * g.stride]; };
  const auto minus = [&](int i) { return g.minus[i * g.stride]; };
  // The loop makes the face values of face n. g⁺ takes the upwind parabola if the faces n−2 to
  // n+1 are open, and g⁻ if the faces n−1 to n+2 are.
  int open_faces = 0;  // number of open faces in a row that end at face n+2
  const auto count = [&](int n) {
    open_faces = third && beam_face_is_open(line, n) ? open_faces + 1 : 0;
  };
  count(1);
  bool smooth_forward = false;  // faces n−2 to n+1 are open
  double least = 0.0, before = 0.0, forward_before = 0.0, backward_before = 0.0;
  for (int n = 0; n <= line.nx; ++n) {
    count(n + 2);
    const bool smooth_backward = open_faces >= 4;  // faces n−1 to n+2 are open
    double forward = n > 0 ? plus(n - 1) : line.source;
    double backward = n < line.nx ? minus(n) : line.drain;
    if (smooth_forward) forward = (2.0 * plus(n) + 5.0 * forward - plus(n - 2)) / 6.0;
    if (smooth_backward) backward = (2.0 * minus(n - 1) + 5.0 * backward - minus(n + 1)) / 6.0;
    smooth_forward = smooth_backward;
    const double after = line.scale * line.area[n * line.stride];
    flux[n] = after * (forward - backward);
    if (n > 0) {
      const int i = n - 1;
      const double volume = line.volume[i * line.stride];
      double new_plus = 0.0, new_minus = 0.0;
      if (volume > 0.0) {
        const double closes = before > after ? before - after : 0.0;
        const double opens = after > before ? after - before : 0.0;
        const double fed = line.feed != nullptr ? line.feed[i * line.row_stride] : 0.0;
        const double lost = line.loss != nullptr ? line.loss[i * line.row_stride] : 0.0;
        const double here_plus = plus(i), here_minus = minus(i);
        const double turning = closes * here_plus - opens * here_minus;
        new_plus =
            here_plus + dt_fs * ((before * forward_before - after * forward - turning) / volume +
                                 fed - lost * here_plus);
        new_minus =
            here_minus + dt_fs * ((after * backward - before * backward_before + turning) / volume +
                                  fed - lost * here_minus);
      }
      out.plus[i * out.stride] = new_plus;
      out.minus[i * out.stride] = new_minus;
      const double smaller = new_plus < new_minus ? new_plus : new_minus;
      least = i == 0 || smaller < least ? smaller : least;
    }
    before = after;
    forward_before = forward;
    backward_before = backward;
  }
  return least;
}

}  // namespace quasi::mosfet

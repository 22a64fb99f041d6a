#pragma once

#include <array>
#include <vector>

/// Linear tetrahedra by plain geometry: the area of the polygon in which a tetrahedron cuts the
/// surface f = E, over the gradient of f. It includes nothing of the program that it checks.
namespace quasi::oracle {

/// Four steps of a mesh with the sum zero.
using Steps3ph = std::array<std::array<int, 3>, 4>;

/// Returns the weight of each corner of a tetrahedron in the integral of δ(E − f) over it: the
/// mean of δ(E − f) λ_i, where λ_i is linear, 1 at corner i and 0 at the others.
/// @param f  values at the corners, between which f is linear
std::array<double, 4> tetrahedron_weights(double energy, const std::array<double, 4>& f);

/// Returns the weight of every mesh point in Σ_q δ(E − f(q)). Each cell of the mesh, with the
/// edges steps[0] to steps[2], is cut into six tetrahedra along its diagonal −steps[3].
/// @param steps  weights are means over these divisions of space
/// @param f      [point], point = (k N2 + j) N1 + i
std::vector<double> mesh_weights(const std::array<int, 3>& mesh, const std::vector<Steps3ph>& steps,
                                 double energy, const std::vector<double>& f);

}  // namespace quasi::oracle

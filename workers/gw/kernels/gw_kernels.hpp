#pragma once

#include <memory>
#include <utility>

#include "workers/backend/device/device.hpp"
#include "workers/gw/kernels/dense/dense_kernels.hpp"
#include "workers/gw/kernels/hamiltonian/hamiltonian_kernels.hpp"
#include "workers/gw/kernels/pair_products/pair_product_kernels.hpp"
#include "workers/gw/kernels/polarizability/polarizability_kernels.hpp"
#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// Begin here: the heavy steps of GW on one device, in five groups. hamiltonian applies the mean
/// field as an operator (docs/theory/gw.md 9), pair_products makes the pair products (3),
/// polarizability sums χ and inverts ε (4), pole_sums evaluates Σ (6, 7), and dense holds linear
/// algebra.
///
/// Loaded data and results that stay on the device are objects, which own their memory there:
/// bands, spheres, blocks of pair products, sums χ and pole models. Results do not depend on the
/// number of threads. One set of kernels and the objects that it makes serve one thread at a time.
class GwKernels {
 public:
  /// The groups of kernels of one device.
  struct Parts {
    std::unique_ptr<PairProductKernels> pair_products;
    std::unique_ptr<PolarizabilityKernels> polarizability;
    std::unique_ptr<PoleSumKernels> pole_sums;
    std::unique_ptr<DenseKernels> dense;
    std::unique_ptr<HamiltonianKernels> hamiltonian;
  };
  GwKernels(const Device& device, Parts parts) : device_(device), parts_(std::move(parts)) {}

  const Device& device() const { return device_; }
  PairProductKernels& pair_products() { return *parts_.pair_products; }
  PolarizabilityKernels& polarizability() { return *parts_.polarizability; }
  PoleSumKernels& pole_sums() { return *parts_.pole_sums; }
  DenseKernels& dense() { return *parts_.dense; }
  HamiltonianKernels& hamiltonian() { return *parts_.hamiltonian; }

 private:
  Device device_;
  Parts parts_;
};

/// Makes the kernels of a device. @throws BackendAbsent for a CUDA device in a build without CUDA
std::unique_ptr<GwKernels> make_gw_kernels(const Device& device);
std::unique_ptr<GwKernels> make_gw_kernels_cpu(const Device& device);
std::unique_ptr<GwKernels> make_gw_kernels_cuda(const Device& device);

/// Runs every step of a static plasmon-pole calculation once on a small problem and drops the
/// results. A device loads its code at the first call, which may happen while another device is
/// busy.
void warm_up(GwKernels& kernels);

}  // namespace quasi::gw

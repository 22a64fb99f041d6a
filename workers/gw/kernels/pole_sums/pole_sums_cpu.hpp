#pragma once

#include "workers/gw/kernels/pole_sums/pole_sum_kernels.hpp"

namespace quasi::gw {

/// Plasmon-pole models in host memory. Kernels of one process share them.
/// See docs/theory/gw.md 6 for the equations.
class CpuPoleSumKernels final : public PoleSumKernels {
 public:
  std::shared_ptr<const LoadedPoleModel> load(const PlasmonPoleView& model,
                                              const PoleRules& rules) override;
  std::shared_ptr<const LoadedPoleModel> load_rows(const PlasmonPoleView& model,
                                                   const PoleRules& rules,
                                                   const ElementRows& rows) override;
  std::shared_ptr<const LoadedPoleModel> copy_of(
      const std::shared_ptr<const LoadedPoleModel>& model) override;
  std::unique_ptr<const LoadedImaginaryPoles> load_imaginary(View<const ImaginaryPole, 1> poles,
                                                             const PoleRules& rules) override;
  std::unique_ptr<const LoadedPoleChanges> load_changes(
      const std::shared_ptr<const LoadedPoleModel>& model,
      const std::vector<const PoleChange*>& changes) override;
  void add_first_order_exchange(const FirstOrderProducts& products, View<const double, 1> coulomb,
                                const FirstOrderPairs& pairs, View<Cplx, 3> sum) override;
  PoleChange change_of_poles(const LoadedPoleModel& model, const DielectricInverse& inverse,
                             const ScreenedElements& elements) override;
};

}  // namespace quasi::gw

#include "workers/gw/kernels/pole_sums/pole_sums_cuda.cuh"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "workers/gw/kernels/pair_products/pair_block_cuda.cuh"
#include "workers/gw/kernels/peer_copy.cuh"
#include "workers/gw/kernels/pole_sums/changes/change_of_poles_cuda.cuh"
#include "workers/gw/kernels/pole_sums/changes/closed_sums_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cpu.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/imaginary_poles_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cuda.cuh"
#include "workers/gw/kernels/pole_sums/diagonal/response_rows.hpp"
#include "workers/gw/kernels/pole_sums/first_order/first_order_cuda.cuh"
#include "workers/gw/kernels/pole_sums/offdiagonal/gpp_offdiagonal_cuda.cuh"
#include "workers/gw/kernels/pole_sums/pole_copies_cuda.cuh"

namespace quasi::gw::cuda {
namespace {

using quasi::cuda::DeviceBuffer;

ScreenedExchange wanted(const Cplx* sx) {
  return sx != nullptr ? ScreenedExchange::kWanted : ScreenedExchange::kNotWanted;
}
ProductsOnDevice products_of(const PairBlock& block) {
  return {dynamic_cast<const CudaPairBlock&>(block).data(), block.n_left(), block.n_right()};
}

FirstOrderOnDevice on_device(const FirstOrderProducts& products) {
  return {products_of(products.bra), products_of(products.ket), products.bra.n_g()};
}

/// The arrays of a model on one device.
struct PoleArrays {
  Device device;
  DeviceBuffer<double2> strength;      ///< empty if the model is packed
  DeviceBuffer<double> real_strength;  ///< empty unless the model is packed
  DeviceBuffer<double> pole_ry;
  std::int64_t n_g = 0;
  ElementRows rows;         ///< rows that the arrays hold
  std::int64_t stride = 0;  ///< columns of each row
  bool folded = false;
  FinitePoles finite_poles;  ///< not known for a packed model
  PoleRules rules;
  bool packed() const { return real_strength.size() > 0; }
  PoleModelOnDevice view() const {
    return {.strength = strength.data(),
            .real_strength = packed() ? real_strength.data() : nullptr,
            .pole_ry = pole_ry.data(),
            .n_g = n_g,
            .folded = folded,
            .rows = rows,
            .stride = stride};
  }
};

class CudaPoleModel final : public LoadedPoleModel {
 public:
  CudaPoleModel(SharedContext context, std::shared_ptr<const PoleArrays> arrays)
      : context_(std::move(context)), arrays_(std::move(arrays)) {}

  bool is_whole() const override { return arrays_->rows.size() == arrays_->n_g; }

  void add_diagonal(const PairBlock& block, const DiagonalTerms& terms,
                    const DiagonalSums& sums) const override {
    context_->use();
    for (const PoleGroup& group : make_pole_groups(terms.x_ry, terms.occupation, terms.weight,
                                                   arrays_->rules, wanted(sums.sx.data))) {
      const GroupSums found = sums_of(group, block);
      for (std::int64_t l = 0; l < block.n_left(); ++l)
        for (int k = 0; k < group.n_energies; ++k) {
          const auto at = static_cast<std::size_t>(l * group.n_energies + k);
          sums.total(l, group.first_energy + k) += found.total[at];
          if (sums.sx.data) sums.sx(l, group.first_energy + k) += found.sx[at];
        }
    }
  }

  void add_diagonal_slope(const PairBlock& block, const DiagonalTerms& terms,
                          const SlopeSums& sums) const override {
    context_->use();
    const View<const double, 2> x_ry{terms.x_ry.data, {block.n_left(), block.n_right()}};
    const GroupSums found = sums_of(make_slope_group(x_ry, terms.occupation, terms.weight,
                                                     arrays_->rules, wanted(sums.sx.data)),
                                    block);
    for (std::int64_t l = 0; l < block.n_left(); ++l) {
      sums.total(l) += found.total[static_cast<std::size_t>(2 * l)];
      sums.slope(l) += found.total[static_cast<std::size_t>(2 * l + 1)];
      if (sums.sx.data) sums.sx(l) += found.sx[static_cast<std::size_t>(2 * l)];
    }
  }

  OffDiagonalReport add_offdiagonal(const PairBlock& block, const OffDiagonalTerms& terms,
                                    const OffDiagonalOptions& options,
                                    View<Cplx, 3> sigma) const override {
    context_->use();
    return offdiagonal({whole(), arrays_->rules, products_of(block), products_of(block)}, terms,
                       options, sigma);
  }

  OffDiagonalReport add_offdiagonal_between(const PairBlock& bra, const PairBlock& ket,
                                            const OffDiagonalTerms& terms,
                                            const OffDiagonalOptions& options,
                                            View<Cplx, 3> sigma) const override {
    context_->use();
    PoleModelOnDevice model = whole();
    model.folded = false;
    return offdiagonal({model, arrays_->rules, products_of(bra), products_of(ket)}, terms, options,
                       sigma);
  }

  void add_first_order(const FirstOrderProducts& products, const FirstOrderPairs& pairs,
                       const FirstOrderTerms& terms, const FirstOrderSums& sums) const override {
    context_->use();
    add_first_order_cuda(*context_, {whole(), arrays_->rules}, on_device(products), pairs, terms,
                         sums);
  }

  void closed_forms(const PairBlock& block, double x_ry, View<Cplx, 2> form) const override {
    if (!is_whole()) throw std::logic_error("rows of a pole model have no whole matrices");
    dynamic_cast<const CudaPairBlock&>(block).forms_with(
        empty_band_matrix_cuda(arrays_->view(), x_ry, *context_), form);
  }
  std::vector<Cplx> sums_by_difference(double x_ry, const DifferenceBox& box) const override {
    return sums_by_difference_cuda(arrays_->view(), {.rows = arrays_->rows}, x_ry, box, *context_);
  }

  const std::shared_ptr<const PoleArrays>& arrays() const { return arrays_; }

 private:
  /// Returns the matrices A and ω̃ of the rows on the device.
  /// @throws std::logic_error if the model is packed
  PoleModelOnDevice unpacked() const {
    if (arrays_->packed())
      throw std::logic_error("a pole model that was loaded for changes has no whole matrices");
    return arrays_->view();
  }
  /// Returns the whole matrices A and ω̃.
  /// @throws std::logic_error if the model is packed or lacks some rows
  PoleModelOnDevice whole() const {
    if (!is_whole()) throw std::logic_error("rows of a pole model have no whole matrices");
    return unpacked();
  }
  GroupSums sums_of(const PoleGroup& group, const PairBlock& block) const {
    return gpp_diagonal_cuda(unpacked(), arrays_->rules, group, products_of(block),
                             context_->stream());
  }
  OffDiagonalReport offdiagonal(const OffDiagonalInput& input, const OffDiagonalTerms& terms,
                                const OffDiagonalOptions& options, View<Cplx, 3> sigma) const {
    OffDiagonalPlan plan = plan_offdiagonal(terms, arrays_->rules, options, arrays_->finite_poles);
    return add_gpp_offdiagonal_cuda(input, terms, options,
                                    {context_->stream(), context_->preparation(), context_->blas(),
                                     context_->workspace_bytes()},
                                    plan, sigma);
  }
  SharedContext context_;
  std::shared_ptr<const PoleArrays> arrays_;
};

class CudaPoleChanges final : public LoadedPoleChanges {
 public:
  CudaPoleChanges(SharedContext context, std::shared_ptr<const PoleArrays> model,
                  const std::vector<const PoleChange*>& changes, const ElementRows& rows)
      : context_(std::move(context)), model_(std::move(model)), rows_(rows) {
    context_->use();
    std::vector<ChangeOnDevice> views;
    for (const PoleChange* change : changes) {
      changes_.push_back(change_on_device(*change, model_->view(), rows, *context_));
      views.push_back(changes_.back().view);
    }
    views_ = DeviceBuffer<ChangeOnDevice>(views, "changes of plasmon poles");
  }
  std::unique_ptr<const LoadedPoleChanges> of_rows(const std::vector<const PoleChange*>& changes,
                                                   const ElementRows& rows) const override {
    return std::make_unique<const CudaPoleChanges>(context_, model_, changes, rows);
  }
  void add_response(const PairBlock& block, const ResponseTerms& terms,
                    const ResponseSums& sums) const override {
    context_->use();
    const ResponsesOnHost found = pole_response_cuda(
        on_device(), products_of(block), terms,
        {.slope = sums.slope.data != nullptr, .own = sums.own.data != nullptr}, context_->stream());
    add_group_means(found.total, found.group_end, terms.weight, sums.total.data);
    add_group_means(found.slope, found.group_end, terms.weight, sums.slope.data);
    add_group_means(found.own, found.group_end, terms.weight, sums.own.data);
  }
  std::vector<Cplx> sums_by_difference(std::int64_t change, double x_ry,
                                       const DifferenceBox& box) const override {
    return sums_by_difference_cuda(model_->view(),
                                   {rows_, changes_[static_cast<std::size_t>(change)].view}, x_ry,
                                   box, *context_);
  }

 private:
  PoleChangesOnDevice on_device() const {
    return {model_->view(), model_->rules, rows_, views_.data(),
            static_cast<std::int64_t>(changes_.size())};
  }
  SharedContext context_;
  std::shared_ptr<const PoleArrays> model_;
  ElementRows rows_;
  std::vector<HeldChange> changes_;
  DeviceBuffer<ChangeOnDevice> views_;  ///< of `changes_`
};

class CudaImaginaryPoles final : public LoadedImaginaryPoles {
 public:
  CudaImaginaryPoles(SharedContext context, View<const ImaginaryPole, 1> poles,
                     const PoleRules& rules)
      : context_(std::move(context)), rules_(rules) {
    context_->use();
    poles_ = DeviceBuffer<ImaginaryPole>(static_cast<std::size_t>(poles.size()),
                                         "imaginary plasmon poles");
    poles_.copy_from(poles.data, poles_.size(), "imaginary plasmon poles");
    check(cudaDeviceSynchronize(), "imaginary plasmon poles");
  }
  void add_diagonal(const PairBlock& block, const DiagonalTerms& terms, const DiagonalSums& sums,
                    View<Cplx, 1> slope) const override {
    context_->use();
    add_imaginary_poles_cuda({poles_.data(), static_cast<std::int64_t>(poles_.size()), rules_},
                             {dynamic_cast<const CudaPairBlock&>(block).data(), block.n_g()}, terms,
                             {sums, slope}, context_->stream());
  }

 private:
  SharedContext context_;
  DeviceBuffer<ImaginaryPole> poles_;
  PoleRules rules_;
};

}  // namespace

std::shared_ptr<const LoadedPoleModel> CudaPoleSumKernels::load(const PlasmonPoleView& model,
                                                                const PoleRules& rules) {
  return load_rows(model, rules, {0, model.pole_ry.extent[0]});
}

std::shared_ptr<const LoadedPoleModel> CudaPoleSumKernels::load_rows(const PlasmonPoleView& model,
                                                                     const PoleRules& rules,
                                                                     const ElementRows& rows) {
  context_->use();
  const std::int64_t n_g = model.pole_ry.extent[0];
  auto arrays = std::make_shared<PoleArrays>();
  arrays->device = context_->device();
  arrays->n_g = n_g;
  arrays->rows = rows;
  arrays->folded = is_hermitian(model);
  arrays->stride = columns_of_rows(rows, n_g, arrays->folded);
  const std::int64_t size = rows.size() * arrays->stride;
  arrays->strength =
      DeviceBuffer<double2>(static_cast<std::size_t>(size), "plasmon-pole strengths");
  arrays->pole_ry = DeviceBuffer<double>(static_cast<std::size_t>(size), "plasmon poles");
  rows_to_device(*context_, HostRows<Cplx>{&model.strength(rows.begin, 0), n_g}, rows.size(),
                 arrays->stride, arrays->strength.data());
  rows_to_device(*context_, HostRows<double>{&model.pole_ry(rows.begin, 0), n_g}, rows.size(),
                 arrays->stride, arrays->pole_ry.data());
  if (rows.size() == n_g) arrays->finite_poles = finite_poles(model);
  arrays->rules = rules;
  return std::make_shared<const CudaPoleModel>(context_, std::move(arrays));
}

std::shared_ptr<const LoadedPoleModel> CudaPoleSumKernels::load_for_changes(
    const PlasmonPoleView& model, const PoleRules& rules) {
  if (!model.real || !is_hermitian(model)) return load(model, rules);
  context_->use();
  auto arrays = std::make_shared<PoleArrays>();
  arrays->device = context_->device();
  arrays->n_g = model.pole_ry.extent[0];
  arrays->real_strength =
      packed_on_device(*context_, arrays->n_g, "plasmon-pole strengths",
                       [&](std::int64_t g, std::int64_t h) { return model.strength(g, h).real(); });
  arrays->pole_ry =
      packed_on_device(*context_, arrays->n_g, "plasmon poles",
                       [&](std::int64_t g, std::int64_t h) { return model.pole_ry(g, h); });
  arrays->rows = {0, arrays->n_g};
  arrays->stride = arrays->n_g;
  arrays->folded = true;
  arrays->rules = rules;
  return std::make_shared<const CudaPoleModel>(context_, std::move(arrays));
}

std::shared_ptr<const LoadedPoleModel> CudaPoleSumKernels::copy_of(
    const std::shared_ptr<const LoadedPoleModel>& model) {
  context_->use();
  const auto other = std::dynamic_pointer_cast<const CudaPoleModel>(model);
  if (other == nullptr) throw std::logic_error("the pole model belongs to another back end");
  const PoleArrays& from = *other->arrays();
  if (from.device.index == context_->device().index)
    return std::make_shared<const CudaPoleModel>(context_, other->arrays());
  constexpr const char* kWhat = "plasmon poles of another device";
  auto copy = std::make_shared<PoleArrays>();
  copy->device = context_->device();
  copy->n_g = from.n_g;
  copy->rows = from.rows;
  copy->stride = from.stride;
  copy->folded = from.folded;
  copy->finite_poles = from.finite_poles;
  copy->rules = from.rules;
  copy->strength = DeviceBuffer<double2>(from.strength.size(), kWhat);
  copy->real_strength = DeviceBuffer<double>(from.real_strength.size(), kWhat);
  copy->pole_ry = DeviceBuffer<double>(from.pole_ry.size(), kWhat);
  const auto bring = [&](const auto& source, auto& to) {
    if (source.size() == 0) return;
    peer_copy({to.data(), context_->device()}, {source.data(), from.device},
              static_cast<std::int64_t>(source.size() * sizeof(*source.data())), context_->stream(),
              kWhat);
  };
  bring(from.strength, copy->strength);
  bring(from.real_strength, copy->real_strength);
  bring(from.pole_ry, copy->pole_ry);
  check(cudaStreamSynchronize(context_->stream()), kWhat);
  return std::make_shared<const CudaPoleModel>(context_, std::move(copy));
}

void CudaPoleSumKernels::add_first_order_exchange(const FirstOrderProducts& products,
                                                  View<const double, 1> coulomb,
                                                  const FirstOrderPairs& pairs, View<Cplx, 3> sum) {
  context_->use();
  add_first_order_exchange_cuda(*context_, on_device(products), coulomb, pairs, sum);
}

std::unique_ptr<const LoadedImaginaryPoles> CudaPoleSumKernels::load_imaginary(
    View<const ImaginaryPole, 1> poles, const PoleRules& rules) {
  return std::make_unique<const CudaImaginaryPoles>(context_, poles, rules);
}

std::unique_ptr<const LoadedPoleChanges> CudaPoleSumKernels::load_changes(
    const std::shared_ptr<const LoadedPoleModel>& model,
    const std::vector<const PoleChange*>& changes) {
  const auto here = std::dynamic_pointer_cast<const CudaPoleModel>(model);
  if (here == nullptr) throw std::logic_error("the pole model belongs to another back end");
  return std::make_unique<const CudaPoleChanges>(context_, here->arrays(), changes,
                                                 here->arrays()->rows);
}

PoleChange CudaPoleSumKernels::change_of_poles(const LoadedPoleModel& model,
                                               const DielectricInverse& inverse,
                                               const ScreenedElements& elements) {
  const PoleArrays& own = *dynamic_cast<const CudaPoleModel&>(model).arrays();
  const auto& there = dynamic_cast<const CudaInverse&>(inverse);
  const int here = context_->device().index;
  if (!own.folded || own.n_g != elements.size() || own.device.index != here ||
      there.device().index != here)
    throw std::logic_error("elements of ε⁻¹ belong to another pole model or device");
  return change_of_poles_cuda(own.view(), there, elements, *context_);
}

}  // namespace quasi::gw::cuda

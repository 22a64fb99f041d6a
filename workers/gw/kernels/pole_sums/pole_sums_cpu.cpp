#include "workers/gw/kernels/pole_sums/pole_sums_cpu.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include "workers/gw/kernels/pair_products/pair_block_cpu.hpp"
#include "workers/gw/kernels/pole_sums/changes/change_of_poles_cpu.hpp"
#include "workers/gw/kernels/pole_sums/changes/closed_sums_cpu.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/gpp_diagonal_cpu.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/imaginary_poles_cpu.hpp"
#include "workers/gw/kernels/pole_sums/diagonal/pole_response_cpu.hpp"
#include "workers/gw/kernels/pole_sums/first_order/first_order_cpu.hpp"
#include "workers/gw/kernels/pole_sums/offdiagonal/gpp_offdiagonal_cpu.hpp"

namespace quasi::gw {
namespace {

View<const Cplx, 3> products_of(const PairBlock& block) {
  return dynamic_cast<const CpuPairBlock&>(block).view();
}
ScreenedExchange wanted(const Cplx* sx) {
  return sx != nullptr ? ScreenedExchange::kWanted : ScreenedExchange::kNotWanted;
}

class CpuPoleModel final : public LoadedPoleModel {
 public:
  CpuPoleModel(const PlasmonPoleView& model, const PoleRules& rules, const ElementRows& rows)
      : planes_(make_pole_planes(model, rows)), rules_(rules) {
    strength_.reserve(planes_.pole_ry.size());
    pole_ry_.reserve(planes_.pole_ry.size());
    for (std::int64_t g = rows.begin; g < rows.end; ++g) {
      const Cplx* const strength = &model.strength(g, 0);
      const double* const pole = &model.pole_ry(g, 0);
      strength_.insert(strength_.end(), strength, strength + planes_.stride);
      pole_ry_.insert(pole_ry_.end(), pole, pole + planes_.stride);
    }
  }

  bool is_whole() const override { return rows().size() == planes_.n_g; }

  void add_diagonal(const PairBlock& block, const DiagonalTerms& terms,
                    const DiagonalSums& sums) const override {
    for (const PoleGroup& group :
         make_pole_groups(terms.x_ry, terms.occupation, terms.weight, rules_, wanted(sums.sx.data)))
      add_gpp_diagonal_cpu(planes_, rules_, group, products_of(block), sums);
  }

  void add_diagonal_slope(const PairBlock& block, const DiagonalTerms& terms,
                          const SlopeSums& sums) const override {
    const std::int64_t n_left = block.n_left();
    std::vector<Cplx> both(static_cast<std::size_t>(2 * n_left)), both_sx(both.size());
    const View<const double, 2> x_ry{terms.x_ry.data, {n_left, block.n_right()}};
    add_gpp_diagonal_cpu(
        planes_, rules_,
        make_slope_group(x_ry, terms.occupation, terms.weight, rules_, wanted(sums.sx.data)),
        products_of(block), {{both.data(), {n_left, 2}}, {both_sx.data(), {n_left, 2}}});
    for (std::int64_t l = 0; l < n_left; ++l) {
      sums.total(l) += both[static_cast<std::size_t>(2 * l)];
      sums.slope(l) += both[static_cast<std::size_t>(2 * l + 1)];
      if (sums.sx.data) sums.sx(l) += both_sx[static_cast<std::size_t>(2 * l)];
    }
  }

  OffDiagonalReport add_offdiagonal(const PairBlock& block, const OffDiagonalTerms& terms,
                                    const OffDiagonalOptions& options,
                                    View<Cplx, 3> sigma) const override {
    return add_gpp_offdiagonal_cpu(view(), rules_, {products_of(block), products_of(block)}, terms,
                                   options, sigma);
  }

  OffDiagonalReport add_offdiagonal_between(const PairBlock& bra, const PairBlock& ket,
                                            const OffDiagonalTerms& terms,
                                            const OffDiagonalOptions& options,
                                            View<Cplx, 3> sigma) const override {
    PlasmonPoleView model = view();
    model.hermitian = false;
    return add_gpp_offdiagonal_cpu(model, rules_, {products_of(bra), products_of(ket)}, terms,
                                   options, sigma);
  }

  void add_first_order(const FirstOrderProducts& products, const FirstOrderPairs& pairs,
                       const FirstOrderTerms& terms, const FirstOrderSums& sums) const override {
    PlasmonPoleView model = view();
    model.hermitian = false;
    add_first_order_cpu(model, rules_, {products_of(products.bra), products_of(products.ket)},
                        pairs, terms, sums);
  }

  void closed_forms(const PairBlock& block, double x_ry, View<Cplx, 2> form) const override {
    const UnsetVector<Cplx> matrix = empty_band_matrix(view(), x_ry);
    block.quadratic_forms(quasi::view<const Cplx>(matrix, planes_.n_g, planes_.n_g), form);
  }
  std::vector<Cplx> sums_by_difference(double x_ry, const DifferenceBox& box) const override {
    return sums_by_difference_cpu(stored(), nullptr, rows(), x_ry, box);
  }

  /// Returns the whole matrices A and ω̃. @throws std::logic_error if the model lacks some rows
  PlasmonPoleView view() const {
    if (!is_whole()) throw std::logic_error("rows of a pole model have no whole matrices");
    const std::int64_t n_g = planes_.n_g;
    return {{strength_.data(), {n_g, n_g}}, {pole_ry_.data(), {n_g, n_g}}, planes_.folded};
  }

  StoredPoleRows stored() const {
    return {strength_.data(), pole_ry_.data(), planes_.n_g,
            rows().begin,     planes_.stride,  planes_.folded};
  }
  const ElementRows& rows() const { return planes_.rows; }
  const PolePlanes& planes() const { return planes_; }
  const PoleRules& rules() const { return rules_; }

 private:
  std::vector<Cplx> strength_;
  std::vector<double> pole_ry_;
  PolePlanes planes_;
  PoleRules rules_;
};

class CpuPoleChanges final : public LoadedPoleChanges {
 public:
  CpuPoleChanges(std::shared_ptr<const CpuPoleModel> model,
                 const std::vector<const PoleChange*>& changes, const ElementRows& rows)
      : model_(std::move(model)), changes_(changes), rows_(rows) {
    for (const PoleChange* change : changes)
      if (!change->real_strength.empty())
        throw std::logic_error("a change of a GPU's packed model cannot be summed by a CPU");
  }
  std::unique_ptr<const LoadedPoleChanges> of_rows(const std::vector<const PoleChange*>& changes,
                                                   const ElementRows& rows) const override {
    return std::make_unique<const CpuPoleChanges>(model_, changes, rows);
  }
  void add_response(const PairBlock& block, const ResponseTerms& terms,
                    const ResponseSums& sums) const override {
    add_pole_response_cpu(model_->planes(), model_->rules(), {changes_, rows_}, products_of(block),
                          terms, sums);
  }
  std::vector<Cplx> sums_by_difference(std::int64_t change, double x_ry,
                                       const DifferenceBox& box) const override {
    return sums_by_difference_cpu(model_->stored(), changes_[static_cast<std::size_t>(change)],
                                  rows_, x_ry, box);
  }

 private:
  std::shared_ptr<const CpuPoleModel> model_;
  std::vector<const PoleChange*> changes_;
  ElementRows rows_;
};

class CpuImaginaryPoles final : public LoadedImaginaryPoles {
 public:
  CpuImaginaryPoles(View<const ImaginaryPole, 1> poles, const PoleRules& rules)
      : poles_(poles.data, poles.data + poles.size()), rules_(rules) {}
  void add_diagonal(const PairBlock& block, const DiagonalTerms& terms, const DiagonalSums& sums,
                    View<Cplx, 1> slope) const override {
    add_imaginary_poles_cpu(poles_, rules_, products_of(block), terms, {sums, slope});
  }

 private:
  std::vector<ImaginaryPole> poles_;
  PoleRules rules_;
};

}  // namespace

std::shared_ptr<const LoadedPoleModel> CpuPoleSumKernels::load(const PlasmonPoleView& model,
                                                               const PoleRules& rules) {
  return std::make_shared<const CpuPoleModel>(model, rules,
                                              ElementRows{0, model.pole_ry.extent[0]});
}

std::shared_ptr<const LoadedPoleModel> CpuPoleSumKernels::load_rows(const PlasmonPoleView& model,
                                                                    const PoleRules& rules,
                                                                    const ElementRows& rows) {
  return std::make_shared<const CpuPoleModel>(model, rules, rows);
}

std::shared_ptr<const LoadedPoleModel> CpuPoleSumKernels::copy_of(
    const std::shared_ptr<const LoadedPoleModel>& model) {
  if (std::dynamic_pointer_cast<const CpuPoleModel>(model) == nullptr)
    throw std::logic_error("the pole model belongs to another back end");
  return model;
}

std::unique_ptr<const LoadedPoleChanges> CpuPoleSumKernels::load_changes(
    const std::shared_ptr<const LoadedPoleModel>& model,
    const std::vector<const PoleChange*>& changes) {
  auto here = std::dynamic_pointer_cast<const CpuPoleModel>(model);
  if (here == nullptr) throw std::logic_error("the pole model belongs to another back end");
  const ElementRows rows = here->rows();
  return std::make_unique<const CpuPoleChanges>(std::move(here), changes, rows);
}

void CpuPoleSumKernels::add_first_order_exchange(const FirstOrderProducts& products,
                                                 View<const double, 1> coulomb,
                                                 const FirstOrderPairs& pairs, View<Cplx, 3> sum) {
  add_first_order_exchange_cpu({products_of(products.bra), products_of(products.ket)}, coulomb,
                               pairs, sum);
}

std::unique_ptr<const LoadedImaginaryPoles> CpuPoleSumKernels::load_imaginary(
    View<const ImaginaryPole, 1> poles, const PoleRules& rules) {
  return std::make_unique<const CpuImaginaryPoles>(poles, rules);
}

PoleChange CpuPoleSumKernels::change_of_poles(const LoadedPoleModel& model,
                                              const DielectricInverse& inverse,
                                              const ScreenedElements& elements) {
  const PlasmonPoleView own = dynamic_cast<const CpuPoleModel&>(model).view();
  if (!own.hermitian || own.pole_ry.extent[0] != elements.size())
    throw std::logic_error("elements of ε⁻¹ belong to another pole model");
  return change_of_poles_cpu(own, dynamic_cast<const HostInverse&>(inverse), elements);
}

}  // namespace quasi::gw

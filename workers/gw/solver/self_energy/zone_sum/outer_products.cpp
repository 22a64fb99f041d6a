#include "workers/gw/solver/self_energy/zone_sum/outer_products.hpp"

namespace quasi::gw {

OuterProducts::OuterProducts(const MeanField& field, const BandsAtK& outer,
                             const std::array<int, 3>& box, GwKernels& kernels)
    : field_(field),
      kernels_(kernels),
      outer_(outer),
      box_(box),
      k_(field.waves.k[static_cast<std::size_t>(outer.k_index)]),
      left_(load(kernels, waves_at(field, k_, outer.spin, outer.begin, outer.end, box))),
      products_(kernels.pair_products().make_block()) {}

std::unique_ptr<const LoadedSphere> OuterProducts::load_sphere(const Vec3& q, const GSphere& sphere,
                                                               Phases phases) const {
  const SphereAtPoint rotated = rotated_sphere(field_, q, sphere, box_);
  const View<const std::int32_t, 1> box_index =
      view<const std::int32_t>(rotated.box_index, sphere.size());
  if (phases == Phases::kLeftOut) return kernels_.pair_products().load_sphere(box_, box_index, {});
  return kernels_.pair_products().load_sphere(box_, box_index,
                                              view<const Cplx>(rotated.factor, sphere.size()));
}

BandBlock OuterProducts::load_inner(const Vec3& q, std::int64_t begin, std::int64_t end) {
  const WavesAtPoint inner = inner_waves_at(field_, k_ - q, outer_.spin, static_cast<int>(begin),
                                            static_cast<int>(end), box_);
  right_ = {};  // its memory is free before the next bands take as much
  right_ = load(kernels_, inner);
  n_inner_ = end - begin;
  BandBlock block{.n_l = outer_.size(), .n_b = n_inner_};
  for (int band = outer_.begin; band < outer_.end; ++band)
    block.outer_ry.push_back(field_.waves.energy(outer_.spin, outer_.k_index, band));
  const int n_v = field_.n_occupied_of_spin[static_cast<std::size_t>(outer_.spin)];
  const Wavefunctions& from = inner_states(field_);
  for (std::int64_t n = begin; n < end; ++n) {
    block.inner_ry.push_back(
        from.energy(outer_.spin, inner.rotation.irreducible, static_cast<int>(n)));
    block.occupation.push_back(n < n_v ? 1.0 : 0.0);
  }
  return block;
}

BandBlock OuterProducts::load_complement(const Vec3& q, int begin, int end) {
  right_ = {};
  right_ = load(kernels_, complement_at(field_, k_ - q, outer_.spin, {begin, end}, box_));
  n_inner_ = end - begin;
  return {.n_l = outer_.size(), .n_b = n_inner_, .outer_ry = {}, .inner_ry = {}, .occupation = {}};
}

PairBlock& OuterProducts::fill(const LoadedSphere& sphere) {
  kernels_.pair_products().fill({*left_, {0, outer_.size()}}, {*right_, {0, n_inner_}}, sphere,
                                *products_);
  return *products_;
}

}  // namespace quasi::gw

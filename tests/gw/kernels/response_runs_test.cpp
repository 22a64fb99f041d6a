// Runs of bands with equal energies and groups of outer states in the response of the diagonal Σ.
// The truth are the sums of calls with one outer state and one band each, which have neither.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "tests/gw/kernels/response_problem.hpp"
#include "workers/backend/error.hpp"
#include "workers/gw/kernels/pole_sums/pole_change_kernels.hpp"

namespace {

using namespace quasi;
using gw::Cplx;
using test::absolute_sum;
using test::GwSigmaKernels;
using test::RandomPoleModel;
using test::Symmetry;
using test::response::Change;
using test::response::kStep;

QUASI_ON_EVERY_DEVICE(GwSigmaKernels);

constexpr double kClosedX_ry = -2.5;
constexpr std::int64_t kStates = 4;

/// Outer states and bands, some of which have equal energies.
struct EqualEnergies {
  std::vector<std::int64_t> group_end{1, 3, 4}, segment_end{17, 22, 27};
  std::vector<double> band, other, occupation, x_ry, other_x_ry;
  EqualEnergies() {
    const double none = std::nan("");
    add(12, -0.3, none, 1.0);  // with two outer states longer than a chunk of 16 rows
    add(1, -0.3 + 1e-4, none, 1.0);
    add(1, 0.6, none, 1.0);
    add(3, 0.75, none, 0.0);  // crosses poles of the first state
    add(3, 2.5, 2.6, 0.0);
    add(2, 2.5, 2.7, 0.0);
    add(2, 2.5, 2.7, 0.0);  // the last segment begins with the energies of the one before
    add(3, 4.0, 4.4, 0.0);
    for (const double state : {0.9, 0.4, 0.4, 0.31})
      for (std::size_t n = 0; n < band.size(); ++n) {
        x_ry.push_back(state - band[n]);
        other_x_ry.push_back(state - other[n]);
      }
  }
  std::int64_t bands() const { return std::ssize(band); }
  std::int64_t segments() const { return std::ssize(segment_end); }
  std::int64_t segment_of(std::int64_t band_index) const {
    std::int64_t segment = 0;
    while (segment_end[static_cast<std::size_t>(segment)] <= band_index) ++segment;
    return segment;
  }

 private:
  void add(int count, double energy, double other_energy, double f) {
    for (int i = 0; i < count; ++i) {
      band.push_back(energy);
      other.push_back(other_energy);
      occupation.push_back(f);
    }
  }
};

/// Responses of two changes, their slopes, and own sums.
struct Responses {
  std::int64_t states;
  std::vector<double> total, slope, own;
  Responses(std::int64_t n_states, std::int64_t segments)
      : states(n_states),
        total(static_cast<std::size_t>(2 * states)),
        slope(total.size()),
        own(static_cast<std::size_t>(segments * gw::kOwnSums * states)) {}
  /// Adds a multiple of the sums of one pair to those of a state and segment.
  void add(double factor, const Responses& one, std::int64_t state, std::int64_t segment) {
    for (std::int64_t c = 0; c < 2; ++c) {
      const auto at = static_cast<std::size_t>(c * states + state);
      total[at] += factor * one.total[static_cast<std::size_t>(c)];
      slope[at] += factor * one.slope[static_cast<std::size_t>(c)];
    }
    for (std::int64_t k = 0; k < gw::kOwnSums; ++k)
      own[static_cast<std::size_t>((segment * gw::kOwnSums + k) * states + state)] +=
          factor * one.own[static_cast<std::size_t>(k)];
  }
};

/// A random model with two changes on a device, and random products.
class RandomResponse {
 public:
  RandomResponse(const Device& device, int n_g, Symmetry symmetry, bool real, std::uint32_t seed)
      : model_(n_g, symmetry, seed),
        n_g_(n_g),
        products_(test::random_complex(
            static_cast<std::size_t>(kStates * EqualEnergies().bands() * n_g), seed + 1)),
        changes_{Change(model_, symmetry, seed + 2).packed(model_, symmetry),
                 Change(model_, symmetry, seed + 3).packed(model_, symmetry)},
        kernels_(gw::make_gw_kernels(device)),
        loaded_(kernels_->pole_sums().load_changes(kernels_->pole_sums().load(model_.view(), {}),
                                                   {&changes_[0], &changes_[1]})) {
    if (real)
      for (Cplx& value : products_) value = value.real();
  }
  double absolute() const { return absolute_sum(model_); }

  /// Adds the responses of products that begin at a pair.
  void add(std::int64_t pair, gw::ResponseTerms terms, bool with_slope, Responses& to) const {
    terms.closed_x_ry = kClosedX_ry;
    terms.screened_exchange = true;
    const auto [states, bands] = terms.x_ry.extent;
    const auto block =
        test::loaded_block(*kernels_, {products_.data() + pair * n_g_, {states, bands, n_g_}});
    loaded_->add_response(
        *block, terms,
        {{to.total.data(), {2, states}},
         with_slope ? View<double, 2>{to.slope.data(), {2, states}} : View<double, 2>{},
         {to.own.data(), {std::ssize(to.own) / (gw::kOwnSums * states), gw::kOwnSums, states}}});
  }

 private:
  RandomPoleModel model_;
  std::int64_t n_g_;
  std::vector<Cplx> products_;
  gw::PoleChange changes_[2];
  std::unique_ptr<gw::GwKernels> kernels_;
  std::unique_ptr<const gw::LoadedPoleChanges> loaded_;
};

/// Returns the mean over each group of sums of single pairs.
Responses means_of_pairs(const RandomResponse& response, const EqualEnergies& bands,
                         bool with_slope) {
  Responses means(kStates, bands.segments());
  std::int64_t begin = 0;
  for (const std::int64_t end : bands.group_end) {
    for (std::int64_t l = begin; l < end; ++l)
      for (std::int64_t n = 0; n < bands.bands(); ++n) {
        const std::int64_t pair = l * bands.bands() + n;
        Responses one(1, 1);
        response.add(pair,
                     {.x_ry = {bands.x_ry.data() + pair, {1, 1}},
                      .occupation = {bands.occupation.data() + n, {1}},
                      .other_x_ry = {bands.other_x_ry.data() + pair, {1, 1}}},
                     with_slope, one);
        for (std::int64_t of = begin; of < end; ++of)
          means.add(1.0 / static_cast<double>(end - begin), one, of, bands.segment_of(n));
      }
    begin = end;
  }
  return means;
}

// Sums of 1e5 terms in another order differ by 3e-11 of the absolute ones. Changes are smaller by
// kStep, and slopes near poles larger by up to 1/γ = 27.
void check(const Device& device, int n_g, Symmetry symmetry, bool real, bool with_slope,
           std::uint32_t seed) {
  SCOPED_TRACE("n_g " + std::to_string(n_g) + ", seed " + std::to_string(seed));
  const EqualEnergies bands;
  const RandomResponse response(device, n_g, symmetry, real, seed);
  Responses found(kStates, bands.segments());
  response.add(0,
               {.x_ry = {bands.x_ry.data(), {kStates, bands.bands()}},
                .occupation = {bands.occupation.data(), {bands.bands()}},
                .other_x_ry = {bands.other_x_ry.data(), {kStates, bands.bands()}},
                .segment_end = bands.segment_end,
                .group_end = bands.group_end},
               with_slope, found);
  const Responses means = means_of_pairs(response, bands, with_slope);
  const double scale = 3e-11 * response.absolute() * static_cast<double>(bands.bands());
  for (std::size_t i = 0; i < found.own.size(); ++i)
    EXPECT_NEAR(found.own[i], means.own[i], scale) << i;
  for (std::size_t i = 0; i < found.total.size(); ++i) {
    EXPECT_NEAR(found.total[i], means.total[i], kStep * scale) << i;
    EXPECT_NEAR(found.slope[i], means.slope[i], 30.0 * kStep * scale) << i;
  }
}

TEST_P(GwSigmaKernels, ResponsesOfEqualEnergiesAreThoseOfSingleBands) {
  check(GetParam(), 33, Symmetry::kNone, false, true, 910);
  check(GetParam(), 70, Symmetry::kHermitian, false, false, 920);
  check(GetParam(), 97, Symmetry::kHermitian, true, true, 930);
  check(GetParam(), 33, Symmetry::kHermitian, true, false, 940);
}

TEST_P(GwSigmaKernels, ResponseRefusesGroupsThatDoNotEndAtTheLastOuterState) {
  const EqualEnergies bands;
  const RandomResponse response(GetParam(), 4, Symmetry::kNone, false, 950);
  for (const std::vector<std::int64_t>& ends : {std::vector<std::int64_t>{1, 3}, {2, 2, 4}, {5}}) {
    Responses found(kStates, 1);
    EXPECT_THROW(response.add(0,
                              {.x_ry = {bands.x_ry.data(), {kStates, bands.bands()}},
                               .occupation = {bands.occupation.data(), {bands.bands()}},
                               .group_end = ends},
                              false, found),
                 InvalidInput);
  }
}

}  // namespace

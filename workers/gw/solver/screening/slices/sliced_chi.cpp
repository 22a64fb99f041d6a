#include "workers/gw/solver/screening/slices/sliced_chi.hpp"

#include <algorithm>
#include <utility>

#include "workers/backend/team/kept_pieces.hpp"
#include "workers/gw/solver/screening/polarizability/packed_chi.hpp"

namespace quasi::gw {
namespace {

/// Returns the values of a slice after a flag, which is 1 if all of them are real and else 0.
Piece piece_of_slice(const ChiSlice& slice) {
  auto values = std::make_shared<std::vector<double>>();
  values->reserve(slice.values.size() + 1);
  values->push_back(slice.real ? 1.0 : 0.0);
  values->insert(values->end(), slice.values.begin(), slice.values.end());
  return piece_of(std::shared_ptr<const std::vector<double>>(std::move(values)));
}

/// Calculates the slices of χ(0) at one q on all devices and joins them.
class Slices {
 public:
  Slices(const SlicedSum& sum, const StepContext& context)
      : sum_(sum),
        context_(context),
        n_(sum.chi.shape().n_static),
        rows_(slices_of_upper_triangle(n_, sum.options.column_slices)) {
    for (std::size_t s = 0; s < rows_.size(); ++s)
      names_.push_back(sum.prefix + std::to_string(rows_[s].begin));
  }

  std::unique_ptr<PartialChi> calculate() {
    found_ = kept_pieces(ranks(), context_.checkpoint, names_);
    std::vector<std::size_t> left;
    for (std::size_t s = 0; s < rows_.size(); ++s) {
      if (found_[s].data == nullptr)
        left.push_back(s);
      else
        report(s);
    }
    const std::vector<std::vector<std::size_t>> tasks = tasks_of(left);
    const auto count = static_cast<std::int64_t>(tasks.size());
    context_.team.run(count, [&](std::int64_t task, GwKernels& kernels) {
      solve(tasks[static_cast<std::size_t>(task)], kernels);
    });
    for (std::int64_t task = 0; task < count && ranks().size() > 1; ++task)
      for (const std::size_t s : tasks[static_cast<std::size_t>(task)])
        exchange(s, context_.team.owner(task, count));
    return joined();
  }

 private:
  Ranks& ranks() const { return context_.team.ranks(); }
  /// Reports the share of slice s in the portions of the whole sum.
  void report(std::size_t s) const {
    const auto count = static_cast<std::int64_t>(rows_.size()), at = static_cast<std::int64_t>(s);
    sum_.report((at + 1) * sum_.chi.portions() / count - at * sum_.chi.portions() / count);
  }

  /// Groups the missing slices into tasks. One device sums the slices of a task at the same time.
  /// Groups are small enough that every device gets a task, if there are enough slices.
  /// @param left  numbers of the slices that the checkpoint does not hold
  std::vector<std::vector<std::size_t>> tasks_of(const std::vector<std::size_t>& left) const {
    const auto n = static_cast<std::int64_t>(left.size()),
               devices = std::int64_t{context_.team.size()},
               at_once = std::clamp<std::int64_t>((n + devices - 1) / devices, 1,
                                                  sum_.options.slices_at_once);
    std::vector<std::vector<std::size_t>> tasks;
    for (std::int64_t begin = 0; begin < n; begin += at_once)
      tasks.emplace_back(left.begin() + begin, left.begin() + std::min(n, begin + at_once));
    return tasks;
  }

  void solve(const std::vector<std::size_t>& slices, GwKernels& kernels) {
    std::vector<ElementRows> rows;
    for (const std::size_t s : slices) rows.push_back(rows_[s]);
    const std::vector<ChiSlice> made = sum_.chi.slices(rows, kernels, context_.progress);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      found_[slices[i]] = piece_of_slice(made[i]);
      if (context_.checkpoint.keeps())
        context_.checkpoint.put(names_[slices[i]], found_[slices[i]]);
      report(slices[i]);
    }
  }

  /// Sends slice s from the rank `owner`, which has calculated it, to all other ranks.
  void exchange(std::size_t s, int owner) {
    std::vector<double> values;
    if (ranks().rank() == owner) values.assign(found_[s].data, found_[s].data + found_[s].count);
    ranks().broadcast(values, owner);
    if (ranks().rank() == owner) return;
    found_[s] = piece_of(std::make_shared<const std::vector<double>>(std::move(values)));
    report(s);
  }

  /// Copies the slices one after another into the packed triangle G ≤ G', and frees them. The
  /// triangle is complex if any slice is.
  std::unique_ptr<PartialChi> joined() {
    const bool real = std::all_of(found_.begin(), found_.end(),
                                  [](const Piece& piece) { return piece.data[0] == 1.0; });
    UnsetVector<double> values(static_cast<std::size_t>(1 + (real ? 1 : 2) * triangle_size(n_)));
    values[0] = real ? 1.0 : 0.0;
    double* to = values.data() + 1;
    for (Piece& piece : found_) {
      const double* const from = piece.data + 1;
      const std::size_t count = piece.count - 1;
      if (real || piece.data[0] == 0.0) {
        to = std::copy(from, from + count, to);
      } else {
        for (std::size_t i = 0; i < count; ++i) {
          *to++ = from[i];
          *to++ = 0.0;
        }
      }
      piece = {};
    }
    return std::make_unique<PackedSum>(ChiShape{.n_static = n_}, std::move(values));
  }

  const SlicedSum& sum_;
  const StepContext& context_;
  std::int64_t n_;
  std::vector<ElementRows> rows_;
  std::vector<std::string> names_;
  std::vector<Piece> found_;  ///< flag and values of each slice, as piece_of_slice() makes them
};

}  // namespace

std::unique_ptr<PartialChi> sliced_chi(const SlicedSum& sum, const StepContext& context) {
  return Slices(sum, context).calculate();
}

}  // namespace quasi::gw

#include "workers/thermal/solver/four_phonon/collision_4ph.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "workers/backend/team/every_device.hpp"
#include "workers/thermal/solver/three_phonon/remembered_operator.hpp"

namespace quasi::thermal {

namespace {

/// Tags of messages between ranks about sums of the operator. Rank 0 has the checkpoint.
enum SumsTag : int {
  kSumsHere = 1000,  ///< to rank 0: {first point, tiles in the sums, sums}; without sums: they are
                     ///< worth nothing; {first point, −1}: finished
  kSumsBack =
      1001,  ///< + 2·device: to the rank: {tiles in the sums, sums} of an earlier attempt, or {0}
  kSumsAsk = 1002,  ///< + 2·device: to the rank: a file is due
};

}  // namespace

Collision4ph::Collision4ph(const Problem4ph& problem, const PhysicalConstants& constants,
                           const Team4ph& team, const Rates4ph& rates, bool symmetric,
                           Progress& progress)
    : problem_(problem),
      team_(team),
      rates_(rates),
      symmetric_(symmetric),
      progress_(progress),
      plan_(plan_tiles_4ph(problem)),
      temperature_(problem.temperatures_k.size()) {
  const double n_q = static_cast<double>(problem.mesh.size());
  rate_constant_ = constants.rate_4ph / (n_q * n_q);
  const auto n_points = static_cast<std::int32_t>(problem.point.size());
  std::int64_t fit = n_points;
  for (const auto* kernel : team_.kernels) fit = std::min(fit, kernel->collision_points_that_fit());
  first_device_.push_back(0);
  for (const auto& of_rank :
       team_.ranks->gather({static_cast<double>(team_.kernels.size()), static_cast<double>(fit)})) {
    first_device_.push_back(first_device_.back() + static_cast<std::size_t>(of_rank.at(0)));
    fit = std::min(fit, static_cast<std::int64_t>(of_rank.at(1)));
  }
  const auto n_devices = static_cast<std::int32_t>(first_device_.back());
  const std::int32_t share = (n_points + n_devices - 1) / n_devices;
  recomputes_ = share > fit;
  const auto size = static_cast<std::int32_t>(std::min<std::int64_t>(share, fit));
  for (std::int32_t first = 0; first < n_points; first += size)
    chunks_.push_back(
        {first, std::min(n_points, first + size), chunks_.size() % first_device_.back()});
  out_per_ps_.resize(problem.point.size() * static_cast<std::size_t>(problem.n_branches));
}

template <typename Work>
void Collision4ph::on_own_chunks(const Work& work) {
  const std::size_t first = first_device_[static_cast<std::size_t>(team_.ranks->rank())];
  on_every_device(team_.kernels.size(), stop_, [&](std::size_t device) {
    for (const Chunk& chunk : chunks_)
      if (chunk.device == first + device && !stop_) work(chunk, *team_.kernels[device]);
  });
}

std::size_t Collision4ph::rank_of(const Chunk& chunk) const {
  return static_cast<std::size_t>(
             std::upper_bound(first_device_.begin(), first_device_.end(), chunk.device) -
             first_device_.begin()) -
         1;
}

void Collision4ph::exchange_rows(std::vector<double>& values, std::int64_t width) const {
  if (team_.ranks->size() == 1) return;
  const auto range_of = [&](const Chunk& chunk) {
    const std::int64_t stride = width * problem_.n_branches;
    return std::pair{static_cast<std::ptrdiff_t>(chunk.first_point * stride),
                     static_cast<std::ptrdiff_t>(chunk.last_point * stride)};
  };
  std::vector<double> mine;
  for (const Chunk& chunk : chunks_)
    if (rank_of(chunk) == static_cast<std::size_t>(team_.ranks->rank())) {
      const auto [begin, end] = range_of(chunk);
      mine.insert(mine.end(), values.begin() + begin, values.begin() + end);
    }
  const auto all = team_.ranks->gather(mine);
  std::vector<std::size_t> at(all.size(), 0);
  for (const Chunk& chunk : chunks_) {
    const std::size_t rank = rank_of(chunk);
    const auto [begin, end] = range_of(chunk);
    const auto from = all[rank].begin() + static_cast<std::ptrdiff_t>(at[rank]);
    std::copy(from, from + (end - begin), values.begin() + begin);
    at[rank] += static_cast<std::size_t>(end - begin);
  }
}

double collision_bytes(std::int64_t n_rows, std::int64_t n_modes) {
  return static_cast<double>(n_rows) * static_cast<double>(n_modes) * sizeof(double);
}

void Collision4ph::keep_in(Checkpoint& checkpoint, double limit_bytes) {
  const bool several = team_.ranks->size() > 1;
  std::vector<double> keeps{checkpoint.keeps() && !(several && recomputes_) ? 1.0 : 0.0};
  if (several) team_.ranks->broadcast(keeps, 0);
  if (keeps[0] == 0.0) return;
  if (team_.ranks->leads()) checkpoint_ = &checkpoint;
  problem_digest_ = digest_of(problem_);
  const double bytes = collision_bytes(static_cast<std::int64_t>(out_per_ps_.size()),
                                       static_cast<std::int64_t>(problem_.omega_rad_ps.size()));
  const auto mib = [](double x) { return std::to_string(std::llround(x / 1048576.0)) + " MiB"; };
  std::string why;
  if (bytes > limit_bytes) why = "checkpoint_limit_mib allows " + mib(limit_bytes);
  // Three files may exist: the newest, its predecessor, which may be on its way, and the next.
  const auto disk = static_cast<double>(checkpoint.free_disk_bytes());
  if (why.empty() && disk < 3.0 * bytes)
    why = "three times as much must fit the disk, which has " + mib(disk);
  // This memory comes on top of the operator itself, if that is in the memory of the host.
  const auto memory = static_cast<double>(free_memory_bytes(Device{}));
  if (why.empty() && memory < 2.0 * bytes)
    why = "a copy takes memory, of which the host has " + mib(memory);
  std::vector<double> keeps_sums{why.empty() ? 1.0 : 0.0};
  if (several) team_.ranks->broadcast(keeps_sums, 0);
  keeps_sums_ = keeps_sums[0] != 0.0;
  if (!keeps_sums_ && team_.ranks->leads())
    progress_.log(
        "the four-phonon collision operator (" + mib(bytes) + ") is not checkpointed: " + why +
        "; a job that is killed builds it again, and keeps the iterations that it has made");
}

std::uint64_t Collision4ph::digest(std::size_t t, const Chunk& chunk) const {
  ProblemDigest digest;
  digest.add(&problem_digest_, sizeof problem_digest_);
  digest.add(rates_.normal_per_ps);
  digest.add(rates_.umklapp_per_ps);
  for (const double value :
       {static_cast<double>(t), symmetric_ ? 1.0 : 0.0, static_cast<double>(chunk.first_point),
        static_cast<double>(chunk.last_point)})
    digest.add(value);
  return digest.value();
}

/// The chunks of a rank's first device stand for all.
void Collision4ph::report(const Chunk& chunk, std::int64_t place) {
  if (device_of(chunk) != 0) return;
  std::int64_t before = 0;
  std::int64_t all = 0;
  for (const Chunk& other : chunks_)
    if (other.device == chunk.device) {
      ++all;
      if (other.first_point < chunk.first_point) ++before;
    }
  progress_.report("collision 4ph",
                   (before * TilePlan4ph::kProgressUnits + plan_.progress(place)) / all,
                   TilePlan4ph::kProgressUnits);
}

void Collision4ph::build(std::size_t t, const Chunk& chunk, ScatteringKernels4ph& kernels) {
  const auto nb = static_cast<std::int64_t>(problem_.n_branches);
  CollisionRequest4ph request{.temperature = static_cast<int>(t),
                              .symmetric = symmetric_,
                              .first_point = chunk.first_point,
                              .last_point = chunk.last_point,
                              .row_size = {}};
  for (std::int64_t row = chunk.first_point * nb; row < chunk.last_point * nb; ++row)
    request.row_size.push_back(rates_.total_per_ps(static_cast<int>(t), row) / rate_constant_);
  kernels.begin_collision(request);

  Ranks& ranks = *team_.ranks;
  const bool keeps = keeps_sums_ && ranks.leads();
  const bool sends = keeps_sums_ && !ranks.leads();
  const std::string place_of_chunk = name_of(chunk);
  const std::string sums = keeps ? sums_of(t, chunk) : "";
  const auto state = [&] { return kernels.collision_state(); };
  const auto send = [&](double tiles, const std::vector<double>& values) {
    std::vector<double> message{static_cast<double>(chunk.first_point), tiles};
    message.insert(message.end(), values.begin(), values.end());
    ranks.send(0, kSumsHere, std::move(message));
  };
  std::int64_t done = 0;
  if (const auto found = keeps ? checkpoint_->find_by_prefix(sums) : std::nullopt; found)
    if (kernels.restore_collision(found->second.data, found->second.count))
      done = std::stoll(found->first);
  if (sends) {
    const Ranks::Message back = ranks.wait_for(kSumsBack + 2 * device_of(chunk));
    if (back.values.size() > 1 &&
        kernels.restore_collision(back.values.data() + 1, back.values.size() - 1))
      done = static_cast<std::int64_t>(back.values[0]);
  }
  bool kept = done == plan_.size();
  std::vector<double> out;
  for (;;) {
    report(chunk, done);
    while (done < plan_.size()) {
      if (stop_) return;
      kernels.add_collision(plan_.first_total(done), plan_.last_total(done));
      ++done;
      if (keeps) checkpoint_->grow_if_due(place_of_chunk, sums + std::to_string(done), state);
      if (keeps && ranks.size() > 1) keep_what_is_sent(t);
      if (sends && ranks.receive(kSumsAsk + 2 * device_of(chunk)))
        send(static_cast<double>(done), state());
      report(chunk, done);
      if (device_of(chunk) != 0) progress_.throw_if_cancelled();
    }
    if (sends && !stop_ && !kept) send(static_cast<double>(done), state());
    if (keeps && !stop_) {  // until another temperature's are begun
      const std::string key = sums + std::to_string(done);
      if (!checkpoint_->find(key)) {
        checkpoint_->forget(place_of_chunk);
        checkpoint_->put(key, piece_of(std::make_shared<const std::vector<double>>(state())));
      }
    }
    out = kernels.finish_collision();
    if (!out.empty()) break;
    done = 0;  // the guess of the rows' size was too low
    kept = false;
    if (keeps) checkpoint_->forget(place_of_chunk);
    if (sends) send(0.0, {});
  }
  if (sends) send(-1.0, {});
  for (std::size_t i = 0; i < out.size(); ++i)
    out_per_ps_[static_cast<std::size_t>(chunk.first_point * nb) + i] = rate_constant_ * out[i];
}

void Collision4ph::send_what_is_kept(std::size_t t) {
  remote_left_ = 0;
  for (const Chunk& chunk : chunks_) {
    if (rank_of(chunk) == 0) continue;
    ++remote_left_;
    std::vector<double> message{0.0};
    if (const auto found = checkpoint_->find_by_prefix(sums_of(t, chunk))) {
      message[0] = std::stod(found->first);
      message.insert(message.end(), found->second.data, found->second.data + found->second.count);
    }
    team_.ranks->send(static_cast<int>(rank_of(chunk)), kSumsBack + 2 * device_of(chunk),
                      std::move(message));
  }
}

void Collision4ph::keep_what_is_sent(std::size_t t) {
  const std::lock_guard lock(remote_mutex_);
  while (auto message = team_.ranks->receive(kSumsHere)) {
    const auto chunk = std::find_if(chunks_.begin(), chunks_.end(), [&](const Chunk& c) {
      return c.first_point == static_cast<std::int32_t>(message->values.at(0));
    });
    const double tiles = message->values.at(1);
    if (tiles < 0.0) {
      --remote_left_;
    } else if (message->values.size() == 2) {
      checkpoint_->forget(name_of(*chunk));
    } else {
      auto values = std::make_shared<const std::vector<double>>(message->values.begin() + 2,
                                                                message->values.end());
      checkpoint_->replace(name_of(*chunk),
                           sums_of(t, *chunk) + std::to_string(static_cast<std::int64_t>(tiles)),
                           piece_of(std::move(values)));
    }
  }
  if (checkpoint_->is_turn(remote_turn_))
    for (const Chunk& chunk : chunks_)
      if (const std::size_t rank = rank_of(chunk); rank != 0)
        team_.ranks->send(static_cast<int>(rank), kSumsAsk + 2 * device_of(chunk), {0.0});
}

void Collision4ph::wait_for_what_is_sent(std::size_t t) {
  for (keep_what_is_sent(t); remote_left_ > 0; keep_what_is_sent(t)) {
    progress_.throw_if_cancelled();
    if (team_.ranks->peer_failed()) throw PeerFailed();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Collision4ph::prepare(std::size_t t) {
  if (temperature_ == t) return;
  const bool keeps_for_others = keeps_sums_ && team_.ranks->leads() && team_.ranks->size() > 1;
  if (keeps_for_others) send_what_is_kept(t);
  on_own_chunks(
      [&](const Chunk& chunk, ScatteringKernels4ph& kernels) { build(t, chunk, kernels); });
  if (keeps_for_others) wait_for_what_is_sent(t);
  exchange_rows(out_per_ps_, 1);
  temperature_ = t;
}

std::vector<double> Collision4ph::out_scattering(std::size_t t) {
  prepare(t);
  return out_per_ps_;
}

/// The caller multiplies by C4/Nq².
std::vector<double> Collision4ph::apply(std::size_t t, const Chunk& chunk,
                                        ScatteringKernels4ph& kernels,
                                        const std::vector<double>& f) {
  if (!recomputes_) return kernels.apply_collision(f);
  const FieldOperator built = [&](const std::vector<double>& field) {
    build(t, chunk, kernels);
    return stop_ ? std::vector<double>() : kernels.apply_collision(field);
  };
  return checkpoint_ != nullptr
             ? remembered(*checkpoint_, "in-scattering 4ph", digest(t, chunk), built)(f)
             : built(f);
}

std::vector<double> Collision4ph::in_scattering(std::size_t t, const std::vector<double>& f) {
  if (!recomputes_) prepare(t);
  std::vector<double> result(3 * out_per_ps_.size());
  on_own_chunks([&](const Chunk& chunk, ScatteringKernels4ph& kernels) {
    const std::vector<double> part = apply(t, chunk, kernels, f);
    if (part.empty()) return;  // stopped
    const auto at = static_cast<std::ptrdiff_t>(3 * chunk.first_point * problem_.n_branches);
    std::transform(part.begin(), part.end(), result.begin() + at,
                   [&](double x) { return rate_constant_ * x; });
  });
  exchange_rows(result, 3);
  return result;
}

}  // namespace quasi::thermal

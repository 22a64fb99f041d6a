#include "workers/thermal/solver/checkpoint_4ph.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <type_traits>

#include "workers/backend/error.hpp"

namespace quasi::thermal {

namespace {

constexpr char kMagic[8] = {'q', 's', 'i', '4', 'p', 'h', '0', '1'};

double now_s() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// FNV-1a over 64-bit words; tells two problems apart, protects against nothing.
class Digest {
 public:
  template <typename T>
  void add(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    add_bytes(values.data(), values.size() * sizeof(T));
  }
  void add_bytes(const void* data, std::size_t size) {
    const auto* byte = static_cast<const unsigned char*>(data);
    for (; size >= 8; size -= 8, byte += 8) {
      std::uint64_t word;
      std::memcpy(&word, byte, 8);
      mix(word);
    }
    for (std::size_t i = 0; i < size; ++i) mix(byte[i]);
  }
  void mix(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x100000001b3ull;
    value_ ^= value_ >> 29;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ull;
};

std::uint64_t digest_of(const Problem4ph& p) {
  Digest d;
  d.add_bytes(p.mesh.n, sizeof p.mesh.n);
  for (const double value :
       {p.rules.scale_broad, p.rules.cut, p.rules.tie_tolerance_rad_ps, p.rules.window_norm,
        p.rules.sigma_least_rad_ps, p.rules.sigma_floor_rad_ps, p.rules.sigma_at_floor_rad_ps, p.rules.omega_floor_rad_ps,
        static_cast<double>(p.rules.broadening), static_cast<double>(p.rules.exact_weights)})
    d.add_bytes(&value, sizeof value);
  d.add(p.omega_rad_ps);
  d.add(p.set);
  d.add(p.spread_rad_ps);
  d.add(p.temperatures_k);
  d.add(p.occupation);
  d.add(p.eigenvector);
  d.add(p.point);
  d.add(p.partner_weight);
  d.add(p.plan.tensor);
  d.add(p.plan.cell);
  return d.value();
}

}  // namespace

Checkpoint4ph::Checkpoint4ph(const CheckpointRule& rule, const Problem4ph& problem,
                             std::int64_t n_values)
    : interval_s_(rule.interval_s), n_values_(n_values), last_write_s_(now_s()) {
  if (rule.directory.empty()) return;
  file_ = rule.directory / "scattering_4ph.ckpt";
  digest_ = digest_of(problem);
  std::ifstream in(file_, std::ios::binary);
  char magic[8];
  std::uint64_t header[3];
  if (!in.read(magic, sizeof magic) || std::memcmp(magic, kMagic, sizeof kMagic) != 0) return;
  if (!in.read(reinterpret_cast<char*>(header), sizeof header)) return;
  if (header[0] != digest_ || header[1] != static_cast<std::uint64_t>(n_values)) return;
  std::vector<double> total(static_cast<std::size_t>(n_values));
  std::uint64_t check;
  if (!in.read(reinterpret_cast<char*>(total.data()), n_values * 8)) return;
  if (!in.read(reinterpret_cast<char*>(&check), sizeof check)) return;
  Digest contents;
  contents.mix(header[2]);
  contents.add(total);
  if (contents.value() != check) return;
  finished_ = static_cast<std::int64_t>(header[2]);
  total_ = std::move(total);
}

void Checkpoint4ph::finished_tile(std::int64_t finished, const std::vector<double>& total,
                                  Progress& progress) {
  if (file_.empty()) return;
  const double now = now_s();
  if (!progress.checkpoint_wanted() && now - last_write_s_ < interval_s_) return;
  last_write_s_ = now;
  Digest contents;
  contents.mix(static_cast<std::uint64_t>(finished));
  contents.add(total);
  const std::uint64_t header[3] = {digest_, static_cast<std::uint64_t>(n_values_),
                                   static_cast<std::uint64_t>(finished)};
  const std::uint64_t check = contents.value();
  std::string bytes(kMagic, sizeof kMagic);
  bytes.append(reinterpret_cast<const char*>(header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(total.data()), total.size() * sizeof(double));
  bytes.append(reinterpret_cast<const char*>(&check), sizeof check);

  const std::filesystem::path aside = file_.string() + ".new";
  const int descriptor = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool good = descriptor >= 0;
  for (std::size_t done = 0; good && done < bytes.size();) {
    const ssize_t n = ::write(descriptor, bytes.data() + done, bytes.size() - done);
    good = n > 0;
    done += good ? static_cast<std::size_t>(n) : 0;
  }
  if (descriptor >= 0) {
    good = ::fsync(descriptor) == 0 && good;
    good = ::close(descriptor) == 0 && good;
  }
  std::error_code error;
  if (good) std::filesystem::rename(aside, file_, error);
  if (!good || error) throw StorageError("cannot write the checkpoint " + file_.string());
  progress.checkpoint_ready(file_.string(), finished);
}

}  // namespace quasi::thermal

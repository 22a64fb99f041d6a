#include "client/views/transfer_bar.hpp"

#include <algorithm>
#include <utility>

#include "client/views/live_view.hpp"
#include "client/views/readable.hpp"

namespace quasi::client {

TransferBar::TransferBar(Console& console, std::string verb, std::string name)
    : console_(console), verb_(std::move(verb)), name_(std::move(name)) {}

double TransferBar::elapsed_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void TransferBar::show(std::uint64_t done, std::uint64_t total) {
  if (!std::exchange(begun_, true))
    first_done_ = done;  // a resumed transfer does not begin at zero
  const auto now = std::chrono::steady_clock::now();
  if (console_.quiet() || !console_.terminal().err || now - last_ < std::chrono::milliseconds(100))
    return;
  last_ = now;
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
  const double pace = static_cast<double>(done - first_done_) / std::max(elapsed_s(), 1e-3);
  std::string text = verb_ + "  " + name_ + "  " + progress_bar(share, 20) + "  " +
                     readable_bytes(done) + " of " + readable_bytes(total) + "  " +
                     readable_bytes(static_cast<std::uint64_t>(pace)) + "/s";
  if (pace > 0.0 && elapsed_s() > 1.0)
    text += "  eta " + readable_seconds(static_cast<double>(total - done) / pace);
  console_.draw("\r\033[K" + text);
  shown_ = true;
}

void TransferBar::clear() {
  if (std::exchange(shown_, false)) console_.draw("\r\033[K");
}

std::string TransferBar::pace(std::uint64_t bytes) const {
  const double seconds = elapsed_s();
  if (seconds < 1.0) return "";
  return "  (" + readable_seconds(seconds) + ", " +
         readable_bytes(static_cast<std::uint64_t>(static_cast<double>(bytes) / seconds)) + "/s)";
}

}  // namespace quasi::client

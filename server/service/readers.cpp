#include "server/service/readers.hpp"

#include <memory>

namespace quasi::server {
namespace {

constexpr std::size_t kQueueLimit = 8'192;

thread_local std::unique_ptr<ReadStore> own_store;

}  // namespace

WorkPool::WorkPool(std::size_t threads, std::function<void()> on_thread_start)
    : on_thread_start_(std::move(on_thread_start)) {
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkPool::~WorkPool() { close(); }

bool WorkPool::post(std::function<void()> work) {
  // The lock is held to the end: an alarm of gRPC may post while the server is being destroyed, and
  // close() must not return before that call has left.
  const std::lock_guard lock(mutex_);
  if (closed_ || waiting_.size() >= kQueueLimit) return false;
  waiting_.push_back(std::move(work));
  changed_.notify_one();
  return true;
}

void WorkPool::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void WorkPool::run() {
  if (on_thread_start_) on_thread_start_();
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) break;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
    ++done_;
  }
  own_store.reset();
}

Readers::Readers(const std::string& database_path, std::size_t threads)
    : WorkPool(threads,
               [database_path] { own_store = std::make_unique<ReadStore>(database_path); }) {}

bool Readers::read(std::function<void(ReadStore&)> work) {
  return post([work = std::move(work)] { work(*own_store); });
}

}  // namespace quasi::server

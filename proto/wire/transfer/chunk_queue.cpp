#include "proto/wire/transfer/chunk_queue.hpp"

#include <utility>

namespace quasi::wire {

ChunkQueue::ChunkQueue(std::function<void(const std::string&)> take)
    : take_(std::move(take)), thread_([this] { run(); }) {}

ChunkQueue::~ChunkQueue() { close(); }

void ChunkQueue::append(std::string& chunk) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_ || waiting_.size() < kWaitingChunks; });
    if (failure_) std::rethrow_exception(failure_);
    waiting_.push_back(std::move(chunk));
    chunk.clear();
    if (!used_.empty()) {
      chunk = std::move(used_.back());
      used_.pop_back();
    }
  }
  changed_.notify_all();
}

void ChunkQueue::finish() {
  close();
  if (failure_) std::rethrow_exception(failure_);
}

void ChunkQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ChunkQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::string chunk = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    changed_.notify_all();
    std::exception_ptr failure;
    try {
      take_(chunk);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    used_.push_back(std::move(chunk));
    if (!failure) continue;
    failure_ = failure;
    waiting_.clear();
    changed_.notify_all();
    return;
  }
}

}  // namespace quasi::wire

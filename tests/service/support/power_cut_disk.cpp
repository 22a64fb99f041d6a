#include "tests/service/support/power_cut_disk.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace quasi::server::test {
namespace {

using Node = PowerCutDisk::Node;

std::string parent_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

void redo(std::string& bytes, const Node::Change& change) {
  if (change.truncate) {
    bytes.resize(change.offset);
    return;
  }
  if (bytes.size() < change.offset + change.bytes.size())
    bytes.resize(change.offset + change.bytes.size());
  bytes.replace(change.offset, change.bytes.size(), change.bytes);
}

class DiskFile : public FileSystem::File {
 public:
  DiskFile(PowerCutDisk& disk, std::shared_ptr<Node> node) : disk_(disk), node_(std::move(node)) {}
  void write(std::uint64_t offset, std::string_view data) override {
    disk_.write(*node_, offset, data);
  }
  std::size_t read(std::uint64_t offset, char* data, std::size_t size) override {
    if (offset >= node_->bytes.size()) return 0;
    return node_->bytes.copy(data, size, offset);
  }
  void sync() override { disk_.sync(*node_); }
  void truncate(std::uint64_t size) override { disk_.truncate(*node_, size); }
  std::uint64_t size() override { return node_->bytes.size(); }

 private:
  PowerCutDisk& disk_;
  std::shared_ptr<Node> node_;
};

// The VFS for SQLite. One process uses the connections on one thread, so locks do nothing.
struct VfsFile {
  sqlite3_file base;
  PowerCutDisk* disk;
  std::shared_ptr<Node>* node;
  std::string* path;
  bool sync_directory_too;  ///< SQLite's own Unix layer does so for new journals
};

VfsFile* self(sqlite3_file* file) { return reinterpret_cast<VfsFile*>(file); }

template <class Work>
int guarded(int failure, Work work) {
  try {
    work();
    return SQLITE_OK;
  } catch (const FileError& error) {
    return error.is_full() ? SQLITE_FULL : failure;
  }
}

int vfs_close(sqlite3_file* file) {
  delete self(file)->node;
  delete self(file)->path;
  return SQLITE_OK;
}
int vfs_read(sqlite3_file* file, void* data, int size, sqlite3_int64 offset) {
  const std::string& bytes = (*self(file)->node)->bytes;
  const auto at = static_cast<std::size_t>(offset);
  const std::size_t got =
      at >= bytes.size() ? 0
                         : bytes.copy(static_cast<char*>(data), static_cast<std::size_t>(size), at);
  if (got == static_cast<std::size_t>(size)) return SQLITE_OK;
  std::memset(static_cast<char*>(data) + got, 0, static_cast<std::size_t>(size) - got);
  return SQLITE_IOERR_SHORT_READ;
}
int vfs_write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  return guarded(SQLITE_IOERR_WRITE, [&] {
    self(file)->disk->write(**self(file)->node, static_cast<std::uint64_t>(offset),
                            {static_cast<const char*>(data), static_cast<std::size_t>(size)});
  });
}
int vfs_truncate(sqlite3_file* file, sqlite3_int64 size) {
  return guarded(SQLITE_IOERR_TRUNCATE, [&] {
    self(file)->disk->truncate(**self(file)->node, static_cast<std::uint64_t>(size));
  });
}
int vfs_sync(sqlite3_file* file, int) {
  return guarded(SQLITE_IOERR_FSYNC, [&] {
    self(file)->disk->sync(**self(file)->node);
    if (!self(file)->sync_directory_too) return;
    self(file)->disk->sync_directory(parent_of(*self(file)->path));
    self(file)->sync_directory_too = false;
  });
}
int vfs_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>((*self(file)->node)->bytes.size());
  return SQLITE_OK;
}
int vfs_lock(sqlite3_file*, int) { return SQLITE_OK; }
int vfs_check_lock(sqlite3_file*, int* held) {
  *held = 0;
  return SQLITE_OK;
}
int vfs_control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int vfs_sector(sqlite3_file*) { return 4'096; }
int vfs_device(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }
int vfs_shm_map(sqlite3_file* file, int page, int size, int extend, void volatile** region) {
  auto& memory = (*self(file)->node)->shared_memory;
  const auto index = static_cast<std::size_t>(page);
  *region = nullptr;
  if (index >= memory.size() && extend == 0) return SQLITE_OK;
  while (memory.size() <= index)
    memory.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size)));
  *region = memory[index].get();
  return SQLITE_OK;
}
int vfs_shm_lock(sqlite3_file*, int, int, int) { return SQLITE_OK; }
void vfs_shm_barrier(sqlite3_file*) {}
int vfs_shm_unmap(sqlite3_file* file, int remove) {
  if (remove != 0) (*self(file)->node)->shared_memory.clear();
  return SQLITE_OK;
}

const sqlite3_io_methods kMethods = {.iVersion = 2,
                                     .xClose = vfs_close,
                                     .xRead = vfs_read,
                                     .xWrite = vfs_write,
                                     .xTruncate = vfs_truncate,
                                     .xSync = vfs_sync,
                                     .xFileSize = vfs_size,
                                     .xLock = vfs_lock,
                                     .xUnlock = vfs_lock,
                                     .xCheckReservedLock = vfs_check_lock,
                                     .xFileControl = vfs_control,
                                     .xSectorSize = vfs_sector,
                                     .xDeviceCharacteristics = vfs_device,
                                     .xShmMap = vfs_shm_map,
                                     .xShmLock = vfs_shm_lock,
                                     .xShmBarrier = vfs_shm_barrier,
                                     .xShmUnmap = vfs_shm_unmap,
                                     .xFetch = nullptr,
                                     .xUnfetch = nullptr};

PowerCutDisk* disk_of(sqlite3_vfs* vfs) { return static_cast<PowerCutDisk*>(vfs->pAppData); }

int vfs_open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  PowerCutDisk& disk = *disk_of(vfs);
  VfsFile& opened = *self(file);
  opened.base.pMethods = nullptr;
  if (name == nullptr) return SQLITE_CANTOPEN;  // a pragma keeps temporary files in memory
  std::shared_ptr<Node> node = disk.find(name);
  bool created = false;
  if (!node) {
    if ((flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
    const int code = guarded(SQLITE_CANTOPEN, [&] { node = disk.create(name); });
    if (code != SQLITE_OK) return code;
    created = true;
  }
  opened.disk = &disk;
  opened.node = new std::shared_ptr<Node>(node);
  opened.path = new std::string(name);
  opened.sync_directory_too =
      created && (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL)) != 0;
  opened.base.pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}
int vfs_delete(sqlite3_vfs* vfs, const char* name, int sync_directory) {
  return guarded(SQLITE_IOERR_DELETE, [&] {
    disk_of(vfs)->remove(name);
    if (sync_directory != 0) disk_of(vfs)->sync_directory(parent_of(name));
  });
}
int vfs_access(sqlite3_vfs* vfs, const char* name, int, int* result) {
  *result = disk_of(vfs)->exists(name) ? 1 : 0;
  return SQLITE_OK;
}
int vfs_full_path(sqlite3_vfs*, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}
int vfs_randomness(sqlite3_vfs*, int size, char* out) {
  for (int i = 0; i < size; ++i) out[i] = static_cast<char>(i * 37 + 11);
  return size;
}
int vfs_sleep(sqlite3_vfs*, int microseconds) { return microseconds; }
int vfs_time(sqlite3_vfs*, double* julian_day) {
  *julian_day = 2'460'000.5;
  return SQLITE_OK;
}
int vfs_last_error(sqlite3_vfs*, int, char*) { return 0; }

}  // namespace

PowerCutDisk::PowerCutDisk(const std::string& root) : root_(root) {
  static int count = 0;
  vfs_name_ = "power-cut-" + std::to_string(++count);
  vfs_ = std::make_unique<sqlite3_vfs>();
  vfs_->iVersion = 1;
  vfs_->szOsFile = sizeof(VfsFile);
  vfs_->mxPathname = 512;
  vfs_->zName = vfs_name_.c_str();
  vfs_->pAppData = this;
  vfs_->xOpen = vfs_open;
  vfs_->xDelete = vfs_delete;
  vfs_->xAccess = vfs_access;
  vfs_->xFullPathname = vfs_full_path;
  vfs_->xRandomness = vfs_randomness;
  vfs_->xSleep = vfs_sleep;
  vfs_->xCurrentTime = vfs_time;
  vfs_->xGetLastError = vfs_last_error;
  sqlite3_vfs_register(vfs_.get(), 0);
  auto node = std::make_shared<Node>();
  node->directory = true;
  names_[root] = node;
  durable_names_[root] = node;
}

PowerCutDisk::~PowerCutDisk() { sqlite3_vfs_unregister(vfs_.get()); }

void PowerCutDisk::point(Change change) {
  ++points_;
  if (cut_at_ > 0 && points_ >= cut_at_) cut_ = true;
  if (cut_) throw FileError(EIO, "the power is off");
  if (change == Change::kNeedsSpace && is_full()) throw FileError(ENOSPC, "the disk is full");
  if (change == Change::kSync && ++syncs_ == failed_sync_) throw FileError(EIO, "a sync failed");
}

std::shared_ptr<Node> PowerCutDisk::find(const std::string& path) {
  const auto found = names_.find(path);
  return found == names_.end() ? nullptr : found->second;
}

void PowerCutDisk::change_name(const std::string& path, std::shared_ptr<Node> node) {
  unsynced_names_.push_back({path, node});
  if (node)
    names_[path] = std::move(node);
  else
    names_.erase(path);
}

std::shared_ptr<Node> PowerCutDisk::create(const std::string& path) {
  point(Change::kNeedsSpace);
  if (!find(parent_of(path))) throw FileError(ENOENT, "create " + path);
  auto node = std::make_shared<Node>();
  change_name(path, node);
  return node;
}

void PowerCutDisk::write(Node& node, std::uint64_t offset, std::string_view bytes) {
  point(Change::kNeedsSpace);
  Node::Change change{.truncate = false, .offset = offset, .bytes = std::string(bytes)};
  redo(node.bytes, change);
  node.unsynced.push_back(std::move(change));
}

void PowerCutDisk::truncate(Node& node, std::uint64_t size) {
  point(Change::kOther);
  Node::Change change{.truncate = true, .offset = size, .bytes = {}};
  redo(node.bytes, change);
  node.unsynced.push_back(std::move(change));
}

void PowerCutDisk::sync(Node& node) {
  point(Change::kSync);
  if (lies_) return;
  for (const Node::Change& change : node.unsynced) redo(node.durable, change);
  node.unsynced.clear();
}

std::unique_ptr<FileSystem::File> PowerCutDisk::open(const std::string& path, Open mode) {
  auto node = find(path);
  if (!node && mode == Open::kCreate) node = create(path);
  if (!node) throw FileError(ENOENT, "open " + path);
  return std::make_unique<DiskFile>(*this, node);
}

bool PowerCutDisk::exists(const std::string& path) { return find(path) != nullptr; }

bool PowerCutDisk::make_directory(const std::string& path) {
  if (find(path)) return false;
  point(Change::kNeedsSpace);
  if (!find(parent_of(path))) throw FileError(ENOENT, "make directory " + path);
  auto node = std::make_shared<Node>();
  node->directory = true;
  change_name(path, node);
  return true;
}

void PowerCutDisk::rename(const std::string& from, const std::string& to) {
  const auto node = find(from);
  if (!node) throw FileError(ENOENT, "rename " + from);
  point(Change::kOther);
  change_name(to, node);
  change_name(from, nullptr);
}

void PowerCutDisk::remove(const std::string& path) {
  if (!find(path)) return;
  point(Change::kOther);
  change_name(path, nullptr);
}

void PowerCutDisk::sync_directory(const std::string& path) {
  point(Change::kSync);
  if (lies_) return;
  std::erase_if(unsynced_names_, [&](const NameChange& change) {
    if (parent_of(change.path) != path) return false;
    if (change.node)
      durable_names_[change.path] = change.node;
    else
      durable_names_.erase(change.path);
    return true;
  });
}

std::vector<std::string> PowerCutDisk::list(const std::string& path) {
  std::vector<std::string> found;
  for (const auto& [name, node] : names_)
    if (name != path && parent_of(name) == path) found.push_back(name.substr(path.size() + 1));
  return found;
}

void PowerCutDisk::restart(Loss loss, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto kept = [&] {
    return loss == Loss::kNothing || (loss == Loss::kRandomPart && random() % 2 == 0);
  };
  for (const NameChange& change : unsynced_names_) {
    if (!kept()) continue;
    if (change.node)
      durable_names_[change.path] = change.node;
    else
      durable_names_.erase(change.path);
  }
  unsynced_names_.clear();
  // Everything below a lost directory is lost.
  for (auto entry = durable_names_.begin(); entry != durable_names_.end();) {
    const bool orphan = entry->first != root_ && durable_names_.count(parent_of(entry->first)) == 0;
    entry = orphan ? durable_names_.erase(entry) : std::next(entry);
  }
  names_ = durable_names_;
  for (const auto& [path, node] : names_) {
    for (Node::Change change : node->unsynced) {
      if (!kept()) continue;
      // A write may also be torn at a sector.
      if (loss == Loss::kRandomPart && !change.truncate && random() % 4 == 0)
        change.bytes.resize(change.bytes.size() / 512 / 2 * 512);
      redo(node->durable, change);
    }
    node->unsynced.clear();
    node->bytes = node->durable;
    node->shared_memory.clear();
  }
  cut_ = false;
  cut_at_ = 0;
}

}  // namespace quasi::server::test

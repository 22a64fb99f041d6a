#include "server/store/blob_store.hpp"

#include "proto/wire/digest.hpp"

namespace quasi::server {

BlobStore::BlobStore(FileSystem& files, std::string root) : files_(files), root_(std::move(root)) {
  bool created = false;
  for (const char* name : {"/blobs", "/staging", "/corrupt"})
    created = files_.make_directory(root_ + name) || created;
  if (created) files_.sync_directory(root_);
  if (files_.make_directory(root_ + "/blobs/sha256")) files_.sync_directory(root_ + "/blobs");
}

std::string BlobStore::path_of(std::string_view digest) const {
  std::string path = root_ + "/blobs/sha256/";
  path.append(digest.substr(0, 2)).append("/").append(digest.substr(2, 2)).append("/");
  return path.append(digest);
}

std::string BlobStore::staging_path(const std::string& upload_id) const {
  return root_ + "/staging/" + upload_id;
}

std::unique_ptr<FileSystem::File> BlobStore::open_staging(const std::string& upload_id) {
  return files_.open(staging_path(upload_id), FileSystem::Open::kCreate);
}

bool BlobStore::has_staging(const std::string& upload_id) const {
  return files_.exists(staging_path(upload_id));
}

void BlobStore::remove_staging(const std::string& upload_id) {
  files_.remove(staging_path(upload_id));
}

std::vector<std::string> BlobStore::staged() const { return files_.list(root_ + "/staging"); }

void BlobStore::publish(const std::string& upload_id, std::string_view digest) {
  const std::string path = path_of(digest);
  const std::string leaf = path.substr(0, path.rfind('/'));
  const std::string branch = leaf.substr(0, leaf.rfind('/'));
  // The directory is synced even if another upload made it a moment ago, because that upload's sync
  // may not have finished.
  files_.make_directory(branch);
  files_.sync_directory(root_ + "/blobs/sha256");
  files_.make_directory(leaf);
  files_.sync_directory(branch);
  files_.make_read_only(staging_path(upload_id));
  files_.rename(staging_path(upload_id), path);
  files_.sync_directory(leaf);
  files_.sync_directory(root_ + "/staging");
}

std::unique_ptr<FileSystem::File> BlobStore::open(std::string_view digest) const {
  return files_.open(path_of(digest), FileSystem::Open::kRead);
}

bool BlobStore::has(std::string_view digest) const { return files_.exists(path_of(digest)); }

void BlobStore::remove(std::string_view digest) {
  const std::string path = path_of(digest);
  if (!files_.exists(path)) return;
  files_.remove(path);
  files_.sync_directory(path.substr(0, path.rfind('/')));
}

std::vector<std::string> BlobStore::stored() const {
  const std::string top = root_ + "/blobs/sha256/";
  std::vector<std::string> digests;
  for (const std::string& branch : files_.list(top.substr(0, top.size() - 1)))
    for (const std::string& leaf : files_.list(top + branch))
      for (const std::string& name : files_.list(top + branch + "/" + leaf))
        if (wire::is_digest(name) && name.starts_with(branch + leaf)) digests.push_back(name);
  return digests;
}

void BlobStore::put_aside(std::string_view digest) {
  ++n_put_aside_;
  if (has(digest)) files_.rename(path_of(digest), root_ + "/corrupt/" + std::string(digest));
}

}  // namespace quasi::server
